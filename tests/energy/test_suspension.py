"""Joules of jobs that are suspended and then end, fail or are killed: a naive integration."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
from energy_batches import delay_job, machine_platform, ptask_job, workload_of

from ptaskmodel.batch import (
    BatchOptions,
    BatchSimulation,
    Gang,
    Kill,
    Preemptive,
    Requeue,
    Resume,
    Suspend,
    Wake,
    Window,
    machine_of,
)
from ptaskmodel.batch.jobs.metering import MeteredExecution
from ptaskmodel.batch.machine.host_sets import of_hosts
from ptaskmodel.batch.plan import Plan

IDLE, BUSY, OFF = 100.0, 200.0, 7.0
HOSTS = 4


def power(schedule, host, date):
    """W of a host from a date on, from the definition; jobs have it alone."""
    on = True
    for change in schedule.host_changes:
        if change.date_s <= date and host in change.hosts and change.state in ("up", "down"):
            on = change.state == "up"
    if not on:
        return OFF
    return BUSY if any(runs(a, date) and host in a.hosts for a in schedule.attempts) else IDLE


def runs(attempt, date):
    if not attempt.start_s <= date < attempt.end_s:
        return False
    return not any(since <= date < to for since, to in spans(attempt))


def spans(attempt):
    return [(since, attempt.end_s if to is None else to) for since, to in attempt.suspensions]


def naive(schedule):
    """Joules of each host, and of each attempt while it ran; dates and joules at each end."""
    dates = {0.0, schedule.now_s, *(change.date_s for change in schedule.host_changes)}
    for attempt in schedule.attempts:
        dates |= {attempt.start_s, attempt.end_s, *itertools.chain(*spans(attempt))}
    hosts, jobs, up_to = np.zeros(HOSTS), np.zeros(len(schedule.attempts)), {0.0: 0.0}
    for since, to in itertools.pairwise(sorted(dates)):
        watts = [power(schedule, host, since) for host in range(HOSTS)]
        hosts += np.array(watts) * (to - since)
        for attempt in schedule.attempts:
            if runs(attempt, since):
                jobs[attempt.number] += sum(watts[host] for host in attempt.hosts) * (to - since)
        up_to[to] = hosts.sum()
    return hosts, jobs, up_to


def check(schedule, energy, curve):
    hosts, jobs, up_to = naive(schedule)
    assert energy.meter.hosts_J[1:] == pytest.approx(hosts, rel=1e-9)
    assert energy.job_J == pytest.approx(jobs, rel=1e-9, abs=1e-6)
    assert energy.share_J == pytest.approx(jobs, rel=1e-9, abs=1e-6)
    ends = [(date, joules) for date, joules, event, _ in energy.rows if event == "e"]
    assert [date for date, _ in ends] == sorted(a.end_s for a in schedule.attempts)
    for date, joules in ends:
        assert joules == pytest.approx(up_to[date], rel=1e-9, abs=1e-6)
    rows = np.concatenate(curve)
    lasted = np.diff([*rows["date"], schedule.now_s])
    assert (rows["hosts_W"] * lasted).sum() == pytest.approx(hosts.sum(), rel=1e-9)


def drawn(draw):
    """Jobs of three priorities, failures, maintenance."""
    jobs, date = [], 0.0
    for k in range(draw.randint(5, 14)):
        date += draw.choice((0.0, 1.0, draw.randint(0, 20) / 4))
        seconds = draw.choice((0.0, draw.randint(1, 80) / 4))
        job = delay_job(f"j{k}", date, draw.randint(1, HOSTS), seconds, walltime_s=seconds + 30)
        jobs.append(replace(job, extra={"priority": draw.choice((0, 0, 1, 2))}))
    failures = {}
    for host in draw.sample(range(HOSTS), 2):
        down = draw.randint(1, 100) / 4
        failures[host] = [(down, False), (down + draw.randint(1, 20) / 4, True)]
    start = draw.randint(1, 100) / 4
    hosts = of_hosts(draw.sample(range(HOSTS), draw.randint(1, HOSTS)))
    return jobs, failures, [Window(hosts, start, start + 6.0)][: draw.randint(0, 1)]


class Wild:
    """Starts, suspends, resumes, kills and requeues at random."""

    def __init__(self, seed):
        self.draw = random.Random(seed)

    def decide(self, view):
        draw = self.draw
        for attempt in [*view.running, *view.suspended]:
            if draw.random() < 0.1:
                yield draw.choice((Kill, Requeue))(attempt.job)
            elif attempt.job in [other.job for other in view.running] and draw.random() < 0.3:
                yield Suspend(attempt.job)
        for attempt in list(view.suspended):
            if view.can_resume(attempt) and (not view.running or draw.random() < 0.7):
                yield Resume(attempt.job)
        for job in view.queue:
            if view.is_waiting(job) and view.fits(job):
                yield job
        if view.suspended or view.queue:
            yield Wake(view.now + 2.0)


POLICIES = {
    "preemptive": lambda seed: Preemptive(field="priority"),
    "requeue": lambda seed: Preemptive(field="priority", mechanism="requeue"),
    "kill": lambda seed: Preemptive(field="priority", mechanism="kill"),
    "gang": lambda seed: Gang(2.5, 3),
    "wild": Wild,
}


def metered(platform, policy, jobs, curve=None, **options):
    """(schedule, energy) of a batch whose delays keep hosts busy."""
    machine = machine_of(platform)
    plan = Plan(machine, workload_of(*jobs), BatchOptions(energy=True, walltimes="ignore"))
    execution = MeteredExecution(
        plan.execution, machine, plan.ptasks, busy_delays=True, curve=curve
    )
    schedule = BatchSimulation(
        jobs, HOSTS, policy, execution=execution, limited=False, **options
    ).run()
    return schedule, execution.energy(schedule.now_s)


@pytest.mark.parametrize("on_failure", ["fail", "requeue"])
@pytest.mark.parametrize("name", POLICIES)
def test_a_job_that_ends_while_suspended_is_counted_once(name, on_failure):
    platform = machine_platform(HOSTS, wattage_off=str(OFF))
    for seed in range(25):
        jobs, failures, windows = drawn(random.Random(seed))
        curve = []
        schedule, energy = metered(
            platform, POLICIES[name](seed), jobs, curve.append,
            failures=failures, maintenance=windows, on_failure=on_failure,
        )  # fmt: skip
        check(schedule, energy, curve)


@pytest.mark.parametrize("on_failure", ["fail", "requeue"])
@pytest.mark.parametrize("name", ["preemptive", "gang"])
def test_delays_cost_what_parallel_tasks_do(name, on_failure):
    platform = machine_platform(HOSTS, wattage_off=str(OFF))
    for seed in range(6):
        jobs, failures, windows = drawn(random.Random(seed))
        tasks = [
            replace(job, work=ptask_job("", 0.0, job.num_hosts, 1e8 * job.work.duration_s, 0).work)
            for job in jobs
            if job.work.duration_s > 0
        ]
        curve = []
        schedule, energy = metered(
            platform, POLICIES[name](seed), tasks, curve.append,
            failures=failures, maintenance=windows, on_failure=on_failure,
        )  # fmt: skip
        check(schedule, energy, curve)


def test_a_job_that_a_link_stops_is_charged_until_then():
    class Links:
        def decide(self, view):
            yield from (job for job in view.queue if view.fits(job))

    job = ptask_job("a", 0.0, 2, 1e9, 1e8)
    late = ptask_job("b", 20.0, 1, 1e9, 0.0)
    schedule, energy = metered(
        machine_platform(HOSTS), Links(), [job, late], failures={"l0": [(4.0, False)]}
    )
    assert [a.end_s for a in schedule.attempts] == [4.0, 30.0]
    assert energy.job_J == pytest.approx([2 * 4 * BUSY, 10 * BUSY])
    assert [row[0] for row in energy.rows if row[2] == "e"] == [4.0, 30.0]
