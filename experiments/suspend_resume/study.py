"""One run of the study of suspend/resume: a policy on an order of a sample of a log.

Of a log the first jobs are spaced evenly at an offered load, and a sample of them (by work) is
shuffled. Policies: backfilling without priorities (bf), with priority for jobs of random choice or
of many hosts (bf rand, bf size: they come first in the queue), and with those pushing the others
aside (sr rand, sr size: suspend/resume). Parts: shuffled orders; one huge job in the middle; other
samples; all times shrunk; jobs with contention, as parallel tasks on a torus; and the headline,
a sample of a whole log, in which jobs of 6.6 % of the machine are large. Tests of causes: the
orders at a higher load; the huge job as the only one of priority; orders of each sample by work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from samples import (
    HEADLINE,
    HUGE,
    LARGE,
    likeness,
    log_of,
    made,
    processors_of,
    whole_of,
    with_huge,
    with_priority,
)

from ptaskmodel.batch import (
    BatchOptions,
    BatchSimulation,
    Easy,
    Plan,
    Policy,
    Preemptive,
    Schedule,
    job_times,
    load,
    machine_of,
    metrics,
    walltime_or_inf,
)
from ptaskmodel.platform import Platform, Torus
from ptaskmodel.workload.jobs import Workload
from ptaskmodel.workload.sampling import shuffled

# Who has priority, and whether by suspending the others.
POLICIES = {
    "bf": ("nobody", False),
    "bf rand": ("random", False),
    "sr rand": ("random", True),
    "bf size": ("size", False),
    "sr size": ("size", True),
}
BEGIN = 0.3  # of the submissions, until when the machine fills
SAMPLE_ORDERS = 5  # of each sample by work
MOST_HOSTS = 128  # of a machine that is simulated with contention


@cache
def torus(hosts: int) -> Platform:
    """A torus of so many hosts, as near to a cube as can be."""
    x = max(k for k in range(1, round(hosts ** (1 / 3)) + 1) if hosts % k == 0)
    y = max(k for k in range(1, math.isqrt(hosts // x) + 1) if hosts // x % k == 0)
    build = Platform.build("machine")
    build.cluster(
        "m",
        Torus((hosts // x // y, y, x)),
        prefix="n",
        speed=1e10,
        bandwidth=1.25e9,
        latency=1e-6,
        loopback=5e9,
        loopback_latency=1e-7,
    )
    return build.finish()


def policy_of(name: str) -> Policy:
    who, suspends = POLICIES[name]
    if suspends:
        return Preemptive(field="priority")
    return Easy() if who == "nobody" else Easy(order=lambda job: -job.extra["priority"])


def one_run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The measures of one policy on one order of one sample; 0 jobs: the machine is too large."""
    parameters = {**parameters, "whole": parameters["ratio"] * parameters["jobs"]}
    if parameters["part"] == "headline":
        log = parameters["log"]
        whole = log_of(log, parameters["headline"], processors_of(log))
    else:
        whole = whole_of(parameters["log"], parameters["whole"], parameters["load"])
    if parameters["part"] == "contention":
        assert whole.num_hosts is not None
        if whole.num_hosts > MOST_HOSTS:
            return {"jobs": 0}
        parameters["jobs"] = max(1, int(parameters["jobs"] * parameters["contending"]))
    workload = made(parameters)
    if parameters["part"] in ("huge", "huge alone"):
        workload = with_huge(workload, parameters["huge"])
    large = HEADLINE if parameters["part"] == "headline" else LARGE
    who = HUGE if parameters["part"] == "huge alone" else POLICIES[parameters["policy"]][0]
    workload = with_priority(workload, who, parameters["seed"], large)
    policy = policy_of(parameters["policy"])
    assert workload.num_hosts is not None
    alone = None
    if parameters["part"] == "contention":
        machine = machine_of(torus(workload.num_hosts))
        options = BatchOptions(profiles="ptask", ratio=1.0, walltimes="ignore")
        plan = Plan(machine, workload, options)
        schedule = BatchSimulation(
            plan.workload.jobs,
            machine.capacities,
            policy,
            execution=plan.execution,
            estimate=plan.estimate,
            limited=plan.limited,
        ).run()
        alone = np.array(plan.alone_s(list(schedule.ended())))
    elif parameters["part"] == "work orders":
        return in_orders(workload, policy)
    else:
        schedule = simulated(workload, policy)
    found = measured(schedule, alone)
    found |= likeness(workload, whole)
    found["high"] = sum(job.extra["priority"] for job in workload.jobs)
    if parameters["part"] in ("huge", "huge alone"):
        around = found["series"] = around_huge(schedule)
        found["huge_waits_s"] = around["start_s"] - around["submit_s"]
    return found


def simulated(workload: Workload, policy: Policy) -> Schedule:
    """The schedule of jobs without contention, on the hosts of their log."""
    assert workload.num_hosts is not None
    return BatchSimulation(
        workload.jobs, workload.num_hosts, policy, estimate=walltime_or_inf
    ).run()


def in_orders(workload: Workload, policy: Policy) -> dict[str, Any]:
    """The means of the measures over orders of one sample, and the deviation of the waits."""
    every = [measured(simulated(shuffled(workload, k), policy), None) for k in range(SAMPLE_ORDERS)]
    found = {name: float(np.mean([each[name] for each in every])) for name in every[0]}
    spread = float(np.std([each["waiting_s"] for each in every]))
    return found | {"spread_waiting_s": spread, "orders": SAMPLE_ORDERS}


def measured(schedule: Schedule, alone_s: np.ndarray | None) -> dict[str, Any]:
    """The published measures: means over jobs; run times are those alone, if contention counts."""
    times = job_times(schedule)
    base = times.execution_s if alone_s is None else alone_s
    slowdown = times.turnaround_s / base
    return {
        "jobs": len(base),
        "waiting_s": float(times.waiting_s.mean()),
        "response_s": float(times.turnaround_s.mean()),
        "slowdown": float(slowdown.mean()),
        "weighted_slowdown": float((slowdown * times.asked_hosts).mean()),
        "utilisation": metrics(schedule)["utilisation"],
        "steady_utilisation": steady(schedule),
        "suspended_s": float(times.suspended_s.mean()),
        "suspended_jobs": int((times.suspended_s > 0).sum()),
        "contention": float((times.execution_s / base).mean()),
    }


def steady(schedule: Schedule) -> float:
    """Share of the hosts in use from when `BEGIN` of the time of submissions is over to its end."""
    found, submitted = load(schedule), [attempt.job.submit_time_s for attempt in schedule.final]
    first, last = min(submitted), max(submitted)
    use = {"dates": found.date_s, "used": found.used_hosts, "hosts": schedule.num_hosts}
    return mean_use(use, first + BEGIN * (last - first), last)


def mean_use(found: Mapping[str, Any], since: float, to: float) -> float:
    """Share of the hosts in use between two dates."""
    dates, used = np.array(found["dates"]), np.array(found["used"])
    edges = np.clip(np.append(dates, np.inf), since, to)
    return float((np.diff(edges) * used).sum() / ((to - since) * found["hosts"]))


def around_huge(schedule: Schedule) -> dict[str, Any]:
    """The huge job's dates, the use of the machine around them, and whom it pushed aside."""
    huge = next(attempt for attempt in schedule.final if attempt.job.id == "huge")
    assert huge.start_s is not None
    found = load(schedule)
    before = int(np.searchsorted(found.date_s, huge.start_s)) - 1
    pushed = sum(
        attempt.job.num_hosts
        for attempt in schedule.attempts
        if any(since == huge.start_s for since, _ in attempt.suspensions)
    )
    return {
        "submit_s": huge.job.submit_time_s,
        "start_s": huge.start_s,
        "end_s": huge.end_s,
        "hosts": schedule.num_hosts,
        "pushed_hosts": pushed,
        "needed_hosts": huge.job.num_hosts - (schedule.num_hosts - int(found.used_hosts[before])),
        "dates": found.date_s.tolist(),
        "used": found.used_hosts.tolist(),
    }
