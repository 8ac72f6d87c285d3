"""Where the kernel of the steps of collectives is not there, nobody loops for ever."""

from __future__ import annotations

import pytest

from ptaskmodel.kernel_code import set_place
from ptaskmodel.platform import Platform
from ptaskmodel.replay import Replay
from ptaskmodel.replay.collective_steps import packed_step
from ptaskmodel.replay.tally import Tally
from ptaskmodel.workload.ti_building import trace_of_actions

TRACE = trace_of_actions([[("compute", 5.0), ("allreduce", 1000, 7.0)]] * 4)


@pytest.fixture
def unwanted():
    """To be called where all is made ready: then the steps are no longer there."""

    def take_away():
        if not packed_step._places:
            pytest.skip("with numba as it is all kernels are there")
        for place in packed_step._places:
            set_place(place, 0)

    yield take_away
    for place in packed_step._places:
        packed_step.fill(place)


@pytest.mark.jit
def test_amounts_are_not_added_up_for_ever(unwanted):
    tally = Tally(TRACE)
    assert tally.amounts(TRACE.first[:-1], TRACE.first[1:]).flops.tolist() == [12.0] * 4
    unwanted()
    with pytest.raises(AssertionError, match="not there"):
        tally.amounts(TRACE.first[:-1], TRACE.first[1:])


@pytest.mark.jit
def test_ranks_do_not_go_on_for_ever(unwanted):
    build = Platform.build("p")
    build.cluster("c", 4, prefix="n", speed=1e9, bandwidth=125e6, latency=50e-6)
    made = [Replay(build.finish(), TRACE, [f"n{k}" for k in range(4)]) for _ in range(2)]
    assert made[0].run().makespan_s > 0.0
    unwanted()
    with pytest.raises(AssertionError):
        made[1].run()
