"""Record what limited each task, which tasks shared that with it, and the use of hosts and links.

The recorder of `recording.intervals` calls it. The life of a task, from its start to its end, is
divided into intervals with one limit each: a host, a link, one core, the TCP window, its
`rate_bound`, its latency, a delay, suspension, a stop, or waiting for other tasks. The intervals
cover the life exactly.

The mean utilisation of every host and link is recorded in intervals of equal length. The means are
exact: they integrate piecewise constant shares and do not sample. The interval length
doubles whenever the simulation outgrows the table. In bounded memory, it also records how much each
task, job or pair of ranks used each link.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.recording import WAITING
from ptaskmodel.recording.recorded import FIRST_ROUTE, limit_name
from ptaskmodel.results.traces.tables import Trace, numbers, quoted

if TYPE_CHECKING:
    from ptaskmodel.recording.intervals import FloatArray, IntArray, Phases, Recorder, Uses
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

    limited_by: one of `kinds.KINDS`; resource: the name of a host, a link, the host of a core,
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


UTILISATION = "utilisation.csv"
UTILISATION_COLUMNS = ("resource", "kind", "start_s", "end_s", "share")
BINS = 256
LINK_USERS = "link_users.csv"
LINK_USER_COLUMNS = ("link", "users", "task_id", "start_s", "end_s", "bytes")
MOST = 50  # users named of each link
PENDING = 1 << 20  # pairs that are gathered before they are added up
MAX_PAIRS = 1 << 22
Pairs = NDArray[np.void]


class Utilisation(Trace):
    """Adds up, while a simulation runs, what share of each resource is used."""

    def begin(self, recorder: Recorder) -> None:
        super().begin(recorder)
        self.origin_s = recorder.simulation.now
        self.width_s = 0.0
        self._row = np.full(len(recorder.names.resources), -1)
        self._resources: list[int] = []
        # Seconds of full use in each bin: directly, and as steps (of share) to be summed up.
        self._direct = np.zeros((0, BINS))
        self._steps = np.zeros((0, BINS + 1))

    def uses(self, uses: Uses) -> None:
        self._reach(float(uses.end.max()))
        self._enter(np.unique(uses.resource))
        row, share = self._row[uses.resource], uses.share
        start, end = ((t - self.origin_s) / self.width_s for t in (uses.start, uses.end))
        first = np.minimum(start.astype(np.int64), BINS - 1)
        last = np.minimum(end.astype(np.int64), BINS - 1)
        same = first == last
        self._add(row, first, share * np.where(same, end - start, first + 1 - start))
        apart = ~same
        row, share, first, last, end = (c[apart] for c in (row, share, first, last, end))
        self._add(row, last, share * (end - last))
        width = BINS + 1
        size = self._steps.size
        steps = np.bincount(row * width + first + 1, share, size)
        steps -= np.bincount(row * width + last, share, size)
        self._steps += steps.reshape(self._steps.shape)

    def _add(self, row: np.ndarray, place: np.ndarray, amount: np.ndarray) -> None:
        added = np.bincount(row * BINS + place, amount, self._direct.size)
        self._direct += added.reshape(self._direct.shape)

    def _reach(self, date: float) -> None:
        """Let the bins cover a date."""
        span = date - self.origin_s
        if self.width_s == 0.0:
            self.width_s = span / BINS
        while span > self.width_s * BINS:
            whole = self._sums()
            halves = whole[:, 0::2] + whole[:, 1::2]
            self._direct = np.zeros_like(self._direct)
            self._direct[:, : BINS // 2] = halves / 2.0
            self._steps[:] = 0.0
            self.width_s *= 2.0

    def _sums(self) -> np.ndarray:
        return self._direct + np.cumsum(self._steps[:, :BINS], axis=1)

    def _enter(self, resources: np.ndarray) -> None:
        new = resources[self._row[resources] < 0]
        self._row[new] = np.arange(len(new)) + len(self._resources)
        self._resources.extend(new.tolist())
        missing = len(self._resources) - len(self._direct)
        if missing > 0:
            room = max(missing, len(self._direct))
            self._direct = np.vstack([self._direct, np.zeros((room, BINS))])
            self._steps = np.vstack([self._steps, np.zeros((room, BINS + 1))])

    def write(self, stream: IO[str]) -> None:
        """Write COLUMNS as CSV: one row for each interval in which a resource was used."""
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(UTILISATION_COLUMNS)
        if not self._resources:
            return
        share = np.clip(self._sums(), 0.0, None)
        share[share < 1e-12] = 0.0
        edges = numbers(self.origin_s + self.width_s * np.arange(BINS + 1))
        names = self.recorder.names
        for resource in sorted(self._resources):
            values = share[self._row[resource]]
            used = np.flatnonzero(values)
            prefix = f"{quoted(names.resources[resource])},{names.kind(resource)}"
            texts = numbers(np.round(values[used], 9))
            stream.writelines(
                f"{prefix},{edges[k]},{edges[k + 1]},{text}\n"
                for k, text in zip(used.tolist(), texts, strict=True)
            )


_PAIR = np.dtype([("link", "i4"), ("task", "i4"), ("start", "f8"), ("end", "f8"), ("bytes", "f8")])


class Users(Protocol):
    """For whom tasks send, where that is not each for itself."""

    def users_of(self, tasks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of the user of each of some tasks."""
        ...

    def user_names(self) -> Sequence[str]:
        """The names of the users so far, by number."""
        ...


class LinkUsers(Trace):
    """Sum, while a simulation runs, what each user sent over each link, from when to when.

    users: for whom tasks send; None: each is a user. Beyond 4 million pairs of user and link, only
    the 50 largest users of each link are kept; users that were left out are counted again if they
    continue to send.
    """

    def __init__(self, users: Users | None = None) -> None:
        self._users = users

    def begin(self, recorder: Recorder) -> None:
        super().begin(recorder)
        self._n_hosts = recorder.names.n_hosts
        self._kept: Pairs = np.zeros(0, dtype=_PAIR)
        self._pending: list[Pairs] = []
        self._n_pending = 0
        self._dropped = np.zeros(len(recorder.names.resources), dtype=np.int64)

    def uses(self, uses: Uses) -> None:
        links = uses.resource >= self._n_hosts
        pairs = np.zeros(int(links.sum()), dtype=_PAIR)
        tasks = uses.task[links]
        pairs["link"] = uses.resource[links]
        pairs["task"] = tasks if self._users is None else self._users.users_of(tasks)
        pairs["start"], pairs["end"] = uses.start[links], uses.end[links]
        pairs["bytes"] = uses.rate[links] * (pairs["end"] - pairs["start"])
        self._pending.append(pairs)
        self._n_pending += len(pairs)
        if self._n_pending >= PENDING:
            self._add_up()

    def _add_up(self) -> None:
        everything = np.concatenate([self._kept, *self._pending])
        self._pending, self._n_pending = [], 0
        everything = everything[np.lexsort((everything["task"], everything["link"]))]
        if not len(everything):
            return
        new = (np.diff(everything["link"]) != 0) | (np.diff(everything["task"]) != 0)
        first = np.append(0, np.flatnonzero(new) + 1)
        self._kept = everything[first]
        self._kept["start"] = np.minimum.reduceat(everything["start"], first)
        self._kept["end"] = np.maximum.reduceat(everything["end"], first)
        self._kept["bytes"] = np.add.reduceat(everything["bytes"], first)
        if len(self._kept) > MAX_PAIRS:
            most = _most(self._kept)
            self._dropped += np.bincount(self._kept["link"], minlength=len(self._dropped))
            self._dropped -= np.bincount(most["link"], minlength=len(self._dropped))
            self._kept = most[np.lexsort((most["task"], most["link"]))]

    def write(self, stream: IO[str]) -> None:
        """Write COLUMNS as CSV: links by number, of each those that sent most first."""
        self._add_up()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(LINK_USER_COLUMNS)
        users = self._dropped + np.bincount(self._kept["link"], minlength=len(self._dropped))
        rows = _most(self._kept)
        names = self.recorder.names.resources
        tasks = (self._users.user_names if self._users else self.recorder.names.tasks)()
        columns = (numbers(rows[name]) for name in ("start", "end", "bytes"))
        writer.writerows(
            (names[link], int(users[link]), tasks[task], *facts)
            for link, task, *facts in zip(
                rows["link"].tolist(), rows["task"].tolist(), *columns, strict=True
            )
        )


def _most(pairs: Pairs) -> Pairs:
    """Of each link the users that sent most, those first."""
    order = np.lexsort((pairs["task"], -pairs["bytes"], pairs["link"]))
    pairs = pairs[order]
    if not len(pairs):
        return pairs
    first = np.flatnonzero(np.append(True, pairs["link"][1:] != pairs["link"][:-1]))
    count = np.diff(np.append(first, len(pairs)))
    return pairs[np.arange(len(pairs)) - np.repeat(first, count) < MOST]
