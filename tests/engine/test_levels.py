"""Levels kept from event to event: right after every event, whatever made them."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from engine_runner import prepare
from scenarios import random_scenario

import ptaskmodel as pm
from ptaskmodel.engine.check import check_state
from ptaskmodel.sharing import SharingProblem

HEAD = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="Full">
"""


def simulation_of(problem: SharingProblem, place, seed: int = 0) -> pm.Simulation:
    """The tasks of a sharing problem, that come one after the other, on hosts for resources."""
    speeds = enumerate(problem.capacity.tolist())
    hosts = "\n".join(f'<host id="h{r}" speed="{speed!r}f"/>' for r, speed in speeds)
    path = place / "platform.xml"
    path.write_text(f"{HEAD}{hosts}\n</zone></platform>\n")
    simulation = pm.Simulation(pm.load_platform(path))
    dates = np.random.default_rng(seed).random(problem.n) * 2.0
    for i in range(problem.n):
        row = slice(problem.start[i], problem.start[i + 1])
        used = [f"h{r}" for r in problem.resource[row]]
        if used:
            simulation.add(pm.ParallelTask(used, problem.usage[row].tolist(), start_s=dates[i]))
    return simulation


def step_through(simulation: pm.Simulation, anew=lambda: False) -> None:
    """Step to the end, the state checked after each event; solve anew where asked to."""
    while simulation.step():
        assert check_state(simulation.core.state) == []
        simulation.core.state.clock[0]["anew"] = anew()


def near_circulant(n: int, seed: int) -> SharingProblem:
    """A system on which the kernel often fails."""
    random = np.random.default_rng(seed)
    line = random.random(n) * (random.random(n) < 8 / n)
    line[0] = 1.0
    matrix = np.array([np.roll(line, i) for i in range(n)])
    return SharingProblem.from_dense(matrix * (1 + 1e-3 * random.random((n, n))), 1.0)


@pytest.mark.parametrize("n", [6, 12])
def test_near_circulants_come_and_go(n, tmp_path):
    step_through(simulation_of(near_circulant(n, 37), tmp_path))


@pytest.mark.jit
@pytest.mark.parametrize("seed", range(4))
def test_long_near_circulants_come_and_go(seed, tmp_path):
    step_through(simulation_of(near_circulant(30, seed), tmp_path))


@pytest.mark.jit
def test_the_hard_systems_of_the_study_come_and_go(shared_data, tmp_path):
    paths = sorted((shared_data.parent / "spec" / "hard").glob("*.json"))
    if not paths:
        pytest.skip("the hard systems are not beside this checkout")
    for path in paths:
        system = json.loads(path.read_text())
        resource, task, usage = zip(*system["usage"], strict=True)
        problem = SharingProblem.from_triplets(
            np.array(resource, dtype=int),
            np.array(task, dtype=int),
            usage,
            system["capacity"],
            n=system["n_tasks"],
        )
        step_through(simulation_of(problem, tmp_path))


@pytest.mark.parametrize("seed", range(4))
def test_tasks_that_ask_the_same_of_all_their_resources_come_and_go(seed, tmp_path):
    random = np.random.default_rng(seed)
    asked = random.choice([0.1, 1.0, 1.0, 3.0], 60) * (random.random((20, 60)) < 0.15)
    capacity = random.choice([1.0, 2.0, 2.5, 1e-6], 20)
    step_through(simulation_of(SharingProblem.from_dense(asked, capacity), tmp_path, seed))


@pytest.mark.parametrize("seed", range(4))
def test_levels_are_taken_from_rates_found_anew(seed):
    random = np.random.default_rng(seed)
    simulation = prepare({**random_scenario(seed), "events": []})
    step_through(simulation, lambda: random.random() < 0.5)


@pytest.mark.jit
def test_a_copy_goes_on_with_the_same_levels(tmp_path):
    problem = SharingProblem.from_dense(np.random.default_rng(5).random((40, 30)), 1.0)
    simulation = simulation_of(problem, tmp_path)
    for _ in range(30):
        simulation.step()
    others = [simulation.fork(), pickle.loads(pickle.dumps(simulation))]
    simulation.run()
    dates = [record.end_s for record in simulation.records()]
    for other in others:
        other.run()
        assert [record.end_s for record in other.records()] == dates
