"""The simulation: tasks are added, time advances, and what happened is read as records."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import numba
import numpy as np

from ptaskmodel.core.changes import (
    END,
    FAIL,
    RESTORE,
    RESUME,
    SET_BANDWIDTH,
    SET_SPEED,
    SUSPEND,
    change,
    refresh_stage,
)
from ptaskmodel.core.loop import run, upcoming
from ptaskmodel.core.patterns.network_models import config_number
from ptaskmodel.core.patterns.network_models import network_model as find_model
from ptaskmodel.core.patterns.router import Layout, Row
from ptaskmodel.core.solving import code
from ptaskmodel.core.state import (
    CANCELLED,
    COMPLETED,
    DELAYED,
    DEPENDENCY_FAILED,
    ENDED,
    FAILED,
    GROW_NODES,
    GROW_TIMERS,
    IDLE,
    LATENCY_CHANGED,
    LATENT,
    LAYOUT,
    LIMIT_NOTHING,
    LOG,
    LOG_FULL,
    NO_CHANGE,
    PAUSED,
    READY,
    RUN,
    RUNNING,
    SETTLE,
    SEVERAL_CHANGES,
    SOME_ENDED,
    STEP,
    SUSPENDED,
    UNSOLVED,
    UNTIL,
    WAITING,
    WALLTIME,
    Options,
    State,
)
from ptaskmodel.core.store import (
    activity_template,
    enlarged,
    new_log,
    new_log_size,
    new_state,
    room_for_activities,
    room_for_nodes,
    room_for_timers,
)
from ptaskmodel.core.sub_system import sub_system
from ptaskmodel.errors import PlatformError, SimulationError, WorkloadError
from ptaskmodel.memory import collector_at_rest
from ptaskmodel.platform import Platform
from ptaskmodel.sharing.problem import SharingProblem
from ptaskmodel.sharing.rules import RULES, SOLVERS
from ptaskmodel.simulation.programs import Programs
from ptaskmodel.simulation.refs import Observer, TaskRecord, TaskRef, date_or_none
from ptaskmodel.workload.tasks import Task

if TYPE_CHECKING:
    import pandas

INFINITY = float("inf")

STATE_NAMES = {
    WAITING: "waiting",
    READY: "waiting",
    DELAYED: "running",
    LATENT: "running",
    RUNNING: "running",
    SUSPENDED: "suspended",
    COMPLETED: "completed",
    FAILED: "failed",
    WALLTIME: "walltime",
    CANCELLED: "cancelled",
    DEPENDENCY_FAILED: "dependency_failed",
}

NOTHING_ELSE = nullcontext()
EVENTS_PER_SLICE = 20_000
# Tasks laid out ahead when the loop asks for one: fewer returns to Python.
AHEAD_TASKS = 2048


class Simulation:
    """Tasks sharing a platform.

    solver: bmf (the default of the parallel-task model), fairbottleneck (SimGrid's numbers),
    fairbottleneck-corrected, or maxmin (the default of the flow-level models).
    network_model: L07 (parallel tasks), CM02 or LV08 (flows and executions); None: what the
    platform's <config> says, else L07.
    count: who counts as one competitor on a shared link: each task, flow, or pair of hosts.
    optimise: off, every change re-solves the whole system with nothing left out (for tests).

    Raises SimulationError on an unknown option.
    """

    def __init__(
        self,
        platform: Platform,
        *,
        solver: str | None = None,
        network_model: str | None = None,
        count: str = "task",
        optimise: bool = True,
    ) -> None:
        self.platform = platform
        self.network_model = find_model(network_model, platform.config)
        parallel = self.network_model.parallel
        self.solver = solver or ("bmf" if parallel else "maxmin")
        self.count = count
        rule = _rule(self.solver, parallel)
        self._s = new_state(platform)
        self._s.clock[0]["drops_slack"] = RULES[rule].skips_slack
        self._repeats = RULES[rule].counts_repeats
        self._layout = self._new_layout()
        self._s.resources["group"][len(platform.hosts) :] = self._layout.clusters.owner
        self._programs = Programs()
        self._facts: list[Task] = []
        self._ids: list[str] = []
        self._index: dict[str, int] = {}
        self._host_index = {host.name: host.index for host in platform.hosts}
        self._n_followers = 0
        self._laid_to = 0  # tasks whose first stage has been laid out ahead
        self._idle = False
        self._observers: list[Observer] = []
        self._seen_started: set[int] = set()
        self._seen_ended = 0
        self._sinks: list[Callable[[np.ndarray], None]] = []
        config = platform.config
        self._options = Options(
            solver=code(rule),
            flows=not parallel,
            gamma=self.network_model.tcp_gamma,
            work_precision=config_number(config, "precision/work-amount", 1e-5),
            time_precision=config_number(config, "precision/timing", 1e-9),
            incremental=optimise,
            mode=RUN,
            stop_on_end=False,
            until=INFINITY,
            pause_at=np.iinfo(np.int64).max,
        )

    def _new_layout(self) -> Layout:
        return Layout(
            self.platform,
            self.network_model,
            self.count,
            repeats=self._repeats,
            resources=self._s.resources,
        )

    # --- adding -----------------------------------------------------------------------------

    def add(self, task: Task) -> TaskRef:
        """Add a task; it starts at its date, or now, once those in ``after`` have completed.

        Raises PlatformError for an unknown host, WorkloadError for an id that is taken or an
        ``after`` that is no task.
        """
        return TaskRef(self, self.add_all([task]).start)

    def add_all(self, tasks: Iterable[Task]) -> range:
        """Add tasks, which may wait for each other in any order; returns their numbers.

        Raises as `add`, and WorkloadError if tasks wait for each other in a circle; nothing has
        been added then.
        """
        with collector_at_rest():
            return self._add_all(list(tasks))

    def _add_all(self, tasks: list[Task]) -> range:
        first = len(self._facts)
        hosts = [self._host_numbers(task) for task in tasks]
        self._name(tasks)
        try:
            waits = self._dependencies(tasks, first)
        except WorkloadError:
            self._forget(first)
            raise
        self._register(tasks, hosts, first)
        self._chain(waits)
        self._s = room_for_timers(self._s, 0)
        self._idle = False
        return range(first, len(self._facts))

    def _host_numbers(self, task: Task) -> tuple[int, ...]:
        try:
            return tuple(map(self._host_index.__getitem__, task.hosts))
        except KeyError as missing:
            name = "" if task.id is None else f"task {task.id!r}: "
            try:
                self.platform.host(missing.args[0])
            except PlatformError as error:
                raise PlatformError(f"{name}{error}") from None
            raise

    def _name(self, tasks: list[Task]) -> None:
        first = len(self._facts)
        for k, task in enumerate(tasks, start=first):
            name = str(k) if task.id is None else task.id
            if self._index.setdefault(name, k) != k:
                self._ids.append(name)
                self._forget(first)
                raise WorkloadError(f"task {name!r}: the id is taken; give each task its own")
            self._ids.append(name)

    def _forget(self, first: int) -> None:
        for k, name in enumerate(self._ids[first:], start=first):
            if self._index.get(name) == k:
                del self._index[name]
        del self._ids[first:]

    def _dependencies(self, tasks: list[Task], first: int) -> list[tuple[int, list[int]]]:
        """(task, those that it waits for) of the tasks that wait for others."""
        found = []
        for k, task in enumerate(tasks, start=first):
            if task.after:
                before = []
                for name in task.after:
                    if name not in self._index:
                        raise WorkloadError(
                            f"task {self._ids[k]!r}: after {name!r}, which is not the id of a task"
                        )
                    before.append(self._index[name])
                found.append((k, before))
        _check_acyclic(found, self._ids)
        return found

    def _register(self, tasks: list[Task], hosts: list[tuple[int, ...]], first: int) -> None:
        last = first + len(tasks)
        self._s = room_for_activities(self._s, last)
        find = self._programs.find
        programs = [
            find(task.work, where, task.competitors)
            for task, where in zip(tasks, hosts, strict=True)
        ]
        self._s = self._programs.enter(self._s)
        users = self._s.programs["users"]
        if len(programs) == 1:
            users[programs[0]] += 1
        else:
            np.add.at(users, programs, 1)
        records = self._s.activities[first:last]
        records[:] = activity_template()[0]
        records["start"] = [task.start_s for task in tasks]
        records["weight"] = [task.weight for task in tasks]
        records["walltime"] = [
            INFINITY if task.walltime_s is None else task.walltime_s for task in tasks
        ]
        records["rate_bound"] = [
            INFINITY if task.rate_bound is None else task.rate_bound for task in tasks
        ]
        records["program"] = programs
        self._s.clock[0]["n_tasks"] = last
        self._facts.extend(tasks)

    def _chain(self, waits: list[tuple[int, list[int]]]) -> None:
        """Hang each task on those that it waits for."""
        size = self._n_followers + sum(len(before) for _, before in waits)
        self._s = self._s._replace(followers=enlarged(self._s.followers, size + 1))
        s = self._s
        told = int(s.clock[0]["n_released"])
        released = set(s.activities["slot_ended"][:told].tolist()) if waits else set()
        for task, before in waits:
            for other in before:
                if other in released:
                    if s.activities["state"][other] != COMPLETED:
                        change(s, END, task, float(DEPENDENCY_FAILED), 0.0)
                        break
                    continue
                s.activities["waits_for"][task] += 1
                s.followers[self._n_followers] = (task, s.activities["followers"][other])
                s.activities["followers"][other] = self._n_followers
                self._n_followers += 1

    # --- advancing --------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The current date, s."""
        return float(self._s.clock[0]["now"])

    @property
    def events(self) -> int:
        """Number of dates at which something happened."""
        return int(self._s.clock[0]["events"])

    @property
    def makespan(self) -> float:
        """Date of the last end of a task so far, s."""
        finished = self._s.activities["finished"][: len(self._facts)]
        finished = finished[~np.isnan(finished)]
        return float(finished.max()) if len(finished) else 0.0

    def run(
        self,
        until: float | None = None,
        progress: Callable[[float, int, int], None] | None = None,
    ) -> Simulation:
        """Run to the end, or to date ``until`` (s); returns the simulation.

        progress(now_s, ended tasks, tasks) is called a few times per second.

        Raises RouteError where a task sends bytes without a route, SimulationError where a task
        cannot be simulated.
        """
        options = self._until(until)
        told = time.monotonic()
        with collector_at_rest():
            while self._advance(options, pause=True) == PAUSED:
                if progress is not None and time.monotonic() - told > 0.2:
                    told = time.monotonic()
                    progress(self.now, int(self._s.clock[0]["n_ended"]), len(self._facts))
        return self

    def advance_to(self, date: float) -> None:
        """Run to a date, s. Raises SimulationError if it is past."""
        self.run(date)

    def step(self) -> bool:
        """Go to the next date at which something happens; False if nothing ever will."""
        return self._advance(self._options._replace(mode=STEP)) != IDLE

    def run_until_change(self, until: float | None = None) -> list[TaskRef]:
        """Run until some task ends, in whatever state, or to ``until``; returns those that ended.

        An empty list means that ``until`` was reached or that nothing will ever happen.
        """
        self._advance(self._until(until)._replace(stop_on_end=True))
        return [TaskRef(self, k) for k in self._newly_ended()]

    def _newly_ended(self) -> list[int]:
        clock = self._s.clock[0]
        ended = self._ended(int(clock["n_told"]))
        clock["n_told"] = clock["n_ended"]
        return ended

    def _ended(self, first: int) -> list[int]:
        """Tasks in the order they ended, from the first-th on."""
        last = int(self._s.clock[0]["n_ended"])
        return self._s.activities["slot_ended"][first:last].tolist()

    def next_event_time(self) -> float | None:
        """Date of the next event, s; None if nothing will ever happen."""
        self._settle()
        date = upcoming(self._s)
        return None if date == INFINITY else float(date)

    def _until(self, until: float | None) -> Options:
        if until is None:
            return self._options
        if not until >= self.now:
            raise SimulationError(f"cannot go to date {until}: it is {self.now} now")
        return self._options._replace(until=float(until))

    def _settle(self) -> None:
        """Let what is due now begin and share anew, so that rates are those in force."""
        self._advance(self._options._replace(mode=SETTLE))

    def _advance(self, options: Options, pause: bool = False) -> int:
        """Run the event loop, doing what it asks for; returns why it stopped."""
        if self._observers and options.mode == RUN:
            return self._advance_observed(options)
        if pause:
            at = int(self._s.clock[0]["events"]) + EVENTS_PER_SLICE
            options = options._replace(pause_at=at)
        while True:
            with as_compiled():
                status = run(self._s, options)
            if status == LAYOUT:
                self._lay_ahead(int(self._s.clock[0]["argument"]))
            elif status == GROW_NODES:
                self._s = room_for_nodes(self._s, int(self._s.clock[0]["argument"]))
            elif status == GROW_TIMERS:
                self._s = room_for_timers(self._s, 16)
            elif status == UNSOLVED:
                self._solve_hard()
            elif status == LATENCY_CHANGED:
                self._refresh_latencies()
            elif status == LOG_FULL:
                self._empty_log()
            else:
                self._idle = bool(status == IDLE)
                if self._sinks:
                    self._empty_log()
                return int(status)

    def _advance_observed(self, options: Options) -> int:
        """The same, one date after the other, telling the observers."""
        mode = SETTLE
        while True:
            observers, self._observers = self._observers, []
            try:
                status = self._advance(options._replace(mode=mode))
            finally:
                self._observers = observers
            self._tell()
            clock = self._s.clock[0]
            if options.stop_on_end and clock["n_ended"] > clock["n_told"]:
                return int(SOME_ENDED)
            if mode == STEP and status in (IDLE, UNTIL):
                return status
            mode = STEP

    def _tell(self) -> None:
        """Tell the observers what ended and what started since the last time."""
        started = np.flatnonzero(
            ~np.isnan(self._s.activities["started"][: len(self._facts)])
        ).tolist()
        new = sorted(set(started) - self._seen_started)
        ended = self._ended(self._seen_ended)
        self._seen_started.update(new)
        self._seen_ended += len(ended)
        for observer in self._observers:
            for k in ended:
                observer.task_ended(TaskRef(self, k))
            for k in new:
                observer.task_started(TaskRef(self, k))
            observer.stepped(self)

    def observe(self, observer: Observer) -> None:
        """Tell an observer of what happens from now on (the loop then stops at each date)."""
        if not self._observers:
            started = ~np.isnan(self._s.activities["started"][: len(self._facts)])
            self._seen_started = set(np.flatnonzero(started).tolist())
            self._seen_ended = int(self._s.clock[0]["n_ended"])
        self._observers.append(observer)

    # --- what the event loop asks for -------------------------------------------------------

    def _lay_ahead(self, task: int) -> None:
        """Lay out the stage that a task needs, and the first stages of those added after it."""
        self._lay(task)
        first = max(task + 1, self._laid_to)
        self._laid_to = min(first + AHEAD_TASKS, len(self._facts))
        if first >= self._laid_to:
            return
        s = self._s
        records = s.activities[first : self._laid_to]
        waiting = np.isin(records["state"], (WAITING, READY)) & np.isnan(records["started"])
        stages = np.unique(s.programs["first"][records["program"][waiting]])
        stages = stages[s.stages["first"][stages] < 0]
        try:
            self._s = self._programs.lay_ahead(s, stages.tolist(), self._layout)
        except (PlatformError, SimulationError):
            # Whoever needs that stage will say so, by name.
            self._laid_to = first

    def _lay(self, task: int) -> None:
        record = self._s.activities[task]
        program = self._s.programs[int(record["program"])]
        stage = int(program["first"]) + int(record["stage"])
        if self._s.stages["first"][stage] < 0:
            try:
                self._s = self._programs.lay(self._s, stage, self._layout)
            except (PlatformError, SimulationError) as error:
                raise type(error)(f"task {self._ids[task]!r}: {error}") from None

    def _solve_hard(self) -> None:
        """The fast rungs of bmf failed on the sub-system laid out: take the slow, sure ones."""
        from ptaskmodel.sharing.bmf_hard import bmf_hard

        s = self._s
        n, m = int(s.clock[0]["n_sub"]), int(s.clock[0]["m_sub"])
        v = sub_system(s)
        z = int(v.start[n])
        problem = SharingProblem(
            start=v.start[: n + 1].copy(),
            resource=v.resource[:z].copy(),
            usage=v.usage[:z].copy(),
            share=v.share[:z].copy(),
            capacity=v.capacity[:m].copy(),
            fatpipe=s.flags[:m].copy(),
            bound=v.bound[:n].copy(),
            weight=v.weight[:n].copy(),
        )
        allocation = bmf_hard(problem)
        v.rate[:n] = allocation.rates
        v.limit[:n] = allocation.limits
        v.level[:m] = INFINITY

    def _refresh_latencies(self) -> None:
        """A latency or a bandwidth changed: lay out again, refresh the tasks that run."""
        s = self._s
        link = int(s.clock[0]["changed"])
        s.clock[0]["changed"] = NO_CHANGE
        self._programs.forget_latencies(s)
        users = range(len(self._facts)) if link == SEVERAL_CHANGES else self._users(link)
        active = np.isin(s.activities["state"][users], (LATENT, RUNNING, SUSPENDED))
        for task in np.array(users)[active].tolist():
            record = s.activities[task]
            program = int(record["program"])
            stage = int(s.programs[program]["first"]) + int(record["stage"])
            if not np.isnan(s.stages[stage]["delay"]):
                continue
            self._lay(task)
            s = self._s
            laid = s.stages[stage]
            refresh_stage(s, task, laid["latency_bytes"], laid["penalty"], self._options.gamma)

    def _users(self, resource: int) -> list[int]:
        """The tasks on a resource, in increasing order."""
        found = set()
        k = int(self._s.resources["first"][resource])
        while k >= 0:
            found.add(int(self._s.nodes["slot"][k]))
            k = int(self._s.nodes["next"][k])
        return sorted(found)

    def log_rates(self, sink: Callable[[np.ndarray], None]) -> None:
        """Hand every change of a rate from now on to ``sink``, in arrays of `state.LOG` records.

        Rates are constant between two records of a task, and the resources that it uses are those
        of `stage_row`. What is left is handed over whenever a run stops. No result changes. Several
        sinks are given the same arrays: they must not write to them.
        """
        self._sinks.append(sink)
        self._s = self._s._replace(log=new_log(len(self._facts)))

    def stage_row(self, stage: int) -> Row:
        """What a stage (number in a `state.LOG` record) asks of each resource, as of now."""
        program = self._programs.stage_program[stage]
        work = self._programs.stage_work[stage]
        hosts, competitors = self._programs.hosts[program], self._programs.competitors[program]
        return self._layout.lay(work, hosts, competitors)  # type: ignore[arg-type]

    def resource_name(self, resource: int) -> tuple[str, str]:
        """("host" or "link", name) of a resource number of `stage_row` or of a record's limit."""
        n = len(self.platform.hosts)
        if resource < n:
            return "host", self.platform.hosts[resource].name
        return "link", self.platform.links[resource - n].name

    def _empty_log(self) -> None:
        """Hand the log to whoever wants it; make it larger if one date may not fit."""
        n = int(self._s.clock[0]["n_log"])
        if n:
            self._hand_over(np.array(self._s.log[:n]))
        self._s.clock[0]["n_log"] = 0
        if len(self._s.log) < new_log_size(len(self._facts)):
            self._s = self._s._replace(log=new_log(len(self._facts)))

    def _hand_over(self, records: np.ndarray) -> None:
        for sink in self._sinks:
            sink(records)

    def _log_capacity(self, resource: int) -> None:
        """Tell the sink of rates that a capacity was set by hand."""
        if self._sinks:
            self._empty_log()
            capacity = float(self._s.resources["capacity"][resource])
            self._hand_over(
                np.array([(-1, resource, self.now, capacity, LIMIT_NOTHING)], dtype=LOG)
            )

    # --- changes while running --------------------------------------------------------------

    def cancel(self, task: TaskRef) -> None:
        """End a task now, in state cancelled. Raises SimulationError if it is over."""
        self._check_alive(task)
        self._change(END, task.index, CANCELLED)

    def suspend(self, task: TaskRef) -> None:
        """Freeze a task until `resume`. Raises SimulationError if it is not running."""
        self._settle()
        if self._s.activities["state"][task.index] not in (DELAYED, LATENT, RUNNING):
            raise SimulationError(
                f"task {task.id!r} is {task.state}; only a running task is suspended"
            )
        self._change(SUSPEND, task.index)

    def resume(self, task: TaskRef) -> None:
        """Let a suspended task go on. Raises SimulationError if it is not suspended."""
        if self._s.activities["state"][task.index] != SUSPENDED:
            raise SimulationError(f"task {task.id!r} is {task.state}, not suspended")
        self._idle = False
        self._s = room_for_timers(self._s, 1)
        self._change(RESUME, task.index)

    def _change(self, what: int, number: int, value: float = 0.0) -> None:
        with as_compiled():
            change(self._s, what, number, float(value), self._options.gamma)

    def _check_alive(self, task: TaskRef) -> None:
        if self._s.activities["state"][task.index] >= ENDED:
            raise SimulationError(f"task {task.id!r} is over: {task.state}")

    def set_bandwidth(self, link: str, bandwidth_Bps: float) -> None:
        """Change the bandwidth of a link from now on, B/s."""
        number = self._link_number(link)
        self._change(SET_BANDWIDTH, number, _checked("bandwidth", bandwidth_Bps))
        self._log_capacity(number)
        if not self.network_model.parallel:
            self._s.clock[0]["changed"] = SEVERAL_CHANGES
        self._idle = False

    def set_latency(self, link: str, latency_s: float) -> None:
        """Change the latency of a link from now on, s; latency phases under way go on."""
        self._s.resources["latency"][self._link_number(link)] = _checked("latency", latency_s)
        self._s.clock[0]["changed"] = SEVERAL_CHANGES

    def set_speed(self, host: str, factor: float) -> None:
        """Change the availability of a host from now on: a factor of its peak speed."""
        number = self.platform.host(host).index
        self._change(SET_SPEED, number, _checked("speed factor", factor))
        self._log_capacity(number)
        self._idle = False

    def set_pstate(self, host: str, pstate: int) -> None:
        """Change the performance state of a host from now on (its availability factor stays)."""
        fact = self.platform.host(host)
        if not 0 <= pstate < len(fact.speeds_flops):
            raise SimulationError(
                f"host {host!r} has pstates 0 to {len(fact.speeds_flops) - 1}, not {pstate}"
            )
        r = self._s.resources[fact.index]
        factor = r["one_core"] / r["peak"] if r["peak"] > 0.0 else 1.0
        r["peak"] = fact.speeds_flops[pstate]
        self._change(SET_SPEED, fact.index, factor)
        self._log_capacity(fact.index)
        self._idle = False

    def fail(self, name: str) -> None:
        """Turn a host or a link off now: the tasks that use it fail. Raises PlatformError."""
        self._settle()
        self._change(FAIL, self._resource_number(name))

    def restore(self, name: str) -> None:
        """Turn a host or a link on again. Raises PlatformError if there is none of that name."""
        self._change(RESTORE, self._resource_number(name))

    def _resource_number(self, name: str) -> int:
        if name in self._host_index:
            return self._host_index[name]
        return self._link_number(name)

    def _link_number(self, name: str) -> int:
        return len(self.platform.hosts) + self.platform.link(name).index

    def fork(self) -> Simulation:
        """An independent simulation in the same state; observers do not follow."""
        twin = copy.copy(self)
        twin._s = State(*(array.copy() for array in self._s))
        twin._layout = self._layout.on(twin._s.resources)
        twin._programs = self._programs.copy()
        twin._facts = self._facts.copy()
        twin._ids = self._ids.copy()
        twin._index = self._index.copy()
        twin._observers = []
        twin._sinks = []
        twin._s = twin._s._replace(log=self._s.log[:0].copy())
        twin._s.clock[0]["n_log"] = 0
        return twin

    def snapshot(self) -> Snapshot:
        """The state now, to start from again any number of times."""
        return Snapshot(self.fork())

    # --- reading ----------------------------------------------------------------------------

    def task(self, task_id: str) -> TaskRef:
        """The task of that id. Raises SimulationError if there is none."""
        if task_id not in self._index:
            raise SimulationError(f"no task has the id {task_id!r}")
        return TaskRef(self, self._index[task_id])

    def tasks(self) -> Iterator[TaskRef]:
        """All tasks, in the order they were added."""
        return (TaskRef(self, k) for k in range(len(self._facts)))

    def _state_name(self, k: int) -> str:
        record = self._s.activities[k]
        state = int(record["state"])
        if state == RUNNING and self._idle and record["rate"] == 0.0:
            return "starved"
        return STATE_NAMES[state]

    def _progress(self, k: int) -> float:
        self._settle()
        record = self._s.activities[k]
        state = int(record["state"])
        if state == COMPLETED:
            return 1.0
        if state not in (RUNNING, SUSPENDED):
            return 0.0
        program = self._s.programs[int(record["program"])]
        amount = float(self._s.stages[int(program["first"]) + int(record["stage"])]["amount"])
        left = float(record["remaining"] - record["rate"] * (self.now - record["updated"]))
        return min(max(1.0 - left / amount, 0.0), 1.0) if amount > 0.0 else 0.0

    def _rate(self, k: int) -> float:
        self._settle()
        record = self._s.activities[k]
        if int(record["state"]) != RUNNING:
            return 0.0
        program = self._s.programs[int(record["program"])]
        amount = float(self._s.stages[int(program["first"]) + int(record["stage"])]["amount"])
        return float(record["rate"]) / amount

    def records(self) -> list[TaskRecord]:
        """What became of each task, in the order they were added."""
        table = self._s.activities
        n = len(self._facts)
        started, finished = table["started"][:n].tolist(), table["finished"][:n].tolist()
        found = []
        for k, task in enumerate(self._facts):
            start, finish = date_or_none(started[k]), date_or_none(finished[k])
            duration = None if start is None or finish is None else finish - start
            found.append(
                TaskRecord(
                    self._ids[k],
                    task.profile,
                    start,
                    finish,
                    duration,
                    self._state_name(k),
                    task.hosts,
                )
            )
        return found

    def frame(self) -> pandas.DataFrame:
        """The records as a DataFrame, one row per task, in the order they were added."""
        import pandas

        names = list(TaskRecord.__slots__)
        rows = [[getattr(record, name) for name in names] for record in self.records()]
        frame = pandas.DataFrame(rows, columns=names)
        dates = ["start_time", "finish_time", "execution_time"]
        return frame.astype(dict.fromkeys(dates, "float64"))


class Snapshot:
    """A simulation held still; see `Simulation.snapshot`."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def restart(self) -> Simulation:
        """A new simulation in the state of the snapshot."""
        return self._simulation.fork()


def as_compiled() -> AbstractContextManager[None]:
    """Lets interpreted kernels divide by zero without a word, as compiled ones do."""
    if not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return NOTHING_ELSE
    return np.errstate(divide="ignore", invalid="ignore", over="ignore")


def _rule(solver: str, parallel: bool) -> str:
    if solver not in SOLVERS:
        raise SimulationError(f"solver {solver!r} is not known; choose one of {', '.join(SOLVERS)}")
    if not parallel and solver == "maxmin":
        return "flow-maxmin"
    return solver


def _checked(name: str, value: float) -> float:
    value = float(value)
    if not 0.0 <= value < INFINITY:
        raise SimulationError(f"{name} {value!r} is not a finite number >= 0")
    return value


def _check_acyclic(waits: list[tuple[int, list[int]]], ids: list[str]) -> None:
    """Raises WorkloadError if tasks wait for each other in a circle."""
    before = dict(waits)
    done: set[int] = set()
    for root in before:
        path: list[tuple[int, Iterator[int]]] = [(root, iter(before[root]))]
        on_path = {root}
        while path and root not in done:
            task, rest = path[-1]
            other = next(rest, None)
            if other is None:
                done.add(task)
                on_path.discard(task)
                path.pop()
            elif other in on_path:
                raise WorkloadError(
                    f"task {ids[other]!r}: waits for itself through its `after` list"
                )
            elif other in before and other not in done:
                path.append((other, iter(before[other])))
                on_path.add(other)
