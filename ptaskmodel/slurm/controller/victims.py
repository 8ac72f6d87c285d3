"""Victims: the jobs that make way for others, and what is left without them.

`Allocations` has them. Backfill plans as if all jobs were gone that a job may preempt.
Source: slurm.conf of Slurm 22.05, PreemptMode.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from math import inf

from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.slurm.conf.facts import SUSPEND, Conf, Nodes
from ptaskmodel.slurm.controller.job_list import JobList
from ptaskmodel.slurm.controller.preemption import Preemptable, Preemption
from ptaskmodel.slurm.controller.rules import Rules
from ptaskmodel.slurm.jobs.needs import Need
from ptaskmodel.slurm.jobs.record import RUNNING, Allocation, Ends, JobRecord
from ptaskmodel.slurm.select.consumable import Consumable
from ptaskmodel.slurm.select.plugin import Answers, Select


class Victims:
    """The jobs that others preempt.

    conf, nodes: the cluster. rules, preemption: which jobs may preempt which. jobs: those that run.
    select, answers: what they use.
    """

    def __init__(
        self,
        conf: Conf,
        nodes: Nodes,
        rules: Rules,
        preemption: Preemption,
        jobs: JobList,
        select: Select,
        answers: Answers,
    ) -> None:
        self._patience_s = conf.kill_wait_s + conf.message_timeout_s
        self._nodes, self._rules, self._preemption = nodes, rules, preemption
        self._jobs, self._select, self._answers = jobs, select, answers
        self.tasks: int | None = None
        # The jobs that wait for the nodes of victims, and since when.
        self._preempting: dict[JobRecord, int] = {}
        self._doomed: list[tuple[JobRecord, str]] = []
        self._conf = conf
        # Which jobs those of a partition and a kind may preempt. If none starts or ends, no other
        # joins them until some second.
        self._candidates: dict[tuple[str, Hashable], tuple[list[JobRecord], float]] = {}
        # What is used without such jobs, and the ends of the others.
        self._emptied: dict[tuple[int, int], tuple[Sequence[JobRecord], Answers, Ends]] = {}
        # Until when what was found of victims since `trust_dates` stays if no job starts or ends.
        self.sure_until_s = inf
        # Those that can be preempted at all.
        self._in_order: list[Preemptable] | None = None
        self._version = -1

    def candidates(self, job: JobRecord, need: Need, now: int) -> list[JobRecord]:
        """Return all jobs that a `job` with a `need` may preempt `now`, in the order of trial."""
        if not self._preemption.active:
            return []
        self._see_changes()
        preemption = self._preemption
        key = need.partition.name, preemption.kind_of(job)
        found, until_s = self._candidates.get(key, ([], -inf))
        if now >= until_s:
            if self._in_order is None:
                self._in_order = preemption.in_order(job for _, _, job in self._jobs.running)
            among = self._nodes.partitions[need.partition.name]
            found, until_s = preemption.candidates(job, need, among, self._in_order, now)
            self._candidates[key] = found, until_s
        self.sure_until_s = min(self.sure_until_s, until_s)
        return found

    def trust_dates(self) -> None:
        """Set `sure_until_s` to never, until a date is found at which other victims are there."""
        self.sure_until_s = inf

    def _see_changes(self) -> None:
        """Forget what is known of jobs that ran before."""
        if self._version != self._answers.version:
            self._version = self._answers.version
            self._candidates.clear()
            self._emptied.clear()
            self._in_order = None

    def without(self, victims: Sequence[JobRecord], ends: Ends) -> tuple[Answers, Ends]:
        """Return where jobs fit when `victims` are gone, and the ends of the others.

        They are suspended if PreemptMode says so. victims: a list that is kept. ends: of all jobs
        that run, earliest first.
        """
        self._see_changes()
        key = id(victims), len(ends)
        if key not in self._emptied:
            gone = set(victims)
            answers = Answers(self._trial(victims, ends), self._conf)
            self._emptied[key] = victims, answers, [end for end in ends if end[2] not in gone]
        return self._emptied[key][1:]

    def _trial(self, victims: Sequence[JobRecord], ends: Ends) -> Select:
        select, stay = self._select, [self._preemption.mode_of(v) == SUSPEND for v in victims]
        if isinstance(select, Consumable) and not any(stay):
            return select.without(victims, ends)
        trial: Select = select.copy()
        for victim, stays in zip(victims, stay, strict=True):
            if stays:
                trial.lift(victim)
            else:
                trial.remove(victim, running=victim.state == RUNNING)
        return trial

    def preempt(self, job: JobRecord, need: Need, within: Mask, now: int) -> Allocation | None:
        """Return what a `job` gets `now` over victims that are suspended; None: it waits.

        It waits until those that end have gone. need: what it needs of the nodes `within`.
        """
        since = self._preempting.get(job, -inf)
        if now - since < self._patience_s and not (self.tasks and since == now):
            self.sure_until_s = min(self.sure_until_s, since + self._patience_s)
            return None
        if not (candidates := self.candidates(job, need, now)):
            return None
        ask = partial(self._preemption.victims, self._select, need, within, candidates)
        if (found := self._answers.victims(need, within, candidates, ask)) is None:
            return None
        allocation, victims = found
        if self._rules.exceeds(job, need.partition, allocation) is not None:
            return allocation  # nobody makes way for who may not start
        killed = [v for v in victims if self._preemption.mode_of(v) != SUSPEND]
        for victim in victims:
            if victim not in killed:
                victim.be_victim()
        if not killed:
            return allocation
        self._preempting[job], self.sure_until_s = now, -inf
        self.tasks = None if self.tasks is None else self.tasks + 1
        for victim in killed:
            if not self._spares(victim, now):
                self._doomed.append((victim, self._preemption.mode_of(victim)))
        return None

    def _spares(self, victim: JobRecord, now: int) -> bool:
        """Whether a `victim` goes on until its GraceTime is over, counted from the first time."""
        if victim.victim:
            return now < victim.end_s
        grace_s = self._preemption.grace_s(victim)
        if grace_s:
            self._jobs.stop(victim)
            victim.be_victim(now + grace_s)
            self._jobs.run(victim)
            self._answers.forget()
        return grace_s > 0

    def count_tasks(self, tasks: int | None) -> None:
        """Set how many `tasks` of one array have preempted others in this cycle; None: no array."""
        self.tasks = tasks

    def started(self, job: JobRecord) -> None:
        """Note that a `job` starts: it waits for no victim."""
        self._preempting.pop(job, None)

    def take_doomed(self) -> list[tuple[JobRecord, str]]:
        """Return the jobs that must end, each with its PreemptMode, and forget them."""
        doomed, self._doomed = self._doomed, []
        return doomed
