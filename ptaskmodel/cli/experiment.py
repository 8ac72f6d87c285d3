"""ptaskmodel experiment: remake a whole experiment, tables and figures."""

from __future__ import annotations

from pathlib import Path

import click

MEASUREMENTS = Path("calibration") / "measurements"


@click.group("experiment")
def command() -> None:
    """Remake an experiment: every table and figure."""


@command.command("pdgemm")
@click.option(
    "--measurements",
    type=click.Path(path_type=Path),
    help="Directory of the measured tables (default: calibration/measurements, here or in the "
    "clone that this program runs from).",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
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
    """PDGEMM under interference on two clusters: published, simulated, measured."""
    from ptaskmodel.calibration.experiment_run import run_experiment
    from ptaskmodel.cli.kernels import ready_kernels

    ready_kernels()

    if measurements is None:
        clone = Path(__file__).resolve().parents[2]
        measurements = MEASUREMENTS if MEASUREMENTS.is_dir() else clone / MEASUREMENTS
    run_experiment(measurements, output, placements, say=lambda text: click.echo(f"{text} ..."))
    click.echo(f"written to {output}")
