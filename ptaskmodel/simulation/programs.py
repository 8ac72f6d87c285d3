"""Programs: the stages of a task's work on its hosts, routed when they are about to begin.

Tasks with the same work on the same hosts share one program, unless their flows choose their own
routes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ptaskmodel.engine.driver import Core
from ptaskmodel.engine.usage.paths import number_of_flows
from ptaskmodel.engine.usage.placement import NUMBER_BYTES, FlowName
from ptaskmodel.kernels.records import enlarged
from ptaskmodel.simulation.life import STAGE, Tasks
from ptaskmodel.workload.trace_work import TraceWork
from ptaskmodel.workload.works import Work, may_last

Key = tuple[int, bytes, float | None, str | None]

# A stage that is not routed.
NEW_STAGE = np.array((-1, 0.0, np.nan, 0), dtype=STAGE)


@dataclass(slots=True)
class Programs:
    """The Python side of ``Tasks.programs`` and ``Tasks.stages``: works and hosts."""

    known: dict[Key, int] = field(default_factory=dict)
    works: list[Work] = field(default_factory=list)
    places: list[bytes] = field(default_factory=list)  # of the hosts, by `places_of`
    competitors: list[float | None] = field(default_factory=list)
    tasks: list[str | None] = field(default_factory=list)  # whose flows choose their routes
    first: list[int] = field(default_factory=list)  # stage of each program in the state
    stage_work: list[Work] = field(default_factory=list)
    stage_program: list[int] = field(default_factory=list)
    routed: list[int] = field(default_factory=list)  # stages that have a pattern
    replays: bool = False  # some stage is one of ranks

    def copy(self) -> Programs:
        return Programs(
            self.known.copy(),
            self.works.copy(),
            self.places.copy(),
            self.competitors.copy(),
            self.tasks.copy(),
            self.first.copy(),
            self.stage_work.copy(),
            self.stage_program.copy(),
            self.routed.copy(),
            self.replays,
        )

    def find(
        self,
        works: Sequence[Work],
        places: Sequence[bytes],
        competitors: Sequence[float | None],
        tasks: Sequence[str | None],
    ) -> list[int]:
        """The programs of works on hosts; new ones are not in the state yet.

        tasks: the id of each task whose flows choose their own routes, else None.
        """
        programs: list[int] = []
        new = len(self.works)
        for key in zip(map(id, works), places, competitors, tasks, strict=True):
            program = self.known.setdefault(key, new)
            if program == new:
                self.works.append(works[len(programs)])
                self.places.append(key[1])
                self.competitors.append(key[2])
                self.tasks.append(key[3])
                new += 1
            programs.append(program)
        return programs

    def enter(self, tasks: Tasks) -> Tasks:
        """Write the programs found since the last call into the state."""
        known, last_program = len(self.first), len(self.works)
        if known == last_program:
            return tasks
        works = self.works[known:]
        before = len(self.stage_work)
        kinds: set[type[Work]] = set(map(type, works))
        if all(kind.is_simple for kind in kinds):
            counts: list[int] | int = 1
            repeats: list[int] | int = 1
            self.stage_work += works
            self.stage_program += range(known, last_program)
            self.first += range(before, before + len(works))
        else:
            rounds = [work.one_round() for work in works]
            counts = [len(stages) for stages in rounds]
            repeats = [work.rounds for work in works]
            for program, stages in enumerate(rounds, start=known):
                self.first.append(len(self.stage_work))
                self.stage_work += stages
                self.stage_program += [program] * len(stages)
        last = len(self.stage_work)
        tasks = tasks._replace(
            programs=enlarged(tasks.programs, last_program), stages=enlarged(tasks.stages, last)
        )
        new = tasks.programs[known:last_program]
        new["first"], new["count"], new["rounds"] = self.first[known:], counts, repeats
        new["users"] = 0
        new_stages = tasks.stages[before:last]
        new_stages[:] = NEW_STAGE
        if may_last(kinds):
            delays = [work.duration_s for work in self.stage_work[before:]]
            new_stages["delay"] = np.array(delays, dtype=np.float64)  # nan for None
        if TraceWork in kinds or not all(kind.is_simple for kind in kinds):
            replayed = [type(work) is TraceWork for work in self.stage_work[before:]]
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
            programs = [self.stage_program[stage] for stage in new]
            shapes, amounts = core.router.shapes(
                [self.stage_work[stage] for stage in new],
                [self.places[program] for program in programs],
                [self.competitors[program] for program in programs],
                [self._first_flow(stage) for stage in new],
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

    def _first_flow(self, stage: int) -> FlowName | None:
        """The name of the first flow of a stage; None: its flows take the platform's routes."""
        program = self.stage_program[stage]
        task = self.tasks[program]
        if task is None:
            return None
        ranks = len(self.places[program]) // NUMBER_BYTES
        before = self.stage_work[self.first[program] : stage]
        return FlowName(task, sum(number_of_flows(work, ranks) for work in before))

    def release(self, tasks: Tasks, core: Core) -> None:
        """Let go of the patterns of programs whose tasks are all over."""
        routed = np.array(self.routed, dtype=np.int64)
        programs = np.array([self.stage_program[stage] for stage in self.routed], dtype=np.int64)
        is_idle = tasks.programs["users"][programs] == 0
        idle = np.sort(routed[is_idle])
        core.hold(tasks.stages["pattern"][idle], -1)
        tasks.stages["pattern"][idle] = -1
        self.routed = routed[~is_idle].tolist()
