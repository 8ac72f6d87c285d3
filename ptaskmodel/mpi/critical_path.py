"""The critical path of a replay: the chain of computations and messages that determines its end.

The path is followed backwards from the last end of a rank. If the rank did something by itself
(compute, sleep), the path continues with what it did before that. If it waited, a message ended the
wait. That message began when the second of its two ranks had posted it, so the path continues on
that rank. No part of the path is a wait, and each part begins at the time, bit-identical, at which
the previous one ended.

Source: C.-Q. Yang, B. P. Miller, "Critical path analysis for the execution of parallel and
distributed programs", ICDCS 1988.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.mpi.state import COMPUTING, FLIGHT, SPAN
from ptaskmodel.workload.actions import ACTIONS, IRECV, RECV, SLEEP, TEST
from ptaskmodel.workload.traces import Trace

# What a part is. Polling, testing: what looking for a message costs. Overhead: of sending and
# receiving, by the platform's <config>. Contention: what a transfer took more than alone.
KINDS = ("computing", "latency", "transfer", "contention", "overhead", "polling", "testing",
         "sleeping")  # fmt: skip
COMPUTES, LATENCY, TRANSFER, CONTENTION, OVERHEAD, POLLS, TESTS, SLEEPS = KINDS
AT_END = "end"


class Part(NamedTuple):
    """A part of the path, on a rank, or between two by a message.

    action: what the rank does (of a message: who receives it, or waits for having sent it), ``end``
    after the last one. message, bytes: of what is sent (-1 and 0 if nothing is): its number in the
    order of beginnings.
    """

    start_s: float
    end_s: float
    kind: str
    rank: int
    to_rank: int
    action: str
    message: int
    bytes: float


class Told:
    """Keeps what a replay tells: a listener. About 120 bytes for each message."""

    def __init__(self) -> None:
        self._spans: list[np.ndarray] = []
        self._flights: list[np.ndarray] = []

    def __call__(self, spans: np.ndarray, flights: np.ndarray) -> None:
        self._spans.append(spans)
        self._flights.append(flights)

    def spans(self) -> np.ndarray:
        """All of them (see `state.SPAN`)."""
        return np.concatenate([np.zeros(0, dtype=SPAN), *self._spans])

    def flights(self) -> np.ndarray:
        """All of them (see `state.FLIGHT`)."""
        return np.concatenate([np.zeros(0, dtype=FLIGHT), *self._flights])


def critical_path(trace: Trace, spans: np.ndarray, flights: np.ndarray) -> list[Part]:
    """The parts in order of time, end to end from date 0 to the last end of a rank.

    spans, flights: all that a replay of the trace told. A message is two parts: latency, transfer.
    """
    before = _before(spans)
    parts: list[Part] = []
    at = int(np.argmax(spans["end"])) if len(spans) else -1
    while at >= 0:
        rank, action, held, cause, begin, end = spans[at].tolist()
        name = ACTIONS[trace.actions[action]] if action >= 0 else AT_END
        if cause < 0:
            kind = _kind(int(held), int(trace.actions[action]) if action >= 0 else -1)
            parts.append(Part(begin, end, kind, rank, rank, name, -1, 0.0))
            at = int(before[at])
            continue
        number, source, target, size, at, begin, latency, end = flights[cause].tolist()
        flows = min(begin + latency, end)
        if end > flows:
            parts.append(Part(flows, end, TRANSFER, source, target, name, number, size))
        if flows > begin:
            parts.append(Part(begin, flows, LATENCY, source, target, name, number, size))
    return parts[::-1]


def _before(spans: np.ndarray) -> np.ndarray:
    """For each span the one before it of the same rank, -1: none."""
    order = np.argsort(spans["rank"], kind="stable")
    rank = spans["rank"][order]
    before = np.full(len(spans), -1)
    same = rank[1:] == rank[:-1]
    before[order[1:][same]] = order[:-1][same]
    return before


def _kind(held: int, action: int) -> str:
    if held == COMPUTING:
        return POLLS if action in (RECV, IRECV) else COMPUTES
    if action == SLEEP:
        return SLEEPS
    return TESTS if action == TEST else OVERHEAD
