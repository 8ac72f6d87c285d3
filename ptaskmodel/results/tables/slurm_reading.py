"""Read the jobs of a Slurm run, and compute their load over time and their groups.

Load is the number of waiting and running jobs, and the CPUs that they request and use. Groups are
by user, account, partition, size and length. `idle_while_waiting` says how much of
a machine was idle while jobs waited.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.directory import finite, number, read_table, rows
from ptaskmodel.results.states import in_words
from ptaskmodel.slurm.conf import values

Array = NDArray[np.float64]
REASON_COLUMNS = ("time", "reason", "jobs")
CYCLE_COLUMNS = ("time", "controller", "queue", "tested", "started", "lasted", "end")
# A spell in which less than this part of the machine works while jobs wait is worth pointing at.
HALF = 0.5


class Spell(NamedTuple):
    """Dates in s, and the least and the most that was in use between them while jobs waited."""

    begin_s: float
    end_s: float
    least: float
    most: float


class Idle(NamedTuple):
    """Capacity times s that stood idle while jobs waited, and the spell with most of it, if any."""

    idle: float
    worst: Spell | None


def idle_while_waiting(
    submits_s: Array, starts_s: Array, ends_s: Array, sizes: Array, capacity: float
) -> Idle:
    """Return what stood idle at all dates at which some job waited.

    submits_s, starts_s, ends_s: of each job, s, shape (n,); a job that never starts waits until its
    `starts_s` and ends then. sizes: what each uses of the `capacity`, hosts or CPUs.
    """
    dates = np.unique(np.concatenate([submits_s, starts_s, ends_s]))
    if len(dates) < 2:
        return Idle(0.0, None)

    def level(begins: Array, ends: Array, weights: Array) -> Array:
        changes = np.zeros(len(dates))
        np.add.at(changes, np.searchsorted(dates, begins), weights)
        np.add.at(changes, np.searchsorted(dates, ends), -weights)
        return np.cumsum(changes)[:-1]

    ones = np.ones(len(sizes))
    waiting = level(submits_s, np.maximum(starts_s, submits_s), ones) > 0.5
    used = level(starts_s, np.maximum(ends_s, starts_s), sizes)
    idle = np.where(waiting, np.maximum(capacity - used, 0.0), 0.0) * np.diff(dates)
    low = np.concatenate([[False], waiting & (used < HALF * capacity), [False]])
    begins, ends = (np.flatnonzero(low[1:] & ~low[:-1]), np.flatnonzero(~low[1:] & low[:-1]))
    if not len(begins):
        return Idle(float(idle.sum()), None)
    sums = np.concatenate([[0.0], np.cumsum(idle)])
    k = int(np.argmax(sums[ends] - sums[begins]))
    inside = used[begins[k] : ends[k]]
    spell = Spell(float(dates[begins[k]]), float(dates[ends[k]]), inside.min(), inside.max())
    return Idle(float(idle.sum()), spell)


COMMANDS = ("slurm", "slurm-live")
JOBS, REASONS, CYCLES = "jobs.csv", "reasons.csv", "cycles.csv"
LIVE = "meta.json"  # of a real Slurm
NO_REASON = "None"  # as Slurm writes that a job does not wait
# What is read of jobs.csv; the columns of later versions may be missing.
NEEDED = (
    *("job_id", "user", "partition", "submission_time", "starting_time", "finish_time"),
    *("nodes", "cpus", "final_state", "scheduler"),
)
# More points than these are no more than a picture can show.
MOST_POINTS = 3000

# Full passes are a minute or two apart; where there is no sample for three, no job waited.
GAP_s = 180.0
# Sizes are powers of this, in CPUs.
STEP = 4
LENGTHS = (
    (60.0, "up to 1 min"),
    (600.0, "1 to 10 min"),
    (3600.0, "10 min to 1 h"),
    (6 * 3600.0, "1 to 6 h"),
    (86400.0, "6 to 24 h"),
    (math.inf, "above 1 d"),
)


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job of a Slurm run. Dates in s from date 0; None for what did not happen.

    nodes: as Slurm writes them. slowdown: by contention on the platform. reason: why it is refused
    or waits; "": neither. logged_wait_s: how long it waited in the log that it is from.
    restarts: how often it was requeued.
    """

    job_id: str
    user: str
    account: str
    partition: str
    submit_s: float
    start_s: float | None
    end_s: float | None
    limit_s: float | None
    nodes: str
    cpus: int
    state: str
    scheduler: str
    suspended_s: float
    slowdown: float | None
    reason: str
    logged_wait_s: float | None = None
    restarts: int = 0

    @property
    def wait_s(self) -> float | None:
        """How long it waited, s; None: it never started."""
        return None if self.start_s is None else self.start_s - self.submit_s

    @property
    def run_s(self) -> float | None:
        """How long it ran, what it was suspended not counted, s."""
        if self.start_s is None or self.end_s is None:
            return None
        return self.end_s - self.start_s - self.suspended_s


def is_slurm(summary: Mapping[str, Any]) -> bool:
    """Whether a summary is that of Slurm, simulated or real."""
    return summary.get("command") in COMMANDS


def jobs_of(directory: Path) -> Iterator[SlurmJob]:
    """The jobs one by one. Raises OSError, ValueError or csv.Error."""
    for row in rows(directory / JOBS, *NEEDED):
        yield SlurmJob(
            row["job_id"],
            row["user"],
            row.get("account", ""),
            row["partition"],
            finite(row["submission_time"]),
            number(row["starting_time"]),
            number(row["finish_time"]),
            number(row.get("requested_time")),
            row["nodes"],
            int(row["cpus"] or 0),
            row["final_state"],
            row["scheduler"],
            number(row.get("suspended_time")) or 0.0,
            number(row.get("contention_slowdown")),
            "" if row.get("reason") in (None, NO_REASON) else row["reason"],
            number(row.get("logged_waiting_time")),
            int(row.get("restarts") or 0),
        )


def node_names(nodes: str) -> tuple[str, ...]:
    """The names in a list of nodes as Slurm writes it. Raises ValueError."""
    return values.hosts(nodes) if nodes else ()


def read_reasons(directory: Path) -> dict[str, list[tuple[float, int]]]:
    """(date, jobs) of each reason to wait, from reasons.csv, dates ascending.

    A real Slurm writes none.
    """
    found: dict[str, list[tuple[float, int]]] = {}
    if not (directory / REASONS).exists() and (directory / LIVE).exists():
        return found
    for date, reason, jobs in _read(directory / REASONS, time=finite, reason=str, jobs=int):
        found.setdefault(reason, []).append((date, jobs))
    return found


def reason_curves(directory: Path, end_s: float) -> dict[str, Curve]:
    """Jobs that wait for each reason up to ``end_s``, that of most waiting first; {}: none waits.

    directory: of results.

    The main scheduler's full passes tell of it, a minute or two apart; where there is none for
    three minutes, no job waited.
    """
    found = read_reasons(directory)
    if not found:
        return {}
    dates = np.array(sorted({date for points in found.values() for date, _ in points}))
    after = np.append(dates[1:], max(end_s, dates[-1] + GAP_s))
    emptied = dates[after - dates > GAP_s] + GAP_s / 2
    every = np.unique(np.concatenate([[min(0.0, dates[0])], dates, emptied, after[-1:]]))
    curves = {}
    for reason, points in found.items():
        values = np.zeros(len(every))
        for at, jobs in points:
            values[np.searchsorted(every, at)] = jobs
        curves[reason] = thinned(Curve(every, values))
    return dict(sorted(curves.items(), key=lambda item: -item[1].integral))


def read_cycles(directory: Path) -> list[tuple[Any, ...]]:
    """(date, queue, tested, how long it took in s, why it was over) of each backfill cycle."""
    columns: dict[str, Callable[[str], Any]] = {"queue": int, "tested": int, "lasted": finite}
    return _read(directory / CYCLES, time=finite, **columns, end=str)


def _read(path: Path, **columns: Callable[[str], Any]) -> list[tuple[Any, ...]]:
    if not path.exists():
        raise PTaskModelError(f"{path}: is missing; simulate again")
    return read_table(path, **columns)


class Curve(NamedTuple):
    """A quantity from each date (s) on; the last date is the end."""

    dates_s: Array
    values: Array

    @property
    def integral(self) -> float:
        """The sum of the values, times how long they hold, s."""
        return float((self.values[:-1] * np.diff(self.dates_s)).sum())


def waiting(jobs: Sequence[SlurmJob], end_s: float, cpus: bool = False) -> Curve:
    """Jobs that wait, or the CPUs that they will get; those that never start wait until the end."""
    spans = [(j.submit_s, j.start_s if j.start_s is not None else j.end_s or end_s) for j in jobs]
    return _curve(spans, [float(job.cpus) if cpus else 1.0 for job in jobs], end_s)


def used(jobs: Sequence[SlurmJob], end_s: float) -> Curve:
    """CPUs that jobs have, suspended ones included."""
    ran = [job for job in jobs if job.start_s is not None]
    spans = [(job.start_s or 0.0, end_s if job.end_s is None else job.end_s) for job in ran]
    return _curve(spans, [float(job.cpus) for job in ran], end_s)


def queue_depth(jobs: Sequence[SlurmJob], end_s: float, points: int = 600) -> Curve:
    """How long the jobs that wait have waited so far, summed, s, at equally spaced dates."""
    dates = np.linspace(0.0, end_s, points)
    begins = np.array([job.submit_s for job in jobs])
    ends = np.array(
        [job.start_s if job.start_s is not None else job.end_s or end_s for job in jobs]
    )
    by_begin, by_end = np.sort(begins), np.argsort(ends, kind="stable")
    come = np.searchsorted(by_begin, dates, side="right")
    gone = np.searchsorted(ends[by_end], dates, side="right")
    sums_come = np.concatenate([[0.0], np.cumsum(by_begin)])
    sums_gone = np.concatenate([[0.0], np.cumsum(begins[by_end])])
    return Curve(dates, (come - gone) * dates - (sums_come[come] - sums_gone[gone]))


def idle_of(jobs: Sequence[SlurmJob], cpus: float) -> Idle:
    """CPU s, of a machine of so many `cpus`, that stood idle while any of the `jobs` waited.

    Those that were refused did not wait.
    """
    jobs = accepted(jobs)
    end_s = last_date_s(jobs)
    starts = np.array([_or(job.start_s, _or(job.end_s, end_s)) for job in jobs])
    ends = np.array([_or(job.end_s, end_s) for job in jobs])
    submits, sizes = np.array([job.submit_s for job in jobs]), [float(job.cpus) for job in jobs]
    return idle_while_waiting(submits, starts, ends, np.array(sizes), cpus)


def accepted(jobs: Iterable[SlurmJob]) -> list[SlurmJob]:
    """The `jobs` that were not refused, which therefore waited."""
    return [job for job in jobs if in_words(job.state) != "refused"]


def _or(date_s: float | None, otherwise_s: float) -> float:
    return otherwise_s if date_s is None else date_s


def last_date_s(jobs: Sequence[SlurmJob]) -> float:
    """The last date at which something happened to a job, s; 1 if nothing did."""
    dates = [date for job in jobs for date in (job.submit_s, job.start_s, job.end_s)]
    return max((date for date in dates if date is not None), default=0.0) or 1.0


def _curve(spans: Sequence[tuple[float, float]], weights: Sequence[float], end_s: float) -> Curve:
    """The sum of weights over the spans that a date is in."""
    begins = np.array([span[0] for span in spans], dtype=np.float64)
    ends = np.array([max(span) for span in spans], dtype=np.float64)
    weight = np.array(weights, dtype=np.float64)
    every = np.concatenate([begins, ends])
    dates, place = np.unique(every, return_inverse=True)
    change = np.bincount(place, weights=np.concatenate([weight, -weight]), minlength=len(dates))
    start = 0.0 if not len(dates) else min(0.0, float(dates[0]))
    found_dates = np.concatenate([[start], dates, [max(end_s, dates[-1] if len(dates) else 0.0)]])
    values = np.concatenate([[0.0], np.cumsum(change)])
    values = np.concatenate([values, values[-1:]])
    return thinned(Curve(found_dates, values))


def thinned(curve: Curve, most: int = MOST_POINTS) -> Curve:
    """A curve of no more than so many points: means over equal times where there are more."""
    dates, values = curve
    if len(dates) <= most:
        return curve
    area = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(dates))])
    edges = np.linspace(dates[0], dates[-1], most)
    at = np.interp(edges, dates, area)
    means = np.diff(at) / np.diff(edges)
    return Curve(edges, np.concatenate([means, means[-1:]]))


def size_class(job: SlurmJob) -> tuple[int, str]:
    """The place of a job's size among sizes, and its name: 1, 2-4, 5-16, ... CPUs."""
    if job.cpus <= 1:
        return 0, f"{job.cpus} CPU" + "s" * (job.cpus == 0)
    # In whole numbers: a logarithm of a power may be a little more than it is.
    k, most = 1, STEP
    while most < job.cpus:
        k, most = k + 1, most * STEP
    return k, f"{most // STEP + 1}-{most} CPUs"


def length_class(job: SlurmJob) -> tuple[int, str]:
    """The place of a job's run time among lengths, and its name."""
    return length_of(job.run_s or 0.0)


def length_of(run_s: float) -> tuple[int, str]:
    """The place of a run time of ``run_s`` among lengths, and its name."""
    return next((k, name) for k, (most, name) in enumerate(LENGTHS) if run_s <= most)


def _named(name: str) -> tuple[int, str]:
    return 0, name or "(none)"


# What jobs are grouped by: a place among the groups, and a name.
GROUPINGS: Mapping[str, Callable[[SlurmJob], tuple[int, str]]] = {
    "size": size_class,
    "length": length_class,
    "user": lambda job: _named(job.user),
    "account": lambda job: _named(job.account),
    "partition": lambda job: _named(job.partition),
}


def grouped(jobs: Iterable[SlurmJob], by: str) -> dict[str, list[int]]:
    """The numbers of the jobs in each group: sizes and lengths ascending, names as they come."""
    of = GROUPINGS[by]
    found: dict[tuple[int, str], list[int]] = {}
    for k, job in enumerate(jobs):
        found.setdefault(of(job), []).append(k)
    return {key[1]: found[key] for key in sorted(found, key=lambda key: key[0])}
