"""Tasks written to a file come back as they were."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload import DelayWork, HomogeneousWork, ParallelWork, SequenceWork, Task
from ptaskmodel.workload.formats.json import json_lines
from ptaskmodel.workload.formats.tasks_json import load_tasks, write_tasks
from ptaskmodel.workload.works import Work

RANKS = 3
NUMBERS = st.floats(1e-3, 1e20) | st.integers(0, 10**9).map(float)
SIMPLE = st.one_of(
    NUMBERS.map(DelayWork),
    st.tuples(NUMBERS, NUMBERS).map(lambda both: HomogeneousWork(*both)),
    st.tuples(NUMBERS, NUMBERS).map(lambda both: HomogeneousWork(*both, total=True)),
    st.tuples(
        st.lists(NUMBERS, min_size=RANKS, max_size=RANKS),
        st.lists(NUMBERS, min_size=RANKS**2, max_size=RANKS**2),
    ).map(lambda both: ParallelWork.of(RANKS, *both)),
)
WORKS = st.recursive(
    SIMPLE,
    lambda inner: st.builds(
        SequenceWork, st.lists(inner, min_size=1, max_size=3).map(tuple), st.integers(1, 9)
    ),
    max_leaves=6,
)
TASKS = st.builds(
    Task,
    st.just(("a", "b", "a")),
    WORKS,
    start_s=st.sampled_from([0.0, 1.5]),
    walltime_s=st.sampled_from([None, 9.0]),
    weight=st.sampled_from([1.0, 2.0]),
    rate_bound=st.sampled_from([None, 0.1]),
    competitors=st.sampled_from([None, 4.0]),
)


def told(work):
    """What a work does, whatever its class: its stages' demands, spelt out."""
    if isinstance(work, SequenceWork):
        return work.repeat, [told(stage) for stage in work.stages]
    if isinstance(work, DelayWork):
        return work.delay_s
    whole = work.expanded(RANKS) if isinstance(work, HomogeneousWork) else work
    arrays = whole.flops, whole.flow_from, whole.flow_to, whole.flow_bytes
    return [array.tolist() for array in arrays]


@settings(max_examples=60, deadline=None)
@given(st.lists(TASKS, min_size=1, max_size=4))
def test_tasks_come_back(tmp_path_factory, tasks):
    path = tmp_path_factory.mktemp("written") / "tasks.json"
    write_tasks(tasks, path, description='two "words"')
    back = load_tasks(path)
    assert [task.id for task in back] == [str(k) for k in range(len(tasks))]
    names = ("hosts", "start_s", "after", "walltime_s", "weight", "rate_bound", "competitors")
    for task, same in zip(tasks, back, strict=True):
        assert [getattr(task, name) for name in names] == [getattr(same, name) for name in names]
        assert told(task.work) == told(same.work)


def test_a_work_is_written_once(tmp_path):
    work = ParallelWork.of(2, 1e9, [[0, 5], [5, 0]])
    twice = SequenceWork((work, work, DelayWork(1.0)))
    tasks = [
        Task(("a", "b"), twice, "first"),
        Task(("c", "d"), twice, "second", after=("first",), profile="mine"),
        Task(("a", "b"), work, "third", profile="first/0"),
        Task(("a", "b"), ParallelWork.of(2, 1.0), "first/0"),
    ]
    write_tasks(tasks, tmp_path / "t.json.gz")
    write_tasks(tasks, tmp_path / "t.json")
    profiles = json.loads((tmp_path / "t.json").read_text())["profiles"]
    assert profiles["first"] == {"type": "composed", "seq": ["first/0", "first/0", "first/2"]}
    assert profiles["first/0"] == {"type": "parallel_homogeneous", "cpu": 1e9, "com": 5.0}
    assert list(profiles) == ["first", "first/0", "first/2", "first/0-2"]
    back = load_tasks(tmp_path / "t.json.gz")
    assert back[1].after == ("first",)
    assert back[0].work is back[1].work
    np.testing.assert_array_equal(back[3].work.flops, [1.0, 1.0])


def test_a_work_of_another_kind_is_refused(tmp_path):
    class Other(Work):
        pass

    with pytest.raises(WorkloadError, match=r"profile '0': a Other cannot be written"):
        write_tasks([Task(("a",), Other())], tmp_path / "t.json")
    assert not (tmp_path / "t.json").exists()


VALUES = st.recursive(
    st.none()
    | st.integers(-(2**63), 2**63)
    | st.floats()
    | st.floats(1e-6, 1e-3)
    | st.floats(1e14, 1e18)
    | st.text(max_size=5)
    | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a"\x7f'), inner),
    max_leaves=6,
)


@given(st.lists(VALUES, max_size=4))
def test_values_are_written_as_json_dumps_writes_them(values):
    assert json_lines(values) == [json.dumps(value).encode() for value in values]
