# mypy: allow-untyped-defs, allow-incomplete-defs
"""Kernels that sum what ranks compute and send, action by action, for `traffic.Tally`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.mpi.collectives.dispatch import chosen, step_of_collective
from ptaskmodel.mpi.collectives.selection import Chosen
from ptaskmodel.mpi.collectives.steps import (
    COMPUTE,
    DO_SEND,
    FINISHED,
    JOIN_SEND,
    NO_MORE,
    POST_SEND,
    REQUEST_SEND,
    UNWANTED,
    sized,
)
from ptaskmodel.workload import actions as ti

A_BARRIER, A_COMPUTE, A_ISEND = ti.BARRIER, ti.COMPUTE, ti.ISEND
A_SEND, A_SENDRECV, A_SLEEP, A_WAITANY = ti.SEND, ti.SENDRECV, ti.SLEEP, ti.WAITANY


class Program(NamedTuple):
    """A trace as the kernel reads it; see `state.Replays` for the last ones."""

    actions: np.ndarray
    start: np.ndarray
    values: np.ndarray
    own_bytes: float
    type_bytes: np.ndarray
    algorithms: np.ndarray
    choices: np.ndarray


class Sums(NamedTuple):
    """What is added up: of each rank flop and seconds asleep, of each pair that talks bytes.

    sent, reached, size: what the rank at hand sends to each other, to whom, and in a step; scratch,
    ``sent`` all 0.
    """

    flops: np.ndarray
    asleep_s: np.ndarray
    source: np.ndarray
    target: np.ndarray
    bytes: np.ndarray
    sent: np.ndarray
    reached: np.ndarray
    size: np.ndarray


@jit
def send(sums, reached, to, size):
    """Count a message of the rank at hand; returns to how many it has sent."""
    if size > 0.0:
        if sums.sent[to] == 0.0:
            sums.reached[reached] = to
            reached += 1
        sums.sent[to] += size
    return reached


@jit
def add_collective(p, sums, reached, kind, r, n, first, last):
    """Count what rank r of n sends and computes in a collective; as `send`, or UNWANTED."""
    c = Chosen(p.algorithms, p.choices)
    algorithm = chosen(p.values, first, last, n, kind, p.type_bytes, p.own_bytes, c)
    phase = 0
    k = 0
    while True:
        what, peer, size = step_of_collective(
            kind, phase, k, r, n, p.values, first, last, p.type_bytes, p.own_bytes, algorithm,
            c, sums.size,
        )  # fmt: skip
        if what == FINISHED:
            return reached
        if what == UNWANTED:
            return UNWANTED
        if what == NO_MORE:
            phase += 1
            k = 0
            continue
        if what in (POST_SEND, DO_SEND, REQUEST_SEND, JOIN_SEND):
            reached = send(sums, reached, peer, size)
        elif what == COMPUTE:
            sums.flops[r] += size
        k += 1


@jit
def add_action(p, sums, reached, action, r, n):
    """Count an action of rank r of n; as `add_collective`."""
    kind = np.int64(p.actions[action])
    first = p.start[action]
    last = p.start[action + 1]
    values = p.values
    if kind >= A_BARRIER and kind != A_WAITANY:
        return add_collective(p, sums, reached, kind, r, n, first, last)
    if kind == A_COMPUTE:
        sums.flops[r] += values[first]
    elif kind == A_SLEEP:
        sums.asleep_s[r] += values[first]
    elif kind == A_SENDRECV:
        to = int(values[first + 1])
        if to >= 0 and to != r:
            unit = sized(values, first, 4, last, p.type_bytes, p.own_bytes)
            return send(sums, reached, to, np.floor(values[first]) * unit)
    elif kind in (A_SEND, A_ISEND):
        to = int(values[first])
        if to >= 0 and to != r:
            unit = sized(values, first, 3, last, p.type_bytes, p.own_bytes)
            return send(sums, reached, to, np.floor(values[first + 2]) * unit)
    return reached


@entry
def add_up(p, first, last, rank, sums):
    """Add up actions of the ranks from ``rank`` on; (rank which does not fit, flows).

    UNWANTED instead of the rank: collectives cannot be added up.
    """
    n = first.size
    flows = 0
    for r in range(rank, n):
        if flows + n > sums.bytes.size:
            return r, flows
        reached = 0
        for action in range(first[r], last[r]):
            reached = add_action(p, sums, reached, action, r, n)
            if reached < 0:
                return UNWANTED, flows
        for i in range(reached):
            to = sums.reached[i]
            sums.source[flows] = r
            sums.target[flows] = to
            sums.bytes[flows] = sums.sent[to]
            sums.sent[to] = 0.0
            flows += 1
    return n, flows
