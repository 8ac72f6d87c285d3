"""The core's short cuts change no result: everything solved anew at each event gives the same."""

from __future__ import annotations

import engine_runner
import pytest
import scenarios


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
