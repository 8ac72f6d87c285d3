"""The simulation: add tasks, advance time, and read what happened as records."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ptaskmodel.engine.driver import Core
from ptaskmodel.engine.state import (
    IDLE,
    PAUSED,
    STEP,
    SUSPENDED,
    Options,
)
from ptaskmodel.engine.stream import Listener
from ptaskmodel.engine.usage.network_models import SMPI, NetworkModel
from ptaskmodel.engine.usage.network_models import network_model as find_model
from ptaskmodel.errors import SimulationError
from ptaskmodel.lazy import with_old_names
from ptaskmodel.memory import collector_at_rest
from ptaskmodel.platform import Platform
from ptaskmodel.platform.routing import GivenRoutes, Routing, routing_of
from ptaskmodel.remarks import warn_of
from ptaskmodel.simulation import life, records
from ptaskmodel.simulation.advancing import Advancing
from ptaskmodel.simulation.intake import Intake, checked_amount, checked_platform
from ptaskmodel.simulation.records import TaskRecord, TaskRef, TaskRefs, Watch, now_and_then
from ptaskmodel.workload.blocks import TaskBlock, TaskTable
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import TraceWork

if TYPE_CHECKING:
    import pandas

    from ptaskmodel.mpi.applications import Applications
    from ptaskmodel.workload.traces import Trace

INFINITY = float("inf")
PROGRESS_EVERY_S = 0.2


class Observer:
    """Told of what happens; does nothing. Override what you need.

    `stepped` comes after every date at which something happened, with the new rates in force.
    At one date, ends are told before starts.
    """

    def task_started(self, task: TaskRef) -> None:
        """A task has started, at the date of its simulation."""

    def task_ended(self, task: TaskRef) -> None:
        """A task has ended, in whatever state."""

    def stepped(self, simulation: Simulation) -> None:
        """All that happened at a date in ``simulation`` is done."""


@with_old_names
class Simulation(Advancing[Observer]):
    """Tasks sharing a platform.

    solver: bmf (the default of the parallel-task model), fairbottleneck (SimGrid's numbers),
    fairbottleneck-corrected, or maxmin (the default of the flow-level models).
    network_model: L07 (parallel tasks), CM02 or LV08 (flows and executions), a wire model (DCTCP,
    CUBIC, ROCE, RDMA; `NetworkModel.of_wire` gives it other parameters), or SMPI, by which
    messages of ranks travel as in `replay` (flows of tasks then have neither its factors nor its
    envelope: they are those of CM02); None: what the platform's <config> says, else L07.
    count: what counts as one competitor on a shared link: each task, flow, or pair of hosts.
    routing: which routes flows take: "platform" (as None), "ecmp" or "ecmp:SEED" (each flow one of
    its shortest paths, by hops, chosen by a hash), or "file:FILE" (CSV: task,flow,path).
    optimise: False, every change re-solves the whole system with nothing left out (for tests).
    Names, of `engine.resharing.OPTIMISATIONS`: these alone are on (for measurements).

    It can be pickled, and goes on bit for bit; observers and listeners do not follow.

    Raises SimulationError on an unknown option.
    """

    level: Literal["fluid"] = "fluid"  # of the network: rates, not packets

    def __init__(
        self,
        platform: Platform,
        *,
        solver: str | None = None,
        network_model: str | NetworkModel | None = None,
        count: str = "task",
        routing: str | Routing | None = None,
        optimise: bool | Collection[str] = True,
    ) -> None:
        self.platform = checked_platform(platform)
        if isinstance(network_model, NetworkModel):
            self.network_model = network_model
        elif network_model == SMPI:
            from ptaskmodel.mpi.protocol import protocol_of

            self.network_model = protocol_of(SMPI, platform.config).model
        else:
            self.network_model = find_model(network_model, platform.config)
        self.solver = solver or self.network_model.solver
        self.count = count
        self.routing = routing_of(routing) if isinstance(routing, str) else routing
        if isinstance(routing, str) and isinstance(self.routing, GivenRoutes):
            warn_of(self.routing.remarks)
        self.core = Core(platform, self.network_model, self.solver, count, optimise, self.routing)
        if self.network_model.wire is None:
            self.core.let_gather()
        self._intake = Intake(self.core)
        self._replays: Applications | None = None  # once a task replays a trace
        self._idle = False  # nothing will ever happen
        self._watch = Watch[Observer]()
        self._settled: Simulation | None = None  # a twin, to read rates from
        self._ended: list[int] = []  # not reported to the caller yet, in the order they ended

    def __repr__(self) -> str:
        n, ended = len(self._intake.facts), self._n_ended
        return f"<Simulation at {self.now:g} s: {n} tasks, {ended} of them over>"

    # --- adding -----------------------------------------------------------------------------

    def add(self, task: Task) -> TaskRef:
        """Add a task; it starts at its date, or now, once those in ``after`` have completed.

        Raises PlatformError for an unknown host, WorkloadError for an id that is taken or an
        ``after`` that is no task.
        """
        return self.add_all([task])[0]

    def add_all(self, tasks: Iterable[Task]) -> TaskRefs:
        """Add tasks, which may wait for each other in any order; returns references to them.

        Raises as `add`, and WorkloadError if tasks wait for each other in a circle; nothing has
        been added then.
        """
        return self._add(tasks if isinstance(tasks, TaskTable) else list(tasks))

    def add_block(self, block: TaskBlock) -> TaskRefs:
        """Add the tasks of a `block` of arrays, which are those of as many `ParallelTask`.

        Raises WorkloadError, which names the array and the place in it, and as `add`; nothing has
        been added then.
        """
        return self._add(block.table(list(self._intake.host_index)))

    def _add(self, tasks: Sequence[Task]) -> TaskRefs:
        with collector_at_rest():
            added = self._intake.add(tasks, self.core)
            if self._intake.programs.replays and self._replays is None:
                from ptaskmodel.mpi.applications import Applications
                from ptaskmodel.mpi.protocol import protocol_of

                protocol = protocol_of(self.network_model.name, self.platform.config)
                self._replays = Applications(self.core, protocol)
            self._changed()
            return TaskRefs(self, added)

    def add_replay(
        self, trace: Trace, hosts: Sequence[str], *, start_s: float = 0.0, id: str | None = None
    ) -> TaskRef:
        """Add an MPI application: a task that replays a trace message by message.

        Rank k runs on ``hosts[k]``, starting over if there are more ranks than hosts. start_s: date
        at which it starts, s. id: its name; None: a number. Messages are flows of the simulation's
        network model, and collectives use the platform's algorithms. The task ends with its last
        rank and cannot be suspended. Observers are called as for any task; listeners do not receive
        the rates of ranks. Raises as `add`.
        """
        return self.add(Task(tuple(hosts), TraceWork(trace), start_s=start_s, id=id))

    # --- advancing --------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The current date, s."""
        return self.core.now

    @property
    def events(self) -> int:
        """Number of dates at which something happened."""
        return self.core.events

    @property
    def makespan_s(self) -> float:
        """Date of the last end of a task so far, s."""
        return records.makespan(self._intake)

    @property
    def _n_ended(self) -> int:
        return int(self._intake.arrays.counts[0]["n_ended"])

    @with_old_names
    def run(
        self,
        until_s: float | None = None,
        progress: Callable[[float, int, int], None] | None = None,
    ) -> Simulation:
        """Run to the end, or to date ``until_s``; returns the simulation.

        progress(now_s, ended tasks, tasks) is called a few times per second.

        Raises RouteError where a task sends bytes without a route, SimulationError where a task
        cannot be simulated.
        """
        options = self._until(until_s)
        self.core.expect()

        def tell() -> None:
            if progress is not None:
                progress(self.now, self._n_ended, len(self._intake.facts))

        look = now_and_then(tell, PROGRESS_EVERY_S)
        with collector_at_rest():
            while self._advance(options, look) == PAUSED:
                look()
        return self

    @with_old_names
    def advance_to(self, until_s: float) -> None:
        """Run to date ``until_s``. Raises SimulationError if it is past."""
        self.run(until_s)

    def step(self) -> bool:
        """Go to the next date at which something happens; False if nothing ever will."""
        self.core.expect()
        if self._watch.observers:
            return bool(self._step_observed(self.core.options) != IDLE)
        return bool(self._go(self.core.options._replace(mode=STEP)) != IDLE)

    @with_old_names
    def run_until_change(self, until_s: float | None = None) -> list[TaskRef]:
        """Run until some task ends, in whatever state, or to ``until_s``; returns those that ended.

        An empty list means that ``until_s`` was reached or that nothing will ever happen.
        """
        options = self._until(until_s)._replace(stop_on_end=True)
        self.core.expect()
        self._advance(options)
        ended, self._ended = self._ended, []
        counts = self._intake.arrays.counts[0]
        counts["n_told"] = counts["n_ended"]
        return [TaskRef(self, k) for k in ended]

    def next_event_s(self) -> float | None:
        """Date to which `step` would go, s; None if nothing will ever happen.

        What is due now begins first. Changes by availability traces are no events while no task is
        in progress.
        """
        self._settle()
        if self._watch.has_news:
            self._settle_observed(self.core.options)
        date = self.core.next_date()
        return None if date == INFINITY else date

    def deadlock(self) -> str:
        """Which ranks of an application that is being replayed wait, and for what; "" if none."""
        return "" if self._replays is None else self._replays.deadlock()

    def _until(self, until_s: float | None) -> Options:
        if until_s is None:
            return self.core.options
        if not until_s >= self.now:
            raise SimulationError(
                f"cannot go back to {until_s} s; the simulation is at {self.now} s"
            )
        return self.core.options._replace(until=float(until_s))

    def _tell_observer(self, observer: Observer, ended: list[int], started: list[int]) -> None:
        """Tell an observer what ended, then what started, and that the date is done."""
        for k in ended:
            observer.task_ended(TaskRef(self, k))
        for k in started:
            observer.task_started(TaskRef(self, k))
        observer.stepped(self)

    def observe(self, observer: Observer) -> None:
        """Tell an observer of what happens from now on (the loop then stops at each date)."""
        self._hand_over()
        self._watch.observers.append(observer)

    def listen(self, listener: Listener, ranks: bool = False) -> None:
        """Hand the stream of events to a listener from now on (see `Listener`); no result changes.

        Their subjects are the numbers of tasks (`TaskRef.index`). STARTED and ENDED are those of
        tasks, with the state that a task ends in as the value; rates are those of its stages, in
        units of the amount. ranks: also what the ranks of replayed traces do, with subjects below
        0 (see `recording.recorded.Owners`).
        """
        self._hand_over()
        self.core.listen(listener, ranks)
        if ranks and self._replays is not None:
            self._replays.name_activities()

    @property
    def applications(self) -> Applications | None:
        """The ranks of replayed traces; None while no task replays one."""
        return self._replays

    def tell(self) -> None:
        """Let the listeners know now all that was told so far, not only when the loop returns."""
        self._hand_over()

    # --- changes while running --------------------------------------------------------------

    def _changed(self) -> None:
        """Something was changed by hand."""
        self._idle = False
        self._settled = None

    def cancel(self, task: TaskRef) -> None:
        """End a task now, in state cancelled. Raises SimulationError if it is over."""
        if self._intake.arrays.tasks["state"][task.index] >= life.ENDED:
            raise SimulationError(f"task {task.id!r} has ended ({task.state}); choose another")
        self._intake.finish(task.index, int(life.CANCELLED), self.core)
        self._hand_over()
        self._changed()

    def suspend(self, task: TaskRef) -> None:
        """Freeze a task until `resume`. Raises SimulationError if it is not running."""
        self._settle()
        if task.state not in ("running", "starved"):
            raise SimulationError(
                f"task {task.id!r} is {task.state}; only a running task can be suspended"
            )
        if self._intake.is_of_ranks(task.index):
            raise SimulationError(
                f"task {task.id!r} replays a trace, which cannot be suspended; choose another"
            )
        self.core.suspend(self._slot(task))
        self._changed()

    def resume(self, task: TaskRef) -> None:
        """Let a suspended task go on. Raises SimulationError if it is not suspended."""
        slot = self._slot(task)
        if slot < 0 or self.core.state.activities["state"][slot] != SUSPENDED:
            raise SimulationError(
                f"task {task.id!r} is {task.state}, not suspended; suspend it first"
            )
        self.core.resume(slot)
        self._changed()

    def _slot(self, task: TaskRef) -> int:
        return int(self._intake.arrays.tasks["slot"][task.index])

    def set_bandwidth(self, link: str, bandwidth_Bps: float) -> None:
        """Set the bandwidth of a link to `bandwidth_Bps` B/s from now on."""
        self.core.set_capacity(self._link_number(link), checked_amount("bandwidth", bandwidth_Bps))
        self._changed()

    def set_latency(self, link: str, latency_s: float) -> None:
        """Set the latency of a link to `latency_s` s from now on.

        Latency phases that have begun keep their length. TCP windows and weights of flow models
        change at once, also for running tasks.
        """
        self.core.set_latency(self._link_number(link), checked_amount("latency", latency_s))
        self._changed()

    def set_speed(self, host: str, factor: float) -> None:
        """Change the availability of a host from now on: a factor of its peak speed."""
        number = self.platform.host(host).index
        self.core.set_capacity(number, checked_amount("speed factor", factor))
        self._changed()

    def set_pstate(self, host: str, pstate: int) -> None:
        """Set the performance state of a host to number `pstate` from now on; its availability
        factor stays.
        """
        fact = self.platform.host(host)
        if not 0 <= pstate < len(fact.speeds_flops):
            raise SimulationError(
                f"host {host!r} has pstates 0 to {len(fact.speeds_flops) - 1}, but not "
                f"{pstate}; give one of these"
            )
        self.core.set_pstate(fact.index, pstate)
        self._changed()

    def fail(self, name: str) -> None:
        """Turn off the host or link `name` now: tasks that use it fail. Raises PlatformError."""
        self._settle()
        number = self._resource_number(name)
        lost = self.core.set_on(number, False)
        if self._replays is not None:
            lost = [k if k >= 0 else self._replays.task_of(k) for k in lost]
        for task in dict.fromkeys(lost):
            self._intake.finish(task, int(life.FAILED), self.core)
        self._hand_over()
        self._changed()

    def restore(self, name: str) -> None:
        """Turn a host or a link on again. Raises PlatformError if there is none of that name."""
        self.core.set_on(self._resource_number(name), True)
        self._changed()

    def is_on(self, name: str) -> bool:
        """Return whether the host or link `name` is on now. Raises PlatformError if it does not
        exist.
        """
        return self.core.is_on(self._resource_number(name))

    def _resource_number(self, name: str) -> int:
        number = self._intake.host_index.get(name)
        return self._link_number(name) if number is None else number

    def _link_number(self, name: str) -> int:
        return len(self.platform.hosts) + self.platform.link(name).index

    # --- copies -----------------------------------------------------------------------------

    def fork(self) -> Simulation:
        """An independent simulation in the same state; observers and listeners do not follow."""
        self._hand_over()
        twin = copy.copy(self)
        twin.core = self.core.copy()
        twin._intake = self._intake.copy()
        if self._replays is not None:
            twin._replays = self._replays.copy(twin.core)
        twin._watch = Watch[Observer]()
        twin._ended = self._ended.copy()
        twin._settled = None
        return twin

    def snapshot(self) -> Snapshot:
        """The state now, to start from again any number of times."""
        return Snapshot(self.fork())

    def __getstate__(self) -> dict[str, Any]:
        self._hand_over()
        return self.__dict__ | {"_watch": Watch(), "_settled": None}

    # --- reading ----------------------------------------------------------------------------

    def task(self, task_id: str) -> TaskRef:
        """Return the task with the id `task_id`. Raises SimulationError if there is none."""
        if task_id not in self._intake.index:
            raise SimulationError(f"no task has the id {task_id!r}; give the id of a task")
        return TaskRef(self, self._intake.index[task_id])

    def tasks(self) -> Iterator[TaskRef]:
        """All tasks, in the order they were added."""
        return (TaskRef(self, k) for k in range(len(self._intake.facts)))

    def flows_of(self, task: TaskRef) -> Iterator[tuple[int, int, int]]:
        """(number, sender, receiver) of the flows of a task, hosts by index; see `routing`.

        They are numbered from 0 through its stages, in each by the ranks of sender, then receiver.
        """
        return self._intake.flows_of(task.index)

    def _state_name(self, task: int) -> str:
        return records.state_name(self.core, self._intake, task, self._idle)

    def _progress(self, task: int) -> float:
        return records.progress(self.core, self._intake, task)

    def _stages_done(self, task: int) -> int:
        return records.stages_done(self._intake, task)

    def _rate(self, task: int) -> float:
        """The rate once what is due now has begun, found without letting it begin."""
        if self._is_settled:
            return records.rate(self.core, self._intake, task)
        if self._settled is None:
            self._settled = self.fork()
            self._settled._settle()
        return self._settled._rate(task)

    def resource_name(self, resource: int) -> tuple[str, str]:
        """("host" or "link", name) of a resource number in an event."""
        return self.core.resource_name(resource)

    def records(self) -> list[TaskRecord]:
        """What became of each task, in the order they were added."""
        return records.records(self.core, self._intake, self._idle)

    def frame(self) -> pandas.DataFrame:
        """The records as a DataFrame, one row per task, in the order they were added."""
        return records.frame(self.records())


class Snapshot:
    """A simulation held still; see `Simulation.snapshot`."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def restart(self) -> Simulation:
        """A new simulation in the state of the snapshot."""
        return self._simulation.fork()
