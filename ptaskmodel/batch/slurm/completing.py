"""Jobs that are over and whose nodes are not clean yet: no job can start there."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

from ptaskmodel.batch.hostset import Mask
from ptaskmodel.batch.slurm.record import JobRecord

# How long it takes at least until the nodes of a killed job are clean: a pass in the same turn of
# the main loop finds them completing.
KILL_S = 0.015
# How long an epilog takes at least: of jobs that end at one date each asks for a pass of its own
# when its nodes are clean, and those of the others are not yet.
EPILOG_S = 0.01
# In a recorded run, the pass that a killed job asks for comes so soon, and its nodes are clean just
# before.
SOON_S, BEFORE_S = 0.5, 1e-4


class Completing(NamedTuple):
    """A job that is over, and whose nodes are clean at a date.

    at_once: a pass is asked for then, at once. requeued: it begins anew.
    """

    date_s: float
    job: JobRecord
    at_once: bool
    requeued: bool


def nodes_of(job: JobRecord) -> Mask:
    """The nodes that a job has, or had."""
    return 0 if job.allocation is None else job.allocation.nodes


class Cleaning:
    """The jobs that are completing, by the date at which their nodes are clean.

    nodes: those on which processes of them are. cleaned: when the nodes of jobs were clean that
    took long in a recorded run; passed: when it made passes of default depth.
    """

    def __init__(self) -> None:
        self.nodes: Mask = 0
        self.cleaned: Mapping[str, float] = {}
        self.passed: Sequence[float] = ()
        self._jobs: list[Completing] = []

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def date(self) -> float:
        """When the next job gives its nodes back; inf: there is none."""
        return self._jobs[0].date_s if self._jobs else inf

    def date_of(self, job: JobRecord, date: float, clean_s: float, *, at_once: bool) -> float:
        """When the nodes of a job that is over at a date are clean, if that takes so long.

        at_once: whether it then asks for a pass of its own.
        """
        clean = date + clean_s
        if not at_once:
            return max(clean, self.cleaned.get(job.id, date))
        return self._as_told(date, clean) if self.passed else clean

    def _as_told(self, date: float, clean: float) -> float:
        """When the nodes of a job that is over now were clean, in a recorded run.

        Each of those that are over together asks for a pass of its own when its nodes are. Without
        any the nodes were clean at once, if there was a pass then.
        """
        before = sum(each.at_once for each in self._jobs)
        first = bisect_left(self.passed, date + KILL_S / 2)
        found = [each for each in self.passed[first : first + before + 1] if each < date + SOON_S]
        if not found:
            return date if first and self.passed[first - 1] >= date else clean
        last = found[-2] if len(found) > 1 else date
        return found[-1] - min(BEFORE_S, (found[-1] - last) / 2)

    def add(self, one: Completing) -> None:
        """A job is over, and its nodes are clean later."""
        insort(self._jobs, one, key=lambda each: each.date_s)
        self.nodes |= nodes_of(one.job)

    def pop(self) -> Completing:
        """The job whose nodes are clean first: they are now."""
        over = self._jobs.pop(0)
        self.nodes = 0
        for each in self._jobs:
            self.nodes |= nodes_of(each.job)
        return over

    def since(self, date_s: float) -> list[JobRecord]:
        """The jobs that are over since a date, Unix seconds."""
        return [each.job for each in self._jobs if each.job.end_s >= date_s]
