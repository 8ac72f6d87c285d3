"""Remakes every table and figure of the documentation: campaigns are run, then drawn.

    python experiments/remake.py small|full [NAME ...] [-o results] [--on ADDRESS]

A folder here with SIZE.toml is an experiment: its campaign is run (or continued) in
OUTPUT/NAME/SIZE-runs, and its tables.py makes tables and figures of it in OUTPUT/NAME. The size
full wants logs of the Parallel Workloads Archive in experiments/logs (or a link there).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SIZES = ("small", "full")


def names() -> list[str]:
    """All experiments."""
    return sorted(path.parent.name for path in HERE.glob("*/small.toml"))


def remake(name: str, size: str, output: Path, on: list[str]) -> int:
    """Run and draw an experiment; the first exit code that is not 0."""
    place = output / name
    python = [sys.executable]
    runs = place / f"{size}-runs"
    plan = HERE / name / f"{size}.toml"
    making = [*python, "-m", "ptaskmodel", "campaign", "run", plan, "-o", runs, *on]
    drawing = [*python, HERE / name / "tables.py", runs, "-o", place]
    return subprocess.call(list(map(str, making))) or subprocess.call(list(map(str, drawing)))


def record(name: str, runs: Path) -> None:
    """Keep the numbers of the small size, which a test compares with."""
    from ptaskmodel.campaign import Campaign, write_table

    frame = Campaign.in_directory(runs).frame()
    told = frame.drop(columns=["status", "wall_s", "run"])
    write_table(told, HERE / name / "recorded.csv")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(names())}")
    parser.add_argument("-o", "--output", type=Path, default=Path("results"))
    parser.add_argument("--on", help="a Dask scheduler; see ptaskmodel campaign run")
    parser.add_argument(
        "--record", action="store_true", help="keep the numbers of the small size as expected"
    )
    given = parser.parse_args()
    unknown = set(given.names) - set(names())
    if unknown:
        parser.error(f"{min(unknown)} is no experiment: use some of {', '.join(names())}")
    codes = {}
    for name in given.names or names():
        print(f"\n== {name}, {given.size}", flush=True)
        codes[name] = remake(name, given.size, given.output, ["--on", given.on] if given.on else [])
        if given.record and given.size == "small" and not codes[name]:
            record(name, given.output / name / "small-runs")
    failed = [name for name, code in codes.items() if code]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
