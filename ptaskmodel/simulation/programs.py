"""Programs: the stages of a task's work on its hosts, routed when they are about to begin.

Tasks with the same work on the same hosts share one program.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ptaskmodel.core.driver import Core
from ptaskmodel.core.store import enlarged
from ptaskmodel.simulation.state import Tasks
from ptaskmodel.workload.works import Work

Key = tuple[int, tuple[int, ...], float | None]


@dataclass(slots=True)
class Programs:
    """The Python side of ``Tasks.programs`` and ``Tasks.stages``: works and hosts."""

    known: dict[Key, int] = field(default_factory=dict)
    works: list[Work] = field(default_factory=list)
    hosts: list[tuple[int, ...]] = field(default_factory=list)
    competitors: list[float | None] = field(default_factory=list)
    first: list[int] = field(default_factory=list)  # stage of each program in the state
    stage_work: list[Work] = field(default_factory=list)
    stage_program: list[int] = field(default_factory=list)

    def copy(self) -> Programs:
        return Programs(
            self.known.copy(),
            self.works.copy(),
            self.hosts.copy(),
            self.competitors.copy(),
            self.first.copy(),
            self.stage_work.copy(),
            self.stage_program.copy(),
        )

    def find(self, work: Work, hosts: tuple[int, ...], competitors: float | None) -> int:
        """The program of a work on hosts (indices); a new one is not in the state yet."""
        key = (id(work), hosts, competitors)
        program = self.known.get(key)
        if program is None:
            program = self.known[key] = len(self.hosts)
            self.hosts.append(hosts)
            self.competitors.append(competitors)
            self.works.append(work)
        return program

    def enter(self, tasks: Tasks) -> Tasks:
        """Write the programs found since the last call into the state."""
        known = len(self.first)
        delays: list[float] = []
        repeats: list[int] = []
        counts: list[int] = []
        for program in range(known, len(self.works)):
            work = self.works[program]
            stages = work.one_round()
            self.first.append(len(self.stage_work))
            counts.append(len(stages))
            repeats.append(work.rounds)
            self.stage_work.extend(stages)
            self.stage_program.extend([program] * len(stages))
            lengths = [stage.duration_s for stage in stages]
            delays += [np.nan if length is None else length for length in lengths]
        if not counts:
            return tasks
        last = len(self.stage_work)
        tasks = tasks._replace(
            programs=enlarged(tasks.programs, len(self.works)), stages=enlarged(tasks.stages, last)
        )
        new = tasks.programs[known : len(self.works)]
        new["first"], new["count"], new["rounds"] = self.first[known:], counts, repeats
        new["users"] = 0
        stages_ = tasks.stages[last - len(delays) : last]
        stages_["pattern"], stages_["amount"], stages_["delay"] = -1, 0.0, delays
        return tasks

    def route(self, tasks: Tasks, core: Core, stages: list[int]) -> None:
        """Give stages patterns that are routed; a program holds those of its stages.

        Raises RouteError or SimulationError as `Core.route` does.
        """
        new = [k for k, p in zip(stages, tasks.stages["pattern"][stages], strict=True) if p < 0]
        if new:
            programs = [self.stage_program[stage] for stage in new]
            shapes = [
                core.router.shape(self.stage_work[k], self.hosts[p], self.competitors[p])
                for k, p in zip(new, programs, strict=True)
            ]
            patterns = core.find([shape for shape, _ in shapes])
            core.hold(patterns)
            tasks.stages["pattern"][new] = patterns
            tasks.stages["amount"][new] = [amount for _, amount in shapes]
        found = tasks.stages["pattern"][stages]
        core.route(found.tolist())
        amounts = tasks.stages["amount"][stages]
        tasks.stages["amount"][stages] = np.where(
            np.isnan(amounts), core.state.patterns["amount"][found], amounts
        )

    def release(self, tasks: Tasks, core: Core) -> None:
        """Let go of the patterns of programs whose tasks are all over."""
        program = np.array(self.stage_program, dtype=np.int64)
        stages = tasks.stages[: len(program)]
        idle = (stages["pattern"] >= 0) & (tasks.programs["users"][program] == 0)
        core.hold(stages["pattern"][idle], -1)
        stages["pattern"][idle] = -1
