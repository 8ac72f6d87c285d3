"""The compiled loop gives the schedules of the open one, to the bit."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path

import pytest

from ptaskmodel.batch import (
    BatchOptions,
    BatchSimulation,
    Conservative,
    DelayExecution,
    Easy,
    Fcfs,
    Plan,
    Redirection,
    actual_duration_s,
    check_schedule,
    machine_of,
    metrics,
    run_batch,
    walltime_or_inf,
)
from ptaskmodel.batch.allocations.rules import (
    Contiguous,
    FewestSwitches,
    FirstFit,
    Random,
    Spread,
)
from ptaskmodel.batch.class_metrics import by_class
from ptaskmodel.batch.compiled.delays import compiled_batch
from ptaskmodel.batch.compiled.state import RUN
from ptaskmodel.batch.jobs.execution import Scaled, delay_of
from ptaskmodel.batch.policies import orders
from ptaskmodel.batch.policies.backfilling import Filler
from ptaskmodel.batch.policies.redirection import CONFLICTS
from ptaskmodel.batch.queue_metrics import QueueMeasures
from ptaskmodel.batch.run import compiled_batch_of
from ptaskmodel.batch.schedule_metrics import load
from ptaskmodel.errors import SimulationError
from ptaskmodel.kernels.records import as_records
from ptaskmodel.platform import load_platform
from ptaskmodel.results.tables.batch import write_schedule
from ptaskmodel.workload.jobs import Job, Workload, sorted_jobs
from ptaskmodel.workload.reading import read_workload
from ptaskmodel.workload.works import DelayWork

LOGS = Path(__file__).resolve().parents[3] / "shared" / "data" / "swf"
POLICIES = (Fcfs, Filler, Easy, Conservative)
ESTIMATES = {
    "walltime": walltime_or_inf,
    "exact": actual_duration_s,
    "without walltime": delay_of,
    "outlived": Scaled(0.4, delay_of, True),
    "triple": Scaled(3.0, actual_duration_s, True),
    "a function": lambda job: 0.7 * job.work.duration_s + job.num_hosts,
}
ALLOCATIONS = (
    FirstFit,
    FirstFit,
    FirstFit,
    Spread,
    lambda: Random(3),
    lambda: Contiguous(strict=False),
    lambda: FewestSwitches([0b1111, 0b10000, (1 << 200) - 32]),
)


def workload(seed, *, plain=False):
    """Jobs and hosts: ties, bursts, all kinds of walltimes; jobs of 0 s, of 0 hosts, without limit.

    plain: none of these.
    """
    draw = random.Random(seed)
    hosts, jobs = draw.choice([1, 4, 16, 200]), []
    for k in range(draw.choice([1, 5, 30, 80])):
        date = float(draw.choice([draw.randrange(60), draw.randrange(400)]))
        lasts = draw.choice([1.0, 5.0, draw.uniform(0.1, 40), float(draw.randrange(1, 60))])
        if not plain and seed % 5 == 0 and draw.random() < 0.3:
            lasts = 0.0
        walltime = draw.choice([lasts or 1.0, 2 * lasts + 1, 0.5 * lasts + 1, 7.0, 900.0])
        if not plain and seed % 4 == 0 and draw.random() < 0.3:
            walltime = None
        count = min(hosts, draw.choice([1, 1, 2, draw.randrange(1, hosts + 1)]))
        if not plain and seed % 7 == 0 and draw.random() < 0.2:
            count = 0
        work = DelayWork(lasts)
        failing = int(draw.random() < 0.1)
        jobs.append(Job(str(k), date, count, "d", work, walltime, return_code=failing))
    return list(sorted_jobs(jobs)), hosts


def both(jobs, hosts, make, make_allocation, estimate, *, limited=True, until=inf):
    """The schedules of the compiled loop and of the open one."""
    compiled = compiled_batch(
        jobs,
        hosts,
        make(),
        make_allocation(),
        estimate=estimate,
        limited=limited,
        most_decisions=100_000,
    )
    simulation = BatchSimulation(
        jobs,
        hosts,
        make(),
        allocation=make_allocation(),
        estimate=estimate,
        limited=limited,
        execution=DelayExecution(limited),
    )
    if until == inf:
        return compiled.run(), simulation.run()
    simulation.advance_to(until)
    return compiled.run(until), simulation.schedule()


def shown(schedule):
    """All that a schedule says."""
    final, every = (
        [
            (
                *(a.job.id, a.start_s, a.end_s, a.expected_end_s, a.state),
                *(a.reason, a.number, a.ordinal, a.use, a.mask),
            )
            for a in attempts
        ]
        for attempts in (schedule.final, schedule.attempts)
    )
    return final, every, schedule.events, schedule.now_s, schedule.num_hosts


@pytest.mark.parametrize("policy", POLICIES)
def test_random_workloads(policy):
    for seed in range(80):
        jobs, hosts = workload(seed)
        draw = random.Random(seed)
        estimate = ESTIMATES[draw.choice(list(ESTIMATES))]
        # No hosts for ever are an area of nan.
        kinds = ["fcfs", "sjf", "ljf", "smallest", "largest"]
        named = orders(estimate)
        order = draw.choice([*(named[kind] for kind in kinds), lambda job: (job.num_hosts % 3, 1)])
        candidates = named[draw.choice(kinds)] if policy is Easy else None
        found, expected = both(
            jobs,
            hosts,
            partial(policy, order, candidates) if policy is Easy else partial(policy, order),
            draw.choice(ALLOCATIONS) if hosts == 200 else draw.choice(ALLOCATIONS[:-1]),
            estimate,
            limited=seed % 3 != 0,
            until=draw.choice([inf, inf, draw.uniform(0, 300)]),
        )
        assert shown(found) == shown(expected), seed
        assert metrics(found) == metrics(expected)
        for name in load(found).__slots__:
            assert getattr(load(found), name).tolist() == getattr(load(expected), name).tolist()


def test_redirection_of_random_workloads():
    redirected = queued = 0
    for seed in range(120):
        jobs, hosts = workload(seed)
        draw = random.Random(seed)
        alpha, hosts = draw.choice([0.1, 0.25, 0.5]), max(hosts, 2)
        group = Redirection(alpha, 0).groups(hosts)[0].bit_count()
        jobs = [replace(job, num_hosts=max(1, min(job.num_hosts, group))) for job in jobs]
        estimate = ESTIMATES[draw.choice(list(ESTIMATES))]
        named = orders(estimate)
        kinds = draw.choice([(None, None), ("fcfs", "sjf"), ("sjf", None), ("largest", "ljf")])
        make = partial(
            Redirection,
            alpha,
            draw.choice([0, 1, 2.5]),
            conflict=draw.choice(list(CONFLICTS)),
            redirected=draw.choice(["start", "queue"]),
            principal=Easy(*map(named.get, kinds)),
        )
        found, expected = both(
            jobs,
            hosts,
            make,
            draw.choice(ALLOCATIONS[:-1]),
            estimate,
            limited=seed % 3 != 0,
            until=draw.choice([inf, inf, draw.uniform(0, 300)]),
        )
        assert shown(found) == shown(expected), seed
        assert metrics(found) == metrics(expected)
        moved = {attempt.job: attempt.start_s for attempt in found.final if attempt.ordinal}
        redirected += len(moved)
        queued += sum(
            attempt.end_s < moved.get(attempt.job, inf)
            for attempt in found.attempts
            if attempt.reason == "redirected"
        )
    assert redirected > 150
    assert queued > 40


@pytest.mark.parametrize(
    ("policy", "num_hosts"),
    [
        (Redirection(0.25, 1, principal=Conservative()), 1),
        (Redirection(0.25, 1), 4),
        (Redirection(0.25, 1), 0),
    ],
)
def test_redirection_that_is_for_the_open_loop(policy, num_hosts):
    job = Job("a", 0.0, num_hosts, "d", DelayWork(1.0))
    given = {"estimate": delay_of, "limited": True, "most_decisions": 100}
    assert compiled_batch([job], 4, policy, FirstFit(), **given) is None


@pytest.mark.parametrize("log", ["KTH-SP2-1996-2.1-cln", "HPC2N-part"])
def test_every_mixture_on_a_real_log(log):
    path = LOGS / f"{log}.swf.gz"
    if not path.exists():
        pytest.skip("the logs are not here")
    whole = read_workload(path)
    first = len(whole.jobs) // 2
    jobs, hosts = whole.jobs[first : first + 60], whole.num_hosts
    for name, estimate in ESTIMATES.items():
        for kind, order in orders(estimate).items():
            backfill_order = orders(estimate)["ljf" if kind == "smallest" else "sjf"]
            for make in (
                partial(Fcfs, order),
                partial(Filler, order),
                partial(Easy, order),
                partial(Easy, order, backfill_order),
                partial(Conservative, order),
            ):
                found, expected = both(jobs, hosts, make, FirstFit, estimate)
                assert shown(found) == shown(expected), (name, kind, make)


def test_room_for_hosts_grows():
    jobs, hosts = workload(5, plain=True)
    given = {"estimate": walltime_or_inf, "limited": True, "most_decisions": 10}
    whole = compiled_batch(jobs, hosts, Easy(), FirstFit(), **given).run()
    batch = compiled_batch(jobs, hosts, Easy(), FirstFit(), **given)
    small = batch.state._replace(pieces=as_records(batch.state.pieces[:1].copy()))
    assert small.pieces.dtype == RUN
    assert shown(replace(batch, state=small).run()) == shown(whole)


def test_progress_is_told_at_least_at_the_end():
    jobs, hosts = workload(5, plain=True)
    told = []
    batch = compiled_batch(
        jobs, hosts, Easy(), FirstFit(), estimate=delay_of, limited=True, most_decisions=10
    )
    schedule = batch.run(progress=lambda *numbers: told.append(numbers))
    assert told[-1] == (schedule.now_s, len(jobs), 0)


class Mine(Easy):
    """A policy of the user's: who knows what it does."""


def raising(job):
    raise ValueError(job.id)


@pytest.mark.parametrize(
    ("policy", "allocation", "estimate"),
    [
        (Mine(), FirstFit(), delay_of),
        (Easy(), Contiguous(), delay_of),
        (Easy(raising), FirstFit(), delay_of),
        (Easy(None, raising), FirstFit(), delay_of),
        (Easy(), FirstFit(), raising),
        (Easy(lambda job: {job.num_hosts}), FirstFit(), delay_of),
        (Easy(lambda job: float("nan")), FirstFit(), delay_of),
        (Easy(), FirstFit(), lambda job: -1.0),
    ],
)
def test_what_needs_python_is_for_the_open_loop(policy, allocation, estimate):
    jobs, hosts = workload(4, plain=True)
    given = {"estimate": estimate, "limited": True, "most_decisions": 100}
    assert compiled_batch(jobs, hosts, policy, allocation, **given) is None


@pytest.mark.parametrize(
    "asked",
    [
        {"cores": 1},
        {"memory_B": 1.0},
        {"licences": {"x": 1}},
        {"num_hosts": 5},
        {"num_hosts": 10**30},
        {"submit_time_s": -1.0},
    ],
)
def test_jobs_that_the_compiled_loop_does_not_run(asked):
    job = replace(Job("a", 0.0, 1, "d", DelayWork(1.0)), **asked)
    given = {"estimate": delay_of, "limited": True, "most_decisions": 100}
    assert compiled_batch([job], 4, Easy(), FirstFit(), **given) is None


def test_too_many_decisions_at_a_date_are_for_the_open_loop_to_tell():
    jobs = [Job(str(k), 0.0, 1, "d", DelayWork(0.0)) for k in range(20)]
    given = {"estimate": delay_of, "limited": True}
    assert compiled_batch(jobs, 1, Fcfs(), FirstFit(), most_decisions=9, **given).run() is None
    assert compiled_batch(jobs, 1, Fcfs(), FirstFit(), most_decisions=21, **given).run() is not None


# --- chosen by itself


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    path = tmp_path_factory.mktemp("platform") / "cluster.xml"
    path.write_text(
        '<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-15" '
        'speed="1Gf" bw="1GBps" lat="1us"/></platform>'
    )
    return load_platform(path)


def small_workload():
    jobs = [
        replace(job, num_hosts=min(job.num_hosts, 16), user=f"u{int(job.id) % 3}")
        for job in workload(5, plain=True)[0]
    ]
    return Workload(tuple(jobs), {"d": DelayWork(1.0)})


@pytest.mark.parametrize("until_s", [None, 50.0])
@pytest.mark.parametrize("allocation", ["first-fit", "random"])
def test_both_loops_write_the_same_files(platform, tmp_path, until_s, allocation):
    content = []
    for loop, objects in (("open", True), ("open", False), ("compiled", False)):
        options = BatchOptions(loop=loop, until_s=until_s, allocation=allocation)
        result = run_batch(platform, small_workload(), options)
        assert result.loop == loop
        assert (result.kernels_s is None) == (loop == "open")
        schedule = replace(result.schedule, plain=None) if objects else result.schedule
        assert (schedule.plain is None) == objects
        place = tmp_path / f"{loop} {objects}"
        place.mkdir()
        names = write_schedule(
            place,
            schedule,
            load(schedule),
            workload_name="w",
            host_names=result.machine.names,
            version="1",
            simulation_s=0.0,
        )
        content.append({name: (place / name).read_text() for name in names})
        content[-1]["notes"] = result.notes
        queue = QueueMeasures(schedule)
        content[-1]["queue"] = queue.summary(), repr(queue.over_time())
        content[-1]["classes"] = by_class(schedule)
    assert content[0] == content[1] == content[2]


def test_few_jobs_go_through_the_open_loop(platform):
    assert run_batch(platform, small_workload()).loop == "open"


@pytest.mark.parametrize(
    "options",
    [
        {"verify": "head"},
        {"policy": "metric-aware"},
        {"allocation": "contiguous"},
        {"loop": "open"},
    ],
)
def test_options_that_the_compiled_loop_does_not_know(platform, options):
    plan = Plan(
        machine_of(platform), small_workload(), BatchOptions(**{"loop": "compiled", **options})
    )
    assert compiled_batch_of(plan, plan.machine) is None


def test_options_that_send_a_batch_to_the_open_loop_are_told(platform):
    def notes(**options):
        return run_batch(platform, small_workload(), BatchOptions(**options)).notes

    told = "the open loop simulates: the compiled one, which is faster, has no --verify"
    assert told in notes(loop="compiled", verify="none")
    assert told not in notes(verify="none")
    assert told not in notes(loop="open", verify="none")


def test_a_loop_that_there_is_not(platform):
    with pytest.raises(SimulationError, match="use one of auto, open, compiled"):
        run_batch(platform, small_workload(), BatchOptions(loop="fast"))


def test_attempts_are_made_once_and_agree_with_each_other(platform):
    schedule = run_batch(platform, small_workload(), BatchOptions(loop="compiled")).schedule
    assert {id(a) for a in schedule.final} == {id(a) for a in schedule.attempts}
    assert [a.number for a in schedule.attempts] == list(range(len(schedule.attempts)))
    one = schedule.attempts[5]
    assert len(one.hosts) == one.job.num_hosts
    assert str(one.hosts) == one.hosts_text
    check_schedule(schedule, [a.job for a in schedule.final])
