"""A task in a simulation, as its users see it: references and records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, overload

from ptaskmodel.simulation.intake import Intake
from ptaskmodel.workload.tasks import Task


def date_or_none(value: float) -> float | None:
    """A date of a record, None if it is nan: it has not come."""
    value = float(value)
    return None if value != value else value


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """What became of a task. Dates and durations in s; None for what did not happen.

    final_state: completed, failed (a host or link went down), walltime, cancelled,
    dependency_failed, or, if it is not over: running, waiting, suspended, starved (it can never
    progress again).
    """

    task_id: str
    profile: str | None
    start_time: float | None
    finish_time: float | None
    execution_time: float | None
    final_state: str
    hosts: tuple[str, ...]


class Referred(Protocol):
    """The `Simulation` of a reference: what the reference asks, and what its readers may do."""

    @property
    def _intake(self) -> Intake: ...

    def _state_name(self, task: int) -> str: ...

    def _progress(self, task: int) -> float: ...

    def _stages_done(self, task: int) -> int: ...

    def _rate(self, task: int) -> float: ...

    @property
    def now(self) -> float: ...

    def task(self, task_id: str) -> TaskRef: ...

    def tasks(self) -> Iterator[TaskRef]: ...

    def add(self, task: Task) -> TaskRef: ...

    def add_all(self, tasks: Iterable[Task]) -> TaskRefs: ...

    def cancel(self, task: TaskRef) -> None: ...

    def suspend(self, task: TaskRef) -> None: ...

    def resume(self, task: TaskRef) -> None: ...

    def set_bandwidth(self, link: str, bandwidth_Bps: float) -> None: ...

    def set_latency(self, link: str, latency_s: float) -> None: ...

    def set_speed(self, host: str, factor: float) -> None: ...

    def set_pstate(self, host: str, pstate: int) -> None: ...

    def fail(self, name: str) -> None: ...

    def restore(self, name: str) -> None: ...

    def is_on(self, name: str) -> bool: ...


class TaskRefs(Sequence["TaskRef"]):
    """References to tasks that were added together."""

    __slots__ = ("_numbers", "_simulation")

    def __init__(self, simulation: Referred, numbers: range) -> None:
        self._simulation = simulation
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, k: int) -> TaskRef: ...
    @overload
    def __getitem__(self, k: slice) -> TaskRefs: ...
    def __getitem__(self, k: int | slice) -> TaskRef | TaskRefs:
        if isinstance(k, slice):
            return TaskRefs(self._simulation, self._numbers[k])
        return TaskRef(self._simulation, self._numbers[k])

    def __repr__(self) -> str:
        return f"<{len(self)} tasks>"


class TaskRef:
    """A task in a simulation: its state now. Reading it changes nothing."""

    __slots__ = ("index", "simulation")

    def __init__(self, simulation: Referred, index: int) -> None:
        self.simulation = simulation
        self.index = index

    def __repr__(self) -> str:
        return f"<task {self.id!r}: {self.state}>"

    @property
    def task(self) -> Task:
        """The task as it was added."""
        return self.simulation._intake.facts[self.index]

    @property
    def id(self) -> str:
        """The id of the task: its own, or its number as text if it was added without."""
        return self.simulation._intake.ids[self.index]

    @property
    def state(self) -> str:
        """One of the final states of `TaskRecord`, or running, waiting, suspended, starved."""
        return self.simulation._state_name(self.index)

    @property
    def start_time(self) -> float | None:
        """The date at which it started, s; None if it has not."""
        return date_or_none(self.simulation._intake.arrays.tasks["started"][self.index])

    @property
    def finish_time(self) -> float | None:
        """The date at which it ended, in whatever state, s; None if it has not."""
        return date_or_none(self.simulation._intake.arrays.tasks["finished"][self.index])

    @property
    def progress(self) -> float:
        """Part of the current stage that is done, 0 to 1 (a delay: 0 until it ends)."""
        return self.simulation._progress(self.index)

    @property
    def stages_done(self) -> int:
        """How many stages are behind the current one, counted over all rounds."""
        return self.simulation._stages_done(self.index)

    @property
    def rate(self) -> float:
        """Stages per second at present (0 in the latency phase or when not running)."""
        return self.simulation._rate(self.index)
