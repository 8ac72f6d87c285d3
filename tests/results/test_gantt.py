"""The picture of many tasks shows mean numbers of tasks, not counts of all that touch a cell."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ptaskmodel.results.loading import ShownTask
from ptaskmodel.results.pictures.gantt import occupancy

HOSTS = ("a", "b")
dates = st.integers(0, 1000).map(lambda k: k / 100)


def task(hosts):
    return ShownTask("t", None, 0.0, 0.0, "completed", hosts, None)


@given(
    st.lists(st.tuples(st.sampled_from([("a",), ("b",), HOSTS]), dates, dates), max_size=12),
    st.integers(1, 7),
)
def test_the_means_are_integrals(spans, cells):
    rows = [(task(hosts), min(x, y), max(x, y)) for hosts, x, y in spans]
    found = occupancy(rows, {"a": 0, "b": 1}, 10.0, cells)
    edges = np.linspace(0.0, 10.0, cells + 1)
    for k, host in enumerate(HOSTS):
        for cell in range(cells):
            low, high = edges[cell : cell + 2]
            lasted = sum(
                max(min(end, high) - max(start, low), 0.0)
                for one, start, end in rows
                if host in one.hosts
            )
            assert abs(found[k, cell] - lasted / (high - low)) < 1e-9


def test_jobs_one_after_the_other_never_make_more_than_one():
    rows = [(task(("a",)), k / 100, (k + 1) / 100) for k in range(1000)]
    assert np.allclose(occupancy(rows, {"a": 0}, 10.0, 7), 1.0)


def test_attempts_and_suspensions_are_drawn_each(tmp_path):
    """A job that was suspended, then lost, then run again has three stretches, one of them pale."""
    from ptaskmodel.batch import BatchSimulation, Job, Preemptive
    from ptaskmodel.batch.schedule_metrics import load
    from ptaskmodel.results.loading import load_results, running_stretches
    from ptaskmodel.results.tables.batch import write_schedule
    from ptaskmodel.workload.works import DelayWork

    jobs = [
        Job("low", 0.0, 2, "d", DelayWork(10.0), 20.0),
        Job("high", 4.0, 2, "d", DelayWork(3.0), 5.0),
    ]
    schedule = BatchSimulation(
        jobs, 2, Preemptive(priority=lambda job: float(job.id == "high")),
        failures={0: [(9.0, False), (11.0, True)]}, on_failure="requeue",
    ).run()  # fmt: skip
    write_schedule(
        tmp_path,
        schedule,
        load(schedule),
        workload_name="w",
        host_names=["a", "b"],
        version="0",
        simulation_s=0.0,
    )
    (tmp_path / "summary.json").write_text("{}")
    found = running_stretches(load_results(tmp_path))
    assert [(task.task_id, begin, end, task.state[10:]) for task, begin, end in found] == [
        ("low", 0.0, 4.0, "FAILED"),
        ("low", 7.0, 9.0, "FAILED"),
        ("high", 4.0, 7.0, "SUCCESSFULLY"),
        ("low", 11.0, 21.0, "SUCCESSFULLY"),
    ]
