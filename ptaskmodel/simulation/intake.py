"""Take in tasks: check and name them, and register each with the tasks that it waits for.

It also checks the arguments of `Simulation`: an error is one line with the problem and the remedy.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ptaskmodel.engine.driver import Core
from ptaskmodel.engine.queue import EMPTY
from ptaskmodel.engine.usage.paths import flows_of
from ptaskmodel.engine.usage.placement import NUMBER_BYTES, hosts_of, places_of
from ptaskmodel.errors import PlatformError, SimulationError, WorkloadError, shown
from ptaskmodel.kernels.records import enlarged
from ptaskmodel.lazy import Chained
from ptaskmodel.platform import Platform
from ptaskmodel.simulation.life import (
    COMPLETED,
    DEPENDENCY_FAILED,
    READY,
    RUNNING,
    WAITING,
    Tasks,
    finish,
    new_tasks,
    task_template,
)
from ptaskmodel.simulation.programs import Programs
from ptaskmodel.workload.amounts import NO_INTS, IntArray
from ptaskmodel.workload.blocks import TaskTable
from ptaskmodel.workload.tasks import Task, check_acyclic
from ptaskmodel.workload.works import TraceWork

if TYPE_CHECKING:
    from ptaskmodel.mpi.applications import Applications


INFINITY = float("inf")
# Stages routed ahead when the loop asks for one: fewer returns to Python.
AHEAD_TASKS = 2048
AT_ONCE = 512  # tasks whose hosts are looked up together


class Numbers(Sequence[str]):
    """The ids of `count` tasks without one: their numbers, from the first on."""

    __slots__ = ("_numbers",)

    def __init__(self, first: int, count: int) -> None:
        self._numbers = range(first, first + count)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, k: int) -> str: ...
    @overload
    def __getitem__(self, k: slice) -> list[str]: ...
    def __getitem__(self, k: int | slice) -> str | list[str]:
        return list(map(str, self._numbers[k])) if isinstance(k, slice) else str(self._numbers[k])


class Intake:
    """The tasks of a simulation: the arrays that the loop works on, and their Python side."""

    def __init__(self, core: Core) -> None:
        self.arrays: Tasks = new_tasks()
        self.programs = Programs()
        self.facts = Chained[Task]()
        self.ids = Chained[str]()
        self._index: dict[str, int] = {}  # of the first tasks, as many as it has
        self._numbered = False  # no task has an id of its own
        self.host_index = core.platform.facts.host_index
        # Tasks whose first stage has not been routed ahead: the rest of a run in the order of
        # their dates, then those from a number on.
        self._ahead: IntArray = NO_INTS
        self._unordered_from = 0

    def copy(self) -> Intake:
        """An independent copy."""
        twin = Intake.__new__(Intake)
        twin.arrays = Tasks(*(array.copy() for array in self.arrays))
        twin.programs = self.programs.copy()
        twin.facts = self.facts.copy()
        twin.ids = self.ids.copy()
        twin._numbered = self._numbered
        twin._index = self._index.copy()
        twin.host_index = self.host_index
        twin._ahead, twin._unordered_from = self._ahead, self._unordered_from
        return twin

    @property
    def is_settled(self) -> bool:
        """Whether nothing is due to begin now."""
        counts = self.arrays.counts[0]
        waiting = counts["n_admitted"] < counts["n_tasks"]
        return not waiting and counts["ready"]["first"] < 0 and counts["ended"]["first"] < 0

    @property
    def index(self) -> dict[str, int]:
        """The number of each task by its id, made when it is asked for."""
        known = len(self._index)
        if known < len(self.ids):
            self._index.update(zip(self.ids.rest(known), itertools.count(known), strict=False))
        return self._index

    def add(self, tasks: Sequence[Task], core: Core) -> range:
        """Add tasks (a list of them or a `TaskTable`); returns their numbers.

        core: the engine, whose platform has their hosts. Raises PlatformError for an unknown host,
        WorkloadError for an id that is taken, an ``after`` that is no task, or a circle of them;
        nothing has been added then.
        """
        first = len(self.facts)
        table = tasks if isinstance(tasks, TaskTable) else None
        own_routes = core.router.flow_routes.routing is not None
        if table is None and (own_routes or core.model.wire is not None):
            self._check_no_replay(tasks)
        if table is None:
            places = self._places(tasks, core)
            self._name([task.id for task in tasks])
            after = [(k, task.after) for k, task in enumerate(tasks) if task.after]
        else:
            hosts = self._hosts(table, core)
            self._name_all(table)
            after = list(table.after.items())
        try:
            waits = self._dependencies(after, first)
        except WorkloadError:
            self._forget(first)
            raise
        names = None
        if own_routes:
            connections = (
                [task.connection for task in tasks]
                if table is None
                else map(table.connections.get, range(len(table)))
            )
            names = list(map(core.router.flow_routes.name, self.ids[first:], connections))
        if table is None:
            records = self._register(tasks, places, names)
        else:
            records = self._register_table(table, hosts, names)
        if len(tasks) > 1:  # for one the loop asks itself
            core.make_room_for_wakes(int((records["start"] > core.now).sum()))
        if waits:
            self._chain(waits, core)
        return range(first, len(self.facts))

    def _hosts(self, table: TaskTable, core: Core) -> IntArray:
        """The numbers of the hosts of a table, in its order."""
        numbers = np.array([self.host_index.get(name, -1) for name in table.names], np.int64)
        hosts: IntArray = numbers[table.hosts]
        unknown = np.flatnonzero(hosts < 0)
        if len(unknown):
            lists = np.searchsorted(table.first_host, unknown, side="right") - 1
            self._check_hosts(table[int(np.isin(table.host_list, lists).argmax())], core)
        return hosts

    def _places(self, tasks: Sequence[Task], core: Core) -> list[bytes]:
        """The hosts of each task (see `places_of`), found for many tasks in one pass."""
        places: list[bytes] = []
        try:
            for k in range(0, len(tasks), AT_ONCE):
                hosts = [task.hosts for task in tasks[k : k + AT_ONCE]]
                flat = self._places_of_names(list(itertools.chain.from_iterable(hosts)))
                first = 0
                for names in hosts:
                    last = first + NUMBER_BYTES * len(names)
                    places.append(flat[first:last])
                    first = last
        except (AttributeError, KeyError):
            for task in tasks:
                self._check_hosts(task, core)
            raise
        return places

    def _places_of_names(self, names: list[str]) -> bytes:
        if len(names) < 2:
            return places_of([self.host_index[name] for name in names])
        return places_of(operator.itemgetter(*names)(self.host_index))

    def _check_hosts(self, task: Task, core: Core) -> None:
        """Say what is wrong with the hosts of what is given as a task, if anything is."""
        if not isinstance(task, Task):
            raise WorkloadError(
                f"{type(task).__name__} is not a task; give Execution, Flow, ParallelTask, Delay, "
                "Sequence or Task (add_all takes several)"
            ) from None
        unknown = next((name for name in task.hosts if name not in self.host_index), None)
        if unknown is not None:
            name = "" if task.id is None else f"task {task.id!r}: "
            try:
                core.platform.host(unknown)
            except PlatformError as error:
                raise PlatformError(f"{name}{error}") from None

    def _check_no_replay(self, tasks: Sequence[Task]) -> None:
        """Raise SimulationError for a task whose ranks send messages, which cannot be routed."""
        for k, task in enumerate(tasks, start=len(self.facts)):
            if any(isinstance(work, TraceWork) for work in task.work.one_round()):
                name = str(k) if task.id is None else task.id
                raise SimulationError(
                    f"task {name!r}: it replays a trace, whose messages use the platform's routes "
                    "and no wire model; leave out --routing and the model"
                )

    def _name(self, ids: Sequence[str | None]) -> None:
        """Note the ids of new tasks; None: its number. Raises WorkloadError if one is taken."""
        first, index = len(self.ids), self.index
        self._numbered = False
        for k, own in enumerate(ids, start=first):
            name = str(k) if own is None else own
            if index.setdefault(name, k) != k:
                self.ids.extend([name])
                self._forget(first)
                raise WorkloadError(
                    f"task {name!r}: another task has this id; give each task its own"
                )
            self.ids.extend([name])

    def _name_all(self, table: TaskTable) -> None:
        """The same for a table, without the index where no id can be taken."""
        count, first = len(table), len(self.ids)
        if table.ids is None and (not first or self._numbered):
            self.ids.extend(Numbers(first, count))
            self._numbered = True
        elif table.ids is not None and not first and len(set(table.ids)) == count:
            self.ids.extend(table.ids)
        else:
            self._name([None] * count if table.ids is None else table.ids)

    def _forget(self, first: int) -> None:
        """Forget the ids from a number on."""
        for k, name in enumerate(self.ids[first:], start=first):
            if self._index.get(name) == k:
                del self._index[name]
        self.ids.cut(first)

    def _dependencies(
        self, after: Iterable[tuple[int, Sequence[str]]], first: int
    ) -> list[tuple[int, list[int]]]:
        """(task, those that it waits for) of the tasks that wait for others.

        after: (place, ids) of those among the new ones, which begin with number ``first``.
        """
        found = []
        for place, names in after:
            before = []
            for name in names:
                if name not in self.index:
                    raise WorkloadError(
                        f"task {self.ids[first + place]!r}: after names {name!r}, which is not "
                        "the id of a task; correct it"
                    )
                before.append(self.index[name])
            found.append((first + place, before))
        if found:
            check_acyclic(found, self.ids)
        return found

    def _register(
        self, tasks: Sequence[Task], places: Sequence[bytes], names: Sequence[str] | None
    ) -> np.ndarray:
        """Enter tasks; returns their records. names: if their flows choose their own routes."""
        works = [task.work for task in tasks]
        competitors = [task.competitors for task in tasks]
        programs = self.programs.find(works, places, competitors, names or [None] * len(tasks))
        records = self._new_records(programs)
        records["start"] = [task.start_s for task in tasks]
        records["weight"] = [task.weight for task in tasks]
        # Most tasks have neither of these; the template says so.
        limits = [task.walltime_s for task in tasks], [task.rate_bound for task in tasks]
        for name, given in zip(("walltime", "rate_bound"), limits, strict=True):
            if given.count(None) < len(given):
                records[name] = [INFINITY if limit is None else limit for limit in given]
        self.facts.extend(tasks)
        return records

    def _register_table(
        self, table: TaskTable, hosts: IntArray, names: Sequence[str] | None
    ) -> np.ndarray:
        """The same of a table on these hosts."""
        records = self._new_records(self.programs.find_all(table, hosts, names))
        records["start"], records["weight"] = table.start_s, table.weight
        records["walltime"], records["rate_bound"] = table.walltime_s, table.rate_bound
        self.facts.extend(table)
        return records

    def _new_records(self, programs: Sequence[int] | IntArray) -> np.ndarray:
        """The records of new tasks, whose programs are these."""
        first = len(self.facts)
        last = first + len(programs)
        arrays = self.programs.enter(self.arrays)
        arrays = arrays._replace(tasks=enlarged(arrays.tasks, last))
        self.arrays = arrays
        users = arrays.programs["users"]
        if len(programs) == 1:
            users[programs[0]] += 1
        else:
            np.add.at(users, programs, 1)
        records = arrays.tasks[first:last]
        records[:] = task_template()[0]
        records["program"] = programs
        arrays.counts[0]["n_tasks"] = last
        return records

    def _chain(self, waits: Sequence[tuple[int, list[int]]], core: Core) -> None:
        """Hang each task on those that it waits for."""
        counts = self.arrays.counts[0]
        size = int(counts["n_followers"]) + sum(len(before) for _, before in waits)
        self.arrays = self.arrays._replace(followers=enlarged(self.arrays.followers, size + 1))
        tasks, followers = self.arrays.tasks, self.arrays.followers
        for task, before in waits:
            for other in before:
                if tasks["released"][other]:
                    if tasks["state"][other] != COMPLETED:
                        self.finish(task, int(DEPENDENCY_FAILED), core)
                        break
                    continue
                place = int(counts["n_followers"])
                tasks["waits_for"][task] += 1
                followers[place] = (task, tasks["followers"][other])
                tasks["followers"][other] = place
                counts["n_followers"] += 1

    def finish(self, task: int, state: int, core: Core) -> None:
        """End a task now, in a final state."""
        core.make_room_for_events(4)
        finish(core.state, self.arrays, task, state)

    def route(self, task: int, core: Core) -> None:
        """Route the stage that a task needs, and the first stages of those that start next.

        Raises RouteError or SimulationError, with the id of the task.
        """
        if core.has_idle_patterns():
            self.programs.release(self.arrays, core)
            core.reclaim()
        arrays = self.arrays
        stage = self._stage(task)
        tasks = self._next_tasks(task)
        if len(tasks):
            state, started = arrays.tasks["state"][tasks], arrays.tasks["started"][tasks]
            waiting = ((state == WAITING) | (state == READY)) & np.isnan(started)
            stages = np.sort(arrays.programs["first"][arrays.tasks["program"][tasks[waiting]]])
            stages = stages[(stages != stage) & (np.diff(stages, prepend=-1) > 0)]
            # Whoever needs a stage that cannot be routed will say so, by name.
            with contextlib.suppress(PlatformError, SimulationError):
                self.programs.route(arrays, core, [stage, *stages.tolist()])
        try:
            self.programs.route(arrays, core, [stage])
        except (PlatformError, SimulationError) as error:
            raise type(error)(f"task {self.ids[task]!r}: {error}") from None

    def flows_of(self, task: int) -> Iterator[tuple[int, int, int]]:
        """(number, sender, receiver) of the flows of a task, hosts by index; of one round."""
        fact = self.facts[task]
        return flows_of(fact, [self.host_index[name] for name in fact.hosts])

    def begin_ranks(self, replays: Applications) -> None:
        """Let the ranks of the tasks that the loop has listed for that begin, in `replays`.

        Raises SimulationError, with the id of the task, where its collectives cannot be done.
        """
        counts, tasks = replays.state.counts[0], self.arrays.tasks
        task = int(counts["wanted"]["first"])
        counts["wanted"] = EMPTY
        while task >= 0:
            record = tasks[task]
            if record["state"] == RUNNING:
                work = self.programs.stage_work[self._stage(task)]
                hosts = hosts_of(self.programs.places[int(record["program"])])
                assert isinstance(work, TraceWork)
                placed = [hosts[k % len(hosts)] for k in range(work.trace.ranks)]
                try:
                    replays.choose(work.trace)
                except SimulationError as error:
                    raise SimulationError(f"task {self.ids[task]!r}: {error}") from None
                replays.begin(task, work.trace, placed)
            task = int(record["next_ready"])

    def is_of_ranks(self, task: int) -> bool:
        """Whether the stage that a task is at is one of ranks."""
        return bool(self.arrays.stages["ranks"][self._stage(task)])

    def _stage(self, task: int) -> int:
        record = self.arrays.tasks[task]
        return int(self.arrays.programs["first"][record["program"]] + record["stage"])

    def _next_tasks(self, task: int) -> IntArray:
        """Tasks to be routed ahead, besides one, each of them once."""
        n = len(self.facts)
        if not len(self._ahead) and self._unordered_from < n:
            first, self._unordered_from = self._unordered_from, n
            if first == task == n - 1:
                return NO_INTS
            order = np.argsort(self.arrays.tasks["start"][first:n], kind="stable")
            self._ahead = first + order
        chosen, self._ahead = self._ahead[:AHEAD_TASKS], self._ahead[AHEAD_TASKS:]
        return chosen


def checked_platform(platform: Any) -> Platform:
    """A platform; SimulationError for anything else, such as the name of its file."""
    if not isinstance(platform, Platform):
        what = shown(platform) if isinstance(platform, str) else type(platform).__name__
        raise SimulationError(f"{what} is not a Platform; give the result of load_platform(FILE)")
    return platform


def checked_amount(name: str, value: Any) -> float:
    """A finite number >= 0; SimulationError for anything else."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0.0 <= number < math.inf:
        raise SimulationError(f"{name} {value!r} is not a finite number >= 0; give one")
    return number
