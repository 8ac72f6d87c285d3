"""Main scheduler: start pending jobs in queue order.

The event loop calls it. A job that does not fit blocks its partition.
Source: Slurm 22.05, Scheduling Configuration Guide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, NamedTuple

from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.slurm.conf.facts import LINEAR
from ptaskmodel.slurm.controller.queue import BAD_CONSTRAINTS, Entry
from ptaskmodel.slurm.controller.rules import LICENCES
from ptaskmodel.slurm.jobs.needs import Need
from ptaskmodel.slurm.jobs.record import PENDING, JobRecord, is_account_limit
from ptaskmodel.slurm.scheduling.steady import MAIN, NOT_TOLD, SteadyStarts, idle_nodes, is_steady
from ptaskmodel.slurm.scheduling.victim_classes import ends_all_victims
from ptaskmodel.slurm.select.cores import nodes_in

if TYPE_CHECKING:
    from ptaskmodel.slurm.controller.controller import Controller

# The reason of who would not fit even if all who run were gone.
NOT_AVAILABLE = "ReqNodeNotAvail"


def stops_others(reason: str) -> bool:
    """Whether a limit stops those behind too, under assoc_limit_stop."""
    return is_account_limit(reason) and reason != "QOSMaxJobsPerUserLimit"


def repeats(controller: Controller) -> bool:
    """Whether a pass of a `controller` that starts no job does the same again.

    It does until something changes, or other victims can be preempted: no other date, and nothing
    that passes themselves note, matters.
    """
    conf, options = controller.conf, controller.conf.scheduler
    return (
        controller.rules.unreserved
        and not controller.rules.owning
        and not conf.switches
        and not conf.gang
        and ends_all_victims(controller)
        and not conf.licenses
        and not conf.complete_wait_s
        and not (options.partition_job_depth or options.sched_max_job_start)
        and not (options.bf_min_age_reserve_s or options.bf_min_prio_reserve)
    )


class _Known(NamedTuple):
    """A pass that started no job and would do the same again.

    state: the versions of the queue and of the answers of the select plugin, the nodes that were up
    and those that were not clean. most: how many entries it looked at. changed: whether it was a
    change of jobs. notes: what it noted of the GPUs of nodes, whatever was noted before. until_s:
    other victims may be found from then on, Unix s.
    """

    state: tuple[int, int, Mask, Mask]
    most: int
    changed: bool
    notes: Mapping[int, int]
    until_s: float


class MainScheduler:
    """Makes passes over the queue of a `controller`."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._steady = SteadyStarts(controller) if is_steady(controller) else None
        # Jobs that pass `_is_queued` at any time.
        self._taken: set[JobRecord] = set()
        self._repeats = repeats(controller)
        self._complete_wait_s = controller.conf.complete_wait_s
        # The last pass, if it would be the same again.
        self._known: _Known | None = None

    def look(self, date: float, *, full: bool) -> None:
        """Start jobs at a `date`, strictly in order; full: however deep the queue is."""
        controller = self._controller
        now = controller.events.second(date)
        late = controller.allocations.completed_lately(now) if self._complete_wait_s else []
        if late and not controller.conf.scheduler.reduce_completing_frag:
            return
        entries = controller.queue.build(now, whole=True)
        looked = 0
        if self._steady is not None:
            looked, entries = len(entries), self._steady.start(entries, date, full=full)
            looked -= len(entries)
        if not entries or self._is_known(entries, now, full=full):
            return
        before = controller.events.changes
        controller.allocations.victims.trust_dates()
        steady = self._steady is not None
        one = _Pass(controller, date, late, self._taken, full=full, steady=steady)
        one.run(entries.copy(), looked)
        if self._steady is not None and one.head is not None:
            self._steady.head = one.head
        self._known = None
        if self._repeats and one.is_plain:
            self._know(entries, before, one.noted, full=full)

    def _know(self, entries: list[Entry], before: int, noted: Mask, *, full: bool) -> None:
        """Note that a pass would be the same again.

        before: `Events.changes` before it. noted: nodes of whose GPUs it made notes.
        """
        depth = len(entries) if full else self._controller.conf.scheduler.default_queue_depth
        changed = self._controller.events.changes != before
        favours = self._controller.allocations.select.favours
        notes = {} if favours is None else {node: favours[node] for node in nodes_in(noted)}
        until_s = self._controller.allocations.victims.sure_until_s
        self._known = _Known(self._state(), min(len(entries), depth), changed, notes, until_s)

    def _state(self) -> tuple[int, int, Mask, Mask]:
        """What decides a pass: the same as long as nothing comes, starts, ends or fails."""
        controller, allocations = self._controller, self._controller.allocations
        version = allocations.answers.version
        return controller.queue.version, version, controller.nodes.up, allocations.cleaning.nodes

    def _is_known(self, entries: list[Entry], now: int, *, full: bool) -> bool:
        """Whether a pass does what the last one did: nothing but to be a change of jobs."""
        known, controller = self._known, self._controller
        if known is None or now >= known.until_s or known.state != self._state():
            return False
        if full and known.most < len(entries):
            return False
        if known.changed:
            controller.events.change_at(now)
        favours = controller.allocations.select.favours
        if favours is not None:
            for node, noted in known.notes.items():
                favours[node] = noted
        return True


class _Pass:
    """One pass.

    blocked: the partitions, stopped: the reservations of which nobody starts any more. withdrawn:
    nodes that are kept for those who wait. rejected: arrays of which a task was rejected, by
    partition. looked, started: how many entries were looked at, and started. head: where steady,
    the job that blocks the partition, and the nodes that were idle; None: there is none. taken: see
    `_is_queued`. is_plain: whether it only found that nodes are missing, of which no job is to have
    certain ones. noted: nodes of whose GPUs it made notes.
    """

    def __init__(
        self,
        controller: Controller,
        date: float,
        late: Iterable[JobRecord],
        taken: set[JobRecord],
        *,
        full: bool,
        steady: bool,
    ) -> None:
        self._controller, self._date, self._full = controller, date, full
        self._steady = steady
        self.head: tuple[JobRecord, Mask] | None = None
        self._now = controller.events.second(date)
        self._options = controller.conf.scheduler
        self._partitions = partitions = controller.nodes.partitions
        barred = 0
        for each in late:
            barred |= partitions[each.partition.name]
        self._blocked = {name for name, nodes in partitions.items() if nodes & barred}
        self._stopped: set[str] = set()
        self._rejected: set[tuple[str, str]] = set()
        self._withdrawn = self.noted = 0
        for name in self._blocked:
            self._withdrawn |= partitions[name]
        self._completing = controller.allocations.cleaning.nodes
        self._taken = taken
        self._looked = self._started = 0
        # Whether it was noted that somebody is passed over, which is a change of jobs.
        self._has_changed = False
        self.is_plain = controller.queue.settled
        self._by_partition: dict[str, int] = {}

    def run(self, entries: Sequence[Entry], looked: int) -> None:
        """Look at entries until it is over. looked: how many were looked at before them."""
        options = self._options
        self._looked = looked
        for place, entry in enumerate(entries):
            if len(self._blocked) == len(self._partitions) and not options.partition_job_depth:
                deep = options.default_queue_depth + 1 - self._looked
                left = islice(entries, place, None)
                most = len(entries) if self._full else deep
                controller, now = self._controller, self._now
                steady, rejected = self._steady, self._rejected
                _all_wait(controller, left, rejected, self._taken, now, most, steady=steady)
                break
            if not self._look_at(entry):
                break

    def _look_at(self, entry: Entry) -> bool:
        """Look at an entry; whether the pass goes on."""
        _, which, job = entry
        name = job.partitions[which].name
        if job.state != PENDING:
            return True
        self._controller.rules.use_features(job, prefers=entry.prefers)
        if job.reservation is not None and not self._has_room_reserved(job, name):
            return True
        controller, taken = self._controller, self._taken
        if job not in taken and not _is_queued(controller, entry, self._rejected, taken):
            return True
        if self._options.partition_job_depth:
            depth = self._by_partition.get(name, 0)
            if depth >= self._options.partition_job_depth:
                if job.reason == "None":
                    job.wait_for("Priority")
                    controller.events.change_at(self._now)
                return True
            self._by_partition[name] = depth + 1
        if not self._full:
            if self._looked > self._options.default_queue_depth:
                return False
            self._looked += 1
        if job.reservation is None:
            stopped = name in self._blocked
        else:
            stopped = job.reservation.name in self._stopped
        if not stopped:
            return self._try(entry)
        if job.reservation is not None or job.reason in NOT_TOLD:
            job.wait_for("Priority")
        if not self._has_changed:
            self._has_changed = True
            controller.events.change_at(self._now)
        return True

    def _has_room_reserved(self, job: JobRecord, name: str) -> bool:
        """Whether a job's reservation has as many nodes in a partition as the job needs."""
        assert job.reservation is not None
        inside = job.reservation.nodes & self._partitions[name]
        return inside.bit_count() >= job.request.least_nodes

    def _try(self, entry: Entry) -> bool:
        """Start an entry if that can be; whether the pass goes on."""
        controller, queue, now = self._controller, self._controller.queue, self._now
        job, partition = entry.job, entry.job.partitions[entry.which]
        need = job.needs[entry.which]
        reason = controller.rules.blocks(job, partition)
        anywhere = controller.nodes.up & ~self._withdrawn
        left = anywhere & self._partitions[partition.name]
        limited = reason is not None and is_account_limit(reason)
        if not limited and job.reason == NOT_AVAILABLE and need.required & ~anywhere:
            return True
        if left.bit_count() < job.request.least_nodes and not (
            limited and is_account_limit(job.reason)
        ):
            # The nodes are not looked at, and nobody may pass.
            job.wait_for("Resources")
            controller.events.change_at(now)
            self._block(partition.name)
            return True
        if reason is not None:
            self.is_plain = False
            if reason == LICENCES:
                controller.events.change_at(now)
            if is_account_limit(job.reason):
                queue.waits_because(job, reason)  # that is known, and stops nobody any more
            else:
                self._limited(entry, reason)
            return reason != LICENCES or not self._options.bf_licenses
        reason = controller.rules.never_starts(job, partition)
        if reason is not None:
            self.is_plain = False
            queue.waits_because(job, reason)
            controller.events.change_at(now)
            self._withdraw_required(need)
            return True
        within = controller.reservations.allowed(job, need, now) & ~self._withdrawn
        self.noted |= self._partitions[partition.name]
        # Of nodes that are not clean yet select/linear takes those that a job names.
        named = need.required if controller.conf.select_type == LINEAR else 0
        clean = within & ~(self._completing & ~named)
        found = controller.allocations.find(job, entry.which, clean, now)
        if controller.holds(job, found, self._date):
            self.is_plain = False
            self._block(partition.name)
            return True
        if controller.preemption.active:
            self._completing |= controller.end_victims(self._date)
        reason = None
        if controller.rules.limits.limit:
            reason = controller.rules.exceeds(job, partition, found, tried=left)
        if reason is not None:
            self.is_plain = False
            self._limited(entry, reason)
            return True
        if found is None:
            queue.waits_because(job, "Resources")
            if controller.allocations.has_too_many(job, need, clean, now):
                self._gives_up(entry)
            else:
                self._waits(entry, within)
            return True
        self.is_plain = False
        controller.runs.start(job, entry.which, found, self._date, MAIN)
        self._rejected.discard(_array_in(entry))
        self._started += 1
        return self._started != self._options.sched_max_job_start

    def _block(self, name: str) -> None:
        """Start no other job in a partition, and keep its nodes."""
        self._blocked.add(name)
        self._withdrawn |= self._partitions[name]

    def _withdraw_required(self, need: Need) -> bool:
        """Whether a job that waits names nodes that suffice: those are kept, and nothing else."""
        named = bool(need.required) and need.required.bit_count() >= need.least
        if named:
            self._withdrawn |= need.required
        return named

    def _limited(self, entry: Entry, reason: str) -> None:
        """A limit keeps a job from starting."""
        job, name = entry.job, entry.job.partitions[entry.which].name
        self._controller.queue.waits_because(job, reason)
        if is_account_limit(reason) and self._withdraw_required(job.needs[entry.which]):
            return
        if self._options.assoc_limit_stop and stops_others(reason):
            self._block(name)

    def _gives_up(self, entry: Entry) -> None:
        """A job never gets what it asks for, unless another of its partitions has it."""
        self.is_plain = False
        if len(entry.job.partitions) == 1:
            self._controller.queue.give_up(entry.job, BAD_CONSTRAINTS)
            self._controller.events.change_at(self._now)
        self._withdraw_required(entry.job.needs[entry.which])

    def _waits(self, entry: Entry, within: Mask) -> None:
        """Nodes are missing: whom that stops. within: those that were looked at."""
        controller, job = self._controller, entry.job
        need, name = job.needs[entry.which], job.partitions[entry.which].name
        stops, plain = True, self.is_plain
        self.is_plain = False
        if self._partitions[name] & controller.nodes.up & ~within:
            stops = not need.required & ~within and controller.allocations.may_wait_for(
                job, need, self._partitions[name] & within
            )
            if not stops:
                controller.queue.waits_because(job, NOT_AVAILABLE)
                controller.events.change_at(self._now)
        if self._withdraw_required(need):
            return
        if job.reservation is not None:
            inside = controller.nodes.usable & job.reservation.nodes
            if not controller.rules.fits(need, inside):
                if len(job.partitions) == 1:
                    controller.queue.give_up(job, BAD_CONSTRAINTS)
            elif stops:
                self._stopped.add(job.reservation.name)
            return
        if not need.portions and not controller.rules.could_ever(need):
            if len(job.partitions) == 1:
                controller.queue.give_up(job, BAD_CONSTRAINTS)
            return
        if not stops or controller.reservations.may_pass(job, entry.which, self._now):
            return
        if self._steady and not self._withdrawn:
            self.head = job, idle_nodes(controller)
        self.is_plain = plain
        self._block(name)


def _array_in(entry: Entry) -> tuple[str, str]:
    """The array of a job, in the partition of an entry."""
    return entry.job.request.array_id, entry.job.partitions[entry.which].name


def _is_queued(
    controller: Controller, entry: Entry, rejected: set[tuple[str, str]], taken: set[JobRecord]
) -> bool:
    """Whether an entry counts: its partition may take it, and no task before it was rejected.

    taken: jobs that are no tasks, and that their only partition takes at any time.

    Of an array a task is rejected, as all behind it in the same partition, until it starts.
    """
    job = entry.job
    if not controller.rules.takes_whole(job, job.partitions[entry.which]):
        return False
    if job.request.array is None and len(job.partitions) == 1:
        taken.add(job)
    if job.request.array is not None:
        if _array_in(entry) in rejected:
            return False
        rejected.add(_array_in(entry))
        if controller.rules.arrays.is_full(job):
            controller.queue.waits_for_array(job)
            return False
    return True


_job_of, _reason_of = itemgetter(-1), attrgetter("reason")


def _all_wait(
    controller: Controller,
    entries: Iterable[Entry],
    rejected: set[tuple[str, str]],
    taken: set[JobRecord],
    now: int,
    most: int,
    *,
    steady: bool,
) -> None:
    """Go through the rest of a pass whose partitions are all blocked: `most` entries at most."""
    left_over = iter(entries)
    first = list(islice(left_over, most))
    jobs = list(map(_job_of, first))
    if jobs and (steady or taken.issuperset(jobs)):
        # Each has one entry, which nobody has looked at yet: it is pending.
        if not NOT_TOLD.isdisjoint(map(_reason_of, jobs)):
            for job in [job for job in jobs if job.reason in NOT_TOLD]:
                job.wait_for("Priority")
        controller.events.change_at(now)
        return
    left = most
    for entry in chain(first, left_over):
        if left <= 0:
            break
        job = entry[-1]
        if job.state != PENDING:
            continue
        if not steady and job not in taken and not _is_queued(controller, entry, rejected, taken):
            continue
        left -= 1
        if job.reason in NOT_TOLD:
            job.wait_for("Priority")
    if left < most:
        controller.events.change_at(now)
