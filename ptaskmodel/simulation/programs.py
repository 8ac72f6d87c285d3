"""Programs: the stages of a task's work on its hosts, laid out when they are about to begin.

Tasks with the same work on the same hosts share one program, laid out once.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

from ptaskmodel.core.patterns.placement import Placement
from ptaskmodel.core.patterns.router import Layout
from ptaskmodel.core.state import State
from ptaskmodel.core.store import enlarged
from ptaskmodel.workload.tasks import DelayWork, SequenceWork, Work

Key = tuple[int, tuple[int, ...], float | None]


@dataclass(slots=True)
class Programs:
    """The Python side of ``State.programs`` and ``State.stages``: works, hosts, places."""

    hosts: list[tuple[int, ...]] = field(default_factory=list)
    competitors: list[float | None] = field(default_factory=list)
    stage_work: list[Work] = field(default_factory=list)
    stage_program: list[int] = field(default_factory=list)
    known: dict[Key, int] = field(default_factory=dict)
    works: list[Work] = field(default_factory=list)
    first: list[int] = field(default_factory=list)  # stage of each program in the state
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
            self.first.copy(),
            self.laid.copy(),
            self.n_elements,
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

    def enter(self, state: State) -> State:
        """Write the programs found since the last call into the state."""
        known = len(self.first)
        delays: list[float] = []
        repeats: list[int] = []
        counts: list[int] = []
        for program in range(known, len(self.works)):
            work = self.works[program]
            stages, repeat = [work], 1
            if isinstance(work, SequenceWork):
                repeat = work.repeat
                stages = [stage for part in work.stages for stage in unrolled(part)]
            self.first.append(len(self.stage_work))
            counts.append(len(stages))
            repeats.append(repeat)
            self.stage_work.extend(stages)
            self.stage_program.extend([program] * len(stages))
            delays += [s.delay_s if isinstance(s, DelayWork) else np.nan for s in stages]
        if not counts:
            return state
        last = len(self.stage_work)
        state = state._replace(
            programs=enlarged(state.programs, len(self.works)), stages=enlarged(state.stages, last)
        )
        new = state.programs[known : len(self.works)]
        new["first"], new["count"], new["rounds"] = self.first[known:], counts, repeats
        new["users"] = 0
        stages_ = state.stages[last - len(delays) : last]
        stages_[:] = (np.nan, -1, 0, 0.0, 0.0, 0.0, 1.0, np.inf)
        stages_["delay"] = delays
        return state

    def forget_latencies(self, state: State) -> None:
        """Every stage that has not begun must be laid out again: a latency changed."""
        state.stages["first"][self.laid] = -1
        self.laid.clear()
        self.n_elements = 0

    def lay_ahead(self, state: State, stages: list[int], layout: Layout) -> State:
        """Lay out stages: delays together, those inside a cluster together, the others one by one.

        Raises as `lay`.
        """
        delays: list[int] = []
        spread: list[int] = []
        for stage in stages:
            delay = isinstance(self.stage_work[stage], DelayWork)
            (delays if delay else spread).append(stage)
        if delays:
            state = self._lay_delays(state, delays)
        if spread and layout.model.parallel:
            hosts = [self.hosts[self.stage_program[stage]] for stage in spread]
            placement = Placement.of(hosts, layout.clusters)
            for cluster in np.unique(placement.cluster[placement.cluster >= 0]).tolist():
                works = np.flatnonzero(placement.cluster == cluster)
                group = [spread[k] for k in works.tolist()]
                state = self._lay_cluster(state, group, placement.part(works), layout)
        for stage in spread:
            if state.stages["first"][stage] < 0:
                state = self.lay(state, stage, layout)
        return state

    def _lay_cluster(
        self, state: State, stages: list[int], placement: Placement, layout: Layout
    ) -> State:
        state = self._with_room(state, 8 * len(placement.hosts))
        self.n_elements = layout.lay_together(
            placement,
            [self.stage_work[stage] for stage in stages],  # type: ignore[misc]
            [self.competitors[self.stage_program[stage]] for stage in stages],
            state.stages,
            stages,
            state.elements,
            self.n_elements,
        )
        first = state.stages["first"]
        self.laid += [stage for stage in stages if first[stage] >= 0]
        return state

    def _lay_delays(self, state: State, stages: list[int]) -> State:
        """Delays use nothing, but end if one of their hosts fails."""
        hosts = [tuple(sorted(set(self.hosts[self.stage_program[stage]]))) for stage in stages]
        counts = np.fromiter(map(len, hosts), np.int64, len(hosts))
        total = int(counts.sum())
        state = self._with_room(state, total)
        first = self.n_elements
        elements = state.elements[first : first + total]
        elements[:] = 0
        elements["resource"] = np.fromiter(itertools.chain.from_iterable(hosts), np.int64, total)
        state.stages["first"][stages] = first + np.cumsum(counts) - counts
        state.stages["count"][stages] = counts
        self.n_elements += total
        self.laid += stages
        return state

    def lay(self, state: State, stage: int, layout: Layout) -> State:
        """Lay out a stage.

        Raises RouteError or SimulationError as `Layout.lay` does.
        """
        program = self.stage_program[stage]
        hosts = self.hosts[program]
        work = self.stage_work[stage]
        if isinstance(work, DelayWork):
            return self._lay_delays(state, [stage])
        row = layout.lay(work, hosts, self.competitors[program])  # type: ignore[arg-type]
        count = len(row.resource)
        state = self._with_room(state, count)
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

    def _with_room(self, state: State, count: int) -> State:
        """The state with room for so many elements more."""
        if self.n_elements + count > len(state.elements):
            return self._make_room(state, count)
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
