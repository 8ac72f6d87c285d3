"""Metric-aware scheduling: by hand, against a naive version, and equal to EASY where it should be.

The vectors were computed by two naive simulators written apart from this project.
"""

from __future__ import annotations

import random
from dataclasses import replace
from math import inf

import naive_batch as naive
import pytest
from metric_aware_vectors import V2, V3, V4, V5, V6, jobs_of

from ptaskmodel.batch import (
    BatchSimulation,
    Conservative,
    Easy,
    HostCapacity,
    Verifier,
    actual_duration_s,
    check_policy,
    check_schedule,
    load,
    policy_by_name,
    random_jobs,
    walltime_or_inf,
)
from ptaskmodel.batch.allocations.rules import Contiguous, buddy
from ptaskmodel.batch.policies.metric_aware import MetricAware, by_priority, forecast
from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.works import DelayWork


def starts(jobs, hosts, policy=None, allocation=None, **options):
    policy = policy or MetricAware(**options)
    schedule = BatchSimulation(jobs, hosts, policy, allocation=allocation).run()
    return [attempt.start_s for attempt in schedule.final]


class Seen:
    """What `by_priority` looks at of a view."""

    def __init__(self, now):
        self.now = now

    def estimate_s(self, job):
        return inf


SCORED = jobs_of((0, 1, 3600), (400, 1, 600), (600, 1, 1800), (1000, 1, 600))


@pytest.mark.parametrize(
    ("balance", "order"), [(1, "abcd"), (0.75, "abcd"), (0.5, "bacd"), (0.25, "bdca"), (0, "bdca")]
)
def test_priorities_by_hand(balance, order):
    found = by_priority(SCORED, balance, Seen(1000.0))
    assert "".join(job.id for job in found) == order


def test_priorities_where_a_score_is_undefined():
    equal = jobs_of((0, 1, 60), (5, 1, 60), (9, 1, 60))
    for balance in (0, 0.5, 1):
        assert by_priority(equal, balance, Seen(10.0)) == equal
        assert by_priority(equal[:1], balance, Seen(0.0)) == equal[:1]
    open_ended = replace(equal[0], walltime_s=None)
    queue = [open_ended, *jobs_of((5, 1, 60), (9, 1, 50))]
    assert [job.walltime_s for job in by_priority(queue, 0, Seen(10.0))] == [50, None, 60]
    assert by_priority([open_ended], 0, Seen(10.0)) == [open_ended]


@pytest.mark.parametrize(
    ("window", "expected"), [(1, [0, 20, 30, 30]), (2, [0, 50, 1, 20]), (3, [0, 40, 20, 1])]
)
def test_a_window_by_hand(window, expected):
    assert starts(V2, 10, window=window) == expected


@pytest.mark.parametrize(
    ("backfill", "balance", "window", "expected"),
    [
        ("easy", 1, 1, [0, 80, 120, 30, 50, 200]),
        ("easy", 0.5, 1, [0, 80, 150, 30, 50, 120]),
        ("easy", 0, 1, [0, 150, 50, 30, 110, 80]),
        ("easy", 1, 3, [0, 120, 20, 80, 80, 160]),
        ("easy", 0.5, 3, [0, 150, 20, 80, 100, 120]),
        ("conservative", 1, 1, [0, 80, 120, 30, 50, 200]),
        ("conservative", 0.5, 1, [0, 80, 120, 30, 150, 120]),
        ("conservative", 0, 1, [0, 110, 150, 30, 50, 80]),
    ],
)
def test_balance_and_wrong_estimates_by_hand(backfill, balance, window, expected):
    options = {"backfill": backfill, "balance": balance, "window": window}
    assert starts(V3, 10, **options) == expected


@pytest.mark.parametrize("backfill", ["easy", "conservative"])
@pytest.mark.parametrize(("window", "expected"), [(1, [70, 100]), (2, [100, 70])])
def test_partitions_by_hand(backfill, window, expected):
    found = starts(V4, 8, allocation=buddy(8), backfill=backfill, window=window)
    assert found == [0] * 6 + expected
    assert starts(V4, 8)[6:] == [20, 50]


def test_adaptive_balance_by_hand():
    assert starts(V5, 4) == [0, 6000, 13200, 15000, 15600]
    assert starts(V5, 4, balance=0.5) == [0, 9600, 6000, 7800, 8400]
    policy = MetricAware(adaptive="balance", threshold_s=6000.0)
    assert starts(V5, 4, policy) == [0, 9600, 6000, 7800, 8400]
    log = policy.tuning.log[:7]
    assert [check.measures.date_s for check in log] == [1800.0 * k for k in range(1, 8)]
    depths = [check.measures.queue_depth_s / 60 for check in log]
    assert depths == pytest.approx([30, 90, 470 / 3, 165, 140, 0, 0])
    assert [check.values for check in log] == [(b,) for b in (1, 1, 0.5, 0.5, 0.5, 1, 1)]


def test_adaptive_window_by_hand():
    assert starts(V6, 10) == [0, 108000, 144000, 147600, 109000]
    assert starts(V6, 10, window=4) == [0, 108000, 145000, 109000, 148600]
    policy = MetricAware(adaptive="window")
    assert starts(V6, 10, policy) == [0, 108000, 145000, 109000, 148600]
    seen = {check.measures.date_s: check for check in policy.tuning.log}
    for date, ten, day, window in (
        (1800, 1 / 20, 1 / 48, 1),
        (36000, 1, 5 / 12, 1),
        (72000, 1, 5 / 6, 1),
        (108000, 0, 7 / 12, 4),
        (109800, 1 / 30, 0.576389, 4),
    ):
        check = seen[date]
        found = check.measures.utilisation_10h, check.measures.utilisation_24h
        assert found == pytest.approx((ten, day), rel=1e-6)
        assert check.values == (window,)
    assert seen[109800].measures.queue_depth_s == pytest.approx(60 * 80 / 3)


def test_both_are_tuned_at_the_same_checks():
    policy = MetricAware(adaptive="both", threshold_s=60.0, check_interval_s=600.0)
    check_schedule(BatchSimulation(V5, 4, policy).run(), V5)
    assert list(policy.tuning.values) == ["balance", "window"]
    assert {len(check.values) for check in policy.tuning.log} == {2}
    assert policy.tuning.log[0].measures.date_s == 600.0


def test_schedules_equal_the_naive_reference():
    for seed in range(300):
        draw = random.Random(seed)
        hosts = draw.choice((4, 7, 16))
        jobs = random_jobs(seed, draw.randint(6, 16), hosts)
        balance, window = draw.choice((0, 0.25, 0.5, 0.75, 1)), draw.randint(1, 4)
        backfill = draw.choice(("easy", "conservative"))
        estimate = draw.choice((walltime_or_inf, actual_duration_s))
        expected = [
            naive.NaiveJob(j.id, j.submit_time_s, j.num_hosts, actual_duration_s(j), estimate(j))
            for j in jobs
        ]
        walls = {job.id: job.walltime_s for job in jobs}
        decide = naive.metric_aware(balance, window, backfill, walls)
        naive.schedule(expected, hosts, decide, key={})
        policy = MetricAware(balance, window, backfill=backfill)
        schedule = BatchSimulation(jobs, hosts, policy, estimate=estimate).run()
        found = {run.job.id: (run.start_s, list(run.hosts)) for run in schedule.final}
        assert found == {j.id: (j.start, j.hosts) for j in expected}, seed


@pytest.mark.parametrize("allocation", [None, Contiguous, lambda: buddy(8)])
def test_first_come_with_windows_of_one_is_easy(allocation):
    for seed in range(60):
        jobs = random_jobs(seed, 40, 8)
        if seed % 3 == 0:
            draw = random.Random(seed)
            jobs = [replace(j, walltime_s=None) if draw.random() < 0.2 else j for j in jobs]
        found = [
            BatchSimulation(
                jobs, 8, policy, allocation=allocation() if allocation else None,
                observe=Verifier("head"),
            ).run()
            for policy in (Easy(), MetricAware())
        ]  # fmt: skip
        one, other = ([(a.start_s, a.mask) for a in schedule.final] for schedule in found)
        assert one == other, seed


def test_with_exact_estimates_it_is_conservative():
    for seed in range(60):
        jobs = random_jobs(seed, 40, 8)
        policies = Conservative(), MetricAware(backfill="conservative")
        one, other = (
            [
                run.start_s
                for run in BatchSimulation(jobs, 8, policy, estimate=actual_duration_s).run().final
            ]
            for policy in policies
        )
        assert one == other, seed


@pytest.mark.parametrize("backfill", ["easy", "conservative"])
@pytest.mark.parametrize("windows", ["consecutive", "sliding"])
def test_nothing_is_lost_with_any_allocation(backfill, windows):
    def make():
        return MetricAware(0.5, 3, backfill=backfill, windows=windows)

    for allocation in (None, Contiguous, lambda: buddy(8)):
        check_policy(make, workloads=5, make_allocation=allocation)


def test_a_sliding_window_forms_scores_anew_after_each_start():
    for seed in range(40):
        jobs = random_jobs(seed, 12, 6)
        for window in (1, 2):
            naive_jobs = [
                naive.NaiveJob(
                    j.id, j.submit_time_s, j.num_hosts, actual_duration_s(j), j.walltime_s
                )
                for j in jobs
            ]
            walls = {job.id: job.walltime_s for job in jobs}
            decide = naive.one_by_one(naive.metric_aware(0.5, window, "easy", walls))
            naive.schedule(naive_jobs, 6, decide, key={})
            found = starts(jobs, 6, balance=0.5, window=window, windows="sliding")
            assert found == [job.start for job in naive_jobs]


def test_backfill_order():
    jobs = jobs_of((0, 3, 10), (1, 4, 5), (2, 1, 8), (2, 1, 2))
    assert starts(jobs, 4) == [0, 10, 2, 15]
    by_name = policy_by_name("metric-aware", walltime_or_inf, backfill_order="sjf")
    assert starts(jobs, 4, by_name) == [0, 10, 15, 2]


def test_jobs_of_cores_and_memory():
    hosts = [HostCapacity(4, 16.0)] * 3
    draw = random.Random(5)
    for seed in range(5):
        jobs = [
            replace(job, cores=draw.choice((None, 1, 2)), memory_B=draw.choice((None, 4.0, 8.0)))
            for job in random_jobs(seed, 25, 3)
        ]
        for policy in (MetricAware(0.5, 3), MetricAware(1, 2, backfill="conservative")):
            check_schedule(BatchSimulation(jobs, hosts, policy).run(), jobs, hosts)
        easy, same = (
            [run.start_s for run in BatchSimulation(jobs, hosts, p).run().final]
            for p in (Easy(), MetricAware())
        )
        assert easy == same


def test_scaling_all_times_scales_all_starts():
    for seed in range(20):
        jobs = random_jobs(seed, 20, 8)
        scaled = [
            replace(
                job,
                submit_time_s=4 * job.submit_time_s,
                work=DelayWork(4 * job.work.duration_s),
                walltime_s=4 * job.walltime_s,
            )
            for job in jobs
        ]
        one, four = starts(jobs, 8, balance=0.5, window=3), starts(scaled, 8, balance=0.5, window=3)
        assert [4 * date for date in one] == four


def test_a_forecast_is_what_the_running_jobs_leave():
    seen = []

    class Looking(Easy):
        def decide(self, view):
            yield from super().decide(view)
            plan = forecast(view)
            seen.append((plan.times, plan.free))

    BatchSimulation(V3, 10, Looking()).run()
    assert seen[0] == ([0.0, 100.0], [4, 10])
    assert seen[3] == ([30.0, 50.0, 100.0], [0, 4, 10])
    assert all(free[-1] == 10 for _, free in seen)
    assert load(BatchSimulation(V3, 10, Easy()).run()).used_hosts.max() <= 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"balance": 1.5}, "balance is 1.5: it must be between 0 and 1"),
        ({"balance": float("nan")}, "balance is nan"),
        ({"window": 0}, "window is 0: it must be between 1 and 8"),
        ({"window": 9}, "window is 9"),
        ({"backfill": "none"}, "backfill 'none' is unknown; use easy or conservative"),
        ({"adaptive": "all"}, "adaptive 'all' is unknown"),
        ({"windows": "all"}, "windows 'all' is unknown"),
        ({"adaptive": "balance"}, "balance needs a threshold_s"),
        ({"adaptive": "both", "threshold_s": -1.0}, "balance needs a threshold_s"),
        ({"adaptive": "window", "check_interval_s": 0.0}, "interval of checks is 0 s"),
        ({"adaptive": "window", "check_offset_s": -1800.0}, "offset of checks is -1800 s"),
        ({"adaptive": "window", "window_step": 0}, "window goes in steps of 0"),
        ({"adaptive": "window", "most_window": 0}, "most_window is 0"),
        ({"adaptive": "balance", "threshold_s": 1.0, "least_balance": 2.0}, "least_balance is 2"),
        ({"order": lambda job: 0}, "sets its own order"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(SimulationError, match=message):
        MetricAware(**options)


def test_too_many_checks():
    jobs = jobs_of((0, 1, 10), (1e12, 1, 10))
    with pytest.raises(SimulationError, match="more than 1000000 checks"):
        starts(jobs, 2, adaptive="window")
