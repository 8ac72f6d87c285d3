"""A replay disturbed by endless flows: messages between hosts that never come to their end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ptaskmodel.errors import WorkloadError
from ptaskmodel.platform import Platform
from ptaskmodel.replay import Replay
from ptaskmodel.workload.ti_actions import RECV, SEND
from ptaskmodel.workload.ti_traces import Trace

# Years at any bandwidth there is.
ENDLESS_BYTES = 2.0**60

Pairs = Sequence[tuple[str, str]]


def disturbed(
    platform: Platform,
    trace: Trace,
    hosts: Sequence[str],
    pairs: Pairs,
    *,
    model: str | None = None,
    solver: str | None = None,
    collectives: Mapping[str, str] | None = None,
) -> Replay:
    """The replay of an application beside endless flows, one from the first host of each pair to
    the second; it is over when the application is.

    A flow is a message between two ranks of a second application, so it travels as the messages of
    the first do. What `run` returns holds these ranks too, after those of the application.

    Raises as `replay`; who waits for ever must be found without flows, since these go on for ever.
    """
    made = Replay(platform, trace, hosts, model=model, solver=solver, collectives=collectives)
    m = 2 * len(pairs)
    if m == 0:
        return made
    fields = np.array([[k ^ 1, 0.0, ENDLESS_BYTES] for k in range(m)])
    flows = Trace(
        np.tile(np.array([SEND, RECV], np.int8), len(pairs)),
        np.arange(m + 1),
        3 * np.arange(m + 1),
        fields.ravel(),
        1.0,
        trace.origin,
    )
    ends = [platform.host(host).index for pair in pairs for host in pair]
    made.applications.begin(1, flows, ends)
    made.state.counts["unfinished"] = trace.ranks
    return made


def pairs_of(sources: Sequence[str], targets: Sequence[str]) -> list[tuple[str, str]]:
    """Each of the sources with the target at its place. Raises WorkloadError if they differ."""
    if len(sources) != len(targets):
        raise WorkloadError(
            f"flows from {len(sources)} hosts to {len(targets)}: give as many of both"
        )
    return list(zip(sources, targets, strict=True))
