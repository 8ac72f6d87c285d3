"""PDGEMM under interference on two clusters: every table and figure of the validation.

    python experiments/pdgemm/run.py -o results

What it writes is listed in README.md; `ptaskmodel experiment pdgemm` does the same.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pdgemm_study.remake import run_experiment

from ptaskmodel.errors import PTaskModelError

MEASUREMENTS = Path(__file__).resolve().parents[2] / "calibration" / "measurements"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("results"))
    parser.add_argument("--measurements", type=Path, default=MEASUREMENTS)
    parser.add_argument("--placements", type=int, default=30, help="random placements, 2 or more")
    given = parser.parse_args()
    if given.placements < 2:
        parser.error("--placements: give 2 or more")
    try:
        run_experiment(given.measurements, given.output, given.placements)
    except PTaskModelError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
