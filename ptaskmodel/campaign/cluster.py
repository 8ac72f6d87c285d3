"""Workers of a Dask cluster that make runs.

So many runs are under way that no worker waits. A run whose process dies is tried once more, on
another worker if there is one; then it has failed, and the others go on.
"""

from __future__ import annotations

import collections
import contextlib
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptaskmodel import __version__
from ptaskmodel.campaign.maker import died, failed
from ptaskmodel.campaign.plan import Plan, Run, digest_of
from ptaskmodel.campaign.pool import TRIES, Tell, call_of, tell_of
from ptaskmodel.campaign.remote import (
    FUNCTION,
    Input,
    Said,
    Task,
    keep_there,
    make_there,
    mark_of,
)
from ptaskmodel.campaign.store import TOKEN, Store
from ptaskmodel.errors import CampaignError, PTaskModelError
from ptaskmodel.files import write_bytes

LOOPBACK = ("127.0.0.1", "[::1]", "localhost")
SCHEMES = ("tcp://", "tls://")
# Tasks under way for each thread of a worker: one is made, one is there, others are on their way.
AHEAD = 4
# Short runs are handed out several at once, for about so long, s.
TOGETHER_S = 0.16
MOST_TOGETHER = 32
FEWEST = 8
CONNECT_S = 20.0
# How long the first worker may take to join, s.
JOIN_S = 300.0
# What is sent of an input, at most.
MOST_BYTES = 2**30
# An input that a run lacks this often is not kept there.
MOST_SENT = 20


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Dask scheduler: its address, tcp://HOST:PORT or tls://HOST:PORT.

    ca, certificate, key: PEM files, for tls. Whoever reaches a scheduler runs programs as its
    owner: listen on the loopback, or have certificates. Raises CampaignError.
    """

    address: str
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        if not self.address.startswith(SCHEMES):
            raise CampaignError(
                f"'{self.address}' is no scheduler: give tcp://HOST:PORT or tls://HOST:PORT"
            )
        given = [one for one in (self.ca, self.certificate, self.key) if one is not None]
        tls = self.address.startswith("tls://")
        if len(given) != (3 if tls else 0):
            raise CampaignError(
                f"{self.address}: give a CA, a certificate and a key with tls://, none with tcp://"
            )
        for path in given:
            if not path.is_file():
                raise CampaignError(f"{path}: no such file")

    def is_open(self) -> bool:
        """Whether it is neither encrypted nor on this machine only."""
        host = self.address.removeprefix("tcp://").rpartition(":")[0]
        return self.ca is None and host not in LOOPBACK

    @contextlib.contextmanager
    def client(self) -> Iterator[Any]:
        """A connection to it. Raises CampaignError if there is none."""
        try:
            from distributed import Client
            from distributed.security import Security
        except ImportError:
            raise CampaignError("Dask is not installed: run pip install distributed") from None
        security = None
        if self.ca is not None:
            security = Security(
                tls_ca_file=str(self.ca),
                tls_client_cert=str(self.certificate),
                tls_client_key=str(self.key),
                require_encryption=True,
            )
        try:
            client = Client(
                self.address, security=security, timeout=CONNECT_S, set_as_default=False
            )
        except (OSError, ValueError) as fault:
            reason = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
            raise CampaignError(f"{self.address}: no Dask scheduler answers: {reason}") from None
        try:
            yield client
        finally:
            client.close(timeout=1.0)


@dataclass(slots=True, eq=False)
class _Flight:
    """A run under way: how often its process died, how often it lacked an input, where not."""

    run: Run
    tries: int = 1
    sent: int = 0
    without: set[str] = field(default_factory=set)


class ClusterPool:
    """Makes runs of a plan on a cluster."""

    def __init__(self, plan: Plan, store: Store, cluster: Cluster) -> None:
        self._plan = plan
        self._store = store
        self._cluster = cluster
        self._shared = secrets.token_hex(16)
        self._inputs: dict[str, Input] = {}
        self._sent: dict[tuple[str, str], Any] = {}
        self._flights: dict[str, list[_Flight]] = {}
        self._made, self._runs_s = 0, 0.0
        self._client: Any = None
        self._arriving: Any = None

    def make(self, runs: Iterable[Run], tell: Tell) -> None:
        """Make runs; each is kept by who made it, or here where that sees no directory of ours.

        Raises CampaignError if there is no scheduler, no worker, or the scheduler goes.
        """
        write_bytes(self._store.directory / TOKEN, self._shared.encode(), error=CampaignError)
        with self._cluster.client() as self._client:
            try:
                self._make(collections.deque(runs), tell)
            except PTaskModelError:
                raise
            except Exception as fault:
                if self._client.status == "running":
                    raise
                raise CampaignError(self._gone()) from fault

    def _make(self, waiting: collections.deque[Run], tell: Tell) -> None:
        from distributed import as_completed

        try:
            self._client.wait_for_workers(1, timeout=JOIN_S)
        except TimeoutError:
            raise CampaignError(
                f"{self._cluster.address}: no worker joined within {JOIN_S:g} s; start some"
            ) from None
        self._arriving = as_completed(loop=self._client.loop, with_results=True, raise_errors=False)
        self._fill(waiting)
        while self._flights:
            for future, said in self._arriving.next_batch(block=True):
                self._hear(future, said, tell)
            self._fill(waiting)

    def _fill(self, waiting: collections.deque[Run]) -> None:
        """Hand out runs, many at once, where only few are under way."""
        if not waiting or len(self._flights) > self._width() // 2:
            return
        size = self._size()
        parts: list[list[_Flight]] = []
        while waiting and len(self._flights) + len(parts) < self._width():
            count = min(size, len(waiting))
            parts.append([_Flight(waiting.popleft()) for _ in range(count)])
        tasks = [[self._task(flight.run) for flight in part] for part in parts]
        keys = [_key(part, self._shared) for part in parts]
        self._fly(keys, parts, self._client.map(make_there, tasks, key=keys, pure=False))

    def _width(self) -> int:
        return max(FEWEST, AHEAD * sum(self._client.nthreads().values()))

    def _size(self) -> int:
        """How many runs are handed out together: so many that Dask's share of the time is small."""
        if not self._made:
            return 1
        return max(1, min(int(TOGETHER_S * self._made / max(self._runs_s, 1e-9)), MOST_TOGETHER))

    def _fly(self, keys: list[str], parts: list[list[_Flight]], futures: list[Any]) -> None:
        self._flights.update(zip(keys, parts, strict=True))
        self._arriving.update(futures)

    def _again(self, flight: _Flight, after: list[Any], *, where: set[str], only: bool) -> None:
        """Hand out a run once more, after futures, rather (or only) to some workers."""
        key = _key([flight], self._shared)
        future = self._client.submit(
            make_there, [self._task(flight.run)], *after, key=key, pure=False,
            workers=sorted(where) or None, allow_other_workers=bool(where) and not only,
        )  # fmt: skip
        self._fly([key], [[flight]], [future])

    def _hear(self, future: Any, said: Any, tell: Tell) -> None:
        """Take what became of runs under way."""
        part = self._flights.pop(future.key)
        if future.status == "cancelled" or future.status == "lost":
            raise CampaignError(self._gone())
        if future.status == "error":
            self._error(part, said, tell)
            return
        for flight, answer in zip(part, said, strict=True):
            if "lacks" in answer:
                self._send(flight, answer)
            elif "died" in answer:
                self._died(flight, answer, tell)
            else:
                self._keep(flight, answer, tell)

    def _keep(self, flight: _Flight, said: Said, tell: Tell) -> None:
        record = said["record"]
        self._made += 1
        self._runs_s += record["wall_s"]
        if not said["kept"]:
            self._store.write(flight.run.id, record)
        tell_of(tell, flight.run, record)

    def _error(self, part: list[_Flight], said: Any, tell: Tell) -> None:
        """A task ended without an answer: its workers are gone, or something is wrong there."""
        from distributed.scheduler import KilledWorker

        error = said[1] if isinstance(said, tuple) else said
        if isinstance(error, KilledWorker):
            for flight in part:
                if len(part) > 1:  # it may be another's fault
                    flight.tries += 1
                    self._again(flight, [], where=set(), only=False)
                else:
                    said = f"its Dask workers died, {error.last_worker.address} last"
                    self._fail(flight, said, "", tell)
        elif isinstance(error, PTaskModelError):
            raise error
        else:
            raise CampaignError(
                f"{self._cluster.address}: a worker cannot make runs: "
                f"{type(error).__name__}: {error}"
            )

    def _died(self, flight: _Flight, said: Said, tell: Tell) -> None:
        flight.without.add(said["worker"])
        if flight.tries >= TRIES:
            self._fail(flight, died(said["died"]), said["log"], tell)
            return
        flight.tries += 1
        others = set(self._client.nthreads()) - flight.without
        self._again(flight, [], where=others, only=True)

    def _send(self, flight: _Flight, said: Said) -> None:
        """Send inputs to the worker that lacks them, unless they are on their way; then the run."""
        address = said["worker"]
        flight.sent += 1
        if flight.sent > MOST_SENT:
            raise CampaignError(f"{address}: keeps no input; see its free disk")
        after = []
        for name in said["lacks"]:
            one = self._inputs_of(flight.run)[name]
            found = self._sent.get((address, one.digest))
            if found is None or (found.done() and flight.sent > 1):
                found = self._client.submit(
                    keep_there, Path(one.path).name, one.digest, _content(Path(one.path)),
                    workers=[address], pure=False,
                )  # fmt: skip
                self._sent[address, one.digest] = found
            after.append(found)
        self._again(flight, after, where={address}, only=False)

    def _fail(self, flight: _Flight, error: str, log: str, tell: Tell) -> None:
        record = failed(self._plan.kind.name, call_of(flight.run), error, 0.0, log)
        self._store.write(flight.run.id, record)
        tell_of(tell, flight.run, record)

    def _task(self, run: Run) -> Task:
        plan = self._plan
        return Task(
            __version__, plan.kind.name, call_of(run), self._inputs_of(run),
            str(self._store.directory.absolute()), self._shared, plan.timeout_s, plan.memory_MB,
        )  # fmt: skip

    def _inputs_of(self, run: Run) -> dict[str, Input]:
        """The files that a run reads, by parameter."""
        paths = {n: str(run.parameters[n]) for n in self._plan.kind.files if n in run.parameters}
        source, mark, _ = self._plan.kind.name.rpartition(":")
        if mark:
            paths[FUNCTION] = str(self._plan.folder / source)
        for name, path in paths.items():
            if path not in self._inputs:
                here = Path(path)
                self._inputs[path] = Input(path, digest_of(here, name), mark_of(here))
        return {name: self._inputs[path] for name, path in paths.items()}

    def _gone(self) -> str:
        return (
            f"{self._cluster.address}: the scheduler is gone; start it and its workers again, then "
            f"ptaskmodel campaign resume {self._store.directory} --on ADDRESS"
        )


def _key(part: list[_Flight], who: str) -> str:
    """What a task is called: of one group, so that the scheduler keeps nothing of those over.

    who: of this connection alone: tasks that a killed one left are let go, not taken up again.
    """
    flight = part[0]
    return f"run-{who[:12]}-{flight.run.id}-{flight.tries}-{flight.sent}"


def _content(path: Path) -> dict[str, bytes]:
    """Of a file, or of the files of a directory. Raises CampaignError if that is too much."""
    size = sum(size for _, size, _ in mark_of(path))
    if size > MOST_BYTES:
        raise CampaignError(
            f"{path}: {size:,} bytes are too many to send; "
            "put it where workers find it under the same path"
        )
    if path.is_file():
        return {".": path.read_bytes()}
    return {
        str(one.relative_to(path)): one.read_bytes()
        for one in sorted(path.rglob("*"))
        if one.is_file()
    }
