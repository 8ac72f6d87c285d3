"""Call the kernels of replays with all kinds of arguments, so that they can be compiled ahead."""

from __future__ import annotations

from ptaskmodel.mpi.loop import look_ahead, move_routes, run
from ptaskmodel.mpi.run import Replay
from ptaskmodel.mpi.traffic import Tally
from ptaskmodel.platform import Platform
from ptaskmodel.workload.formats.ti_trace import trace_in

# Without collective operations: what they are made of is compiled elsewhere meanwhile.
TRACE = b"0 init\n0 compute 1\n0 send 1 0 1e6\n1 recv 0 0 1e6\n"


def prepare_kernels() -> None:
    """All of them."""
    prepare_loop()
    prepare_beside()


def prepare_loop() -> None:
    """The loop of a replay, but for what ranks do."""
    made = _replay()
    run.prepare(made.core.state, made.state, made.core.options)


def prepare_beside() -> None:
    """What is done beside the loop: hosts noted ahead, messages spread, traces added up."""
    made = _replay()
    look_ahead.prepare(made.core.state, made.state)
    move_routes.prepare(made.state, made.state.routes)
    made.applications.make_room_for_messages()
    trace = made.trace
    Tally(trace).amounts(trace.first[:-1], trace.first[1:])


def _replay() -> Replay:
    build = Platform.build("world")
    build.cluster("c", 2, prefix="c", speed=1e9, bandwidth=1e9, latency=1e-6)
    return Replay(build.finish(), trace_in(TRACE, "a small trace"), ["c0", "c1"])
