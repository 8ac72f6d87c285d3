"""Mean utilisation of every host and link in intervals of equal length, in bounded memory.

The means are exact: they integrate piecewise constant shares and do not sample. The interval length
doubles whenever the simulation outgrows the table. In bounded memory, it also records how much each
task, job or pair of ranks used each link.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.results.traces.writing import Trace, numbers, quoted

if TYPE_CHECKING:
    from ptaskmodel.recording.intervals import Recorder, Uses


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
