"""Allocations: which jobs hold which nodes, and where another job fits now or later."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf

from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.slurm.conf.facts import CONS_TRES, EXCLUSIVE, LINEAR, SUSPEND, Conf, Nodes
from ptaskmodel.slurm.controller.job_list import JobList
from ptaskmodel.slurm.controller.rules import Rules
from ptaskmodel.slurm.controller.running import Cleaning
from ptaskmodel.slurm.controller.victims import Victims
from ptaskmodel.slurm.jobs import record
from ptaskmodel.slurm.jobs.needs import Need
from ptaskmodel.slurm.jobs.record import Allocation, Ends, JobRecord
from ptaskmodel.slurm.queue.preemption import Preemption
from ptaskmodel.slurm.select.constraints import by_constraint, first_by_constraint
from ptaskmodel.slurm.select.consumable import Refuses
from ptaskmodel.slurm.select.offers import GPU
from ptaskmodel.slurm.select.plugin import Answers, Select, date_of, expected_end, select_of


class Allocations:
    """The nodes that jobs hold, through the select plugin.

    conf, nodes, rules: of the cluster. preemption: which jobs may preempt which. jobs: those that
    run. select: what jobs use. answers: where jobs fit, remembered until something changes.
    cleaning: jobs that are over and whose nodes are not clean. victims: jobs that others preempt.
    """

    def __init__(
        self, conf: Conf, nodes: Nodes, rules: Rules, preemption: Preemption, jobs: JobList
    ) -> None:
        self._conf = conf
        self._nodes = nodes
        self._rules = rules
        self._preemption = preemption
        self._jobs = jobs
        self.select = select_of(conf, nodes)
        gpus = any(gres.name == GPU for line in conf.nodes for gres in line.gres)
        if gpus and conf.select_type == CONS_TRES:
            self.select.follow_favours(bytearray(len(nodes)))
        self.answers = Answers(self.select, conf)
        self.cleaning = Cleaning()
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
        refuses = self.refuses(job, need, now)
        found = by_constraint(need, within, lambda n, w: self.answers.place(n, w, refuses))
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
        select: Select | None = None,
    ) -> tuple[float, Allocation] | None:
        """Return when and where a `job` with a `need` fits if others end at their limits, `ends`.

        within: the nodes to look at. now: Unix s. select: what jobs use, if not what they do now.
        """
        refuses = self.refuses(job, need, now)

        def ask(need: Need, within: Mask) -> tuple[float, Allocation] | None:
            if select is None:
                return self.answers.end(need, within, ends, refuses)
            return expected_end(select, self._conf, need, within, ends, refuses)

        found = first_by_constraint(need, within, ask)
        if found is None:
            return None
        end, allocation = found
        self._rules.tested(job, allocation)
        return date_of(end, self.select, self._conf, need.partition, now), allocation

    def find(
        self, job: JobRecord, which: int, within: Mask, now: int, *, planned: bool = False
    ) -> Allocation | None:
        """Return where a `job` can start `now`, over victims if that is needed and allowed.

        which: the place of its partition. within: the nodes to look at. planned: whether these are
        the nodes where backfill has found room.
        """
        need = job.needs[which]
        everywhere = self._nodes.partitions[need.partition.name]
        self.select.forget_favours(within if planned else everywhere)
        if need.partition.over_subscribe == EXCLUSIVE and not all(n.whole for n in job.needs):
            # Slurm notes it of the job, which is exclusive in its other partitions from then on.
            job.set_needs(self._rules.needs(job, whole=True))
            need = job.needs[which]
        within &= ~self.of_others(job, need)
        refuses, limits = self.refuses(job, need, now), self._rules.limits
        counted = limits.nodes_counted(job, need.partition) if limits.enforced else 0

        def ask(need: Need, within: Mask) -> Allocation | None:
            if counted:
                return self.select.start(need, within, refuses=refuses, counted=counted)
            return self.answers.start(need, within, refuses)

        found = by_constraint(need, within, ask)
        if found is not None:
            self._rules.tested(job, found)
        if found is None:
            self._rules.note_gpus(need, self.select)
        if found is None and self._preemption.active:
            found = by_constraint(need, within, lambda n, w: self.victims.preempt(job, n, w, now))
        return found

    def of_others(self, job: JobRecord, need: Need) -> Mask:
        """Return the nodes of other users that a `job` with a `need` must not share.

        Either it, or a job there, shares nodes with jobs of its own user alone.
        """
        theirs = 0
        if not self._rules.owning:
            return theirs
        there = [other for _, _, other in self._jobs.running]
        for other in there + self.cleaning.since(-inf):
            allocation = other.allocation
            if allocation is None or other.request.user == job.request.user:
                continue
            if need.owns or other.need.owns:
                theirs |= allocation.nodes
        return theirs

    def without(self, victims: Sequence[JobRecord]) -> Select:
        """Return what jobs use when `victims` are gone, or suspended if PreemptMode says so."""
        trial: Select = self.select.copy()
        for victim in victims:
            if self._preemption.mode_of(victim) == SUSPEND:
                trial.lift(victim)
            else:
                trial.remove(victim, running=victim.state == record.RUNNING)
        return trial

    def refuses(self, job: JobRecord, need: Need, now: int) -> Refuses | None:
        """Return which nodes a `job` with a `need` refuses `now`: those below too many switches."""
        tree = self.select.tree
        if need.switches is None or tree is None or now - job.submit_s >= need.switch_wait_s:
            return None
        return partial(tree.too_spread, need)

    def may_wait_for(self, need: Need, left: Mask) -> bool:
        """Whether a job whose `need` does not fit on the nodes `left` waits for them.

        If so, it stops others. It waits if the nodes would be enough without the other jobs, or if
        some of them are of no use now.
        """
        return self._rules.fits(need, left) or bool(need.nodes & left & ~self._of_use(need))

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
