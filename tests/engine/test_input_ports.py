"""Shares by input port: by hand, against a naive fluid model, and in runs that are interrupted."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ptaskmodel import FatTree, Flow, Platform, Simulation
from ptaskmodel.engine.check import check_lists
from ptaskmodel.engine.usage.network_models import WIRES, NetworkModel
from ptaskmodel.engine.wires import FULL_PORT, ROUNDS

BARE = WIRES["ROCE"]._replace(
    header_B=0.0, ack_B=0.0, latency=False, hops=False, measured_to="last byte", input_ports=True
)


def wired(**changes):
    return NetworkModel.of_wire(BARE._replace(**changes))


def two_inputs():
    """Hosts a and b send over link 0, host c over link 1; both lead to a switch, link 2 to d."""
    build = Platform.build("y", routing="Dijkstra")
    for name in "abcd":
        build.host(name, "1Gf")
    for name in ("s", "t"):
        build.router(name)
    for name, ends, bandwidth in (
        *(("a", ("a", "s"), 9e9), ("b", ("b", "s"), 9e9), ("l0", ("s", "t"), 9e9)),
        *(("l1", ("c", "t"), 9e9), ("l2", ("t", "d"), 1e9)),
    ):
        build.link(name, bandwidth, 0.0, policy="SPLITDUPLEX")
        build.route(*ends, [(name, "UP")])
    return build.finish()


@pytest.mark.parametrize(("input_ports", "wanted"), [(False, [3, 3, 3]), (True, [3, 3, 2])])
def test_a_full_link_is_divided_by_its_inputs(input_ports, wanted):
    """Three flows of 1 GB over 1 GB/s: by inputs c has half of it, and then a and b have all."""
    model = wired(input_ports=input_ports)
    simulation = Simulation(two_inputs(), network_model=model)
    simulation.add_all(Flow(name, "d", 1e9) for name in "abc")
    while simulation.step():
        assert check_lists(simulation.core.state) == []
    assert [each.execution_s for each in simulation.records()] == pytest.approx(wanted)


def test_flows_at_the_link_of_their_sender_are_inputs_of_their_own():
    simulation = Simulation(two_inputs(), network_model=wired())
    simulation.add_all([Flow("d", "a", 1e9), Flow("d", "b", 1e9), Flow("d", "c", 1e9)])
    assert [each.execution_s for each in simulation.run().records()] == pytest.approx([3, 3, 3])


# --- a naive model -------------------------------------------------------------------------------


def max_min(uses, weight, capacity):
    """Weighted max-min fair rates; uses: shape (links, flows), whether a flow crosses a link."""
    rate = np.zeros(len(weight))
    active = np.ones(len(weight), dtype=bool)
    while active.any():
        asked = uses @ (weight * active)
        left = capacity - uses @ (rate * ~active)
        level = np.divide(left, asked, out=np.full(len(left), np.inf), where=asked > 0.0)
        tight = uses[level <= level.min() * (1.0 + 1e-12)].any(axis=0) & active
        rate[tight] = weight[tight] * level.min()
        active &= ~tight
    return rate


def rates(routes, capacity):
    """The rates of flows that take these routes."""
    uses = np.array([[float(link in route) for route in routes] for link in range(len(capacity))])
    rate = max_min(uses, np.ones(len(routes)), capacity)
    for _ in range(ROUNDS):
        full = uses @ rate >= FULL_PORT * capacity
        weight = np.ones(len(routes))
        for k, route in enumerate(routes):
            hop = next((h for h, link in enumerate(route) if full[link]), 0)
            if hop > 0:
                pair = route[hop - 1], route[hop]
                weight[k] /= sum(pair in itertools.pairwise(other) for other in routes)
        rate = max_min(uses, weight, capacity)
    return rate


def durations(routes, sizes_B, start_s, capacity):
    """How long each flow lasts, s."""
    left, end, now = sizes_B.copy(), np.full(len(routes), np.nan), 0.0
    while np.isnan(end).any():
        chosen = np.flatnonzero((start_s <= now) & (left > 0.0))
        until = start_s[start_s > now].min(initial=np.inf)
        if len(chosen):
            rate = rates([routes[k] for k in chosen.tolist()], capacity)
            last = now + left[chosen] / rate
            until = min(until, last.min())
            left[chosen] -= rate * (until - now)
            over = chosen[last <= until * (1.0 + 1e-12)]
            left[over], end[over] = 0.0, until
        now = until
    return end - start_s


@pytest.mark.jit
@pytest.mark.parametrize("seed", range(6))
def test_random_traffic_is_as_in_a_naive_model(seed):
    rng = np.random.default_rng(seed)
    build = Platform.build("w")
    build.cluster("c", FatTree((4, 4), (1, 2), (1, 1)), prefix="c", speed=1e9, bandwidth=1e9,
                  latency=1e-6, policy="SPLITDUPLEX")  # fmt: skip
    platform = build.finish()
    n = 40
    ends = [rng.choice(16, 2, replace=False).tolist() for _ in range(n - 12)]
    ends += [[host, 0] for host in range(4, 16)]  # an incast
    sizes_B, start_s = rng.integers(1, 9, n) * 1e6, rng.integers(0, 12, n) * 1e-3
    simulation = Simulation(platform, network_model=wired(), routing=f"ecmp:{seed}")
    simulation.add_all(
        Flow(platform.hosts[a].name, platform.hosts[b].name, float(size), start_s=float(start))
        for (a, b), size, start in zip(ends, sizes_B, start_s, strict=True)
    )
    ways = simulation.core.router.flow_routes
    routes = [ways.way(str(k), 0, a, b).there for k, (a, b) in enumerate(ends)]
    capacity = np.array([link.bandwidth_Bps for link in platform.all_links])
    while simulation.step():
        assert check_lists(simulation.core.state) == []
    found = [each.execution_s for each in simulation.records()]
    assert found == pytest.approx(durations(routes, sizes_B, start_s, capacity), rel=1e-9)


@pytest.mark.jit
def test_recording_and_checkpoints_change_nothing(tmp_path):
    from ptaskmodel import load_checkpoint, save_checkpoint

    def begun():
        simulation = Simulation(two_inputs(), network_model=wired())
        simulation.add_all(Flow("abc"[k % 3], "d", 1e8 * k, start_s=0.1 * k) for k in range(1, 9))
        return simulation

    plain = begun().run().records()
    simulation = begun()
    simulation.run(0.5)
    save_checkpoint(simulation, tmp_path / "c", {})
    assert load_checkpoint(tmp_path / "c")[0].run().records() == plain
