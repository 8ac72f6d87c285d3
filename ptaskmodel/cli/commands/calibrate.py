"""``ptaskmodel calibrate``: fit parameters to measured run times and print predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ptaskmodel.cli.command import Choice, Command
from ptaskmodel.cli.parameters import BANDWIDTH, PATH, Real, output_option
from ptaskmodel.errors import PTaskModelError


@click.command("calibrate", cls=Command)
@click.argument("measurements", type=PATH)
@click.option(
    "--model", type=Choice(["rates", "ptask", "wire"]), default="rates", show_default=True
)
@click.option(
    "--fit-on",
    type=Choice(["endpoints", "all"]),
    default="all",
    show_default=True,
    help="Fit the runs without and with constant interference only, or all runs.",
)
@output_option("Write the calibration as JSON.")
@click.option(
    "--competitors",
    metavar="COLUMN",
    help="Column with the number of units of interference that compete (n_tcp_connections ...).",
)
@click.option(
    "--model-error",
    type=Real(0.0, 1.0),
    default=0.0,
    show_default=True,
    help="Relative error of the model itself, added to the measured standard errors.",
)
@click.option(
    "--fix",
    multiple=True,
    metavar="NAME=VALUE",
    help="ptask: fix a parameter at a value (default: compute_efficiency=1).",
)
@click.option(
    "--platform",
    type=PATH,
    help="ptask: platform file (default: PDGEMM's two groups of nodes).",
)
@click.option(
    "--tasks",
    type=PATH,
    help="ptask: task file whose first task is the application (default: PDGEMM, n = 80,000).",
)
@click.option(
    "--pair",
    metavar="HOST,HOST",
    help="ptask: hosts between which the interference ran (needed with --platform).",
)
@click.option(
    "--part",
    type=Real(0.0, 1.0, min_open=True),
    default=1.0,
    show_default=True,
    help="ptask: the part of PDGEMM that was run (0.25 in the follow-up experiment).",
)
@click.option(
    "--bandwidth",
    type=BANDWIDTH,
    help="wire: bandwidth of the narrowest link (10Gbps).",
)
@click.option(
    "--network-model",
    type=Choice(["RDMA", "ROCE"]),
    default="RDMA",
    show_default=True,
    help="wire: the wire model that is fitted.",
)
@click.option("--mss", type=Real(0.0, min_open=True), help="wire: bytes of data a packet.")
@click.option("--loops", type=PATH, help="wire: transfers of closed loops, for think times.")
@click.option(
    "--clients",
    type=click.IntRange(1),
    help="wire: clients of loops without start_s, which keep the link busy.",
)
@click.option("--plot", type=PATH, help="wire: draw measured less fitted durations (PNG, SVG).")
@click.option("--json", "as_json", is_flag=True, help="Print the calibration as JSON.")
def command(
    measurements: Path,
    output: Path | None,
    fix: tuple[str, ...],
    pair: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Fit a model of interference, or a wire, to what was measured: MEASUREMENTS, a CSV file.

    Columns: mean_runtime_s (or runtime_s), interference_on_s and interference_off_s (0, 0: none;
    inf, 0: constant), optionally stddev_s, runs and a number of competitors. All other columns are
    labels; each combination of labels is a group with its own parameters.

    With --model wire: size_B and duration_s of transfers, optionally client and start_s; the file
    written is one of --network-parameters.
    """
    from ptaskmodel.calibration import report, write_calibration
    from ptaskmodel.calibration.run import CalibrationOptions, calibrate_file, to_json
    from ptaskmodel.cli.progress import told_steps
    from ptaskmodel.files import check_file_to_write, json_text

    of_wire = {name: options.pop(name) for name in _OF_WIRE}
    if output is not None:
        check_file_to_write(output)
    if options["model"] == "wire":
        _refuse("--model wire has no", {**options, "fix": fix, "pair": pair})
        _calibrate_wire(measurements, output, as_json, of_wire)
        return
    _refuse("only --model wire has", of_wire)
    chosen = CalibrationOptions(
        fix=dict(_fixed(text) for text in fix),
        pair=None if pair is None else tuple(pair.split(",")),
        **options,
    )
    with told_steps("fits") as progress:
        found = calibrate_file(measurements, chosen, progress)
    if as_json:
        click.echo(json_text(to_json(found.calibration)))
    else:
        click.echo(report(found.calibration, found.left_out), nl=False)
    if output is not None:
        write_calibration(found.calibration, output)


_OF_WIRE = "bandwidth", "network_model", "mss", "loops", "clients", "plot"
# The values of options that are not None where an option is not given.
_NONE = {"fit_on": "all", "model_error": 0.0, "part": 1.0, "fix": (), "network_model": "RDMA"}


def _refuse(why: str, given: dict[str, Any]) -> None:
    """Raises PTaskModelError, with `why`, for the first option `given`, but for the model."""
    for name, value in given.items():
        if name != "model" and value != _NONE.get(name):
            raise PTaskModelError(f"{why} --{name.replace('_', '-')}; leave it out")


def _calibrate_wire(
    transfers: Path, output: Path | None, as_json: bool, options: dict[str, Any]
) -> None:
    """Fit a wire to `transfers` with `options`, print it `as_json` or as text, write `output`."""
    from ptaskmodel.calibration.wire import draw_residuals, fit_wire, wire_report
    from ptaskmodel.files import json_text, write_json
    from ptaskmodel.remarks import warn_of
    from ptaskmodel.style.figures import check_picture, save

    bandwidth, model, mss, loops, clients, plot = (options[name] for name in _OF_WIRE)
    if plot is not None:
        check_picture(plot)
    if bandwidth is None:
        raise PTaskModelError("--model wire: give the --bandwidth of its narrowest link (10Gbps)")
    fit = fit_wire(transfers, bandwidth, model, mss, loops, clients)
    warn_of(fit.remarks)
    click.echo(json_text(fit.document()) if as_json else wire_report(fit), nl=as_json)
    if output is not None:
        write_json(output, fit.parameters())
    if plot is not None:
        save(draw_residuals(fit), plot)


def _fixed(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise PTaskModelError(f"--fix {text!r}; give NAME=VALUE with a value > 0")
    return name, number
