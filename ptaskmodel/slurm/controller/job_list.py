"""What a controller knows: the records of all jobs, running jobs, and events.

`Running` has the attempts of running jobs in an execution, which computes when they end. Completing
jobs are here too: they are over, but their nodes are not clean, and no job can start
there.

`Events` has the clock, the last change, and the scheduling cycles that are due. All parts of the
controller, both schedulers and the loop report there what happens.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from math import ceil, floor, inf
from typing import NamedTuple

from ptaskmodel.batch.jobs.execution import Attempt, Ended, Execution
from ptaskmodel.batch.machine.host_sets import Mask, members
from ptaskmodel.slurm.conf.facts import Conf, Partition
from ptaskmodel.slurm.conf.phases import AT_ONCE_S, AT_ONE_DATE_S, Phases, second_of
from ptaskmodel.slurm.controller.admission import EndedJobs
from ptaskmodel.slurm.jobs.record import JobRecord, nodes_of
from ptaskmodel.slurm.jobs.request import JobRequest
from ptaskmodel.workload.jobs import JobMaker
from ptaskmodel.workload.works import (
    MAX_DEPTH,
    MAX_STAGES,
    DelayWork,
    SequenceWork,
    Work,
)

# How long a job runs whose end is told.
UNTIL_TOLD_S = 1e12
# By how much sums of dates may be off.
ROUNDING_S = 1e-6


class Running:
    """Starts and stops jobs in an execution.

    cpus: of each node. longer_s: by how much each job runs longer than it says. told: when jobs end
    according to a recorded run, by id; the loop ends them. numbers: those of attempts, where the
    jobs of several controllers run in the execution; hosts: what each node is among its hosts.
    """

    def __init__(
        self,
        execution: Execution,
        cpus: Sequence[int],
        longer_s: float = 0.0,
        told: Mapping[str, float] | None = None,
        numbers: Iterator[int] | None = None,
        hosts: Sequence[int] | None = None,
    ) -> None:
        self._cpus = cpus
        self._numbers = count() if numbers is None else numbers
        self._hosts = hosts
        self.execution = execution
        self._longer_s = longer_s
        self._told = told or {}
        self._jobs: dict[int, JobRecord] = {}
        self._runs = JobMaker()

    def own(self, ended: Ended) -> list[Attempt]:
        """Return the attempts of those that have `ended` that are of these jobs."""
        return [attempt for attempt, _ in ended if attempt.number in self._jobs]

    def job_of(self, attempt: Attempt) -> JobRecord:
        """Whose an attempt is."""
        return self._jobs[attempt.number]

    def start(self, job: JobRecord, date: float) -> None:
        """The script of a job begins."""
        allocation, work = job.allocation, job.request.work
        assert allocation is not None
        if self._told and self._told.get(job.id, 0.0) > date:
            work = DelayWork(UNTIL_TOLD_S)
        elif self._longer_s:
            work = _followed_by(work, self._longer_s)
        name = job.request.id
        run = self._runs.make(name, date, allocation.size, name, work)
        place = self._place(allocation.nodes)
        cores = self._tasks(job) if work.duration_s is None else None
        number = next(self._numbers)
        attempt = Attempt(run, place, date, job.end_s, number, ordinal=job.restarts, cores=cores)
        job.run_as(attempt)
        self._jobs[number] = job
        self.execution.start(attempt, date)

    def _place(self, nodes: Mask) -> Mask:
        """The hosts of the execution that nodes are."""
        if self._hosts is None:
            return nodes
        return sum(1 << self._hosts[k] for k in members(nodes))

    def _tasks(self, job: JobRecord) -> tuple[int, ...] | None:
        """How many tasks each node gets: as many as its CPUs hold, first nodes first; one at least.

        None: the job asked for nodes alone, and has one rank on each.
        """
        allocation, tasks = job.allocation, job.request.tasks
        assert allocation is not None
        if tasks is None:
            return None
        cpus = allocation.cpus or [self._cpus[k] for k in members(allocation.nodes)]
        found, left = [], tasks
        for k, held in enumerate(cpus):
            after = allocation.size - k - 1
            mine = min(max(1, held // job.request.cpus_per_task), left - after)
            found.append(mine if after else left)
            left -= mine
        return tuple(found)

    def stop(self, job: JobRecord, date: float) -> None:
        """A job is stopped for good."""
        assert job.attempt is not None
        self.execution.stop(job.attempt, date)

    def suspend(self, job: JobRecord, date: float) -> None:
        """A job does no work from now on, unless its script is over and that is not known yet."""
        assert job.attempt is not None
        if not self._is_over(job, date):
            self.execution.suspend(job.attempt, date)

    def _is_over(self, job: JobRecord, date: float) -> bool:
        lasts_s, attempt = job.request.work.duration_s, job.attempt
        if lasts_s is None or attempt is None or job.id in self._told:
            return False
        assert attempt.start_s is not None
        done_s = date - attempt.start_s - sum(min(b, date) - a for a, b in job.suspensions)
        return done_s >= lasts_s - ROUNDING_S

    def resume(self, job: JobRecord, date: float) -> None:
        """A job goes on."""
        assert job.attempt is not None
        self.execution.resume(job.attempt, date)

    def note_end(self, job: JobRecord, date: float) -> None:
        """The attempt of a `job` is over at a `date`, in the job's state."""
        assert job.attempt is not None
        del self._jobs[job.attempt.number]
        job.attempt.end(date, job.state, job.suspensions)


def _followed_by(work: Work, more_s: float) -> Work:
    """A work, and so many seconds more; as it is where it has as many stages as there may be."""
    if work.duration_s is not None:
        return DelayWork(work.duration_s + more_s)
    full = isinstance(work, SequenceWork) and (
        work.depth >= MAX_DEPTH or work.stages_per_round >= MAX_STAGES
    )
    return work if full else SequenceWork((work, DelayWork(more_s)))


# How long it takes at least until the nodes of a killed job are clean: a pass in the same turn of
# the main loop finds them completing.
KILL_S = 0.015
# How long an epilog takes at least: of jobs that end at one date each asks for a pass of its own
# when its nodes are clean, and those of the others are not yet.
EPILOG_S = 0.01
# Between those of one date, s: slurmctld hears of one after another. And of how many it hears
# from one pass to the next, which is 3 us later (`sched_min_interval`).
APART_S, TOGETHER = 1e-6, 3
# In a recorded run, the pass that a killed job asks for comes so soon, and its nodes are clean just
# before.
SOON_S, BEFORE_S = 0.5, 1e-4


class Completing(NamedTuple):
    """A job that is over, and whose nodes are clean at a date.

    at_once: a pass is asked for then, at once. requeued: it begins anew. killed: all but the node
    of its script are clean as soon as those of others that are over with it.
    """

    date_s: float
    job: JobRecord
    at_once: bool
    requeued: bool
    killed: bool


class Cleaning:
    """The jobs that are completing, by the date at which their nodes are clean.

    nodes: those on which processes of them are. date: when the next job gives its nodes back, s;
    inf: there is none. cleaned: when the nodes of jobs were clean that
    took long in a recorded run; passed: when it made passes of default depth. pauses: whether there
    passes wait for `sched_min_interval`.
    """

    def __init__(self) -> None:
        self.nodes: Mask = 0
        self.date = inf
        self.cleaned: Mapping[str, float] = {}
        self.passed: Sequence[float] = ()
        self.pauses = False
        self._jobs: list[Completing] = []

    def __len__(self) -> int:
        return len(self._jobs)

    def follow(
        self, passed: Sequence[float], cleaned: Mapping[str, float], *, pauses: bool
    ) -> None:
        """Follow a recorded run: set when it `passed` and `cleaned` nodes, and if it `pauses`."""
        self.passed, self.cleaned, self.pauses = passed, cleaned, pauses

    def date_of(self, job: JobRecord, date: float, clean_s: float, *, at_once: bool) -> float:
        """When the nodes of a job that is over at a date are clean, if that takes so long.

        at_once: whether it then asks for a pass of its own.
        """
        clean = date + clean_s
        if at_once:
            return self._as_told(date, clean) if self.passed else clean
        return max(clean, self.cleaned.get(job.id, date)) if self.cleaned else clean

    def _as_told(self, date: float, clean: float) -> float:
        """When the nodes of a job that is over now were clean, in a recorded run.

        Each of those that are over together asks for a pass of its own when its nodes are. Without
        any the nodes were clean at once, if there was a pass then.
        """
        before = sum(each.at_once for each in self._jobs)
        first = bisect_left(self.passed, date + KILL_S / 2)
        found = [each for each in self.passed[first : first + before + 1] if each < date + SOON_S]
        if len(found) > 1 and found[1] < found[0] + AT_ONE_DATE_S:
            found = found[: 1 + ceil(before / TOGETHER)]
        if not found:
            at_once = first and self.passed[first - 1] >= date
            # A full pass at that date had waited, and came first.
            return date if at_once else clean + self.pauses * BEFORE_S
        if self.pauses and before >= len(found):
            return found[-1] + BEFORE_S  # the next pass, for all of them, comes later
        last = found[-2] if len(found) > 1 else date
        return found[-1] - min(BEFORE_S, (found[-1] - last) / 2)

    def add(self, one: Completing) -> None:
        """A job is over, and its nodes are clean later."""
        if one.at_once and not self.passed:
            date_s = one.date_s
            for each in self._jobs:
                if each.at_once and each.date_s == date_s:
                    date_s += APART_S
            one = one._replace(date_s=date_s)
        insort(self._jobs, one, key=lambda each: each.date_s)
        self.date = self._jobs[0].date_s
        self.nodes |= nodes_of(one.job)

    def pop(self) -> Completing:
        """The job whose nodes are clean first: they are now."""
        over = self._jobs.pop(0)
        self.date = self._jobs[0].date_s if self._jobs else inf
        self.nodes = 0
        for each in self._jobs:
            nodes = nodes_of(each.job)
            together = each.killed and each.job.end_s == over.job.end_s
            self.nodes |= nodes & -nodes if together else nodes
        return over

    def since(self, date_s: float) -> list[JobRecord]:
        """The jobs that are over since a date, Unix seconds."""
        return [each.job for each in self._jobs if each.job.end_s >= date_s]


# Called with the date, what happens (a scheduler starts it, "end", "suspend", "resume",
# "cancel" of one that waits) and the job.
Note = Callable[[float, str, JobRecord], None]


class Events:
    """What has happened and what is asked for.

    phases: of the controller's threads. note: called for each event of a job; None: nothing is.
    requested: whether a pass of the main scheduler is asked for. at_once: whether one is due now.
    changed_s: when jobs or nodes last changed, Unix s; backfill looks only after a change. changes:
    how often that was noted.
    """

    def __init__(self, phases: Phases, note: Note | None = None) -> None:
        self._t0 = self._second = phases.t0
        self._date = 0.0
        self._note = note
        self.requested = True
        self.at_once = False
        self.changed_s = second_of(phases, phases.boot_s)
        self.changes = 0

    def second(self, date: float) -> int:
        """Return the clock at a `date`: whole Unix seconds."""
        if date != self._date:  # most ask for the same one
            self._date, self._second = date, self._t0 + floor(date + AT_ONCE_S)
        return self._second

    def change(self, date: float) -> None:
        """Note that jobs or nodes change at a `date`."""
        self.changed_s = self._second if date == self._date else self.second(date)
        self.changes += 1

    def change_at(self, now: int) -> None:
        """Note that jobs or nodes change at a second, `now`."""
        self.changed_s = now
        self.changes += 1

    def ask_for_pass(self) -> None:
        """Ask for a pass at the next turn that makes one."""
        self.requested = True

    def ask_for_pass_at_once(self) -> None:
        """Ask for a pass now."""
        self.at_once = True

    def answer_request(self) -> None:
        """The pass that was asked for is made."""
        self.requested = False

    def answer_at_once(self) -> None:
        """The pass that was due at once is made."""
        self.at_once = False

    def tell(self, date: float, what: str, job: JobRecord) -> None:
        """Report `what` happens to a `job` at a `date`."""
        if self._note is not None:
            self._note(date, what, job)


class JobList:
    """The records of a controller's jobs.

    conf: of the cluster. all: the records, in order of submission. running: those that run or are
    suspended, each (end of its limit, place in Slurm's list, record), sorted; ends_s, slots: the
    ends, and the least numbers that tell these jobs apart, in that order, to be read at once.
    starts: slots and jobs that came to these since `take_starts`; None: it was never called. heads:
    the place of what is left of each array, by its id. requeued: jobs that begin anew, until
    `forget_requeued`.
    """

    def __init__(self, conf: Conf) -> None:
        self._conf = conf
        self.all: list[JobRecord] = []
        self.running: list[tuple[float, int, JobRecord]] = []
        self.ends_s, self.slots = array("q"), array("q")
        self._free_slots: list[int] = []
        self.starts: list[tuple[int, JobRecord]] | None = None
        self.heads: dict[str, int] = {}
        self.requeued: list[JobRecord] = []
        self._last_place = 0
        self._ended = EndedJobs()

    # --- places -----------------------------------------------------------------------------

    def add(self, request: JobRequest, now: int, partitions: Sequence[Partition]) -> JobRecord:
        """Make the record of a `request` for `partitions` that arrives at `now`."""
        number = self._conf.first_job_id + len(self.all)
        listed = self._new_place()
        if request.array is not None:
            listed = self.heads.setdefault(request.array.job, listed)
        job = JobRecord(request, number, now, partitions, listed)
        self.all.append(job)
        return job

    def place(self, job: JobRecord) -> int:
        """Return the place of a `job` that waits."""
        return self.heads[job.request.array_id] if job.is_task else job.listed

    def place_at_start(self, job: JobRecord) -> int:
        """Return the place of a `job` that starts.

        A task takes the record of its array; the rest of the array goes to the end of the list.
        """
        if job.request.array is None or job.restarts:
            return job.listed
        place = self.heads[job.request.array_id]
        self.heads[job.request.array_id] = self._new_place()
        return place

    def serial_at_start(self, job: JobRecord, *, last: bool) -> int:
        """Return the place of a `job` that starts among Slurm's numbers.

        A task gets a new number; the `last` one of its array that waits keeps the array's.
        """
        return job.serial if last or not job.is_task else self._new_place()

    def _new_place(self) -> int:
        self._last_place += 1
        return self._last_place

    # --- who runs ---------------------------------------------------------------------------

    def run(self, job: JobRecord) -> None:
        """Add a `job` to those that run, by its place and the end of its limit."""
        key = job.end_s, job.listed
        place = bisect_left(self.running, key)
        slot = self._free_slots.pop() if self._free_slots else len(self.running)
        self.running.insert(place, (*key, job))
        self.ends_s.insert(place, int(job.end_s))
        self.slots.insert(place, slot)
        if self.starts is not None:
            self.starts.append((slot, job))

    def stop(self, job: JobRecord) -> None:
        """Take a `job` off those that run; its end and its place are still those of `run`."""
        place = bisect_left(self.running, (job.end_s, job.listed))
        del self.running[place], self.ends_s[place]
        self._free_slots.append(self.slots.pop(place))

    def take_starts(self) -> list[tuple[int, JobRecord]]:
        """Return the `starts` since the last call, at first all that run, and forget them."""
        starts = self.starts
        if starts is None:
            starts = [(slot, end[2]) for slot, end in zip(self.slots, self.running, strict=True)]
        self.starts = []
        return starts

    def ends(self) -> list[tuple[float, int, JobRecord]]:
        """Return a copy of `running`."""
        return self.running.copy()

    def on_node(self, node: int) -> list[JobRecord]:
        """Return the jobs that run or are suspended on a `node`, by the end of their limits."""
        return [job for _, _, job in self.running if nodes_of(job) >> node & 1]

    # --- who is over ------------------------------------------------------------------------

    @property
    def ended(self) -> int:
        """How many records of jobs that are over are kept."""
        return len(self._ended)

    @property
    def remembers(self) -> bool:
        """Whether some record of a job that is over will be forgotten."""
        return bool(self._ended) and self._conf.min_job_age_s > 0

    def end(self, job: JobRecord, now: int) -> None:
        """Keep the record of a `job` that is over at `now` for MinJobAge."""
        self._ended.add(now, job)

    def forget(self, now: int) -> list[JobRecord]:
        """Return the jobs whose records are forgotten at `now`."""
        age_s = self._conf.min_job_age_s
        return self._ended.forget(now - age_s) if age_s else []

    def requeue(self, job: JobRecord) -> None:
        """Note that a `job` begins anew."""
        self.requeued.append(job)

    def forget_requeued(self) -> None:
        """Empty `requeued`, after it has been read."""
        self.requeued.clear()
