"""Fair bottleneck among heavy resources: after every event the same, to the bit, as among all."""

from __future__ import annotations

import numpy as np
import pytest
from engine_runner import happen

import ptaskmodel as pm
from ptaskmodel.engine.check import check_state
from ptaskmodel.engine.state import RUNNING

CLUSTER = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<cluster id="c" prefix="n" suffix="" radical="0-31" speed="1Gf" bw="125MBps" lat="50us" {more}/>
</platform>
"""
SHAPES = {
    "star": "",
    "tree": 'topology="FAT_TREE" topo_parameters="2;8,4;1,3;1,2"',
    "backbone": 'bb_bw="900MBps" bb_lat="10us"',
    "narrow-pipe": 'bb_bw="60MBps" bb_lat="10us" bb_sharing_policy="FATPIPE"',
}


def simulations(place, shape: str) -> list[pm.Simulation]:
    """One that keeps heavy resources, and one that leaves nothing out."""
    path = place / "platform.xml"
    path.write_text(CLUSTER.format(more=SHAPES[shape]))
    machine = pm.load_platform(path)
    return [
        pm.Simulation(machine, solver="fairbottleneck", optimise=optimise)
        for optimise in (True, False)
    ]


def overlapping(seed: int, count: int, between_s: float, repeats: bool) -> list[pm.Task]:
    """Tasks of few hosts each, all or some of which talk, on hosts that others use too.

    repeats: some name hosts twice, with amounts of their own.
    """
    random = np.random.default_rng(seed)
    tasks: list[pm.Task] = []
    for k in range(count):
        n = int(random.integers(3, 9))
        hosts = [f"n{h}" for h in random.choice(32, n, replace=False)]
        if repeats and k % 5 == 0:
            hosts[n // 2 :] = hosts[: n - n // 2]
        flops = random.uniform(0.1, 1.0, n) * 1e9
        if k % 2:
            flops[:] = flops[0]
        bytes_ = random.uniform(0.5, 1.0) * 1e7 * (random.random((n, n)) < random.random())
        task = pm.ParallelTask(hosts, flops.tolist(), bytes_.tolist(), start_s=k * between_s)
        tasks.append(task)
    return tasks


def rates(simulation: pm.Simulation) -> dict[int, float]:
    """The rate of each task that shares resources now."""
    state = simulation.core.state
    running = np.flatnonzero(state.activities["state"] == RUNNING)
    owners, found = state.activities["owner"][running], state.graph.variables["rate"][running]
    return dict(zip(owners.tolist(), found.tolist(), strict=True))


def light_uses(simulation: pm.Simulation) -> int:
    """Kept elements that take no part in the rounds, of activities of which something is kept."""
    variables = simulation.core.state.graph.variables
    known = variables[(variables["enabled"] == 1) & (variables["took"] > 0.0)]
    return int((known["n_kept"] - known["n_heavy"]).sum())


@pytest.mark.jit
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("repeats", [False, True])
def test_rates_are_those_among_all_resources(tmp_path, shape, repeats):
    ours, whole = simulations(tmp_path, shape)
    for simulation in (ours, whole):
        simulation.add_all(overlapping(len(shape), 70, 0.05, repeats))
    light = 0
    while ours.step():
        whole.step()
        if ours.events % 3 == 0:
            assert check_state(ours.core.state) == []
        assert rates(ours) == rates(whole)
        light += light_uses(ours)
    assert light > 500
    assert [r.end_s for r in ours.records()] == [r.end_s for r in whole.records()]


@pytest.mark.jit
def test_what_is_kept_follows_bandwidths_and_suspended_tasks(tmp_path):
    both = simulations(tmp_path, "backbone")
    for simulation in both:
        simulation.add_all(overlapping(7, 90, 0.02, False))
    ours, whole = both
    links = [link.name for link in ours.platform.all_links]
    random = np.random.default_rng(5)
    for step in range(120):
        link, bandwidth = links[random.integers(len(links))], random.uniform(0.3, 2.0) * 1.25e8
        names = [task.id for task in ours.tasks()]
        for simulation in both:
            if step % 7 == 3:
                happen(simulation, "bandwidth", link, bandwidth)
            if step % 3 == 1:
                happen(simulation, "suspend", names[step % len(names)])
                happen(simulation, "resume", names[(step - 9) % len(names)])
        assert ours.step() == whole.step()
        assert check_state(ours.core.state) == []
        assert rates(ours) == rates(whole)
