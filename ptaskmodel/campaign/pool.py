"""Processes of this machine that make runs: kept warm, and replaced when one dies.

A run whose worker dies is tried once more, by another; if that dies too the run has failed, and the
others go on. So does a run that takes longer than it may: its worker is killed.
"""

from __future__ import annotations

import collections
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any

from ptaskmodel.campaign.maker import (
    GRACE_S,
    Maker,
    MakerDiedError,
    died,
    failed,
    order_of,
    too_long,
)
from ptaskmodel.campaign.plan import Plan, Run
from ptaskmodel.campaign.records import FAILED
from ptaskmodel.campaign.store import Store
from ptaskmodel.campaign.worker import Call

# Told of each run that was made: it, DONE or FAILED, its seconds, what went wrong.
Tell = Callable[[Run, str, float, str | None], None]
TRIES = 2


@dataclass(slots=True, eq=False)
class _Worker:
    maker: Maker
    run: Run | None = None
    sent_at: float = 0.0

    def since(self) -> float:
        """When it began with its run; infinity if it is not ready yet."""
        ready_at = self.maker.ready_at
        return math.inf if ready_at is None else max(self.sent_at, ready_at)


class Pool:
    """Makes runs of a plan on so many processes."""

    def __init__(self, plan: Plan, store: Store, processes: int) -> None:
        self._plan = plan
        self._store = store
        self._count = processes
        self._order = order_of(plan.kind.name, plan.folder, store.directory, plan.memory_MB)
        self._workers: list[_Worker] = []
        self._started = 0

    def make(self, runs: Iterable[Run], tell: Tell) -> None:
        """Make runs, asked for as workers are free; each is kept by who made it, then told."""
        coming = iter(runs)
        waiting: collections.deque[Run] = collections.deque()  # those tried before
        tries: collections.Counter[str] = collections.Counter()
        try:
            while self._hand_out(waiting, coming, tries):
                for worker in self._those_that_said_something():
                    self._hear(worker, waiting, tries, tell)
        finally:
            self._stop()

    def _hand_out(
        self,
        waiting: collections.deque[Run],
        coming: Iterator[Run],
        tries: collections.Counter[str],
    ) -> bool:
        """Give every worker a run, while there are some; whether any has one."""
        idle = [worker for worker in self._workers if worker.run is None]
        while idle or len(self._workers) < self._count:
            run = waiting.popleft() if waiting else next(coming, None)
            if run is None:
                break
            worker = idle.pop() if idle else self._new()
            tries[run.id] += 1
            worker.run, worker.sent_at = run, time.monotonic()
            worker.maker.send(call_of(run))
        return any(worker.run is not None for worker in self._workers)

    def _new(self) -> _Worker:
        self._started += 1
        worker = _Worker(Maker(self._order, self._store.log(self._started)))
        self._workers.append(worker)
        return worker

    def _those_that_said_something(self) -> list[_Worker]:
        """Wait until some worker has made its run, died or taken too long."""
        limit = self._plan.timeout_s
        busy = {w.maker.connection: w for w in self._workers if w.run is not None}
        left = None
        if limit is not None and busy:
            first = min(worker.since() for worker in busy.values())
            left = max(0.0, first + limit - time.monotonic()) if first < math.inf else None
        found = [busy[end] for end in wait(list(busy), left)]  # type: ignore[index]
        if limit is not None:
            late = [w for w in busy.values() if w.since() + limit <= time.monotonic()]
            found += [worker for worker in late if worker not in found]
        return found

    def _hear(
        self,
        worker: _Worker,
        waiting: collections.deque[Run],
        tries: collections.Counter[str],
        tell: Tell,
    ) -> None:
        """Take what a worker said, or see what became of it."""
        run, limit = worker.run, self._plan.timeout_s
        if run is None:
            return
        try:
            record = worker.maker.answer(0.0)
        except MakerDiedError as death:
            self._workers.remove(worker)
            kept = self._store.read(run.id)
            if kept is not None and kept["status"] != FAILED:  # made, and died before it said so
                tell_of(tell, run, kept)
            elif tries[run.id] < TRIES:
                waiting.append(run)
            else:
                self._fail(run, worker, died(death.how), death.log, tell)
            return
        if record is not None:
            worker.run = None
            tell_of(tell, run, record)
        elif limit is not None and worker.since() + limit <= time.monotonic():
            self._workers.remove(worker)
            worker.maker.end()
            error = too_long(limit)
            self._fail(run, worker, error, worker.maker.last_words(), tell)

    def _fail(self, run: Run, worker: _Worker, error: str, log: str, tell: Tell) -> None:
        took_s = time.monotonic() - worker.sent_at
        record = failed(self._plan.kind.name, call_of(run), error, took_s, log)
        self._store.write(run.id, record)
        tell_of(tell, run, record)

    def _stop(self) -> None:
        """End the workers: those idle go by themselves when nobody is at the other end."""
        for worker in self._workers:
            worker.maker.end(0.0 if worker.run is not None else GRACE_S)
        self._workers.clear()


def call_of(run: Run) -> Call:
    """What a worker is told of a run."""
    return Call(run.id, dict(run.parameters), run.repetition)


def tell_of(tell: Tell, run: Run, record: Mapping[str, Any]) -> None:
    """Tell of a run what its record says."""
    tell(run, record["status"], record["wall_s"], record.get("error"))


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))
