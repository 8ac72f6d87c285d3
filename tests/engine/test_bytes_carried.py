"""Wire models carry each byte once: what links carried is what their flows put on them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ptaskmodel import Flow, Platform, Simulation
from ptaskmodel.engine.usage.network_models import WIRES, NetworkModel
from ptaskmodel.recording.intervals import Recorder


class Carried:
    """A listener that sums what each resource carried, bytes."""

    def __init__(self):
        self.bytes = Counter()

    def begin(self, recorder): ...

    def changes(self, events): ...

    def phases(self, phases): ...

    def uses(self, uses):
        carried = (uses.end - uses.start) * uses.rate
        for resource, amount in zip(uses.resource.tolist(), carried.tolist(), strict=True):
            self.bytes[resource] += amount

    def end(self): ...


def star(n):
    build = Platform.build("star", routing="Dijkstra")
    build.router("r")
    for k in range(n):
        build.host(f"h{k}", "1Gf")
        build.link(f"l{k}", 1.25e9, 5e-6, policy="SPLITDUPLEX")
        build.route(f"h{k}", "r", [(f"l{k}", "UP")])
    return build.finish()


@pytest.mark.parametrize("input_ports", [False, True])
@pytest.mark.parametrize("name", WIRES)
def test_each_link_carries_the_bytes_of_its_flows(name, input_ports):
    wire = WIRES[name]._replace(input_ports=input_ports)
    simulation = Simulation(star(5), network_model=NetworkModel.of_wire(wire))
    rng = np.random.default_rng(40)
    wanted = Counter()
    for _ in range(15):
        a, b = rng.choice(5, 2, replace=False)
        size = float(rng.integers(10_000, 3_000_000))
        simulation.add(Flow(f"h{a}", f"h{b}", size))
        there = size + wire.header_B * np.ceil(size / wire.mss_B)
        back = there * wire.ack_B / wire.packet_B if wire.acknowledgements else 0.0
        for link, amount in ((f"l{a}_UP", there), (f"l{b}_DOWN", there)):
            wanted[link] += amount
        for link in (f"l{b}_UP", f"l{a}_DOWN"):
            wanted[link] += back
    carried = Carried()
    with Recorder(simulation, [carried]):
        simulation.run()
    names = [link.name for link in simulation.platform.links]
    hosts = len(simulation.platform.hosts)
    found = {names[k - hosts]: amount for k, amount in carried.bytes.items() if k >= hosts}
    assert found == pytest.approx({link: each for link, each in wanted.items() if each}, rel=1e-9)
