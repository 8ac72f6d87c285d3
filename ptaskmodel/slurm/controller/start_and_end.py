"""Submission, start, suspension and end of jobs: how they arrive, take nodes, stop and leave.

`Submission` also requeues and holds jobs. A command, the gang scheduler or a preemptor suspends
them. The nodes of a job that ended are clean later.
Source: Slurm 22.05, Gang Scheduling.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from ptaskmodel.batch.jobs.execution import Attempt, Ended
from ptaskmodel.slurm.conf.facts import Conf, Nodes, Partition
from ptaskmodel.slurm.conf.phases import AT_ONE_DATE_S, Phases
from ptaskmodel.slurm.controller.admission import (
    CONFIG,
    DOWN,
    Deadlines,
    is_found_late,
)
from ptaskmodel.slurm.controller.allocations import Allocations
from ptaskmodel.slurm.controller.job_list import (
    EPILOG_S,
    KILL_S,
    Completing,
    Events,
    JobList,
    Running,
)
from ptaskmodel.slurm.controller.preemption import Gang
from ptaskmodel.slurm.controller.queue import BEGIN, DEPENDENCY, Queue
from ptaskmodel.slurm.controller.rules import WITH_RECORD, Rules
from ptaskmodel.slurm.jobs import record
from ptaskmodel.slurm.jobs.needs import YEAR_S
from ptaskmodel.slurm.jobs.record import Allocation, JobRecord, over_time_s
from ptaskmodel.slurm.jobs.request import JobRequest

# How long a job that is requeued is not eligible: its credential lives on.
REQUEUED_S = 121


class Submission:
    """Puts jobs in the queue, and takes those out that never start.

    conf, rules: of the cluster. events, jobs, queue: what each change is noted in. allocations:
    what jobs use.
    """

    def __init__(
        self,
        conf: Conf,
        rules: Rules,
        events: Events,
        jobs: JobList,
        queue: Queue,
        allocations: Allocations,
    ) -> None:
        self._max_job_count = conf.max_job_count
        self._rules = rules
        self._events = events
        self._jobs = jobs
        self._queue = queue
        self._allocations = allocations
        self._deadlines = Deadlines(events.second)
        self._partitions = {p.name: p for p in conf.partitions}
        self._default = (conf.home_partition,)

    def is_full(self, more: int) -> bool:
        """Whether so many `more` jobs would be too many to keep records of."""
        jobs = self._jobs
        kept = len(self._queue.jobs) + len(jobs.running) + jobs.ended
        return kept + len(self._allocations.cleaning) + more >= self._max_job_count

    def submit(self, request: JobRequest, date: float, reason: str | None = None) -> JobRecord:
        """Take in or refuse the job of a `request`, which arrives at a `date`.

        reason: why it is refused, whatever it asks for.
        """
        rules, now = self._rules, self._events.second(date)
        partitions = self._partitions_of(request.partitions)
        request, needs = rules.taken_in(request, partitions)
        job = self._jobs.add(request, now, partitions)
        if request.array is not None:
            job.stand_with(rules.first_of_array(job))
        job.set_needs(needs)
        if request.begin_s is not None:
            job.begin_after(max(now, self._events.second(request.begin_s)))
        deadline_s = request.deadline_s
        if deadline_s is not None and (
            self._events.second(deadline_s) < now or deadline_s < (request.begin_s or 0.0)
        ):
            reason = reason or "InvalidTimeLimit"
        reason = reason or rules.refuses(job, now)
        limited = None
        if reason is None and rules.limits.enforced:
            job.set_needs(rules.within_limits(job))
            limited = rules.limited(job)
        late = reason is not None and is_found_late(job, reason)
        possible = reason is not None or limited is not None or rules.could_start(job, now)
        if not possible and len(job.partitions) == 1 and job.reservation is None:
            # Without nodes in use the others may suffice, as they no longer follow each other.
            possible = self._allocations.has_nodes_for(job)
        if not possible:
            late = not (job.needs[0].portions and self._allocations.lacks_portion(job))
        if late:
            # It is in the list of jobs when that is found, and stays there for a while; others
            # stand behind the priority that it was given.
            rules.waits(job, now)
            rules.priorities.gone(job)
            reason = reason or "BadConstraints"
            self._jobs.end(job, now)
            self._events.change(date)
        if reason is not None:
            if reason in WITH_RECORD:  # which is removed again
                self._events.change(date)
            job.leave(record.REFUSED, now, reason)
            return job
        rules.submitted(job, now)
        rules.waits(job, now)
        if limited is None:
            rules.tested_at_submit(job, self._allocations.select)
            self._allocations.tested_at_submit(job)
        self._queue.add(job)
        if limited is not None:
            self._queue.waits_because(job, limited)
        self._queue.expect(job, now)
        whole = [rules.waits_for(job, each, whole=True) for each in job.partitions]
        if any(whole):
            least = tuple([rules.waits_for(job, each) for each in job.partitions])
            self._queue.bar(job, least, tuple(whole))
            if len(whole) == 1 and not job.held:
                # Why its only partition does not take it shows when the queue is built.
                self._queue.waits_because(job, DOWN if whole[0] == DOWN else CONFIG)
        if job.reason in (BEGIN, DEPENDENCY) and not self._allocations.has_nodes_for(job):
            self._queue.waits_because(job, "Resources")  # as it was tried, until that is found anew
        self._deadlines.add(job)
        self._events.ask_for_pass()
        self._events.change(date)
        self._events.tell(date, "submit", job)
        return job

    def _partitions_of(self, names: Sequence[str]) -> tuple[Partition, ...]:
        if not names:
            return self._default
        found = tuple([self._partitions[name] for name in names])
        return tuple([each for each in found if each.accepts]) or found

    def requeue(self, job: JobRecord, date: float) -> None:
        """A `job` that was stopped at a `date` waits again, and is eligible later."""
        now = self._events.second(date)
        job.requeue(now, now + REQUEUED_S)
        self._rules.waits_again(job, now)
        self._queue.again(job)
        self._queue.add(job)
        self._queue.waits_because(job, "BeginTime")
        self._deadlines.add(job)
        self._jobs.requeue(job)
        self._events.change(date)

    def hold(self, job: JobRecord, held: bool, date: float) -> None:
        """Hold a `job` at a `date`, or release it if it is not `held`."""
        now = self._events.second(date)
        self._queue.hold(job, held)
        if job.state == record.PENDING:
            if job.begin_s < now:
                job.set_eligible(None)
            self._rules.waits(job, now)
        if not held:
            self._events.ask_for_pass()
        self._events.change(date)

    def cancel(self, job: JobRecord, date: float) -> None:
        """Cancel a `job` that waits at a `date`."""
        self._leave(job, date, record.CANCELLED)

    def miss_deadlines(self, date: float) -> None:
        """Cancel jobs that would miss their deadlines if they started at a `date`."""
        for job in self._deadlines.missed(date):
            self._leave(job, date, record.DEADLINE, "DeadLine")

    def _leave(self, job: JobRecord, date: float, state: str, reason: str | None = None) -> None:
        now = self._events.second(date)
        self._queue.remove(job)
        job.leave(state, now, reason)
        self._jobs.end(job, now)
        self._rules.gone(job, now)
        self._events.change(date)
        self._events.tell(date, "cancel", job)


class Runs:
    """Starts jobs and ends them.

    conf, phases, rules: of the cluster. events, jobs, queue, allocations: what each change is noted
    in. running: the execution. submission: takes jobs that begin anew. suspension: of other jobs,
    by the gang scheduler.
    """

    def __init__(
        self,
        conf: Conf,
        phases: Phases,
        rules: Rules,
        events: Events,
        jobs: JobList,
        queue: Queue,
        allocations: Allocations,
        running: Running,
        submission: Submission,
        suspension: Suspension,
    ) -> None:
        self._conf = conf
        self._phases = phases
        self._rules = rules
        self._events = events
        self._jobs = jobs
        self._queue = queue
        self._allocations = allocations
        self._running = running
        self._submission = submission
        self._suspension = suspension

    def start(
        self, job: JobRecord, which: int, allocation: Allocation, date: float, by: str
    ) -> None:
        """Start a `job` at a `date`.

        which: the place of its partition. allocation: what it gets. by: the scheduler.
        """
        now, need = self._events.second(date), job.needs[which]
        self._queue.remove(job)
        self._allocations.victims.started(job)
        listed = job.listed
        if job.request.array is not None:
            last = len(self._rules.arrays.of_one_record(job)) == 1
            job.renumber(self._jobs.serial_at_start(job, last=last))
            listed = self._jobs.place_at_start(job)
        deadline_s = job.request.deadline_s
        if deadline_s is not None:
            limit: float | None = need.before(self._events.second(deadline_s) - now)
        else:
            least = by != "main" and not self._rules.reserves_none(job)
            limit = need.planned_limit_s if least else need.limit_s
        job.start(
            job.partitions[which],
            allocation,
            now,
            by,
            limit_s=inf if limit is None else limit,
            longest_s=YEAR_S,
            listed=listed,
        )
        self._allocations.take(job)
        self._jobs.run(job)
        self._running.start(job, date)
        self._rules.started(job, now)
        self._events.change(date)
        self._events.tell(date, by, job)
        self._suspension.started(job, date)

    def may_end(self, job: JobRecord, date: float) -> bool:
        """Whether the script of a `job` runs, or did until it was suspended at this `date`."""
        if job.state == record.SUSPENDED:
            return job.suspensions[-1][0] > date - AT_ONE_DATE_S
        return job.state == record.RUNNING

    def in_order(self, ended: Ended) -> list[Attempt]:
        """Return which attempts of these jobs have `ended`, in the order in which that is heard."""
        mine = self._running.own(ended)
        if len(mine) > 1:
            mine.sort(key=lambda attempt: self._running.job_of(attempt).serial)
        return mine

    def ended(self, attempt: Attempt, date: float) -> None:
        """The script of a job, of which this is the `attempt`, has ended by itself at a `date`."""
        job = self._running.job_of(attempt)
        state = record.FAILED if job.request.fails else record.COMPLETED
        over_s = self._events.second(date) - job.end_s
        if over_s > 0 and not job.request.fails and over_s > over_time_s(self._conf, job.partition):
            state = record.TIMEOUT
        self._leave(job, date, state, by_itself=True)

    def kill(
        self,
        job: JobRecord,
        date: float,
        state: str,
        *,
        requeued: bool = False,
        late_s: float = 0.0,
    ) -> None:
        """Stop a `job` at a `date` in a `state`.

        requeued: whether it begins anew. late_s: how much longer than others its processes stay, s.
        """
        self._running.stop(job, date)
        self._leave(job, date, state, requeued=requeued, late_s=late_s)

    def stop_working(self, job: JobRecord, date: float) -> None:
        """One of the nodes of a `job` fails at a `date`, which the controller does not know yet."""
        if not job.lost and job.state == record.RUNNING:
            self._running.suspend(job, date)
        job.stop_working()

    def lose(self, job: JobRecord, date: float, late_s: float = 0.0) -> None:
        """The controller finds at a `date` that one of the nodes of a `job` has failed.

        late_s: as in `kill`.
        """
        asked = job.request.requeue
        requeued = self._conf.job_requeue if asked is None else asked
        self.kill(job, date, record.NODE_FAIL, requeued=requeued, late_s=late_s)

    def _leave(
        self,
        job: JobRecord,
        date: float,
        state: str,
        *,
        by_itself: bool = False,
        requeued: bool = False,
        late_s: float = 0.0,
    ) -> None:
        """A job that ran or was suspended is over, or begins anew later."""
        now = self._events.second(date)
        self._jobs.stop(job)
        ran = job.state == record.RUNNING
        # Whether its script is over in this second, so that nothing is left to be killed.
        done = False
        if ran and not by_itself:
            lasts_s = job.request.work.duration_s
            done = lasts_s is not None and job.ran_s + now - job.since_s >= lasts_s
        job.end(state, now, date)
        self._running.note_end(job, date)
        self._allocations.give_back(job, running=ran)
        self._rules.ended(job, now, again=requeued)
        self._jobs.end(job, now)
        self._events.change(date)
        self._events.tell(date, "end", job)
        clean_s = self._phases.clean_s + late_s
        if not by_itself and not done:
            clean_s += KILL_S + (self._conf.kill_wait_s if job.request.stubborn else 0)
        elif self._conf.epilog or (done and self._conf.scheduler.defer):
            clean_s += EPILOG_S  # after the pass of the turn that kills it
        at_once = (not by_itself or self._conf.epilog) and not self._conf.scheduler.defer
        cleaning = self._allocations.cleaning
        clean = cleaning.date_of(job, date, clean_s, at_once=at_once)
        if clean > date:
            cleaning.add(Completing(clean, job, at_once, requeued, not by_itself))
        else:
            self._free(job, date, requeued=requeued, at_once=at_once)

    def _free(self, job: JobRecord, date: float, *, requeued: bool, at_once: bool) -> None:
        """The nodes of a job may be used again: its processes are gone."""
        self._events.change(date)
        job.give_nodes_back()
        self._rules.clean(job)
        self._suspension.ended(job, date)
        if requeued:
            self._submission.requeue(job, date)
        if at_once:
            self._events.ask_for_pass_at_once()
        else:
            self._events.ask_for_pass()

    def clean(self, date: float) -> None:
        """The processes of the job that is first to be clean are gone at a `date`."""
        _, job, at_once, requeued, _ = self._allocations.cleaning.pop()
        self._free(job, date, requeued=requeued, at_once=at_once)


class Suspension:
    """Suspends and resumes jobs.

    conf, nodes: the cluster. events, jobs, allocations: what each change is noted in. running: the
    execution.
    """

    def __init__(
        self,
        conf: Conf,
        nodes: Nodes,
        events: Events,
        jobs: JobList,
        allocations: Allocations,
        running: Running,
    ) -> None:
        self._events = events
        self._jobs = jobs
        self._allocations = allocations
        self._running = running
        self._gang = Gang(conf.partitions, nodes, conf.gang_counts_cpus) if conf.gang else None

    def suspend(self, job: JobRecord, date: float) -> None:
        """Suspend a `job` at a `date`.

        The limit of a preemptor's victim goes on; that of any other job does not.
        """
        job.suspend(self._events.second(date), date)
        self._allocations.pause(job)
        if not job.lost:
            self._running.suspend(job, date)
        self._events.change(date)
        self._events.tell(date, "suspend", job)

    def resume(self, job: JobRecord, date: float) -> None:
        """Let a suspended `job` go on at a `date`."""
        now = self._events.second(date)
        job.resume(now, date)
        if not job.victim:
            self._jobs.stop(job)
            job.extend(now, YEAR_S)
            self._jobs.run(job)
        self._allocations.resume(job)
        if not job.lost:
            self._running.resume(job, date)
        self._events.change(date)
        self._events.tell(date, "resume", job)

    # --- the gang scheduler -----------------------------------------------------------------

    @property
    def waits_for_slice(self) -> bool:
        """Whether some job of the gang scheduler waits for the next time slice."""
        return self._gang is not None and self._gang.stopped

    def started(self, job: JobRecord, date: float) -> None:
        """A `job` has started at a `date`: the gang scheduler may stop it or others."""
        if self._gang is not None:
            self._change(self._gang.started(job), date)

    def ended(self, job: JobRecord, date: float) -> None:
        """The nodes of a `job` are clean at a `date`: the gang scheduler may let others go on."""
        if self._gang is not None:
            self._change(self._gang.ended(job), date)

    def slice(self, date: float) -> None:
        """A time slice of the gang scheduler is over at a `date`."""
        assert self._gang is not None
        self._change(self._gang.slice(), date)

    def _change(self, changes: Iterable[tuple[JobRecord, bool]], date: float) -> None:
        for job, runs in changes:
            if runs and job.state == record.SUSPENDED:
                self.resume(job, date)
            elif not runs and job.state == record.RUNNING:
                self.suspend(job, date)
