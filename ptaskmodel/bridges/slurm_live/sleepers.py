"""The jobs that Slurm has started, each a process that sleeps until it is told to end."""

from __future__ import annotations

import contextlib
import secrets
import select
import socket
from typing import NamedTuple

LONGEST = 1 << 16


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
