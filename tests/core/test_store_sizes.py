"""Room for users of resources grows with those that there are, not with its square."""

from __future__ import annotations

import ptaskmodel as pm
from ptaskmodel.platform import Platform


def test_large_tasks_on_used_links_ask_for_little_room():
    build = Platform.build("p")
    build.cluster("c", 300, prefix="n", speed=1e9, bandwidth=125e6, latency=50e-6)
    platform = build.finish()
    hosts = [host.name for host in platform.hosts]
    simulation = pm.Simulation(platform)
    for k in range(6):
        simulation.add(pm.Task(tuple(hosts), pm.HomogeneousWork(1e9, 1e6), f"t{k}"))
    simulation.run()
    elements = 6 * 3 * 300  # of each task the core, the way up and the way down of each host
    assert len(simulation.core.state.users) <= 16 * elements
