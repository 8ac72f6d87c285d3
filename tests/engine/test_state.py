"""What always holds of the core's state, after every event of random runs."""

from __future__ import annotations

import pytest
from engine_runner import happen, prepare
from scenarios import random_flow_scenario, random_scenario

import ptaskmodel as pm
from ptaskmodel.engine.check import check_state


def check(simulation: pm.Simulation) -> None:
    assert check_state(simulation.core.state) == []
    tasks = simulation._intake.arrays.tasks
    activities = simulation.core.state.activities
    for ref in simulation.tasks():
        slot = tasks["slot"][ref.index]
        assert slot < 0 or activities["owner"][slot] == ref.index


def check_all_along(scenario: dict, **options: object) -> None:
    """Steps through a scenario and its events by hand."""
    simulation = prepare(scenario, **options)
    check(simulation)
    for date, what, target, *value in sorted(scenario["events"], key=lambda event: event[0]):
        while (soon := simulation.next_event_s()) is not None and soon < date:
            simulation.step()
            check(simulation)
        simulation.advance_to(date)
        happen(simulation, what, target, *value)
        check(simulation)
    steps = 0
    while simulation.step() and steps < 2000:
        check(simulation)
        steps += 1


@pytest.mark.jit
@pytest.mark.parametrize("seed", range(40))
def test_the_state_holds_together_under_parallel_tasks(seed):
    solver = ("bmf", "fairbottleneck", "maxmin")[seed % 3]
    check_all_along(random_scenario(seed), solver=solver)


@pytest.mark.jit
@pytest.mark.parametrize("seed", range(15))
def test_the_state_holds_together_under_flow_models(seed):
    check_all_along(random_flow_scenario(seed), network_model=("CM02", "LV08")[seed % 2])


def test_a_fault_is_found():
    simulation = prepare(random_scenario(1))
    simulation.step()
    state = simulation.core.state
    state.clock[0]["n_active"] += 1
    assert check_state(state) == ["the number of activities is wrong"]
