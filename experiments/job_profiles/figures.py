"""The figures of the experiment: Gantt charts, distributions, simulation times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from ptaskmodel.style.figures import CATEGORIES, LIGHT, picture, text_on

CABINETS = (0, 39, 74, 104, 144)
COLOURS = dict(zip((8, 16, 32), CATEGORIES, strict=False))
SHOWN = ("first-fit", "random", "contiguous", "contiguous-best-effort")
LABELS = {
    "first-fit": "first free",
    "random": "random",
    "contiguous": "contiguous",
    "contiguous-best-effort": "contiguous\nif possible",
}
PROFILES = {"delay": "delays", "ptask": "parallel tasks", "trace": "traces"}
SHADES = {"delay": LIGHT.nothing, "ptask": CATEGORIES[0], "trace": CATEGORIES[2]}

Runs = Mapping[str, Mapping[str, Any]]
Results = Mapping[str, Mapping[str, Any]]


@picture
def draw_all(output: Path, wanted: Runs, results: Results) -> list[Path]:
    """Write the figures as PNG; returns their paths."""
    smallest = min(parameters["jobs"] for parameters in wanted.values())
    largest = max(parameters["jobs"] for parameters in wanted.values())
    made = [
        gantt(output / f"gantt_{smallest}.png", smallest, wanted, results),
        distributions(output / f"distributions_{largest}.png", largest, wanted, results),
        simulation_times(output / "simulation_times.png", wanted, results),
    ]
    plt.close("all")
    return made


def _of(wanted: Runs, results: Results, **fixed: Any) -> list[Mapping[str, Any]]:
    """The results whose parameters have these values."""
    return [
        results[name]
        for name, parameters in wanted.items()
        if all(parameters[key] == value for key, value in fixed.items())
    ]


def _kinds(wanted: Runs) -> list[str]:
    """The kinds of profiles that were run, in the order of the legend."""
    run = {parameters["profiles"] for parameters in wanted.values()}
    return [kind for kind in PROFILES if kind in run]


def gantt(path: Path, jobs: int, wanted: Runs, results: Results) -> Path:
    """Who ran where and when: first free and contiguous nodes, delays and parallel tasks."""
    allocations = ("first-fit", "contiguous")
    kinds = _kinds(wanted)
    size = (12, 3.5 * len(kinds) + 0.5)
    figure, axes = plt.subplots(
        len(kinds), 2, figsize=size, sharex=True, sharey=True, squeeze=False
    )
    last = 0.0
    for row, profiles in enumerate(kinds):
        for column, allocation in enumerate(allocations):
            axis = axes[row, column]
            (result, *_) = _of(
                wanted, results, jobs=jobs, profiles=profiles, allocation=allocation, seed=1
            )
            last = max(last, _draw_jobs(axis, result["jobs"]))
            axis.set_title(f"{PROFILES[profiles]}, {LABELS[allocation]} nodes")
            for border in CABINETS[1:-1]:
                axis.axhline(border, color=LIGHT.ink, linewidth=0.8)
    for axis in axes[-1]:
        axis.set_xlabel("time (s)")
    for axis in axes[:, 0]:
        axis.set_ylabel("node (lines: cabinets)")
    axes[0, 0].set_xlim(0, last * 1.01)
    axes[0, 0].set_ylim(0, CABINETS[-1])
    handles = [Rectangle((0, 0), 1, 1, color=colour) for colour in COLOURS.values()]
    names = [f"FT.C on {nodes} nodes" for nodes in COLOURS]
    figure.legend(handles, names, loc="lower center", ncols=3)
    figure.suptitle(f"{jobs} FT jobs on Graphene, first come first served")
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.savefig(path, dpi=110)
    return path


def _draw_jobs(axis: Any, rows: Sequence[Sequence[Any]]) -> float:
    """Draw one rectangle for each run of consecutive nodes of a job; the date of the last end."""
    for nodes, colour in COLOURS.items():
        boxes = [
            Rectangle((start, first), finish - start, length)
            for size, _, start, finish, pieces in rows
            if size == nodes
            for first, length in pieces
        ]
        axis.add_collection(
            PatchCollection(boxes, facecolor=colour, edgecolor="white", linewidth=0.2)
        )
    return max(row[3] for row in rows)


def distributions(path: Path, jobs: int, wanted: Runs, results: Results) -> Path:
    """Running and waiting times by profile and allocation, all seeds together."""
    kinds = _kinds(wanted)
    figure, axes = plt.subplots(1, 2, figsize=(12, 5))
    for axis, (label, first, second) in zip(
        axes, (("running time (s)", 2, 3), ("waiting time (s)", 1, 2)), strict=True
    ):
        positions, values, colours = [], [], []
        for k, allocation in enumerate(SHOWN):
            for side, profiles in enumerate(kinds):
                found = _of(wanted, results, jobs=jobs, profiles=profiles, allocation=allocation)
                rows = [row for result in found for row in result["jobs"]]
                positions.append(k + (side - (len(kinds) - 1) / 2) * 0.72 / len(kinds))
                values.append([row[second] - row[first] for row in rows])
                colours.append(SHADES[profiles])
        boxes = axis.boxplot(
            values, positions=positions, widths=0.6 / len(kinds), whis=(5, 95), showfliers=False,
            patch_artist=True, showmeans=True,
            meanprops={"marker": "D", "markersize": 4, "markerfacecolor": "white",
                       "markeredgecolor": LIGHT.ink},
        )  # fmt: skip
        for box, median, colour in zip(boxes["boxes"], boxes["medians"], colours, strict=True):
            box.set_facecolor(colour)
            median.set_color(text_on(colour))
        axis.set_xticks(range(len(SHOWN)), [LABELS[name] for name in SHOWN])
        axis.set_ylabel(label)
        if first == 1:
            axis.set_yscale("symlog", linthresh=1.0)
            axis.yaxis.set_major_formatter("{x:,g}")
            axis.margins(y=0.1)
        axis.set_ylim(bottom=0)
        axis.grid(visible=False, axis="x")
        handles = [Rectangle((0, 0), 1, 1, color=SHADES[kind]) for kind in kinds]
        axis.legend(handles, [PROFILES[kind] for kind in kinds])
    figure.suptitle(
        f"{jobs} FT jobs on Graphene: boxes 25 to 75 %, whiskers 5 to 95 %, diamonds means"
    )
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    return path


def simulation_times(path: Path, wanted: Runs, results: Results) -> Path:
    """Wall time of the simulations: of the seeds the least, which was disturbed least."""
    counts = sorted({parameters["jobs"] for parameters in wanted.values()})
    figure, axis = plt.subplots(figsize=(7, 4))
    kinds = _kinds(wanted)
    width = 0.8 / (len(kinds) * len(counts))
    for k, allocation in enumerate(SHOWN):
        for n, count in enumerate(counts):
            for side, profiles in enumerate(kinds):
                found = _of(wanted, results, jobs=count, profiles=profiles, allocation=allocation)
                least = min(result["simulation_s"] for result in found)
                bars = len(kinds) * len(counts)
                place = k + (len(kinds) * n + side - (bars - 1) / 2) * width
                shade = SHADES[profiles]
                pale = 1.0 - 0.45 * (len(counts) - 1 - n)
                axis.bar(place, least, width * 0.92, color=shade, alpha=pale)
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter("{x:g}")
    axis.set_xticks(range(len(SHOWN)), [LABELS[name] for name in SHOWN])
    axis.set_ylabel("time to simulate (s)")
    jobs = " and ".join(f"{count:,}" for count in counts)
    told = " (pale: the fewer)" if len(counts) > 1 else ""
    axis.set_title(f"Time to simulate {jobs} jobs{told}, each kind of profiles")
    handles = [Rectangle((0, 0), 1, 1, color=SHADES[kind]) for kind in kinds]
    figure.legend(handles, [PROFILES[kind] for kind in kinds], loc="lower center", ncols=3)
    axis.grid(visible=False, axis="x")
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(path, dpi=110)
    return path
