"""Makes joules.json.gz: random scenarios and the joules of their hosts and links by SimGrid 3.32.

From the root of the repository, with SimGrid 3.32 installed:

    PYTHONPATH=tests python tests/energy/reference/make.py
"""

from __future__ import annotations

from pathlib import Path

import energy_scenarios
import simgrid_driver

SEEDS = range(200_000, 200_120)
PLACE = Path(__file__).resolve().parent / "joules.json.gz"


def record(seed: int) -> dict:
    """A scenario and its joules."""
    scenario = energy_scenarios.random_scenario(seed)
    dates, _ = energy_scenarios.own_joules(scenario)
    return {"scenario": scenario, "joules": simgrid_driver.joules(scenario, dates, timeout_s=5.0)}


if __name__ == "__main__":
    simgrid_driver.keep(PLACE, SEEDS, record)
