"""ptaskmodel calibrate: measured runtimes in, parameters and predictions out."""

from __future__ import annotations

from pathlib import Path

import click

from ptaskmodel.calibration import (
    MeasurementError,
    calibrate,
    leave_one_pattern_out,
    rates_fitter,
    read_measurements,
    report,
    write_calibration,
)
from ptaskmodel.calibration.results import Fitter


@click.command("calibrate")
@click.argument("measurements", type=click.Path(path_type=Path))
@click.option("--model", type=click.Choice(["rates", "ptask"]), default="rates", show_default=True)
@click.option(
    "--fit-on",
    type=click.Choice(["endpoints", "all"]),
    default="all",
    show_default=True,
    help="Fit on the runs with no and with constant interference only, or on all runs.",
)
@click.option("--output", type=click.Path(path_type=Path), help="Write the calibration as JSON.")
@click.option(
    "--competitors",
    metavar="COLUMN",
    help="Column with the number of units of interference that compete (n_tcp_connections ...).",
)
@click.option(
    "--model-error",
    type=click.FloatRange(0.0, 1.0),
    default=0.0,
    show_default=True,
    help="Relative error of the model itself, added to the measured standard errors.",
)
@click.option(
    "--fix",
    multiple=True,
    metavar="NAME=VALUE",
    help="ptask: keep a parameter at a value (default: compute_efficiency=1).",
)
@click.option(
    "--platform",
    type=click.Path(path_type=Path),
    help="ptask: platform file (default: PDGEMM's two groups of nodes).",
)
@click.option(
    "--tasks",
    type=click.Path(path_type=Path),
    help="ptask: task file whose first task is the application (default: PDGEMM, n = 80,000).",
)
@click.option(
    "--pair",
    metavar="HOST,HOST",
    help="ptask: hosts between which the interference ran (needed with --platform).",
)
@click.option(
    "--part",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    default=1.0,
    show_default=True,
    help="ptask: the part of PDGEMM that was run (0.25 in the follow-up experiment).",
)
def command(
    measurements: Path,
    model: str,
    fit_on: str,
    output: Path | None,
    competitors: str | None,
    model_error: float,
    fix: tuple[str, ...],
    platform: Path | None,
    tasks: Path | None,
    pair: str | None,
    part: float,
) -> None:
    """Fit a model of interference to the runtimes in MEASUREMENTS, a CSV file.

    Columns: mean_runtime_s (or runtime_s), interference_on_s and interference_off_s (0, 0: none;
    inf, 0: constant), optionally stddev_s, runs and a number of competitors; all others describe,
    and each combination of them is a group with its own parameters.
    """
    groups = read_measurements(measurements, competitors)
    if model == "rates":
        if fix or platform or tasks or pair:
            raise MeasurementError("--fix, --platform, --tasks and --pair need --model ptask")
        fitter = rates_fitter(model_error)
    else:
        fitter = _ptask_fitter(fix, (platform, tasks, pair), part, model_error)
    calibration = calibrate(groups, fitter, model, fit_on, str(measurements))
    left_out = leave_one_pattern_out(groups, fitter) if fit_on == "all" else ()
    click.echo(report(calibration, left_out), nl=False)
    if output is not None:
        write_calibration(calibration, output)


def _ptask_fitter(
    fix: tuple[str, ...],
    given: tuple[Path | None, Path | None, str | None],
    part: float,
    model_error: float,
) -> Fitter:
    from ptaskmodel.calibration.fit_ptask import DEFAULT_FIXED, ptask_fitter
    from ptaskmodel.calibration.pdgemm_setting import bundle_of_labels
    from ptaskmodel.calibration.ptask import setting_from_files
    from ptaskmodel.cli.kernels import ready_kernels

    fixed = dict(_fixed(text) for text in fix) if fix else DEFAULT_FIXED
    platform, tasks, pair = given
    if any(given) and not all(given):
        raise MeasurementError("--platform, --tasks and --pair go together; give all three")
    if part != 1.0 and any(given):
        raise MeasurementError("--part is of PDGEMM; leave it out with --platform and --tasks")
    ready_kernels()
    if platform is None or tasks is None or pair is None:
        return ptask_fitter(lambda labels: bundle_of_labels(labels, part), fixed, model_error)
    return ptask_fitter(setting_from_files(platform, tasks, pair.split(",")), fixed, model_error)


def _fixed(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise MeasurementError(f"--fix {text!r}: give NAME=VALUE with a value > 0")
    return name, number
