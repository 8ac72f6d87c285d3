"""Processes of this machine that make runs: kept warm, and replaced when one dies.

A run whose worker dies is tried once more, by another; if that dies too the run has failed, and the
others go on. So does a run that takes longer than it may: its worker is killed.
"""

from __future__ import annotations

import collections
import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from ptaskmodel.campaign.plan import Plan, Run
from ptaskmodel.campaign.store import FAILED, Store
from ptaskmodel.campaign.worker import LAST_WORDS, serve

# Told of each run that was made: it, DONE or FAILED, its seconds, what went wrong.
Tell = Callable[[Run, str, float, str | None], None]
TRIES = 2
# How long a worker may take to end once nothing more comes, s.
GRACE_S = 5.0


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    calls: Connection
    log: Path
    run: Run | None = None
    began: float = 0.0


class Pool:
    """Makes runs of a plan on so many processes."""

    def __init__(self, plan: Plan, store: Store, processes: int) -> None:
        self._plan = plan
        self._store = store
        self._count = processes
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []
        self._started = 0

    def make(self, runs: Iterable[Run], tell: Tell) -> None:
        """Make runs; each is kept by who made it, then told."""
        waiting = collections.deque(runs)
        tries: collections.Counter[str] = collections.Counter()
        try:
            while waiting or any(worker.run is not None for worker in self._workers):
                self._hand_out(waiting, tries)
                for worker in self._those_that_said_something():
                    self._hear(worker, waiting, tries, tell)
        finally:
            self._stop()

    def _hand_out(self, waiting: collections.deque[Run], tries: collections.Counter[str]) -> None:
        idle = [worker for worker in self._workers if worker.run is None]
        while waiting and (idle or len(self._workers) < self._count):
            worker = idle.pop() if idle else self._new()
            run = waiting.popleft()
            tries[run.id] += 1
            worker.run, worker.began = run, time.monotonic()
            with contextlib.suppress(OSError):  # it is dead, which its sentinel says too
                worker.calls.send((run.id, dict(run.parameters), run.repetition))

    def _new(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        self._started += 1
        log = self._store.log(self._started)
        arguments = (
            theirs, str(self._store.directory), self._plan.kind.name, str(self._plan.folder),
            str(log), self._plan.memory_MB,
        )  # fmt: skip
        process = self._context.Process(target=serve, args=arguments, daemon=True)
        process.start()
        theirs.close()
        worker = _Worker(process, ours, log)
        self._workers.append(worker)
        return worker

    def _those_that_said_something(self) -> list[_Worker]:
        """Wait until some worker has made its run, died or taken too long."""
        limit = self._plan.timeout_s
        busy = [worker for worker in self._workers if worker.run is not None]
        left = None
        if limit is not None and busy:
            left = max(0.0, min(worker.began for worker in busy) + limit - time.monotonic())
        ends: dict[Connection | int, _Worker] = {}
        for worker in busy:
            ends[worker.calls] = ends[worker.process.sentinel] = worker
        found = {id(ends[end]): ends[end] for end in wait(list(ends), left)}  # type: ignore[index]
        if limit is not None:
            late = [worker for worker in busy if worker.began + limit <= time.monotonic()]
            found |= {id(worker): worker for worker in late}
        return list(found.values())

    def _hear(
        self,
        worker: _Worker,
        waiting: collections.deque[Run],
        tries: collections.Counter[str],
        tell: Tell,
    ) -> None:
        """Take what a worker said, or see what became of it."""
        run = worker.run
        if run is None:
            return
        try:
            if worker.calls.poll():
                _, status, seconds, error = worker.calls.recv()
                worker.run = None
                tell(run, status, seconds, error)
                return
        except (EOFError, OSError):
            pass
        took = time.monotonic() - worker.began
        limit = self._plan.timeout_s
        late = limit is not None and took >= limit
        self._discard(worker, 0.0 if late else GRACE_S)  # to learn how it died
        kept = self._store.read(run.id)
        if kept is not None and kept["status"] != FAILED:  # made, and died before it said so
            tell(run, kept["status"], kept["wall_s"], None)
        elif late:
            self._fail(run, worker, took, f"took longer than timeout_s = {limit:g}", tell)
        elif tries[run.id] < TRIES:
            waiting.append(run)
        else:
            code = worker.process.exitcode or 0
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            self._fail(run, worker, took, f"its process died twice ({how})", tell)

    def _fail(self, run: Run, worker: _Worker, took_s: float, error: str, tell: Tell) -> None:
        log = worker.log.read_text(encoding="utf-8", errors="replace")[-LAST_WORDS:]
        record = {
            "id": run.id, "run": self._plan.kind.name, "parameters": dict(run.parameters),
            "repetition": run.repetition, "status": FAILED, "error": error, "log": log,
            "wall_s": took_s,
        }  # fmt: skip
        self._store.write(run.id, record)
        tell(run, FAILED, took_s, error)

    def _discard(self, worker: _Worker, grace_s: float = 0.0) -> None:
        worker.process.join(grace_s)
        worker.process.kill()
        worker.process.join()
        worker.calls.close()
        self._workers.remove(worker)

    def _stop(self) -> None:
        """End the workers: those idle go by themselves when nobody is at the other end."""
        for worker in self._workers:
            if worker.run is not None:
                worker.process.kill()
            worker.calls.close()
        for worker in self._workers:
            worker.process.join(GRACE_S)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            if worker.log.exists() and worker.log.stat().st_size == 0:
                worker.log.unlink()
        self._workers.clear()


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))
