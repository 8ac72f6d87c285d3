"""Who used each link, when and how much, in bounded memory: tasks, jobs, or pairs of ranks."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.results.traces.writing import Trace, numbers

if TYPE_CHECKING:
    from ptaskmodel.recording.intervals import Recorder, Uses

LINK_USERS = "link_users.csv"
COLUMNS = ("link", "users", "task_id", "start_s", "end_s", "bytes")
MOST = 50  # users named of each link
PENDING = 1 << 20  # pairs that are gathered before they are added up
MAX_PAIRS = 1 << 22

_PAIR = np.dtype([("link", "i4"), ("task", "i4"), ("start", "f8"), ("end", "f8"), ("bytes", "f8")])
Pairs = NDArray[np.void]


class Users(Protocol):
    """For whom tasks send, where that is not each for itself."""

    def users_of(self, tasks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of the user of each of some tasks."""
        ...

    def user_names(self) -> Sequence[str]:
        """The names of the users so far, by number."""
        ...


class LinkUsers(Trace):
    """Adds up, while a simulation runs, what each user sent over each link, from when to when.

    users: for whom tasks send; None: each is a user. Beyond 4 million pairs of user and link only
    the 50 users that sent most are kept of each link, and those left out are counted again if they
    go on sending.
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
        writer.writerow(COLUMNS)
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
