"""Run batches of known run times in the compiled loop, and make their schedule.

`batch.run` calls it when nothing needs Python during the run: jobs last a known time on whole
hosts, the policy is built in, and the allocation never delays a job. Start times then do not depend
on hosts, and ranks in the queue are known in advance. The schedule is bit-identical to that of the
open loop. The kernel applies first fit itself. Other allocation rules, and those of redirection,
choose the hosts afterwards, start by start, in the order of the open loop.
"""

from __future__ import annotations

import functools
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.allocations import Allocation
from ptaskmodel.batch.allocations.rules import (
    Contiguous,
    FewestSwitches,
    FirstFit,
    Random,
    Spread,
)
from ptaskmodel.batch.compiled.loop import advance
from ptaskmodel.batch.compiled.state import (
    BY_COUNTER,
    BY_ESTIMATE,
    BY_HOSTS,
    BY_START,
    CIRCLES,
    CONSERVATIVE,
    EASY,
    FCFS,
    FILLER,
    FULL,
    JOB,
    PAUSED,
    REDIRECTION,
    Redirecting,
    State,
    new_state,
    with_more_pieces,
)
from ptaskmodel.batch.jobs.execution import KILLED, WAITING, Attempt, Estimate, estimates_of
from ptaskmodel.batch.loop.schedule import (
    CUT,
    FAILS,
    STATES,
    STILL_RUNS,
    SUCCEEDED,
    WAITS,
    HostRuns,
    PlainAttempt,
    PlainSchedule,
    Schedule,
    schedule_of,
)
from ptaskmodel.batch.machine.host_sets import Mask, Runs, first_hosts, runs
from ptaskmodel.batch.policies import KEYS, NamedOrder
from ptaskmodel.batch.policies.backfilling import Conservative, Easy, Fcfs, Filler
from ptaskmodel.batch.policies.redirection import Redirection
from ptaskmodel.workload.jobs import Job, JobArrays, job_arrays

if TYPE_CHECKING:
    from ptaskmodel.batch.loop.view import Policy

Ints = NDArray[np.int64]
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
Progress = Callable[[float, int, int], None]
POLICIES = {
    Fcfs: FCFS,
    Filler: FILLER,
    Easy: EASY,
    Conservative: CONSERVATIVE,
    Redirection: REDIRECTION,
}
ALLOCATIONS = (FirstFit, Contiguous, Random, Spread, FewestSwitches)
# Decisions between two calls of `progress`: at most so many, at first so many, and fewer where
# they take longer than that, s.
PAUSE = 20_000
FIRST_PAUSE = 16
LONG_S = 0.5
MOST_HOSTS = 2**31


def chosen_hosts(
    allocation: Allocation,
    groups: Sequence[Mask],
    sizes: Ints,
    began: Ints,
    over: Ints,
    group: Ints | None = None,
    stopped: Iterable[tuple[int, int]] = (),
) -> HostRuns:
    """The hosts that an allocation chooses for each attempt.

    groups: of hosts. By number of the attempt: how many hosts it needs, at which decision it began,
    before which it ended (-1: not by itself), in which group it is (the first, if left out).
    stopped: (number of an attempt that was stopped, number of the next start), in this order.
    """
    ended = np.flatnonzero(over >= 0)
    leaving = ended[np.argsort(over[ended], kind="stable")].tolist()
    left = over[leaving].tolist()
    groups_of = repeat(0, len(sizes)) if group is None else group.tolist()
    stops = deque(stopped)
    free, gone = list(groups), 0
    running: dict[int, tuple[int, Mask]] = {}
    begins, first, length = [0], [], []

    def give_back(number: int) -> None:
        place, mask = running.pop(number)
        free[place] |= mask

    rows = zip(began.tolist(), sizes.tolist(), groups_of, strict=True)
    for number, (decision, size, place) in enumerate(rows):
        while gone < len(left) and left[gone] < decision:
            give_back(leaving[gone])
            gone += 1
        while stops and stops[0][1] <= number:
            give_back(stops.popleft()[0])
        mask = allocation.choose(size, free[place])
        assert mask is not None
        free[place] &= ~mask
        running[number] = place, mask
        for begin, count in runs(mask):
            first.append(begin)
            length.append(count)
        begins.append(len(first))
    return HostRuns(
        np.array(begins, dtype=np.int64),
        np.array(first, dtype=np.int32),
        np.array(length, dtype=np.int32),
    )


def redirecting(policy: Redirection, arrays: JobArrays, hosts: int) -> Redirecting | None:
    """What the kernel is told; None if the policy, or a job, is not for it."""
    if type(policy.principal) is not Easy:
        return None
    principal, apart = policy.groups(hosts)
    sizes = arrays.num_hosts
    if not ((sizes >= 1) & (sizes <= principal.bit_count())).all():
        return None
    rule = RULES[policy.conflict]
    return Redirecting(apart.bit_count(), float(policy.theta), *rule, policy.queues)


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

    moved = lost["job"].tolist()
    waiting = set(moved[int(clock["n_again"]) :])
    again = set(moved) - waiting
    attempts: list[Attempt] = [None] * started  # type: ignore[list-item]
    columns = ("job", "number", "start", "expected", "end")
    rows = zip(*(lost[name].tolist() for name in columns), strict=True)
    for k, number, start, expected, end in rows:
        attempt = PlainAttempt(jobs[k], runs_of, start, expected, number, KILLED)
        attempt.end_s = end
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
        if k in waiting:
            final.append(attempts[number])
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


def _places(state: State, groups: tuple[Mask, Mask], allocation: Allocation) -> HostRuns:
    """The hosts of all attempts by number."""
    order = state.order[: int(state.clock[0]["started"])]
    lost = state.lost[: int(state.clock[0]["n_lost"])]
    records = state.jobs[order]
    began, over = records["began"].copy(), records["over"].copy()
    apart = records["apart"].copy()
    began[lost["number"]] = lost["began"]
    over[lost["number"]], apart[lost["number"]] = -1, 0
    stopped = zip(lost["number"].tolist(), lost["before"].tolist(), strict=True)
    return chosen_hosts(allocation, groups, records["hosts"], began, over, apart, stopped)


@dataclass(slots=True, eq=False)
class CompiledBatch:
    """A batch ready for the compiled loop, at date 0.

    codes: what becomes of each job that ends. done: which part of its work each job that is cut off
    has done; nan: unknown. groups: of hosts, under redirection.
    """

    jobs: Sequence[Job]
    arrays: JobArrays
    hosts: int
    allocation: Allocation
    codes: NDArray[np.int8]
    done: NDArray[np.float64]
    state: State
    groups: tuple[Mask, Mask] | None = None

    def run(self, until_s: float = inf, progress: Progress | None = None) -> Schedule | None:
        """Simulate up to a date, to the end by default.

        None if it does not come to an end as it should: the open loop says why.
        """
        state = self.state
        clock = state.clock
        clock["until"] = until_s
        pause = PAUSE if progress is None else FIRST_PAUSE
        while True:
            clock["pause"], began = pause, time.perf_counter()
            status = advance(state)
            if progress is not None:
                long = time.perf_counter() - began > LONG_S
                pause = max(1, pause // 2) if long else min(PAUSE, 2 * pause)
            if status == FULL:
                self.state = state = with_more_pieces(state)
                continue
            if progress is not None:
                names = ("now", "over", "waiting", "n_lost", "n_again")
                now, over, waiting, lost, again = (clock[name].item() for name in names)
                progress(now, over, waiting + lost - again)
            if status != PAUSED:
                break
        if status == CIRCLES or (until_s == inf and clock["waiting"].item()):
            return None
        return self.schedule(until_s)

    def schedule(self, until_s: float) -> Schedule:
        """What has happened up to a date."""
        state = self.state
        clock, jobs = state.clock[0], state.jobs
        submitted, started = int(clock["position"]), int(clock["started"])
        order = state.order[:started]
        times: dict[str, Any] = {}
        for name in ("start", "end", "expected"):
            times[name] = np.full(submitted, np.nan)
        number = np.full(submitted, -1, dtype=np.int64)
        number[order] = np.arange(started)
        times["start"][order] = jobs["start"][order]
        times["expected"][order] = jobs["expected"][order]
        over = order[jobs["over"][order] >= 0]
        times["end"][over] = jobs["end"][over]
        codes = np.full(submitted, WAITS, dtype=np.int8)
        codes[order] = STILL_RUNS
        codes[over] = self.codes[over]
        now_s = float(clock["now"]) if until_s == inf else until_s
        if self.groups is not None:
            return redirected_schedule(state, self.jobs, codes, self.groups, self.allocation, now_s)
        if clock["picks"]:
            pieces = state.pieces[: clock["n_pieces"]]
            places = HostRuns(
                state.first_piece[: started + 1], pieces["first"].copy(), pieces["length"].copy()
            )
        else:
            records = jobs[order]
            places = chosen_hosts(
                self.allocation,
                [first_hosts(self.hosts)],
                *(records[name] for name in ("hosts", "began", "over")),
            )
        plain = PlainSchedule(
            self.jobs,
            self.arrays,
            times["start"],
            times["end"],
            times["expected"],
            number,
            codes,
            np.where(codes == CUT, self.done[:submitted], 1.0),
            places,
            self.hosts,
            int(clock["decisions"]),
            now_s,
        )
        return schedule_of(plain)


def prepare_kernels() -> None:
    """Use the kernel as it is used (see `kernels.building`)."""
    nobody, none = np.zeros(0, JOB), np.zeros(0, np.int64)
    advance(new_state(FCFS, 1, nobody, none, None, picks=True, pause=1, most=1))


def compiled_batch(
    jobs: Sequence[Job],
    hosts: int,
    policy: Policy,
    allocation: Allocation,
    *,
    estimate: Estimate,
    limited: bool,
    most_decisions: int,
    simulated: bool = False,
) -> CompiledBatch | None:
    """What the compiled loop needs; None if something about the batch is not for it.

    jobs: in order of submission. Keys of orders and estimates are asked for once. most_decisions:
    at one date, before the loop gives up. simulated: a simulation will say how long jobs last, on
    hosts that first fit chooses (see `compiled_ptasks`).
    """
    kind = POLICIES.get(type(policy))
    if kind is None or type(allocation) not in ALLOCATIONS or allocation.constrained:
        return None
    if simulated and (kind == REDIRECTION or type(allocation) is not FirstFit):
        return None
    try:
        arrays = job_arrays(jobs)
        if not (_can_run(arrays, hosts) and _lasts(arrays, simulated)):
            return None
        told = None
        if isinstance(policy, Redirection):
            told = redirecting(policy, arrays, hosts)
            if told is None:
                return None
        estimates = estimates_of(estimate, jobs, arrays)
        by_rank = _sorted_by(getattr(policy, "order", None), jobs, arrays)
        backfill_order = getattr(getattr(policy, "principal", policy), "backfill_order", None)
        by_candidate = None
        if backfill_order is not None and by_rank is not None:
            by_candidate = _sorted_by(backfill_order, jobs, arrays, by_rank)
    except Exception:  # of a function of the user's: the open loop says when it happens, and where
        return None
    if by_rank is None or not (estimates >= 0).all():
        return None
    if backfill_order is not None and by_candidate is None:
        return None
    records = np.zeros(len(jobs), JOB)
    cut = arrays.duration_s >= arrays.walltime_s if limited else np.zeros(len(jobs), dtype=bool)
    records["submit"] = arrays.submit_s
    records["hosts"] = arrays.num_hosts
    records["estimate"] = estimates
    records["walltime"] = arrays.limit_s if limited else inf
    records["duration"] = np.where(cut, arrays.walltime_s, arrays.duration_s)
    if simulated:
        records["duration"] = records["walltime"]
    records["rank"][by_rank] = np.arange(len(jobs))
    if by_candidate is not None:
        records["candidate"][by_candidate] = np.arange(len(jobs))
    records["over"] = -1
    codes = np.where(cut, CUT, np.where(arrays.fails, FAILS, SUCCEEDED)).astype(np.int8)
    state = new_state(
        kind,
        hosts if told is None else hosts - told.hosts,
        records,
        by_rank,
        by_candidate,
        picks=type(allocation) is FirstFit and told is None,
        pause=PAUSE,
        most=most_decisions,
        redirecting=told,
        depth=getattr(policy, "depth", None) or 0,
    )
    groups = policy.groups(hosts) if isinstance(policy, Redirection) else None
    done = np.full(len(jobs), np.nan)
    return CompiledBatch(jobs, arrays, hosts, allocation, codes, done, state, groups)


def _can_run(arrays: JobArrays, hosts: int) -> bool:
    """Whether every job is on whole hosts that exist."""
    submit, sizes = arrays.submit_s, arrays.num_hosts
    return bool(
        arrays.plain
        and hosts < MOST_HOSTS
        and ((submit >= 0) & (submit < inf)).all()
        and (np.diff(submit) >= 0).all()
        and ((sizes >= 0) & (sizes <= hosts)).all()
        and not (arrays.walltime_s < 0).any()
    )


def _lasts(arrays: JobArrays, simulated: bool) -> bool:
    """Whether every job lasts a known time; or whether none does, and all have hosts."""
    if simulated:
        return bool(np.isnan(arrays.duration_s).all() and (arrays.num_hosts > 0).all())
    return bool(((arrays.duration_s >= 0) & (arrays.duration_s < inf)).all())


# --- orders


def _sorted_by(
    order: Callable[[Job], Any] | None,
    jobs: Sequence[Job],
    arrays: JobArrays,
    before: Ints | None = None,
) -> Ints | None:
    """The jobs in an order, ties as ``before`` (by submission); None if keys are not for sorting.

    Only numbers, texts and tuples of them: for others, < may be no total order.
    """
    first = np.arange(len(jobs)) if before is None else before
    if order is None:
        return first
    keys = _keys(order, jobs, arrays)
    if isinstance(keys, np.ndarray):
        if np.isnan(keys).any():
            return None
        return first[np.argsort(keys[first], kind="stable")]
    if not all(map(_can_be_sorted, keys)):
        return None
    return np.array(sorted(first.tolist(), key=keys.__getitem__), dtype=np.int64)


def _keys(
    order: Callable[[Job], Any], jobs: Sequence[Job], arrays: JobArrays
) -> list[Any] | NDArray[Any]:
    """The key of each job in an order; in an array if it can be."""
    if isinstance(order, NamedOrder):
        key = KEYS[order.name]
        estimates = estimates_of(order.estimate, jobs, arrays) if key.asks_estimates else 0.0
        with np.errstate(invalid="ignore"):
            return np.asarray(key.of(arrays.num_hosts, estimates))
    keys = [order(job) for job in jobs]
    return np.array(keys) if set(map(type, keys)) == {float} else keys


def _can_be_sorted(key: Any) -> bool:
    if type(key) is tuple:
        return all(map(_can_be_sorted, key))
    return type(key) in (int, bool, str) or (type(key) is float and key == key)
