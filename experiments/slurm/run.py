"""Simulated Slurm against the real one, and against what studies of simulators published.

    python experiments/slurm/run.py --recorded ../shared/data/slurm --logs ../shared/data/swf -o results/slurm

accuracy: recorded runs, fed with their dates and free. speed: simulated days an hour, by log.
parameters: bf_interval, depth and nodes varied. separate: one controller or two, with and without
costs. sharing: nodes shared by sockets and cores, and what neighbours cost. suspension:
suspend/resume against backfilling. ``--parts`` makes some of them; what needs logs or recorded runs
is left out where there are none.
"""  # noqa: E501

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import accuracy
import figures
import parameters
import separate
import sharing
import speed
import suspension
from common import MODEL, Row, mean_rows, write

PARTS = ("accuracy", "speed", "parameters", "separate", "sharing", "suspension")
KTH_NODES = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--recorded", type=Path, help="recorded runs of a real Slurm")
    parser.add_argument("--logs", type=Path, help="a directory with logs of the archive (SWF)")
    parser.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS)
    parser.add_argument("--jobs", type=int, default=1000, help="of the comparisons")
    parser.add_argument("--speed-jobs", type=int, default=30_000, help="of each log, for speed")
    parser.add_argument("--orders", type=int, default=3, help="of jobs, and seeds")
    parser.add_argument("-o", "--output", type=Path, default=Path("results/slurm"))
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    for part in given.parts:
        made = MAKERS[part](given)
        if made:
            figures.draw(part, made, given.output)


def _accuracy(given: argparse.Namespace) -> list[Row]:
    if given.recorded is None:
        return []
    rows = accuracy.compared(given.recorded)
    write(given.output, "accuracy", rows)
    return rows


def _speed(given: argparse.Namespace) -> list[Row]:
    rows = speed.measured(_logs(given, *speed.MACHINES), given.speed_jobs)
    write(given.output, "speed", rows)
    return rows


def _parameters(given: argparse.Namespace) -> list[Row]:
    rows = parameters.varied(*_log(given), given.jobs, 1.0)
    write(given.output, "parameters", rows)
    return rows


def _separate(given: argparse.Namespace) -> list[Row]:
    log, nodes = _log(given)
    rows = separate.measured(log, nodes, given.jobs, 1.2, 4.0, given.orders)
    write(given.output, "separate_runs", rows)
    rows = mean_rows(rows, ("test_s", "controllers", "kind"))
    write(given.output, "separate", [{k: v for k, v in row.items() if k != "seed"} for row in rows])
    return rows


def _sharing(given: argparse.Namespace) -> list[Row]:
    rows = sharing.measured(16, given.jobs, 1.2, given.orders)
    write(given.output, "sharing_runs", rows)
    rows = mean_rows(rows, ("memory", "sharing"))
    write(given.output, "sharing", [{k: v for k, v in row.items() if k != "seed"} for row in rows])
    return rows


def _suspension(given: argparse.Namespace) -> list[Row]:
    rows = suspension.measured(MODEL, 64, given.jobs, 1.2, given.orders)
    log, nodes = _log(given)
    if log != MODEL:
        rows += suspension.measured(log, nodes, given.jobs, 1.2, given.orders)
    write(given.output, "suspension_runs", rows)
    write(given.output, "suspension", mean_rows(rows, ("log", "policy")))
    write(given.output, "suspension_orders", suspension.relations(rows))
    write(given.output, "shrunk", suspension.shrunk(MODEL, 64, given.jobs, 1.2))
    write(given.output, "filled", suspension.filled())
    return rows


MAKERS: dict[str, Callable[[argparse.Namespace], list[Row]]] = {
    "accuracy": _accuracy,
    "speed": _speed,
    "parameters": _parameters,
    "separate": _separate,
    "sharing": _sharing,
    "suspension": _suspension,
}


def _logs(given: argparse.Namespace, *names: str) -> list[Path]:
    """The logs whose names begin so."""
    if given.logs is None:
        return []
    return [path for name in names for path in sorted(given.logs.glob(f"{name}*.swf*"))]


def _log(given: argparse.Namespace) -> tuple[str | Path, int]:
    """KTH's log and its nodes; the model where it is not there."""
    found = _logs(given, "KTH")
    return (found[0], KTH_NODES) if found else (MODEL, 64)


if __name__ == "__main__":
    main()
