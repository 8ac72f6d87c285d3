"""Tables, pictures and a summary of the PDGEMM study, of campaigns that were run.

    python experiments/pdgemm/tables.py RUNS... -o results/pdgemm

writes what README.md lists there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas
from pdgemm_study import figures
from pdgemm_study.follow_up import COMPETITORS_OF_FOLLOW_UP, FollowUp
from pdgemm_study.tables import (
    comparison_table,
    error_table,
    gain_table,
    phase_activity,
    placement_table,
    progress_over_time,
    read_published,
)

from ptaskmodel.calibration.fits import bundle_of_labels, pdgemm_setting
from ptaskmodel.calibration.results import Calibration
from ptaskmodel.calibration.run import from_json
from ptaskmodel.campaign import (
    Finding,
    between,
    near,
    told_campaigns,
    write_findings,
    write_table,
)
from ptaskmodel.files import whole_file
from ptaskmodel.style.figures import save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED, MODELS = "ptask_predicted_runtimes.csv", "pdgemm_tcp_connections_models.csv"
SHOWN = ("none", "15/45", "45/15", "constant")


def main() -> None:
    campaigns, output = told_campaigns(__doc__)
    placements, scales, clusters = [], [], []
    found: dict[str, Calibration] = {}
    for campaign in campaigns:
        measurements = campaign.plan.folder / campaign.plan.fixed["measurements"]
        for run, record in campaign.records():
            part, series = run.parameters["part"], record["series"]
            if part == "placement":
                placements += series
            elif part == "fit":
                name = f"{run.parameters['model']}, {run.parameters['fit_on']}"
                found[name] = from_json(series)
            elif part == "time scales":
                scales += series
            else:
                clusters += [
                    FollowUp(**one | {"runs": pandas.DataFrame(one["runs"])}) for one in series
                ]
    every = pandas.DataFrame(placements)
    summary = placement_table(read_published(measurements / PUBLISHED), every)
    comparison, errors, gains = comparison_table(found), error_table(found), gain_table(found)
    plain = dict(zip(summary.pattern, summary.reference_placement_s, strict=True))
    tables = {
        "placements": summary,
        "placements_all": every,
        "clusters": comparison,
        "errors": errors,
        "phases_gain": gains,
        "time_scales": pandas.DataFrame(scales),
        **{f"follow_up_{one.cluster}": one.runs for one in clusters},
    }
    for name, table in tables.items():
        write_table(table, output / f"{name}.csv")
    drawn = {
        "placements": figures.placements_figure(summary, every),
        "clusters": figures.clusters_figure(comparison, plain),
        "residuals": figures.residuals_figure(comparison),
        "progress": _progress(found["ptask, endpoints"]),
        "activity": _activity(found["phases, endpoints"]),
        "time_scales": figures.time_scale_figure(tables["time_scales"]),
        "follow_up": figures.follow_up_figure(clusters, pandas.read_csv(measurements / MODELS)),
    }
    for name, figure in drawn.items():
        save(figure, output / f"{name}.png")
        print(output / f"{name}.png")
    with whole_file(output / "summary.md") as stream:
        stream.write(_summary(summary, every, errors, gains, clusters))
    print(write_findings(output, findings(summary, every, errors)))


def findings(
    summary: pandas.DataFrame, every: pandas.DataFrame, errors: pandas.DataFrame
) -> list[Finding]:
    """The published predictions beside ours, and how far both are from what was measured."""
    plain = summary.set_index("pattern")
    drawn = every.placement.nunique() - 1  # the reference placement is one more
    few = f"{drawn} placements drawn here, 100 there"
    found = [
        near(
            "undisturbed, mean of placements",
            308.9,
            plain.mean_s["none"],
            0.01,
            unit="s",
            cause=few,
        ),
        near("undisturbed, deviation", 5.2, plain.sd_s["none"], 0.15, unit="s", cause=few),
    ]
    for row in summary.itertuples():
        what = f"published placement, {row.pattern}"
        here, cause = row.reference_placement_s, "another solution of the same model"
        found.append(near(what, row.published_s, here, 0.002, unit="s", cause=cause))
    fitted = errors[(errors.model == "ptask, endpoints") & (errors.rows == "all groups")]
    error = 100 * float(fitted.mean_error.iloc[0])
    what = "mean error between the endpoints, calibrated (there not, on the better cluster)"
    cause = "the fit has not found the network that was measured"
    return [*found, between(what, -math.inf, 26.0, error, unit="%", cause=cause)]


def _progress(calibration: Calibration) -> Figure:
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


if __name__ == "__main__":
    main()
