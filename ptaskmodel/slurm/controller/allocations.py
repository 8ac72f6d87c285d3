"""Which jobs hold which nodes: allocations, victims of preemption, and reservations.

`victims` chooses jobs that make way if no nodes are free; the controller ends those that must end.
Source: slurm.conf of Slurm 22.05, PreemptMode.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.slurm.conf.facts import (
    CONS_TRES,
    EXCLUSIVE,
    FORCE,
    LINEAR,
    Conf,
    Nodes,
    SchedulerParameters,
)
from ptaskmodel.slurm.conf.reservations import Asker, Reserved
from ptaskmodel.slurm.controller.admission import is_tried
from ptaskmodel.slurm.controller.job_list import Cleaning, Events, JobList
from ptaskmodel.slurm.controller.preemption import Preemption
from ptaskmodel.slurm.controller.queue import RESERVATION_DELETED, Queue
from ptaskmodel.slurm.controller.rules import Rules
from ptaskmodel.slurm.controller.victims import Victims
from ptaskmodel.slurm.jobs import record
from ptaskmodel.slurm.jobs.constraints import by_constraint, exceeds, first_by_constraint
from ptaskmodel.slurm.jobs.gpus import GPU
from ptaskmodel.slurm.jobs.needs import Need
from ptaskmodel.slurm.jobs.record import Allocation, Ends, JobRecord, nodes_of
from ptaskmodel.slurm.select.consumable import Consumable
from ptaskmodel.slurm.select.plugin import Answers, date_of, select_of
from ptaskmodel.slurm.select.switches import Leaves


class Allocations:
    """The nodes that jobs hold, through the select plugin.

    conf, nodes, rules: of the cluster. preemption: which jobs may preempt which. jobs: those that
    run. select: what jobs use. answers: where jobs fit, remembered until something changes.
    cleaning: jobs that are over and whose nodes are not clean. victims: jobs that others preempt.
    """

    def __init__(
        self, conf: Conf, nodes: Nodes, rules: Rules, preemption: Preemption, jobs: JobList
    ) -> None:
        self._conf, self._nodes, self._rules = conf, nodes, rules
        self._preemption = preemption
        self._jobs = jobs
        self.select = select_of(conf, nodes)
        gpus = any(gres.name == GPU for line in conf.nodes for gres in line.gres)
        if gpus and conf.select_type == CONS_TRES:
            self.select.follow_favours(bytearray(len(nodes)))
        self.answers = Answers(self.select, conf)
        self.cleaning = Cleaning()
        # How few leaf switches jobs and arrays wait for that ask for few.
        self._leaves: dict[str, Leaves | None] = {}
        self.victims = Victims(conf, nodes, rules, preemption, jobs, self.select, self.answers)

    # --- what jobs hold ---------------------------------------------------------------------

    @property
    def idle(self) -> Mask:
        """The nodes that no job uses."""
        return self.select.idle

    def take(self, job: JobRecord) -> None:
        """A `job` that starts takes its nodes."""
        self.select.add(job)
        self.answers.forget()

    def give_back(self, job: JobRecord, *, running: bool) -> None:
        """A `job` that is over gives its nodes back; running: whether it was not suspended."""
        self.select.remove(job, running=running)
        self.answers.forget()

    def pause(self, job: JobRecord) -> None:
        """A `job` is suspended on its nodes."""
        self.select.pause(job)
        self.answers.forget()

    def resume(self, job: JobRecord) -> None:
        """A suspended `job` goes on on its nodes."""
        self.select.resume(job)
        self.answers.forget()

    def completed_lately(self, now: int) -> list[JobRecord]:
        """Return the jobs that are completing `now`, for no more than CompleteWait."""
        longest_s = self._conf.complete_wait_s
        return self.cleaning.since(now - longest_s) if longest_s else []

    # --- where a job fits -------------------------------------------------------------------

    def place(self, job: JobRecord, need: Need, within: Mask, now: int) -> Allocation | None:
        """Return where a `job` with a `need` fits `now`, of the nodes `within`."""
        leaves = self.leaves(job, need, now)
        found = by_constraint(need, within, lambda n, w: self.answers.place(n, w, leaves))
        if found is not None:
            self._rules.tested(job, found)
        return found

    def predict(
        self,
        job: JobRecord,
        need: Need,
        within: Mask,
        now: int,
        ends: Ends,
        answers: Answers | None = None,
        *,
        now_only: bool = False,
    ) -> tuple[float, Allocation] | None:
        """Return when and where a `job` with a `need` fits if others end at their limits, `ends`.

        within: the nodes to look at. now: Unix s. answers: where jobs fit, if not as all run now.
        now_only: whether it must fit now. Whether it does is only looked at for each portion of a
        constraint; see `place`.
        """
        leaves = self.leaves(job, need, now)

        def ask(part: Need, within: Mask) -> tuple[float, Allocation] | None:
            if need.portions:
                found = self.answers.place(part, within, leaves)
                if found is not None or now_only:
                    return None if found is None else (now, found)
            later = (answers or self.answers).end(part, within, ends, leaves)
            return later and (date_of(later[0], self.select, self._conf, now), later[1])

        found = first_by_constraint(need, within, ask)
        if found is not None:
            self._rules.tested(job, found[1])
        return found

    def find(
        self, job: JobRecord, which: int, within: Mask, now: int, *, planned: bool = False
    ) -> Allocation | None:
        """Return where a `job` can start `now`, over victims if that is needed and allowed.

        which: the place of its partition. within: the nodes to look at. planned: whether these are
        the nodes where backfill has found room.
        """
        need = job.needs[which]
        if self._rules.frees_alone and not need.ways and not need.portions:
            found = self.select.start(need, within)
            if found is not None:
                self._rules.tested(job, found)
            return found
        seen = within if planned else self._nodes.partitions[need.partition.name]
        self.select.forget_favours(seen)
        excludes = need.partition.over_subscribe == EXCLUSIVE and is_tried(need)
        if excludes and not all(n.whole for n in job.needs):
            # Slurm notes it of the job, which is exclusive in its other partitions from then on.
            job.set_needs(self._rules.needs(job, whole=True))
            need = job.needs[which]
        within &= ~self.of_others(job, need)
        if self._conf.gang and isinstance(self.select, Consumable):
            candidates = self.victims.candidates(job, need, now)
            within &= ~self._closed() | sum_of([v for v in candidates if _keeps_out(v)])
            if not self._preemption.active and _owns(need):
                live = (other for _, _, other in self._jobs.running)
                within &= ~sum_of([each for each in live if each.state == record.RUNNING])
        leaves, limits = self.leaves(job, need, now), self._rules.limits
        counted = limits.nodes_counted(job, need.partition) if limits.enforced else 0

        def ask(need: Need, within: Mask) -> Allocation | None:
            if counted or self._is_weighed:
                found = self.select.start(need, within, leaves=leaves, counted=counted, seen=seen)
                self.answers.forget()
                return found
            return self.answers.start(need, within, leaves)

        found = by_constraint(need, within, ask)
        if found is not None:
            self._rules.tested(job, found)
            return found
        self._rules.note_gpus(need, self.select)
        if not self._preemption.active:
            return None
        return by_constraint(need, within, lambda n, w: self.victims.preempt(job, n, w, now))

    def has_too_many(self, job: JobRecord, need: Need, within: Mask, now: int) -> bool:
        """Return whether portions of a `need`, `within` free nodes `now`, exceed the `job`."""
        if not need.portions:
            return False
        leaves = self.leaves(job, need, now)
        return exceeds(need, within, lambda n, w: self.answers.start(n, w, leaves))

    @property
    def _is_weighed(self) -> bool:
        return isinstance(self.select, Consumable) and self.select.heavier != 0

    def tested_at_submit(self, job: JobRecord) -> None:
        """A `job` was tried when it was submitted: nodes weigh what they do for it."""
        need, limits = job.needs[0], self._rules.limits
        leaves = None if job.request.hold else self.leaves(job, need, job.submit_s)
        if leaves is not None:
            leaves.see(0)
        if limits.enforced and not job.request.hold and isinstance(self.select, Consumable):
            counted = limits.nodes_counted(job, need.partition)
            if counted or self._is_weighed:
                self.select.weigh(need.nodes, counted)
                self.answers.forget()

    def _closed(self) -> Mask:
        """Return the nodes that a job has for itself, though others could share them row by row."""
        return sum_of([job for _, _, job in self._jobs.running if _keeps_out(job)])

    def of_others(self, job: JobRecord, need: Need) -> Mask:
        """Return the nodes of other users that a `job` with a `need` must not share.

        Either it, or a job there, shares nodes with jobs of its own user alone.
        """
        if not self._rules.owning:
            return 0
        theirs, there = 0, [other for _, _, other in self._jobs.running]
        for other in there + self.cleaning.since(-inf):
            allocation = other.allocation
            if allocation is None or other.request.user == job.request.user:
                continue
            if need.owns or other.need.owns:
                theirs |= allocation.nodes
        return theirs

    def leaves(self, job: JobRecord, need: Need, now: int) -> Leaves | None:
        """Return how few leaf switches a `job` with a `need` waits for `now`; an array is one."""
        tree = self.select.tree
        if need.switches is None or tree is None:
            return None
        name = job.request.array_id
        if name not in self._leaves:
            self._leaves[name] = tree.leaves_of(need)
        return None if (found := self._leaves[name]) is None else found.at(now)

    def may_wait_for(self, job: JobRecord, need: Need, left: Mask) -> bool:
        """Return whether a `job` whose `need` does not fit on the nodes `left` waits for them.

        If so, it stops others. It waits if the nodes would be enough without the other jobs, or if
        some of them are of no use now, even if they lack generic resources.
        """
        if self._rules.fits(need, left):
            return True
        return bool(self._rules.looked_at(job, need) & left & ~self._of_use(need))

    def has_nodes_for(self, job: JobRecord) -> bool:
        """Return whether a `job` would fit if only the jobs that share no nodes ran.

        Nodes that it names count also if somebody is on them.
        Its partition of the highest tier decides, or any if EnforcePartLimits is ALL.
        """
        needs = job.needs
        if self._conf.enforce_part_limits != "ALL":
            needs = [max(needs, key=lambda need: need.partition.tier)]
        return any(
            self._rules.fits(each, self._of_use(each) | each.required & self._nodes.up)
            for each in needs
        )

    def lacks_portion(self, job: JobRecord) -> bool:
        """Return whether other jobs keep a `job` from the nodes of one of its portions.

        Then Slurm finds only of the portions before it if they are more than the job may have.
        """
        need, lacks = job.needs[0], False
        taken = 0

        def ask(part: Need, within: Mask) -> Allocation | None:
            nonlocal lacks, taken
            found = self._rules.alone(part, within)
            if found is not None:
                taken |= found.nodes | need.required
            else:
                lacks = taken.bit_count() <= need.most and self._rules.could_ever(part)
            return found

        return by_constraint(need, need.nodes & self._of_use(need), ask) is None and lacks

    def _of_use(self, need: Need) -> Mask:
        """The nodes that may be tried at all; with preemption whoever is on them."""
        usable = self._nodes.up & ~self.cleaning.nodes
        if self._preemption.active:
            return usable
        alone = self._is_alone(need)
        for _, _, job in self._jobs.running:
            if job.allocation is not None and (alone or any(map(self._is_alone, job.needs))):
                usable &= ~job.allocation.nodes
        return usable

    def _is_alone(self, need: Need) -> bool:
        """Whether a job shares its nodes with no other."""
        return need.share == 1 if self._conf.select_type == LINEAR else need.whole


def _keeps_out(job: JobRecord) -> bool:
    """Whether a `job` that runs has its nodes for itself, though others could share them."""
    return job.state == record.RUNNING and _owns(job.need)


def _owns(need: Need) -> bool:
    """Whether a job takes whole nodes, and its partition does not force it to share them."""
    partition = need.partition
    return need.whole and not (partition.over_subscribe == FORCE and partition.max_share > 1)


def sum_of(jobs: Sequence[JobRecord]) -> Mask:
    """The nodes of some jobs."""
    nodes = 0
    for job in jobs:
        nodes |= nodes_of(job)
    return nodes


class Reservations:
    """Which nodes reservations leave to a job, and which starts are planned.

    reserved: the advance reservations. options: SchedulerParameters. planned: the jobs for which
    the last backfill cycle made a reservation. keeps_plans: whether somebody looks at them.
    """

    def __init__(
        self,
        reserved: Reserved,
        nodes: Nodes,
        options: SchedulerParameters,
        *,
        keeps_plans: bool,
    ) -> None:
        self._reserved = reserved
        self._nodes = nodes
        self._options = options
        self.keeps_plans = keeps_plans
        self.planned: list[JobRecord] = []

    # --- advance reservations ---------------------------------------------------------------

    def allowed(self, job: JobRecord, need: Need, now: int) -> Mask:
        """Return the nodes that no advance reservation keeps from a `job` with a `need` `now`."""
        if self._reserved.empty:
            return self._nodes.up
        asker = self._asker(job, need)
        return self._reserved.allowed(asker, now, need.planned_s, self._nodes.up).nodes

    def from_date(
        self, job: JobRecord, need: Need, date: float, lasts: float
    ) -> tuple[float, Mask, int | None] | None:
        """Return the first date that advance reservations allow, the nodes, and when to look again.

        job, need: what starts at `date` or later, and lasts so long, s. None: they allow no date.
        """
        if self._reserved.empty:
            return date, self._nodes.up, None
        return self._reserved.from_date(self._asker(job, need), date, lasts, self._nodes.up)

    def _asker(self, job: JobRecord, need: Need) -> Asker:
        partition = self._nodes.partitions[need.partition.name]
        return Asker(job.reservation, partition, need.required)

    def purge(self, jobs: JobList, queue: Queue, events: Events, now: int) -> None:
        """Forget, at `now`, reservations that are over and that no job of `jobs` uses.

        A job of the `queue` that waits for one of them waits for ever; `events` notes the change.
        """
        used = [job.reservation for _, _, job in jobs.running if job.reservation is not None]
        gone = self._reserved.purge(now, used)
        if gone:
            events.change_at(now)
        for job in [job for job in queue.jobs if job.reservation in gone]:
            queue.give_up(job, RESERVATION_DELETED)

    # --- planned starts ---------------------------------------------------------------------

    def may_pass(self, job: JobRecord, which: int, now: int) -> bool:
        """Whether others may pass a `job` in a partition `now`.

        If so, it gets no reservation and blocks no other. which: the place of the partition.
        """
        options = self._options
        if job.priorities[which] < options.bf_min_prio_reserve:
            return True
        age = now - (job.submit_s if job.eligible_s is None else job.eligible_s)
        return age < options.bf_min_age_reserve_s

    def plan(self, job: JobRecord, date: float, nodes: Mask) -> None:
        """Plan that a `job` starts at a `date`, Unix s, on some `nodes`."""
        job.plan(date, nodes)
        self.planned.append(job)

    def forget_plans(self) -> None:
        """Forget all planned starts."""
        for job in self.planned:
            job.forget_plan()
        self.planned.clear()
