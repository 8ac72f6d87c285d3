"""Parallel tasks inside a SimPy simulation: processes wait for tasks, and both share one clock."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptaskmodel.errors import SimulationError
from ptaskmodel.simulation.records import TaskRecord, TaskRef
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.tasks import Task

if TYPE_CHECKING:
    import simpy

# Priorities in SimPy's queue: before and after everything else of the same date.
FIRST: Any = -1
LAST: Any = 1_000_000


class TaskNotCompletedError(SimulationError):
    """A parallel task that a process waited for ended otherwise; ``record`` says how."""

    def __init__(self, record: TaskRecord) -> None:
        super().__init__(record)  # SimPy makes copies from these arguments
        self.record = record

    def __str__(self) -> str:
        return f"task {self.record.task_id!r} did not complete: {self.record.final_state}"


class SimPyBridge:
    """Runs a `Simulation` inside the SimPy environment `env`.

    At each date the parallel tasks' own events come first, then SimPy's; tasks that processes add
    at a date begin at it, all together. The bridge drives the simulation: do not call its ``run``,
    ``step`` or ``advance_to``, and change it (`Simulation.set_bandwidth`, `fail` ...) through what
    `sync` returns.

    Raises SimulationError if the environment's date is before the simulation's.
    """

    def __init__(self, env: simpy.Environment, simulation: Simulation) -> None:
        self.env = env
        self._simulation = simulation
        self._refs: dict[simpy.Event, TaskRef] = {}
        self._events: dict[int, simpy.Event] = {}  # by task, of those that are not over
        self._wakes = math.inf  # date at which the simulation has to go on
        self._looks = False  # whether it is looked at before the present date is over
        self.sync()

    def run(self, task: Task) -> simpy.Event:
        """Add a task now; return its end, an event. Raises as `Simulation.add`.

        The event succeeds with the TaskRecord if the task completes and otherwise fails with
        TaskNotCompletedError. As always in SimPy, a failure that no process waits for ends the run.
        """
        ref = self.sync().add(task)
        event = self.env.event()
        self._refs[event] = ref
        self._events[ref.index] = event
        return event

    def task(self, event: simpy.Event) -> TaskRef:
        """The task whose end an event of `run` is: its state, progress and rate now."""
        self.sync()
        return self._refs[event]

    def cancel(self, event: simpy.Event) -> None:
        """End the task of `event` now unless it is over.

        A process that still waits for it gets TaskNotCompletedError.
        """
        simulation = self.sync()
        if not event.triggered:
            event.defused = True
            simulation.cancel(self._refs[event])
            self._tell_ends()

    def suspend(self, event: simpy.Event) -> None:
        """Freeze the task of `event`. Raises SimulationError if it is not running."""
        self.sync().suspend(self._refs[event])

    def resume(self, event: simpy.Event) -> None:
        """Resume the task of `event`. Raises SimulationError if it is not suspended."""
        self.sync().resume(self._refs[event])

    def sync(self) -> Simulation:
        """The simulation, brought to SimPy's date; what is changed in it takes effect now."""
        self._tell_ends()
        if not self._looks:
            self._looks = True
            self._call(self._look, 0.0, LAST)
        return self._simulation

    def _tell_ends(self) -> None:
        """Bring the simulation to SimPy's date and trigger the events of what is over."""
        while ended := self._simulation.run_until_change(until_s=self.env.now):
            for ref in ended:
                event = self._events.pop(ref.index, None)
                if event is None:
                    continue
                record = ref.record
                if record.final_state == "completed":
                    event.succeed(record)
                else:
                    event.fail(TaskNotCompletedError(record))

    def _look(self, _: simpy.Event) -> None:
        """All of this date is done: see to it that the simulation goes on when it has to."""
        self._looks = False
        self._tell_ends()
        date = self._simulation.next_event_s()
        if date is not None and date < self._wakes:
            self._wakes = date
            self._call(self._wake, delay_to(date, self.env.now), FIRST)

    def _wake(self, _: simpy.Event) -> None:
        self._wakes = math.inf
        self.sync()

    def _call(self, function: Callable[[simpy.Event], None], delay_s: float, priority: Any) -> None:
        """Let SimPy call a function later, in its place among the events of that date."""
        event = self.env.event()
        event.callbacks.append(function)
        event._ok, event._value = True, None  # as SimPy's own Timeout does
        self.env.schedule(event, priority, delay_s)


def delay_to(date: float, now: float) -> float:
    """The longest delay with now + delay <= date in floating point.

    Where rounding lets it fall short of the date, what is left is the difference of two close
    numbers, which is exact: the second delay leads to the date itself.
    """
    delay = date - now
    return delay if now + delay <= date else math.nextafter(delay, 0.0)
