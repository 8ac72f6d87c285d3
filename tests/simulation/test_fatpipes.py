"""On a FATPIPE each parallel task is limited alone; strangers do not meet on the loopback."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptaskmodel import ParallelTask, Simulation, load_platform
from ptaskmodel.sharing import RULES

PLATFORMS = Path(__file__).parents[2] / "platforms"


@pytest.mark.parametrize("solver", [name for name, rule in RULES.items() if rule.for_tasks])
def test_strangers_do_not_slow_each_other_on_the_loopback(solver):
    simulation = Simulation(load_platform(PLATFORMS / "worked_example.xml"), solver=solver)
    little = simulation.add(ParallelTask(["a"], 0.0, flows=[(0, 0, 1e8)]))
    much = simulation.add(ParallelTask(["b"], 0.0, flows=[(0, 0, 1e10)]))
    simulation.run()
    # 10 GB/s for each.
    assert little.end_s == pytest.approx(0.01, rel=1e-12)
    assert much.end_s == pytest.approx(1.0, rel=1e-12)
