"""Local processes that make the runs of a campaign, and what they run, one run after the other.

A run whose process dies is tried once more, by another process. If that dies too, the run has
failed, and the other runs continue. A run that exceeds its time limit fails: its process is killed.
`Maker` represents a process here; `serve` is what the process runs.
"""

from __future__ import annotations

import collections
import contextlib
import json
import math
import multiprocessing
import os
import platform
import queue
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

import ptaskmodel
from ptaskmodel import __version__
from ptaskmodel.campaign.plan import Plan, Run
from ptaskmodel.campaign.run_types import SERIES, Kind, kind_of, numbers_of
from ptaskmodel.campaign.store import DONE, FAILED, Store
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.remarks import listening

LAST_WORDS = 2000
# Said once, when the kind of runs is loaded.
READY = "ready"


def make(kind: Kind, run_id: str, parameters: Mapping[str, Any], repetition: int) -> dict[str, Any]:
    """Return the record of a run: its numbers, or why there are none.

    kind: what runs. run_id: its identity. parameters, repetition: of the run.
    """
    began, used = time.perf_counter(), time.process_time()
    record: dict[str, Any] = {
        "id": run_id,
        "run": kind.name,
        "parameters": dict(parameters),
        "repetition": repetition,
    }
    try:
        with listening():
            found = kind.run(parameters)
        record |= {"metrics": numbers_of(found)}
        if SERIES in found:
            json.dumps(found[SERIES], allow_nan=False)  # what cannot be kept fails here
            record |= {SERIES: found[SERIES]}
    except PTaskModelError as error:
        record |= {"status": FAILED, "error": str(error)}
    except MemoryError:
        record |= {
            "status": FAILED,
            "error": "out of memory; raise memory_MB, or make the run smaller",
        }
    except Exception as error:
        last = traceback.format_exc()[-LAST_WORDS:]
        record |= {"status": FAILED, "error": f"{type(error).__name__}: {error}", "log": last}
    else:
        record |= {"status": DONE}
    return record | {
        "wall_s": time.perf_counter() - began,
        "cpu_s": time.process_time() - used,
        "host": platform.node(),
        "version": __version__,
    }


class Order(NamedTuple):
    """What a worker is told first: the kind of its runs, and where they are kept.

    folder: that the kind's file is relative to. directory: of the campaign; None: records are only
    answered. path: where Python finds modules.
    """

    kind: str
    folder: str
    directory: str | None
    memory_MB: float | None
    path: tuple[str, ...]


class Call(NamedTuple):
    """A run to make."""

    id: str
    parameters: dict[str, Any]
    repetition: int


def serve(calls: Connection) -> None:
    """Make the runs that come by `calls`, after an order, until the other end is gone.

    Answers `READY` when the kind is loaded, then records.
    """
    order: Order = calls.recv()
    sys.path[:] = dict.fromkeys((*order.path, *sys.path))
    if order.memory_MB is not None:
        limit = int(order.memory_MB * 2**20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    store = None if order.directory is None else Store(order.directory)
    kind = kind_of(order.kind, (), Path(order.folder))
    waiting: queue.SimpleQueue[Call] = queue.SimpleQueue()
    calls.send(READY)
    threading.Thread(target=_listen, args=(calls, waiting), daemon=True).start()
    while True:
        call = waiting.get()
        record = make(kind, call.id, call.parameters, call.repetition)
        if store is not None:
            store.write(call.id, record)
        try:
            calls.send(record)
        except OSError:
            return


def _listen(calls: Connection, waiting: queue.SimpleQueue[Call]) -> None:
    """Pass on what is sent. If the other end closes, the run that is being made ends too."""
    while True:
        try:
            waiting.put(calls.recv())
        except (EOFError, OSError):
            sys.stdout.flush()
            signal.raise_signal(signal.SIGKILL)


def main() -> None:
    """``python -m ptaskmodel.campaign.pool FD``: serve at the socket of that number."""
    number = int(sys.argv[1])
    os.set_inheritable(number, False)
    serve(Connection(number))


if __name__ == "__main__":
    main()


ROOT = str(Path(ptaskmodel.__file__).parents[1])
# How long a process may take to end once nothing more comes, s.
GRACE_S = 5.0
# Told of each run that was made: it, DONE or FAILED, its seconds, what went wrong.
Tell = Callable[[Run, str, float, str | None], None]
TRIES = 2


class MakerDiedError(PTaskModelError):
    """The process that made a run is gone: how, and what it said last, which is its log."""

    def __init__(self, how: str, log: str) -> None:
        super().__init__(how)
        self.how, self.log = how, log


class Maker:
    """Started at once; `send` it a run, `answer` waits for the record.

    order: what it is told first (see `order_of`). log: the file that its words go to. connection:
    to wait for: it said something, or is dead. ready_at: since when it makes runs
    (`time.monotonic`), so that its start is no run's time.
    """

    def __init__(self, order: Order, log: Path) -> None:
        self.log = log
        self.ready_at: float | None = None
        self.connection, theirs = multiprocessing.Pipe()
        path = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))
        with log.open("wb") as words:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ptaskmodel.campaign.pool", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                env=os.environ | {"PYTHONPATH": path},
            )
        theirs.close()
        self._send(order)

    def send(self, call: Call) -> None:
        """Have the run of a call made."""
        self._send(call)

    def _send(self, what: Order | Call) -> None:
        with contextlib.suppress(OSError):  # it is dead, which `answer` says too
            self.connection.send(what)

    def answer(self, timeout_s: float | None = None) -> dict[str, Any] | None:
        """The record of the run that was sent; None if it takes longer than it may.

        timeout_s: from when it is ready; 0: only what is there already. Raises MakerDiedError.
        """
        try:
            if self.ready_at is None and self.connection.poll(0.0 if timeout_s == 0.0 else None):
                self.connection.recv()
                self.ready_at = time.monotonic()
            if self.ready_at is None or not self.connection.poll(timeout_s):
                return None
            record: dict[str, Any] = self.connection.recv()
        except (EOFError, OSError):
            how = self.end(GRACE_S)
            raise MakerDiedError(how, self.last_words()) from None
        return record

    def last_words(self) -> str:
        """The end of what it printed."""
        if not self.log.exists():  # it said nothing, and has ended
            return ""
        return self.log.read_text(encoding="utf-8", errors="replace")[-LAST_WORDS:]

    def end(self, grace_s: float = 0.0) -> str:
        """End it, killed unless it ends by itself within `grace_s` seconds; return how it ended."""
        self.connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        self._process.kill()
        code = self._process.wait()
        with contextlib.suppress(OSError):
            if self.log.stat().st_size == 0:
                self.log.unlink()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def order_of(kind: str, folder: Path, directory: Path | None, memory_MB: float | None) -> Order:
    """Return what to tell a process that finds modules where this one does.

    kind: name of what runs, relative to the folder. directory: of the campaign; None: records are
    only answered. memory_MB: the most memory that it may take (None: no limit).
    """
    kept = None if directory is None else str(directory.absolute())
    return Order(kind, str(folder), kept, memory_MB, tuple(sys.path))


def failed(kind: str, call: Call, error: str, took_s: float, log: str) -> dict[str, Any]:
    """Return the record of the run of a call whose process did not live to write one.

    kind: what ran. error: why. took_s: how long it ran, s. log: what the process said.
    """
    return {
        "id": call.id, "run": kind, "parameters": dict(call.parameters),
        "repetition": call.repetition, "status": FAILED, "error": error, "log": log,
        "wall_s": took_s,
    }  # fmt: skip


def too_long(limit_s: float) -> str:
    """Return the error of a run that took longer than `limit_s` seconds."""
    return f"took longer than timeout_s = {limit_s:g} s"


def died(how: str) -> str:
    """Return the error of a run that took two processes with it; how: the last one ended."""
    return f"its process died twice ({how})"


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
    """Makes runs of a plan on so many processes; their records go to a store."""

    def __init__(self, plan: Plan, store: Store, processes: int) -> None:
        self._plan = plan
        self._store = store
        self._count = processes
        self._order = order_of(plan.kind.name, plan.folder, store.directory, plan.memory_MB)
        self._workers: list[_Worker] = []
        self._started = 0

    def make(self, runs: Iterable[Run], tell: Tell) -> None:
        """Make runs, sent as workers are free; each worker saves its own, then `tell` is called."""
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
        """End the workers: idle ones exit when the other end of their connection closes."""
        for worker in self._workers:
            worker.maker.end(0.0 if worker.run is not None else GRACE_S)
        self._workers.clear()


def call_of(run: Run) -> Call:
    """What a worker is told of a run."""
    return Call(run.id, dict(run.parameters), run.repetition)


def tell_of(tell: Tell, run: Run, record: Mapping[str, Any]) -> None:
    """Call `tell` with a run and what its record says."""
    tell(run, record["status"], record["wall_s"], record.get("error"))


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))
