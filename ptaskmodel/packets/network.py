"""Flows as packets on links: provide and grow the arrays of the loop, and read what flows did.

This module knows neither platforms nor tasks; `tasks` runs those of a simulation on it.
`prepare_kernels` calls the kernels for the build.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptaskmodel.kernels.decorators import as_compiled
from ptaskmodel.kernels.records import enlarged, records
from ptaskmodel.packets import loop
from ptaskmodel.packets.loop import run
from ptaskmodel.packets.state import (
    BUCKET,
    CLOCK,
    EVENT,
    FLOW,
    GROW_PACKETS,
    GROW_PAUSES,
    LINK,
    NOTHING,
    PACKET,
    PAUSE,
    START,
    State,
)

# Intervals of the recorded queues at most; at least half of them are used.
INTERVALS = 256
# Hops of packets between two looks at the clock of the caller: some tenths of a second.
HOPS_AT_ONCE = 1 << 21


@dataclass(frozen=True, slots=True)
class Protocol:
    """How senders send.

    payload_B: data of a packet, bytes. header_B: what is sent with it. ack_B: size of an
    acknowledgement, and of what opens a connection. by_windows: DCTCP; else senders send as fast as
    they can, and switches pause links (RoCE with PFC).
    opens: a connection is opened first. initial_packets: the first window. gain: weight of a new
    part of marked bytes in the moving average. pause_B, resume_B: bytes waiting in a switch above
    which it pauses the link that they came over, and below which it lets it go on.
    until_acknowledged: a flow ends when its sender hears of its last byte, not when that arrives.
    """

    payload_B: float
    header_B: float
    ack_B: float
    by_windows: bool
    opens: bool = False
    initial_packets: float = 10.0
    gain: float = 1.0 / 16.0
    pause_B: float = np.inf
    resume_B: float = np.inf
    until_acknowledged: bool = False

    def packets(self, size: ArrayLike) -> NDArray[np.float64]:
        """How many packets carry ``size`` bytes."""
        return np.maximum(np.ceil(np.asarray(size, dtype=np.float64) / self.payload_B), 1.0)


class Queues(NamedTuple):
    """The queues of links over time, in intervals of equal length.

    begin_s, length_s: of the first interval. largest_B: shape (links, intervals), the largest queue
    that a packet made as it joined. joined_B: the bytes that joined.
    """

    begin_s: float
    length_s: float
    largest_B: NDArray[np.float64]
    joined_B: NDArray[np.float64]


class Pause(NamedTuple):
    """A link was stopped: by the switch at its far end, where packets wait for another link.

    link: number of the link; toward: of that which the packet waits for that filled the switch.
    until_s: nan: it never goes on.
    """

    link: int
    toward: int
    since_s: float
    until_s: float


class PacketNetwork:
    """Links with queues, and the flows of packets on them.

    protocol: how senders send. bandwidth_Bps, latency_s: of each link. mark_B: the queue from which
    on it marks packets (inf: never). room_B: the largest queue that it has room for. recorded: keep
    queues over time.
    """

    def __init__(
        self,
        protocol: Protocol,
        bandwidth_Bps: ArrayLike,
        latency_s: ArrayLike,
        mark_B: ArrayLike = np.inf,
        room_B: ArrayLike = np.inf,
        *,
        recorded: bool = False,
    ) -> None:
        self.protocol = protocol
        bandwidth_Bps = np.asarray(bandwidth_Bps, dtype=np.float64)
        n = len(bandwidth_Bps)
        links = records(n, LINK)
        links["B_per_s"], links["s_per_B"] = bandwidth_Bps, 1.0 / bandwidth_Bps
        links["latency"], links["mark_B"], links["room_B"] = latency_s, mark_B, room_B
        for name in ("first", "last", "first_waiting", "last_waiting"):
            links[name] = NOTHING
        clock = records(1, CLOCK)
        packet_B = protocol.payload_B + protocol.header_B
        clock["free_packet"] = NOTHING
        clock["packet_B"], clock["ack_B"] = packet_B, protocol.ack_B
        clock["initial_B"] = protocol.initial_packets * packet_B
        for name in ("gain", "pause_B", "resume_B", "by_windows", "opens", "until_acknowledged"):
            clock[name] = getattr(protocol, name)
        packet_s = packet_B / bandwidth_Bps.max(initial=1.0)
        clock["buckets_per_s"] = 1.0 / packet_s
        clock["interval"] = packet_s if recorded else 0.0
        buckets = records(1 << (2 * n).bit_length(), BUCKET)
        buckets["first"] = NOTHING
        shape = (n, INTERVALS) if recorded else (0, 0)
        self.state = State(
            clock,
            links,
            records(0, FLOW),
            np.zeros(0, dtype=np.int64),
            records(0, PACKET),
            records(2 * n, EVENT),
            buckets,
            records(0, START),
            records(2, PAUSE),
            np.zeros(shape),
            np.zeros(shape),
        )
        self._grow_packets()

    # --- adding -----------------------------------------------------------------------------

    def add(
        self,
        start_s: ArrayLike,
        size_B: ArrayLike,
        there: Sequence[Sequence[int]],
        back: Sequence[Sequence[int]],
    ) -> range:
        """Add flows; returns their numbers.

        start_s: dates, not before now; inf: `start` will say. size_B: bytes to carry. there, back:
        the links of each, and those of its acknowledgements.
        """
        s = self.state
        start_s = np.asarray(start_s, dtype=np.float64)
        size_B = np.asarray(size_B, dtype=np.float64)
        first, n = len(s.flows), len(size_B)
        flows = enlarged(s.flows, first + n)[: first + n]
        new = flows[first:]
        hops, hops_back = ([len(route) for route in routes] for routes in (there, back))
        links = [link for pair in zip(there, back, strict=True) for route in pair for link in route]
        new["hops"], new["hops_back"] = hops, hops_back
        new["first"] = len(s.routes) + np.cumsum(np.add(hops, hops_back)) - np.add(hops, hops_back)
        new["bytes"] = size_B + self.protocol.packets(size_B) * self.protocol.header_B
        new["end"] = np.nan
        routes = np.concatenate([s.routes, np.array(links, dtype=np.int64)])
        if first == 0 and n:
            s.clock[0]["origin"] = start_s.min()
        self.state = s._replace(flows=flows, routes=routes)
        known = np.flatnonzero(start_s < np.inf)
        self._begin_at(start_s[known], first + known)
        return range(first, first + n)

    def start(self, flows: Sequence[int], date_s: float) -> None:
        """Let ``flows`` begin at ``date_s``, which is not past."""
        numbers = np.asarray(flows, dtype=np.int64)
        self._begin_at(np.full(len(numbers), date_s), numbers)

    def watch(self, flows: Sequence[int]) -> None:
        """Let `run` return when one of ``flows`` ends."""
        self.state.flows["watched"][flows] = True

    def _begin_at(self, dates: NDArray[np.float64], flows: NDArray[np.int64]) -> None:
        """Put flows among those that begin, behind those of the same date."""
        s = self.state
        left = s.starts[int(s.clock[0]["started"]) :]
        order = np.argsort(dates, kind="stable")
        starts = records(len(left) + len(order), START)
        where = np.searchsorted(left["date"], dates[order], side="right") + np.arange(len(order))
        others = np.ones(len(starts), dtype=bool)
        others[where] = False
        starts[others] = left
        starts["date"][where], starts["flow"][where] = dates[order], flows[order]
        s.clock[0]["started"] = 0
        self.state = s._replace(starts=starts)

    # --- running ----------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The date of the last event, s."""
        return float(self.state.clock[0]["now"])

    @property
    def hops(self) -> int:
        """How many packets have crossed how many links."""
        return int(self.state.clock[0]["hops"])

    @property
    def n_ended(self) -> int:
        """How many flows have ended."""
        return int(self.state.clock[0]["n_ended"])

    @property
    def subject(self) -> int:
        """The flow that ended (ENDED), or the link that has no room (OVERFULL)."""
        return int(self.state.clock[0]["subject"])

    def run(self, until_s: float = np.inf, hops: int = HOPS_AT_ONCE) -> int:
        """Go on to ``until_s``, for some ``hops`` of packets; returns as `loop.run` does."""
        with as_compiled():
            while True:
                status = int(loop.run(self.state, float(until_s), hops))
                if status == GROW_PACKETS:
                    self._grow_packets()
                elif status == GROW_PAUSES:
                    pauses = enlarged(self.state.pauses, 2 * len(self.state.pauses))
                    self.state = self.state._replace(pauses=pauses)
                else:
                    return status

    def _grow_packets(self) -> None:
        s = self.state
        old = len(s.packets)
        packets = enlarged(s.packets, max(2 * old, 8 * int(self.protocol.initial_packets + 8)))
        packets["next"][old:] = np.arange(old + 1, len(packets) + 1)
        packets["next"][-1] = s.clock[0]["free_packet"]
        s.clock[0]["free_packet"] = old
        s.clock[0]["n_free"] += len(packets) - old
        self.state = s._replace(packets=packets)

    # --- reading ----------------------------------------------------------------------------

    @property
    def end_s(self) -> NDArray[np.float64]:
        """The date at which each flow ended, nan: it has not."""
        return self.state.flows["end"].copy()

    @property
    def carried_B(self) -> NDArray[np.float64]:
        """What each link has begun to send, bytes."""
        return self.state.links["carried_B"].copy()

    def queues(self) -> Queues:
        """The recorded queues up to now."""
        s = self.state
        clock = s.clock[0]
        length_s, begin_s = float(clock["interval"]), float(clock["origin"])
        used = min(int((self.now - begin_s) / length_s) + 1, INTERVALS)
        return Queues(begin_s, length_s, s.largest_B[:, :used].copy(), s.joined_B[:, :used].copy())

    def pauses(self) -> Iterator[Pause]:
        """The pauses of links, in the order in which they began."""
        for row in self.state.pauses[: int(self.state.clock[0]["n_pauses"])].tolist():
            yield Pause(*row)


def prepare_kernels() -> None:
    """All of them."""
    network = PacketNetwork(Protocol(1448.0, 54.0, 54.0, by_windows=True), [1e9], 1e-6)
    run.prepare(network.state, 1.0, 1)
