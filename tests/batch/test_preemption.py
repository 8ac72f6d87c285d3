"""Preemption, gangs, failures and maintenance against a naive reference, and what they promise."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import naive_preemption as naive
import pytest

from ptaskmodel.batch import (
    FAILED,
    KILLED,
    SUCCESS,
    BatchSimulation,
    Checkpointing,
    DelayExecution,
    Easy,
    Fcfs,
    Filler,
    Gang,
    HostCapacity,
    Job,
    Preemptive,
    Verifier,
    Window,
    check_policy,
    check_schedule,
    metrics,
    random_jobs,
)
from ptaskmodel.batch.machine.host_sets import of_hosts
from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.works import DelayWork

STATES = {SUCCESS: "DONE", FAILED: "FAILED", KILLED: "KILLED"}


def mixed_jobs(seed, count, hosts):
    """Jobs on a grid of quarters of a second, so that no sum is rounded, never killed."""
    draw = random.Random(seed)
    made, date = [], 0.0
    for k in range(count):
        date += draw.choice((0.0, 0.0, 1.0, 2.5, draw.randint(0, 24) / 4))
        size = min(hosts, draw.choice((1, 1, 2, 3, draw.randint(1, hosts), hosts // 2)))
        duration = draw.choice((1.0, 2.0, 5.0, draw.randint(1, 60) / 4))
        walltime = draw.choice((duration + 0.25, 2 * duration, 4 * duration + 1))
        extra = {"priority": draw.choice((0, 0, 0, 1, 2))}
        work = DelayWork(duration)
        made.append(Job(f"j{k}", date, size, f"d{duration}", work, walltime, extra=extra))
    return made


def drawn_failures(draw, hosts):
    """Changes by host: each goes down and comes back a few times."""
    found = {}
    for host in range(hosts):
        if draw.random() < 0.5:
            date, changes = 0.0, []
            for _ in range(draw.randint(1, 4)):
                date += draw.randint(4, 120) / 4
                changes.append((date, False))
                date += draw.randint(1, 40) / 4
                changes.append((date, True))
            found[host] = changes
    return found


CHECKPOINTS = (None, Checkpointing(2.0, 0.5, 0.25), Checkpointing(1.5, 0.0, 1.0))


def drawn_windows(draw, hosts):
    found, date = [], 0.0
    for _ in range(draw.choice((0, 0, 1, 2))):
        date += draw.randint(8, 120) / 4
        end = date + draw.randint(4, 60) / 4
        found.append((frozenset(draw.sample(range(hosts), draw.randint(1, hosts))), date, end))
        date = end
    return found


def check_work(schedule):
    """What checkpoints kept of the attempts of a job and what its last one did is its work."""
    kept = {}
    for a in schedule.attempts:
        work_s = a.end_s - a.start_s - a.suspended_s(a.end_s) - a.overhead_s
        assert -1e-9 < a.kept_s < work_s + 1e-9
        if a.state == SUCCESS:
            assert work_s + kept.get(a.job, 0.0) == pytest.approx(a.job.work.duration_s)
        kept[a.job] = kept.get(a.job, 0.0) + a.kept_s


POLICIES = {
    "fcfs": (Fcfs, naive.fcfs),
    "filler": (Filler, naive.fill),
    "easy": (Easy, naive.easy),
    "suspend": (lambda: Preemptive(field="priority"), naive.preemptive("suspend")),
    "requeue": (
        lambda: Preemptive(field="priority", mechanism="requeue"),
        naive.preemptive("requeue"),
    ),
    "kill": (lambda: Preemptive(field="priority", mechanism="kill"), naive.preemptive("kill")),
    "gang": (lambda: Gang(5.0, 3), naive.gang(5.0, 3, True)),
    "gang without filling": (lambda: Gang(2.5, 4, 0), naive.gang(2.5, 4, False)),
}


@pytest.mark.parametrize("name", POLICIES)
def test_schedules_with_failures_and_maintenance_equal_the_naive_reference(name):
    make, decide = POLICIES[name]
    for seed in range(300 if name not in ("fcfs", "filler") else 100):
        draw = random.Random(seed)
        hosts = (3, 5, 8)[seed % 3]
        jobs = mixed_jobs(seed, 6 + seed % 14, hosts)
        failures = drawn_failures(draw, hosts) if seed % 4 else {}
        windows = drawn_windows(draw, hosts)
        requeue = bool(seed % 5)
        law = CHECKPOINTS[seed // 7 % 3]
        if law is not None:
            # Longer by the time of checkpoints, so that no estimate is outlived.
            jobs = [replace(j, walltime_s=1.5 * j.walltime_s + 2) for j in jobs]
        reference = naive.Naive(
            [
                naive.NaiveJob(
                    j.id,
                    j.submit_time_s,
                    j.num_hosts,
                    j.work.duration_s,
                    j.walltime_s,
                    j.extra["priority"],
                )
                for j in jobs
            ],
            hosts,
            decide,
            [(date, host, up) for host, changes in failures.items() for date, up in changes],
            windows,
            requeue,
            law and (law.interval, law.write_s, law.read_s),
        )
        schedule = BatchSimulation(
            jobs,
            hosts,
            make(),
            failures=failures,
            maintenance=[Window(of_hosts(w), start, end) for w, start, end in windows],
            on_failure="requeue" if requeue else "fail",
            execution=DelayExecution(limited=False, checkpoints=law),
            limited=False,
            observe=Verifier(),
        ).run()
        check_schedule(schedule, jobs)
        check_work(schedule)
        found = {job.id: [] for job in jobs}
        for a in schedule.attempts:
            row = [a.ordinal, a.start_s, a.end_s, tuple(a.hosts), STATES[a.state]]
            found[a.job.id].append([*row, a.suspended_s(schedule.now_s)])
        assert found == reference.run(), (name, seed)


# --- checkpoints ------------------------------------------------------------------------------


def test_a_job_goes_on_from_its_last_checkpoint():
    """10 s of work, a checkpoint of 1 s every 3 s; the host is down from 9 to 10 s."""
    one = Job("a", 0.0, 1, "d", DelayWork(10.0), None)
    schedule = BatchSimulation(
        [one],
        1,
        Fcfs(),
        failures={0: [(9.0, False), (10.0, True)]},
        on_failure="requeue",
        execution=DelayExecution(checkpoints=Checkpointing(3.0, 1.0, 0.5)),
    ).run()
    # 3 + 1 + 3 + 1, then 1 s that is lost; read 0.5, then 3 + 1 + 1.
    assert [(a.start_s, a.end_s, a.kept_s, a.overhead_s) for a in schedule.attempts] == [
        (0.0, 9.0, 6.0, 2.0),
        (10.0, 15.5, 3.0, 1.5),
    ]
    found = metrics(schedule)
    assert (found["lost_host_s"], found["checkpoint_host_s"]) == (1.0, 3.5)
    assert found["unavailable_host_s"] == 1.0


def test_the_best_intervals_are_youngs_and_dalys():
    one = Job("a", 0.0, 4, "d", DelayWork(1.0))
    young = Checkpointing.of({"interval": "young", "write": 60.0}, mtbf_s=4e5)
    assert young.interval_s(one) == pytest.approx((2 * 60 * 1e5) ** 0.5)
    daly = Checkpointing.of({"interval": "daly", "write": 60.0, "mtbf": 4e5})
    # Close to the minimum of the expected time in Daly's model, which has no closed form.
    best = min(range(2000, 6000), key=lambda tau: expected(tau, 60.0, 1e5))
    assert daly.interval_s(one) == pytest.approx(best, rel=1e-3)
    assert Checkpointing("daly", 60.0, 0.0, 100.0).interval_s(one) == 25.0


def expected(interval, write, mtbf):
    """Time per second of work: exp(R/M) (exp((tau + C)/M) - 1) M / tau, without R."""
    return math.expm1((interval + write) / mtbf) * mtbf / interval


def test_victims_write_a_checkpoint_and_the_next_wait_for_it():
    """The low job writes for 2 s once the large one comes; nobody takes the hosts meanwhile."""
    jobs = [
        Job("low", 0.0, 2, "d", DelayWork(10.0), 30.0),
        Job("high", 4.0, 3, "d", DelayWork(5.0), 6.0),
        Job("small", 5.0, 1, "d", DelayWork(1.0), 20.0),
    ]
    schedule = BatchSimulation(
        jobs,
        3,
        Preemptive(3, mechanism="checkpoint"),
        execution=DelayExecution(checkpoints=Checkpointing(None, 2.0, 1.0)),
        observe=Verifier(),
    ).run()
    rows = [(a.job.id, a.start_s, a.end_s, a.state) for a in schedule.attempts]
    assert rows == [
        ("low", 0.0, 6.0, KILLED),
        ("high", 6.0, 11.0, SUCCESS),
        ("low", 11.0, 18.0, SUCCESS),
        ("small", 11.0, 12.0, SUCCESS),
    ]
    assert metrics(schedule)["lost_host_s"] == 0.0
    assert metrics(schedule)["checkpoint_host_s"] == 2 * (2.0 + 1.0)


def test_preemption_by_checkpoint_loses_nothing_but_to_failures():
    for seed in range(60):
        draw = random.Random(seed)
        jobs = mixed_jobs(seed, 20, 6)
        law = Checkpointing(draw.choice((None, 2.0)), draw.choice((0.0, 0.5, 2.0)), 0.25)
        schedule = BatchSimulation(
            jobs,
            6,
            Preemptive(field="priority", mechanism="checkpoint"),
            failures=drawn_failures(draw, 6) if seed % 2 else {},
            on_failure="requeue",
            execution=DelayExecution(limited=False, checkpoints=law),
            limited=False,
            observe=Verifier(),
        ).run()
        check_schedule(schedule, jobs)
        check_work(schedule)
        assert seed % 2 or metrics(schedule)["lost_host_s"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 5}, "option 'every' is unknown"),
        ({"interval": "best"}, "interval is 'best'"),
        ({"interval": 0}, "interval is 0"),
        ({"interval": "daly", "write": 5}, "needs the mtbf"),
        ({"interval": "young", "mtbf": 5}, "a write > 0"),
        ({"write": -1}, "write is -1"),
        ({"read": "x"}, "read is 'x'"),
        ({"mtbf": 0}, "mtbf is 0"),
    ],
)
def test_checkpoints_are_checked(options, message):
    with pytest.raises(SimulationError, match=message):
        Checkpointing.of(options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Preemptive, "give either large=HOSTS or field=NAME"),
        (lambda: Preemptive(5, "x"), "give either"),
        (lambda: Preemptive(-5), "large is -5"),
        (lambda: Preemptive(5, mechanism="swap"), "mechanism 'swap' is unknown"),
        (lambda: Gang(0), "slice is 0"),
        (lambda: Gang(5, 0), "rows is 0"),
        (lambda: Gang(5, 1, 2), "fill is 2"),
    ],
)
def test_options_of_policies_are_checked(make, message):
    with pytest.raises(SimulationError, match=message):
        make()


def test_without_priorities_preemption_is_easy():
    for seed in range(40):
        jobs = random_jobs(seed, 30, 8)
        rows = [
            [(a.job.id, a.start_s, a.mask) for a in BatchSimulation(jobs, 8, make()).run().attempts]
            for make in (Easy, lambda: Preemptive(9))
        ]
        assert rows[0] == rows[1]
    check_policy(lambda: Preemptive(6), workloads=20)
    check_policy(lambda: Gang(3.0), workloads=20)


def test_a_checkpoint_that_costs_nothing_known_is_refused():
    jobs = [Job("a", 0.0, 1, "d", DelayWork(9.0), 9.5), Job("b", 1.0, 2, "d", DelayWork(1.0), 2.0)]
    with pytest.raises(SimulationError, match="say what one costs"):
        BatchSimulation(jobs, 2, Preemptive(2, mechanism="checkpoint")).run()


def test_gangs_share_whole_hosts_alone():
    jobs = [Job("a", 0.0, 1, "d", DelayWork(9.0), 9.5, cores=1)]
    with pytest.raises(SimulationError, match="asks for cores, memory or licences; leave them out"):
        BatchSimulation(jobs, [HostCapacity(4)] * 2, Gang(5.0)).run()


def test_a_priority_is_a_number():
    jobs = [replace(mixed_jobs(1, 1, 4)[0], extra={"priority": "high"})]
    with pytest.raises(SimulationError, match="its field 'priority' is 'high'"):
        BatchSimulation(jobs, 4, Preemptive(field="priority")).run()
