"""``ptaskmodel experiment``: remake a whole experiment of a clone, tables and figures."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import click

from ptaskmodel.cli.command import Group
from ptaskmodel.cli.parameters import PATH
from ptaskmodel.errors import PTaskModelError

STUDY = Path("experiments") / "pdgemm"
MEASUREMENTS = Path("calibration") / "measurements"


@click.group("experiment", cls=Group)
def command() -> None:
    """Remake an experiment: every table and figure."""


@command.command("pdgemm")
@click.option(
    "--measurements",
    type=PATH,
    help="Directory of the measured tables (default: calibration/measurements, here or in the "
    "clone that this program runs from).",
)
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="DIR",
    default=Path("results"),
    show_default=True,
    help="Directory for tables and figures.",
)
@click.option(
    "--placements",
    type=click.IntRange(min=2),
    default=30,
    show_default=True,
    help="Number of random placements.",
)
def pdgemm(measurements: Path | None, output: Path, placements: int) -> None:
    """PDGEMM under interference on two clusters: published, simulated, measured.

    The same as `python experiments/pdgemm/run.py` in a clone.
    """
    from ptaskmodel.cli.kernels import ready_kernels

    sys.path.insert(0, str(_in_clone(STUDY)))
    study = importlib.import_module("pdgemm_study.remake")
    ready_kernels()
    place = measurements or _in_clone(MEASUREMENTS)
    study.run_experiment(place, output, placements, say=lambda text: click.echo(f"{text} ..."))
    click.echo(f"written to {output}")


def _in_clone(path: Path) -> Path:
    """A directory of the repository: here, or in the clone that this program runs from."""
    for root in (Path.cwd(), Path(__file__).resolve().parents[2]):
        if (root / path).is_dir():
            return root / path
    raise PTaskModelError(f"{path}: no such directory; run this in a clone of the repository")
