"""The controller: its parts, and the actions that need several of them.

The event loop calls it; the schedulers query its parts and start jobs through it. Each part changes
only its own fields.
"""

from __future__ import annotations

from ptaskmodel.slurm.conf.facts import REQUEUE, Conf, Nodes
from ptaskmodel.slurm.conf.phases import Phases
from ptaskmodel.slurm.controller.allocations import Allocations, Reservations
from ptaskmodel.slurm.controller.job_list import Events, JobList, Note, Running
from ptaskmodel.slurm.controller.rules import Rules
from ptaskmodel.slurm.controller.start_and_end import Runs, Submission, Suspension
from ptaskmodel.slurm.jobs import record
from ptaskmodel.slurm.jobs.record import JobRecord, outstaying, over_limit
from ptaskmodel.slurm.queue.preemption import Precedence, Preemption
from ptaskmodel.slurm.queue.queue import Queue


class Controller:
    """Jobs, nodes and the rules of a configuration.

    conf, nodes, phases, rules: of the cluster. running: the execution. note: called for each event
    of a job. keeps_plans: whether somebody looks at planned starts.

    Its parts: events, jobs (their list), queue, preemption (which jobs may preempt which),
    allocations, reservations, submission, runs (start and end of jobs), suspension.
    """

    def __init__(
        self,
        conf: Conf,
        nodes: Nodes,
        phases: Phases,
        running: Running,
        rules: Rules,
        note: Note | None = None,
        *,
        keeps_plans: bool = False,
    ) -> None:
        self.conf = conf
        self.nodes = nodes
        self.phases = phases
        self.rules = rules
        self.events = events = Events(phases, note)
        self.jobs = jobs = JobList(conf)
        self.preemption = preemption = Preemption(conf, rules.accounts)
        self.queue = queue = Queue(
            rules.dependencies.state,
            rules.eligible,
            events.change_at,
            rules.arrays.is_full,
            Precedence(preemption, jobs.place).order,
        )
        self.allocations = allocations = Allocations(conf, nodes, rules, preemption, jobs)
        self.reservations = Reservations(
            rules.reserved, nodes, conf.scheduler, keeps_plans=keeps_plans
        )
        self.submission = submission = Submission(conf, rules, events, jobs, queue, allocations)
        self.suspension = suspension = Suspension(conf, nodes, events, jobs, allocations, running)
        self.runs = Runs(
            *(conf, phases, rules, events, jobs, queue, allocations, running),
            *(submission, suspension),
        )

    @property
    def unfinished(self) -> bool:
        """Whether some job waits or runs."""
        return bool(self.queue.jobs or self.busy)

    @property
    def over(self) -> int:
        """How many jobs are over."""
        under_way = len(self.jobs.running) + len(self.allocations.cleaning)
        return max(len(self.jobs.all) - len(self.queue.jobs) - under_way, 0)

    @property
    def busy(self) -> bool:
        """Whether some job holds nodes."""
        return bool(self.jobs.running or self.allocations.cleaning)

    def check_limits(self, date: float) -> None:
        """Kill jobs that exceed their limits at a `date`, and purge reservations."""
        now, running = self.events.second(date), self.jobs.running
        over = over_limit(self.conf, running, now)
        if not self.rules.reserved.empty:
            over += outstaying(self.conf, running, now, over)
        spends = self.rules.limits.kills
        live = (job for _, _, job in running if job.state == record.RUNNING)
        for job in sorted(live if spends else over, key=lambda job: job.listed):
            if job in over or self.rules.must_end(job, now):
                state = record.PREEMPTED if job.victim else record.TIMEOUT
                self.runs.kill(job, date, state)
        self.reservations.purge(self.jobs, self.queue, self.events, now)

    def end_victims(self, date: float) -> bool:
        """Kill at a `date` the victims that preemption has named; whether there were any."""
        doomed = self.allocations.victims.take_doomed()
        for job, mode in doomed:
            if job.state in record.LIVE:
                self.runs.kill(job, date, record.PREEMPTED, requeued=mode == REQUEUE)
        return bool(doomed)

    def purge(self, date: float) -> None:
        """Forget jobs that ended long before a `date`, which counts as a change."""
        gone = self.jobs.forget(self.events.second(date))
        for job in gone:
            self.rules.dependencies.forget(job)
        if gone:
            self.events.change(date)

    def refresh(self, date: float) -> None:
        """Compute all priorities anew at a `date`, and order the queue by them."""
        changed = self.rules.refresh(self.events.second(date), self.jobs.heads)
        if "CALCULATE_RUNNING" in self.conf.priority.flags:  # even of jobs that are over
            changed |= bool(self.jobs.running or self.jobs.ended)
        if len(self.queue):
            self.queue.sort()
        if changed:
            self.events.change(date)

    def command(self, job: JobRecord, action: str, date: float) -> None:
        """Do to a `job` what a user asks for at a `date`; action: such as "hold"."""
        if action == "cancel":
            self._cancel(job, date)
        elif action in ("hold", "release"):
            self.submission.hold(job, action == "hold", date)
        elif action == "suspend" and job.state == record.RUNNING:
            self.suspension.suspend(job, date)
        elif action == "resume" and job.state == record.SUSPENDED:
            self.suspension.resume(job, date)
        elif action == "requeue" and job.state in record.LIVE:
            self.runs.kill(job, date, record.CANCELLED, requeued=True)

    def _cancel(self, job: JobRecord, date: float) -> None:
        if job.state == record.PENDING:
            self.submission.cancel(job, date)
        elif job.state in record.LIVE:
            self.runs.kill(job, date, record.CANCELLED)
        else:
            self.events.change(date)  # whoever asks for a job that is over
