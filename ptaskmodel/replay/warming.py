"""Compiles the kernels of replays, by a small one."""

from __future__ import annotations

from ptaskmodel.platform import Platform
from ptaskmodel.replay.driver import Replay
from ptaskmodel.replay.tally import Tally
from ptaskmodel.workload.formats.ti_trace import trace_in

TRACE = b"0 init\n0 compute 1\n0 send 1 0 1e6\n1 recv 0 0 1e6\n0 barrier\n1 barrier\n"


def prepare_kernels() -> None:
    """Replay a message and a barrier, spread messages over more buckets, add the trace up."""
    build = Platform.build("world")
    build.cluster("c", 2, prefix="c", speed=1e9, bandwidth=1e9, latency=1e-6)
    trace = trace_in(TRACE, "a small trace")
    Tally(trace).amounts(trace.first[:-1], trace.first[1:])
    made = Replay(build.finish(), trace, ["c0", "c1"])
    made.run(lambda spans, flights: None)
    made.applications.make_room_for_messages()
