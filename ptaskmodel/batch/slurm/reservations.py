"""Advance reservations: nodes set apart for some, or for maintenance, over some time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from ptaskmodel.batch.hostset import Mask
from ptaskmodel.batch.slurm.record import JobRecord


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes in [start_s, end_s), whole Unix seconds, for some users or accounts, or nobody."""

    name: str
    start_s: int
    end_s: int
    nodes: Mask
    users: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()

    def admits(self, job: JobRecord) -> bool:
        """Whether a job may use it."""
        request = job.request
        return request.user in self.users or request.account in self.accounts


class Reserved:
    """The advance reservations of a run."""

    def __init__(self, reservations: Sequence[Reservation] = (), step_s: int = 60) -> None:
        self._all = sorted(reservations, key=lambda reservation: reservation.start_s)
        self._by_name = {reservation.name: reservation for reservation in reservations}
        self._step = step_s

    @property
    def over_s(self) -> float:
        """When the last of them ends, Unix seconds; 0: there are none."""
        return max((one.end_s for one in self._all), default=0)

    @property
    def empty(self) -> bool:
        """Whether there are none."""
        return not self._all

    def allowed(
        self, job: JobRecord, begin: float, end: float, nodes: Mask
    ) -> tuple[Mask, str | None]:
        """Those of some nodes that a job may hold in [begin, end), and a reason if some are not."""
        if not self._all:
            return nodes, None
        mine = self._by_name.get(job.request.reservation or "")
        if mine is not None:
            if not mine.start_s <= begin < mine.end_s or not mine.admits(job):
                return 0, "Reservation"
            return nodes & mine.nodes, None
        left = nodes
        for reservation in self._all:
            if reservation.start_s < end and reservation.end_s > begin:
                left &= ~reservation.nodes
        return left, None if left == nodes else "ReqNodeNotAvail"

    def from_date(
        self, job: JobRecord, date: float, lasts: float, nodes: Mask
    ) -> tuple[float, Mask, int | None]:
        """From which date, not before another, what nodes; and when a reservation will be over."""
        if not self._all:
            return date, nodes, None
        mine = self._by_name.get(job.request.reservation or "")
        if mine is not None:
            start = max(date, mine.start_s)
            return start, nodes & mine.nodes if mine.admits(job) else 0, None
        left, _ = self.allowed(job, date, date + lasts, nodes)
        over = [
            ceil(reservation.end_s / self._step) * self._step + 1
            for reservation in self._all
            if reservation.start_s < date + lasts and reservation.end_s > date
        ]
        return date, left, min(over, default=None)
