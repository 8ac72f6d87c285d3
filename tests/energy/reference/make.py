"""Makes joules.json.gz: random scenarios and the joules of their hosts and links by SimGrid 3.32.

From the root of the repository, with SimGrid 3.32 installed:

    PYTHONPATH=tests python tests/energy/reference/make.py
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import energy_scenarios
import simgrid_driver

SEEDS = range(200_000, 200_120)
PLACE = Path(__file__).resolve().parent / "joules.json.gz"


def main() -> None:
    """Run every scenario with SimGrid; leave out those on which it hangs or crashes."""
    kept = []
    for seed in SEEDS:
        scenario = energy_scenarios.random_scenario(seed)
        dates, _ = energy_scenarios.own_joules(scenario)
        try:
            joules = simgrid_driver.joules(scenario, dates, timeout_s=5.0)
        except simgrid_driver.SimGridFailure as failure:
            print(f"left out {seed}: {str(failure)[:80]}")
            continue
        kept.append({"scenario": scenario, "joules": joules})
    text = json.dumps(kept, separators=(",", ":")).encode()
    half_done = PLACE.with_suffix(".part")
    half_done.write_bytes(gzip.compress(text, 9, mtime=0))
    half_done.replace(PLACE)
    print(f"{len(kept)} scenarios, {PLACE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
