"""Room for what a simulation holds: enough for all that goes together, and not its square."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptaskmodel as pm
from ptaskmodel.engine.store import new_state, room_for_activities, room_for_wakes
from ptaskmodel.kernels.decorators import INTERPRETED
from ptaskmodel.platform import Platform
from ptaskmodel.sharing.state import room_for_nodes, room_for_users


def cluster(hosts):
    build = Platform.build("p")
    build.cluster("c", hosts, prefix="n", speed=1e9, bandwidth=125e6, latency=50e-6)
    return build.finish()


def test_large_tasks_on_used_links_ask_for_little_room():
    platform = cluster(300)
    hosts = [host.name for host in platform.hosts]
    simulation = pm.Simulation(platform)
    for k in range(6):
        simulation.add(pm.Task(tuple(hosts), pm.HomogeneousWork(1e9, 1e6), f"t{k}"))
    simulation.run()
    elements = 6 * 3 * 300  # of each task the core, the way up and the way down of each host
    assert len(simulation.core.state.graph.users) <= 16 * elements


def in_graph(grow):
    """What lets the graph of a state grow."""
    return lambda state, count: state._replace(graph=grow(state.graph, count))


GROWTH = st.tuples(
    st.sampled_from(
        [room_for_activities, in_graph(room_for_nodes), in_graph(room_for_users), room_for_wakes]
    ),
    st.integers(1, 30_000),
)


@settings(max_examples=30, deadline=None)
@given(st.lists(GROWTH, min_size=1, max_size=6))
def test_arrays_that_go_together_have_room_for_the_same(steps):
    state = new_state(cluster(3), live_bandwidths=False)
    for grow, count in steps:
        state = grow(state, count)
    activities = len(state.activities)
    assert len(state.heap) >= activities
    assert state.lists.shape[1] >= activities
    assert len(state.graph.variables) >= activities
    assert len(state.graph.kept) >= len(state.graph.nodes)
    assert len(state.queue) >= activities + len(state.wakes) + len(state.traces)


@pytest.mark.skipif(INTERPRETED, reason="takes long where nothing is compiled")
@pytest.mark.parametrize("solver", ["bmf", "fairbottleneck", "maxmin"])
def test_thousands_of_flows_at_a_time_on_one_link(solver):
    """Each of n flows gets an n-th of the bandwidth: those that are half as long end first.

    Then the others have half of their bytes left, and the link for themselves. Max-min fairness
    gives all the same progress instead, so that they end together.
    """
    build = Platform.build("p")
    build.host("a", "1Gf")
    build.host("b", "1Gf")
    build.link("l", "100Bps", "0us")
    build.route("a", "b", ["l"])
    simulation = pm.Simulation(build.finish(), solver=solver)
    n = 5_000
    flows = [simulation.add(pm.Flow("a", "b", 5.0 * (1 + k % 2))) for k in range(n)]
    simulation.run()
    last = (5.0 * n + 5.0 * n / 2) / 100.0
    first = last if solver == "maxmin" else 5.0 * n / 100.0
    assert [flow.end_s for flow in flows[:2]] == pytest.approx([first, last], rel=1e-9)
    assert {flow.end_s for flow in flows} == {flow.end_s for flow in flows[:2]}
