"""Number and name the computations and messages of a replay, for the recorders of simulations.

The event stream reuses the numbers of ranks and message slots. Here each computation and each
message gets a unique number, and an id: ``rank 3 #7`` is the eighth computation of rank 3, ``3>5
#12`` is message number 12 in order of their beginnings. ``3>5`` names a pair of ranks, by which
messages are also counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ptaskmodel.engine.driver import Core
from ptaskmodel.engine.state import (
    CAPACITY,
    ENDED,
    LIMIT_DELAY,
    LIMIT_LATENCY,
    LIMIT_NOTHING,
    RATE,
    STARTED,
)
from ptaskmodel.engine.stream import Listener
from ptaskmodel.mpi.run import Replay
from ptaskmodel.platform import Platform
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import ParallelWork

# What recorders ask of the task of an activity is nothing that a replay knows.
ANY_TASK = Task(("host",), ParallelWork.of(1), "activity")


class Activity(NamedTuple):
    """A computation or a message, with what recorders ask of a task."""

    id: str
    start_s: float
    end_s: float | None
    state: str
    task: Task


class Activities:
    """Numbers what a replay does from now on, for one listener. No result changes."""

    def __init__(self, made: Replay) -> None:
        self.core: Core = made.core
        self.platform: Platform = made.core.platform
        self._made = made
        self._ids: list[str] = []
        self._starts: list[float] = []
        self._ends: list[float | None] = []
        self._messages = 0
        # The pair of ranks that each activity is for (of computations: any), and their names.
        self._pair = np.zeros(1024, dtype=np.int64)
        self._pairs: dict[str, int] = {}
        # By owner in the stream: the number of what it does now, -1: nothing; of ranks also how
        # many computations it has begun.
        self._now = np.full(0, -1)
        self._computations = [0] * made.trace.ranks

    @property
    def now(self) -> float:
        return self.core.now

    @property
    def applications(self) -> None:
        """Nothing that is handed on is told of ranks: each activity has a number."""

    def listen(self, listener: Listener, ranks: bool = False) -> None:
        self._listener = listener
        self._made.name_activities()
        self.core.listen(self, ranks=True)

    def tasks(self) -> Iterator[Activity]:
        """All that has begun so far, by number."""
        for name, start, end in zip(self._ids, self._starts, self._ends, strict=True):
            yield Activity(name, start, end, "completed", ANY_TASK)

    def users_of(self, tasks: np.ndarray) -> np.ndarray:
        """Return the pair of ranks (its number) of each message of `tasks` (numbers, shape n)."""
        return self._pair[tasks]

    def user_names(self) -> list[str]:
        """Pairs of ranks that have sent, by number."""
        return list(self._pairs)

    def forget(self, patterns: list[int]) -> None:
        self._listener.forget(patterns)

    def take(self, events: np.ndarray) -> None:
        """Pass on `events`, a chunk of the stream, numbered by message and computation."""
        own = np.isin(events["kind"], (STARTED, RATE, ENDED))
        kept = np.ones(len(events), dtype=np.bool_)
        numbered = events.copy()
        # The wait before the bytes of a message is its latency, whatever its factor.
        waits = (events["kind"] == RATE) & (events["limit"] == LIMIT_DELAY)
        numbered["limit"][waits] = LIMIT_LATENCY
        rows = np.flatnonzero(own)
        # Owners of what a replay does are below 0.
        owners = ~events["subject"][rows]
        most = int(owners.max(initial=-1)) + 1
        if most > len(self._now):
            room = np.full(max(most, 2 * len(self._now)) - len(self._now), -1)
            self._now = np.concatenate([self._now, room])
        now = self._now
        columns = [events[name][rows].tolist() for name in ("kind", "value", "limit")]
        dates = events["date"][rows].tolist()
        for row, date, owner, kind, value, limit in zip(
            rows.tolist(), dates, owners.tolist(), *columns, strict=True
        ):
            number = int(now[owner])
            if number < 0 and kind == RATE and value == 0.0 and limit == LIMIT_NOTHING:
                kept[row] = False  # it stops, and has ended already
                continue
            if kind == STARTED or number < 0:
                number = now[owner] = len(self._ids)
                self._ids.append(self._name(owner, value))
                self._starts.append(date)
                self._ends.append(None)
            if kind == ENDED:
                self._ends[number] = date
                now[owner] = -1
            numbered["subject"][row] = number
        self._listener.take(numbered[kept & (own | (events["kind"] == CAPACITY))])

    def _name(self, owner: int, pair: float) -> str:
        rank, is_message = divmod(owner, 2)
        if is_message:
            source, target = divmod(int(pair), len(self._made.state.ranks))
            self._messages += 1
            between = f"{source}>{target}"
            self._note(self._pairs.setdefault(between, len(self._pairs)))
            return f"{between} #{self._messages - 1}"
        self._computations[rank] += 1
        return f"rank {rank} #{self._computations[rank] - 1}"

    def _note(self, pair: int) -> None:
        """The pair that the activity which begins now is for."""
        number = len(self._ids)
        if number >= len(self._pair):
            self._pair = np.concatenate([self._pair, np.zeros_like(self._pair)])
        self._pair[number] = pair
