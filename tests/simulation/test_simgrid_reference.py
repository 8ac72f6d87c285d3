"""The simulation against SimGrid's recorded answers (see reference/README.md)."""

from __future__ import annotations

import functools
import gzip
import json
from pathlib import Path

import engine_runner
import pytest
import scenarios

RECORDED = Path(__file__).resolve().parent / "reference" / "scenarios.json.gz"
COUNT = 225
# On these, SimGrid's fairbottleneck takes more rounds on a FATPIPE than one can wait for.
ENDLESS = (100_000, 100_009, 100_096, 100_174)


@functools.cache
def recorded() -> list[dict]:
    return json.loads(gzip.decompress(RECORDED.read_bytes()))


@pytest.mark.parametrize("k", range(COUNT))
def test_same_dates_as_simgrid(k: int) -> None:
    entry = recorded()[k]
    expected = {task: tuple(times) for task, times in entry["times"].items()}
    found = engine_runner.run(entry["scenario"])
    assert engine_runner.differences(expected, found) == []


def test_all_recorded_scenarios_are_tested() -> None:
    assert len(recorded()) == COUNT


@pytest.mark.parametrize("seed", ENDLESS)
def test_ends_where_simgrid_does_not(seed: int) -> None:
    found = engine_runner.run(scenarios.random_scenario(seed))
    assert {state for _, _, state in found.values()} <= {
        "completed",
        "walltime",
        "cancelled",
        "failed",
        "dependency_failed",
    }
