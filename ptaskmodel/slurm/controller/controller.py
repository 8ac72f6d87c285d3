"""The controller: what the schedulers may ask about jobs and nodes, and whom they preempt."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial

from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.slurm.conf.facts import (
    EXCLUSIVE,
    FORCE,
    LINEAR,
    NEVER,
    REQUEUE,
    SUSPEND,
    YES,
    Conf,
    Nodes,
)
from ptaskmodel.slurm.conf.phases import Phases
from ptaskmodel.slurm.conf.reservations import Asker
from ptaskmodel.slurm.controller.job_life import Lives, Note
from ptaskmodel.slurm.controller.rules import Rules
from ptaskmodel.slurm.controller.running import Running
from ptaskmodel.slurm.jobs import record
from ptaskmodel.slurm.jobs.needs import Need
from ptaskmodel.slurm.jobs.record import Allocation, Ends, JobRecord
from ptaskmodel.slurm.select.consumable import Refuses
from ptaskmodel.slurm.select.plugin import Select, date_of, expected_end


def is_steady(conf: Conf, nodes: Nodes) -> bool:
    """Whether nothing but the number of free nodes says where jobs start, in one partition."""
    options = conf.scheduler
    return (
        conf.select_type == LINEAR
        and nodes.alike
        and len(nodes.sets) == len(conf.partitions) == 1
        and not conf.switches
        and not conf.gang
        and conf.preempt_type == NEVER
        and not conf.licenses
        and not conf.complete_wait_s
        and conf.partitions[0].state == "UP"
        and conf.partitions[0].over_subscribe not in (YES, FORCE)
        and not (options.partition_job_depth or options.sched_max_job_start)
        and not (options.bf_min_age_reserve_s or options.bf_min_prio_reserve)
    )


class Controller(Lives):
    """Jobs, nodes and the rules of a configuration; the loop says when what happens.

    planned: the jobs for which the last backfill cycle made a reservation.
    """

    def __init__(
        self,
        conf: Conf,
        nodes: Nodes,
        phases: Phases,
        running: Running,
        rules: Rules,
        note: Note | None = None,
    ) -> None:
        super().__init__(conf, nodes, phases, running, rules, note)
        self.planned: list[JobRecord] = []
        # Whether somebody looks at them.
        self.keeps_plans = False
        # Whether neither advance reservations nor limits of accounts matter.
        self.unreserved = not rules.limits.enforced and rules.reserved.empty
        # Whether a job that found no nodes finds none until others are idle; the first in the queue
        # of whom that is known, and the nodes that were idle.
        self.steady = self.unreserved and is_steady(conf, nodes)
        self.head: tuple[JobRecord, int] | None = None
        self._doomed: list[tuple[JobRecord, str]] = []
        # Whom jobs of a partition and a kind may preempt, as long as nobody starts or ends.
        self._candidates: dict[tuple[str, Hashable], list[JobRecord]] = {}
        self._known_at: tuple[int, int] | None = None

    # --- what the schedulers ask ------------------------------------------------------------

    def forbidden(self, job: JobRecord, which: int) -> str | None:
        """Why a job may not start now whatever nodes are free."""
        return self.rules.blocks(job, job.partitions[which])

    def exceeds(
        self, job: JobRecord, which: int, found: Allocation | None, *, planned: bool = False
    ) -> str | None:
        """The limit that keeps a job from what it would get, if there is one. planned: later."""
        return self.rules.exceeds(job, job.partitions[which], found, planned=planned)

    def may_pass(self, job: JobRecord, which: int, now: int) -> bool:
        """Whether others may pass a job: it gets no reservation and blocks nobody."""
        options = self.conf.scheduler
        if job.priorities[which] < options.bf_min_prio_reserve:
            return True
        age = now - (job.submit_s if job.eligible_s is None else job.eligible_s)
        return age < options.bf_min_age_reserve_s

    def allowed(self, job: JobRecord, need: Need, now: int) -> Mask:
        """The nodes that no advance reservation keeps from a job now."""
        reserved = self.rules.reserved
        if reserved.empty:
            return self.nodes.up
        asker = self._asker(job, need)
        return reserved.allowed(asker, now, need.planned_s, self.nodes.up).nodes

    def from_date(
        self, job: JobRecord, need: Need, date: float, lasts: float
    ) -> tuple[float, Mask, int | None] | None:
        """The first date that advance reservations allow, the nodes, and when to look again.

        None: they allow none.
        """
        reserved = self.rules.reserved
        if reserved.empty:
            return date, self.nodes.up, None
        return reserved.from_date(self._asker(job, need), date, lasts, self.nodes.up)

    def _asker(self, job: JobRecord, need: Need) -> Asker:
        partition = self.nodes.partitions[need.partition.name]
        return Asker(job.reservation, partition, need.required)

    def may_wait_for(self, need: Need, left: Mask) -> bool:
        """Whether who does not fit on the nodes left to him waits for them, and stops others.

        So it is if he could have them all but for others, or if some of them are of no use now.
        """
        return self.rules.fits(need, left) or bool(need.nodes & left & ~self._of_use(need))

    def _of_use(self, need: Need) -> Mask:
        """The nodes that may be tried at all; with preemption whoever is on them."""
        usable = self.nodes.up & ~self.cleaning.nodes
        if self.preemption.active:
            return usable
        alone = self._is_alone(need)
        for _, _, job in self.running:
            if job.allocation is not None and (alone or any(map(self._is_alone, job.needs))):
                usable &= ~job.allocation.nodes
        return usable

    def _is_alone(self, need: Need) -> bool:
        """Whether a job shares its nodes with nobody."""
        return need.share == 1 if self.conf.select_type == LINEAR else need.whole

    def predict(
        self,
        job: JobRecord,
        need: Need,
        within: Mask,
        now: int,
        ends: Ends,
        select: Select | None = None,
    ) -> tuple[float, Allocation] | None:
        """When and where a job fits if the others end at their limits.

        select: what is used by whom, if not what is now.
        """
        refuses = self.refuses(job, need, now)
        if select is None:
            found = self.answers.end(need, within, ends, refuses)
        else:
            found = expected_end(select, self.conf, need, within, ends, refuses)
        if found is None:
            return None
        end, allocation = found
        self.rules.tested(job, allocation)
        return date_of(end, self.select, self.conf, need.partition, now), allocation

    def place(self, job: JobRecord, need: Need, within: Mask, now: int) -> Allocation | None:
        """Where a job fits now."""
        found = self.answers.place(need, within, self.refuses(job, need, now))
        if found is not None:
            self.rules.tested(job, found)
        return found

    def find(
        self, job: JobRecord, which: int, within: Mask, now: int, *, planned: bool = False
    ) -> Allocation | None:
        """Where a job can start now; victims are preempted if that is needed and allowed.

        planned: these are the nodes where backfill has found room.
        """
        need = job.needs[which]
        everywhere = self.nodes.partitions[need.partition.name]
        self.select.forget_favours(within if planned else everywhere)
        if need.partition.over_subscribe == EXCLUSIVE and not all(n.whole for n in job.needs):
            # Slurm notes it of the job, which is exclusive in its other partitions from then on.
            job.set_needs(self.rules.needs(job, whole=True))
            need = job.needs[which]
        refuses, limits = self.refuses(job, need, now), self.rules.limits
        counted = limits.nodes_counted(job, need.partition) if limits.enforced else 0
        if counted:
            found = self.select.start(need, within, refuses=refuses, counted=counted)
        else:
            found = self.answers.start(need, within, refuses)
        if found is not None:
            self.rules.tested(job, found)
        if found is None:
            self.rules.note_gpus(need, self.select)
        if found is None and self.preemption.active:
            found = self._preempt(job, need, within, now)
        return found

    def may_preempt(self, job: JobRecord, need: Need, now: int) -> list[JobRecord]:
        """All whom a job may preempt, in the order in which they are considered."""
        if not self.preemption.active:
            return []
        if self._known_at != (self.answers.version, now):
            self._known_at = self.answers.version, now
            self._candidates.clear()
        key = need.partition.name, self.preemption.kind_of(job)
        if key not in self._candidates:
            live = (job for _, _, job in self.running)
            among = self.nodes.partitions[need.partition.name]
            self._candidates[key] = self.preemption.candidates(job, need, among, live, now)
        return self._candidates[key]

    def without(self, victims: Sequence[JobRecord]) -> Select:
        """What is used when some jobs are gone, or suspended if that is what happens to them."""
        trial: Select = self.select.copy()
        for victim in victims:
            if self.preemption.mode_of(victim) == SUSPEND:
                trial.lift(victim)
            else:
                trial.remove(victim, running=victim.state == record.RUNNING)
        return trial

    def refuses(self, job: JobRecord, need: Need, now: int) -> Refuses | None:
        """Which nodes a job does not take yet, as they are below too many switches."""
        tree = self.select.tree
        if need.switches is None or tree is None or now - job.submit_s >= need.switch_wait_s:
            return None
        return partial(tree.too_spread, need)

    def _victims(
        self, job: JobRecord, need: Need, within: Mask, now: int
    ) -> tuple[Allocation, list[JobRecord]] | None:
        candidates = self.may_preempt(job, need, now)
        if not candidates:
            return None
        return self.preemption.victims(self.select, need, within, candidates)

    def _preempt(self, job: JobRecord, need: Need, within: Mask, now: int) -> Allocation | None:
        """Where a job can start over suspended victims; those to be killed are, and it waits."""
        since = self.preempting.get(job)
        patience = self.conf.kill_wait_s + self.conf.message_timeout_s
        if since is not None and now - since < patience:
            return None
        found = self._victims(job, need, within, now)
        if found is None:
            return None
        allocation, victims = found
        if self.rules.exceeds(job, need.partition, allocation) is not None:
            return allocation  # nobody makes way for who may not start
        killed = [v for v in victims if self.preemption.mode_of(v) != SUSPEND]
        for victim in victims:
            if victim not in killed:
                victim.be_victim()
        if not killed:
            return allocation
        self.preempting[job] = now
        for victim in killed:
            self._doomed.append((victim, self.preemption.mode_of(victim)))
        return None

    def carry_out(self, date: float) -> bool:
        """Kill the victims that have been named; whether there are any."""
        if not self._doomed:
            return False
        doomed, self._doomed = self._doomed, []
        for job, mode in doomed:
            if job.state in record.LIVE:
                self.kill(job, date, record.PREEMPTED, requeued=mode == REQUEUE)
        return True
