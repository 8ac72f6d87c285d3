"""Each optimisation can be switched off by name, and the dates are the same."""

from __future__ import annotations

import numpy as np
import pytest

import ptaskmodel as pm
from ptaskmodel.engine.check import check_state
from ptaskmodel.engine.resharing import OPTIMISATIONS
from ptaskmodel.errors import SimulationError

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<cluster id="c" prefix="n" suffix="" radical="0-39" speed="1Gf" bw="125MBps" lat="50us"
  bb_bw="{backbone}MBps" bb_lat="10us"/>
</platform>
"""
# Which optimisations each kind of sharing uses: solver, network model.
USES = {
    ("bmf", "L07"): ("levels", "virtual-time"),
    ("maxmin", "L07"): ("levels", "virtual-time"),
    ("fairbottleneck", "L07"): ("rounds",),
    ("maxmin", "LV08"): ("parts", "virtual-time"),
}


def machine(place, backbone_MBps: float) -> pm.Platform:
    path = place / f"{backbone_MBps}.xml"
    path.write_text(PLATFORM.format(backbone=backbone_MBps))
    return pm.load_platform(path)


def flows(seed: int, count: int) -> list[pm.ParallelTask]:
    """Flows that come one after the other, faster than they go, and some computations."""
    rng = np.random.default_rng(seed)
    tasks = []
    for start_s in np.cumsum(rng.exponential(0.01, count)).tolist():
        source, target = rng.choice(40, 2, replace=False)
        size, weight = float(1e6 * (1 + rng.random())), float(rng.choice([1.0, 1.0, 0.5, 3.0]))
        ends, asked = (f"n{source}", f"n{target}"), [[0, size], [0, 0]]
        tasks.append(pm.ParallelTask(ends, [0, 0], asked, start_s=start_s, weight=weight))
        if rng.random() < 0.2:
            tasks.append(pm.ParallelTask([f"n{rng.integers(40)}"], [1e8 * rng.random()], None))
    return tasks


def programs(seed: int, count: int) -> list[pm.ParallelTask]:
    """Tasks that compute and send, which share hosts and links."""
    rng = np.random.default_rng(seed)
    tasks = []
    for start_s in np.cumsum(rng.exponential(0.05, count)).tolist():
        hosts = [f"n{k}" for k in rng.choice(40, rng.integers(2, 7), replace=False)]
        flops = (rng.random(len(hosts)) * 1e9).tolist()
        sent = (rng.random((len(hosts), len(hosts))) * 1e7).tolist()
        weight = float(rng.choice([1.0, 1.0, 0.5, 3.0]))
        tasks.append(pm.ParallelTask(hosts, flops, sent, start_s=start_s, weight=weight))
    return tasks


def ends_s(platform, tasks, solver, model, optimise) -> list[float]:
    simulation = pm.Simulation(platform, solver=solver, network_model=model, optimise=optimise)
    simulation.add_all(tasks)
    simulation.run()
    return [record.end_s for record in simulation.records()]


@pytest.mark.jit
@pytest.mark.parametrize(("kind", "names"), USES.items())
def test_without_one_of_them_and_without_any(tmp_path, kind, names):
    platform = machine(tmp_path, 100)
    plain = ends_s(platform, flows(1, 80), *kind, False)
    for on in [True, (), *(set(OPTIMISATIONS) - {name} for name in names)]:
        assert ends_s(platform, flows(1, 80), *kind, on) == pytest.approx(plain, rel=1e-11)


@pytest.mark.jit
@pytest.mark.parametrize("seed", range(3))
def test_max_min_fair_tasks_by_levels(tmp_path, seed):
    """Few of many resources limit anything, and hosts differ from links."""
    platform, tasks = machine(tmp_path, 400), programs(seed, 60)
    plain = ends_s(platform, tasks, "maxmin", "L07", False)
    assert ends_s(platform, tasks, "maxmin", "L07", True) == pytest.approx(plain, rel=1e-11)


@pytest.mark.jit
@pytest.mark.parametrize("solver", ["bmf", "maxmin"])
def test_tasks_that_one_link_limits_are_solved_once(tmp_path, solver):
    """The backbone limits all, then not all, then all again, and the state is right throughout."""
    platform, tasks = machine(tmp_path, 60), flows(5, 150)
    simulations = [
        pm.Simulation(platform, solver=solver, optimise=on) for on in (True, ("levels",))
    ]
    gathered = 0
    for simulation in simulations:
        simulation.add_all(tasks)
        while simulation.step():
            assert check_state(simulation.core.state) == []
            gathered += int(simulation.core.state.clock[0]["group"] >= 0)
    ours, plain = ([record.end_s for record in each.records()] for each in simulations)
    assert ours == pytest.approx(plain, rel=1e-11)
    ours, plain = (each.core.state.graph.counts[0]["solves"] for each in simulations)
    assert gathered > 50
    assert ours < 0.7 * plain


def test_an_unknown_name(tmp_path):
    with pytest.raises(SimulationError, match="'level' is unknown; choose from levels, parts"):
        pm.Simulation(machine(tmp_path, 100), optimise=("level",))
