"""The pictures of the PDGEMM experiment: each takes tables and returns a matplotlib figure.

Series differ by markers as well as by colours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ptaskmodel.style.figures import CATEGORIES, LIGHT, picture, plain_log, subplots
from ptaskmodel.workload.amounts import FloatArray

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from pdgemm_study.follow_up import FollowUp

BLUE, SKY, GREEN, ORANGE, RED, PURPLE = CATEGORIES
BLACK, GREY = LIGHT.ink, LIGHT.soft
PATTERN_ORDER = ("none", "15/45", "15/15", "30/30", "45/15", "constant")
MODELS = {
    "rates, endpoints": ("slow/fast rates, fitted on the ends", BLUE, "o"),
    "ptask, endpoints": ("calibrated ptask, fitted on the ends", RED, "s"),
    "rates, all": ("slow/fast rates, fitted on all", SKY, "v"),
    "phases, endpoints": ("ptask in phases, fitted on the ends", GREEN, "D"),
}


@picture
def placements_figure(summary: pandas.DataFrame, every: pandas.DataFrame) -> Figure:
    """The published predictions on the simulated ones over random placements."""
    figure, axes = subplots(1, 2, size=(8.4, 3.4), width_ratios=[2.2, 1])
    main, gap = axes[0]
    positions = np.arange(len(summary))
    spread = np.linspace(-0.22, 0.22, every.placement.nunique())
    for place, pattern in enumerate(summary.pattern):
        runs = every[every.pattern == pattern].simulated_s.to_numpy()
        main.scatter(
            place + spread,
            runs,
            s=7,
            color=SKY,
            label="simulated placements" if not place else None,
        )
    main.scatter(
        positions,
        summary.reference_placement_s,
        marker="D",
        s=26,
        color=BLUE,
        label="placement of the published runtime",
        zorder=3,
    )
    main.scatter(
        positions,
        summary.published_s,
        marker="_",
        s=420,
        color=RED,
        linewidth=2,
        label="published prediction",
        zorder=4,
    )
    main.set(ylabel="predicted runtime (s)", ylim=(0, None), xlabel="interference on/off (s)")
    main.set_xticks(positions, summary.pattern)
    main.legend(loc="upper left")
    main.set_title("Plain parallel task: published and simulated")
    bins = np.arange(295, 325, 2.5)
    gap.hist(every[every.pattern == "none"].simulated_s, bins=bins, color=SKY, edgecolor="white")
    gap.axvline(308.9, color=RED, linewidth=2)
    gap.yaxis.get_major_locator().set_params(integer=True)
    gap.set(xlabel="undisturbed runtime (s)", ylabel="placements")
    gap.set_title("Spread (red: published mean)")
    return figure


@picture
def clusters_figure(table: pandas.DataFrame, plain: Mapping[str, float]) -> Figure:
    """Measured and predicted runtimes of each variant on both clusters.

    plain: runtime in s of the plain model by pattern.
    """
    variants = list(dict.fromkeys(zip(table.broadcast, table.block_subdivisions, strict=True)))
    figure, axes = subplots(2, len(variants), size=(11, 5.4), sharex=True, sharey="row")
    positions = {name: place for place, name in enumerate(PATTERN_ORDER)}
    for line, cluster in enumerate(("paravance", "grisou")):
        for column, (broadcast, subdivisions) in enumerate(variants):
            axis = axes[line, column]
            mine = table[
                (table.cluster == cluster)
                & (table.broadcast == broadcast)
                & (table.block_subdivisions == subdivisions)
            ]
            at = np.array([positions[name] for name in mine.pattern], float)
            axis.plot(
                range(len(PATTERN_ORDER)),
                [plain[name] for name in PATTERN_ORDER],
                "--",
                color=GREY,
                linewidth=1.2,
                label="plain ptask",
            )
            for name, shift in (("rates, endpoints", -0.16), ("ptask, endpoints", 0.16)):
                label, color, marker = MODELS[name]
                axis.plot(
                    at + shift,
                    mine[f"{name}, s"].astype(float),
                    marker,
                    color=color,
                    markersize=5,
                    fillstyle="none",
                    markeredgewidth=1.3,
                    label=label,
                )
            axis.errorbar(
                at,
                mine.measured_s.astype(float),
                2.0 * mine.stddev_s.astype(float),
                fmt="_",
                color=BLACK,
                markersize=11,
                markeredgewidth=1.8,
                capsize=3,
                label="measured (bars: 2 standard deviations)",
                zorder=4,
            )
            cut = "no sub-blocks" if subdivisions == "1" else f"{subdivisions} sub-blocks"
            axis.set_title(f"{cluster}, {broadcast}, {cut}")
            axis.set_xticks(range(len(PATTERN_ORDER)), PATTERN_ORDER, rotation=45)
            axis.set_ylim(0, 1000 if line == 0 else 1650)
        axes[line, 0].set_ylabel("runtime (s)")
    for axis in axes[1]:
        axis.set_xlabel("interference on/off (s)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


@picture
def residuals_figure(table: pandas.DataFrame) -> Figure:
    """Relative errors of the models, row by row, with two standard deviations of the runs."""
    figure, axes = subplots(2, 1, size=(10, 5.8), sharex=False)
    for axis, cluster in zip(axes[:, 0], ("paravance", "grisou"), strict=True):
        mine = table[(table.cluster == cluster) & table.measured_s.notna()].reset_index(drop=True)
        at = np.arange(len(mine), dtype=float)
        noise = 200.0 * mine.stddev_s / mine.measured_s
        axis.bar(
            at,
            2.0 * noise,
            0.9,
            -noise,
            color=LIGHT.nothing,
            label="2 standard deviations of the runs",
        )
        shifts = np.linspace(-0.27, 0.27, len(MODELS))
        for shift, (name, (label, color, marker)) in zip(shifts, MODELS.items(), strict=True):
            errors = 100.0 * mine[f"{name}, error"].astype(float)
            axis.plot(at + shift, errors, marker, color=color, markersize=4.5, label=label)
        axis.axhline(0.0, color=BLACK, linewidth=0.8)
        starts = mine.index[mine.pattern == "none"].to_list()
        for start, end in zip(starts, [*starts[1:], len(mine)], strict=True):
            first = mine.loc[start]
            cut = "no sub-blocks" if first.block_subdivisions == "1" else "50 sub-blocks"
            axis.text(
                (start + end - 1) / 2,
                1.02,
                f"{first.broadcast}, {cut}",
                ha="center",
                transform=axis.get_xaxis_transform(),
            )
            if start:
                axis.axvline(start - 0.5, color=GREY, linewidth=0.8)
        axis.set_xticks(at, mine.pattern, rotation=45, ha="right")
        axis.set_xlim(-0.6, len(mine) - 0.4)
        axis.set_ylabel(f"{cluster}\nprediction - measurement (%)")
        axis.grid(axis="x", visible=False)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


@picture
def progress_figure(
    lines: Mapping[str, Mapping[str, tuple[FloatArray, FloatArray]]],
    slopes: Mapping[str, tuple[float, float]],
    measured: Mapping[str, Mapping[str, tuple[float, float]]],
) -> Figure:
    """Progress over time under three patterns: steep while undisturbed, flat while disturbed.

    lines: (dates s, progress) by cluster and pattern; slopes: (c1, c2) in 1/s by cluster;
    measured: (mean, standard deviation) of the runtime in s by cluster and pattern.
    """
    colours = {"none": BLACK, "15/45": GREEN, "45/15": ORANGE, "constant": RED}
    figure, axes = subplots(1, len(lines), size=(10, 3.9), sharey=True)
    for axis, (cluster, patterns) in zip(axes[0], lines.items(), strict=True):
        for pattern, (dates, done) in patterns.items():
            axis.plot(dates, 100.0 * done, color=colours[pattern], linewidth=1.6, label=pattern)
            mean, deviation = measured[cluster][pattern]
            axis.errorbar(
                mean,
                100.0,
                xerr=2.0 * deviation,
                fmt="D",
                color=colours[pattern],
                markersize=6,
                markeredgecolor="white",
                clip_on=False,
                zorder=5,
            )
        slow, fast = slopes[cluster]
        axis.set_title(
            f"{cluster}: {100 * fast:.3f} %/s undisturbed, {100 * slow:.3f} %/s disturbed"
        )
        axis.set(xlabel="time since the start (s)", ylim=(0, 104), xlim=(0, None))
    axes[0, 0].set_ylabel("progress of PDGEMM (%)")
    axes[0, 0].legend(title="interference on/off (s)\n(diamonds: measured ends)", loc="lower right")
    return figure


@picture
def activity_figure(
    activities: Mapping[tuple[str, str], pandas.DataFrame], spans_s: Mapping[str, float]
) -> Figure:
    """Use of the routing node and of the cores, phase after phase, at the start of a run.

    activities: the phases by (row, column) of the figure; spans_s: the time shown, by column.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    lines = list(dict.fromkeys(line for line, _ in activities))
    figure, axes = subplots(len(lines), len(spans_s), size=(10, 4.6), sharex="col", sharey=True)
    for (line, column), phases in activities.items():
        across = list(spans_s).index(column)
        axis = axes[lines.index(line), across]
        edges = np.append(phases.start_s.to_numpy(), phases.end_s.iloc[-1])
        axis.stairs(phases.router_Bps / 1e9, edges, fill=True, color=SKY)
        axis.set(ylim=(0, 3.0), xlim=(0, spans_s[column]))
        axis.set_title(f"{line}, {column}", loc="left")
        twin = axis.twinx()
        twin.stairs(phases.flops / 1e12, edges, color=RED, linewidth=1.5)
        twin.set_ylim(0, 12)
        twin.grid(visible=False)
        if across == 0:
            axis.set_ylabel("routing node (GB/s)")
            twin.tick_params(labelright=False)
        else:
            twin.set_ylabel("computing (Tflop/s)", color=RED)
    for axis in axes[-1]:
        axis.set_xlabel("time since the start (s)")
    figure.legend(
        [Patch(color=SKY), Line2D([], [], color=RED)],
        ["routing node, both directions (left scale)", "computing, 256 cores (right scale)"],
        loc="outside lower center",
        ncols=2,
    )
    return figure


@picture
def time_scale_figure(table: pandas.DataFrame) -> Figure:
    """Accuracy and cost of a run against the number of phases."""
    figure, axes = subplots(1, 2, size=(9.5, 3.8))
    looks = iter(((BLUE, "o"), (SKY, "s"), (GREEN, "^"), (RED, "D"), (ORANGE, "v")))
    for labels, mine in table.groupby(["cluster", "broadcast", "block_subdivisions"], sort=False):
        color, marker = next(looks)
        cluster, broadcast, cut = labels
        name = f"{cluster}, {broadcast}, {'no' if cut == '1' else cut} sub-blocks"
        at = np.where(mine.phases == 0, 0.35, mine.phases)
        for axis, values in zip(axes[0], (100.0 * mine.mean_error, mine.run_ms), strict=True):
            axis.plot(at, values, marker=marker, color=color, markersize=5, label=name)
    for axis in axes[0]:
        axis.set_xscale("log", base=2)
        ticks = [0.35, 1, 2, 4, 8, 16, 50, 800]
        axis.set_xticks(ticks, ["bundled", "1", "2", "4", "8", "16", "50", "800"])
        axis.minorticks_off()
        axis.set_xlabel("phases of the simulated task")
    axes[0, 0].set(ylabel="mean error between the endpoints (%)", ylim=(0, None))
    axes[0, 0].set_title("What a finer time scale brings")
    axes[0, 1].set(ylabel="wall time of one prediction, two runs (ms)", yscale="log")
    plain_log(axes[0, 1].yaxis)
    axes[0, 1].set_title("What it costs")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def _set_apart(values: pandas.Series) -> pandas.Series:
    """Equal values side by side, around where they are."""
    groups = values.groupby(values)
    place = (groups.cumcount() + 0.5) / groups.transform("size") - 0.5
    return values + 0.24 * place


@picture
def follow_up_figure(clusters: Sequence[FollowUp], others: pandas.DataFrame) -> Figure:
    """Runs against the number of competitors, with the predictions; and all models, log scale.

    others: series, n_tcp_connections and runtime_s of the plain models.
    """
    figure, axes = subplots(1, 3, size=(11.5, 3.9), width_ratios=[1, 1, 1])
    for axis, found in zip(axes[0, :2], clusters, strict=True):
        runs = found.runs
        axis.plot(
            _set_apart(runs.competitors),
            runs.measured_s,
            "o",
            color=BLACK,
            alpha=0.35,
            markersize=4,
            label="measured runs (set a little apart)",
        )
        line = runs.drop_duplicates("competitors").sort_values("competitors")
        axis.plot(
            line.competitors,
            line.first_only_s,
            "-",
            color=RED,
            linewidth=1.8,
            label="calibrated on the first experiment only",
        )
        unit = "TCP connections" if found.cluster == "grisou" else "host pairs"
        axis.set(xlabel=f"interfering {unit}", ylim=(0, None), ylabel="runtime (s)")
        fitted = " (w inferred)" if found.cluster == "grisou" else ""
        axis.set_title(f"{found.cluster}: mean error {100 * found.first_only_error:.1f} %{fitted}")
        axis.legend(loc="lower right")
    wide = axes[0, 2]
    grisou = clusters[0].runs
    looks = {
        "ptask_L07": ("plain ptask (published)", GREY, "^"),
        "smpi": ("SMPI (published)", PURPLE, "v"),
    }
    for series, (label, color, marker) in looks.items():
        mine = others[others.series == series]
        wide.plot(
            mine.n_tcp_connections, mine.runtime_s, marker, color=color, markersize=3.5, label=label
        )
    line = grisou.drop_duplicates("competitors").sort_values("competitors")
    wide.plot(
        line.competitors, line.first_only_s, "-", color=RED, linewidth=1.8, label="calibrated"
    )
    wide.plot(
        grisou.competitors,
        grisou.measured_s,
        "o",
        color=BLACK,
        alpha=0.35,
        markersize=4,
        label="measured, grisou",
    )
    wide.set(
        yscale="log", ylim=(50, 20000), xlabel="interfering TCP connections", ylabel="runtime (s)"
    )
    plain_log(wide.yaxis)
    wide.set_title("grisou, all models (log scale)")
    wide.legend(loc="upper left")
    return figure
