"""Victims: which running jobs a job preempts, and which of them must end.

`Allocations` calls it if no nodes are free; the controller ends the victims that must end.
Source: slurm.conf of Slurm 22.05, PreemptMode.
"""

from __future__ import annotations

from collections.abc import Hashable

from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.slurm.conf.facts import SUSPEND, Conf, Nodes
from ptaskmodel.slurm.controller.job_list import JobList
from ptaskmodel.slurm.controller.rules import Rules
from ptaskmodel.slurm.jobs.needs import Need
from ptaskmodel.slurm.jobs.record import Allocation, JobRecord
from ptaskmodel.slurm.queue.preemption import Preemption
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
        self._nodes = nodes
        self._rules = rules
        self._preemption = preemption
        self._jobs = jobs
        self._select = select
        self._answers = answers
        # The jobs that wait for the nodes of victims, and since when.
        self._preempting: dict[JobRecord, int] = {}
        self._doomed: list[tuple[JobRecord, str]] = []
        # Which jobs those of a partition and a kind may preempt, until one starts or ends.
        self._candidates: dict[tuple[str, Hashable], list[JobRecord]] = {}
        self._known_at: tuple[int, int] | None = None

    def candidates(self, job: JobRecord, need: Need, now: int) -> list[JobRecord]:
        """Return all jobs that a `job` with a `need` may preempt `now`, in the order of trial."""
        if not self._preemption.active:
            return []
        if self._known_at != (self._answers.version, now):
            self._known_at = self._answers.version, now
            self._candidates.clear()
        key = need.partition.name, self._preemption.kind_of(job)
        if key not in self._candidates:
            live = (job for _, _, job in self._jobs.running)
            among = self._nodes.partitions[need.partition.name]
            self._candidates[key] = self._preemption.candidates(job, need, among, live, now)
        return self._candidates[key]

    def preempt(self, job: JobRecord, need: Need, within: Mask, now: int) -> Allocation | None:
        """Return what a `job` gets `now` over victims that are suspended; None: it waits.

        It waits until those that end have gone. need: what it needs of the nodes `within`.
        """
        since = self._preempting.get(job)
        if since is not None and now - since < self._patience_s:
            return None
        candidates = self.candidates(job, need, now)
        if not candidates:
            return None
        found = self._preemption.victims(self._select, need, within, candidates)
        if found is None:
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
        self._preempting[job] = now
        for victim in killed:
            self._doomed.append((victim, self._preemption.mode_of(victim)))
        return None

    def started(self, job: JobRecord) -> None:
        """Note that a `job` starts: it waits for no victim."""
        self._preempting.pop(job, None)

    def take_doomed(self) -> list[tuple[JobRecord, str]]:
        """Return the jobs that must end, each with its PreemptMode, and forget them."""
        if not self._doomed:
            return []
        doomed, self._doomed = self._doomed, []
        return doomed
