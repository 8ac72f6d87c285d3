"""Compiled backfill: cycles by `backfill_kernel`, if all jobs take whole, equal nodes.

`BackfillThread` uses it where `suits` allows; its cycles equal those of `backfill.Cycle`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.kernels.decorators import as_compiled
from ptaskmodel.slurm.conf.facts import LINEAR, NEVER, Conf, Nodes, Partition
from ptaskmodel.slurm.controller.queue import Entry
from ptaskmodel.slurm.jobs.needs import Need
from ptaskmodel.slurm.jobs.record import PENDING, Allocation, JobRecord, nodes_of
from ptaskmodel.slurm.scheduling.backfill_kernel import (
    DONE,
    FACTS,
    IS_NOT_PLAIN,
    IS_NOT_TESTED,
    NOT_PLAIN,
    NOT_TOLD,
    TOLD,
    CycleState,
    cycle,
)
from ptaskmodel.slurm.scheduling.slot_kernel import (
    CUTS,
    ENTRIES,
    MOST,
    NEW,
    NOW,
    NUMBERS,
    PLANS_IDLE,
    POSITION,
    POSTPONED,
    ROOM,
    RUNNING,
    STEP,
    TESTED,
    UNTIL,
    WINDOW,
)
from ptaskmodel.slurm.select.bitsets import words_of
from ptaskmodel.slurm.select.plain_fit import suits as suits_numbers

if TYPE_CHECKING:
    from ptaskmodel.slurm.controller.controller import Controller

BACKFILL = "backfill"
# So many entries, and jobs that run, there is room for at first.
FEW = 64
# Sets of nodes of which each row has one.
SETS = ("masks", "reach")


def suits(conf: Conf, nodes: Nodes) -> bool:
    """Whether cycles of a configuration are simple enough."""
    options = conf.scheduler
    limits = [
        *(options.bf_max_job_start, options.bf_job_part_count_reserve),
        *(options.bf_min_age_reserve_s, options.bf_min_prio_reserve),
    ]
    shared = any(p.over_subscribe in ("YES", "FORCE") for p in conf.partitions)
    whole = conf.select_type == LINEAR
    if whole:
        limits += [options.bf_max_job_user, options.bf_max_job_part]
        limits += [options.bf_max_job_user_part, options.bf_max_job_assoc]
    return (
        ((nodes.alike and len(nodes.sets) == 1) if whole else suits_numbers(conf))
        and not conf.switches
        and (conf.preempt_type == NEVER or not whole)
        and not any(limits)
        and not (options.bf_busy_nodes or options.bf_running_job_reserve or options.bf_licenses)
        and not shared
        and not conf.gang
    )


def is_plain(job: JobRecord) -> bool:
    """Whether nothing but a number of nodes of one partition matters to a job."""
    need: Need = job.needs[0]
    return is_alone(job) and not (
        need.gres
        or job.request.array is not None
        or need.required
        or need.contiguous
        or need.memory is not None
        or need.least != need.wanted
    )


def is_alone(job: JobRecord) -> bool:
    """Whether a job waits in one partition, and for nodes alone, none of certain features."""
    if len(job.needs) != 1:
        return False
    need: Need = job.needs[0]
    request = job.request
    return not (
        need.ways
        or need.portions
        or request.prefer is not None
        or need.least_limit_s is not None
        or need.switches is not None
        or request.licenses
        or request.reservation is not None
        or request.deadline_s is not None
    )


def takes_any_node(job: JobRecord, nodes: Nodes) -> bool:
    """Whether a `job` may have each of the `nodes` of its partition."""
    need: Need = job.needs[0]
    return need.nodes == nodes.partitions[need.partition.name] & nodes.usable


def put(values: NDArray, data: bytes) -> None:
    """Put the bytes of `data` into the memory of an array of `values`, from its begin on."""
    values.data.cast("B")[: len(data)] = data


def longer(array: NDArray, room: int) -> NDArray:
    """An array with room for more along its last axis."""
    longer = np.zeros((*array.shape[:-1], room), dtype=array.dtype)
    longer[..., : array.shape[-1]] = array
    return longer


class QuickCycles:
    """Makes cycles for a controller, with arrays that are kept from one to the next.

    cuts: whether a cycle may end where no other job can start; fewer then count as tested.
    postponed: whether, in the last cycle, some job could have run before the date from which it was
    tested. plans_idle_nodes: whether it reserved nodes that are idle.
    """

    # The arrays of the state of which each entry has a place, and of which each row of masks.
    _of_entries: tuple[str, ...] = ("jobs", "planned", "tested", "new")
    _of_rows: tuple[str, ...] = ("counts", "grows", "map_version", "later_counts")
    # Whether it makes no cycle while nodes are not clean.
    _waits_for_cleaning = True

    def __init__(self, controller: Controller, *, cuts: bool = False) -> None:
        self._controller = controller
        nodes, conf = controller.nodes, controller.conf
        self._cpus = nodes.cpus[0]
        self._words = (len(nodes) + 63) // 64
        self._first = conf.first_job_id
        self._rows: dict[tuple[Mask, Mask], int] = {}
        self._up: Mask = 0
        # How many jobs that came to the queue are known.
        self._seen = 0
        # The places in `known` of jobs that may not have each node of their partition.
        self._picky: set[int] = set()
        # The answers of the select plugin when it was noted who runs.
        self._noted = -1
        room = conf.bf_node_space_size + 3
        self._state = self._new_state(room)
        # As Python has them; the arrays of the state may become longer, but for this one.
        self._numbers = numbers = self._state.numbers.data
        options = conf.scheduler
        numbers[STEP], numbers[WINDOW] = options.bf_resolution_s, options.bf_window_min * 60
        numbers[MOST], numbers[ROOM] = options.bf_max_job_test, conf.bf_node_space_size
        # Who looks at plans wants all; GPUs are noted by whoever looks.
        notes = controller.allocations.select.favours is not None
        numbers[CUTS] = cuts and not (controller.reservations.keeps_plans or notes)
        # What decided the last cycle.
        self._known: tuple[int, int, Mask] | None = None
        self.postponed = False
        self.plans_idle_nodes = False

    def _new_state(self, slots: int) -> Any:
        return state_for(slots, self._words)

    @property
    def changed(self) -> bool:
        """Whether the last cycle counts as a change."""
        return self.postponed or self.plans_idle_nodes

    def run(self, date: float) -> int | None:
        """Make a cycle, and say how many jobs it tested; None: it is none of this kind."""
        controller = self._controller
        now = controller.events.second(date)
        entries = controller.queue.build(now)
        rules = controller.rules
        cleaning = self._waits_for_cleaning and controller.allocations.cleaning.nodes
        if not rules.unreserved or rules.owning or cleaning:
            return None
        if self._is_known(now):
            return self._numbers[TESTED]
        self._known = None
        if not entries:
            controller.reservations.forget_plans()
            self.postponed = self.plans_idle_nodes = False
            return 0
        count = len(entries)
        self._make_room(count)
        state = self._state
        put(state.jobs, controller.queue.numbers.tobytes())
        deep = count > controller.conf.scheduler.bf_max_job_test
        if deep and self._picky and not self._picky.isdisjoint(state.jobs[:count].tolist()):
            return None  # who is tried in vain counts
        entries = entries.copy()  # without those that start
        numbers = self._numbers
        numbers[NOW], numbers[ENTRIES], numbers[POSITION] = now, count, 0
        if controller.nodes.up != self._up:
            self._up = controller.nodes.up
            state.up[:] = words_of(self._up, self._words)
            self._noted = -1
        if controller.jobs.requeued:
            self._see_requeued()
        self._note_who_runs()
        with as_compiled():
            if not self._go_through(entries, date):
                return None
        self._note_plans(entries)
        if now <= numbers[UNTIL]:
            self._known = self._versions
        return numbers[TESTED]

    @property
    def _versions(self) -> tuple[int, int, Mask]:
        """What decides a cycle besides its date: who waits, what is used, which nodes are up."""
        controller = self._controller
        version = controller.allocations.answers.version
        return controller.queue.version, version, controller.nodes.up

    def _is_known(self, now: int) -> bool:
        """Whether a cycle would do what the last one did, which is kept: it started no job."""
        if now > self._numbers[UNTIL]:
            return False
        return self._known == self._versions and not self._controller.jobs.requeued

    def _make_room(self, entries: int) -> None:
        """Know all jobs that came to the queue and still wait, and have room for them."""
        jobs, came = self._controller.jobs.all, self._controller.queue.came
        if len(jobs) > len(self._state.known):
            known = longer(self._state.known.T, 2 * len(jobs) + 1000).T.copy()
            self._state = self._state._replace(known=known)
        for job in came[self._seen :]:
            if job.state == PENDING:
                self._see(job, job.number - self._first)
        self._seen = len(came)
        state = self._state
        if entries > len(state.jobs):
            self._state = state._replace(**zeros(self._of_entries, 2 * entries))

    def _see(self, job: JobRecord, place: int) -> None:
        """Note what is known of a `job`, in its place."""
        facts = self._facts_of(job)
        self._state.known[place, : TOLD + 1] = *facts, self._told(job, facts[0])
        if not takes_any_node(job, self._controller.nodes):
            self._picky.add(place)

    def _told(self, job: JobRecord, which: int) -> int:
        """What is known of the size of a `job` without a test; which: the first of its facts."""
        return 1 if job.tested_cpus == which * self._cpus else NOT_TOLD

    def _see_requeued(self) -> None:
        """Whoever waits again is told anew: its priority was made anew, too."""
        for job in self._controller.jobs.requeued:
            self._state.known[job.number - self._first, TOLD] = NOT_TOLD
        self._controller.jobs.forget_requeued()

    def _note_who_runs(self) -> None:
        """Note which jobs run, until when, and which nodes are idle."""
        if self._noted == self._controller.allocations.answers.version:
            return
        self._noted = self._controller.allocations.answers.version
        jobs, state = self._controller.jobs, self._state
        for slot, job in jobs.take_starts():
            if slot >= len(state.held):
                held = longer(state.held.T, 2 * slot + FEW).T.copy()
                self._state = state = state._replace(held=held)
            state.held[slot] = words_of(nodes_of(job), self._words)
        count = len(jobs.running)
        if count > len(state.running):
            room = 2 * count
            self._state = state = state._replace(
                **zeros(("running", "ends"), room),
                later_free=np.zeros((room + 1, self._words), dtype=np.uint64),
                later_counts=np.zeros((room + 1, len(state.masks)), dtype=np.int64),
            )
        put(state.running, jobs.slots.tobytes())
        put(state.ends, jobs.ends_s.tobytes())
        self._numbers[RUNNING] = count
        state.idle[:] = words_of(self._controller.allocations.idle, self._words)

    def _go_through(self, entries: list[Entry], date: float) -> bool:
        """Run the kernel, and start the jobs that it finds can start; False: some are not plain."""
        controller, numbers = self._controller, self._numbers
        while (status := cycle(self._state)) != DONE:
            if status == NOT_PLAIN:
                return False
            place = numbers[POSITION]
            job = entries[place].job
            nodes = int.from_bytes(self._state.chosen.tobytes(), "little")
            allocation = Allocation(nodes, nodes.bit_count())
            controller.rules.tested(job, allocation)
            controller.runs.start(job, 0, allocation, date, BACKFILL)
            self._note_who_runs()
            numbers[POSITION] = place + 1
        return True

    def _note_plans(self, entries: list[Entry]) -> None:
        controller, state, numbers = self._controller, self._state, self._numbers
        if new := numbers[NEW]:
            for place in state.new[:new].tolist():
                job = entries[place].job
                if job.state == PENDING:
                    controller.rules.tested_cpus(job, self._size_of(place, job))
        reservations = controller.reservations
        reservations.forget_plans()
        if reservations.keeps_plans:
            planned = state.planned[: len(entries)]
            for place in np.flatnonzero(planned >= 0).tolist():
                reservations.plan(entries[place].job, int(planned[place]), 0)
        self.postponed = bool(numbers[POSTPONED])
        self.plans_idle_nodes = bool(numbers[PLANS_IDLE])

    def _size_of(self, place: int, job: JobRecord) -> int:
        """The CPUs that the job of an entry was found to take."""
        return job.needs[0].least * self._cpus

    def _facts_of(self, job: JobRecord) -> tuple[int, int, int]:
        """Nodes, seconds and row of masks of a job."""
        if not is_plain(job):
            return IS_NOT_PLAIN, 0, 0
        if self._controller.rules.waits_for(job, job.partitions[0]) is not None:
            return IS_NOT_TESTED, 0, 0
        need: Need = job.needs[0]
        if need.least * self._cpus < need.cpus or need.least > need.most:
            return IS_NOT_PLAIN, 0, 0
        return need.least, need.planned_s, self._row_of(need.nodes, need.partition)

    def _row_of(self, nodes: Mask, partition: Partition) -> int:
        """The row of masks of some nodes of a partition, all of which say when to try again."""
        key = nodes, self._controller.nodes.partitions[partition.name]
        if key not in self._rows:
            self._add_row(*key)
        return self._rows[key]

    def _add_row(self, nodes: Mask, reach: Mask) -> None:
        state, row = self._state, len(self._rows)
        self._rows[nodes, reach] = row
        if row == len(state.masks):
            more = {name: longer(getattr(state, name), row + 1) for name in self._of_rows}
            empty = np.zeros((1, self._words), dtype=np.uint64)
            more |= {name: np.concatenate((getattr(state, name), empty)) for name in SETS}
            self._state = state = state._replace(**more)
        state.masks[row] = words_of(nodes, self._words)
        state.reach[row] = words_of(reach, self._words)


def zeros(names: Iterable[str], length: int) -> dict[str, NDArray]:
    """Arrays of zeros with these `names`, of such a `length`."""
    return {name: np.zeros(length, dtype=np.int64) for name in names}


def state_for(slots: int, words: int) -> CycleState:
    """The state of a kernel for so many slots, and nodes of so many words."""
    many = zeros(("jobs", "planned", "tested", "new", "running", "ends"), FEW)
    many |= zeros(("slot_begin", "slot_end", "following"), slots)
    sets = ("up", "idle", "planned_nodes", "chosen", "left", "usable")
    one: dict[str, Any] = {name: np.zeros(words, dtype=np.uint64) for name in sets}
    return CycleState(
        numbers=np.zeros(NUMBERS, dtype=np.int64),
        known=np.zeros((0, FACTS), dtype=np.int64),
        masks=np.zeros((1, words), dtype=np.uint64),
        reach=np.zeros((1, words), dtype=np.uint64),
        held=np.zeros((0, words), dtype=np.uint64),
        free=np.zeros((slots, words), dtype=np.uint64),
        counts=np.zeros((slots, 1), dtype=np.int64),
        grows=np.zeros((slots, 1), dtype=np.int64),
        map_version=np.zeros(1, dtype=np.int64),
        later_free=np.zeros((FEW + 1, words), dtype=np.uint64),
        later_counts=np.zeros((FEW + 1, 1), dtype=np.int64),
        runs=np.zeros(words * 64 + 2, dtype=np.int64),
        **many,
        **one,
    )


def prepare_kernels() -> None:
    """Use the kernel as it is used (see `kernels.building`)."""
    cycle(state_for(1, 1))
