"""The simulation against an installed SimGrid, on random scenarios.

``PTASKMODEL_SIMGRID_SCENARIOS`` (100) says how many, ``PTASKMODEL_SIMGRID_SEED`` from which on.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import engine_runner
import pytest
import scenarios
import simgrid_driver
from simgrid_driver import SimGridFailure

pytestmark = [
    pytest.mark.simgrid,
    pytest.mark.skipif(not simgrid_driver.available(), reason="SimGrid is not installed"),
]

COUNT = int(os.environ.get("PTASKMODEL_SIMGRID_SCENARIOS", "100"))
FIRST_SEED = int(os.environ.get("PTASKMODEL_SIMGRID_SEED", "300000"))
BATCH = 20
OWN = Path(__file__).resolve().parent.parent.parent / "platforms"
# No routes, no parallel tasks, an error of SimGrid 3.32's, or hosts that are off when tasks start.
UNFIT = {
    "cluster_and_one_host.xml",
    "small_platform_routing_none.xml",
    "wifi.xml",
    "config.xml",
    "graphene_batsim.xml",
    "small_platform_failures.xml",
    "two_hosts_profiles.xml",
    "two_hosts_platform_with_availability_included.xml",
}


def disagreements(
    found_scenarios: list[dict], reference: Callable[[dict], dict], **options: object
) -> list[str]:
    """What differs, scenario by scenario; those on which SimGrid dies are passed over."""
    lines, compared = [], 0
    for scenario in found_scenarios:
        try:
            expected = reference(scenario)
        except SimGridFailure:
            continue
        compared += 1
        for line in engine_runner.differences(expected, engine_runner.run(scenario, **options)):
            lines.append(f"seed {scenario['seed']}: {line}")
    assert compared >= len(found_scenarios) // 2
    return lines


@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_generated_platforms(first: int) -> None:
    seeds = range(FIRST_SEED + first, FIRST_SEED + min(first + BATCH, COUNT))
    found = [scenarios.random_scenario(seed) for seed in seeds]
    assert disagreements(found, lambda s: simgrid_driver.run(s, timeout_s=5.0)) == []


def test_bmf_where_simgrid_finds_one() -> None:
    # Without FATPIPE links, whose capacity SimGrid's bmf exceeds at times; as it does, rarely, with
    # the bounds of tasks (about one scenario in 150).
    found = [scenarios.random_scenario(FIRST_SEED + k) for k in range(COUNT)]
    found = [s for s in found if "FATPIPE" not in s["platform_xml"]]
    compared, lines = 0, []
    for scenario in found:
        try:
            expected = simgrid_driver.run(scenario, solver="bmf", timeout_s=5.0)
        except SimGridFailure:
            continue
        compared += 1
        dates = engine_runner.run(scenario, solver="bmf", count="flow")
        differing = engine_runner.differences(expected, dates, relative=1e-6)
        if differing:
            lines.append(f"seed {scenario['seed']}: {differing[0]}")
    assert compared >= len(found) // 3
    assert len(lines) <= compared // 50, lines


@pytest.mark.parametrize("model", ["LV08", "CM02"])
def test_flow_level_models(model: str) -> None:
    found = [scenarios.random_flow_scenario(FIRST_SEED + k) for k in range(COUNT // 2)]
    lines = disagreements(
        found,
        lambda s: simgrid_driver.run(s, solver=model, timeout_s=5.0),
        solver=None,
        network_model=model,
    )
    assert lines == []


@pytest.mark.parametrize("model", ["LV08", "CM02"])
def test_flows_on_hosts_that_go_down(model: str) -> None:
    found = [scenarios.random_flow_scenario(FIRST_SEED + k) for k in range(2 * COUNT)]
    found = [s for s in found if "observer" in s]  # it turns them off, once all have begun
    for scenario in found:
        rng = random.Random(scenario["seed"])
        date = max(task["start"] for task in scenario["tasks"]) + rng.uniform(0.1, 1.5)
        host = rng.choice(rng.choice(scenario["tasks"])["hosts"])
        scenario["events"].append([date, "host_off", host])
    lines = disagreements(
        found,
        lambda s: simgrid_driver.run(s, solver=model, timeout_s=5.0),
        solver=None,
        network_model=model,
    )
    assert lines == []


def scenarios_on(path: Path, count: int) -> list[dict]:
    """Scenarios on some hosts of a platform that exists."""
    names = simgrid_driver.host_names(path)
    found = []
    for k in range(count):
        hosts = random.Random(f"{path.name} {k}").sample(names, min(8, len(names)))
        facts = simgrid_driver.describe(path, hosts)
        found.append(scenarios.scenario_on_file(FIRST_SEED + k, str(path), facts))
    return found


def test_platforms_of_others(shared_data: Path) -> None:
    lines = []
    for path in sorted((shared_data / "platforms").glob("*.xml")):
        if path.name not in UNFIT:
            found = scenarios_on(path, max(1, COUNT // 40))
            lines += [f"{path.name}: {x}" for x in disagreements(found, simgrid_driver.run)]
    assert lines == []


def test_own_platforms() -> None:
    lines = []
    for path in sorted(OWN.glob("*.xml")):
        found = scenarios_on(path, max(1, COUNT // 100))
        lines += [f"{path.name}: {x}" for x in disagreements(found, simgrid_driver.run)]
    assert lines == []
