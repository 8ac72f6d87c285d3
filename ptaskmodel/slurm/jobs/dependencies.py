"""Dependencies of jobs: after, afterany, afterok, afternotok, aftercorr, singleton.

Dependencies on unknown or purged jobs are dropped. A dependency that was once fulfilled or failed
stays so. The arrays of a workload are known before their first task is submitted.
Source: Slurm's manual of sbatch's --dependency, and its behaviour for arrays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import ceil
from typing import NamedTuple, Protocol

from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.slurm.conf.facts import Conf
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.jobs.request import JobRequest

READY, WAITING, NEVER = "ready", "waiting", "never"
PENDING, COMPLETED = "PENDING", "COMPLETED"
LIVE = frozenset({"RUNNING", "SUSPENDED", "COMPLETING"})
RUNS = frozenset({"RUNNING", "SUSPENDED"})

KINDS = ("after", "afterany", "afterok", "afternotok", "aftercorr")
SINGLETON = "singleton"

_TERM = re.compile(r"([a-z]+)((?::[^:,?]+)*)", re.IGNORECASE)


class Depending(Protocol):
    """What dependencies read of a job's record.

    start_s, end_s: when it started and ended last, Unix seconds. completing: whether its nodes are
    not clean yet.
    """

    request: JobRequest
    number: int
    state: str
    start_s: int
    end_s: float
    begin_s: int
    completing: bool

    def begin_after(self, begin_s: int) -> None:
        """Set `begin_s`, before which the job is not eligible, Unix seconds."""


class Term(NamedTuple):
    """One job to wait for; of kind SINGLETON all of the same name and user."""

    kind: str
    job: str = ""
    delay_s: int = 0


class Condition(NamedTuple):
    """What a job waits for. any_of: one term is enough."""

    terms: tuple[Term, ...]
    any_of: bool = False


def parsed(text: str, where: str = "") -> Condition:
    """Return the condition that ``--dependency=text`` states.

    where: its place, for the SlurmError, which names the remedy.
    """
    any_of = "?" in text
    if any_of and "," in text:
        raise SlurmError(f"{where}: dependency {shown(text)}; give either , or ? between its parts")
    terms: list[Term] = []
    for part in text.split("?" if any_of else ","):
        found = _TERM.fullmatch(part.strip())
        kind = found[1].lower() if found is not None else ""
        jobs = found[2].split(":")[1:] if found is not None else []
        if kind == SINGLETON and not jobs:
            terms.append(Term(SINGLETON))
            continue
        if kind not in KINDS or not jobs:
            raise SlurmError(
                f"{where}: dependency {shown(part)}; write {', '.join(KINDS)} with :job, or "
                f"{SINGLETON}"
            )
        terms += [_term(kind, job, where) for job in jobs]
    return Condition(tuple(terms), any_of)


def _term(kind: str, text: str, where: str) -> Term:
    job, plus, minutes = text.rpartition("+")
    if not plus or kind != "after":
        return Term(kind, text)
    if not (minutes.isdigit() and len(minutes) < 10):
        raise SlurmError(f"{where}: dependency {shown(text)}; give whole minutes after +")
    return Term(kind, job, int(minutes) * 60)


class Dependencies:
    """Which of the jobs added so far may start; ``state`` is asked whenever a queue is built.

    linked: whether any job waits for another; if not, nothing is kept.
    """

    def __init__(self, linked: bool = True) -> None:
        self._linked = linked
        self._jobs: dict[str, list[Depending]] = {}  # by id, and by array
        self._alike: dict[tuple[str | None, str | None], list[Depending]] = {}
        self._left: dict[int, tuple[Condition, list[Term]]] = {}  # terms that are open
        self._failed: dict[int, bool] = {}
        # Arrays that were once alone: Slurm tests the record of all their tasks, once.
        self._alone: set[str] = set()
        # When the last job ended that a job waited for, whose user thinks then.
        self._over_s: dict[int, float] = {}
        # Arrays of which tasks that did not end well have been purged.
        self._spoilt: set[str] = set()

    def add(self, job: Depending) -> None:
        """A job was submitted. Raises SlurmError if what it waits for makes no sense."""
        if not self._linked:
            return
        request = job.request
        if request.dependency is not None:
            condition = parsed(request.dependency, request.where or f"job '{request.id}'")
            self._left[job.number] = (condition, list(condition.terms))
        for name in {request.id, request.array_id}:
            self._jobs.setdefault(name, []).append(job)
        if request.name is not None:
            alike = self._alike.setdefault((request.user, request.name), [])
            alike[:] = [other for other in alike if not _over(other)]
            alike.append(job)

    def forget(self, job: Depending) -> None:
        """The job's record is purged; of an array it is still known how its tasks ended."""
        if not self._linked:
            return
        if job.state != COMPLETED and job.request.array is not None:
            self._spoilt.add(job.request.array_id)
        for name in {job.request.id, job.request.array_id}:
            left = [other for other in self._jobs.get(name, ()) if other is not job]
            if left:
                self._jobs[name] = left
            else:
                self._jobs.pop(name, None)

    def state(self, job: Depending, now: int) -> str:
        """READY, WAITING, or NEVER: what a `job` waits for cannot happen any more.

        A job that has a think time is to begin after that from now on.
        """
        if job.number not in self._left:
            return READY
        condition, terms = self._left[job.number]
        states = {term: self._of(job, term, now) for term in terms}
        failed = self._failed.get(job.number, False) or NEVER in states.values()
        self._failed[job.number] = failed
        terms[:] = [term for term in terms if states[term] == WAITING]
        if condition.any_of:
            ready, never = READY in states.values(), not terms
        else:
            ready, never = not terms and not failed, failed
        if ready:
            del self._left[job.number]
            if job.number in self._over_s:
                thought_s = ceil(self._over_s.pop(job.number) + job.request.think_s)
                job.begin_after(max(job.begin_s, thought_s))
            return READY
        return NEVER if never else WAITING

    def _of(self, job: Depending, term: Term, now: int) -> str:
        if term.kind == SINGLETON:
            return READY if self._is_alone(job) else WAITING
        others = self._jobs.get(term.job, [])
        if term.kind == "aftercorr" and job.request.array is not None:
            index = job.request.array.index
            same = [one for one in others if one.request.array and one.request.array.index == index]
            others = same or others
        if not others:
            return READY
        if term.kind == "after":
            begun = all(
                other.state != PENDING and now - other.start_s >= term.delay_s for other in others
            )
            return READY if begun else WAITING
        if not all(map(_over, others)):
            return WAITING
        if job.request.think_s:
            ended_s = max(other.end_s for other in others)
            self._over_s[job.number] = max(ended_s, self._over_s.get(job.number, ended_s))
        well = all(other.state == COMPLETED for other in others) and term.job not in self._spoilt
        if term.kind == "afterany" or well == (term.kind != "afternotok"):
            return READY
        return NEVER

    def _is_alone(self, job: Depending) -> bool:
        """Whether no job of its name and user runs, or waits and was submitted before it.

        Once the first task of an array is alone, all tasks of the array are.
        """
        if job.request.array_id in self._alone:
            return True
        is_alone = not any(
            other.state in RUNS or (other.state == PENDING and other.number < job.number)
            for other in self._alike.get((job.request.user, job.request.name), ())
            if other is not job
        )
        if is_alone and job.request.array is not None:
            self._alone.add(job.request.array_id)
        return is_alone


def _over(job: Depending) -> bool:
    return job.state != PENDING and job.state not in LIVE and not job.completing


class Arrays:
    """How many tasks each array has, how high its indices go, which tasks wait, how many run.

    conf: of the cluster. requests: all jobs that will come.
    """

    def __init__(self, conf: Conf, requests: Iterable[JobRequest]) -> None:
        self._most_tasks, self._most = conf.scheduler.max_array_tasks, conf.max_array_size
        self._sizes: dict[str, int] = {}
        self._highest: dict[str, int] = {}
        self._running: dict[str, int] = {}
        self._waiting: dict[str, dict[JobRecord, None]] = {}
        for request in requests:
            if request.array is not None:
                name, index = request.array.job, request.array.index
                self._sizes[name] = self._sizes.get(name, 0) + 1
                self._highest[name] = max(self._highest.get(name, 0), index)

    def size(self, request: JobRequest) -> int:
        """How many jobs are submitted at once with this one."""
        return 1 if request.array is None else self._sizes.get(request.array_id, 1)

    def refuses(self, request: JobRequest) -> bool:
        """Whether a job is of an array that has an index, or more tasks, than there may be."""
        if request.array is None:
            return False
        too_many = self._most_tasks is not None and self.size(request) > self._most_tasks
        return too_many or self._highest.get(request.array_id, 0) >= self._most

    def submitted(self, job: JobRecord) -> None:
        """A job was taken in."""
        if job.is_task:
            self._waiting.setdefault(job.request.array_id, {})[job] = None

    def started(self, job: JobRecord) -> None:
        """A job runs."""
        self.gone(job)
        if job.request.array is not None:
            name = job.request.array_id
            self._running[name] = self._running.get(name, 0) + 1

    def ended(self, job: JobRecord) -> None:
        """A job runs no longer."""
        if job.request.array is not None:
            self._running[job.request.array_id] -= 1

    def gone(self, job: JobRecord) -> None:
        """A job waits no longer."""
        if job.is_task:
            self._waiting[job.request.array_id].pop(job, None)

    def is_full(self, job: JobRecord) -> bool:
        """Whether as many tasks of the job's array run as may at once."""
        array = job.request.array
        most = None if array is None else array.at_most
        return array is not None and most is not None and self._running.get(array.job, 0) >= most

    def of_one_record(self, job: JobRecord) -> Sequence[JobRecord]:
        """The jobs that Slurm has one record of: all tasks that wait and never started, or one."""
        return list(self._waiting.get(job.request.array_id, ())) if job.is_task else [job]
