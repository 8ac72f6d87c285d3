"""Transport and session: ZeroMQ sockets to a scheduler, running or to be started, and Redis.

A session exchanges requests and replies with times, and measures how long the scheduler takes. It
can be recorded. A scheduler that `start_guarded` starts ends, with all its descendants, whenever
and however this process ends. Up to version 4, Batsim also publishes jobs and profiles in Redis.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import IO, Any, Protocol

import msgspec

from ptaskmodel import interrupts
from ptaskmodel.connect.jobs import Entry
from ptaskmodel.connect.messages import (
    LARGEST_MESSAGE,
    ROUNDED_S,
    OldReply,
    Reply,
    SchedulerFault,
    read_reply,
)
from ptaskmodel.connect.options import ENDPOINT
from ptaskmodel.errors import SimulationError, WorkloadError, shown
from ptaskmodel.files import read_text, whole_file

GUARD = Path(__file__).resolve().parent / "guard.py"
# How long a program has to end by itself, and once more after it is told to, s.
GRACE_S = 5.0


def start_guarded(
    words: Sequence[str],
    *,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program in a process group of its own, without standard input.

    What is returned ends when the program does, with its exit code; its pid is the group's. If
    this process is gone, or lets go of it, the group is killed. Raises OSError if it cannot start.
    """
    told, telling = os.pipe()
    with open(told, "rb") as answer:
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), str(telling), *words],
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                env=env,
                pass_fds=[telling],
                start_new_session=True,
            )
        finally:
            os.close(telling)
        why = answer.read().decode()
    if why:
        process.communicate()
        raise OSError(0, why)
    return process


def end_guarded(
    process: subprocess.Popen[bytes], grace_s: float = GRACE_S, *, patient: bool = True
) -> None:
    """End a program with all of its group. patient: it has the time to end by itself first."""
    for how in (None, signal.SIGTERM, signal.SIGKILL)[not patient :]:
        if how is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.stdin is not None:
        process.stdin.close()


# A scheduler that is asked so often at one date does not let the time pass.
MAX_EXCHANGES_AT_A_DATE = 100_000
PLACE = "{socket}"
END = b'"SIMULATION_ENDS"'
# While nothing comes, one looks so often whether the scheduler is still there, s.
LOOK_S = 0.05
OURS, THEIRS = "simulator", "scheduler"


class RedisStore:
    """Keys ``PREFIX:job_w0!12`` and ``PREFIX:profile_w0!name`` of a Redis server.

    Raises SimulationError if there is no server, or no Python package for it.
    """

    def __init__(self, host: str, port: int, prefix: str) -> None:
        try:
            import redis
        except ImportError:
            raise SimulationError(
                "Redis needs the Python package redis; run pip install redis"
            ) from None
        self._where = f"Redis at {host}:{port}"
        self._errors = redis.RedisError
        self._server = redis.Redis(host, port, socket_timeout=10)
        self._prefix = prefix
        self._profiles: set[str] = set()
        self._call("ping")

    def _call(self, command: str, *arguments: Any) -> Any:
        try:
            return getattr(self._server, command)(*arguments)
        except self._errors as error:
            raise SimulationError(f"{self._where}: {error}") from None

    def put(self, entry: Entry) -> None:
        """Let a job and its profile be found."""
        values = {f"{self._prefix}:job_{entry.id}": msgspec.json.encode(entry.fields)}
        if entry.profile_id not in self._profiles:
            self._profiles.add(entry.profile_id)
            key = f"{self._prefix}:profile_{entry.profile_id}"
            values[key] = msgspec.json.encode(entry.profile_fields)
        self._call("mset", values)

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """The object of a "job" or "profile" that the scheduler put there; WorkloadError if not."""
        key = f"{self._prefix}:{kind}_{name}"
        raw = self._call("get", key)
        try:
            found = None if raw is None else msgspec.json.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise WorkloadError(f"/data/{kind}: {self._where} has no object at {shown(key)}")
        return found

    def close(self) -> None:
        self._server.close()


class Wire(Protocol):
    """What carries messages to a scheduler and back."""

    def exchange(self, request: bytes, now: float) -> bytes:
        """The reply to a request, made at the date ``now``; raises SchedulerFault."""
        ...

    def close(self) -> None:
        """The conversation is over, or broken."""
        ...


class Talk:
    """Asks a scheduler.

    exchanges: how often so far; scheduler_s: wall time that it took; early: replies dated before
    their requests.
    """

    def __init__(self, wire: Wire, protocol: int) -> None:
        self._wire = wire
        self.protocol = protocol
        self.exchanges = 0
        self.scheduler_s = 0.0
        self.longest_s = 0.0
        self.early = 0
        self._first_early = self._coarse = ""
        self._now = -1.0
        self._at_this_date = 0
        self._encode = msgspec.json.Encoder().encode

    def ask(self, now: float, events: list[dict[str, Any]]) -> Reply | OldReply:
        """Say what happened up to a date, s, and get the decisions. Raises SchedulerFault."""
        self._at_this_date = 0 if now > self._now else self._at_this_date + 1
        self._now = now
        if self._at_this_date > MAX_EXCHANGES_AT_A_DATE:
            raise SchedulerFault(
                f"it answered {MAX_EXCHANGES_AT_A_DATE:,} times at the same simulated time", now=now
            )
        request = self._encode({"now": float(now), "events": events})
        began = time.perf_counter()
        raw = self._wire.exchange(request, now)
        took = time.perf_counter() - began
        self.exchanges += 1
        self.scheduler_s += took
        self.longest_s = max(self.longest_s, took)
        reply, earliest = read_reply(raw, self.protocol, now)
        if earliest < now - ROUNDED_S:
            self.early += 1
            self._first_early = self._first_early or f"for {earliest!r} s at {now!r} s"
        if not self._coarse and math.ulp(now) > ROUNDED_S:
            self._coarse = (
                f"at {now:g} s floating-point times are {math.ulp(now):.2g} s apart; shorter "
                "delays may not advance the "
                "clock"
            )
        return reply

    def notes(self) -> tuple[str, ...]:
        """What was odd about dates, a line each."""
        early = (
            f"{self.early} replies of the scheduler have a timestamp before their requests "
            "(the first: "
            f"{self._first_early}); they took effect at the time of the request"
        )
        return (*([early] if self.early else []), *([self._coarse] if self._coarse else []))

    def close(self) -> None:
        self._wire.close()


def _zmq() -> Any:
    try:
        import zmq
        import zmq.utils.monitor
    except ImportError:
        raise SimulationError(
            "schedulers over a socket need pyzmq; run pip install pyzmq"
        ) from None
    return zmq


class SocketWire:
    """A REQ socket that connects to the REP socket of a scheduler.

    timeout_s: how long a reply may take (inf: any time). command: starts the scheduler, with the
    first request; it is ended at the latest when this is closed. Raises SimulationError without
    pyzmq and for an endpoint that is none.
    """

    def __init__(
        self,
        endpoint: str,
        timeout_s: float = inf,
        command: str | None = None,
    ) -> None:
        zmq = _zmq()
        self._again, self._more = zmq.Again, zmq.RCVMORE
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._timeout_s = timeout_s
        self._last = b""
        self._endpoint = endpoint
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVTIMEO, int(1000 * LOOK_S))
        self._socket.setsockopt(zmq.SNDTIMEO, int(1000 * LOOK_S))
        self._socket.setsockopt(zmq.MAXMSGSIZE, 4 * LARGEST_MESSAGE)
        self._disconnected = zmq.EVENT_DISCONNECTED
        self._read_event = zmq.utils.monitor.recv_monitor_message
        self._monitor = self._socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            self.close()
            raise SimulationError(
                f"socket {shown(endpoint)}: {error}; give an endpoint such as {ENDPOINT}"
            ) from None

    def exchange(self, request: bytes, now: float) -> bytes:
        if self._command is not None:
            self._process = start_scheduler(self._command, self._endpoint)
            self._command = None
        self._last = request
        self._socket.send(request)
        try:
            reply: bytes = self._socket.recv()
        except self._again:
            reply = self._wait(now)
        if self._socket.getsockopt(self._more):
            raise SchedulerFault("its message has several frames; send one", now=now)
        return reply

    def _wait(self, now: float) -> bytes:
        """The reply, once it comes. Raises SchedulerFault if it never will, and Interrupted."""
        began = time.monotonic()
        while True:
            interrupts.check()
            gone = self._gone()
            with contextlib.suppress(self._again):
                reply: bytes = self._socket.recv()
                return reply
            if gone is not None:
                raise SchedulerFault(gone, now=now)
            if time.monotonic() - began + LOOK_S > self._timeout_s:
                raise SchedulerFault(
                    f"no reply from {self._endpoint} within {self._timeout_s:g} s; is it running, "
                    "and does it need longer? (--timeout)",
                    now=now,
                )

    def _gone(self) -> str | None:
        """How the scheduler left; None if it did not."""
        if self._process is not None and self._process.poll() is not None:
            return f"it ended with exit code {self._process.returncode} instead of answering"
        while self._monitor.poll(0):
            if self._read_event(self._monitor)["event"] == self._disconnected:
                return (
                    "it closed the connection instead of answering (or its message was larger "
                    f"than {4 * LARGEST_MESSAGE:,} bytes)"
                )
        return None

    def close(self) -> None:
        if not self._socket.closed:
            self._socket.disable_monitor()
            self._socket.close(0)
        self._context.destroy(0)
        if self._process is not None:
            # It ends by itself once it is told that all is over, and only then.
            over = END in self._last and not interrupts.arrived()
            end_guarded(self._process, patient=over)
            self._process = None


def start_scheduler(command: str, endpoint: str) -> subprocess.Popen[bytes]:
    """Start a scheduler, in whose command ``{socket}`` stands for the endpoint.

    It ends with this process, however that ends. What it prints goes to standard error. Raises
    SimulationError if it cannot be started.
    """
    try:
        words = [word.replace(PLACE, endpoint) for word in shlex.split(command)]
        if not words:
            raise ValueError("is empty; give a command")
        return start_guarded(words, stdout=sys.stderr.fileno())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SimulationError(f"scheduler {shown(command)}: cannot be started: {reason}") from None


def free_endpoint() -> str:
    """Return an unused endpoint on the loopback."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{found.getsockname()[1]}"


# --- records ------------------------------------------------------------------------------------


class RecordingWire:
    """Another wire whose messages are written down, one JSON object a line."""

    def __init__(self, wire: Wire, stream: IO[str]) -> None:
        self._wire = wire
        self._stream = stream

    def exchange(self, request: bytes, now: float) -> bytes:
        self._stream.write(f'{{"from":"{OURS}","message":{request.decode()}}}\n')
        reply = self._wire.exchange(request, now)
        try:
            msgspec.json.decode(reply)
            text = f'"message":{msgspec.json.format(reply, indent=-1).decode()}'
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            text = f'"no_json":{json.dumps(reply[:1000].decode("utf-8", "backslashreplace"))}'
        self._stream.write(f'{{"from":"{THEIRS}",{text}}}\n')
        return reply

    def close(self) -> None:
        self._wire.close()


@contextlib.contextmanager
def recorded(wire: Wire, path: str | Path | None) -> Iterator[Wire]:
    """The wire, and a record of it in a file if a path is given. Raises PTaskModelError."""
    if path is None:
        yield wire
        return
    with whole_file(path) as stream:
        yield RecordingWire(wire, stream)


class ReplayingWire:
    """The scheduler of a record: it says what it said, as long as it is told what it was told.

    Raises SimulationError for a file that is no record, and where a request differs.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._lines: list[tuple[int, str, bytes]] = []
        for number, line in enumerate(read_text(path).splitlines(), 1):
            try:
                entry = msgspec.json.decode(line)
                who, said = entry.get("from"), entry.get("message")
            except (msgspec.DecodeError, AttributeError):
                raise SimulationError(
                    f"{path}:{number}: is not a line of a record; give the file of --record"
                ) from None
            if who is not None:
                self._lines.append((number, who, msgspec.json.encode(said)))
        self._next = 0

    def _take(self, who: str, now: float) -> tuple[int, bytes]:
        if self._next == len(self._lines):
            raise SimulationError(
                f"{self._path}: ends at {now:g} s, but the simulation continues; use the "
                "recorded inputs"
            )
        number, wrote, said = self._lines[self._next]
        self._next += 1
        if wrote != who:
            raise SimulationError(f"{self._path}:{number}: is from {shown(wrote)}, not the {who}")
        return number, said

    def exchange(self, request: bytes, now: float) -> bytes:
        number, recorded = self._take(OURS, now)
        said = msgspec.json.decode(request)
        different = difference(msgspec.json.decode(recorded), said)
        if different:
            raise SimulationError(f"{self._path}:{number}: at {now:g} s {different}")
        reply = self._take(THEIRS, now)[1]
        if any(event["type"] == "SIMULATION_ENDS" for event in said["events"]):
            self._check_end()
        return reply

    def _check_end(self) -> None:
        """The record ends with the simulation."""
        if self._next < len(self._lines):
            raise SimulationError(
                f"{self._path}:{self._lines[self._next][0]}: continues after the simulation has "
                "ended; give the record of one run"
            )

    def close(self) -> None:
        """Nothing to close."""


def difference(recorded: Any, now_said: Any, pointer: str = "") -> str:
    """Where two documents differ first, and how; empty if they do not."""
    where = pointer or "the message"
    if isinstance(recorded, dict) and isinstance(now_said, dict):
        for key in dict.fromkeys((*recorded, *now_said)):
            if key not in recorded or key not in now_said:
                return f"{pointer}/{key} is {'new' if key in now_said else 'missing'}"
            if found := difference(recorded[key], now_said[key], f"{pointer}/{key}"):
                return found
        return ""
    if isinstance(recorded, list) and isinstance(now_said, list):
        for k, (one, other) in enumerate(zip(recorded, now_said, strict=False)):
            if found := difference(one, other, f"{pointer}/{k}"):
                return found
        if len(recorded) != len(now_said):
            return f"{where} has {len(now_said)} entries, but {len(recorded)} were recorded"
        return ""
    if recorded == now_said and type(recorded) is type(now_said):
        return ""
    return f"{where} is {shown(now_said)}, but {shown(recorded)} was recorded"
