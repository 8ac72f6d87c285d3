"""Redirection in the compiled loop: what the kernel is told, and the schedule that it leaves."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.allocations import Allocation
from ptaskmodel.batch.attempt import KILLED, WAITING, Attempt
from ptaskmodel.batch.compiled.state import (
    BY_COUNTER,
    BY_ESTIMATE,
    BY_HOSTS,
    BY_START,
    Redirecting,
    State,
)
from ptaskmodel.batch.compiled_hosts import chosen_hosts
from ptaskmodel.batch.hostset import Mask, Runs
from ptaskmodel.batch.plain_schedule import STATES, Places, PlainAttempt
from ptaskmodel.batch.policies.easy import Easy
from ptaskmodel.batch.policies.redirection import Redirection
from ptaskmodel.batch.schedule import Schedule
from ptaskmodel.workload.job_arrays import JobArrays
from ptaskmodel.workload.jobs import Job

# What each rule of conflict compares, and its sign.
RULES = {
    "counter": (BY_COUNTER, -1),
    "longest": (BY_ESTIMATE, -1),
    "shortest": (BY_ESTIMATE, 1),
    "largest": (BY_HOSTS, -1),
    "smallest": (BY_HOSTS, 1),
    "oldest": (BY_START, 1),
    "youngest": (BY_START, -1),
}


def redirecting(policy: Redirection, arrays: JobArrays, hosts: int) -> Redirecting | None:
    """What the kernel is told; None if the policy, or a job, is not for it."""
    if type(policy.principal) is not Easy:
        return None
    principal, apart = policy.groups(hosts)
    sizes = arrays.num_hosts
    if not ((sizes >= 1) & (sizes <= principal.bit_count())).all():
        return None
    return Redirecting(apart.bit_count(), float(policy.theta), *RULES[policy.conflict])


def redirected_schedule(
    state: State,
    jobs: Sequence[Job],
    codes: NDArray[np.int8],
    groups: tuple[Mask, Mask],
    allocation: Allocation,
    now_s: float,
) -> Schedule:
    """What happened, the attempts that were stopped included. codes: states of the jobs."""
    clock, records = state.clock[0], state.jobs
    started, submitted = int(clock["started"]), int(clock["position"])
    lost = state.lost[: int(clock["n_lost"])]
    find = functools.cache(lambda: _places(state, groups, allocation))

    def runs_of(number: int) -> Runs:
        return find().runs(number)

    again = {int(row["job"]) for row in lost}
    attempts: list[Attempt] = [None] * started  # type: ignore[list-item]
    columns = ("job", "number", "start", "expected")
    for k, number, start, expected in zip(*(lost[name].tolist() for name in columns), strict=True):
        attempt = PlainAttempt(jobs[k], runs_of, start, expected, number, KILLED)
        attempt.end_s = float(records[k]["start"])
        attempt.reason = "redirected"
        attempts[number] = attempt
    final: list[Attempt] = []
    part = records[:submitted]
    ran = np.zeros(submitted, dtype=bool)
    ran[state.order[:started]] = True
    rows = zip(
        ran.tolist(),
        codes[:submitted].tolist(),
        *(part[name].tolist() for name in ("number", "start", "expected", "end", "over")),
        strict=True,
    )
    for k, (has_run, code, number, start, expected, end, over) in enumerate(rows):
        if not has_run:
            final.append(Attempt(jobs[k], 0, None, inf, -1, WAITING))
            continue
        attempt = PlainAttempt(jobs[k], runs_of, start, expected, number, STATES[code])
        attempt.end_s = end if over >= 0 else None
        attempt.ordinal = int(k in again)
        attempts[number] = attempt
        final.append(attempt)
    return Schedule(
        tuple(final),
        tuple(attempts),
        groups[0].bit_count() + groups[1].bit_count(),
        int(clock["decisions"]),
        now_s,
    )


def _places(state: State, groups: tuple[Mask, Mask], allocation: Allocation) -> Places:
    """The hosts of all attempts by number."""
    order = state.order[: int(state.clock[0]["started"])]
    lost = state.lost[: int(state.clock[0]["n_lost"])]
    records = state.jobs[order]
    began, over = records["began"].copy(), records["over"].copy()
    apart = records["apart"].copy()
    instead_of = np.full(len(order), -1)
    began[lost["number"]] = lost["began"]
    over[lost["number"]], apart[lost["number"]] = -1, 0
    instead_of[state.jobs["number"][lost["job"]]] = lost["number"]
    return chosen_hosts(allocation, groups, records["hosts"], began, over, apart, instead_of)
