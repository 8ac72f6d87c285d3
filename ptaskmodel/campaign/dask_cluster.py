"""The Dask cluster of a campaign: how to reach its scheduler, and what its workers execute.

`Cluster` holds the address and the certificates, and opens a client. `make_there` runs on a Dask
worker and makes runs in a child process (see `pool.Maker`). So a run that crashes, takes too long
or needs too much memory never stops the Dask worker, which continues to answer.

Each outcome is sent at once, as a Dask event. Two messages must reach the scheduler before the
worker continues: the start of a part, and the outcome of a run that is alone in its part. So when a
worker dies, `dask_pool` already knows what that worker was running.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptaskmodel import __version__
from ptaskmodel.campaign.plan import Input, digest_of, leads_to
from ptaskmodel.campaign.pool import Call, Maker, MakerDiedError, failed, order_of, too_long
from ptaskmodel.campaign.store import TOKEN, Store
from ptaskmodel.errors import CampaignError

LOOPBACK = ("127.0.0.1", "[::1]", "localhost")
SCHEMES = ("tcp://", "tls://")
CONNECT_S = 20.0
# Those that write what becomes of a client's connections.
LOGGERS = (
    "distributed.client", "distributed.comm.core", "distributed.comm.tcp", "distributed.core",
    "distributed.utils", "distributed.batched", "tornado.application", "asyncio",
)  # fmt: skip
FUNCTION = "FILE.py"
# How often a worker asks whether what it makes is still wanted, s.
ASK_S = 0.2
# What is said: of which part, and that it has begun, or of which run, and its record (as JSON) and
# whether that is kept, or how it died, or what it lacks.
Said = dict[str, Any]
# What is said of a record that is kept.
TOLD = ("id", "status", "wall_s", "error")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Dask scheduler: its address, tcp://HOST:PORT or tls://HOST:PORT.

    ca, certificate, key: PEM files, for tls. Whoever reaches a scheduler runs programs as its
    owner: listen on the loopback, or have certificates. Raises CampaignError.
    """

    address: str
    ca: str | Path | None = None
    certificate: str | Path | None = None
    key: str | Path | None = None

    def __post_init__(self) -> None:
        if not self.address.startswith(SCHEMES):
            raise CampaignError(
                f"'{self.address}' is not a scheduler; give tcp://HOST:PORT or tls://HOST:PORT"
            )
        given = [one for one in (self.ca, self.certificate, self.key) if one is not None]
        tls = self.address.startswith("tls://")
        if len(given) != (3 if tls else 0):
            raise CampaignError(
                f"{self.address}: TLS files do not match; give a CA, a certificate and a key "
                "with tls://, none with tcp://"
            )
        for path in given:
            if not Path(path).is_file():
                raise CampaignError(f"{path}: no such file")

    def is_open(self) -> bool:
        """Whether it is neither encrypted nor on this machine only."""
        host = self.address.removeprefix("tcp://").rpartition(":")[0]
        return self.ca is None and host not in LOOPBACK

    @contextlib.contextmanager
    def client(self) -> Iterator[Any]:
        """A connection to it. Raises CampaignError if there is none.

        What Dask logs of a scheduler that is gone is left out: our error says it.
        """
        try:
            from distributed import Client
            from distributed.security import Security
        except ImportError:
            raise CampaignError("Dask is not installed; run pip install distributed") from None
        security = None
        if self.ca is not None:
            security = Security(
                tls_ca_file=str(self.ca),
                tls_client_cert=str(self.certificate),
                tls_client_key=str(self.key),
                require_encryption=True,
            )
        with _quiet():
            try:
                client = Client(
                    self.address, security=security, timeout=CONNECT_S, set_as_default=False
                )
            except (OSError, ValueError) as fault:
                reason = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
                raise CampaignError(
                    f"{self.address}: no Dask scheduler answers: {reason}"
                ) from None
            try:
                yield client
            finally:
                with contextlib.suppress(TimeoutError):  # a busy loop: what was asked for is done
                    client.close(timeout=1.0)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the log of Dask's connections, which are also lost on purpose."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addFilter(_is_critical)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(_is_critical)


def _is_critical(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.CRITICAL


@dataclass(frozen=True, slots=True)
class Part:
    """Runs for a worker.

    key: its name, here and for Dask. inputs: of each run, by parameter; that of the function
    is called after `FUNCTION`. shared: a file of the campaign's directory and what it holds, by
    which a worker that sees the directory knows it. topic: of the events by which it says what
    became of them. most_s: those that are not begun after so long are left.
    """

    key: str
    version: str
    kind: str
    calls: tuple[Call, ...]
    inputs: tuple[dict[str, Input], ...]
    directory: str
    shared: str
    timeout_s: float | None
    memory_MB: float | None
    topic: str
    most_s: float


_own = threading.local()


class _UnwantedError(Exception):
    """Nobody waits for this part any more."""


def make_there(part: Part, *_: object) -> None:
    """Make runs on a Dask worker; the others are inputs that must be there before."""
    with contextlib.suppress(_UnwantedError):
        _Making(part).make()


class _Making:
    """The runs of a part, made one after the other."""

    def __init__(self, part: Part) -> None:
        """Raises CampaignError if this is another version."""
        from distributed import get_worker

        self._part = part
        self._worker = get_worker()
        if part.version != __version__:
            raise CampaignError(
                f"{self._worker.address} has ptaskmodel {__version__}, here it is {part.version}; "
                "install the same"
            )
        self._local = Path(self._worker.local_directory)
        self._store = _store(part.directory) if _sees(part) else None
        self._until = time.monotonic() + part.most_s
        self._kind = part.kind
        self._places: dict[str, str | None] = {}

    def make(self) -> None:
        """Make them. The next run is sent before one is answered, so that nobody waits for us.

        Raises _UnwantedError.
        """
        self._say({"began": True})
        ready = [
            (call, there)
            for call, inputs in zip(self._part.calls, self._part.inputs, strict=True)
            if (there := self._ready(call, inputs)) is not None
        ]
        sent = 0
        for k, (call, _) in enumerate(ready):
            over = time.monotonic() > self._until
            if over and 0 < k == sent:
                return
            maker = self._maker()
            upcoming = ready[k : k + 1 if over else k + 2]
            for _, one in upcoming[sent - k :]:
                maker.send(one)
            alive = self._answer(maker, call)
            sent = max(sent, k + len(upcoming)) if alive else k + 1

    def _ready(self, call: Call, inputs: dict[str, Input]) -> Call | None:
        """A run with the files that are here; None if it lacks some, which is said."""
        found = {name: self._place(one) for name, one in inputs.items()}
        lacking = [name for name, place in found.items() if place is None]
        if lacking:
            self._say({"run": call.id, "lacks": lacking})
            return None
        if FUNCTION in found:
            self._kind = f"{found.pop(FUNCTION)}:{self._part.kind.rpartition(':')[2]}"
        given = call.parameters
        moved = {n: given[n].replace(inputs[n].path, str(place)) for n, place in found.items()}
        return call._replace(parameters=given | moved)

    def _place(self, one: Input) -> str | None:
        """Where an input is here: the same path if that is the same file, or where it was sent."""
        if one.path not in self._places:
            path, sent = Path(one.path), _sent(self._local, one)
            self._places[one.path] = (
                one.path if leads_to(path, one.mark) else str(sent) if sent.exists() else None
            )
        return self._places[one.path]

    def _maker(self) -> Maker:
        """This thread's process; another is started if there is none, or one of another front end.

        That may have read files which were changed since.
        """
        order = order_of(self._kind, Path(), None, self._part.memory_MB)
        maker: Maker | None = getattr(_own, "maker", None)
        if maker is not None and _own.served != (order, self._part.shared):
            maker.end()
            maker = None
        if maker is None:
            _own.served = (order, self._part.shared)
            _own.maker = maker = Maker(order, self._local / f"maker-{threading.get_ident()}.log")
        return maker

    def _answer(self, maker: Maker, call: Call) -> bool:
        """Wait for a run that was sent, and say what became of it; whether its process lives on.

        Raises _UnwantedError.
        """
        limit, began = self._part.timeout_s, time.monotonic()
        step = ASK_S if limit is None else min(ASK_S, limit)
        while True:
            wanted = self._wanted()
            try:
                record = maker.answer(step if wanted else 0.0)
            except MakerDiedError as death:
                _own.maker = None
                self._say({"run": call.id, "died": death.how, "log": death.log})
                return False
            if record is not None:
                self._keep(call, record)
                return True
            took_s = time.monotonic() - max(began, maker.ready_at or began)
            late = limit is not None and took_s >= limit
            if late or not wanted:
                maker.end()
                _own.maker = None
            if not wanted:
                raise _UnwantedError
            if late:
                error = too_long(limit or 0.0)
                log = maker.last_words()
                self._keep(call, failed(self._kind, call, error, took_s, log))
                return False

    def _wanted(self) -> bool:
        """Whether this worker is still one, and the scheduler has not taken this part back."""
        task = self._worker.state.tasks.get(self._part.key)
        going = self._worker.status.name not in ("closing", "closed", "failed")
        return going and task is not None and task.state in ("executing", "long-running")

    def _keep(self, call: Call, record: dict[str, Any]) -> None:
        """Keep what became of a run, if the campaign's directory is here, and say it."""
        record |= {"run": self._part.kind, "parameters": call.parameters}
        if self._store is not None:
            self._store.write(call.id, record)
        self._tell(record)

    def _tell(self, record: dict[str, Any]) -> None:
        kept = self._store is not None
        told = {name: record[name] for name in TOLD if name in record} if kept else record
        self._say({"run": record["id"], "record": json.dumps(told), "kept": kept})

    def _say(self, said: Said) -> None:
        """Say something; that the part begins, and all of one run alone, is heard on return."""
        from distributed.utils import sync

        event = {"part": self._part.key, **said}
        if "began" in said or len(self._part.calls) == 1:
            scheduler = self._worker.scheduler
            sync(self._worker.loop, scheduler.log_event, topic=self._part.topic, msg=event)
        else:
            self._worker.log_event(self._part.topic, event)


def keep_there(one: Input, content: dict[str, bytes]) -> None:
    """Keep an input on a Dask worker, with its content by names (see `content_of`)."""
    from distributed import get_worker

    place = _sent(Path(get_worker().local_directory), one)
    partial = place.parent.with_name(secrets.token_hex(8))
    for name, data in content.items():
        path = partial / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    if digest_of(partial / place.name, place.name) != one.digest:
        raise CampaignError(
            f"{one.path}: changed since the campaign began; start the campaign again"
        )
    try:
        os.rename(partial, place.parent)
    except OSError:  # another thread of this worker was faster
        if not place.exists():
            raise


def _store(directory: str) -> Store:
    """This thread's, of a directory: all that it keeps there is in one part."""
    store: Store | None = getattr(_own, "store", None)
    if store is None or store.directory != Path(directory):
        _own.store = store = Store(directory)
    return store


def _sees(part: Part) -> bool:
    """Whether the directory of the campaign is this worker's too."""
    try:
        return (Path(part.directory) / TOKEN).read_text(encoding="utf-8") == part.shared
    except (OSError, ValueError):
        return False


def _sent(local: Path, one: Input) -> Path:
    """Where an input that was sent is kept."""
    return local / "inputs" / one.digest / Path(one.path).name
