"""Checkpoints of jobs that are parallel tasks: their completed work, and when each job writes."""

from __future__ import annotations

import heapq
from math import inf
from typing import NamedTuple

from ptaskmodel.batch.jobs.checkpoints import Checkpointing
from ptaskmodel.batch.jobs.execution import Attempt, run_s
from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.jobs import Job
from ptaskmodel.workload.works import Bound, SequenceWork, Steps

WORKS, READS, WRITES = "works", "reads", "writes"


class Done(NamedTuple):
    """How far a job is: steps behind it, and which part of each task of the current one is done."""

    steps: int = 0
    parts: tuple[float, ...] = ()


class Writer:
    """An attempt, what it does until when, and what its checkpoints hold.

    since_s: for how long it had run when it began to do that. overhead_s: how long it read and
    wrote before. leaves: it ends once it has written.
    """

    __slots__ = (
        "attempt",
        "doing",
        "due_s",
        "leaves",
        "overhead_s",
        "pending",
        "since_s",
        "work_s",
    )

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.doing = WORKS
        self.due_s = inf
        self.since_s = 0.0
        self.overhead_s = 0.0
        self.leaves = False
        self.pending = Done()
        self.work_s = 0.0  # of the checkpoint being written


class Checkpoints:
    """When the attempts of parallel tasks read, write and work; those of one date come in order.

    law: of checkpoints; None: no attempt writes any.
    """

    def __init__(self, law: Checkpointing | None) -> None:
        self.law = law
        self._saved: dict[Job, Done] = {}
        self._writers: dict[int, Writer] = {}
        self._dates: list[tuple[float, int]] = []
        self._paused: dict[int, float] = {}

    def start(self, attempt: Attempt, steps: Steps, now: float) -> tuple[Done, bool]:
        """Return (what is done already, whether it is read first) of an attempt that starts `now`.

        steps: of its work.
        """
        if self.law is None:
            return Done(), False
        if any(isinstance(work, SequenceWork) for step in steps for _, work in step):
            raise SimulationError(
                f"job '{attempt.job.id}' runs a sequence: checkpoints are of delays and of "
                "parallel tasks of one stage"
            )
        writer = self._writers[attempt.number] = Writer(attempt)
        done = self._saved.get(attempt.job)
        if done is None:
            self._work(writer, now)
            return Done(), False
        if self.law.read_s == 0:
            self._work(writer, now)
            return done, False
        self._do(writer, READS, now, self.law.read_s)
        return done, True

    def _do(self, writer: Writer, what: str, now: float, seconds: float) -> None:
        writer.doing, writer.since_s = what, run_s(writer.attempt, now)
        self._plan(writer, now + seconds)

    def _plan(self, writer: Writer, date: float) -> None:
        writer.due_s = date
        if date < inf:
            heapq.heappush(self._dates, (date, writer.attempt.number))

    def _work(self, writer: Writer, now: float) -> None:
        assert self.law is not None
        self._do(writer, WORKS, now, self.law.interval_s(writer.attempt.job))

    def next_date(self) -> float:
        """Return when an attempt next begins or ends to read or write, s."""
        dates = self._dates
        while dates:
            writer = self._writers.get(dates[0][1])
            if writer is not None and writer.due_s == dates[0][0]:
                return dates[0][0]
            heapq.heappop(dates)
        return inf

    def take(self) -> Writer:
        """Whose date it is."""
        return self._writers[heapq.heappop(self._dates)[1]]

    def write(self, writer: Writer, done: Done, now: float) -> None:
        """The writer, which worked, writes how far it is."""
        assert self.law is not None
        writer.pending = done
        writer.work_s = run_s(writer.attempt, now) - writer.overhead_s
        self._do(writer, WRITES, now, self.law.write_s)

    def end_phase(self, writer: Writer, now: float) -> None:
        """It has read or written what it did, and works again."""
        if writer.doing == WRITES:
            self._saved[writer.attempt.job] = writer.pending
            writer.attempt.kept_s = writer.work_s
        writer.overhead_s += run_s(writer.attempt, now) - writer.since_s
        self._work(writer, now)

    def writer(self, attempt: Attempt) -> Writer | None:
        return self._writers.get(attempt.number)

    def leave_at_once(self, writer: Writer, now: float) -> None:
        """It has done nothing yet that could be kept."""
        self._do(writer, READS, now, 0.0)

    def pause(self, attempt: Attempt, now: float) -> None:
        """The attempt is suspended."""
        writer = self._writers.get(attempt.number)
        if writer is not None:
            self._paused[attempt.number] = writer.due_s - now
            writer.due_s = inf

    def resume(self, attempt: Attempt, now: float) -> bool:
        """The attempt is resumed; whether its tasks run (it neither reads nor writes)."""
        writer = self._writers.get(attempt.number)
        if writer is None:
            return True
        self._plan(writer, now + self._paused.pop(attempt.number))
        return writer.doing == WORKS

    def forget(self, attempt: Attempt, now: float) -> None:
        """The attempt is over."""
        writer = self._writers.pop(attempt.number, None)
        self._paused.pop(attempt.number, None)
        if writer is not None:
            attempt.overhead_s = writer.overhead_s
            if writer.doing != WORKS:
                attempt.overhead_s += run_s(attempt, now) - writer.since_s


def left_of(step: list[Bound], done: Done) -> list[Bound]:
    """The works of a step with what is done already left out; those that are all done too."""
    if not done.parts:
        return step
    return [
        (hosts, work.divided(1 / (1 - part), 1 / (1 - part)) if part > 0 else work)
        for (hosts, work), part in zip(step, done.parts, strict=True)
        if part < 1
    ]
