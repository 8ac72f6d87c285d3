"""Joules against SimGrid: recorded (see reference/README.md), and live where it is installed.

``PTASKMODEL_SIMGRID_SCENARIOS`` (40) says how many, ``PTASKMODEL_SIMGRID_SEED`` from which on.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
from pathlib import Path

import energy_scenarios
import pytest
import simgrid_driver

RECORDED = Path(__file__).resolve().parent / "reference" / "joules.json.gz"
SEEDS = int(os.environ.get("PTASKMODEL_SIMGRID_SEED", "300000"))
COUNT = int(os.environ.get("PTASKMODEL_SIMGRID_SCENARIOS", "40"))
RECORDINGS, PART = 120, 20


@functools.cache
def recorded() -> list[dict]:
    return json.loads(gzip.decompress(RECORDED.read_bytes()))


def differences(scenario: dict, expected: simgrid_driver.Joules) -> list[str]:
    _, found = energy_scenarios.own_joules(scenario)
    lines = energy_scenarios.differences(scenario, expected, found)
    return [f"seed {scenario['seed']}: {line}" for line in lines]


@pytest.mark.parametrize("first", range(0, RECORDINGS, PART))
def test_the_same_joules_as_simgrid(first: int) -> None:
    lines = []
    for entry in recorded()[first : first + PART]:
        lines += differences(entry["scenario"], entry["joules"])
    assert lines == []


def test_all_recordings_are_compared() -> None:
    assert len(recorded()) == RECORDINGS


@pytest.mark.simgrid
@pytest.mark.skipif(not simgrid_driver.available(), reason="SimGrid is not installed")
def test_the_same_joules_as_an_installed_simgrid() -> None:
    lines, compared = [], 0
    for seed in range(SEEDS, SEEDS + COUNT):
        scenario = energy_scenarios.random_scenario(seed)
        dates, _ = energy_scenarios.own_joules(scenario)
        try:
            expected = simgrid_driver.joules(scenario, dates, timeout_s=5.0)
        except simgrid_driver.SimGridFailure:
            continue
        compared += 1
        lines += differences(scenario, expected)
    assert compared >= COUNT // 2
    assert lines == []
