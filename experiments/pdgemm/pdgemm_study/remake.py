"""The whole PDGEMM experiment: every table, figure and number of it, written to a directory."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pdgemm_study import figures
from pdgemm_study.follow_up import COMPETITORS_OF_FOLLOW_UP, follow_up
from pdgemm_study.tables import (
    calibrations,
    comparison_table,
    error_table,
    gain_table,
    phase_activity,
    placement_table,
    progress_over_time,
    read_published,
    time_scale_table,
    with_competitors,
)
from ptaskmodel.calibration.measurements import MeasuredGroup, MeasurementError, read_measurements
from ptaskmodel.calibration.pdgemm_setting import bundle_of_labels, pdgemm_setting
from ptaskmodel.calibration.results import Calibration
from ptaskmodel.files import whole_file, whole_path

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from pdgemm_study.follow_up import FollowUp

FILES = (
    "pdgemm_runtimes.csv",
    "ptask_predicted_runtimes.csv",
    "pdgemm_tcp_connections.csv",
    "pdgemm_tcp_connections_models.csv",
)
SHOWN = ("none", "15/45", "45/15", "constant")


def run_experiment(
    measurements: Path, output: Path, placements: int = 30, say: Callable[[str], object] = print
) -> None:
    """Remake the experiment from the measured tables in ``measurements``.

    Writes CSV tables, PNG figures and ``summary.md`` into ``output``; ``say`` is told the steps.
    Raises MeasurementError if a table is missing or wrong.
    """
    for name in FILES:
        if not (measurements / name).is_file():
            raise MeasurementError(
                f"{measurements}: no {name}; give the directory of the measured tables "
                "(calibration/measurements in a clone)"
            )
    _check_matplotlib()
    output.mkdir(parents=True, exist_ok=True)
    groups = with_competitors(read_measurements(measurements / FILES[0]))
    say(f"{placements} random placements")
    summary, every = placement_table(read_published(measurements / FILES[1]), placements)
    _write(summary, output / "placements.csv")
    _write(every, output / "placements_all.csv")
    _save(figures.placements_figure(summary, every), output / "placements.png")

    say("calibration on the first experiment")
    found = calibrations(groups, "endpoints") | calibrations(groups, "all")
    comparison, errors = comparison_table(found), error_table(found)
    _write(comparison, output / "clusters.csv")
    gains = gain_table(found)
    _write(errors, output / "errors.csv")
    _write(gains, output / "phases_gain.csv")
    plain = dict(zip(summary.pattern, summary.reference_placement_s, strict=True))
    _save(figures.clusters_figure(comparison, plain), output / "clusters.png")
    _save(figures.residuals_figure(comparison), output / "residuals.png")

    say("progress over time, network activity")
    _save(_progress(groups, found["ptask, endpoints"]), output / "progress.png")
    _save(_activity(found["phases, endpoints"]), output / "activity.png")

    say("time scales")
    scales = time_scale_table(groups)
    _write(scales, output / "time_scales.csv")
    _save(figures.time_scale_figure(scales), output / "time_scales.png")

    say("follow-up over the number of connections")
    clusters = follow_up(found["ptask, endpoints"], measurements / FILES[2])
    _save(_follow_up(clusters, measurements / FILES[3]), output / "follow_up.png")
    for cluster in clusters:
        _write(cluster.runs, output / f"follow_up_{cluster.cluster}.csv")
    _write_text(_summary(summary, every, errors, gains, clusters), output / "summary.md")


def _check_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MeasurementError(
            "the experiment draws figures with matplotlib; run: pip install matplotlib"
        ) from error


def _progress(groups: list[MeasuredGroup], calibration: Calibration) -> Figure:
    lines, slopes, ends = {}, {}, {}
    for cluster in ("paravance", "grisou"):
        labels = {"cluster": cluster, "broadcast": "nonblocking", "block_subdivisions": "50"}
        fitted = calibration.group(**labels)
        values = {name: item.value for name, item in fitted.parameters.items()}
        rows = {
            str(row.measurement.pattern): row.measurement
            for row in fitted.predictions
            if str(row.measurement.pattern) in SHOWN
        }
        setting = bundle_of_labels(labels)
        lines[cluster] = {
            name: progress_over_time(setting, values, row) for name, row in rows.items()
        }
        ends[cluster] = {
            name: (row.runtime_s or 0.0, row.stddev_s or 0.0) for name, row in rows.items()
        }
        ends_s = {name: float(dates[-1]) for name, (dates, _) in lines[cluster].items()}
        slopes[cluster] = (1.0 / ends_s["constant"], 1.0 / ends_s["none"])
    return figures.progress_figure(lines, slopes, ends)


def _activity(phases: Calibration) -> Figure:
    """Stage by stage, with the efficiencies of the blocking runs on Paravance.

    With 50 sub-blocks a fiftieth of the time is shown: as many iterations as without.
    """
    fitted = phases.group(cluster="paravance", broadcast="blocking")
    values = {name: item.value for name, item in fitted.parameters.items()}
    activities = {}
    for blocking, line in ((True, "blocking"), (False, "non-blocking")):
        for cut, column in ((1, "no sub-blocks"), (50, "50 sub-blocks")):
            setting = pdgemm_setting(sub_blocks=cut, blocking=blocking, phases=16 * cut)
            activities[line, column] = phase_activity(setting.merged(), values)
    return figures.activity_figure(activities, {"no sub-blocks": 120.0, "50 sub-blocks": 2.4})


def _follow_up(clusters: list[FollowUp], models: Path) -> Figure:
    import pandas as pd

    return figures.follow_up_figure(clusters, pd.read_csv(models))


def _summary(
    summary: pandas.DataFrame,
    every: pandas.DataFrame,
    errors: pandas.DataFrame,
    gains: pandas.DataFrame,
    clusters: list[FollowUp],
) -> str:
    """The numbers of the experiment as Markdown."""
    lines = ["# PDGEMM under interference: the numbers", "", "## Plain parallel task", ""]
    lines += [
        f"{every.placement.nunique()} placements. The simulated runs differ from the closed form, "
        "a third of the rate while disturbed, by at most "
        f"{summary.closed_form_gap_s.max():.2g} s.",
        "",
        "| on/off (s) | published (s) | reference placement (s) | mean (s) | sd (s) |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.pattern} | {row.published_s:.0f} | {row.reference_placement_s:.2f} "
        f"| {row.mean_s:.1f} | {row.sd_s:.1f} |"
        for row in summary.itertuples()
    ]
    lines += [
        "",
        "## Two clusters: errors on the rows between the endpoints",
        "",
        "| model, fitted on | rows | count | mean | largest |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.model} | {row.rows} | {row.count} | {row.mean_error:.2%} "
        f"| {row.largest_error:.2%} |"
        for row in errors.itertuples(index=False)
    ]
    lines += [
        "",
        "## Without sub-blocks: what phases gain over bundling (mean error)",
        "",
        f"| cluster | broadcast | {' | '.join(gains.columns[3:])} |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row[0]} | {row[1]} | " + " | ".join(_percent(value) for value in row[3:]) + " |"
        for row in gains.itertuples(index=False)
    ]
    lines += [
        "",
        "## Follow-up: mean errors on the disturbed runs",
        "",
        "| cluster | competitors | runs | first experiment only | each half from the other |",
        "|---|---|---|---|---|",
    ]
    for found in clusters:
        halves = " and ".join(f"{error:.2%}" for error in found.half_errors)
        lines.append(
            f"| {found.cluster} | {COMPETITORS_OF_FOLLOW_UP[found.cluster]} "
            f"| {(found.runs.competitors > 0).sum()} | {found.first_only_error:.2%} | {halves} |"
        )
    return "\n".join(lines) + "\n"


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2%}"


def _write(table: pandas.DataFrame, path: Path) -> None:
    _write_text(table.to_csv(index=False, float_format="%.10g"), path)


def _write_text(text: str, path: Path) -> None:
    with whole_file(path, error=MeasurementError) as stream:
        stream.write(text)


def _save(figure: Figure, path: Path) -> None:
    with whole_path(path, error=MeasurementError) as partial:
        figure.savefig(partial, format="png", dpi=150, metadata={"Software": None})
