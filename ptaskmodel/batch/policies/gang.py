"""Gang scheduling: jobs take turns on the hosts, all hosts of a job at once.

Source: Ousterhout, "Scheduling techniques for concurrent systems", ICDCS 1982: a matrix has a
column for each host and a row for each turn. A job has cells of one row, and the rows run one after
the other for a slice of time each.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import floor, inf

from ptaskmodel.batch.loop.decisions import Decision, Resume, Start, Suspend, Wake
from ptaskmodel.batch.loop.view import View
from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.batch.policies.orders import Order
from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.jobs import Job

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
