"""Makes scenarios.json.gz: random scenarios and what SimGrid 3.32's fairbottleneck makes of them.

From the root of the repository, with SimGrid 3.32 installed:

    PYTHONPATH=tests python tests/simulation/reference/make.py
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import scenarios
import simgrid_driver

SEEDS = range(100_000, 100_230)
PLACE = Path(__file__).resolve().parent / "scenarios.json.gz"


def main() -> None:
    """Run every scenario with SimGrid; leave out those on which it hangs or crashes."""
    kept = []
    for seed in SEEDS:
        scenario = scenarios.random_scenario(seed)
        try:
            times = simgrid_driver.run(scenario, timeout_s=5.0)
        except simgrid_driver.SimGridFailure as failure:
            print(f"left out {seed}: {str(failure)[:80]}")
            continue
        kept.append({"scenario": scenario, "times": times})
    text = json.dumps(kept, separators=(",", ":")).encode()
    half_done = PLACE.with_suffix(".part")
    half_done.write_bytes(gzip.compress(text, 9, mtime=0))
    half_done.replace(PLACE)
    print(f"{len(kept)} scenarios, {PLACE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
