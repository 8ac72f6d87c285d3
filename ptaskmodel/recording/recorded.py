"""What can be recorded, and how to find the task of an event, also for tasks that replay traces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.engine.state import STARTED

if TYPE_CHECKING:
    from ptaskmodel.engine.driver import Core
    from ptaskmodel.engine.stream import Listener
    from ptaskmodel.platform import Platform

IntArray = NDArray[np.int64]


class Ranks(Protocol):
    """The ranks of a simulation, see `mpi.applications`.

    state: its ``ranks``, all that there is room for, and its ``messages``, by place. task_of_rank:
    the number of the task that each rank belongs to, or did.
    """

    @property
    def state(self) -> Any: ...

    @property
    def task_of_rank(self) -> IntArray: ...


class Recorded(Protocol):
    """What can be recorded: a `Simulation`, or what stands for one.

    tasks: those added so far, in the order of the numbers that the stream gives them; each has an
    ``id``, and what listeners ask of a `TaskRef`.
    """

    @property
    def core(self) -> Core: ...

    @property
    def platform(self) -> Platform: ...

    @property
    def now(self) -> float: ...

    def tasks(self) -> Iterator[Any]: ...

    def listen(self, listener: Listener, ranks: bool = False) -> None: ...

    @property
    def applications(self) -> Ranks | None: ...


class Owners:
    """Reads off the stream, part by part, the tasks whose ranks do what is told.

    A computation is told under its rank, ``~(2 * rank)``, a message under a place that others have
    after it, ``~(2 * place + 1)``: its STARTED says which rank sends it.
    """

    def __init__(self, simulation: Recorded) -> None:
        self._simulation = simulation
        found = simulation.applications
        # The rank that sends what is in each place now.
        self._source = (
            np.zeros(0, dtype=np.int64)
            if found is None
            else found.state.messages["source"].astype(np.int64)
        )

    def tasks(self, events: np.ndarray) -> IntArray:
        """The number of the task of each event, which says so itself or is of its ranks.

        events: the next part of the stream, as it came.
        """
        tasks = events["subject"].astype(np.int64)
        own = np.flatnonzero(tasks < 0)
        found = self._simulation.applications
        if not len(own) or found is None:
            return tasks
        number, is_message = ~tasks[own] >> 1, (~tasks[own] & 1).astype(np.bool_)
        ranks = number.copy()
        started = events["kind"][own] == STARTED
        source = events["value"][own].astype(np.int64) // len(found.state.ranks)
        ranks[is_message] = self._sources(
            number[is_message], started[is_message], source[is_message]
        )
        tasks[own] = found.task_of_rank[ranks]
        return tasks

    def _sources(self, place: IntArray, started: NDArray[np.bool_], source: IntArray) -> IntArray:
        """Who sends, for events of messages by places; source: said where one started."""
        places = np.unique(place)
        if len(places) and places[-1] >= len(self._source):
            room = max(int(places[-1]) + 1, 2 * len(self._source)) - len(self._source)
            self._source = np.concatenate([self._source, np.zeros(room, dtype=np.int64)])
        # Before the events of each place comes what it held until then.
        everyone = np.concatenate([places, place])
        says = np.concatenate([np.ones(len(places), dtype=np.bool_), started])
        said = np.concatenate([self._source[places], source])
        order = np.argsort(everyone, kind="stable")
        latest = np.maximum.accumulate(np.where(says[order], np.arange(len(order)), 0))
        found = np.empty_like(said)
        found[order] = said[order][latest]
        last = np.append(np.flatnonzero(np.diff(everyone[order])), len(order) - 1)
        self._source[places] = found[order][last[: len(places)]]
        return found[len(places) :]
