"""Backfill cycles by a kernel, where all jobs take whole, equal nodes and nothing else counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.hostset import Mask
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


class Running:
    """The jobs that run, each with a place in arrays: when it ends, and its nodes as words."""

    def __init__(self, words: int) -> None:
        self._places: dict[JobRecord, int] = {}
        self._free: list[int] = []
        self.ends = np.zeros(0, dtype=np.int64)
        self.held = np.zeros((0, words), dtype=np.uint64)

    def order(self, running: Sequence[tuple[float, int, JobRecord]]) -> NDArray:
        """The places of those who run, by the end of their limits."""
        known = self._places
        if len(known) > 2 * len(running) + 1000:
            self._forget({job for _, _, job in running})
        for end, _, job in running:
            if job not in known:
                known[job] = self._take(job, end)
        return np.array([known[job] for _, _, job in running], dtype=np.int64)

    def forget(self, job: JobRecord) -> None:
        """A job does not run any more, and may again, elsewhere."""
        if job in self._places:
            self._free.append(self._places.pop(job))

    def _take(self, job: JobRecord, end: float) -> int:
        if not self._free:
            count = len(self.ends)
            room = max(64, 2 * count)
            self.ends = np.concatenate((self.ends, np.zeros(room, dtype=np.int64)))
            more = np.zeros((room, self.held.shape[1]), dtype=np.uint64)
            self.held = np.concatenate((self.held, more))
            self._free = list(range(count + room - 1, count - 1, -1))
        assert job.allocation is not None
        place = self._free.pop()
        self.ends[place] = int(end)
        self.held[place] = words_of(job.allocation.nodes, self.held.shape[1])
        return place

    def _forget(self, alive: set[JobRecord]) -> None:
        for job in [job for job in self._places if job not in alive]:
            self.forget(job)


def words_of(nodes: Mask, words: int) -> NDArray:
    """A set as words."""
    return np.frombuffer(int(nodes).to_bytes(words * 8, "little"), dtype=np.uint64)


# What is kept of each job, by its number: nodes, seconds, row of masks; whether the size that it
# is found to have was told. Of one that is not known yet, or that is not plain:
FACTS, TOLD = 3, 3
UNKNOWN, NOT_PLAIN = -1, -2


class QuickCycles:
    """Makes cycles for a controller, with arrays that are kept from one to the next."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        nodes = controller.nodes
        self._cpus = nodes.cpus[0]
        self._words = (len(nodes) + 63) // 64
        self._masks: dict[Mask, int] = {}
        self._rows: list[NDArray] = []
        self._running = Running(self._words)
        self._known = np.full((FACTS + 1, 0), UNKNOWN, dtype=np.int64)
        room = controller.conf.bf_node_space_size + 3
        self._slots = np.zeros((3, room), dtype=np.int64)
        self._free = np.zeros((room, self._words), dtype=np.uint64)
        self._sets = np.zeros((4, self._words), dtype=np.uint64)
        self._runs = np.zeros(len(nodes) + 2, dtype=np.int64)
        self._masks_array = np.zeros((0, self._words), dtype=np.uint64)
        self._counts = np.zeros((room, 0), dtype=np.int64)
        self._later_free = np.zeros((0, self._words), dtype=np.uint64)
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
        jobs = [entry.job for entry in entries]
        places = np.array([job.number for job in jobs], dtype=np.int64)
        table = self._facts(jobs, places)
        if table is None:
            return None
        numbers = np.zeros(NUMBERS, dtype=np.int64)
        step, window = options.bf_resolution_s, options.bf_window_min * 60
        numbers[[NOW, STEP, WINDOW, ENTRIES]] = now, step, window, len(jobs)
        numbers[[MOST, RECORDS]] = options.bf_max_job_test, 1
        numbers[ROOM] = controller.conf.bf_node_space_size
        begins, ends, following = self._slots
        begins[0], ends[0] = now // step * step, (now + window) // step * step
        following[0] = -1
        self._free[0] = words_of(controller.nodes.up, self._words)
        if len(self._masks_array) < len(self._rows):
            self._masks_array = np.array(self._rows)
            self._counts = np.zeros((len(self._free), len(self._rows)), dtype=np.int64)
        sets = self._sets
        sets[:] = 0
        order = self._running.order(controller.running)
        state = CycleState(
            numbers=numbers,
            wanted=table[0],
            lasts=table[1],
            partition=table[2],
            planned=np.full(len(jobs), -1, dtype=np.int64),
            tested=np.zeros(len(jobs), dtype=np.int64),
            masks=self._masks_array,
            order=order,
            ends=self._running.ends,
            held=self._running.held,
            slot_begin=begins,
            slot_end=ends,
            following=following,
            free=self._free,
            counts=self._counts,
            later_free=self._room_for(order),
            idle=words_of(controller.select.idle, self._words).copy(),
            planned_nodes=sets[0],
            chosen=sets[1],
            left=sets[2],
            usable=sets[3],
            runs=self._runs,
        )
        self._go_through(state, jobs, date)
        self._note_plans(state, jobs, places)
        return int(numbers[TESTED])

    def _room_for(self, order: NDArray) -> NDArray:
        """A row of words for each job that runs, and one more."""
        if len(self._later_free) <= len(order):
            self._later_free = np.zeros((2 * len(order) + 64, self._words), dtype=np.uint64)
        return self._later_free

    def _go_through(self, state: CycleState, jobs: list[JobRecord], date: float) -> None:
        """Run the kernel, and start the jobs that it finds can start."""
        controller = self._controller
        while cycle(state) == STARTS:
            place = int(state.numbers[POSITION])
            nodes = int.from_bytes(state.chosen.tobytes(), "little")
            job = jobs[place]
            allocation = Allocation(nodes, nodes.bit_count())
            controller.rules.tested(job, allocation)
            controller.start(job, 0, allocation, date, BACKFILL)
            state.idle[:] = words_of(controller.select.idle, self._words)
            order = self._running.order(controller.running)
            running = self._running
            state = state._replace(
                order=order,
                ends=running.ends,
                held=running.held,
                later_free=self._room_for(order),
            )
            state.numbers[POSITION] = place + 1

    def _note_plans(self, state: CycleState, jobs: list[JobRecord], places: NDArray) -> None:
        controller = self._controller
        told = self._known[TOLD]
        for place in np.flatnonzero(state.tested & (told[places] == UNKNOWN)).tolist():
            job = jobs[place]
            if job.state == PENDING:
                told[job.number] = 1
                controller.rules.tested_cpus(job, job.needs[0].least * self._cpus)
        for job in controller.planned:
            job.planned_s = None
        controller.planned.clear()
        if controller.keeps_plans:
            for place in np.flatnonzero(state.planned >= 0).tolist():
                jobs[place].planned_s = int(state.planned[place])
                controller.planned.append(jobs[place])
        self.postponed = bool(state.numbers[POSTPONED])
        idle = words_of(controller.select.idle, self._words)
        self.plans_idle_nodes = bool((state.planned_nodes & idle).any())

    def _facts(self, jobs: Sequence[JobRecord], places: NDArray) -> NDArray | None:
        """Nodes, seconds and row of masks of each job; None: some job is not plain."""
        most = int(places.max())
        if most >= self._known.shape[1]:
            more = np.full((FACTS + 1, 2 * most + 1000), UNKNOWN, dtype=np.int64)
            more[:, : self._known.shape[1]] = self._known
            self._known = more
        # Whoever waits again is told anew: its priority was made anew, too.
        for job in self._controller.requeued:
            self._known[TOLD, job.number] = UNKNOWN
            self._running.forget(job)
        self._controller.requeued.clear()
        table = self._known[:FACTS].take(places, axis=1)
        unknown = np.flatnonzero(table[0] == UNKNOWN)
        if len(unknown):
            for place in unknown.tolist():
                self._known[:FACTS, jobs[place].number] = self._facts_of(jobs[place])
            table = self._known[:FACTS].take(places, axis=1)
        return None if (table[0] == NOT_PLAIN).any() else table

    def _facts_of(self, job: JobRecord) -> tuple[int, int, int]:
        if not is_plain(job):
            return NOT_PLAIN, 0, 0
        need: Need = job.needs[0]
        if need.least * self._cpus < need.cpus or need.least > need.most:
            return NOT_PLAIN, 0, 0
        if need.nodes not in self._masks:
            self._masks[need.nodes] = len(self._rows)
            self._rows.append(words_of(need.nodes, self._words))
        return need.least, need.planned_s, self._masks[need.nodes]


def prepare_kernels() -> None:
    """Have the kernel compiled (see `kernel_sets`)."""
    numbers, sets = np.zeros(NUMBERS, dtype=np.int64), np.zeros((1, 1), dtype=np.uint64)
    many = ("masks", "held", "free", "later_free")
    one = ("idle", "planned_nodes", "chosen", "left", "usable")
    fields: dict[str, NDArray] = dict.fromkeys(CycleState._fields, numbers)
    fields |= {**dict.fromkeys(many, sets), **dict.fromkeys(one, sets[0])}
    fields |= {"order": numbers[:0], "counts": numbers.reshape(1, -1)}
    cycle(CycleState(**fields))
