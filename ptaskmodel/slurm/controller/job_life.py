"""The lives of jobs in the controller: submission, start, end, requeue, suspension."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from math import floor, inf

from ptaskmodel.batch.jobs.attempt import Attempt
from ptaskmodel.slurm.conf.facts import CONS_TRES, Conf, Nodes, Partition
from ptaskmodel.slurm.conf.phases import AT_ONCE_S, Phases, second_of
from ptaskmodel.slurm.controller.limits import Deadlines, Ended
from ptaskmodel.slurm.controller.rules import Rules
from ptaskmodel.slurm.controller.running import (
    EPILOG_S,
    KILL_S,
    Cleaning,
    Completing,
    Running,
    nodes_of,
)
from ptaskmodel.slurm.jobs import record
from ptaskmodel.slurm.jobs.needs import YEAR_S
from ptaskmodel.slurm.jobs.record import Allocation, JobRecord, outstaying, over_limit, over_time_s
from ptaskmodel.slurm.jobs.request import JobRequest
from ptaskmodel.slurm.queue.gang import Gang
from ptaskmodel.slurm.queue.preemption import Precedence, Preemption
from ptaskmodel.slurm.queue.queue import RESERVATION_DELETED, Queue
from ptaskmodel.slurm.select.offers import GPU
from ptaskmodel.slurm.select.plugin import Answers, select_of

# How long a job that is requeued is not eligible: its credential lives on.
REQUEUED_S = 121
# Called with the date, what happens (a scheduler starts it, "end", "suspend", "resume",
# "cancel" of one that waits) and whom.
Note = Callable[[float, str, JobRecord], None]


class Lives:
    """The jobs, the queue and what the jobs use.

    requested: whether a pass is asked for; at_once: whether one is due now. changed_s: the whole
    second of the last change of jobs or nodes, which backfill looks at. preempting: the jobs that
    wait for the nodes of victims, and since when. cleaning: jobs that are over and whose nodes are
    not clean. requeued: jobs that begin anew, until somebody has seen them.
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
        self.conf = conf
        self.nodes = nodes
        self.phases = phases
        self._t0 = self._second = phases.t0
        self._date = 0.0
        self.rules = rules
        self.preemption = Preemption(conf, rules.accounts)
        precedence = Precedence(self.preemption, self._listed)
        self.queue = Queue(
            rules.dependencies.state,
            rules.eligible,
            self._changed_at,
            rules.array_is_full,
            precedence.order,
        )
        self.select = select_of(conf, nodes)
        gpus = any(gres.name == GPU for line in conf.nodes for gres in line.gres)
        if gpus and conf.select_type == CONS_TRES:
            self.select.follow_favours(bytearray(len(nodes)))
        self.answers = Answers(self.select, conf)
        self.gang = Gang(conf.partitions, nodes, conf.gang_counts_cpus) if conf.gang else None
        self.jobs: list[JobRecord] = []
        self.preempting: dict[JobRecord, int] = {}
        self.cleaning = Cleaning()
        self.requeued: list[JobRecord] = []
        self.requested = True
        self.at_once = False
        self.changed_s = second_of(phases, phases.boot_s)
        self._running = running
        self._by_end: list[tuple[float, int, JobRecord]] = []
        self._partitions = {p.name: p for p in conf.partitions}
        self._default = [conf.default_partition or conf.partitions[0]]
        self._ended = Ended()
        self._deadlines = Deadlines(self.second)
        self._note = note
        # The last place in the list of all jobs; that of each job, or of what is left of an array.
        self._last = 0
        self._heads: dict[str, int] = {}

    def _list(self) -> int:
        self._last += 1
        return self._last

    def second(self, date: float) -> int:
        """The clock at a date: whole Unix seconds."""
        if date != self._date:  # most ask for the same one
            self._date, self._second = date, self._t0 + floor(date + AT_ONCE_S)
        return self._second

    @property
    def unfinished(self) -> bool:
        """Whether some job waits or runs."""
        return bool(self.queue.jobs or self.busy)

    @property
    def over(self) -> int:
        """How many jobs are over."""
        under_way = len(self._by_end) + len(self.cleaning)
        return max(len(self.jobs) - len(self.queue.jobs) - under_way, 0)

    @property
    def busy(self) -> bool:
        """Whether some job holds nodes."""
        return bool(self._by_end or self.cleaning)

    @property
    def running(self) -> Sequence[tuple[float, int, JobRecord]]:
        """Who runs or is suspended, by the end of its limit, as it is at any time."""
        return self._by_end

    def ends(self) -> list[tuple[float, int, JobRecord]]:
        """Who runs or is suspended, by the end of its limit."""
        return self._by_end.copy()

    def _changed(self, date: float) -> None:
        self.changed_s = self.second(date)

    def _changed_at(self, now: int) -> None:
        self.changed_s = now

    def _tell(self, date: float, what: str, job: JobRecord) -> None:
        if self._note is not None:
            self._note(date, what, job)

    # --- submission -------------------------------------------------------------------------

    def is_full(self, more: int) -> bool:
        """Whether so many more jobs would be too many to keep records of."""
        kept = len(self.queue.jobs) + len(self._by_end) + len(self.cleaning) + len(self._ended)
        return kept + more >= self.conf.max_job_count

    def submit(self, request: JobRequest, date: float, reason: str | None = None) -> JobRecord:
        """A job arrives; reason: why it is refused, whatever it asks for."""
        now = self.second(date)
        partitions = self._partitions_of(request.partitions)
        request = self.rules.as_taken_in(request, partitions[0])
        job = JobRecord(request, self.conf.first_job_id + len(self.jobs), now, partitions)
        self.jobs.append(job)
        listed = self._heads.setdefault(request.array_id, self._list())
        job.enter_list(listed, self.rules.place(job))
        job.set_needs(self.rules.needs(job))
        if request.begin_s is not None:
            job.begin_after(max(now, self.second(request.begin_s)))
        reason = reason or self.rules.refuses(job, now)
        limited = None
        if reason is None and self.rules.limits.enforced:
            job.set_needs(self.rules.within_limits(job))
            limited = self.rules.limited(job)
        if reason is None and limited is None and not self.rules.could_start(job, now):
            # It is in the list of jobs when that is found, and stays there for a while; others
            # stand behind the priority that it was given.
            self.rules.waits(job, now)
            self.rules.priorities.gone(job)
            reason = "BadConstraints"
            self._ended.add(now, job)
            self._changed(date)
        if reason is not None:
            job.leave(record.REFUSED, now, reason)
            return job
        self.rules.submitted(job, now)
        self.rules.waits(job, now)
        if limited is None:
            self.rules.tested_at_submit(job, self.select)
        self.queue.add(job)
        if limited is not None:
            self.queue.waits_because(job, limited)
        self.queue.expect(job, now)
        self.queue.bar(job, [self.rules.waits_for(job, p) for p in job.partitions])
        self._deadlines.add(job)
        self.requested = True
        self._changed(date)
        self._tell(date, "submit", job)
        return job

    def _partitions_of(self, names: Sequence[str]) -> list[Partition]:
        if names:
            return [self._partitions[name] for name in names]
        return self._default

    # --- from start to end --------------------------------------------------------------------

    def start(
        self, job: JobRecord, which: int, allocation: Allocation, date: float, by: str
    ) -> None:
        """A job starts now."""
        now, need = self.second(date), job.needs[which]
        self.queue.remove(job)
        self.preempting.pop(job, None)
        listed = job.listed
        if job.request.array is not None and not job.restarts:
            # A task takes the record of its array; what is left of that is put at the end.
            listed = self._heads[job.request.array_id]
            self._heads[job.request.array_id] = self._list()
            self._tell_size(job)
        limit = need.limit_s if need.least_limit_s is None or by == "main" else need.least_limit_s
        job.start(
            job.partitions[which],
            allocation,
            now,
            by,
            limit_s=inf if limit is None else limit,
            longest_s=YEAR_S,
            listed=listed,
        )
        self.select.add(job)
        self.answers.forget()
        insort(self._by_end, (job.end_s, job.listed, job))
        self._running.start(job, date)
        self.rules.started(job, now)
        self._changed(date)
        self._tell(date, by, job)
        if self.gang is not None:
            self._change_gang(self.gang.started(job), date)

    def _listed(self, job: JobRecord) -> int:
        """The place in the list of jobs of the record of a job that waits."""
        return job.listed if job.restarts else self._heads[job.request.array_id]

    def _tell_size(self, job: JobRecord) -> None:
        """What is left of an array is known to be as large as the task that starts."""
        for other in self.queue.jobs:
            if other.request.array_id != job.request.array_id or other.restarts:
                continue
            if other.tested_cpus == job.tested_cpus:
                return
            self.rules.tested_cpus(other, job.tested_cpus)

    def is_of(self, attempt: Attempt) -> bool:
        """Whether an attempt is of one of these jobs."""
        return self._running.has(attempt)

    def ended(self, attempt: Attempt, date: float) -> None:
        """The script of a job has ended by itself."""
        job = self._running.job_of(attempt)
        state = record.FAILED if job.request.fails else record.COMPLETED
        late_s = over_time_s(self.conf, job.partition)
        if not job.request.fails and job.end_s + late_s < self.second(date):
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
        """A job is stopped; its nodes are free when its processes are gone, late_s later still."""
        self._running.stop(job, date)
        self._leave(job, date, state, requeued=requeued, late_s=late_s)

    def on_node(self, node: int) -> list[JobRecord]:
        """The jobs that run or are suspended on a node, by the end of their limits."""
        return [job for _, _, job in self._by_end if nodes_of(job) >> node & 1]

    def stop_working(self, job: JobRecord, date: float) -> None:
        """One of a job's nodes has failed, which the controller does not know yet."""
        if not job.lost and job.state == record.RUNNING:
            self._running.suspend(job, date)
        job.stop_working()

    def lose(self, job: JobRecord, date: float, late_s: float = 0.0) -> None:
        """The controller finds that one of a job's nodes has failed."""
        asked = job.request.requeue
        requeued = self.conf.job_requeue if asked is None else asked
        self.kill(job, date, record.NODE_FAIL, requeued=requeued, late_s=late_s)

    @property
    def remembers(self) -> bool:
        """Whether there are records of jobs that are over, to be forgotten one day."""
        return bool(self._ended) and self.conf.min_job_age_s > 0

    def has_changed(self, date: float) -> None:
        """Something about nodes has changed."""
        self._changed(date)

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
        now = self.second(date)
        attempt = job.attempt
        assert attempt is not None
        self._forget_end(job)
        ran = job.state == record.RUNNING
        job.end(state, now, date)
        attempt.end_s, attempt.state = date, state
        attempt.suspensions = [list(each) for each in job.suspensions]
        self.select.remove(job, running=ran)
        self.answers.forget()
        self.rules.ended(job, now, again=requeued)
        self._ended.add(now, job)
        self._changed(date)
        self._tell(date, "end", job)
        clean_s = self.phases.clean_s + late_s
        if not by_itself:
            clean_s += KILL_S + (self.conf.kill_wait_s if job.request.stubborn else 0)
        elif self.conf.epilog:
            clean_s += EPILOG_S
        at_once = not by_itself or self.conf.epilog
        clean = self.cleaning.date_of(job, date, clean_s, at_once=at_once)
        self._free(Completing(clean, job, at_once, requeued), date)

    def _free(self, completing: Completing, date: float) -> None:
        """The nodes of a job may be used again, now or when its processes are gone."""
        job = completing.job
        if completing.date_s > date:
            self.cleaning.add(completing)
            return
        self._changed(date)
        job.give_nodes_back()
        self.rules.clean(job)
        if self.gang is not None:
            self._change_gang(self.gang.ended(job), date)
        if completing.requeued:
            self.requeue(job, date)
        if completing.at_once and not self.conf.scheduler.defer:
            self.at_once = True
        else:
            self.requested = True

    def clean(self, date: float) -> None:
        """The processes of a job are gone now."""
        self._free(self.cleaning.pop(), date)

    def completed_lately(self, now: int) -> list[JobRecord]:
        """The jobs that are completing and have not done so for more than CompleteWait."""
        longest_s = self.conf.complete_wait_s
        return self.cleaning.since(now - longest_s) if longest_s else []

    def _forget_end(self, job: JobRecord) -> None:
        del self._by_end[bisect_left(self._by_end, (job.end_s, job.listed))]

    def requeue(self, job: JobRecord, date: float) -> None:
        """A job that was stopped waits again, from now on, and is eligible later."""
        now = self.second(date)
        job.requeue(now, now + REQUEUED_S)
        self.rules.waits_again(job, now)
        self.queue.again(job)
        self.queue.add(job)
        self.queue.waits_because(job, "BeginTime")
        self._deadlines.add(job)
        self.requeued.append(job)
        self._changed(date)

    def cancel(self, job: JobRecord, date: float) -> None:
        """A job is cancelled, whether it waits or runs."""
        if job.state == record.PENDING:
            self.queue.remove(job)
            job.leave(record.CANCELLED, self.second(date))
            self._ended.add(self.second(date), job)
            self.rules.gone(job, self.second(date))
            self._changed(date)
            self._tell(date, "cancel", job)
        elif job.state in record.LIVE:
            self.kill(job, date, record.CANCELLED)
        else:
            self._changed(date)  # whoever asks for a job that is over

    # --- suspension -------------------------------------------------------------------------

    def _change_gang(self, changes: Iterable[tuple[JobRecord, bool]], date: float) -> None:
        for job, runs in changes:
            if runs and job.state == record.SUSPENDED:
                self.resume(job, date)
            elif not runs and job.state == record.RUNNING:
                self.suspend(job, date)

    def suspend(self, job: JobRecord, date: float) -> None:
        """A job stops where it is; whether its limit goes on depends on who did it."""
        now = self.second(date)
        job.suspend(now, date)
        self.select.pause(job)
        self.answers.forget()
        if not job.lost:
            self._running.suspend(job, date)
        self._changed(date)
        self._tell(date, "suspend", job)

    def resume(self, job: JobRecord, date: float) -> None:
        """A job that was suspended goes on."""
        now = self.second(date)
        job.resume(now, date)
        if not job.victim:
            self._forget_end(job)
            job.extend(now, YEAR_S)
            insort(self._by_end, (job.end_s, job.listed, job))
        self.select.resume(job)
        self.answers.forget()
        if not job.lost:
            self._running.resume(job, date)
        self._changed(date)
        self._tell(date, "resume", job)

    # --- what is due ------------------------------------------------------------------------

    def check_limits(self, date: float) -> None:
        """Kill who has run for longer than its limit allows."""
        now = self.second(date)
        over = over_limit(self.conf, self._by_end, now)
        if not self.rules.reserved.empty:
            over += outstaying(self.conf, self._by_end, now, over)
        spends = self.rules.limits.kills
        running = (job for _, _, job in self._by_end if job.state == record.RUNNING)
        for job in sorted(running if spends else over, key=lambda job: job.listed):
            if job in over or self.rules.must_end(job, now):
                self.kill(job, date, record.PREEMPTED if job.victim else record.TIMEOUT)
        self._purge_reservations(now)

    def _purge_reservations(self, now: int) -> None:
        """Forget reservations that are over; who waits for one of them waits for ever."""
        reserved = self.rules.reserved
        if reserved.empty:
            return
        used = [job.reservation for _, _, job in self._by_end if job.reservation is not None]
        gone = reserved.purge(now, used)
        if gone:
            self.changed_s = now
        for job in [job for job in self.queue.jobs if job.reservation in gone]:
            self.queue.give_up(job, RESERVATION_DELETED)

    def miss_deadlines(self, date: float) -> None:
        """Who waits and would not be over at his deadline, if he started now, waits no longer."""
        if not self._deadlines:
            return
        now = self.second(date)
        for job in self._deadlines.missed(now):
            self.queue.remove(job)
            job.leave(record.DEADLINE, now, "DeadLine")
            self._ended.add(now, job)
            self.rules.gone(job, now)
            self._changed(date)
            self._tell(date, "cancel", job)

    def purge(self, date: float) -> None:
        """Forget jobs that ended long ago, which counts as a change."""
        if self.conf.min_job_age_s == 0:
            return
        gone = self._ended.forget(self.second(date) - self.conf.min_job_age_s)
        for job in gone:
            self.rules.dependencies.forget(job)
        if gone:
            self._changed(date)

    def refresh(self, date: float) -> None:
        """Compute all priorities anew, and order the queue by them."""
        if self.rules.refresh(self.second(date), self._heads):
            self.queue.sort()
            self._changed(date)

    def slice(self, date: float) -> None:
        """A time slice of the gang scheduler is over."""
        assert self.gang is not None
        self._change_gang(self.gang.slice(), date)

    def command(self, job: JobRecord, action: str, date: float) -> None:
        """What is done to a job by hand."""
        if action == "cancel":
            self.cancel(job, date)
        elif action in ("hold", "release"):
            self.queue.hold(job, action == "hold")
            if job.state == record.PENDING:
                if job.begin_s < self.second(date):
                    job.set_eligible(None)
                self.rules.waits(job, self.second(date))
            self.requested |= action == "release"
            self._changed(date)
        elif action == "suspend" and job.state == record.RUNNING:
            self.suspend(job, date)
        elif action == "resume" and job.state == record.SUSPENDED:
            self.resume(job, date)
        elif action == "requeue" and job.state in record.LIVE:
            self.kill(job, date, record.CANCELLED, requeued=True)
