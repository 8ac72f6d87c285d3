"""Jobs in classes: by size, by length and by user, how long each class waits and is slowed down."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.measures import job_times
from ptaskmodel.batch.schedule import Schedule, figures_of
from ptaskmodel.workload.job_arrays import users_of

# Lengths are execution times; each class goes up to its limit, s.
LENGTH_LIMITS_S = (60.0, 600.0, 3600.0, 6 * 3600.0, 24 * 3600.0)
LENGTHS = ("up to 1 min", "1 to 10 min", "10 min to 1 h", "1 to 6 h", "6 to 24 h", "over 24 h")
UNKNOWN = "unknown"


class ClassRow(NamedTuple):
    """What became of the jobs of a class: those that ran; times in s.

    kind: "size" (hosts asked for), "length", "size and length" or "user". killed: how many of them
    were cut off, whose executions are shorter than their work. host_s: host seconds executed.
    unfair: how many started later than was fair; None where that was not asked for.
    """

    kind: str
    name: str
    jobs: int
    killed: int
    host_s: float
    mean_waiting_s: float
    max_waiting_s: float
    mean_execution_s: float
    mean_bounded_slowdown: float
    unfair: int | None


def size_name(k: int) -> str:
    """The name of a class of sizes: 1, 2, 3-4, 5-8, and so on; that of 1 is 0."""
    return str(k + 1) if k < 2 else f"{2 ** (k - 1) + 1}-{2**k}"


def _users(schedule: Schedule) -> Iterable[str | None]:
    """The users of the jobs that ran and ended."""
    if schedule.plain is None:
        return (attempt.job.user for attempt in schedule.ended())
    ended = ~np.isnan(schedule.plain.end_s)
    return itertools.compress(users_of(schedule.plain.jobs), ended.tolist())


def by_class(
    schedule: Schedule, *, tau_s: float = 60.0, unfair: Iterable[str] | None = None
) -> list[ClassRow]:
    """A row for each class that has jobs: sizes, lengths, both together, and users by name.

    tau_s: of the bounded slowdown. unfair: the ids of the jobs that started later than was fair.
    """
    times = job_times(schedule)
    if not len(times.submit_s):
        return []
    figures = figures_of(schedule)
    asked = figures.num_hosts[figures.ended]
    # The smallest k with 2**k >= hosts.
    sizes = np.ceil(np.log2(np.maximum(asked, 1))).astype(np.int64)
    lengths = np.searchsorted(LENGTH_LIMITS_S, times.execution_s, side="left")
    users, names = _numbered(list(_users(schedule)))
    late = None
    if unfair is not None:
        ids = set(unfair)
        late = np.array([a.job.id in ids for a in schedule.ended()], dtype=np.float64)
    columns = (
        figures.cut[figures.ended].astype(np.float64),
        times.hosts * times.execution_s,
        times.waiting_s,
        times.execution_s,
        times.bounded_slowdown(tau_s),
        late,
    )
    size_names = [size_name(k) for k in range(int(sizes.max()) + 1)]
    both = [f"{size}, {length}" for size in size_names for length in LENGTHS]
    found: list[ClassRow] = []
    for kind, classes, labels in (
        ("size", sizes, size_names),
        ("length", lengths, LENGTHS),
        ("size and length", sizes * len(LENGTHS) + lengths, both),
        ("user", users, names),
    ):
        found += _rows(kind, classes, labels, columns)
    return found


def _numbered(users: Sequence[str | None]) -> tuple[NDArray[np.int64], list[str]]:
    """Each user as its number among all names, numbers among them in their order first."""
    name_of = {user: UNKNOWN if user is None else user for user in set(users)}
    known = sorted(
        set(name_of.values()), key=lambda n: (0, len(n), n) if n.isdecimal() else (1, 0, n)
    )
    place = {name: k for k, name in enumerate(known)}
    number = {user: place[name] for user, name in name_of.items()}
    return np.fromiter(map(number.__getitem__, users), np.int64, len(users)), known


def _rows(
    kind: str,
    classes: NDArray[np.int64],
    names: Sequence[str],
    columns: tuple[NDArray[np.float64] | None, ...],
) -> list[ClassRow]:
    killed, host_s, waited, lasted, slowed, late = columns
    assert waited is not None
    jobs = np.bincount(classes, minlength=len(names))
    longest = np.zeros(len(names))
    np.maximum.at(longest, classes, waited)
    sums = [
        None if column is None else np.bincount(classes, column, minlength=len(names))
        for column in (killed, host_s, waited, lasted, slowed, late)
    ]

    def total(which: int, k: int) -> float:
        column = sums[which]
        assert column is not None
        return float(column[k])

    return [
        ClassRow(
            kind,
            names[k],
            int(jobs[k]),
            round(total(0, k)),
            total(1, k),
            total(2, k) / int(jobs[k]),
            float(longest[k]),
            total(3, k) / int(jobs[k]),
            total(4, k) / int(jobs[k]),
            None if late is None else round(total(5, k)),
        )
        for k in np.flatnonzero(jobs).tolist()
    ]
