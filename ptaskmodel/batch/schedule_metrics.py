"""Metrics of a schedule: waiting times, slowdowns, utilisation, and interference between jobs.

Interference divides the seconds that a job lost among other jobs. The loss is its execution time
minus the isolated run time, on the same hosts, of the work that it did. The charges of
`recording.attribution` are scaled so that their sum is this loss. No scaling is needed if the same
resource also limits the job when it runs alone.

Sources: Feitelson and Rudolph, "Metrics and benchmarking for parallel job scheduling", JSSPP 1998
(bounded slowdown); Zotkin and Keleher, "Job-length estimation and performance in backfilling
schedulers", HPDC 1999 (per-processor slowdown).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.jobs.execution import FAILED, KILLED, REJECTED, SUCCESS, WALLTIME
from ptaskmodel.batch.loop.schedule import Figures, Schedule, figures_of
from ptaskmodel.errors import SimulationError

if TYPE_CHECKING:
    from ptaskmodel.batch.jobs.execution import Attempt
    from ptaskmodel.batch.jobs.parallel_tasks import PtaskExecution

FloatArray = NDArray[np.float64]
PERCENTILES = (50, 90, 95, 99)
# Of an execution time as the difference of two late dates, relative.
ROUNDING = 1e-8


class JobTimes(NamedTuple):
    """Times of the jobs that ran and ended, in order of submission; one entry a job, s.

    A job that was killed and restarted waits until its last start and executes from there; while it
    is suspended it does not execute. hosts: of how many whole hosts its placement is worth;
    asked_hosts: without those that it holds beyond what it asked for.
    """

    submit_s: FloatArray
    start_s: FloatArray
    end_s: FloatArray
    hosts: FloatArray
    suspended_s: FloatArray
    asked_hosts: FloatArray

    @property
    def waiting_s(self) -> FloatArray:
        return self.start_s - self.submit_s

    @property
    def execution_s(self) -> FloatArray:
        return self.end_s - self.start_s - self.suspended_s

    @property
    def turnaround_s(self) -> FloatArray:
        return self.end_s - self.submit_s

    @property
    def slowdown(self) -> FloatArray:
        """Turnaround over execution; nan for jobs that executed for 0 s."""
        return np.divide(
            self.turnaround_s,
            self.execution_s,
            out=np.full(len(self.submit_s), math.nan),
            where=self.execution_s > 0,
        )

    def bounded_slowdown(self, tau_s: float) -> FloatArray:
        """max(1, turnaround / max(execution, tau))."""
        return np.maximum(1.0, self.turnaround_s / np.maximum(self.execution_s, tau_s))

    def per_processor_slowdown(self, tau_s: float) -> FloatArray:
        """max(1, turnaround / (hosts * max(execution, tau)))."""
        base = np.maximum(self.asked_hosts, 1) * np.maximum(self.execution_s, tau_s)
        return np.maximum(1.0, self.turnaround_s / base)


def job_times(schedule: Schedule) -> JobTimes:
    """Return the times of the jobs of a `schedule` that ran and ended."""
    return _job_times(figures_of(schedule))


def _job_times(figures: Figures) -> JobTimes:
    ended = figures.ended
    held, asked = figures.held_hosts[ended], figures.num_hosts[ended]
    return JobTimes(
        figures.submit_s[ended],
        figures.start_s[ended],
        figures.end_s[ended],
        held,
        figures.suspended_s[ended],
        np.minimum(held, asked),
    )


def distribution(values: FloatArray, weights: FloatArray | None = None) -> dict[str, float | None]:
    """Mean (weighted, if weights are given), standard deviation, extremes and percentiles.

    Undefined values (nan) are left out; all is None without any value.
    """
    defined = ~np.isnan(values)
    kept = values[defined]
    names = ["mean", "std", "min", *(f"p{p}" for p in PERCENTILES), "max"]
    if len(kept) == 0:
        return dict.fromkeys(names)
    used = None if weights is None or weights[defined].sum() == 0 else weights[defined]
    points = _percentiles(kept)
    numbers = [np.average(kept, weights=used), kept.std(), kept.min(), *points, kept.max()]
    return dict(zip(names, map(float, numbers), strict=True))


def _percentiles(values: FloatArray) -> FloatArray:
    """PERCENTILES of the ``values``, as `numpy.percentile` finds them, which loads numpy.ma."""
    place = (len(values) - 1) * (np.array(PERCENTILES) / 100)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, len(values) - 1)
    ordered = np.partition(values, sorted({*below.tolist(), *above.tolist()}))
    low, high = ordered[below], ordered[above]
    part, step = place - below, high - low
    return np.where(part < 0.5, low + step * part, high - step * (1 - part))


def metrics(
    schedule: Schedule, *, tau_s: float = 60.0, alone_s: Sequence[float] | None = None
) -> dict[str, Any]:
    """Return all metrics of a `schedule`, times in s.

    Distributions cover the jobs that ran, killed ones included. Weighted means weigh a job by hosts
    times execution time. ``utilisation`` is the share of host seconds in use from the first
    submission to the last end, lost runs included; ``mean_used_hosts`` counts from the first start.
    tau_s: threshold of the bounded slowdown, s. ``alone_s``: isolated run time of each job that
    ran, s; gives the contention slowdown (``contention_slowdown_jobs``: of how many of them),
    ``useful_utilisation`` (what the machine would have needed without contention for the jobs that
    were not killed), and ``killed_only_by_neighbours`` (how many jobs would have ended alone before
    the walltime at which they were killed). Raises SimulationError if tau is not positive.
    """
    if not 0 < tau_s < math.inf:
        raise SimulationError(f"tau is {tau_s:g} s: it must be positive")
    figures = figures_of(schedule)
    times = _job_times(figures)
    area = times.hosts * times.execution_s
    found: dict[str, Any] = {"jobs": _counts(figures), "tau_s": tau_s}
    found |= _machine_use(figures, schedule.num_hosts, times)
    named = {
        "waiting_s": times.waiting_s,
        "turnaround_s": times.turnaround_s,
        "execution_s": times.execution_s,
        "slowdown": times.slowdown,
        "bounded_slowdown": times.bounded_slowdown(tau_s),
        "per_processor_bounded_slowdown": times.per_processor_slowdown(tau_s),
    }
    for name, values in named.items():
        found[name] = distribution(values)
    for name in ("waiting_s", "slowdown", "bounded_slowdown"):
        found[f"weighted_{name}"] = distribution(named[name], area)["mean"]
    found |= _losses(schedule)
    if alone_s is not None:
        slowdowns = contention_slowdown(schedule, alone_s)
        found |= contention_measures(slowdowns)
        found["killed_only_by_neighbours"] = killed_only_by_neighbours(schedule, alone_s)
        found["useful_utilisation"] = _useful(schedule, times, alone_s, found["span_s"])
    return found


def killed_only_by_neighbours(schedule: Schedule, alone_s: Sequence[float]) -> int:
    """Return how many jobs of a `schedule` were killed at a walltime that sufficed for them alone.

    alone_s: isolated run time of each job that ran, s.
    """
    figures = figures_of(schedule)
    ended = figures.ended
    states = np.array(figures.states, dtype=object)[ended]
    needed = np.asarray(alone_s, dtype=np.float64) + figures.overhead_s[ended]
    return int(((states == WALLTIME) & (needed < figures.walltime_s[ended])).sum())


def _losses(schedule: Schedule) -> dict[str, float]:
    """Host seconds of work lost, spent on checkpoints, suspended, and of hosts that were not there.

    Lost is what attempts that were stopped (requeued, killed, or interrupted by a failure) had done
    and no checkpoint kept.
    """
    lost, overhead, suspended = [], [], []
    # Those of the compiled loop are neither stopped nor suspended.
    for attempt in schedule.attempts if schedule.plain is None else ():
        suspended_s = attempt.suspended_s(schedule.now_s)
        suspended.append(attempt.use * suspended_s)
        overhead.append(attempt.use * attempt.overhead_s)
        if attempt.end_s is not None and (
            attempt.state == KILLED or (attempt.state == FAILED and attempt.reason)
        ):
            work_s = attempt.end_s - (attempt.start_s or 0.0) - suspended_s - attempt.overhead_s
            lost.append(attempt.use * (work_s - attempt.kept_s))
    return {
        "lost_host_s": math.fsum(lost),
        "checkpoint_host_s": math.fsum(overhead),
        "suspended_host_s": math.fsum(suspended),
        "unavailable_host_s": unavailable_host_seconds(schedule, schedule.now_s),
    }


def _useful(
    schedule: Schedule, times: JobTimes, alone_s: Sequence[float], span_s: float | None
) -> float | None:
    """Host seconds that the jobs that were not killed need alone, over all host seconds."""
    if not span_s:
        return None
    figures = figures_of(schedule)
    done = ~figures.cut[figures.ended]
    needed = times.hosts * np.asarray(alone_s, dtype=np.float64)
    return float(np.nansum(needed[done])) / (schedule.num_hosts * span_s)


def contention_measures(slowdowns: FloatArray) -> dict[str, Any]:
    """Return the distribution of the contention `slowdowns`, and how many jobs it covers."""
    known = int((~np.isnan(slowdowns)).sum())
    return {
        "contention_slowdown": distribution(slowdowns),
        "contention_slowdown_jobs": {"known": known, "of": len(slowdowns)},
    }


def contention_slowdown(schedule: Schedule, alone_s: Sequence[float]) -> FloatArray:
    """Return execution time over isolated run time, for the part of its work that a job did.

    schedule: its jobs that ran. alone_s: isolated run time of each, on the same placement, s.
    Checkpoints do not count as execution. A killed job did the part that its progress at the end
    says. nan where that is 0 or unknown, and for jobs that take 0 s alone; 1 where the times differ
    only by the rounding of times.
    """
    figures = figures_of(schedule)
    ended = figures.ended
    needed = figures.done[ended] * np.asarray(alone_s, dtype=np.float64)
    found = np.divide(
        job_times(schedule).execution_s - figures.overhead_s[ended],
        needed,
        out=np.full(len(needed), math.nan),
        where=needed > 0,
    )
    found[np.abs(found - 1.0) <= ROUNDING] = 1.0
    return found


def _counts(figures: Figures) -> dict[str, int]:
    states = figures.states
    counted = [states.count(state) for state in (SUCCESS, WALLTIME, REJECTED)]
    return {
        "all": len(states),
        "succeeded": counted[0],
        "killed_at_walltime": counted[1],
        "rejected": counted[2],
        "other": len(states) - sum(counted),
        "lost_runs": figures.attempts - int((~np.isnan(figures.start_s)).sum()),
    }


def _machine_use(figures: Figures, num_hosts: int, times: JobTimes) -> dict[str, float | None]:
    names = ("makespan_s", "span_s", "utilisation", "mean_used_hosts", "throughput_jobs_per_hour")
    if len(times.end_s) == 0:
        return dict.fromkeys(names)
    used = _used_host_seconds(figures)
    end = float(times.end_s.max())
    span = end - float(figures.submit_s.min())
    first_start = float(figures.stretch_from_s.min())
    return {
        "makespan_s": end,
        "span_s": span,
        "utilisation": used / (num_hosts * span) if span > 0 else None,
        "mean_used_hosts": used / (end - first_start) if end > first_start else None,
        "throughput_jobs_per_hour": 3600 * len(times.end_s) / span if span > 0 else None,
    }


def used_host_seconds(schedule: Schedule) -> float:
    """Return the host seconds that a `schedule` spent on jobs, lost attempts included."""
    return _used_host_seconds(figures_of(schedule))


def _used_host_seconds(figures: Figures) -> float:
    lasted = figures.stretch_to_s - figures.stretch_from_s
    return math.fsum((figures.stretch_hosts * lasted).tolist())


def unavailable_hosts(schedule: Schedule) -> list[tuple[float, int]]:
    """Return (time in s, hosts down, drained or in maintenance from then on) at each change.

    schedule: of a whole run.
    """
    ways = (("down", "up"), ("maintenance", "maintenance over"), ("drained", "drained no more"))
    gone = dict.fromkeys((begins for begins, _ in ways), 0)
    found: list[tuple[float, int]] = []
    for change in schedule.host_changes:
        for begins, ends in ways:
            if change.state == begins:
                gone[begins] |= int(change.hosts)
            elif change.state == ends:
                gone[begins] &= ~int(change.hosts)
        count = (gone["down"] | gone["maintenance"] | gone["drained"]).bit_count()
        if found and found[-1][0] == change.date_s:
            found.pop()
        if count != (found[-1][1] if found else 0):
            found.append((change.date_s, count))
    return found


def unavailable_host_seconds(schedule: Schedule, until_s: float) -> float:
    """Return the host seconds of a `schedule` down, drained or in maintenance up to ``until_s``."""
    changes = [(date, count) for date, count in unavailable_hosts(schedule) if date < until_s]
    ends = [*(date for date, _ in changes[1:]), until_s]
    return math.fsum(
        count * (end - date) for (date, count), end in zip(changes, ends, strict=False)
    )


class Load(NamedTuple):
    """What is in use and what waits over time: values hold from ``date_s[k]`` on.

    Hosts in use are whole numbers unless jobs share hosts.
    """

    date_s: FloatArray
    waiting_jobs: NDArray[np.int64]
    requested_hosts: NDArray[np.int64]
    running_jobs: NDArray[np.int64]
    used_hosts: NDArray[np.int64] | FloatArray


def load(schedule: Schedule) -> Load:
    """Return the queue and the use of the machine in a `schedule` at each time of a change."""
    figures = figures_of(schedule)
    started = ~np.isnan(figures.first_start_s)
    came = started | figures.waiting
    hosts, waited = figures.stretch_hosts, figures.num_hosts
    stretches = np.column_stack((figures.stretch_from_s, figures.stretch_to_s)).ravel()
    dates = np.concatenate((stretches, figures.submit_s[came], figures.first_start_s[started]))
    order = np.argsort(dates, kind="stable")  # much faster than any other where most are in order
    ordered = dates[order]
    is_new = np.diff(ordered, prepend=-np.inf) > 0
    unique, place = ordered[is_new], np.empty(len(dates), dtype=np.int64)
    place[order] = np.cumsum(is_new) - 1
    ran, asked, began = np.split(place, (len(stretches), len(dates) - int(started.sum())))

    def over_time(kind: Any, *changes: tuple[NDArray[Any], Any]) -> Any:
        total: NDArray[Any] = np.zeros(len(unique), dtype=kind)
        for places, change in changes:
            np.add.at(total, places, change)
        return np.cumsum(total)

    return Load(
        unique,
        over_time(np.int64, (asked, 1), (began, -1)),
        over_time(np.int64, (asked, waited[came]), (began, -waited[started])),
        over_time(np.int64, (ran[0::2], 1), (ran[1::2], -1)),
        over_time(hosts.dtype, (ran, np.column_stack((hosts, -hosts)).ravel())),
    )


def lost_seconds(
    execution: PtaskExecution,
    ended: Iterable[Attempt],
    alone_s: Sequence[float],
    charges: Mapping[tuple[int, int], float],
) -> list[tuple[str, str, float]]:
    """(job, neighbour, seconds that the neighbour cost the job), by job, the worst first.

    execution: of the jobs. ended: their last attempts, of those that ran and ended; alone_s: how
    long each takes alone, s. charges: seconds by task and other task, as of `Neighbours`. Jobs that
    were cut off are left out where it is not known how far they were: so is what they lost.
    """
    by_attempt: dict[int, dict[int, float]] = {}
    for (task, other), charge in charges.items():
        victim, culprit = (execution.attempt_of_task[each] for each in (task, other))
        if victim != culprit:
            part = by_attempt.setdefault(victim, {})
            part[culprit] = part.get(culprit, 0.0) + charge
    found = []
    for attempt, alone in zip(ended, alone_s, strict=True):
        assert attempt.end_s is not None
        assert attempt.start_s is not None
        ran = attempt.end_s - attempt.start_s - attempt.suspended_s(attempt.end_s)
        lost = ran - attempt.overhead_s - attempt.part_done * alone
        part = by_attempt.get(attempt.number, {})
        total = sum(part.values())
        if total <= 0 or not lost > 0:
            continue
        costs = sorted(part.items(), key=lambda item: -lost * item[1] / total)
        found += [(attempt.job.id, execution.job_of[other], lost * charge / total)
                  for other, charge in costs]  # fmt: skip
    return found
