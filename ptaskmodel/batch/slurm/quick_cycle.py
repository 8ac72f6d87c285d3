"""Backfill cycles by a kernel, where all jobs take whole, equal nodes and nothing else counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.hostset import Mask, members
from ptaskmodel.batch.slurm.compiled.cycle import (
    ENTRIES,
    MOST,
    NOW,
    NUMBERS,
    POSITION,
    POSTPONED,
    RECORDS,
    ROOM,
    STARTS,
    STEP,
    TESTED,
    WINDOW,
    CycleState,
    cycle,
)
from ptaskmodel.batch.slurm.facts import LINEAR, Conf
from ptaskmodel.batch.slurm.needs import Need
from ptaskmodel.batch.slurm.nodes import Nodes
from ptaskmodel.batch.slurm.record import PENDING, Allocation, JobRecord

if TYPE_CHECKING:
    from ptaskmodel.batch.slurm.controller import Controller

BACKFILL = "backfill"
# With fewer entries the kernel is not worth its arrays.
FEW = 4


def suits(conf: Conf, nodes: Nodes) -> bool:
    """Whether cycles of a configuration are simple enough."""
    options = conf.scheduler
    limits = (
        *(options.bf_max_job_user, options.bf_max_job_part, options.bf_max_job_user_part),
        *(options.bf_max_job_assoc, options.bf_max_job_start, options.bf_job_part_count_reserve),
        *(options.bf_min_age_reserve_s, options.bf_min_prio_reserve),
    )
    shared = any(p.over_subscribe in ("YES", "FORCE") for p in conf.partitions)
    return (
        conf.select_type == LINEAR
        and nodes.alike
        and len(nodes.sets) == 1
        and not conf.switches
        and conf.preempt_type == "preempt/none"
        and not any(limits)
        and not shared
        and not conf.gang
    )


def is_plain(job: JobRecord) -> bool:
    """Whether nothing but a number of nodes of one partition matters to a job."""
    if len(job.needs) != 1:
        return False
    need: Need = job.needs[0]
    request = job.request
    return not (
        need.required
        or need.contiguous
        or need.memory is not None
        or need.least != need.wanted
        or need.least_limit_s is not None
        or need.switches is not None
        or request.gres
        or request.licenses
        or request.array is not None
        or request.reservation is not None
        or request.exclusive == "user"
    )


class QuickCycles:
    """Makes cycles for a controller, with arrays that are kept from one to the next."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        nodes = controller.nodes
        self._cpus = nodes.cpus[0]
        self._words = (len(nodes) + 63) // 64
        self._masks: dict[Mask, int] = {}
        self._rows: list[NDArray] = []
        self._held: dict[JobRecord, NDArray] = {}
        self._told: dict[JobRecord, int] = {}
        self._plain: dict[JobRecord, tuple[int, int, int] | None] = {}
        room = controller.conf.bf_node_space_size + 3
        self._slots = np.zeros((3, room), dtype=np.int64)
        self._free = np.zeros((room, self._words), dtype=np.uint64)
        self.postponed = False
        self.plans_idle_nodes = False

    @property
    def changed(self) -> bool:
        """Whether the last cycle counts as a change."""
        return self.postponed or self.plans_idle_nodes

    def run(self, date: float) -> int | None:
        """Make a cycle, and say how many jobs it tested; None: it is none of this kind."""
        controller = self._controller
        now, options = controller.second(date), controller.conf.scheduler
        entries = controller.queue.build(now)
        if len(entries) < FEW or not controller.unreserved or controller.completing:
            return None
        facts = [self._facts(entry.job) for entry in entries]
        if None in facts:
            return None
        jobs = [entry.job for entry in entries]
        table = np.array(facts, dtype=np.int64)
        numbers = np.zeros(NUMBERS, dtype=np.int64)
        step, window = options.bf_resolution_s, options.bf_window_min * 60
        numbers[[NOW, STEP, WINDOW, ENTRIES]] = now, step, window, len(jobs)
        numbers[[MOST, RECORDS]] = options.bf_max_job_test, 1
        numbers[ROOM] = controller.conf.bf_node_space_size
        begins, ends, following = self._slots
        begins[0], ends[0] = now // step * step, (now + window) // step * step
        following[0] = -1
        self._free[0] = self._row(controller.nodes.usable)
        planned = np.full(len(jobs), -1, dtype=np.int64)
        tested = np.zeros(len(jobs), dtype=np.int64)
        sets = np.zeros((4, self._words), dtype=np.uint64)
        ends_s, first, held = self._running()
        state = CycleState(
            numbers=numbers,
            wanted=table[:, 0].copy(),
            lasts=table[:, 1].copy(),
            partition=table[:, 2].copy(),
            planned=planned,
            tested=tested,
            masks=np.array(self._rows),
            ends=ends_s,
            begins=first,
            held=held,
            slot_begin=begins,
            slot_end=ends,
            following=following,
            free=self._free,
            idle=self._row(controller.select.idle),
            planned_nodes=sets[0],
            chosen=sets[1],
            left=sets[2],
            usable=sets[3],
            runs=np.zeros(len(controller.nodes) + 2, dtype=np.int64),
        )
        self._go_through(state, jobs, date)
        self._note_plans(state, jobs)
        return int(numbers[TESTED])

    def _go_through(self, state: CycleState, jobs: list[JobRecord], date: float) -> None:
        """Run the kernel, and start the jobs that it finds can start."""
        controller = self._controller
        while cycle(state) == STARTS:
            place = int(state.numbers[POSITION])
            octets = state.chosen.tobytes()
            nodes = int.from_bytes(octets, "little")
            job = jobs[place]
            allocation = Allocation(nodes, nodes.bit_count())
            controller.rules.tested(job, allocation)
            controller.start(job, 0, allocation, date, BACKFILL)
            state.idle[:] = self._row(controller.select.idle)
            ends, begins, held = self._running()
            state = state._replace(ends=ends, begins=begins, held=held)
            state.numbers[POSITION] = place + 1

    def _note_plans(self, state: CycleState, jobs: list[JobRecord]) -> None:
        controller = self._controller
        for place in np.flatnonzero(state.tested).tolist():
            job = jobs[place]
            # Whoever waits again is told anew: its priority was made anew, too.
            if job.state == PENDING and self._told.get(job) != job.restarts:
                self._told[job] = job.restarts
                controller.rules.tested_cpus(job, job.needs[0].least * self._cpus)
        for job in controller.planned:
            job.planned_s = None
        controller.planned.clear()
        if controller.keeps_plans:
            for place in np.flatnonzero(state.planned >= 0).tolist():
                jobs[place].planned_s = int(state.planned[place])
                controller.planned.append(jobs[place])
        self.postponed = bool(state.numbers[POSTPONED])
        idle = self._row(controller.select.idle)
        self.plans_idle_nodes = bool((state.planned_nodes & idle).any())

    def _facts(self, job: JobRecord) -> tuple[int, int, int] | None:
        """Nodes, seconds and row of masks of a job; None: it is not plain."""
        if job not in self._plain:
            found = None
            if is_plain(job):
                need: Need = job.needs[0]
                if need.least * self._cpus >= need.cpus and need.least <= need.most:
                    if need.nodes not in self._masks:
                        self._masks[need.nodes] = len(self._rows)
                        self._rows.append(self._row(need.nodes))
                    found = (need.least, need.planned_s, self._masks[need.nodes])
            self._plain[job] = found
        return self._plain[job]

    def _row(self, nodes: Mask) -> NDArray:
        octets = int(nodes).to_bytes(self._words * 8, "little")
        return np.frombuffer(octets, dtype=np.uint64).copy()

    def _running(self) -> tuple[NDArray, NDArray, NDArray]:
        """Who runs, by the end of its limit: ends, where its nodes begin, and nodes."""
        running = self._controller.ends()
        held = []
        for _, _, job in running:
            known = self._held.get(job)
            if known is None:
                assert job.allocation is not None
                known = np.array(members(job.allocation.nodes), dtype=np.int64)
                self._held[job] = known
            held.append(known)
        if len(self._held) > 2 * len(running) + 1000:
            alive = {job for _, _, job in running}
            self._held = {job: nodes for job, nodes in self._held.items() if job in alive}
        ends = np.array([int(end) for end, _, _ in running], dtype=np.int64)
        begins = np.zeros(len(running) + 1, dtype=np.int64)
        np.cumsum([len(nodes) for nodes in held], out=begins[1:])
        every = np.concatenate(held) if held else np.zeros(0, dtype=np.int64)
        return ends, begins, every
