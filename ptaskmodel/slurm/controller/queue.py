"""The queue of waiting jobs, in the order in which both schedulers test them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from operator import is_not
from typing import Any, NamedTuple

from ptaskmodel.slurm.jobs.record import PENDING, JobRecord

READY, WAITING, NEVER = "ready", "waiting", "never"
HELD, DEPENDENCY, BEGIN, RESERVATION = "JobHeldUser", "Dependency", "BeginTime", "Reservation"
HELD_ADMIN = "JobHeldAdmin"
# Reasons that end at no date known before.
_WAITED = frozenset((HELD, HELD_ADMIN, DEPENDENCY, RESERVATION))
ARRAY_LIMIT = "JobArrayTaskLimit"
# Reasons of partitions that the queue clears where the next partition takes a job.
_OF_PARTITIONS = frozenset(
    ("PartitionDown", "PartitionInactive", "PartitionNodeLimit", "PartitionTimeLimit")
)
NEVER_SATISFIED = "DependencyNeverSatisfied"
BAD_CONSTRAINTS, RESERVATION_DELETED = "BadConstraints", "ReservationDeleted"
# Reasons that nothing ever ends.
FOR_EVER = frozenset((NEVER_SATISFIED, BAD_CONSTRAINTS, RESERVATION_DELETED))
# Reasons that are told to nobody.
PLAIN = frozenset(("None", "Priority", "Resources"))
# What ends the keys of a job that prefers some features.
LIKED, PLAIN_FEATURES = "1 as it likes", "2 as it must"
# What stands where in a key. RESERVED: False for jobs of reservations, which come first.
RESERVED, PRIORITY, WHICH = 0, 2, 7


# Why each partition of a job does not take it; None: it does.
Reasons = tuple[str | None, ...]


class Entry(NamedTuple):
    """A job in one of its partitions. key: the place in the queue, which follows the priority.

    One that prefers some features stands there twice: first as it likes, then as it must.
    """

    key: list[Any]
    which: int
    job: JobRecord

    @property
    def prefers(self) -> bool:
        """Whether it is tried with the features that the job prefers."""
        return self.key[-1] == LIKED


# An Entry of a tuple, in half the time.
_entry: Callable[[tuple[list[Any], int, JobRecord]], Entry] = partial(tuple.__new__, Entry)


class Queue:
    """Entries of jobs that could be looked at; apart from them those that are not eligible yet.

    dependencies: says whether those of a job are "ready", "waiting" or "never" fulfilled;
    eligible: told since when a job may be looked at; changed: told when reasons to wait were new
    to those who keep accounts, which counts as a change of jobs; is_full: says whether as many
    tasks of a job's array run as may at once; takes_whole: says whether the partition of an entry
    takes it with its whole limit; order: puts entries, which come in the order of their keys, into
    the order in which they are looked at; None: that is the same; first: the number of the first
    job; tests_first: see `Phases`.
    """

    def __init__(
        self,
        dependencies: Callable[[JobRecord, int], str] = lambda job, now: READY,
        eligible: Callable[[JobRecord, int], None] = lambda job, since: None,
        changed: Callable[[int], None] = lambda now: None,
        is_full: Callable[[JobRecord], bool] = lambda job: False,
        takes_whole: Callable[[Entry], bool] = lambda entry: True,
        order: Callable[[list[Entry]], list[Entry]] | None = None,
        first: int = 0,
        *,
        tests_first: bool = True,
    ) -> None:
        self._order, self._tests_first = order, tests_first
        # How often the entries, or their order, have changed; the jobs that came to them.
        self.version = 0
        self.came: list[JobRecord] = []
        self._entries: list[Entry] = []
        # The numbers of their jobs, from 0 on.
        self._first, self._numbers = first, array("q")
        self._ordered: list[Entry] | None = []
        self.jobs: dict[JobRecord, None] = {}
        self._apart: dict[JobRecord, None] = {}
        self._dependencies = dependencies
        self._tell_eligible = eligible
        self._tell_changed = changed
        self._is_full = is_full
        self._takes_whole = takes_whole
        # Tasks of arrays of which only some may run at once; those whose age does not count yet;
        # the arrays of which so many run that nobody looks at the others.
        self._limited: dict[str, dict[JobRecord, None]] = {}
        self._ageless: dict[str, dict[JobRecord, None]] = {}
        self._full: set[str] = set()
        # Of jobs that one of their partitions does not take: why, or None, of each partition, for
        # backfill and for the main scheduler.
        self._barred: dict[JobRecord, tuple[Reasons, Reasons]] = {}
        # Those of them whose reasons are to be told; and who is eligible, but taken by no
        # partition: nobody looks at them, however many there are.
        self._untold: dict[JobRecord, None] = {}
        self._hopeless: dict[JobRecord, None] = {}
        # Who may have to be shortened: the main scheduler leaves them out before it sorts.
        self._shorter: dict[JobRecord, None] = {}
        # The reason last told of each job, or array, and those who may have another one.
        self._told: dict[str, str] = {}
        self._reasoned: dict[str, JobRecord] = {}
        self._keys: dict[JobRecord, list[list[Any]]] = {}
        # Those of the entries that are in a reservation.
        self._reserved: dict[JobRecord, None] = {}

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def entries(self) -> list[Entry]:
        """The entries of the last test, or of the next one without newly eligible jobs."""
        if self._ordered is None:
            self._ordered = self._looked_at()
        return self._ordered

    def _looked_at(self, takes: Callable[[Entry], bool] | None = None) -> list[Entry]:
        """Those that are looked at, in their order; takes: says of each whether it is."""
        full, entries = self._full, self._entries
        if full:
            entries = [entry for entry in entries if entry.job.request.array_id not in full]
        if takes is not None:
            entries = [entry for entry in entries if takes(entry)]
        return entries if self._order is None else self._order(entries)

    @property
    def numbers(self) -> array[int]:
        """The numbers of the jobs of `entries`, from 0 on, to be read at once."""
        entries = self.entries
        return self._numbers if entries is self._entries else self._numbers_of(entries)

    def _numbers_of(self, entries: list[Entry]) -> array[int]:
        return array("q", [job.number - self._first for _, _, job in entries])

    @property
    def settled(self) -> bool:
        """Whether building it again, without any change, leaves all reasons to wait as they are."""
        return not (self._reasoned or self._untold or self._limited or self._reserved)

    def add(self, job: JobRecord) -> None:
        """A job waits; it is looked at when it is eligible."""
        self.jobs[job] = None
        self._apart[job] = None

    def bar(self, job: JobRecord, reasons: Reasons, whole: Reasons) -> None:
        """Some partitions do not take a `job`, for `reasons`; None: one does.

        whole: the same for the main scheduler, which counts the whole limit of a job.
        """
        self._barred[job] = reasons, whole

    def expect(self, job: JobRecord, now: int) -> None:
        """A job has just been submitted, and may have to wait for something else than nodes.

        Of an array only whether it is held is looked at then.
        """
        waits = job.begin_s > now or job.request.dependency or job.reservation
        if job.held or (waits and job.request.array is None):
            self._waits_for(job, now)

    def waits_because(self, job: JobRecord, reason: str) -> None:
        """A job waits for a reason that is told when the queue is built the next time."""
        job.wait_for(reason)
        name = job.request.array_id
        if reason not in PLAIN and self._told.get(name) != reason:
            self._reasoned[name] = job

    def waits_for_array(self, job: JobRecord) -> None:
        """As many tasks of a job's array run as may at once: its others are not eligible."""
        self.waits_because(job, ARRAY_LIMIT)
        for task in self._ageless.get(job.request.array_id, ()):
            task.set_eligible(None)

    def again(self, job: JobRecord) -> None:
        """A job begins anew: nothing is told of it yet."""
        self._told.pop(job.request.array_id, None)

    def remove(self, job: JobRecord) -> None:
        """A job waits no more."""
        del self.jobs[job]
        if job in self._apart:
            del self._apart[job]
        else:
            self._take_out(job)
        if self._barred:
            self._barred.pop(job, None)
        if self._ageless:
            self._ageless.get(job.request.array_id, {}).pop(job, None)

    def sort(self) -> None:
        """Put all entries in the order of new priorities."""
        unsorted = self._entries
        for key, which, job in unsorted:
            key[PRIORITY] = -int(job.priorities[which])
        found = sorted(unsorted)  # their order hardly changes
        self._entries, self._ordered = found, None
        if any(map(is_not, found, unsorted)):
            self._numbers = self._numbers_of(found)
            self.version += 1

    def hold(self, job: JobRecord, held: bool) -> None:
        """A job is held or released."""
        job.hold(held)
        if job in self.jobs:
            self._put_apart(job)

    def give_up(self, job: JobRecord, reason: str) -> None:
        """A job will never be looked at again."""
        self.waits_because(job, reason)
        self._put_apart(job)

    def test_dependencies(self, now: int) -> None:
        """Find, at `now`, jobs whose dependencies are never fulfilled, also if they are held."""
        for job in self._apart:
            open_to = job.request.dependency and job.reason not in FOR_EVER
            if open_to and self._dependencies(job, now) == NEVER:
                self.waits_because(job, NEVER_SATISFIED)

    def _put_apart(self, job: JobRecord) -> None:
        if job not in self._apart:
            self._take_out(job)
            self._apart[job] = None

    def build(self, now: int, *, whole: bool = False) -> list[Entry]:
        """Return the queue for a test at `now`, with the jobs that have become eligible.

        whole: whether the main scheduler asks.
        """
        if self._reasoned:
            self._tell_reasons(now)
        if self._ageless:
            self._begin_ages(now)
        if self._apart:
            tests = whole and self._tests_first
            for job in [job for job in self._apart if self._eligible(job, now, tests=tests)]:
                del self._apart[job]
                self._put_in(job)
        if self._untold:
            self._look_at_barred(now, whole=whole)
        if self._reserved:
            self._end_reservations(now)
        if self._limited:
            self._look_at_arrays()
        if whole and self._shorter:
            return self._looked_at(self._is_taken)
        return self.entries if self._ordered is None else self._ordered

    def _is_taken(self, entry: Entry) -> bool:
        return entry.job not in self._shorter or self._takes_whole(entry)

    def _begin_ages(self, now: int) -> None:
        """The age of tasks counts from when the limit of their array lets them be looked at.

        That is noted when the queue is built the next time, if they wait for the limit no more.
        """
        for name, tasks in list(self._ageless.items()):
            first = next(iter(tasks), None)
            if first is not None and first.eligible_s is None:
                if not self._is_full(first):
                    for task in tasks:
                        task.set_eligible(now)
                continue
            del self._ageless[name]
            for task in tasks:
                assert task.eligible_s is not None
                self._tell_eligible(task, task.eligible_s)

    def _look_at_arrays(self) -> None:
        full = set()
        for name, tasks in self._limited.items():
            first = next(iter(tasks))
            if self._is_full(first):
                full.add(name)
                if first.reason != ARRAY_LIMIT:
                    self.waits_for_array(first)
        if full != self._full:
            self._full, self._ordered = full, None
            self.version += 1

    def _end_reservations(self, now: int) -> None:
        """Drop jobs that wait in a reservation that is over."""
        for job in [job for job in self._reserved if self._waits_for(job, now)]:
            self._put_apart(job)

    def _look_at_barred(self, now: int, *, whole: bool) -> None:
        """Each partition of a job is looked at in turn, and a reason that is new is a change."""
        fresh, settled = False, []
        for job in self._untold:
            if _has_limit(job) and self._is_full(job):
                continue  # that is found before, and nothing else is looked at
            least, most = self._barred[job]
            for reason in most if whole else least:
                if reason != job.reason and (reason is not None or job.reason in _OF_PARTITIONS):
                    fresh = True
                    self.waits_because(job, reason or "None")
            if least == most and len(least) == 1:
                settled.append(job)  # nobody gives it another one
        for job in settled:
            del self._untold[job]
        if fresh:
            self._tell_changed(now)

    def _put_in(self, job: JobRecord) -> None:
        if self._barred and job in self._barred:
            self._untold[job] = None
            least, most = self._barred[job]
            if all(least):
                self._hopeless[job] = None
                return
            if least != most:
                self._shorter[job] = None
        self.came.append(job)
        self._keys[job] = keys = _keys(job)
        if job.reservation is not None:
            self._reserved[job] = None
        for key in keys:
            place = bisect_left(self._entries, (key,))
            self._entries.insert(place, _entry((key, key[WHICH], job)))
            self._numbers.insert(place, job.number - self._first)
        if _has_limit(job):
            self._limited.setdefault(job.request.array_id, {})[job] = None
        self._ordered = None
        self.version += 1

    def _take_out(self, job: JobRecord) -> None:
        if self._untold:
            self._untold.pop(job, None)
        if self._hopeless and job in self._hopeless:
            del self._hopeless[job]
            return
        for some in (self._shorter, self._reserved):
            if some:
                some.pop(job, None)
        if self._limited and _has_limit(job):
            tasks = self._limited[job.request.array_id]
            del tasks[job]
            if not tasks:
                del self._limited[job.request.array_id]
        for key in self._keys.pop(job):
            place = bisect_left(self._entries, (key,))
            del self._entries[place], self._numbers[place]
        self._ordered = None
        self.version += 1

    def _tell_reasons(self, now: int) -> None:
        fresh = False
        for name, job in self._reasoned.items():
            if job.state == PENDING and job.reason not in PLAIN:
                fresh |= self._told.get(name) != job.reason
                self._told[name] = job.reason
        self._reasoned.clear()
        if fresh:
            self._tell_changed(now)

    def _waits_for(self, job: JobRecord, now: int) -> bool:
        """Whether a job waits for something else than nodes; its reason is set if so."""
        reason = None
        if job.held and job.reason == NEVER_SATISFIED:
            self.waits_because(job, HELD_ADMIN)
            self._tell_changed(now)
        if job.reason in FOR_EVER:
            return True  # whatever is known of others later
        if job.held:
            reason = HELD if job.reason != HELD_ADMIN else HELD_ADMIN
        elif (state := self._dependencies(job, now)) != READY:
            reason = DEPENDENCY if state == WAITING else NEVER_SATISFIED
        elif job.begin_s > now:
            reason = BEGIN
        elif job.reservation is not None and not job.reservation.is_open(now):
            reason = RESERVATION
        if reason is not None and reason != job.reason:
            self.waits_because(job, reason)
        return reason is not None

    def _eligible(self, job: JobRecord, now: int, *, tests: bool) -> bool:
        """Whether a job may be looked at; its reason is set if not.

        tests: whether that was tested before the pass, so that its age counts whatever follows.
        """
        if job.state != PENDING or self._waits_for(job, now):
            return False
        if job.eligible_s is None:
            job.set_eligible(since_s := now if _is_found_now(job) else job.begin_s)
            if _has_limit(job) and not tests:
                self._ageless.setdefault(job.request.array_id, {})[job] = None
            else:
                self._tell_eligible(job, since_s)
        if job.reason == BEGIN or job.reason in _WAITED:
            job.wait_for("None")
        return True


def _has_limit(job: JobRecord) -> bool:
    """Whether only some tasks of the job's array may run at once."""
    return job.request.array is not None and job.request.array.at_most is not None


def _is_found_now(job: JobRecord) -> bool:
    """Whether a job is eligible from the date on at which that is found.

    So it is for who waited, but for a date, and for arrays: nobody looks when they are submitted.
    """
    if job.reason in _WAITED:
        return True
    return job.request.array is not None and job.reason != BEGIN


def _keys(job: JobRecord) -> list[list[Any]]:
    """The places of a job: reservation, tier, priority, submission, array ..."""
    array = job.request.array
    index, free = 0 if array is None else array.index, job.reservation is None
    keys: list[list[Any]] = []
    for which, partition in enumerate(job.partitions):
        first = free, -partition.tier, -int(job.priorities[which])
        key = [*first, job.submit_s, job.place, index, job.number, which]
        likes = job.request.prefer is not None
        keys += [[*key, LIKED], [*key, PLAIN_FEATURES]] if likes else [key]
    return keys
