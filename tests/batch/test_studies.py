"""What studies of schedulers measure: queue depth, lost capacity, classes; logs as published."""

from __future__ import annotations

import csv
import random
from itertools import pairwise
from math import inf

import pytest
from metric_aware_logs import LOGS, PUBLISHED, SETTINGS, usable_jobs
from metric_aware_vectors import V2, V3, V4, V5, jobs_of

from ptaskmodel.batch import (
    BatchSimulation,
    Easy,
    Job,
    Requeue,
    Start,
    Wake,
    by_class,
    metrics,
    random_jobs,
)
from ptaskmodel.batch.allocations.rules import buddy
from ptaskmodel.batch.policies.metric_aware import MetricAware
from ptaskmodel.batch.queue_metrics import QueueMeasures, waits
from ptaskmodel.results.tables.batch import write_classes, write_over_time, write_tuning
from ptaskmodel.workload.works import DelayWork


def measured(jobs, hosts, policy, **options):
    return QueueMeasures(BatchSimulation(jobs, hosts, policy, **options).run())


def lost(jobs, hosts, allocation=None, **options):
    found = measured(jobs, hosts, MetricAware(**options), allocation=allocation).summary()
    return found["loss_of_capacity"], found["loss_of_capacity_inclusive"]


def test_lost_capacity_by_hand():
    assert lost(V2, 10)[0] == pytest.approx(0.19)
    assert lost(V2, 10, window=2)[0] == lost(V2, 10, window=3)[0] == 0
    assert lost(V3, 10) == (0, pytest.approx(4 / 230))
    assert lost(V3, 10, balance=0.5) == (0, pytest.approx(4 / 250))
    assert lost(V3, 10, balance=0.5, backfill="conservative")[0] == pytest.approx(0.04)


def test_lost_capacity_on_partitions_counts_what_is_asked_for():
    assert lost(V4, 8, buddy(8)) == (pytest.approx(240 / 1120), pytest.approx(360 / 1120))
    assert lost(V4, 8, buddy(8), window=2) == (
        pytest.approx(240 / 1040),
        pytest.approx(270 / 1040),
    )
    assert lost(V4, 8) == (0, pytest.approx(30 / 800))


def test_jobs_of_one_host_lose_nothing():
    for seed in range(10):
        jobs = [
            Job(job.id, job.submit_time_s, 1, "d", job.work, job.walltime_s)
            for job in random_jobs(seed, 40, 3)
        ]
        for options in ({}, {"balance": 0.5, "window": 3}, {"backfill": "conservative"}):
            assert lost(jobs, 3, **options) == (0, 0)


def naive_measures(schedule, dates):
    """Queue depth before each date and lost host seconds, from the definitions."""
    spans = [(a.job.submit_time_s, a.start_s, a.end_s, a.job.num_hosts) for a in schedule.final]
    depth = [sum(t - s for s, b, _, _ in spans if s < t <= b) for t in dates]
    lost, changes = 0.0, sorted({date for span in spans for date in span[:3]})
    for t, following in pairwise(changes):
        idle = schedule.num_hosts - sum(n for _, b, e, n in spans if b <= t < e)
        least = min((n for s, b, _, n in spans if s <= t < b), default=inf)
        lost += idle * (following - t) if least < idle else 0
    return depth, lost


def test_measures_equal_the_naive_ones():
    for seed in range(20):
        draw = random.Random(seed)
        jobs, date = [], 0
        for k in range(30):
            date += draw.choice((0, 1, 5, draw.randint(0, 400)))
            row = (date, draw.randint(1, 8), 600 * draw.randint(1, 9))
            jobs.append(Job(str(k), float(row[0]), row[1], "d", DelayWork(row[2]), float(row[2])))
        schedule = BatchSimulation(jobs, 8, Easy()).run()
        queue = QueueMeasures(schedule)
        samples, summary = queue.over_time(), queue.summary()
        depth, host_s = naive_measures(schedule, samples.date_s.tolist())
        assert samples.queue_depth_s.tolist() == pytest.approx(depth)
        first, last = jobs[0].submit_time_s, max(a.end_s for a in schedule.final)
        assert summary["loss_of_capacity"] == pytest.approx(host_s / (8 * (last - first)))
        squares = sum((a.start_s - a.job.submit_time_s) ** 2 for a in schedule.final)
        assert summary["queue_depth_s"]["mean"] == pytest.approx(squares / 2 / (last - first))
        assert samples.lost[-1] <= summary["loss_of_capacity"] + 1e-12


def test_the_queue_over_time_is_what_the_tuning_sees():
    policy = MetricAware(adaptive="balance", threshold_s=6000.0)
    schedule = BatchSimulation(V5, 4, policy).run()
    samples = QueueMeasures(schedule).over_time()
    log = [check.measures for check in policy.tuning.log][: len(samples.date_s)]
    assert samples.date_s.tolist() == [found.date_s for found in log]
    assert samples.queue_depth_s.tolist() == pytest.approx([f.queue_depth_s for f in log])
    for hours in (1, 10, 24):
        seen = [getattr(found, f"utilisation_{hours}h") for found in log]
        assert samples.utilisation[hours].tolist() == pytest.approx(seen)
    assert (samples.used_hosts / 4).tolist() == [found.utilisation for found in log]


class Restart:
    """Stops a job once after 10 s and starts it again 20 s later."""

    def decide(self, view):
        if view.now == 0:
            yield Start(view.queue[0])
            yield Wake(10.0)
        elif view.now == 10 and view.running:
            yield Requeue(view.running[0].job)
            yield Wake(30.0)
        elif view.now == 30 and view.queue:
            yield Start(view.queue[0])


def test_a_job_that_is_requeued_waits_again():
    schedule = BatchSimulation([*jobs_of((0, 2, 100))], 4, Restart()).run()
    found = waits(schedule)
    assert list(zip(found.from_s, found.to_s, strict=True)) == [(10, 30)]
    summary = QueueMeasures(schedule).summary()
    assert summary["queue_depth_s"]["max"] == 30
    assert summary["loss_of_capacity"] == pytest.approx(4 * 20 / (4 * 130))


def test_hosts_that_are_down_are_not_lost():
    jobs = jobs_of((0, 2, 100), (1, 2, 10))
    simulation = BatchSimulation(jobs, 4, Easy())
    simulation.fail(3)
    summary = QueueMeasures(simulation.run()).summary()
    assert summary["loss_of_capacity_inclusive"] == 0


def test_a_run_without_jobs_or_time():
    for jobs in ([], jobs_of((5, 1, 0))):
        schedule = BatchSimulation(jobs, 2, Easy()).run()
        summary = QueueMeasures(schedule).summary()
        assert summary["loss_of_capacity"] is None
        assert summary["queue_depth_s"]["mean"] is None
        assert by_class(schedule) == [] or by_class(schedule)[0].jobs == 1


def test_samples_are_further_apart_where_there_would_be_too_many():
    samples = measured(jobs_of((0, 1, 10), (1e12, 1, 10)), 2, Easy()).over_time()
    assert 50_000 < len(samples.date_s) <= 100_000
    assert samples.interval_s % 1800 == 0


def test_classes_by_hand():
    jobs = [
        Job("a", 0.0, 1, "d", DelayWork(30.0), user="10"),
        Job("b", 0.0, 3, "d", DelayWork(90.0), user="9"),
        Job("c", 0.0, 4, "d", DelayWork(90.0), user="anna"),
        Job("d", 0.0, 2, "d", DelayWork(1e6)),
    ]
    schedule = BatchSimulation(jobs, 4, Easy(), estimate=lambda job: job.work.duration_s).run()
    found = by_class(schedule, unfair=["c"])
    assert [(row.kind, row.name, row.jobs) for row in found] == [
        ("size", "1", 1),
        ("size", "2", 1),
        ("size", "3-4", 2),
        ("length", "up to 1 min", 1),
        ("length", "1 to 10 min", 2),
        ("length", "over 24 h", 1),
        ("size and length", "1, up to 1 min", 1),
        ("size and length", "2, over 24 h", 1),
        ("size and length", "3-4, 1 to 10 min", 2),
        ("user", "9", 1),
        ("user", "10", 1),
        ("user", "anna", 1),
        ("user", "unknown", 1),
    ]
    sizes = found[2]
    assert (sizes.host_s, sizes.mean_waiting_s, sizes.max_waiting_s) == (630, 45, 90)
    assert sizes.unfair == 1
    assert by_class(schedule)[2].unfair is None


def test_tables_are_written(tmp_path):
    policy = MetricAware(adaptive="both", threshold_s=6000.0)
    schedule = BatchSimulation(V5, 4, policy).run()
    assert write_over_time(tmp_path, QueueMeasures(schedule).over_time()) == "over_time.csv"
    assert write_classes(tmp_path, by_class(schedule)) == "classes.csv"
    assert write_tuning(tmp_path, policy.tuning) == "tuning.csv"
    with (tmp_path / "tuning.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(policy.tuning.log)
    assert [float(rows[2][name]) for name in ("time", "queue_depth", "balance", "window")] == [
        5400, 9400, 0.5, 1,
    ]  # fmt: skip


def test_useful_utilisation_is_what_the_jobs_need_alone():
    schedule = BatchSimulation(jobs_of((0, 2, 200, 100), (0, 2, 10, 20)), 4, Easy()).run()
    found = metrics(schedule, alone_s=[50.0, 20.0])
    assert found["useful_utilisation"] == pytest.approx(2 * 50 / (4 * 100))


@pytest.mark.parametrize("log", PUBLISHED, ids=lambda log: log[0])
def test_whole_runs_of_logs(log):
    name, count, hosts, threshold_min = log
    if not (LOGS / name).exists():
        pytest.skip("needs the log")
    jobs = usable_jobs(name, count)
    for options, (wait_min, lost_percent) in zip(SETTINGS, PUBLISHED[log], strict=True):
        policy = MetricAware(**options, threshold_s=60 * threshold_min)
        schedule = BatchSimulation(jobs, hosts, policy).run()
        summary = QueueMeasures(schedule).summary()
        assert metrics(schedule)["waiting_s"]["mean"] / 60 == pytest.approx(wait_min, abs=6e-5)
        assert 100 * summary["loss_of_capacity"] == pytest.approx(lost_percent, abs=6e-6)
        if not options:
            mean_min = summary["queue_depth_s"]["sampled_mean"] / 60
            assert mean_min == pytest.approx(threshold_min, abs=1e-6)
