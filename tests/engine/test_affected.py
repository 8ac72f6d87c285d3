"""Max-min fairness of which only a part is solved anew: right after every event, whatever comes."""

from __future__ import annotations

import numpy as np
import pytest

import ptaskmodel as pm
from ptaskmodel.engine.check import check_state
from ptaskmodel.engine.driver import Core
from ptaskmodel.engine.state import RUNNING
from ptaskmodel.engine.usage.network_models import network_model

CLUSTER = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<cluster id="c" prefix="n" suffix="" radical="0-23" speed="1Gf" bw="125MBps" lat="50us" {more}/>
</platform>
"""
SHAPES = {
    "tree": 'topology="FAT_TREE" topo_parameters="2;8,3;1,3;1,2"',
    "backbone": 'bb_bw="600MBps" bb_lat="10us"',
    "narrow": 'bb_bw="60MBps" bb_lat="10us"',
    "wide-pipe": 'bb_bw="1GBps" bb_lat="10us" bb_sharing_policy="FATPIPE"',
    "narrow-pipe": 'bb_bw="60MBps" bb_lat="10us" bb_sharing_policy="FATPIPE"',
}


def platform(place, shape: str) -> pm.Platform:
    path = place / f"{shape}.xml"
    path.write_text(CLUSTER.format(more=SHAPES[shape]))
    return pm.load_platform(path)


def add_flows(simulation: pm.Simulation, seed: int, flows: int) -> None:
    """Flows that come in bunches; several end at one date."""
    random = np.random.default_rng(seed)
    names = [host.name for host in simulation.platform.hosts]
    for _ in range(flows):
        source, target = random.choice(len(names), 2, replace=False)
        size = float(random.choice([1e6, 1e6, 3e6, 1e7 * (1 + random.random())]))
        start_s = float(random.choice([0.0, 0.1, 0.1, random.random()]))
        ends = names[source], names[target]
        simulation.add(pm.ParallelTask(ends, [0, 0], [[0, size], [0, 0]], start_s=start_s))


@pytest.mark.jit
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("model", ["LV08", "CM02"])
def test_flows_come_and_go(tmp_path, shape, model):
    machine = platform(tmp_path, shape)
    both = [
        pm.Simulation(machine, network_model=model, optimise=optimise) for optimise in (True, False)
    ]
    for simulation in both:
        add_flows(simulation, len(shape), 90)
    while both[0].step():
        assert check_state(both[0].core.state) == []
    both[1].run()
    ours, whole = ([record.end_s for record in each.records()] for each in both)
    assert ours == pytest.approx(whole, rel=1e-10)


@pytest.mark.jit
def test_where_one_link_limits_all_it_does_so_to_the_bit(tmp_path):
    machine = platform(tmp_path, "narrow")
    both = [
        pm.Simulation(machine, network_model="LV08", optimise=optimise)
        for optimise in (True, False)
    ]
    for simulation in both:
        for k in range(120):
            ends = f"n{k % 24}", f"n{(k % 24 + 1 + k // 24) % 24}"
            simulation.add(pm.ParallelTask(ends, [0, 0], [[0, 1e6 + k // 40], [0, 0]]))
    while both[0].step():
        assert check_state(both[0].core.state) == []
    both[1].run()
    ours, whole = ([record.end_s for record in each.records()] for each in both)
    assert ours == whole


@pytest.mark.jit
@pytest.mark.parametrize("seed", range(3))
def test_weighted_tasks_of_many_resources_come_and_go(tmp_path, seed):
    random = np.random.default_rng(seed)
    simulation = pm.Simulation(platform(tmp_path, "backbone"), solver="maxmin")
    names = [host.name for host in simulation.platform.hosts]
    for _ in range(60):
        some = [names[k] for k in random.choice(24, random.integers(1, 5), replace=False)]
        flops = (random.random(len(some)) * 1e8).tolist()
        bytes_ = (random.random((len(some), len(some))) * 1e6).tolist()
        simulation.add(pm.ParallelTask(some, flops, bytes_, start_s=float(random.random())))
    while simulation.step():
        assert check_state(simulation.core.state) == []


@pytest.mark.jit
def test_who_is_not_affected_is_left_alone(tmp_path):
    """Flows between neighbours, all at one rate; one ends: two others, of its hosts, go on faster.

    Those farther away share links with these, through what answers take, but none that is full.
    """
    core = Core(platform(tmp_path, "tree"), network_model("CM02", {}), "maxmin")
    hosts = np.arange(24)
    patterns = core.find_flows(np.repeat(hosts, 2), np.repeat(hosts, 2) ^ np.tile([1, 2], 24))
    slots = [
        core.start(int(pattern), 1e6 if k == 0 else 1e8, owner=k)
        for k, pattern in enumerate(patterns)
    ]
    core.advance()
    date = core.now
    core.advance(date + 1e-3)
    assert check_state(core.state) == []
    activities = core.state.activities[slots]
    assert (activities["state"] == RUNNING).sum() == 47
    touched = activities["updated"] >= date
    assert 0 < touched.sum() < 12


@pytest.mark.jit
def test_a_fault_is_found(tmp_path):
    simulation = pm.Simulation(platform(tmp_path, "tree"), network_model="LV08")
    add_flows(simulation, 1, 30)
    while simulation.core.state.graph.counts[0]["n_enabled"] < 10:
        simulation.step()
    state = simulation.core.state
    running = state.activities["state"] == RUNNING
    state.graph.variables["rate"][: len(state.activities)][running] *= 1.001
    assert check_state(state) != []
