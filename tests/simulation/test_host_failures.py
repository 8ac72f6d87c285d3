"""A flow uses its two hosts: it is lost with either, whatever the network model."""

from __future__ import annotations

import pytest

import ptaskmodel as pm
from ptaskmodel.errors import SimulationError
from ptaskmodel.mpi import read_trace, replay
from ptaskmodel.platform import Platform

MODELS = pytest.mark.parametrize("model", ["L07", "CM02", "LV08", "SMPI"])
ENDS = pytest.mark.parametrize("host", ["a", "b"])


def platform(states=None, latency=1e-6, **config):
    """Two hosts and a link of 100 MB/s. states: (date, on) of host b."""
    build = Platform.build("p", config=config)
    build.host("a", speed=1e9)
    build.host("b", speed=1e9, state_trace=states)
    build.link("l", bandwidth=1e8, latency=latency)
    build.route("a", "b", ["l"])
    return build.finish()


def flow(host, **facts):
    """Ten seconds long, towards or from a host."""
    return pm.Flow("b" if host == "a" else "a", host, 1e9, **facts)


@MODELS
@ENDS
def test_a_trace_turns_a_host_off(model, host):
    sim = pm.Simulation(platform([(2, 0), (50, 1)]), network_model=model)
    lost = sim.add(flow(host))
    sim.run()
    assert (lost.state, lost.end_s) == ("failed", 2.0)


@MODELS
def test_a_host_goes_off_while_a_flow_pays_its_latency(model):
    sim = pm.Simulation(platform([(2, 0)], latency=3.0), network_model=model)
    lost = sim.add(flow("b"))
    sim.run()
    assert (lost.state, lost.end_s) == ("failed", 2.0)


@MODELS
@ENDS
def test_a_host_is_turned_off_by_hand(model, host):
    sim = pm.Simulation(platform(), network_model=model)
    lost = sim.add(flow(host))
    sim.advance_to(2.0)
    sim.fail("b")
    assert (lost.state, lost.end_s) == ("failed", 2.0)


@MODELS
def test_a_host_fails_again(model):
    sim = pm.Simulation(platform(), network_model=model)
    sim.fail("b")
    sim.restore("b")
    first = sim.add(flow("b"))
    sim.advance_to(1.0)
    sim = sim.fork()
    sim.fail("b")
    assert sim.task(first.id).state == "failed"


@MODELS
@pytest.mark.parametrize("states", [[(0, 0)], [(1, 0)]])
def test_a_flow_begins_on_a_host_that_is_off(model, states):
    sim = pm.Simulation(platform(states), network_model=model)
    lost = sim.add(flow("b", start_s=3.0))
    follower = sim.add(pm.Execution("a", 1e9, after=[lost.id]))
    sim.run()
    assert (lost.state, follower.state) == ("failed", "dependency_failed")
    assert lost.end_s == pytest.approx(3.0, abs=2e-5)  # the end of its latency at the latest


@MODELS
def test_a_host_that_was_off_is_on_again(model):
    ends = []
    for states in (None, [(1, 0), (2, 1)]):
        sim = pm.Simulation(platform(states), network_model=model)
        ends.append(sim.add(flow("b", start_s=3.0)))
        sim.run()
    assert [task.state for task in ends] == ["completed", "completed"]
    assert ends[0].end_s == ends[1].end_s


@pytest.mark.parametrize("model", ["L07", "CM02", "LV08"])
def test_a_host_that_is_off_is_noticed_at_the_very_end(model):
    exact = platform([(2, 0)], latency=0.0, **{"network/bandwidth-factor": "1"})
    sim = pm.Simulation(exact, network_model=model)
    lost = sim.add(pm.Flow("a", "b", 2e8))  # 2 s at 100 MB/s
    sim.run()
    assert (lost.state, lost.end_s) == ("failed", 2.0)


@pytest.mark.parametrize("model", ["CM02", "LV08"])
def test_only_flows_of_that_host_are_lost(model):
    build = Platform.build("p")
    build.cluster("c", 4, prefix="n", speed=1e9, bandwidth=1e8, latency=1e-6)
    sim = pm.Simulation(build.finish(), network_model=model)
    ends = [("n0", "n1"), ("n1", "n2"), ("n2", "n3"), ("n3", "n0")]
    flows = sim.add_all([pm.Flow(source, target, 1e9) for source, target in ends])
    sim.advance_to(1.0)
    sim.fail("n1")
    sim.run()
    assert [task.state for task in flows] == ["failed", "failed", "completed", "completed"]


@pytest.mark.parametrize("model", ["SMPI", "CM02", "LV08", "L07"])
def test_a_message_is_lost_with_its_host(model, tmp_path):
    trace = tmp_path / "t.txt"
    trace.write_text("0 send 1 0 8e9\n1 recv 0 0 8e9\n")
    with pytest.raises(
        SimulationError,
        match="rank 0: send 1 0 8000000000: a host or link is off; check failures and traces",
    ):
        replay(platform([(2, 0), (50, 1)]), read_trace(trace), ["a", "b"], model=model)
