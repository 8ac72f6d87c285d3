"""Makes scenarios.json.gz: random scenarios and what SimGrid 3.32's fairbottleneck makes of them.

From the root of the repository, with SimGrid 3.32 installed:

    PYTHONPATH=tests python tests/simulation/reference/make.py
"""

from __future__ import annotations

from pathlib import Path

import scenarios
import simgrid_driver

SEEDS = range(100_000, 100_230)
PLACE = Path(__file__).resolve().parent / "scenarios.json.gz"


def record(seed: int) -> dict:
    """A scenario and the times of its tasks."""
    scenario = scenarios.random_scenario(seed)
    return {"scenario": scenario, "times": simgrid_driver.run(scenario, timeout_s=5.0)}


if __name__ == "__main__":
    simgrid_driver.keep(PLACE, SEEDS, record)
