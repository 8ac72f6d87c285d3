"""Tasks of a simulation as users see them: references, records, and what observers receive.

The last part reads states, progress and records from the engine's arrays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, overload

import numpy as np

from ptaskmodel.engine.driver import Core
from ptaskmodel.engine.state import ENDED, STARTED, SUSPENDED, State
from ptaskmodel.engine.state import RUNNING as PROGRESSES
from ptaskmodel.lazy import with_old_names
from ptaskmodel.simulation.intake import Intake
from ptaskmodel.simulation.life import (
    CANCELLED,
    COMPLETED,
    DEPENDENCY_FAILED,
    FAILED,
    READY,
    RUNNING,
    WAITING,
    WALLTIME,
)
from ptaskmodel.workload.blocks import TaskTable
from ptaskmodel.workload.tasks import Task

if TYPE_CHECKING:
    import pandas

AnObserver = TypeVar("AnObserver")

STATE_NAMES = {
    WAITING: "waiting",
    READY: "waiting",
    RUNNING: "running",
    COMPLETED: "completed",
    FAILED: "failed",
    WALLTIME: "walltime",
    CANCELLED: "cancelled",
    DEPENDENCY_FAILED: "dependency_failed",
}


def date_or_none(value: float) -> float | None:
    """Return the date `value` (s) of a record; None if it is nan: it has not come."""
    value = float(value)
    return None if value != value else value


@with_old_names
@dataclass(frozen=True, slots=True)
class TaskRecord:
    """What became of a task. Dates and durations in s; None for what did not happen.

    final_state: completed, failed (a host or link went down), walltime, cancelled,
    dependency_failed, or, if it is not over: running, waiting, suspended, starved (it can never
    progress again).

    Each field is a column of tasks.csv, of frames and of `--json`, in this order.
    """

    # column: its name there, if it is another. results/schemas/tables.toml says what it means.
    task_id: str
    profile: str | None
    start_s: float | None = field(metadata={"column": "start_time"})
    end_s: float | None = field(metadata={"column": "finish_time"})
    execution_s: float | None = field(metadata={"column": "execution_time"})
    final_state: str
    hosts: tuple[str, ...]


COLUMNS = {each.metadata.get("column", each.name): each for each in fields(TaskRecord)}


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
    """References to tasks that were added together: those with these numbers in a simulation."""

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


@with_old_names
class TaskRef:
    """A task in a simulation: its current state. Reading it changes nothing.

    index: its number in the simulation, from 0 on.
    """

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
    def start_s(self) -> float | None:
        """The date at which it started, s; None if it has not."""
        return date_or_none(self.simulation._intake.arrays.tasks["started"][self.index])

    @property
    def end_s(self) -> float | None:
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

    @property
    def record(self) -> TaskRecord:
        """What has become of it so far, as `Simulation.records` has it of all tasks."""
        intake = self.simulation._intake
        task = intake.arrays.tasks[self.index]
        return _record(intake, self.index, task["started"], task["finished"], self.state)


class Watch(Generic[AnObserver]):
    """The observers of a simulation, and what they have not been told yet."""

    def __init__(self) -> None:
        self.observers: list[AnObserver] = []
        self._started: list[int] = []
        self._ended: list[int] = []
        self._telling = False

    def take(self, events: np.ndarray) -> None:
        """Note which tasks started and ended by these events."""
        kinds, subjects = events["kind"], events["subject"]
        self._started += subjects[kinds == STARTED].tolist()
        self._ended += subjects[kinds == ENDED].tolist()

    @property
    def has_news(self) -> bool:
        """Whether some task started or ended, of which observers can be told now."""
        return bool(self._started or self._ended) and not self._telling

    def tell(self, tell: Callable[[AnObserver, list[int], list[int]], None]) -> None:
        """Call `tell` for each observer: which tasks ended, and started, since the last time."""
        started, ended = sorted(self._started), self._ended
        self._started, self._ended = [], []
        self._telling = True
        try:
            for observer in tuple(self.observers):
                tell(observer, ended, started)
        finally:
            self._telling = False


def now_and_then(tell: Callable[[], None], every_s: float) -> Callable[[], None]:
    """Return a function that calls ``tell`` at most once in ``every_s`` seconds of wall time."""
    told = time.monotonic()

    def look() -> None:
        nonlocal told
        if time.monotonic() - told > every_s:
            told = time.monotonic()
            tell()

    return look


def state_name(core: Core, intake: Intake, task: int, idle: bool) -> str:
    """Return the state of a task, as in `TaskRecord`.

    core, intake: the engine and the tasks. task: its number. idle: nothing will happen any more.
    """
    record = intake.arrays.tasks[task]
    if record["state"] == RUNNING:
        activity = core.state.activities[record["slot"]]
        if activity["state"] == SUSPENDED:
            return "suspended"
        rate_now = core.state.graph.variables["rate"][record["slot"]]
        if activity["state"] == PROGRESSES and idle and rate_now == 0.0:
            return "starved"
    return STATE_NAMES[int(record["state"])]


def progress(core: Core, intake: Intake, task: int) -> float:
    """Return the part of the current stage of a task that is done, 0 to 1.

    core, intake, task: as of `state_name`. Rates must be in force.
    """
    return part_done(core.state, intake.arrays.tasks[task], core.now)


def part_done(state: State, record: np.void, now: float) -> float:
    """Return the completed fraction, 0 to 1, of the current stage of a task at time `now` (s).

    state: the engine's. record: the task's.
    """
    if record["state"] == COMPLETED:
        return 1.0
    if record["state"] != RUNNING:
        return 0.0
    a = state.activities[record["slot"]]
    amount = float(a["amount"])
    if a["state"] not in (PROGRESSES, SUSPENDED) or amount <= 0.0:
        return 0.0
    rate_now = state.graph.variables["rate"][record["slot"]]
    left = float(a["remaining"] - rate_now * (now - a["updated"]))
    return min(max(1.0 - left / amount, 0.0), 1.0)


def stages_done(intake: Intake, task: int) -> int:
    """Return how many stages of a task (of an intake) are over, counted over all rounds."""
    record = intake.arrays.tasks[task]
    program = intake.arrays.programs[record["program"]]
    if record["state"] == COMPLETED:
        return int(program["count"] * program["rounds"])
    return int(record["rounds"] * program["count"] + record["stage"])


def rate(core: Core, intake: Intake, task: int) -> float:
    """Return the rate of a task, stages/s. Rates must be in force.

    core, intake, task: as of `state_name`.
    """
    record = intake.arrays.tasks[task]
    if record["state"] != RUNNING:
        return 0.0
    a = core.state.activities[record["slot"]]
    if a["state"] != PROGRESSES:
        return 0.0
    return float(core.state.graph.variables["rate"][record["slot"]]) / float(a["amount"])


def makespan(intake: Intake) -> float:
    """Return the date of the last end of a task of an intake so far, s."""
    finished = intake.arrays.tasks["finished"][: len(intake.facts)]
    finished = finished[~np.isnan(finished)]
    return float(finished.max()) if len(finished) else 0.0


def records(core: Core, intake: Intake, idle: bool) -> list[TaskRecord]:
    """Return what became of each task, in the order they were added.

    core, intake, idle: as of `state_name`.
    """
    table = intake.arrays.tasks[: len(intake.facts)]
    started, finished, states = (table[name].tolist() for name in ("started", "finished", "state"))
    names = [STATE_NAMES[state] for state in states]
    for k in np.flatnonzero(table["state"] == RUNNING).tolist():
        names[k] = state_name(core, intake, k, idle)
    places = range(len(names))
    return list(map(_record, repeat(intake), places, started, finished, names))


def _record(intake: Intake, task: int, started: float, finished: float, state: str) -> TaskRecord:
    """What became of a task. started, finished: dates, s; nan: it has not."""
    start_s, end_s = date_or_none(started), date_or_none(finished)
    facts, place = intake.facts.place(task)
    if isinstance(facts, TaskTable):
        profile, hosts = facts.profile_of(place), facts.hosts_of(place)
    else:
        profile, hosts = facts[place].profile, facts[place].hosts
    return task_record(intake.ids[task], profile, hosts, start_s, end_s, state)


def task_record(
    task_id: str,
    profile: str | None,
    hosts: tuple[str, ...],
    start_s: float | None,
    end_s: float | None,
    state: str,
) -> TaskRecord:
    """Return the record of a task with its `task_id`, `profile` and `hosts`.

    start_s, end_s: dates, s; None: it has not started or ended. state: its final state.
    """
    return TaskRecord(
        task_id=task_id,
        profile=profile,
        start_s=start_s,
        end_s=end_s,
        execution_s=None if start_s is None or end_s is None else end_s - start_s,
        final_state=state,
        hosts=hosts,
    )


def frame(records: Iterable[TaskRecord]) -> pandas.DataFrame:
    """Return the records as a table with the columns of tasks.csv, dates in s (nan: none)."""
    import pandas

    rows = map(attrgetter(*(each.name for each in COLUMNS.values())), records)
    numbers = [column for column, each in COLUMNS.items() if each.type == "float | None"]
    found = pandas.DataFrame(list(rows), columns=list(COLUMNS))
    return found.astype(dict.fromkeys(numbers, "float64"))
