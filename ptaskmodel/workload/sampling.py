"""Take a sample of the jobs; shuffle the order of submission; draw the users of a log again.

Both methods of sampling sort similar jobs next to each other and take one of every ``ratio``. So a
sample has few and many hosts, short and long run times in the proportions of the whole. A plain
random sample has these proportions only on average, and a few large jobs decide its load.

A study of one log depends on one order of its jobs. Simulating several permutations (`shuffled`)
shows which metrics are stable (on a loaded machine, utilisation is) and which are not.

Resampling generates workloads that resemble a log. The unit is the user, since what repeats in a
log (sessions, campaigns of similar jobs) does so within users; and the week, since users keep days
and hours. Users seen over less than ``LONG_WEEKS`` weeks are temporary, the others are permanent.
Each week of the new workload receives the average number of temporary users, drawn with
replacement, each with all its jobs, shifted by whole weeks. The average number of permanent users
is present throughout: each begins at a random week of its own trace, and starts again at its
beginning when it ends. Where no user is known, whole weeks are drawn instead (``by="weeks"``).
Source: N. Zakay and D. Feitelson, "Workload resampling for performance evaluation of parallel job
schedulers", Concurrency and Computation 26(12), 2014.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.jobs import (
    JobTable,
    Workload,
    columns_of,
    job_arrays,
    listed,
    preceding_ids,
    rows_of,
    users_of,
)
from ptaskmodel.workload.scaling import dates_s, paced, run_times_s, without_lost_links

METHODS = ("systematic", "work")
WINDOW_S = 60.0

SPACINGS = ("even", "kept")


def sampled(
    workload: Workload,
    ratio: float,
    *,
    method: str = "systematic",
    offset: int = 0,
    window_s: float = WINDOW_S,
    keep_dates: bool = False,
) -> Workload:
    """One job out of every ``ratio`` (1 or more, not necessarily whole), in the order they came.

    method: ``systematic`` orders the jobs by hosts, then run time, then walltime and takes those at
    floor(ratio * k) + offset, 0 <= offset < ratio, so that there are about ``ratio``
    different samples. ``work`` orders them by hosts and walltime, those within ``window_s`` in the
    order of submission, and of each ``ratio`` takes the one nearest to their mean of hosts x run
    time, carrying what it is off to the next: the sample asks for 1 / ratio of the host seconds.

    Dates are divided by the ratio, so that the offered load stays as it is, unless ``keep_dates``.
    Raises WorkloadError for a value out of range or a job whose run time is not known.
    """
    jobs = len(workload.jobs)
    if method not in METHODS:
        raise WorkloadError(f"method '{method}' is unknown; use one of {', '.join(METHODS)}")
    if not 1 <= ratio <= max(jobs, 1):
        raise WorkloadError(
            f"a ratio of {ratio:g} leaves no sample of {jobs} jobs; use 1 to {jobs}"
        )
    if not 0 <= offset < ratio:
        raise WorkloadError(f"the offset is {offset}; give 0 or more, below {ratio:g}")
    if not 0 <= window_s < math.inf:
        raise WorkloadError(f"the window is {window_s:g} s; give a finite number, 0 or more")
    times = run_times_s(workload, "sample a log or a workload of delays")
    arrays = job_arrays(workload.jobs)
    sizes, walls = arrays.num_hosts, arrays.limit_s
    bounds = np.floor(ratio * np.arange(math.ceil(jobs / ratio) + 1) + 1e-9).astype(np.int64)
    bounds = np.append(bounds[bounds < jobs], jobs)
    if method == "systematic":
        order = np.lexsort((walls, times, sizes))
        places = bounds[:-1] + offset
        chosen = order[places[places < jobs]]
    else:
        chosen = _by_work(_windows(sizes, walls, window_s), sizes * times, bounds)
    kept = np.sort(chosen)
    made = without_lost_links(rows_of(columns_of(workload.jobs), kept.tolist()))
    if not keep_dates:
        made["submit_time_s"] = paced(arrays.submit_s, ratio)[kept].tolist()
    dates = "times kept" if keep_dates else "times divided by it"
    note = f"sampled ({method}): 1 of every {ratio:g} of {jobs} jobs, offset {offset}, {dates}"
    return workload.with_jobs(JobTable.of(made), note)


def _windows(
    sizes: NDArray[np.int64], walls: NDArray[np.float64], window_s: float
) -> NDArray[np.intp]:
    """The order of jobs by size and window of walltimes; within one, the order of submission."""
    order = np.lexsort((walls, sizes))
    group = np.empty(len(order), dtype=np.int64)
    number, size, end = -1, -1, -math.inf
    for k in order.tolist():
        if sizes[k] != size or walls[k] > end:
            number, size, end = number + 1, sizes[k], walls[k] + window_s
        group[k] = number
    return np.lexsort((np.arange(len(order)), group))


def _by_work(
    order: NDArray[np.intp], work: NDArray[np.float64], bounds: NDArray[np.int64]
) -> NDArray[np.intp]:
    """Of each part of the order the job nearest to what the part, and the parts before, ask for."""
    chosen = []
    owed = 0.0
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        part = order[first:last]
        target = float(work[part].mean()) + owed
        best = int(part[np.argmin(np.abs(work[part] - target))])
        owed = target - float(work[best])
        chosen.append(best)
    return np.array(chosen, dtype=np.intp)


def shuffled(workload: Workload, seed: int, spacing: str = "even") -> Workload:
    """Return the jobs of a `workload` in a random order of submission, drawn by `seed`.

    spacing: ``even``: all gaps between submissions are equal; ``kept``: the times of the workload,
    assigned to other jobs, so that daily cycles and bursts stay. Links to preceding jobs lose their
    meaning and are dropped. Raises WorkloadError for an unknown spacing.
    """
    if spacing not in SPACINGS:
        raise WorkloadError(f"spacing '{spacing}' is unknown; use one of {', '.join(SPACINGS)}")
    dates = dates_s(workload)
    if spacing == "even" and len(dates):
        dates = np.linspace(dates[0], dates[-1], len(dates))
    order = np.random.default_rng(seed).permutation(len(dates))
    links = ("preceding_job", "think_time_s")
    kept = {name: each for name, each in columns_of(workload.jobs).items() if name not in links}
    made = rows_of(kept, order.tolist()) | {"submit_time_s": dates.tolist()}
    note = f"order of submission shuffled, seed {seed}, dates {spacing}"
    return workload.with_jobs(JobTable.of(made), note)


WEEK_S = 7 * 86400.0
LONG_WEEKS = 12
MAX_WEEKS = 10_000
MAX_JOBS = 20_000_000
UNITS = ("users", "weeks")


@dataclass(frozen=True, slots=True)
class Trace:
    """Places of the jobs of a user: of each week from the first to the last with some."""

    weeks: tuple[tuple[int, ...], ...]


# A job of the new workload: its week, the number of the copy of a trace that it is of, the place of
# the old job.
Drawn = tuple[int, int, int]


def resampled(
    workload: Workload, weeks: int, seed: int, *, by: str = "users", factor: float = 1.0
) -> Workload:
    """A new workload of so many weeks, drawn from the users (or the weeks) of another.

    factor: so many times as many users at a time (only with users). Days and hours of
    submissions stay; ids are new, links between jobs of one user stay. Equal seeds give equal
    workloads. Raises WorkloadError if there is nothing to draw from or a value is out of range.
    """
    if by not in UNITS:
        raise WorkloadError(f"resampling by '{by}' is unknown; use one of {', '.join(UNITS)}")
    if not 1 <= weeks <= MAX_WEEKS:
        raise WorkloadError(f"{weeks} weeks; give 1 to {MAX_WEEKS}")
    if not 0 < factor <= 1000 or (by == "weeks" and factor != 1):
        raise WorkloadError(
            f"the factor is {factor:g}; give a number above 0, at most 1000 (by weeks: 1)"
        )
    if not workload.jobs:
        raise WorkloadError(
            f"{workload.origin}: has no jobs to draw from; give a workload with jobs"
        )
    if by == "users" and None in users_of(workload.jobs):
        raise WorkloadError(
            f"{workload.origin}: not every job has a user; resample by weeks (--by weeks)"
        )
    numbers = np.floor(dates_s(workload) / WEEK_S).astype(np.int64).tolist()
    whole = Trace(_by_week(range(len(numbers)), numbers))
    spans = len(whole.weeks)
    if (expected := len(workload.jobs) / spans * weeks * factor) > MAX_JOBS:
        raise WorkloadError(
            f"this would make about {expected:.3g} jobs, more than {MAX_JOBS:,}; lower the "
            "factor or the weeks"
        )
    rng = np.random.default_rng(seed)
    if by == "weeks":
        drawn = list(_weeks_drawn(whole, weeks, rng))
    else:
        users: dict[str | None, list[int]] = {}
        for place, user in enumerate(users_of(workload.jobs)):
            users.setdefault(user, []).append(place)
        traces = [Trace(_by_week(places, numbers)) for places in users.values()]
        drawn = list(_users_drawn(traces, spans, weeks, factor, rng))
    note = f"resampled by {by}: {weeks} weeks out of {spans}, factor {factor:g}, seed {seed}"
    return workload.with_jobs(_numbered(drawn, columns_of(workload.jobs)), note)


def _by_week(places: Sequence[int], numbers: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The places of each week, from that of the first to that of the last.

    numbers: the week of each job.
    """
    first = numbers[places[0]]
    weeks: list[list[int]] = [[] for _ in range(numbers[places[-1]] - first + 1)]
    for place in places:
        weeks[numbers[place] - first].append(place)
    return tuple(map(tuple, weeks))


def _weeks_drawn(whole: Trace, weeks: int, rng: np.random.Generator) -> Iterator[Drawn]:
    for week, source in enumerate(rng.integers(len(whole.weeks), size=weeks).tolist()):
        yield from ((week, week, place) for place in whole.weeks[source])


def _users_drawn(
    traces: Sequence[Trace], spans: int, weeks: int, factor: float, rng: np.random.Generator
) -> Iterator[Drawn]:
    copies = itertools.count()
    temporary = [trace for trace in traces if len(trace.weeks) < LONG_WEEKS]
    staying = [trace for trace in traces if len(trace.weeks) >= LONG_WEEKS]
    come = len(temporary) / spans * factor
    for week in range(-LONG_WEEKS, weeks):
        many = math.floor(come * (week + 1)) - math.floor(come * week)
        for chosen in rng.integers(len(temporary), size=many).tolist() if temporary else ():
            copy = next(copies)
            for k, places in enumerate(temporary[chosen].weeks):
                if 0 <= week + k < weeks:
                    yield from ((week + k, copy, place) for place in places)
    lengths = np.array([len(trace.weeks) for trace in staying], dtype=np.float64)
    if not staying:
        return
    there = max(1, round(float(lengths.sum()) / spans * factor))
    for chosen in rng.choice(len(staying), size=there, p=lengths / lengths.sum()).tolist():
        own = staying[chosen].weeks
        begin = int(rng.integers(len(own)))
        copy = next(copies)
        for week in range(weeks):
            at = (begin + week) % len(own)
            if week and at == 0:
                copy = next(copies)
            yield from ((week, copy, place) for place in own[at])


def _numbered(drawn: Sequence[Drawn], columns: Mapping[str, Sequence[Any]]) -> JobTable:
    """Jobs at their days and hours, in order, numbered from 1; links stay within a copy.

    columns: the fields of the old jobs.
    """
    week, copy, place = np.array(drawn, dtype=np.int64).reshape(-1, 3).T
    dates = week * WEEK_S + np.array(columns["submit_time_s"])[place] % WEEK_S
    order = np.argsort(dates, kind="stable")
    made = rows_of(columns, place[order].tolist())
    copies = copy[order].tolist()
    names = {key: str(k) for k, key in enumerate(zip(copies, made["id"], strict=True), start=1)}
    before = [
        listed(names[mine, each] for each in preceding_ids(ids) if (mine, each) in names)
        for mine, ids in zip(copies, made.get("preceding_job", [None] * len(copies)), strict=True)
    ]
    thinks = made.get("think_time_s", [0.0] * len(copies))
    made |= {
        "id": list(names.values()),
        "submit_time_s": dates[order].tolist(),
        "preceding_job": before,
        "think_time_s": [0.0 if b is None else s for s, b in zip(thinks, before, strict=True)],
    }
    return JobTable.of(made)
