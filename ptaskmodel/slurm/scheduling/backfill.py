"""Backfill scheduler: find each tested job's earliest start, and reserve nodes there.

`BackfillThread` runs its cycles. For plain jobs it uses `vectorised_backfill` or `shared_cycles`,
which must give the same results: change all three together. `TimeSlots` records which nodes are
free when.
Source: Slurm 22.05, src/plugins/sched/backfill, and its Scheduling Configuration Guide.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.slurm.accounts.fair_share import ACCOUNT_NOT_ALLOWED
from ptaskmodel.slurm.conf.facts import LINEAR, OFF
from ptaskmodel.slurm.conf.phases import CHANGED, DEPTH, FREE, QUEUE, ROOM, STARTS, TIME, Costs
from ptaskmodel.slurm.controller.admission import NODES
from ptaskmodel.slurm.controller.queue import Entry
from ptaskmodel.slurm.jobs.constraints import by_constraint
from ptaskmodel.slurm.jobs.needs import YEAR_S, Need, beside_others
from ptaskmodel.slurm.jobs.record import (
    LIVE,
    PENDING,
    RUNNING,
    Allocation,
    Ends,
    JobRecord,
    is_account_limit,
)
from ptaskmodel.slurm.scheduling.slots import NONE, Licences, TimeSlots

if TYPE_CHECKING:
    from ptaskmodel.slurm.controller.controller import Controller


BACKFILL = "backfill"
# What became of a test.
STARTED, RESERVED, NEXT, END, LIMITED = "started", "reserved", "next", "end", "limited"
# How long a job whose QOS has NoReserve is planned to last, where jobs may be preempted, s.
LAX_S = 60
# When a job that a limit keeps from starting is planned where nothing else is known, s from now.
LIMITED_S = 500


@dataclass(slots=True)
class Statistics:
    """What sdiag says of backfill.

    Sums over cycles: jobs tested, jobs in the queue, seconds that they took; how many of them
    bf_max_time ended.
    """

    cycles: int = 0
    tested: int = 0
    most_tested: int = 0
    waiting: int = 0
    lasted_s: float = 0.0
    longest_s: float = 0.0
    at_limit: int = 0

    def add(self, tested: int, waiting: int, lasted_s: float = 0.0, end: str = QUEUE) -> None:
        """Count a cycle. tested: jobs that it tested. waiting: jobs in the queue. end: its why."""
        self.cycles += 1
        self.tested += tested
        if tested > self.most_tested:
            self.most_tested = tested
        self.waiting += waiting
        self.lasted_s += lasted_s
        if lasted_s > self.longest_s:
            self.longest_s = lasted_s
        self.at_limit += end == TIME


class Cycle:
    """One cycle, from an empty map on.

    With costs it comes in slices: it holds the controller for ``slice_s``, then pauses. lasted_s:
    how long it has taken, pauses included. end: why it was over.
    """

    def __init__(self, controller: Controller, date: float, costs: Costs = FREE) -> None:
        self._controller, self._date, self._costs = controller, date, costs
        self.lasted_s = self.slice_s = 0.0
        self.end = QUEUE
        self._changed_s = controller.events.changed_s
        self._left: Iterator[Entry] = iter(())
        self._now = controller.events.second(date)
        self._options = options = controller.conf.scheduler
        self._step = options.bf_resolution_s
        self._window = options.bf_window_min * 60
        begin = self._now // self._step * self._step
        end = (self._now + self._window) // self._step * self._step
        total: Licences = controller.conf.licenses if options.bf_licenses else NONE
        self._slots = TimeSlots(begin, end, controller.nodes.up, total)
        self._counts_licences = bool(total)
        self._ends = controller.jobs.ends()
        if options.bf_running_job_reserve or options.bf_licenses:
            for job in sorted((job for _, _, job in self._ends), key=lambda job: job.listed):
                self._enter(job)
        self._started = self._tested = 0
        # Whether bf_max_job_test may end the cycle: only then is counted who is tried in vain.
        self._is_deep = False
        self._reserved: dict[str, int] = {}
        self._counts: dict[tuple[str, object], int] = {}
        # The tasks of arrays, by partition; the array for which reservations were made last, and
        # how many.
        self._tasks: dict[tuple[str, int, bool], list[Entry]] = {}
        self._array = "", 0
        # The array last tested in vain, and where: with other features it is not tested either.
        self._in_vain: tuple[str, int] | None = None
        # The arrays of which tasks have been started, which stand nowhere else in the queue.
        self._begun: set[str] = set()
        # Until when no job of a QOS can start, with assoc_limit_stop.
        self._limited: dict[str | None, float] = {}
        # Whether some job could have run before the date from which it was tested.
        self.postponed = False

    def run(self) -> bool:
        """Test the queue in order; False: the cycle pauses, and goes on with `go_on`."""
        controller = self._controller
        entries = list(controller.queue.build(self._now))
        self._is_deep = len(entries) > self._options.bf_max_job_test
        self._left = self._records(entries)
        controller.reservations.forget_plans()
        return self._slice()

    def go_on(self, date: float) -> bool:
        """After a pause: go on with the old queue and map, unless something changed meanwhile."""
        controller = self._controller
        self.lasted_s += date - self._date - self.slice_s
        self.slice_s = 0.0
        self._date, self._now = date, controller.events.second(date)
        if not self._options.bf_continue and controller.events.changed_s != self._changed_s:
            self.end = CHANGED
            return True
        self._ends = controller.jobs.ends()
        return self._slice()

    def _slice(self) -> bool:
        """Test jobs for as long as the locks are held; whether the cycle is over."""
        options, test_s = self._options, self._costs.test_s
        held_s = options.bf_yield_interval_us / 1e6
        most_s = self._controller.conf.bf_max_time_s
        over = True
        for entry in self._left:
            if self._tested >= options.bf_max_job_test:
                self.end = DEPTH
                break
            if self.lasted_s + self.slice_s >= most_s:
                self.end = TIME
                break
            before = self._tested
            outcome = self._record(entry)
            self.slice_s += test_s * (self._tested - before)
            if outcome == END:
                most = options.bf_max_job_start
                self.end = STARTS if most and self._started >= most else ROOM
                break
            if test_s and self.slice_s >= held_s:
                over = False
                break
        self.lasted_s += self.slice_s
        self._changed_s = self._controller.events.changed_s
        return over

    @property
    def tested(self) -> int:
        """How many jobs have been tested."""
        return self._tested

    @property
    def changed(self) -> bool:
        """Whether the cycle itself counts as a change, so that the next one will not be skipped."""
        return self.postponed or self.plans_idle_nodes

    @property
    def plans_idle_nodes(self) -> bool:
        """Whether nodes that are idle now are reserved for later."""
        idle = self._controller.idle
        return any(job.planned & idle for job in self._controller.reservations.planned)

    # --- who is tested ----------------------------------------------------------------------

    def _records(self, entries: list[Entry]) -> Iterator[Entry]:
        """The entries of jobs, and of the first task of each array in each partition."""
        for place, entry in enumerate(entries):
            if entry.job.request.array is not None:
                if not self._tasks:
                    for each in (one for one in entries[place:] if one.job.request.array):
                        self._tasks.setdefault(_group(each), []).append(each)
                if self._tasks[_group(entry)][0] is not entry:
                    continue
            yield entry

    def _record(self, entry: Entry) -> str:
        """Test a job, or the tasks of an array one after another until one of them cannot be."""
        array = entry.job.request.array
        tasks = [entry] if array is None else self._tasks[_group(entry)]
        if array is not None and (array.job in self._begun or self._in_vain == _group(entry)[:2]):
            return NEXT
        outcome, now_only, last = NEXT, None, None
        first, victims = 0, self._controller.allocations.victims
        for _ in tasks:
            # Which task it is shows when one starts: the first of those left.
            while first < len(tasks) and tasks[first].job.state != PENDING:
                first += 1
            if first == len(tasks):
                break
            task = tasks[first]
            self._controller.rules.use_features(task.job, prefers=entry.prefers)
            if now_only is None:
                if self._is_blocked(task):
                    return NEXT
                now_only = entry.prefers or self._now_only(task.job, task.which)
                victims.count_tasks(None if array is None else 0)
            if self._skipped(task):
                if last is not None:
                    self._controller.rules.keep_least_limit(last)
                outcome = NEXT
                break
            outcome = self._test(task, now_only)
            last = None if task.job.state == PENDING else task.job
            if outcome == STARTED and array is not None:
                self._begun.add(array.job)
            if outcome in (NEXT, END):
                break
            if outcome == RESERVED and array is not None:
                before, count = self._array
                self._array = array.job, count + 1 if before == array.job else 1
                left = sum(each.job.state == PENDING for each in tasks)
                if self._array[1] >= min(left, self._options.bf_max_job_array_resv):
                    break  # counted together where one partition follows the other
                if victims.tasks and array.at_most and victims.tasks >= array.at_most:
                    break
        victims.count_tasks(None)
        if outcome == END and last is not None:
            self._controller.rules.keep_least_limit(last)
        if array is not None:
            self._in_vain = _group(entry)[:2] if outcome == NEXT else None
        return outcome

    def _is_blocked(self, entry: Entry) -> bool:
        """Whether the partition does not take a job, or a limit of an account blocks it."""
        controller, job, partition = self._controller, entry.job, entry.job.partitions[entry.which]
        rules = controller.rules
        if rules.waits_for(job, partition) is not None:
            return True
        reason = rules.never_starts(job, partition)
        if reason in (ACCOUNT_NOT_ALLOWED, NODES):
            reason = None  # that is not found before the job is to start
        elif reason is not None:
            controller.events.change_at(self._now)
        if reason is None and rules.limits.enforced and not self._options.assoc_limit_stop:
            reason = rules.limits.blocks(job, partition)
            if reason is None and is_account_limit(job.reason):
                job.wait_for("None")
        if reason is not None:
            controller.queue.waits_because(job, reason)
        return reason is not None

    def _skipped(self, entry: Entry) -> bool:
        """Whether so many tasks of an array or so many jobs of a user were there already."""
        job, which = entry.job, entry.which
        controller = self._controller
        if controller.rules.arrays.is_full(job):
            controller.queue.waits_for_array(job)
            return True
        options, partition = self._options, job.partitions[which].name
        user = job.request.user
        member = None if job.account is None else job.account.association
        most = (
            (("user_part", (user, partition)), options.bf_max_job_user_part),
            (("part", partition), options.bf_max_job_part),
            (("assoc", member), options.bf_max_job_assoc if member is not None else 0),
            (("user", user), 0 if options.bf_max_job_assoc else options.bf_max_job_user),
        )
        if any(limit and self._counts.get(key, 0) >= limit for key, limit in most):
            return True
        for key, limit in most:
            if limit:
                self._counts[key] = self._counts.get(key, 0) + 1
        return not self._counts_licences and controller.rules.lacks_licences(job)

    def _now_only(self, job: JobRecord, which: int) -> bool:
        if self._options.bf_one_resv_per_job and job.planned_s is not None:
            return True
        may_pass = self._controller.reservations.may_pass
        return may_pass(job, which, self._now) or self._full(job, which)

    def _full(self, job: JobRecord, which: int) -> bool:
        """Whether a partition has as many reservations as it may."""
        count = self._options.bf_job_part_count_reserve
        return bool(count and self._reserved.get(job.partitions[which].name, 0) >= count)

    # --- one job ----------------------------------------------------------------------------

    def _test(self, entry: Entry, now_only: bool) -> str:
        """Find the first date of a job, and start it or reserve. now_only: whether not later."""
        controller, now = self._controller, self._now
        job, which = entry.job, entry.which
        need: Need = job.needs[which]
        lasts = need.planned_s
        if job.request.deadline_s is not None:
            lasts = need.before(controller.events.second(job.request.deadline_s) - now) or lasts
        lax = controller.rules.reserves_none(job)
        if lax and controller.conf.preempt_mode - {OFF}:
            lasts = LAX_S
        barred = controller.allocations.of_others(job, need)
        partition = controller.nodes.partitions[need.partition.name]
        asked = job.request.licenses if self._counts_licences else NONE
        counted = False
        later: float = max(now, self._limited_until(job, which))
        # Whether dates at which too few nodes are free are just passed over.
        passes_over = controller.rules.reserved.empty and not now_only
        while True:
            possible = controller.reservations.from_date(job, need, later, lasts)
            if possible is None:
                return NEXT
            start, allowed, resv_later = possible
            end = max(start, now) + lasts
            open_to, deep = allowed & ~barred, self._is_deep
            if deep and not counted and self._is_tried(need, start, end, open_to, asked):
                counted = True
                self._tested += 1
            # Nodes that it cannot use are when to try again, too.
            there = open_to & partition
            free, later = self._slots.open(start, end, there, asked)
            while later and passes_over and (free & need.nodes).bit_count() < need.least:
                start, end = later, later + lasts
                free, later = self._slots.open(start, end, there, asked)
            among = free & need.nodes
            if resv_later is not None and (later == 0 or resv_later < later):
                later = resv_later
            planned = None
            if among.bit_count() >= need.least and not need.required & ~among:
                if not counted:
                    counted = True
                    self._tested += 1
                planned = self._predict(job, which, among, now_only)
            if planned is None:
                if later and not now_only:
                    continue
                return NEXT
            date, found = planned
            if controller.holds(job, found, self._date):
                return NEXT
            if date < start:
                date = start
                self.postponed = True
            if date <= now and found.nodes & controller.allocations.cleaning.nodes:
                date, later = now + 1, 0
            if date <= now:
                outcome = self._start(job, which, among & ~controller.allocations.cleaning.nodes)
                if outcome == LIMITED:
                    date = later or now + LIMITED_S
                    self._delay_limited(job, date)
                elif outcome is not None:
                    return outcome
                else:
                    date, later = now, 0
            if now_only and date > now:
                return NEXT
            if later and date > later:
                continue
            begin = int(date) // self._step * self._step
            finish = int(date + lasts) // self._step * self._step
            if date > now + self._window:
                return NEXT
            if date > now and self._slots.collides(begin, finish, found.nodes, asked):
                later = int(date)
                continue
            over = None
            if not self._options.assoc_limit_stop:
                over = controller.rules.exceeds(
                    job, job.partitions[which], found, planned=True, least_time=True
                )
            if over is not None:
                controller.queue.waits_because(job, over)
            elif not (lax or self._full(job, which)):
                return self._reserve(job, which, date, begin, finish, found.nodes)
            return NEXT

    def _is_tried(self, need: Need, start: float, end: float, among: Mask, asked: Licences) -> bool:
        """Whether the select plugin is asked: nodes and licences suffice, whatever nodes have."""
        there = among & self._controller.nodes.partitions[need.partition.name]
        free, _ = self._slots.open(start, end, there, asked)
        return free.bit_count() >= need.least and not need.required & ~free

    def _limited_until(self, job: JobRecord, which: int) -> float:
        """Until when QOSs whose limits were reached in this cycle let none of their jobs start."""
        if not self._limited:
            return 0.0
        own = None if job.account is None else job.account.qos
        names = own, job.partitions[which].qos
        return max(self._limited.get(name, 0.0) for name in names)

    def _delay_limited(self, job: JobRecord, date: float) -> None:
        """A limit of all jobs of a QOS keeps a job from starting: others of it wait until then."""
        name = self._controller.rules.limits.blocking_qos
        if name is not None and job.reason.startswith("QOSGrp"):
            self._limited[name] = max(self._limited.get(name, 0.0), date)

    def _predict(
        self, job: JobRecord, which: int, among: Mask, now_only: bool
    ) -> tuple[float, Allocation] | None:
        """The first date at which a job fits among some nodes, and which it takes then."""
        allocations, need = self._controller.allocations, job.needs[which]
        if need.portions and not allocations.victims.candidates(job, need, self._now):
            return allocations.predict(job, need, among, self._now, self._ends, now_only=now_only)
        ways = [need] if job.request.constraint else [*beside_others(need), need]
        for way in ways:
            found = allocations.place(job, way, among, self._now)
            if found is not None:
                return self._now, found
        answers = allocations.answers
        ends: Ends = self._ends
        victims = allocations.victims.candidates(job, need, self._now)
        if victims:
            # All of them are gone at once, whoever would have to make room.
            answers, ends = allocations.victims.without(victims, ends)
            leaves = allocations.leaves(job, need, self._now)
            found = by_constraint(need, among, lambda n, w: answers.place(n, w, leaves))
            if found is not None:
                return self._now, found
        if now_only:
            return None
        return allocations.predict(job, need, among, self._now, ends, answers)

    def _start(self, job: JobRecord, which: int, among: Mask) -> str | None:
        """Start a job now; None: it could not be."""
        controller, rules = self._controller, self._controller.rules
        reason = rules.limits.blocks(job, job.partitions[which]) if rules.limits.enforced else None
        found = None
        if reason is None:
            refused = rules.never_starts(job, job.partitions[which])
            if refused is not None:
                controller.queue.waits_because(job, refused)
                controller.events.change_at(self._now)
                return None
            found = controller.allocations.find(job, which, among, self._now, planned=True)
            if controller.holds(job, found, self._date):
                return NEXT
            reason = rules.exceeds(job, job.partitions[which], found, tried=among, least_time=True)
        if reason is not None:
            controller.queue.waits_because(job, reason)
            return LIMITED if self._options.assoc_limit_stop else NEXT
        if found is None:
            controller.end_victims(self._date)
            self._ends = controller.jobs.ends()  # victims are gone, or will be before their limit
            return NEXT if job.state != PENDING else None
        controller.runs.start(job, which, found, self._date, BACKFILL)
        if job.state in LIVE and job.end_s < float("inf"):
            insort(self._ends, (job.end_s, job.listed, job))
        self._enter(job)
        self._started += 1
        most = self._options.bf_max_job_start
        return END if most and self._started >= most else STARTED

    def _enter(self, job: JobRecord) -> None:
        """Let a job that runs keep whole nodes in the map, until its end.

        Only cons_tres notes that a job has whole nodes. Of a job with licences the map is cut where
        it ends, though nothing is taken.
        """
        controller, allocation = self._controller, job.allocation
        if job.state != RUNNING or allocation is None:
            return
        preemption = controller.preemption
        stays = not preemption.active or preemption.mode_of(job) == OFF
        need: Need = job.need
        whole = stays and need.whole and controller.conf.select_type != LINEAR
        if not whole and not job.request.licenses:
            return
        if self._slots.records < controller.conf.bf_node_space_size:
            end = int(job.start_s + min(job.limit_s, YEAR_S)) // self._step * self._step
            begin = self._slots.begins[0]
            nodes = allocation.nodes if whole else 0
            end = max(end, begin + self._step)
            self._slots.reserve(begin, end, nodes, job.request.licenses)

    def _reserve(
        self, job: JobRecord, which: int, date: float, begin: int, finish: int, nodes: Mask
    ) -> str:
        name = job.partitions[which].name
        self._reserved[name] = self._reserved.get(name, 0) + 1
        if job.planned_s is None or date < job.planned_s:
            self._controller.reservations.plan(job, date, nodes)
        if self._slots.records >= self._controller.conf.bf_node_space_size:
            return END
        finish = max(finish, begin + self._step)
        self._slots.reserve(begin, finish, nodes, job.request.licenses)
        return RESERVED


def _group(entry: Entry) -> tuple[str, int, bool]:
    """The array that an entry is of, in which partition, and with which features."""
    return entry.job.request.array_id, entry.which, entry.prefers
