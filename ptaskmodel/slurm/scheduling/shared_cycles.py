"""Compiled backfill where jobs share nodes: cycles by `shared_kernel`.

`BackfillThread` uses it where `suits` allows it; its cycles equal those of `backfill.Cycle`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.kernels.decorators import as_compiled
from ptaskmodel.slurm.controller.queue import Entry
from ptaskmodel.slurm.jobs.needs import Need
from ptaskmodel.slurm.jobs.record import PENDING, RUNNING, JobRecord
from ptaskmodel.slurm.scheduling import shared_kernel, slot_kernel
from ptaskmodel.slurm.scheduling.shared_kernel import (
    CANNOT_START,
    DONE,
    HAS_STARTED,
    NOT_PLAIN,
)
from ptaskmodel.slurm.scheduling.shared_state import (
    COUNTED,
    FACTS,
    IS_NOT_PLAIN,
    IS_NOT_TESTED,
    KIND,
    LIMITS,
    NOT_TOLD,
    PREEMPTOR,
    TOLD,
    WITHIN,
    SharedState,
)
from ptaskmodel.slurm.scheduling.slot_kernel import (
    CUTS,
    EXEMPT_S,
    MOST_RULES,
    MOST_UNABLE,
    NOW,
    NUMBERS,
    POSITION,
    PREEMPTS,
    RULES,
)
from ptaskmodel.slurm.scheduling.vectorised_backfill import (
    BACKFILL,
    FEW,
    QuickCycles,
    is_alone,
    longer,
    put,
    zeros,
)
from ptaskmodel.slurm.scheduling.victim_classes import NO_CLASS, VictimClasses
from ptaskmodel.slurm.select.bitsets import words_of
from ptaskmodel.slurm.select.consumable import Consumable
from ptaskmodel.slurm.select.offer_kernel import NEEDS, READS_NOTES, SIZE
from ptaskmodel.slurm.select.plain_fit import PlainFit, apart, shared_nodes
from ptaskmodel.slurm.select.plugin import date_of

if TYPE_CHECKING:
    from ptaskmodel.slurm.controller.controller import Controller


class SharedCycles(QuickCycles):
    """Makes cycles for a `controller` whose jobs share nodes; see `QuickCycles`, and for `cuts`."""

    _of_entries = ("jobs", "planned", "tested", "sizes", "new")
    _of_rows = ("counts", "grows", "later_cpus", "map_version")
    _waits_for_cleaning = False

    def __init__(self, controller: Controller, *, cuts: bool = False) -> None:
        select = controller.allocations.select
        assert isinstance(select, Consumable)
        assert select.plain is not None
        self._plain: PlainFit = select.plain
        # The row of each kind of needs.
        self._needs: dict[Hashable, int] = {}
        # Where jobs are counted: by the limit, and whom it is to; kinds of jobs, by need and time.
        self._counted: dict[tuple[int, object], int] = {}
        self._kinds: dict[tuple[int, int, int], int] = {}
        self._classes = VictimClasses(controller)
        # The notes of GPUs when the last cycle began.
        self._favours = b""
        self._preempts = controller.preemption.active
        super().__init__(controller, cuts=cuts and not self._preempts)
        conf, options = controller.conf, controller.conf.scheduler
        numbers, preempts = self._state.numbers, self._classes.preempts
        numbers[PREEMPTS], numbers[EXEMPT_S] = self._preempts, conf.preempt_exempt_time_min * 60
        self._state = self._state._replace(preempts=preempts)
        self._state.most[:] = (
            options.bf_max_job_user_part,
            options.bf_max_job_part,
            options.bf_max_job_assoc,
            0 if options.bf_max_job_assoc else options.bf_max_job_user,
        )

    def _new_state(self, slots: int) -> SharedState:
        return _state_for(slots, len(self._controller.nodes))

    def run(self, date: float) -> int | None:
        """See `QuickCycles.run`, with `date`. What the last cycle noted of GPUs is noted again."""
        favours = self._controller.allocations.select.favours
        before = b"" if favours is None else bytes(favours)
        cleaning = self._controller.allocations.cleaning
        reads = self._plain.state.facts[READS_NOTES] and before != self._favours
        if reads or cleaning.nodes:
            self._known = None
        known, self._favours = self._known, before
        tested = super().run(date)
        again = tested is not None and known is not None and self._known is known
        if favours is not None and again:
            noted = self._state.notes
            np.copyto(np.frombuffer(favours, np.uint8), noted, where=noted != 0)
        if cleaning.nodes:
            self._known = None
        return tested

    def _see_requeued(self) -> None:
        for job in self._controller.jobs.requeued:
            self._state.known[job.number - self._first, TOLD] = NOT_TOLD
        self._controller.jobs.forget_requeued()

    def _note_who_runs(self) -> None:
        if self._noted == self._controller.allocations.answers.version:
            return
        self._noted = self._controller.allocations.answers.version
        count = self._plain.note_ends(self._controller.jobs.ends())
        state = self._state
        if count >= len(state.later_cpus):
            later = np.zeros((2 * count + 1, len(state.masks)), dtype=np.int64)
            late, stays = np.zeros(len(later), dtype=np.int64), np.arange(len(later))
            state = state._replace(late=late, later_cpus=later, stays=stays)
        nodes = self._plain.state
        if state.nodes is not nodes:
            without = apart(nodes) if self._preempts else nodes
            state = state._replace(nodes=nodes, without=without)
        self._state = state
        if self._preempts:
            self._note_victims()
            state = self._state
        self._numbers[slot_kernel.RUNNING] = count
        state.idle[:] = words_of(self._controller.allocations.idle, self._words)

    def _note_victims(self) -> None:
        """Note which class each job that runs is of, and since when it runs."""
        jobs, state = self._controller.jobs, self._state
        for slot, job in jobs.take_starts():
            if slot >= len(state.of_slot):
                more = {"of_slot": longer(state.of_slot.T, 2 * slot + FEW).T.copy()}
                more |= zeros(("running",), 2 * slot + FEW)
                self._state = state = state._replace(**more)
            state.of_slot[slot] = self._classes.of_running(job), job.start_s
        put(state.running, jobs.slots.tobytes())

    def _note_late(self) -> None:
        """Note when jobs are expected to be over whose limits are."""
        controller, now = self._controller, self._numbers[NOW]
        for k, end in enumerate(controller.jobs.running):
            if end[0] > now:
                return
            select = controller.allocations.select
            self._state.late[k] = int(date_of(end, select, controller.conf, now))

    def _go_through(self, entries: list[Entry], date: float) -> bool:
        numbers = self._numbers
        self._note_late()
        self._note_cleaning()
        outcome = until = 0
        while (status := shared_kernel.cycle(self._state, outcome, until)) != DONE:
            if status == NOT_PLAIN:
                return False
            job = entries[numbers[POSITION]].job
            outcome, until = self._start(job, date)
            self._note_who_runs()
            self._note_late()
            self._note_cleaning()
        return True

    def _note_cleaning(self) -> None:
        cleaning = self._controller.allocations.cleaning.nodes
        self._state.cleaning[:] = words_of(cleaning, self._words)

    def _start(self, job: JobRecord, date: float) -> tuple[int, int]:
        """Start a job on the nodes that are left for it: what became of it, and its end if whole.

        Its end is until when the map keeps its nodes.
        """
        controller, state = self._controller, self._state
        among = int.from_bytes(state.left.tobytes(), "little")
        now = controller.events.second(date)
        found = controller.allocations.find(job, 0, among, now, planned=True)
        if found is None:
            controller.end_victims(date)
            return CANNOT_START if job.state == PENDING else HAS_STARTED, 0
        controller.runs.start(job, 0, found, date, BACKFILL)
        stays = not self._preempts or self._classes.of_running(job) == NO_CLASS
        if not (job.need.whole and stays) or job.state != RUNNING:
            return HAS_STARTED, 0
        state.chosen[:] = words_of(found.nodes, self._words)
        return HAS_STARTED, int(job.end_s)

    def _size_of(self, place: int, job: JobRecord) -> int:
        return int(self._state.sizes[place])

    def _see(self, job: JobRecord, place: int) -> None:
        super()._see(job, place)
        known, partitions = self._state.known, self._controller.nodes.partitions
        which, lasts = known[place, :2].tolist()
        known[place, PREEMPTOR] = mine = self._classes.of_waiting(job)
        if mine != NO_CLASS:
            one = job.partitions[0]
            known[place, WITHIN] = self._row_of(partitions[one.name], one)
        kind = self._kinds.setdefault((which, lasts, mine), len(self._kinds))
        known[place, KIND] = kind
        if kind >= len(self._state.failed):
            self._state = self._state._replace(**of_kinds(2 * kind, len(self._state.notes)))
        partition, user = job.partitions[0].name, job.request.user
        member = None if job.account is None else job.account.association
        # Jobs without a user are those of one; jobs without an association are not counted for it.
        whose = (user, partition), partition, member, (user,)
        kinds = self._counted
        for k in range(LIMITS):
            where = -1 if whose[k] is None else kinds.setdefault((k, whose[k]), len(kinds))
            known[place, COUNTED + k] = where
        if len(kinds) > len(self._state.counts_of):
            self._state = self._state._replace(counts_of=np.zeros(2 * len(kinds), np.int64))

    def _told(self, job: JobRecord, which: int) -> int:
        # A job that takes what it asked for learns nothing by a test.
        if self._numbers[CUTS] and which >= 0:
            size, tasks = int(self._state.needs[which, SIZE]), job.request.tasks
            if size == (tasks or 0) * job.request.cpus_per_task:
                return size
        return NOT_TOLD

    def _is_alone(self, job: JobRecord) -> bool:
        array, arrays = job.request.array, self._controller.rules.arrays
        only = array is None or (array.at_most is None and arrays.size(job.request) == 1)
        return only and is_alone(job)

    def _facts_of(self, job: JobRecord) -> tuple[int, int, int]:
        if not self._is_alone(job):
            return IS_NOT_PLAIN, 0, 0
        if self._controller.rules.waits_for(job, job.partitions[0]) is not None:
            return IS_NOT_TESTED, 0, 0
        need: Need = job.needs[0]
        vector = self._plain.vector_of(need)
        if vector is None:
            return IS_NOT_PLAIN, 0, 0
        if need.kind not in self._needs:
            self._add_need(need, vector)
        return self._needs[need.kind], need.planned_s, self._row_of(need.nodes, need.partition)

    def _add_need(self, need: Need, vector: tuple[NDArray, NDArray]) -> None:
        state, row = self._state, len(self._needs)
        self._needs[need.kind] = row
        if row == len(state.needs):
            more: dict[str, Any] = {
                name: longer(getattr(state, name).T, 2 * row).T.copy()
                for name in ("needs", "musts")
            }
            self._state = state = state._replace(**more)
        state.needs[row], state.musts[row] = vector


def of_kinds(kinds: int, nodes: int) -> dict[str, NDArray]:
    """What is kept of each of some `kinds` of jobs, of which none has failed, for some `nodes`."""
    names = ("failed", "was_told", "was_tested", "had_size")
    return {**zeros(names, kinds), "had_notes": np.zeros((kinds, nodes), np.uint8)}


def _state_for(slots: int, nodes: int) -> SharedState:
    """The state of the kernel for so many slots, and nodes."""
    words = (nodes + 63) // 64
    many = zeros(("jobs", "planned", "tested", "sizes", "new"), FEW)
    many |= zeros(("slot_begin", "slot_end", "following"), slots)
    many |= of_kinds(FEW, nodes) | zeros(("full", "full_until"), nodes)
    sets = ("up", "idle", "planned_nodes", "chosen", "left", "cleaning")
    one: dict[str, Any] = {name: np.zeros(words, dtype=np.uint64) for name in sets}
    return SharedState(
        numbers=np.zeros(NUMBERS, dtype=np.int64),
        nodes=shared_nodes(nodes),
        without=shared_nodes(nodes),
        stays=np.arange(FEW + 1),
        preempts=np.zeros((1, 1), dtype=np.int64),
        of_slot=np.zeros((FEW, 2), dtype=np.int64),
        running=np.zeros(FEW, dtype=np.int64),
        needs=np.zeros((FEW, NEEDS), dtype=np.int64),
        musts=np.zeros((FEW, words), dtype=np.uint64),
        known=np.zeros((0, FACTS), dtype=np.int64),
        ruled_out=np.zeros((MOST_RULES, RULES), dtype=np.int64),
        unable=np.zeros((MOST_UNABLE, RULES), dtype=np.int64),
        masks=np.zeros((1, words), dtype=np.uint64),
        reach=np.zeros((1, words), dtype=np.uint64),
        free=np.zeros((slots, words), dtype=np.uint64),
        counts=np.zeros((slots, 1), dtype=np.int64),
        grows=np.zeros((slots, 1), dtype=np.int64),
        late=np.zeros(FEW + 1, dtype=np.int64),
        later_cpus=np.zeros((FEW + 1, 1), dtype=np.int64),
        most=np.zeros(LIMITS, dtype=np.int64),
        counts_of=np.zeros(FEW, dtype=np.int64),
        map_version=np.zeros(1, dtype=np.int64),
        notes=np.zeros(nodes, dtype=np.uint8),
        **many,
        **one,
    )


def prepare_kernels() -> None:
    """Use the kernel as it is used (see `kernels.building`)."""
    with as_compiled():
        shared_kernel.cycle(_state_for(1, 1), 0, 0)
