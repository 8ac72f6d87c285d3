"""The policies give the schedules of the naive reference and keep their promises."""

from __future__ import annotations

import random
from dataclasses import replace

import naive_batch as naive
import pytest

from ptaskmodel.batch import (
    SUCCESS,
    WALLTIME,
    BatchSimulation,
    Conservative,
    Easy,
    Fcfs,
    Filler,
    PolicyFault,
    Redirection,
    Start,
    Verifier,
    actual_duration_s,
    check_policy,
    check_schedule,
    random_jobs,
    walltime_or_inf,
)
from ptaskmodel.batch.allocations.rules import Contiguous, Random, Spread
from ptaskmodel.batch.policies import orders
from ptaskmodel.workload.jobs import Job
from ptaskmodel.workload.works import DelayWork

PAIRS = {
    "fcfs": (Fcfs, naive.first_come, "none"),
    "filler": (Filler, naive.fill, "none"),
    "easy": (Easy, naive.easy, "head"),
    "conservative": (Conservative, naive.conservative, "all"),
}
ORDERS = orders(walltime_or_inf)


def naive_jobs(jobs, estimate):
    return [
        naive.NaiveJob(j.id, j.submit_time_s, j.num_hosts, actual_duration_s(j), estimate(j))
        for j in jobs
    ]


@pytest.mark.parametrize("name", PAIRS)
def test_schedules_equal_the_naive_reference(name):
    policy, decide, promise = PAIRS[name]
    for seed in range(250):
        order = list(ORDERS)[seed % len(ORDERS)]
        estimate = (walltime_or_inf, actual_duration_s)[seed % 2]
        hosts = (4, 7, 16)[seed % 3]
        jobs = random_jobs(seed, 8 + seed % 25, hosts)
        expected = naive_jobs(jobs, estimate)
        key = orders(estimate)[order]
        rank = {j.id: key(j) for j in jobs} if key else {}
        naive.schedule(expected, hosts, decide, key=rank)
        simulation = BatchSimulation(
            jobs, hosts, policy(key), estimate=estimate, observe=Verifier(promise)
        )
        schedule = simulation.run()
        found = {run.job.id: (run.start_s, list(run.hosts)) for run in schedule.final}
        assert found == {j.id: (j.start, j.hosts) for j in expected}, (seed, order)
        check_schedule(schedule, jobs)


@pytest.mark.parametrize("name", PAIRS)
def test_jobs_of_0_s_run_like_any_other(name):
    """Nobody runs across their reservation; those that are due go one after the other."""
    policy, decide, promise = PAIRS[name]
    for seed in range(150):
        draw = random.Random(seed)
        hosts = (1, 4, 7)[seed % 3]
        jobs = [
            replace(j, work=DelayWork(0.0)) if draw.random() < 0.3 else j
            for j in random_jobs(seed, 8 + seed % 25, hosts)
        ]
        expected = naive_jobs(jobs, actual_duration_s)
        naive.schedule(expected, hosts, decide, key={})
        simulation = BatchSimulation(
            jobs, hosts, policy(), estimate=actual_duration_s, observe=Verifier(promise)
        )
        schedule = simulation.run()
        found = {run.job.id: run.start_s for run in schedule.final}
        assert found == {j.id: j.start for j in expected}, seed
        check_schedule(schedule, jobs)


def test_conservative_starts_a_job_of_0_s_and_the_next_at_one_date():
    jobs = [job("a", 0, 1, 0), job("b", 0, 1, 5)]
    assert starts(jobs, 1, Conservative()) == {"a": 0, "b": 0}
    jobs = [job("z", 0, 1, 0), job("y", 0, 2, 0), job("b", 0, 1, 5)]
    assert starts(jobs, 2, Conservative()) == {"z": 0, "y": 0, "b": 0}


def job(name, submit, hosts, duration, walltime=None):
    return Job(name, float(submit), hosts, f"d{duration}", DelayWork(float(duration)), walltime)


def starts(jobs, hosts, policy, **options):
    options.setdefault("estimate", actual_duration_s)
    schedule = BatchSimulation(jobs, hosts, policy, **options).run()
    return {run.job.id: run.start_s for run in schedule.final}


def test_the_textbook_example_of_backfilling():
    """What Mu'alem and Feitelson describe: small jobs overtake, the first does not move."""
    jobs = [job("1", 0, 6, 4), job("2", 1, 8, 4), job("3", 2, 4, 2), job("4", 3, 2, 10)]
    assert starts(jobs, 10, Fcfs()) == {"1": 0, "2": 4, "3": 8, "4": 8}
    assert starts(jobs, 10, Easy()) == {"1": 0, "2": 4, "3": 2, "4": 4}
    jobs = [job("1", 0, 6, 4), job("2", 1, 8, 4), job("3", 2, 6, 2), job("4", 3, 2, 10)]
    assert starts(jobs, 10, Easy())["4"] == 3
    assert starts(jobs, 10, Conservative()) == {"1": 0, "2": 4, "3": 8, "4": 3}


@pytest.mark.parametrize("policy", [Fcfs, Filler, Easy, Conservative])
def test_batsims_first_case_study(policy):
    """Three jobs on 4 hosts, of Batsim's documentation: the last is killed at its walltime."""
    jobs = [job("1", 0, 4, 10, 11.0), job("2", 1, 2, 5, 6.0), job("3", 1, 2, 10, 6.0)]
    schedule = BatchSimulation(jobs, 4, policy()).run()
    assert [(run.start_s, run.end_s, run.state) for run in schedule.final] == [
        (0, 10, SUCCESS),
        (10, 15, SUCCESS),
        (10, 16, WALLTIME),
    ]


def test_easy_may_delay_the_second_of_the_queue_and_conservative_may_not():
    jobs = [job("a", 0, 2, 10), job("b", 1, 4, 10), job("c", 2, 3, 5), job("d", 3, 1, 30)]
    assert starts(jobs, 5, Easy()) == {"a": 0, "b": 10, "c": 2, "d": 7}
    jobs = [job("a", 0, 4, 10), job("b", 1, 3, 10), job("c", 2, 5, 5), job("d", 3, 1, 30)]
    easy, conservative = starts(jobs, 5, Easy()), starts(jobs, 5, Conservative())
    assert easy == {"a": 0, "b": 10, "c": 33, "d": 3}
    assert conservative == {"a": 0, "b": 10, "c": 20, "d": 25}


def test_orders_decide_who_goes_first():
    jobs = [job("x", 0, 4, 10), job("a", 1, 4, 9), job("b", 2, 3, 2), job("c", 3, 2, 5)]
    named = orders(actual_duration_s)
    assert starts(jobs, 4, Fcfs(named["sjf"])) == {"x": 0, "b": 10, "c": 12, "a": 17}
    assert starts(jobs, 4, Fcfs(named["ljf"])) == {"x": 0, "a": 10, "c": 19, "b": 24}
    assert starts(jobs, 4, Fcfs(named["smallest"]))["a"] == 17
    assert starts(jobs, 4, Fcfs(named["largest"]))["a"] == 10


def test_backfill_order_chooses_among_candidates():
    jobs = [job("x", 0, 3, 10), job("head", 1, 4, 5), job("long", 2, 1, 8), job("short", 2, 1, 2)]
    assert starts(jobs, 4, Easy())["long"] == 2
    chosen = starts(jobs, 4, Easy(backfill_order=actual_duration_s))
    assert chosen["short"] == 2
    assert chosen["long"] == 15


@pytest.mark.parametrize("policy", [Fcfs, Filler, Easy, Conservative])
@pytest.mark.parametrize(
    "allocation", [Contiguous, lambda: Contiguous(strict=False), lambda: Random(3), Spread]
)
def test_every_policy_goes_with_every_allocation(policy, allocation):
    promise = {Easy: "head"}.get(policy, "none")
    check_policy(
        policy, promise=promise, make_allocation=allocation, workloads=12, num_hosts=9, seed=500
    )


def test_strict_contiguous_backfilling_keeps_the_reservations():
    check_policy(Conservative, promise="all", make_allocation=Contiguous, workloads=15)
    check_policy(Easy, promise="head", make_allocation=Contiguous, workloads=15, seed=100)


def test_an_estimate_too_short_is_doubled_and_nothing_is_lost():
    half = lambda job: 0.4 * actual_duration_s(job)  # noqa: E731
    for policy in (Easy, Conservative):
        check_policy(policy, estimate=half, workloads=20)
    check_policy(Easy, promise="head", estimate=half, workloads=20)


def test_without_estimates_nothing_that_could_delay_the_head_is_backfilled():
    jobs = [job("x", 0, 3, 10), job("head", 1, 4, 5), job("s", 2, 1, 2)]
    assert starts(jobs, 4, Easy(), estimate=walltime_or_inf) == {"x": 0, "head": 10, "s": 15}
    assert starts(jobs, 4, Conservative(), estimate=walltime_or_inf)["head"] == 10


class Greedy:
    """Starts the last of the queue first: EASY's promise is not kept."""

    order = None

    def decide(self, view):
        for waiting in reversed(view.queue):
            if view.fits(waiting):
                yield Start(waiting)


class Lazy:
    order = None

    def decide(self, view):
        return [] if view.running else list(view.queue)[:1] if view.now < 3 else []


class Twice:
    order = None

    def decide(self, view):
        for waiting in view.queue:
            yield waiting
            yield waiting


class Crowded:
    order = None

    def decide(self, view):
        yield from view.queue


def test_the_kit_finds_what_is_wrong_with_a_policy():
    with pytest.raises(PolicyFault, match=r"put off|was to start"):
        check_policy(Greedy, promise="head")
    with pytest.raises(PolicyFault, match="without a reservation"):
        check_policy(Greedy, promise="all")
    check_policy(Greedy)


@pytest.mark.parametrize(
    ("policy", "message"),
    [(Lazy, "never starts"), (Twice, "not waiting"), (Crowded, "does not fit")],
)
def test_a_policy_that_misbehaves_is_named(policy, message):
    from ptaskmodel.errors import SimulationError

    with pytest.raises(SimulationError, match=message):
        check_policy(policy)


def test_redirection_by_hand():
    """Two long jobs fill the principal group; the short ones behind raise their counters."""
    jobs = [
        job("long", 0, 3, 100, 100.0),
        job("s1", 1, 3, 1, 5.0),
        job("s2", 2, 3, 1, 5.0),
        job("s3", 3, 3, 1, 5.0),
    ]
    policy = Redirection(0.5, 1)
    schedule = BatchSimulation(jobs, 6, policy).run()
    found = {run.job.id: (run.start_s, run.hosts) for run in schedule.final}
    assert found["long"] == (2.0, 0b111000)
    assert found["s1"] == (2.0, 0b000111)
    assert found["s2"] == (3.0, 0b000111)
    assert found["s3"] == (4.0, 0b000111)
    assert [run.state for run in schedule.attempts if run.job.id == "long"] == [
        "COMPLETED_KILLED",
        "COMPLETED_WALLTIME_REACHED",
    ]
    check_schedule(schedule, jobs)


def test_redirection_happens_once_and_only_to_jobs_that_fit_and_are_longer():
    long = job("long", 0, 3, 100, 100.0)
    waiters = [job(f"s{k}", 1 + k, 3, 1, 200.0) for k in range(9)]
    schedule = BatchSimulation([long, *waiters], 6, Redirection(0.5, 0)).run()
    assert all(run.ordinal == 0 for run in schedule.final)
    waiters = [job(f"s{k}", 1 + k, 3, 1, 50.0) for k in range(9)]
    schedule = BatchSimulation([long, *waiters], 5, Redirection(0.4, 0)).run()
    assert all(run.ordinal == 0 for run in schedule.final)


def test_a_redirected_job_queues_where_others_run():
    """The group has room for one of both long jobs at a time."""
    jobs = [
        job("a", 0, 3, 50, 60.0),
        job("s1", 1, 3, 10, 20.0),
        job("b", 5, 3, 30, 40.0),
        job("s2", 12, 3, 5, 10.0),
    ]
    runs = {}
    for redirected in ("start", "queue"):
        policy = Redirection(0.5, 0, redirected=redirected)
        schedule = BatchSimulation(jobs, 6, policy, estimate=walltime_or_inf).run()
        check_schedule(schedule, jobs)
        runs[redirected] = {run.job.id: (run.start_s, run.ordinal) for run in schedule.final}
    # a is moved for s1 at 1 and ends at 51; b runs from 11 on and is moved for s2.
    assert runs["start"] == {"a": (1.0, 1), "s1": (1.0, 0), "b": (11.0, 0), "s2": (41.0, 0)}
    assert runs["queue"] == {"a": (1.0, 1), "s1": (1.0, 0), "b": (51.0, 1), "s2": (12.0, 0)}


@pytest.mark.parametrize(
    ("rule", "chosen"),
    [
        ("counter", "a"),
        ("longest", "b"),
        ("shortest", "a"),
        ("largest", "a"),
        ("smallest", "b"),
        ("oldest", "a"),
        ("youngest", "b"),
    ],
)
def test_the_rule_of_conflict_chooses(rule, chosen):
    jobs = [job("a", 0, 2, 50, 60.0), job("b", 0, 1, 50, 70.0), job("s", 1, 2, 1, 5.0)]
    schedule = BatchSimulation(jobs, 6, Redirection(0.5, 0, conflict=rule)).run()
    assert [run.job.id for run in schedule.final if run.ordinal] == [chosen]


@pytest.mark.parametrize("redirected", ["start", "queue"])
@pytest.mark.parametrize("principal", [Easy, Conservative, Fcfs])
def test_redirection_loses_nothing(principal, redirected):
    def make():
        return Redirection(0.25, 1, principal=principal(), redirected=redirected)

    for seed in range(40):
        jobs = [j for j in random_jobs(seed, 40, 8) if j.num_hosts <= 6]
        schedule = BatchSimulation(jobs, 8, make(), observe=Verifier()).run()
        check_schedule(schedule, jobs)
        assert all(run.ordinal <= 1 for run in schedule.attempts)


def test_a_job_larger_than_the_principal_group_is_rejected():
    schedule = BatchSimulation([job("big", 0, 8, 1, 2.0)], 8, Redirection(0.25, 1)).run()
    assert schedule.final[0].state == "REJECTED"
