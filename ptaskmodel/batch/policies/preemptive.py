"""Policies that interrupt running jobs: priority preemption, and gang scheduling.

`Preemptive`: each priority is scheduled by EASY as if lower ones did not exist, on the hosts that
its own jobs and higher ones leave. If a job cannot start beside jobs of lower priority, some of
these are preempted. They are suspended and resume when their hosts are free again, or are requeued,
with or without a checkpoint, or are killed. Only jobs of higher priority may use the hosts of a
suspended job.

Victims are chosen as Slurm's select/linear does (see "Slurm's preemption" in its documentation).
Candidates are taken by lowest priority, then smallest, then oldest, until there is room. Then the
last of them is taken first and the others by decreasing size, until there is room again. Of these,
only those on the hosts that the allocation rule chooses are preempted.

`Gang`: jobs take turns on the hosts, all hosts of a job at once.
Source: Ousterhout, "Scheduling techniques for concurrent systems", ICDCS 1982: a matrix has a
column for each host and a row for each turn. A job has cells of one row, and the rows run one after
the other for a slice of time each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import floor, inf
from typing import Any

from ptaskmodel.batch.jobs.execution import RUNNING, Attempt
from ptaskmodel.batch.loop.decisions import Decision, Kill, Requeue, Resume, Start, Suspend, Wake
from ptaskmodel.batch.loop.view import View
from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.batch.policies import Order
from ptaskmodel.batch.policies.backfilling import Easy
from ptaskmodel.errors import SimulationError, shown
from ptaskmodel.workload.jobs import Job

MECHANISMS = ("suspend", "requeue", "checkpoint", "kill")
REASON = "preempted"


class Preemptive:
    """Jobs of a higher priority push those of a lower one aside; within one, EASY.

    The priority of a job (larger is higher) is 1 if it asks for at least ``large`` hosts and 0
    otherwise, or the number in its ``field`` (a field of the job in a Batsim workload; 0 without
    it), or what the function ``priority`` says. mechanism: what becomes of victims: they are
    "suspend"ed, "requeue"d to begin anew, write a "checkpoint" and are requeued then (the others
    wait for that), or are "kill"ed for good. order: of the jobs of one priority.
    """

    def __init__(
        self,
        large: int = 0,
        field: str = "",
        mechanism: str = "suspend",
        *,
        priority: Callable[[Job], float] | None = None,
        order: Order | None = None,
    ) -> None:
        if sum((large != 0, field != "", priority is not None)) != 1:
            raise SimulationError("preemptive: give either large=HOSTS or field=NAME")
        if large < 0:
            raise SimulationError(f"preemptive: large is {large}: it must be 1 or more hosts")
        if mechanism not in MECHANISMS:
            raise SimulationError(
                f"preemptive: mechanism {shown(mechanism)} is unknown; use one of "
                f"{', '.join(MECHANISMS)}"
            )
        self.order = order
        self.mechanism = mechanism
        self.preempted = 0
        self._large = large
        self._field = field
        self._of = priority or (self._by_size if large else self._by_field)
        self._claims: dict[Job, Mask] = {}
        self._easy = Easy()

    def _by_size(self, job: Job) -> float:
        return 1.0 if job.num_hosts >= self._large else 0.0

    def _by_field(self, job: Job) -> float:
        value = job.extra.get(self._field, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < inf:
            raise SimulationError(
                f"job '{job.id}': its field '{self._field[:60]}' is {shown(value)}; give a number"
            )
        return float(value)

    def decide(self, view: View) -> Iterator[Decision]:
        self._forget_claims(view)
        waiting: dict[float, list[Job]] = {}
        for job in view.queue:
            waiting.setdefault(self._of(job), []).append(job)
        suspended = {self._of(attempt.job) for attempt in view.suspended}
        for level in sorted(waiting.keys() | suspended, reverse=True):
            yield from self._resume(view, level)
            jobs = []
            for job in waiting.get(level, []):
                if job in self._claims:
                    yield from self._take_claim(job, view)
                else:
                    jobs.append(job)
            if not jobs:
                continue
            if any(self._of(attempt.job) < level for attempt in view.running):
                yield from self._push_aside(view, level, jobs)
            else:
                yield from self._easy.decide(self._left_over(view, level, jobs))

    def _resume(self, view: View, level: float) -> Iterator[Decision]:
        """Resume those of a level whose hosts are free again."""
        claimed = self._claimed(level)
        for attempt in view.suspended:
            mine = self._of(attempt.job) == level
            if mine and not attempt.mask & claimed and view.can_resume(attempt):
                yield Resume(attempt.job)

    def _left_over(self, view: View, level: float, jobs: Sequence[Job]) -> View:
        """The hosts that no suspended job and no claim keeps, for the lowest level."""
        held = self._claimed(level)
        for attempt in view.suspended:
            held |= attempt.mask
        if not held and len(jobs) == len(view.queue):
            return view
        return view.part(view.working_mask & ~held, queue=jobs)

    # --- claims: places that victims are about to leave ---------------------------------------

    def _forget_claims(self, view: View) -> None:
        """Drop claims of jobs that left the queue, and claims on hosts that another job has."""
        if not self._claims:
            return
        gone = ~view.available_mask
        for attempt in view.running:
            if attempt.state == RUNNING:
                gone |= attempt.mask
        self._claims = {
            job: place
            for job, place in self._claims.items()
            if view.is_waiting(job) and not place & gone
        }

    def _claimed(self, level: float) -> Mask:
        """The places kept for jobs of this level and above."""
        found = 0
        for job, place in self._claims.items():
            if self._of(job) >= level:
                found |= place
        return found

    def _take_claim(self, job: Job, view: View) -> Iterator[Decision]:
        place = self._claims[job]
        if not place & ~view.candidates(job):
            del self._claims[job]
            yield Start(job, place)

    # --- one level, with others below it ------------------------------------------------------

    def _push_aside(self, view: View, level: float, jobs: Sequence[Job]) -> Iterator[Decision]:
        """EASY for jobs of one level on what the levels below would leave."""
        waiting = iter(jobs)
        for head in waiting:
            room = self._candidates(view, head, self._without_those_below(view, level))
            place = self._place(view, level, head, room)
            if place is None:
                break
            yield from self._start(view, level, head, place)
        else:
            return
        reservation = self._reservation(view, level, head)
        for job in waiting:
            room = self._candidates(view, job, self._without_those_below(view, level))
            short = reservation is None or view.now + view.estimate_s(job) <= reservation[0] < inf
            if reservation is not None and not short:
                room &= view.space.candidates(reservation[1], job)
            place = self._place(view, level, job, room)
            if place is None:
                continue
            if reservation is not None and not short:
                reservation = reservation[0], view.space.taken(reservation[1], job, place)
            yield from self._start(view, level, job, place)

    def _kept_for_level(self, view: View, level: float) -> Any:
        """What is free now and not kept for a job of this level or above."""
        space, free = view.space, view.free_value
        for attempt in view.suspended:
            if self._of(attempt.job) >= level:
                free = space.resumed(free, attempt.job, attempt.mask, attempt.cores)
        return space.closed(free, self._claimed(level))

    def _without_those_below(self, view: View, level: float) -> Any:
        """What would be free if no job below the level ran."""
        free = self._kept_for_level(view, level)
        for attempt in view.running:
            if self._of(attempt.job) < level:
                free = self._freed(view, free, attempt)
        return free

    def _freed(self, view: View, free: Any, attempt: Attempt) -> Any:
        """What is free once a victim has made way."""
        space, job = view.space, attempt.job
        free = space.given(free, job, attempt.mask, attempt.cores)
        if self.mechanism == "suspend":
            free = space.kept(free, job, attempt.mask, attempt.cores)
        return free

    def _candidates(self, view: View, job: Job, free: Any) -> Mask:
        """The hosts on which a job could be now, if this were free."""
        usable = view.available_mask & view.usable(view.now, view.now + view.estimate_s(job))
        return view.space.candidates(free, job) & usable

    def _place(self, view: View, level: float, job: Job, room: Mask) -> Mask | None:
        """Where a job can start within the hosts ``room``, beside those below it if possible."""
        if room.bit_count() < job.num_hosts:
            return None
        free = self._kept_for_level(view, level)
        beside = self._choose(view, job, free, room)
        if beside is not None:
            return beside
        below = [attempt for attempt in view.running if self._of(attempt.job) < level]
        # Who is about to leave anyway comes first.
        below.sort(key=lambda a: (a.state == RUNNING, self._of(a.job), a.job.num_hosts, a.number))
        first = self._enough(view, job, free, room, below)
        if first is None:
            return None
        *others, last = first[0]
        others.sort(key=lambda a: (a.state == RUNNING, -a.job.num_hosts, a.number))
        again = self._enough(view, job, free, room, [last, *others])
        return None if again is None else again[1]

    def _choose(self, view: View, job: Job, free: Any, room: Mask) -> Mask | None:
        hosts = self._candidates(view, job, free) & room
        enough = hosts.bit_count() >= job.num_hosts
        return view.allocation.choose(job.num_hosts, hosts) if enough else None

    def _enough(
        self, view: View, job: Job, free: Any, room: Mask, victims: Sequence[Attempt]
    ) -> tuple[list[Attempt], Mask] | None:
        """The first so many of the victims that make room, and the place; None: not even all."""
        for k, victim in enumerate(victims):
            free = self._freed(view, free, victim)
            place = self._choose(view, job, free, room)
            if place is not None:
                return list(victims[: k + 1]), place
        return None

    def _start(self, view: View, level: float, job: Job, place: Mask) -> Iterator[Decision]:
        """Push aside those in the way of a place, and start there, or claim it."""
        below = [a for a in view.running if a.mask & place and self._of(a.job) < level]
        for victim in self._needed(view, level, job, place, below):
            self.preempted += 1
            yield self._decision(victim.job)
        if place & ~view.candidates(job):
            self._claims[job] = place
        else:
            yield Start(job, place)

    def _needed(
        self, view: View, level: float, job: Job, place: Mask, below: Sequence[Attempt]
    ) -> list[Attempt]:
        """Those without whose going the job has no room there (cores may be free beside some)."""
        needed = [attempt for attempt in below if attempt.state == RUNNING]
        leaving = [attempt for attempt in below if attempt.state != RUNNING]
        for spared in tuple(needed):
            free = self._kept_for_level(view, level)
            for attempt in (*leaving, *needed):
                if attempt is not spared:
                    free = self._freed(view, free, attempt)
            if not place & ~view.space.candidates(free, job):
                needed.remove(spared)
        return needed

    def _decision(self, job: Job) -> Decision:
        if self.mechanism == "suspend":
            return Suspend(job)
        if self.mechanism == "kill":
            return Kill(job, REASON)
        return Requeue(job, REASON, checkpoint=self.mechanism == "checkpoint")

    def _reservation(self, view: View, level: float, head: Job) -> tuple[float, Any] | None:
        """When the first job that does not fit will fit, if no lower job runs; what is free beside
        it.

        None: this cannot be predicted.
        """
        space, free = view.space, self._without_those_below(view, level)
        above = [a for a in view.by_expected_end if self._of(a.job) >= level]
        dates = {attempt.expected_end_s for attempt in above}
        k = 0
        for date in sorted(dates.union(window.end_s for window in view.maintenance)):
            while k < len(above) and above[k].expected_end_s <= date:
                attempt = above[k]
                free = space.given(free, attempt.job, attempt.mask, attempt.cores)
                k += 1
            hosts = space.candidates(free, head) & view.usable(date, date + view.estimate_s(head))
            if hosts.bit_count() >= head.num_hosts:
                place = view.allocation.choose(head.num_hosts, hosts)
                if place is not None:
                    return date, space.taken(free, head, place)
        return None


Row = dict[Job, Mask]


class Gang:
    """Jobs get cells of the first row with room, in the order of the queue, and rows take turns.

    slice: how long a turn lasts, s; turns end at its multiples. rows: how many there may be; a job
    for which no row has room waits for one, and all behind it. fill: whether jobs of other rows run
    on hosts that the row whose turn it is leaves idle (1) or not (0). Search begins with the row
    whose turn it is. A row that empties is given up at once, and the next takes its turn. Jobs get
    whole hosts.
    """

    def __init__(
        self, slice: float = 600.0, rows: int = 4, fill: int = 1, *, order: Order | None = None
    ) -> None:
        if not 0 < slice < inf:
            raise SimulationError(f"gang: slice is {slice:g} s: it must be positive and finite")
        if rows < 1:
            raise SimulationError(f"gang: rows is {rows}: there must be 1 or more")
        if fill not in (0, 1):
            raise SimulationError(f"gang: fill is {fill}; use 0 or 1")
        self.order = order
        self.slice_s = float(slice)
        self._max_rows = rows
        self._fill = fill
        self._rows: list[Row] = []
        self._turn = 0  # the row whose turn it is
        self._turn_end_s = inf
        self._woken_s = -inf

    def decide(self, view: View) -> Iterator[Decision]:
        if view.counted:
            raise SimulationError(
                "gang shares whole hosts, and some job asks for cores, memory or licences; leave "
                "them out, or use preemptive, which suspends such jobs too"
            )
        over = self._drop_those_over(view)
        self._enter(view)
        if self._rows:
            next_one = view.now >= self._turn_end_s and not over
            self._turn = (self._turn + next_one) % len(self._rows)
        yield from self._run(view)
        if len(self._rows) < 2:
            self._turn_end_s = inf
            return
        if not view.now < self._turn_end_s < inf:
            self._turn_end_s = self._next_end(view.now)
        if self._woken_s != self._turn_end_s:
            self._woken_s = self._turn_end_s
            yield Wake(self._turn_end_s)

    def _next_end(self, now: float) -> float:
        """The first multiple of the slice after a date."""
        end = (floor(now / self.slice_s) + 1) * self.slice_s
        return end if end > now else now + self.slice_s

    def _drop_those_over(self, view: View) -> bool:
        """Remove jobs that no longer run from the matrix, and jobs that never started.

        Return True if nothing is left of the row whose turn it was: the turn of the next has begun
        then.
        """
        left = [
            {job: place for job, place in row.items() if view.attempt(job) is not None}
            for row in self._rows
        ]
        over = bool(left) and not left[self._turn]
        self._turn -= sum(not row for row in left[: self._turn])
        self._rows = [row for row in left if row]
        if self._turn >= len(self._rows):
            self._turn = 0
        return over

    def _enter(self, view: View) -> None:
        """Give waiting jobs cells, until one has to wait."""
        free = [view.available_mask & ~_cells(row) for row in self._rows]
        for job in view.queue:
            rows = [(self._turn + k) % len(free) for k in range(len(free))]
            if len(free) < self._max_rows:
                rows.append(len(free))
            for k in rows:
                room = free[k] if k < len(free) else view.available_mask
                room &= view.usable(view.now, view.now + view.estimate_s(job))
                enough = room.bit_count() >= job.num_hosts
                place = view.allocation.choose(job.num_hosts, room) if enough else None
                if place is not None:
                    break
            else:
                return
            if k == len(free):
                free.append(view.available_mask)
                self._rows.append({})
            free[k] &= ~place
            self._rows[k][job] = place

    def _run(self, view: View) -> Iterator[Decision]:
        """Let the row run whose turn it is, and others on what it leaves."""
        chosen: Row = {}
        busy = 0
        for k in range(len(self._rows) if self._fill else min(1, len(self._rows))):
            for job, place in self._rows[(self._turn + k) % len(self._rows)].items():
                if not place & busy:
                    chosen[job] = place
                    busy |= place
        for attempt in view.running:
            if attempt.job not in chosen:
                yield Suspend(attempt.job)
        for attempt in view.suspended:
            if attempt.job in chosen and view.can_resume(attempt):
                yield Resume(attempt.job)
        for job, place in chosen.items():
            if view.is_waiting(job) and not place & ~view.candidates(job):
                yield Start(job, place)


def _cells(row: Row) -> Mask:
    found = 0
    for place in row.values():
        found |= place
    return found
