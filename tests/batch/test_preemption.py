"""Preemption, gangs, failures and maintenance against a naive reference, and what they promise."""

from __future__ import annotations

import random

import naive_preemption as naive
import pytest

from ptaskmodel.batch import (
    FAILED,
    KILLED,
    SUCCESS,
    BatchSimulation,
    Easy,
    Fcfs,
    Filler,
    Gang,
    Job,
    Preemptive,
    Verifier,
    Window,
    check_schedule,
)
from ptaskmodel.batch.hostset import of_hosts
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


def drawn_windows(draw, hosts):
    found, date = [], 0.0
    for _ in range(draw.choice((0, 0, 1, 2))):
        date += draw.randint(8, 120) / 4
        end = date + draw.randint(4, 60) / 4
        found.append((frozenset(draw.sample(range(hosts), draw.randint(1, hosts))), date, end))
        date = end
    return found


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
        )
        schedule = BatchSimulation(
            jobs,
            hosts,
            make(),
            failures=failures,
            maintenance=[Window(of_hosts(w), start, end) for w, start, end in windows],
            on_failure="requeue" if requeue else "fail",
            observe=Verifier(),
        ).run()
        check_schedule(schedule, jobs)
        found = {job.id: [] for job in jobs}
        for a in schedule.attempts:
            row = [a.ordinal, a.start_s, a.end_s, tuple(a.hosts), STATES[a.state]]
            found[a.job.id].append([*row, a.suspended_s(schedule.now_s)])
        assert found == reference.run(), (name, seed)
