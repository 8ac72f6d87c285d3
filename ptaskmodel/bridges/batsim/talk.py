"""A conversation with a scheduler: requests with dates, replies, and the time that it takes."""

from __future__ import annotations

import math
import time
from typing import Any, Protocol

import msgspec

from ptaskmodel.bridges.batsim.faults import SchedulerFault
from ptaskmodel.bridges.batsim.messages import ROUNDED_S, OldReply, Reply, read_reply

# A scheduler that is asked so often at one date does not let the time pass.
MAX_EXCHANGES_AT_A_DATE = 100_000


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
                f"it answered {MAX_EXCHANGES_AT_A_DATE:,} times without letting time pass", now=now
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
                f"at {now:g} s dates are {math.ulp(now):.2g} s apart: shorter delays may move no "
                "clock"
            )
        return reply

    def notes(self) -> tuple[str, ...]:
        """What was odd about dates, a line each."""
        early = (
            f"{self.early} replies of the scheduler were dated before their requests, the first "
            f"{self._first_early}: they took effect at the request's date"
        )
        return (*([early] if self.early else []), *([self._coarse] if self._coarse else []))

    def close(self) -> None:
        self._wire.close()
