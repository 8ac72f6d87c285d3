"""Picture of the waiting times of a batch: by size, length and user, and their distribution.

The classes of jobs come from classes.csv.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.directory import finite, readable, rows
from ptaskmodel.results.loading import JOBS, Results
from ptaskmodel.results.pictures.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    new_figure,
    short_name,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


CLASSES = "classes.csv"
CLASS_COLUMNS = ("kind", "class", "jobs", "host_seconds", "mean_waiting", "max_waiting",
           "mean_execution", "mean_bounded_slowdown")  # fmt: skip
# Kinds of classes, and the head of their column.
SHOWN = {"size": "hosts asked for", "length": "time of execution", "user": "user"}
MOST_USERS = 20
MADE_ANEW = "make the batch anew"
# The only class of users where a workload names none.
UNKNOWN = "unknown"
FloatArray = NDArray[np.float64]
JOB_COLUMNS = ("requested_number_of_resources", "execution_time", "waiting_time", "turnaround_time")
# Less than this is drawn as this: most jobs of a quiet machine do not wait at all.
LEAST_S = 1.0
MARKS = (
    *((1.0, "1 s"), (10.0, "10 s"), (60.0, "1 min"), (600.0, "10 min"), (3600.0, "1 h")),
    *((86400.0, "1 d"), (864000.0, "10 d"), (8640000.0, "100 d"), (86400000.0, "1000 d")),
)
MOST_NAMED = 15
# More points than these are kept as an image within the picture.
MANY = 2000


def users_of(results: Results) -> list[tuple[str, int, float, float]]:
    """Return (user, jobs, mean wait in s, longest in s), the largest users first; empty if not
    known.

    Raises PTaskModelError if classes.csv is damaged.
    """
    path = results.directory / CLASSES
    with readable(path, MADE_ANEW):
        return [
            (
                row["class"],
                int(row["jobs"]),
                finite(row["mean_waiting"]),
                finite(row["max_waiting"]),
            )
            for row in classes_of(path)["user"]
        ]


def classes_of(path: Path) -> dict[str, list[dict[str, str]]]:
    """The lines of classes.csv at ``path`` of the kinds shown; of users those that are known."""
    found: dict[str, list[dict[str, str]]] = {kind: [] for kind in SHOWN}
    for row in rows(path, *CLASS_COLUMNS, optional=True):
        if row["kind"] in found:
            found[row["kind"]].append(row)
    found["user"] = _known(found["user"])
    return found


def _known(users: list[dict[str, str]]) -> list[dict[str, str]]:
    """Users by what they used; none where all there is is a class of those unknown."""
    if [row["class"] for row in users] == [UNKNOWN]:
        return []
    return sorted(users, key=lambda row: -finite(row["host_seconds"]))


def waiting_figure(results: Results) -> Figure:
    """Waiting by hosts asked for, by time of execution and by user (or their part, where no user is
    known), and the distribution of the bounded slowdown; axes are logarithmic.

    Raises PTaskModelError if no job ran, or the tables cannot be read.
    """
    if results.what != "job":
        raise PTaskModelError(f"{results.directory}: not a batch: no waiting times")
    asked, lasted, waited, turned = _jobs(results.directory / JOBS)
    tau = results.summary.get("tau_s")
    tau_s = float(tau) if isinstance(tau, int | float) and tau > 0 else 60.0
    bounded = np.maximum(1.0, turned / np.maximum(lasted, tau_s))
    figure = new_figure(11.0, 7.0)
    panels = figure.subplots(2, 2)
    _scattered(panels[0][0], asked, waited)
    panels[0][0].set_xlabel("hosts asked for")
    panels[0][0].xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    _scattered(panels[0][1], np.maximum(lasted, LEAST_S), waited)
    _in_time(panels[0][1], "x", np.maximum(lasted, LEAST_S))
    panels[0][1].set_xlabel("time of execution")
    users = users_of(results)
    if users:
        _by_user(panels[1][0], users)
    else:
        _cumulated(panels[1][0], np.maximum(waited, LEAST_S), RED)
        _in_time(panels[1][0], "x", np.maximum(waited, LEAST_S))
        panels[1][0].set_xlabel("waiting, at most")
    _cumulated(panels[1][1], bounded, BLUE)
    panels[1][1].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    panels[1][1].set_xlim(0.9, 1.2 * max(10.0, bounded.max()))
    panels[1][1].set_xlabel(f"bounded slowdown (tau {tau_s:g} s), at most")
    never = np.count_nonzero(waited <= 0.0) / len(waited)
    figure.suptitle(
        f"Waiting of {len(waited):,} jobs ({never:.0%} did not); points: jobs, less than 1 s as "
        "1 s; orange: means",
        fontsize=10, ha="left", x=0.01,
    )  # fmt: skip
    return figure


def _jobs(path: Path) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """COLUMNS of the jobs that ran."""
    found = []
    with readable(path, MADE_ANEW):
        for row in rows(path, *JOB_COLUMNS):
            if all(row[name] for name in JOB_COLUMNS):
                found.append([finite(row[name]) for name in JOB_COLUMNS])
    if not found:
        raise PTaskModelError(f"{path}: no job ran; nothing to draw")
    asked, lasted, waited, turned = np.array(found).T
    return np.maximum(asked, 1.0), lasted, waited, turned


def _scattered(axes: Any, across: FloatArray, waited: FloatArray) -> None:
    """Each job, and means in classes by powers of two (of times: of four)."""
    axes.set_xscale("log", base=2 if across.max() < 2**16 else 10)
    axes.set_yscale("log")
    shown = np.maximum(waited, LEAST_S)
    size, alpha = (14.0, 0.5) if len(waited) <= MANY else (5.0, 0.25)
    axes.scatter(across, shown, s=size, color=BLUE, alpha=alpha, linewidths=0,
                 rasterized=len(waited) > MANY)  # fmt: skip
    classes = np.floor(np.log2(across) / (1 if across.max() < 2**16 else 2)).astype(int)
    middles, means = [], []
    for one in np.unique(classes):
        own = classes == one
        middles.append(math.exp(np.log(across[own]).mean()))
        means.append(max(float(waited[own].mean()), LEAST_S))
    axes.plot(middles, means, "o-", color=ORANGE, linewidth=1.5, markersize=5)
    _in_time(axes, "y", shown)
    axes.set_ylabel("waiting")
    axes.grid(alpha=0.3)


def _by_user(axes: Any, users: list[tuple[str, int, float, float]]) -> None:
    """Means and the longest of those who used the machine most."""
    shown = users[: min(MOST_NAMED, MOST_USERS)]
    means = np.array([max(mean, LEAST_S) for _, _, mean, _ in shown])
    longest = np.array([max(longest, LEAST_S) for _, _, _, longest in shown])
    places = np.arange(len(shown))
    axes.hlines(places, means, longest, color=GREY, linewidth=1.5)
    axes.plot(means, places, "o", color=ORANGE)
    axes.plot(longest, places, "|", color="black", markersize=9)
    axes.set_yticks(places)
    axes.set_yticklabels([f"{short_name(name, 18)} ({jobs:,})" for name, jobs, _, _ in shown],
                         fontsize=8)  # fmt: skip
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xscale("log")
    _in_time(axes, "x", np.concatenate([means, longest]))
    axes.set_xlabel("waiting by user (jobs), most used first; tick: longest")
    axes.grid(alpha=0.3)


def _cumulated(axes: Any, values: FloatArray, colour: str) -> None:
    """What part of the jobs has at most a value."""
    ordered = np.sort(values)
    part = 100.0 * np.arange(1, len(ordered) + 1) / len(ordered)
    axes.set_xscale("log")
    axes.step(np.concatenate([ordered[:1], ordered]), np.concatenate([[0.0], part]),
              where="post", color=colour, linewidth=2, rasterized=len(values) > MANY)  # fmt: skip
    for share in (0.5, 0.95):
        axes.axvline(ordered[math.ceil(share * len(ordered)) - 1], color=GREEN, linestyle="--",
                     linewidth=1.0)  # fmt: skip
    axes.set_ylim(0.0, 102.0)
    axes.set_ylabel("jobs (%); dashed: 50 and 95 %")
    axes.grid(alpha=0.3)


def _in_time(axes: Any, which: str, values: FloatArray) -> None:
    """Ticks as people say times, and a range that has at least a decade."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = float(values.min()), max(float(values.max()), 10.0 * float(values.min()))
    marks = [(at, name) for at, name in MARKS if low / 1.5 <= at <= high * 1.5]
    axis.set_ticks([at for at, _ in marks], [name for _, name in marks])
    axis.set_ticks([], minor=True)
    (axes.set_xlim if which == "x" else axes.set_ylim)(low / 1.5, high * 1.5)
