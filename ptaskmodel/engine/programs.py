"""Programs: the stages of a task's work on its hosts, laid out when they are about to begin.

Tasks with the same work on the same hosts share one program, laid out once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ptaskmodel.engine.state import State
from ptaskmodel.engine.store import enlarged
from ptaskmodel.engine.usage import Layout, Row
from ptaskmodel.workload.tasks import DelayWork, SequenceWork, Work

Key = tuple[int, tuple[int, ...], float | None]


@dataclass(slots=True)
class Programs:
    """The Python side of ``State.programs`` and ``State.stages``: works, hosts and where they are."""

    hosts: list[tuple[int, ...]] = field(default_factory=list)
    competitors: list[float | None] = field(default_factory=list)
    stage_work: list[Work] = field(default_factory=list)
    stage_program: list[int] = field(default_factory=list)
    known: dict[Key, int] = field(default_factory=dict)
    works: dict[int, Work] = field(default_factory=dict)  # keeps those in `known` alive
    laid: list[int] = field(default_factory=list)  # stages with elements, in the order laid
    n_elements: int = 0

    def copy(self) -> Programs:
        return Programs(
            self.hosts.copy(),
            self.competitors.copy(),
            self.stage_work.copy(),
            self.stage_program.copy(),
            self.known.copy(),
            self.works.copy(),
            self.laid.copy(),
            self.n_elements,
        )

    def find(
        self, state: State, work: Work, hosts: tuple[int, ...], competitors: float | None
    ) -> tuple[State, int]:
        """The program of a work on hosts (indices), made if need be, with one user more."""
        key = (id(work), hosts, competitors)
        program = self.known.get(key)
        if program is None:
            program = len(self.hosts)
            state = self._make(state, program, work)
            self.hosts.append(hosts)
            self.competitors.append(competitors)
            self.known[key] = program
            self.works[id(work)] = work
        state.programs[program]["users"] += 1
        return state, program

    def _make(self, state: State, program: int, work: Work) -> State:
        repeat = 1
        stages = [work]
        if isinstance(work, SequenceWork):
            repeat = work.repeat
            stages = [stage for part in work.stages for stage in unrolled(part)]
        first = len(self.stage_work)
        last = first + len(stages)
        state = state._replace(
            programs=enlarged(state.programs, program + 1), stages=enlarged(state.stages, last)
        )
        state.programs[program] = (first, len(stages), repeat, 0)
        state.stages[first:last] = (np.nan, -1, 0, 0.0, 0.0, 0.0, 1.0, np.inf)
        for k, stage in enumerate(stages, start=first):
            if isinstance(stage, DelayWork):
                state.stages[k]["delay"] = stage.delay_s
        self.stage_work.extend(stages)
        self.stage_program.extend([program] * len(stages))
        return state

    def forget_latencies(self, state: State) -> None:
        """Every stage that has not begun must be laid out again: a latency changed."""
        state.stages["first"][self.laid] = -1
        self.laid.clear()
        self.n_elements = 0

    def lay(self, state: State, stage: int, layout: Layout) -> State:
        """Lay out a stage.

        Raises RouteError or SimulationError as `Layout.lay` does.
        """
        program = self.stage_program[stage]
        hosts = self.hosts[program]
        work = self.stage_work[stage]
        if isinstance(work, DelayWork):
            resource = np.array(sorted(set(hosts)), dtype=np.int64)
            nothing = np.zeros(len(resource))
            row = Row(resource, nothing, nothing, nothing, 0.0, 0.0, 0.0)
        else:
            row = layout.lay(work, hosts, self.competitors[program])  # type: ignore[arg-type]
        count = len(row.resource)
        if self.n_elements + count > len(state.elements):
            state = self._make_room(state, count)
        first = self.n_elements
        elements = state.elements[first : first + count]
        elements["resource"] = row.resource
        elements["usage"] = row.usage
        elements["share"] = row.share
        elements["largest"] = row.largest
        record = state.stages[stage]
        delay = record["delay"]
        state.stages[stage] = (
            delay, first, count, row.amount, row.latency_s, row.latency_bytes, row.penalty,
            row.bound,
        )  # fmt: skip
        self.n_elements += count
        self.laid.append(stage)
        return state

    def _make_room(self, state: State, count: int) -> State:
        """Close the gaps left by programs whose tasks are over, or take more memory."""
        programs = np.array([self.stage_program[stage] for stage in self.laid], dtype=np.int64)
        stages = np.array(self.laid, dtype=np.int64)
        alive = state.programs["users"][programs] > 0
        state.stages["first"][stages[~alive]] = -1
        stages = stages[alive]
        self.laid = stages.tolist()
        counts = state.stages["count"][stages]
        total = int(counts.sum())
        new_first = np.cumsum(counts) - counts
        shift = np.repeat(state.stages["first"][stages] - new_first, counts)
        kept = state.elements[np.arange(total) + shift]
        elements = state.elements
        if 2 * (total + count) > len(elements):
            elements = enlarged(elements[:0], 4 * (total + count) + 1024)
        elements[:total] = kept
        state.stages["first"][stages] = new_first
        self.n_elements = total
        return state._replace(elements=elements)


def unrolled(work: Work) -> list[Work]:
    """A work as the stages that it makes, one after the other (sequences bound their number)."""
    if isinstance(work, SequenceWork):
        round_ = [stage for part in work.stages for stage in unrolled(part)]
        return round_ * work.repeat
    return [work]
