"""Programs: the stages of a task's work on its hosts, routed when they are about to begin.

Tasks with the same work on the same hosts share one program, unless their flows choose their own
routes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np

from ptaskmodel.engine.driver import Core
from ptaskmodel.engine.usage.paths import number_of_flows
from ptaskmodel.engine.usage.placement import NUMBER_BYTES, FlowName
from ptaskmodel.kernels.records import enlarged
from ptaskmodel.lazy import Chained
from ptaskmodel.simulation.life import STAGE, Tasks
from ptaskmodel.workload.amounts import FloatArray, IntArray
from ptaskmodel.workload.blocks import TaskTable
from ptaskmodel.workload.work_tables import PickedWorks
from ptaskmodel.workload.works import TraceWork, Work, may_last

Key = tuple[int, bytes, float | None, str | None]

# A stage that is not routed.
NEW_STAGE = np.array((-1, 0.0, np.nan, 0), dtype=STAGE)


class PickedPlaces(Sequence[bytes]):
    """The hosts of programs, as `places_of` has them, made when asked for.

    hosts: numbers of hosts, of lists one after the other; list k begins at ``first[k]``. lists:
    that of each program.
    """

    __slots__ = ("_first", "_hosts", "_lists")

    def __init__(self, hosts: IntArray, first: IntArray, lists: IntArray) -> None:
        self._hosts, self._first, self._lists = hosts, first, lists

    def __len__(self) -> int:
        return len(self._lists)

    @overload
    def __getitem__(self, k: int) -> bytes: ...
    @overload
    def __getitem__(self, k: slice) -> list[bytes]: ...
    def __getitem__(self, k: int | slice) -> bytes | list[bytes]:
        if isinstance(k, slice):
            return [self[place] for place in range(len(self))[k]]
        number = self._lists[k]
        return self._hosts[self._first[number] : self._first[number + 1]].tobytes()


@dataclass(slots=True)
class Programs:
    """The Python side of ``Tasks.programs`` and ``Tasks.stages``: works and hosts."""

    known: dict[Key, int] = field(default_factory=dict)  # of tasks that are objects
    works: Chained[Work] = field(default_factory=Chained)
    places: Chained[bytes] = field(default_factory=Chained)  # of the hosts, by `places_of`
    competitors: Chained[float | None] = field(default_factory=Chained)
    tasks: Chained[str | None] = field(default_factory=Chained)  # whose flows choose their routes
    stage_work: Chained[Work] = field(default_factory=Chained)
    stage_program: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    routed: list[int] = field(default_factory=list)  # stages that have a pattern
    replays: bool = False  # some stage is one of ranks
    entered: int = 0  # programs in the state

    def copy(self) -> Programs:
        return Programs(
            self.known.copy(),
            self.works.copy(),
            self.places.copy(),
            self.competitors.copy(),
            self.tasks.copy(),
            self.stage_work.copy(),
            self.stage_program.copy(),
            self.routed.copy(),
            self.replays,
            self.entered,
        )

    def find(
        self,
        works: Sequence[Work],
        places: Sequence[bytes],
        competitors: Sequence[float | None],
        tasks: Sequence[str | None],
    ) -> list[int]:
        """The programs of works on hosts; new ones are not in the state yet.

        tasks: the name of each task whose flows choose their own routes, by `FlowRoutes.name`, else
        None.
        """
        programs: list[int] = []
        fresh: list[int] = []
        before = new = len(self.works)
        for key in zip(map(id, works), places, competitors, tasks, strict=True):
            program = self.known.setdefault(key, new)
            if program == new:
                fresh.append(len(programs))
                new += 1
            programs.append(program)
        if new > before:
            self.works.extend([works[k] for k in fresh])
            self.places.extend([places[k] for k in fresh])
            self.competitors.extend([competitors[k] for k in fresh])
            self.tasks.extend([tasks[k] for k in fresh])
        return programs

    def find_all(
        self, table: TaskTable, hosts: IntArray, tasks: Sequence[str | None] | None
    ) -> IntArray:
        """The programs of a table of tasks, as `find` has them, without an object for each.

        hosts: numbers of the table's hosts, in its order. tasks: as above; None: no flow chooses.
        """
        if tasks is None:
            first, programs = table.alike()
        else:
            first = programs = np.arange(len(table))
        known = len(self.works)
        self.works.extend(PickedWorks(table.works, table.work[first]))
        self.places.extend(PickedPlaces(hosts, table.first_host, table.host_list[first]))
        self.competitors.extend([share or None for share in table.competitors[first].tolist()])
        self.tasks.extend([None] * len(first) if tasks is None else tasks)
        return known + programs

    def enter(self, tasks: Tasks) -> Tasks:
        """Write the programs found since the last call into the state."""
        known, last_program = self.entered, len(self.works)
        if known == last_program:
            return tasks
        self.entered = last_program
        works = self.works.rest(known)
        before = len(self.stage_work)
        kinds: set[type[Work]]
        kinds = works.kinds if isinstance(works, PickedWorks) else set(map(type, works))
        first: IntArray | list[int]
        if all(kind.is_simple for kind in kinds):
            counts: list[int] | int = 1
            repeats: list[int] | int = 1
            self.stage_work.extend(works)
            first = np.arange(before, before + len(works))
        else:
            works = list(works)
            rounds = [work.one_round() for work in works]
            counts = [len(stages) for stages in rounds]
            repeats = [work.rounds for work in works]
            first = []
            for stages in rounds:
                first.append(len(self.stage_work))
                self.stage_work.extend(stages)
        last = len(self.stage_work)
        self.stage_program = enlarged(self.stage_program, last)
        self.stage_program[before:last] = np.repeat(np.arange(known, last_program), counts)
        tasks = tasks._replace(
            programs=enlarged(tasks.programs, last_program), stages=enlarged(tasks.stages, last)
        )
        new = tasks.programs[known:last_program]
        new["first"], new["count"], new["rounds"] = first, counts, repeats
        new["users"] = 0
        new_stages = tasks.stages[before:last]
        new_stages[:] = NEW_STAGE
        if may_last(kinds):
            new_stages["delay"] = _durations_s(self.stage_work.rest(before))
        if TraceWork in kinds or not all(kind.is_simple for kind in kinds):
            replayed = [type(work) is TraceWork for work in self.stage_work.rest(before)]
            new_stages["ranks"] = replayed
            new_stages["delay"][replayed] = 0.0
            self.replays = self.replays or any(replayed)
        return tasks

    def route(self, tasks: Tasks, core: Core, stages: list[int]) -> None:
        """Give stages patterns that are routed; a program holds those of its stages.

        Raises RouteError or SimulationError as `Core.route` does.
        """
        numbers = np.array(stages, dtype=np.int64)
        new = numbers[tasks.stages["pattern"][numbers] < 0].tolist()
        if new:
            programs = self.stage_program[new].tolist()
            flows: list[FlowName | None] = [None] * len(new)
            if core.router.flow_routes.routing is not None:
                flows = [self._first_flow(tasks, stage) for stage in new]
            shapes, amounts = core.router.shapes(
                self.stage_work.take(new),
                self.places.take(programs),
                self.competitors.take(programs),
                flows,
            )
            patterns = core.find(shapes)
            core.hold(patterns)
            self.routed += new
            tasks.stages["pattern"][new] = patterns
            tasks.stages["amount"][new] = amounts
        found = tasks.stages["pattern"][numbers]
        core.route(found.tolist())
        given = tasks.stages["amount"][numbers]
        tasks.stages["amount"][numbers] = np.where(
            np.isnan(given), core.state.patterns["amount"][found], given
        )

    def _first_flow(self, tasks: Tasks, stage: int) -> FlowName | None:
        """The name of the first flow of a stage; None: its flows take the platform's routes."""
        program = int(self.stage_program[stage])
        task = self.tasks[program]
        if task is None:
            return None
        ranks = len(self.places[program]) // NUMBER_BYTES
        before = self.stage_work[int(tasks.programs["first"][program]) : stage]
        return FlowName(task, sum(number_of_flows(work, ranks) for work in before))

    def release(self, tasks: Tasks, core: Core) -> None:
        """Let go of the patterns of programs whose tasks are all over."""
        routed = np.array(self.routed, dtype=np.int64)
        programs = self.stage_program[routed]
        is_idle = tasks.programs["users"][programs] == 0
        idle = np.sort(routed[is_idle])
        core.hold(tasks.stages["pattern"][idle], -1)
        tasks.stages["pattern"][idle] = -1
        self.routed = routed[~is_idle].tolist()


def _durations_s(works: Sequence[Work]) -> FloatArray:
    """How long works last on any platform, s; nan if that depends on the platform."""
    if isinstance(works, PickedWorks):
        return works.durations_s
    return np.array([work.duration_s for work in works], dtype=np.float64)
