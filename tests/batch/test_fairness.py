"""Fair starts: by hand, equal to runs of the first jobs alone, and of logs as published."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from math import inf

import pytest
from metric_aware_logs import LOGS, PUBLISHED, SETTINGS, usable_jobs
from metric_aware_vectors import V2, V3, V4, V5, V6

from ptaskmodel.batch import (
    BatchSimulation,
    Conservative,
    Easy,
    Filler,
    Redirection,
    actual_duration_s,
    random_jobs,
)
from ptaskmodel.batch.allocations.rules import Contiguous, Random, buddy
from ptaskmodel.batch.class_metrics import BASES, Replayed, fair_starts
from ptaskmodel.batch.policies.metric_aware import MetricAware
from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.works import DelayWork


def fairness(jobs, hosts, make_policy, make_allocation=None, **options):
    def make():
        allocation = make_allocation() if make_allocation else None
        return BatchSimulation(jobs, hosts, make_policy(), allocation=allocation)

    return fair_starts(make(), make().run(), **options)


def unfair(found, basis):
    return "".join(fair.job.id for fair in found if fair.is_unfair(basis))


def fair_dates(found, basis):
    return [
        fair.start_s if fair.runtimes_s is None else getattr(fair, f"{basis}_s") for fair in found
    ]


@pytest.mark.parametrize(
    ("window", "fair", "late"),
    [(1, [0, 20, 30, 30], ""), (2, [0, 20, 1, 20], "b"), (3, [0, 20, 1, 1], "bc")],
)
def test_windows_by_hand(window, fair, late):
    found = fairness(V2, 10, lambda: MetricAware(window=window))
    for basis in ("runtimes", "estimates"):
        assert fair_dates(found, basis) == fair
        assert unfair(found, basis) == late


@pytest.mark.parametrize(
    ("backfill", "balance", "window", "runtimes", "estimates"),
    [
        ("easy", 1, 1, "", ""),
        ("easy", 0.5, 1, "c", ""),
        ("easy", 0, 1, "be", "be"),
        ("easy", 1, 3, "b", "b"),
        ("easy", 0.5, 3, "be", "bf"),
        ("conservative", 1, 1, "", ""),
        ("conservative", 0.5, 1, "e", "e"),
        ("conservative", 0, 1, "bc", "b"),
    ],
)
def test_balance_and_wrong_estimates_by_hand(backfill, balance, window, runtimes, estimates):
    found = fairness(V3, 10, lambda: MetricAware(balance, window, backfill=backfill))
    assert (unfair(found, "runtimes"), unfair(found, "estimates")) == (runtimes, estimates)
    if (backfill, balance, window) == ("easy", 0.5, 1):
        assert fair_dates(found, "runtimes") == [0, 80, 120, 30, 50, 120]
        assert fair_dates(found, "estimates") == [0, 100, 160, 30, 50, 160]


def test_partitions_and_tuning_by_hand():
    assert unfair(fairness(V4, 8, MetricAware, lambda: buddy(8)), "runtimes") == ""
    found = fairness(V4, 8, lambda: MetricAware(window=2), lambda: buddy(8))
    assert unfair(found, "runtimes") == "g"
    adaptive = lambda: MetricAware(adaptive="balance", threshold_s=6000.0)  # noqa: E731
    assert unfair(fairness(V5, 4, MetricAware), "runtimes") == ""
    assert unfair(fairness(V5, 4, adaptive), "runtimes") == "b"
    assert unfair(fairness(V6, 10, lambda: MetricAware(window=4)), "estimates") == "c"
    assert unfair(fairness(V6, 10, lambda: MetricAware(adaptive="window")), "runtimes") == "c"


MAKERS = {
    "easy": (Easy, None),
    "conservative": (Conservative, None),
    "filler": (Filler, lambda: Random(3)),
    "contiguous": (Easy, Contiguous),
    "conservative, partitions": (Conservative, lambda: buddy(8)),
    "metric-aware": (lambda: MetricAware(0.5, 3), None),
    "sliding": (lambda: MetricAware(0.5, 2, windows="sliding"), None),
    "adaptive": (
        lambda: MetricAware(adaptive="both", threshold_s=20.0, check_interval_s=3.0), None
    ),
    "redirection": (lambda: Redirection(0.25, 1), None),
}  # fmt: skip


@pytest.mark.parametrize("name", MAKERS)
def test_a_fair_start_is_that_without_those_who_come_later(name):
    make_policy, make_allocation = MAKERS[name]
    for seed in range(12):
        jobs = [j for j in random_jobs(seed, 24, 8) if name != "redirection" or j.num_hosts <= 6]
        found = fairness(jobs, 8, make_policy, make_allocation, bases=("runtimes",))
        assert [fair.job for fair in found] == jobs
        for k, fair in enumerate(found):
            if fair.runtimes_s is None:
                assert fair.start_s == fair.job.submit_time_s
                continue
            alone = BatchSimulation(
                jobs[: k + 1], 8, make_policy(),
                allocation=make_allocation() if make_allocation else None,
            ).run()  # fmt: skip
            first = next(a for a in alone.attempts if a.job is fair.job)
            assert fair.runtimes_s == first.start_s, (seed, fair.job.id)


@pytest.mark.parametrize("policy", [lambda: MetricAware(0.5, 2), Conservative])
def test_with_exact_estimates_both_bases_agree_and_conservative_is_fair(policy):
    for seed in range(12):
        jobs = [replace(job, walltime_s=None) for job in random_jobs(seed, 30, 8)]
        options = {"estimate": actual_duration_s}
        schedule = BatchSimulation(jobs, 8, policy(), **options).run()
        found = fair_starts(BatchSimulation(jobs, 8, policy(), **options), schedule)
        assert fair_dates(found, "runtimes") == fair_dates(found, "estimates")
        if policy is Conservative:
            assert unfair(found, "runtimes") == ""


def test_frozen_values_stay_as_they_were_when_the_job_came():
    """When c comes, balance is 1; at 6000 s, when it could start, it would be 0.5."""
    make = partial(MetricAware, adaptive="balance", threshold_s=6000.0)
    assert fair_dates(fairness(V5, 4, make), "runtimes")[:3] == [0, 6000, 6000]
    assert fair_dates(fairness(V5, 4, make, frozen=True), "runtimes")[:3] == [0, 6000, 13200]


def test_who_would_never_start_has_no_fair_start():
    jobs = [replace(job, walltime_s=None) for job in V3[:3]]
    found = fairness(jobs, 10, Easy)
    assert found[1].estimates_s == inf


def test_a_replay_of_a_schedule_is_the_schedule():
    for seed in range(10):
        jobs = random_jobs(seed, 40, 8)
        schedule = BatchSimulation(jobs, 8, Redirection(0.25, 1)).run()
        again = BatchSimulation(jobs, 8, Redirection(0.25, 1), execution=Replayed(schedule)).run()
        one, other = ([(a.job, a.start_s, a.end_s) for a in s.attempts] for s in (schedule, again))
        assert one == other


def test_forks_leave_the_simulation_as_it_is():
    draw = random.Random(4)
    for seed in range(10):
        jobs = random_jobs(seed, 40, 8)
        whole = BatchSimulation(jobs, 8, Conservative()).run()
        simulation = BatchSimulation(jobs, 8, Conservative())
        while simulation.step():
            if draw.random() < 0.3:
                other = simulation.fork(j for j in jobs if j.submit_time_s > simulation.now)
                ends = {a.job: a.end_s for a in other.run().attempts}
                assert all(ends[a.job] == a.end_s for a in whole.attempts if a.job in ends)
        assert [a.end_s for a in simulation.schedule().final] == [a.end_s for a in whole.final]


class Locked(Easy):
    """Holds what cannot be copied."""

    def __init__(self):
        super().__init__()
        self.seen = (x for x in range(3))


def test_a_policy_that_cannot_be_copied():
    with pytest.raises(SimulationError, match="policy Locked cannot be copied"):
        fairness(V3, 10, Locked)


def test_progress_and_jobs_without_end():
    told = []
    jobs = [replace(job, work=DelayWork(1.0)) for job in V2]
    fairness(jobs, 10, Easy, progress=lambda *numbers: told.append(numbers))
    assert told == [(0, 1, 3), (1, 2, 2), (1, 3, 1), (1, 4, 0)]


UNFAIR = {
    "HPC2N-part.swf.gz": ((22, 10), (30, 9), (48, 21), (44, 20), (46, 20), (35, 8), (41, 13)),
    "lublin_256.swf.gz": ((20, 20), (14, 14), (29, 29), (36, 36), (30, 30), (19, 19), (15, 15)),
}


@pytest.mark.parametrize("log", PUBLISHED, ids=lambda log: log[0])
def test_unfair_jobs_of_logs(log):
    name, count, hosts, threshold_min = log
    if not (LOGS / name).exists():
        pytest.skip("needs the log")
    jobs = usable_jobs(name, count)
    # Of the seven settings, those that differ most.
    for options, numbers in list(zip(SETTINGS, UNFAIR[name], strict=True))[::3]:
        found = fairness(
            jobs, hosts, partial(MetricAware, **options, threshold_s=60 * threshold_min)
        )
        late = [sum(fair.is_unfair(basis) for fair in found) for basis in BASES]
        assert tuple(late) == numbers
