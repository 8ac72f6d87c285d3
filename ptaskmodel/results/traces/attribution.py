"""Record what limited each task, when, and which tasks shared that resource with it.

The recorder of `recording.intervals` calls it. The life of a task, from its start to its end, is
divided into intervals with one limit each: a host, a link, one core, the TCP window, its
`rate_bound`, its latency, a delay, suspension, a stop, or waiting for other tasks. The intervals
cover the life exactly.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

from ptaskmodel.recording.limits import FIRST_ROUTE, WAITING, limit_name
from ptaskmodel.results.traces.writing import Trace

if TYPE_CHECKING:
    from ptaskmodel.recording.intervals import FloatArray, IntArray, Phases, Uses
    from ptaskmodel.workload.tasks import Task

BOTTLENECKS, ATTRIBUTION = "bottlenecks.csv", "attribution.csv"

LIMIT_COLUMNS = (
    "task_id",
    "start_s",
    "end_s",
    "duration_s",
    "limited_by",
    "resource",
    "progress",
    "sharers",
    "shared_with",
    "latency_s",
    "tcp_gamma_bytes",
)
SUMMARY_COLUMNS = (
    "task_id",
    "life_s",
    "host_s",
    "link_s",
    "core_s",
    "window_s",
    "rate_bound_s",
    "latency_s",
    "delay_s",
    "waiting_s",
    "suspended_s",
    "stopped_s",
    "main_limit",
    "main_resource",
    "main_s",
    "sharers",
    "shared_with",
)

NAMED_SHARERS = 8
# Of the tasks that may have shared a resource, those looked at for the names: the last to begin.
LOOKED_AT = 512
# A limit that is none of a recording: it waited for other tasks.
WAITED = 2 * FIRST_ROUTE

# Two keys (task and limit, or resource and task), start, end, an amount.
Columns = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class LimitInterval(NamedTuple):
    """A task was limited by one thing from start_s to end_s.

    limited_by: one of `limits.KINDS`; resource: the name of a host, a link, the host of a core,
    ``source->target`` of a window, else "". progress: the part of the task's stages that is done at
    the end. sharers: number of other tasks that used the resource meanwhile; shared_with: the ids
    of those that did so longest (at most NAMED_SHARERS). latency_s: of a window, that of the route,
    one way; tcp_gamma_bytes: its size.
    """

    task_id: str
    start_s: float
    end_s: float
    limited_by: str
    resource: str
    progress: float
    sharers: int
    shared_with: tuple[str, ...]
    latency_s: float | None = None
    tcp_gamma_bytes: float | None = None


class Attribution(Trace):
    """Finds out, while a simulation runs, what limits each task; read it once it has ended."""

    def __init__(self) -> None:
        self._phases: list[Columns] = []
        self._uses: list[Columns] = []

    def phases(self, phases: Phases) -> None:
        self._phases.append(
            merged((phases.task, phases.limit), phases.start, phases.end, phases.done)
        )

    def uses(self, uses: Uses) -> None:
        order = np.lexsort((uses.start, uses.task, uses.resource))
        keys = uses.resource[order], uses.task[order]
        self._uses.append(merged(keys, uses.start[order], uses.end[order], np.zeros(len(order))))

    def end(self) -> None:
        task, limit, start, end, done = _joined(self._phases)
        order = np.argsort(task, kind="stable")
        self._spells = merged((task[order], limit[order]), start[order], end[order], done[order])
        resource, task, start, end, _ = _joined(self._uses)
        # Only users of resources that limit somebody are asked for.
        wanted = np.isin(resource, self._spells[1])
        resource, task, start, end = (c[wanted] for c in (resource, task, start, end))
        order = np.lexsort((start, task, resource))
        users = merged(
            (resource[order], task[order]), start[order], end[order], np.zeros(len(task))
        )
        order = np.lexsort((users[2], users[0]))
        self._users = _Users(*(column[order] for column in users[:4]))
        self._phases, self._uses = [], []

    def limits(self) -> Iterator[LimitInterval]:
        """Every interval, task by task in the order of addition, in order of time."""
        names = self.recorder.names
        ids = names.tasks()
        gamma = self.recorder.simulation.core.options.gamma
        for task, limit, start, end, progress in self._rows():
            if limit == WAITED:
                yield LimitInterval(ids[task], start, end, WAITING, "", progress, 0, ())
                continue
            kind, resource = limit_name(limit, names)
            sharers = 0
            who: tuple[str, ...] = ()
            if limit >= 0:
                sharers, best = self._users.sharing(limit, task, start, end)
                who = tuple(ids[k] for k in best)
            window = names.windows.route(limit)
            size = (window.latency_s, gamma) if window is not None else (None, None)
            yield LimitInterval(
                ids[task], start, end, kind, resource, progress, sharers, who, *size
            )

    def _rows(self) -> Iterator[tuple[int, int, float, float, float]]:
        """(task, limit, start, end, progress), with waiting before and pauses filled in."""
        table = self._spells
        task, limit = table[0], table[1]
        total = np.bincount(task, weights=table[4], minlength=1)
        columns = zip(task.tolist(), limit.tolist(), *(c.tolist() for c in table[2:]), strict=True)
        row = next(columns, None)
        for k, ref in enumerate(self.recorder.simulation.tasks()):
            began = ref.start_s
            arrival = ref.task.start_s
            until = self.recorder.simulation.now if began is None else began
            over = began is None and ref.state not in ("waiting",)
            if ref.task.after and arrival < until and not over:
                yield k, WAITED, arrival, until, 0.0
            done = 0.0
            whole = float(_stages(ref.task))
            if ref.state == "completed":
                whole = float(total[k]) if k < len(total) else 0.0
            while row is not None and row[0] == k:
                done += row[4]
                yield k, row[1], row[2], row[3], min(done / whole, 1.0) if whole else 0.0
                row = next(columns, None)

    def summary(self, limits: Iterable[LimitInterval]) -> Iterator[tuple]:
        """Rows of SUMMARY_COLUMNS, one for each task that has intervals, in their order."""
        mine: list[LimitInterval] = []
        for interval in limits:
            if mine and mine[-1].task_id != interval.task_id:
                yield _summary(mine)
                mine = []
            mine.append(interval)
        if mine:
            yield _summary(mine)

    def write(self, bottlenecks: IO[str], attribution: IO[str]) -> None:
        """Write both tables as CSV, numbers to the last digit, ids separated by semicolons."""
        out = csv.writer(bottlenecks, lineterminator="\n")
        out.writerow(LIMIT_COLUMNS)

        def written() -> Iterator[LimitInterval]:
            for interval in self.limits():
                lasted = interval.end_s - interval.start_s
                shared_with = ";".join(interval.shared_with)
                out.writerow((*interval[:3], lasted, *interval[3:7], shared_with, *interval[8:]))
                yield interval

        table = csv.writer(attribution, lineterminator="\n")
        table.writerow(SUMMARY_COLUMNS)
        for *row, who in self.summary(written()):
            table.writerow((*row, ";".join(who)))


def _summary(limits: Sequence[LimitInterval]) -> tuple:
    by_kind: dict[str, float] = {}
    by_limit: dict[tuple[str, str], float] = {}
    for interval in limits:
        lasted = interval.end_s - interval.start_s
        by_kind[interval.limited_by] = by_kind.get(interval.limited_by, 0.0) + lasted
        key = interval.limited_by, interval.resource
        by_limit[key] = by_limit.get(key, 0.0) + lasted
    main = max(by_limit, key=lambda key: by_limit[key])
    longest = max(
        (interval for interval in limits if (interval.limited_by, interval.resource) == main),
        key=lambda interval: interval.end_s - interval.start_s,
    )
    sharers = max(s.sharers for s in limits if (s.limited_by, s.resource) == main)
    seconds = [by_kind.get(column.removesuffix("_s"), 0.0) for column in SUMMARY_COLUMNS[2:12]]
    life = limits[-1].end_s - limits[0].start_s
    return (limits[0].task_id, life, *seconds, *main, by_limit[main], sharers, longest.shared_with)


class _Users:
    """Who used which resource from when to when, by resource and start."""

    def __init__(
        self, resource: IntArray, task: IntArray, start: FloatArray, end: FloatArray
    ) -> None:
        cuts = np.flatnonzero(np.diff(resource)) + 1
        self._of = {
            int(resource[part[0]]): (task[part], start[part], end[part], np.sort(end[part]))
            for part in np.split(np.arange(len(resource)), cuts)
            if len(part)
        }

    def sharing(self, resource: int, me: int, start: float, end: float) -> tuple[int, list[int]]:
        """(how many others used a resource meanwhile, those who did so longest)."""
        if resource not in self._of:
            return 0, []
        task, starts, ends, sorted_ends = self._of[resource]
        begun = int(np.searchsorted(starts, end, side="left"))
        over = int(np.searchsorted(sorted_ends, start, side="right"))
        if begun - over <= 1:
            return 0, []
        first = max(begun - LOOKED_AT, 0) if begun > 4 * LOOKED_AT else 0
        part = slice(first, begun)
        overlap = np.minimum(ends[part], end) - np.maximum(starts[part], start)
        others = (overlap > 0.0) & (task[part] != me)
        users, place = np.unique(task[part][others], return_inverse=True)
        if not len(users):
            return 0, []
        together = np.bincount(place, weights=overlap[others])
        best = np.lexsort((users, -together))[:NAMED_SHARERS]
        return max(len(users), begun - over - 1 if first else 0), users[best].tolist()


def merged(
    keys: tuple[IntArray, IntArray], start: FloatArray, end: FloatArray, amount: FloatArray
) -> Columns:
    """Rows that follow each other with equal keys and no pause made one, their amounts added."""
    n = len(start)
    if n == 0:
        return (*keys, start, end, amount)
    first, second = keys
    new = np.ones(n, dtype=np.bool_)
    new[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1]) | (start[1:] != end[:-1])
    at = np.flatnonzero(new)
    last = np.append(at[1:], n) - 1
    return first[at], second[at], start[at], end[last], np.add.reduceat(amount, at)


def _joined(batches: list[Columns]) -> Columns:
    if not batches:
        none = np.zeros(0, dtype=np.int64)
        return none, none, np.zeros(0), np.zeros(0), np.zeros(0)
    return tuple(np.concatenate(c) for c in zip(*batches, strict=True))  # type: ignore[return-value]


def _stages(task: Task) -> int:
    """Number of stages of a task, all rounds counted."""
    return len(task.work.one_round()) * task.work.rounds
