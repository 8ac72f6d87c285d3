"""The processes of a live run: daemons through the supervisor, and jobs, submitted with sbatch."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from ptaskmodel.slurm.conf.facts import Gres
from ptaskmodel.slurm.jobs.request import WHOLE_NODES, JobRequest
from ptaskmodel.slurm.live.programs import LiveFault

SUPERVISOR = Path(__file__).resolve().parent / "supervisor.py"
MOST = 1 << 18
# What Slurm has started itself, for a job, and has left to the supervisor.
STEP = "a job's slurmstepd"
ANSWER_S = 120.0
END_S = 120.0


class Ended(NamedTuple):
    """A process that has ended. status: its exit code, or minus the signal."""

    name: str
    pid: int
    status: int


class Processes:
    """Starts processes in a directory that is removed with them, whatever happens.

    farewell: what is said on stderr if this process is killed.
    """

    def __init__(self, directory: Path, farewell: str) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line = ours
        self._names: dict[int, str] = {}
        self._ended: list[Ended] = []
        with theirs:
            self._supervisor = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", str(SUPERVISOR)),
                    *(str(directory), str(theirs.fileno()), farewell),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    @property
    def supervisor(self) -> int:
        """The pid of the process above all."""
        return self._supervisor.pid

    def fileno(self) -> int:
        """Can be read when a process has ended."""
        return self._line.fileno()

    def start(
        self, name: str, words: Sequence[str], environment: Mapping[str, str], output: Path
    ) -> int:
        """Start a process; its pid. Raises LiveFault if it cannot be."""
        said = {"start": list(words), "env": dict(environment), "output": str(output)}
        self._say(said)
        while True:
            heard = self._hear()
            if "ended" in heard:
                self._note(heard)
            elif "fault" in heard:
                raise LiveFault(f"{name} cannot be started: {heard['fault']}")
            else:
                self._names[heard["pid"]] = name
                return int(heard["pid"])

    def kill(self, mark: str) -> None:
        """Kill all whose environment has this ``NAME=value``, with what is below them."""
        self._say({"kill": mark})

    def ended(self) -> list[Ended]:
        """Those that have ended since this was last asked."""
        while select.select([self._line], [], [], 0)[0]:
            self._note(self._hear())
        found, self._ended = self._ended, []
        return found

    def end(self) -> None:
        """End all, and the supervisor."""
        with contextlib.suppress(OSError):
            self._line.send(json.dumps({"end": True}).encode())
        self._line.close()
        try:
            self._supervisor.wait(END_S)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
            self._supervisor.wait()

    def _note(self, heard: Mapping[str, Any]) -> None:
        pid = heard["ended"]
        self._ended.append(Ended(self._names.pop(pid, STEP), pid, heard["status"]))

    def _say(self, what: Mapping[str, Any]) -> None:
        try:
            self._line.send(json.dumps(what).encode())
        except OSError:
            raise self._gone() from None

    def _hear(self) -> dict[str, Any]:
        packet = b""
        with contextlib.suppress(OSError):
            if select.select([self._line], [], [], ANSWER_S)[0]:
                packet = self._line.recv(MOST)
        if not packet:
            raise self._gone()
        return json.loads(packet)

    def _gone(self) -> LiveFault:
        status = self._supervisor.poll()
        return LiveFault(f"the supervisor of Slurm's processes {how(status)}")


def how(status: int | None) -> str:
    """How a process ended, as words."""
    if status is None:
        return "does not answer"
    if status < 0:
        return f"was killed ({signal.Signals(-status).name})"
    return f"ended with {status}"


LONGEST = 1 << 16


def batches_of(requests: Sequence[JobRequest]) -> Iterator[list[JobRequest]]:
    """The requests in order of submission; tasks of an array together."""
    order = sorted(requests, key=lambda request: request.submit_s)
    for _, group in groupby(order, key=lambda request: (request.array_id, request.submit_s)):
        yield list(group)


def sbatch_words(
    batch: Sequence[JobRequest], date_of: Callable[[float], str], number_of: Mapping[str, int]
) -> list[str]:
    """The options of sbatch for a job, or for the tasks of an array.

    date_of: a date as Slurm reads it. number_of: Slurm's numbers of jobs submitted before, by id;
    dependencies on others are left out.
    """
    job = batch[0]
    words = [f"--job-name={job.name or job.array_id}"]
    words += [f"--{name}={value}" for name, value in _valued(job, date_of) if value is not None]
    words += [f"--{name}" for name, given in _flags(job) if given]
    if job.array is not None:
        indices = ",".join(str(task.array.index) for task in batch if task.array is not None)
        at_most = "" if job.array.at_most is None else f"%{job.array.at_most}"
        words.append(f"--array={indices}{at_most}")
    dependency = _dependency(job.dependency, number_of)
    if dependency:
        words.append(f"--dependency={dependency}")
    return words


def _valued(
    job: JobRequest, date_of: Callable[[float], str]
) -> Iterator[tuple[str, object | None]]:
    nodes = job.min_nodes
    yield "nodes", None if nodes is None else _range(nodes, job.max_nodes)
    yield "ntasks", job.tasks
    given = job.cpus_are_given or job.cpus_per_task != 1
    yield "cpus-per-task", job.cpus_per_task if given else None
    yield "ntasks-per-node", job.tasks_per_node
    least = job.least_cpus_per_node
    yield "mincpus", None if least == 1 else least
    yield "mem", None if job.memory_per_node_MiB is None else f"{job.memory_per_node_MiB}M"
    yield "mem-per-cpu", None if job.memory_per_cpu_MiB is None else f"{job.memory_per_cpu_MiB}M"
    yield "partition", ",".join(job.partitions) or None
    yield "account", job.account
    yield "qos", job.qos
    yield "time", job.limit_min
    yield "time-min", job.time_min_min
    yield "begin", None if job.begin_s is None else date_of(job.begin_s)
    yield "deadline", None if job.deadline_s is None else date_of(job.deadline_s)
    yield "nice", job.nice or None
    yield "priority", job.priority
    yield "constraint", job.constraint
    yield "prefer", job.prefer
    yield "nodelist", ",".join(job.nodelist) or None
    yield "exclude", ",".join(job.exclude) or None
    yield "distribution", None if job.distribution is None else f"block:{job.distribution}"
    yield "threads-per-core", 1 if job.one_thread else None
    yield "switches", _switches(job)
    yield "licenses", ",".join(f"{name}:{n}" for name, n in job.licenses.items()) or None
    yield "gres", ",".join(_gres(one) for one in job.gres) or None
    yield "gpus", _gpus(job.gpus)
    yield "gpus-per-socket", _gpus(job.gpus_per_socket)
    yield "gpus-per-task", _gpus(job.gpus_per_task)
    yield "cpus-per-gpu", job.cpus_per_gpu
    yield "mem-per-gpu", None if job.memory_per_gpu_MiB is None else f"{job.memory_per_gpu_MiB}M"
    yield "ntasks-per-gpu", job.tasks_per_gpu
    yield "gres-flags", "enforce-binding" if job.enforce_binding else None
    yield "sockets-per-node", job.sockets_per_node
    yield "cores-per-socket", job.cores_per_socket
    yield "ntasks-per-socket", job.tasks_per_socket
    yield "ntasks-per-core", job.tasks_per_core
    yield "reservation", job.reservation
    if job.exclusive is not None and job.exclusive != WHOLE_NODES:
        yield "exclusive", job.exclusive


def _flags(job: JobRequest) -> Iterator[tuple[str, bool]]:
    yield "exclusive", job.exclusive == WHOLE_NODES
    yield "contiguous", job.contiguous
    yield "spread-job", job.spread
    yield "hold", job.hold
    yield "oversubscribe", job.oversubscribe
    yield "requeue", job.requeue is True
    yield "no-requeue", job.requeue is False


def _range(least: int, most: int | None) -> str:
    return str(least) if most is None or most == least else f"{least}-{most}"


def _switches(job: JobRequest) -> str | None:
    if job.switches is None:
        return None
    wait = job.switch_wait_s
    return str(job.switches) if wait is None else f"{job.switches}@{wait // 60}:{wait % 60:02d}"


def _gres(one: Gres) -> str:
    return f"{one.name}:{_gpu(one)}"


def _gpu(one: Gres) -> str:
    return f"{one.type}:{one.count}" if one.type else str(one.count)


def _gpus(asked: Sequence[Gres]) -> str | None:
    return ",".join(map(_gpu, asked)) or None


def _dependency(text: str | None, number_of: Mapping[str, int]) -> str:
    """``afterok:a:b,after:c+5`` with Slurm's numbers for ids; ``?`` between parts stays."""
    kept = []
    for part in re.split("[,?]", text or ""):
        kind, *ids = part.strip().split(":")
        numbers = [number for name in ids if (number := _numbered(name, number_of))]
        if numbers:
            kept.append(":".join([kind, *numbers]))
        elif kind == "singleton":
            kept.append(kind)
    return ("?" if "?" in (text or "") else ",").join(kept)


def _numbered(text: str, number_of: Mapping[str, int]) -> str:
    """Slurm's name for ``job``, ``job+minutes`` or ``array_index``; "" if it has none."""
    name, plus, minutes = (text, "", "") if text in number_of else text.rpartition("+")
    if name not in number_of:
        return ""
    array, line, index = name.rpartition("_")
    is_task = number_of.get(array) == number_of[name] and index.isdigit()
    return f"{number_of[name]}{line + index if is_task else ''}{plus}{minutes}"


class Hello(NamedTuple):
    """What a job says when its script begins. restarts: how often it had begun before."""

    number: int
    restarts: int


class Sleepers:
    """Hears jobs and ends them. ``name`` is where they find us, and nobody can guess it."""

    def __init__(self) -> None:
        self.name = f"ptaskmodel-{secrets.token_hex(16)}"
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._door.bind(b"\0" + self.name.encode())
        self._door.listen(4096)
        self._door.setblocking(False)
        self._epoll = select.epoll()
        self._epoll.register(self._door, select.EPOLLIN)
        self._lines: dict[int, socket.socket] = {}
        self._numbers: dict[int, int] = {}  # of jobs, by descriptor

    def fileno(self) -> int:
        """Can be read when some job has something to say."""
        return self._epoll.fileno()

    def hear(self) -> tuple[list[Hello], list[int]]:
        """The scripts that have begun since, and the numbers of those whose process is gone."""
        begun: list[Hello] = []
        gone: list[int] = []
        while ready := self._epoll.poll(0):
            for descriptor, _ in ready:
                if descriptor == self._door.fileno():
                    self._let_in()
                    continue
                packet = self._read(descriptor)
                number = self._numbers.get(descriptor)
                hello = _hello(packet) if number is None else None
                if hello is not None:
                    self._numbers[descriptor] = hello.number
                    begun.append(hello)
                elif not packet or number is None:  # or a stranger's
                    self._forget(descriptor)
                    gone += [] if number is None else [number]
        return sorted(begun), sorted(gone)

    def _let_in(self) -> None:
        with contextlib.suppress(BlockingIOError):
            line, _ = self._door.accept()
            line.setblocking(False)
            self._lines[line.fileno()] = line
            self._epoll.register(line, select.EPOLLIN)

    def _read(self, descriptor: int) -> bytes:
        with contextlib.suppress(OSError):
            return self._lines[descriptor].recv(LONGEST)
        return b""

    def _forget(self, descriptor: int) -> None:
        self._epoll.unregister(descriptor)
        self._lines.pop(descriptor).close()
        self._numbers.pop(descriptor, None)

    def ignore_term(self, number: int) -> None:
        """Let a job ignore SIGTERM."""
        self._say(number, b"s")

    def end(self, number: int, code: int) -> None:
        """Let a job end by itself with an exit code."""
        self._say(number, b"e" + bytes([code]))

    def _say(self, number: int, what: bytes) -> None:
        for descriptor, its in self._numbers.items():
            if its == number:
                with contextlib.suppress(OSError):
                    self._lines[descriptor].send(what)

    def close(self) -> None:
        """Let go of all; those that are left end."""
        for line in self._lines.values():
            line.close()
        self._door.close()
        self._epoll.close()


def _hello(packet: bytes) -> Hello | None:
    words = packet.decode("latin-1").split(" ")
    if len(words) != 2 or not words[0].isdecimal() or not (words[1] or "0").isdecimal():
        return None
    return Hello(int(words[0]), int(words[1] or 0))
