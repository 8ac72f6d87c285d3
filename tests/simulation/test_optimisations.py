"""The core's short cuts change no result: everything solved anew at each event gives the same."""

from __future__ import annotations

import engine_runner
import pytest
import scenarios

import ptaskmodel as pm
from ptaskmodel.simulation.programs import Programs


@pytest.mark.parametrize("solver", ["fairbottleneck", "fairbottleneck-corrected", "bmf", "maxmin"])
@pytest.mark.parametrize("seed", range(400_000, 400_015))
def test_same_dates_without_optimisations(solver: str, seed: int) -> None:
    scenario = scenarios.random_scenario(seed)
    plain = engine_runner.run(scenario, solver=solver, optimise=False)
    assert engine_runner.differences(plain, engine_runner.run(scenario, solver=solver)) == []


@pytest.mark.parametrize("model", ["LV08", "CM02"])
@pytest.mark.parametrize("seed", range(400_000, 400_015))
def test_same_dates_of_flows(model: str, seed: int) -> None:
    scenario = scenarios.random_flow_scenario(seed)
    options = {"solver": None, "network_model": model}
    plain = engine_runner.run(scenario, optimise=False, **options)
    assert engine_runner.differences(plain, engine_runner.run(scenario, **options)) == []


@pytest.mark.parametrize("step", [1, -1])
def test_tasks_are_routed_together_whatever_their_order(monkeypatch, step):
    calls = []
    route = Programs.route
    monkeypatch.setattr(
        Programs, "route", lambda *given: calls.append(len(given[-1])) or route(*given)
    )
    build = pm.Platform.build("lab")
    build.cluster("c", 4, prefix="n", speed=1e9, bandwidth=1e9, latency=1e-6)
    simulation = pm.Simulation(build.finish())
    works = [pm.ParallelWork.of(2, 1e9 + k, flows=[(0, 1, 1e6)]) for k in range(100)]
    tasks = [pm.Task(("n0", "n1"), work, start_s=3.0 * k) for k, work in enumerate(works)]
    simulation.add_all(tasks[::step])
    simulation.run()
    assert len(calls) == 2
    assert sum(calls) <= 101
    simulation.add(pm.Delay(1.0, ["n3"], start_s=400.0))
    simulation.run()
    assert sum(calls) <= 103
    assert simulation.now == pytest.approx(401.0)
