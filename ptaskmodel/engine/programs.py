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
        new["first"], new["count"], new["repeat"] = self.first[known:], counts, repeats
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
        """Lay out stages, those that can be together.

        Raises as `lay`.
        """
        groups: dict[int, list[int]] = {}
        for stage in stages:
            hosts = self.hosts[self.stage_program[stage]]
            cluster = layout.cluster_of(self.stage_work[stage], hosts) if len(hosts) > 1 else None
            if cluster is None:
                state = self.lay(state, stage, layout)
            else:
                groups.setdefault(cluster, []).append(stage)
        for cluster, group in groups.items():
            state = self._lay_group(state, cluster, group, layout)
        return state

    def _lay_group(self, state: State, cluster: int, stages: list[int], layout: Layout) -> State:
        programs = [self.stage_program[stage] for stage in stages]
        hosts = [self.hosts[program] for program in programs]
        size = 8 * sum(len(where) for where in hosts)
        if self.n_elements + size > len(state.elements):
            state = self._make_room(state, size)
        self.n_elements = layout.lay_together(
            cluster,
            state.stages,
            stages,
            [self.stage_work[stage] for stage in stages],  # type: ignore[misc]
            hosts,
            [self.competitors[program] for program in programs],
            state.elements,
            self.n_elements,
        )
        first = state.stages["first"]
        for stage in stages:
            if first[stage] >= 0:
                self.laid.append(stage)
            else:
                state = self.lay(state, stage, layout)
        return state

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
