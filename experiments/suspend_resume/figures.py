"""Pictures: the measures by policy, the machine around the huge job, and other workloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from causes import values
from relations import NAMES, TITLES

from ptaskmodel.style.figures import CATEGORIES, LIGHT, picture, plain_log

Row = Mapping[str, Any]
COLOURS = CATEGORIES[:5]


@picture
def draw(
    output: Path,
    rows: Sequence[Row],
    around: Mapping[tuple[str, str, int], Mapping[str, Any]],
) -> list[Path]:
    logs = list(dict.fromkeys(row["log"] for row in rows if row["part"] == "shuffled"))
    made = []
    if logs:
        made += [
            _policies(output / "policies.png", rows, logs, "shuffled"),
            _huge(output / "huge.png", logs, around),
            _workloads(output / "workloads.png", rows, logs),
        ]
    if any(row["part"] == "queue" for row in rows):
        made.append(_policies(output / "queue.png", rows, logs, "queue"))
    contending = [
        log
        for log in logs
        if any(row["log"] == log and row["part"] == "contention" for row in rows)
    ]
    if contending:
        made.append(_policies(output / "contention.png", rows, contending, "contention"))
    return made


def _policies(path: Path, rows: Sequence[Row], logs: Sequence[str], part: str) -> Path:
    """A bar for each policy, its deviation over the orders, a point for each order."""
    size = (13, 0.5 + 2.4 * len(logs))
    figure, axes = plt.subplots(
        len(logs), len(TITLES), figsize=size, layout="constrained", squeeze=False
    )
    for line, log in zip(axes, logs, strict=True):
        own = [row for row in rows if row["log"] == log]
        for axis, (measure, title) in zip(line, TITLES.items(), strict=True):
            found = [values(own, part, name, measure) for name in NAMES]
            means, spreads = (np.array([how(v) for v in found]) for how in (np.mean, np.std))
            axis.bar(
                range(len(NAMES)), means, yerr=(np.minimum(spreads, means), spreads),
                color=COLOURS, capsize=3,
            )  # fmt: skip
            for k, each in enumerate(found):
                axis.plot(np.full(len(each), k), each, ".", color=LIGHT.ink, markersize=3)
            axis.set_xticks(range(len(NAMES)), NAMES, rotation=40, ha="right")
            axis.yaxis.set_major_formatter("{x:,.0f}")
            axis.grid(visible=False, axis="x")
            axis.set_title(title)
        line[0].set_ylabel(log)
    return _saved(figure, path)


def _huge(
    path: Path, logs: Sequence[str], around: Mapping[tuple[str, str, int], Mapping[str, Any]]
) -> Path:
    """Hosts in use around the huge job, of the order in which it waits longest."""
    figure, axes = plt.subplots(
        len(logs), 1, figsize=(10, 0.4 + 2.3 * len(logs)), layout="constrained", squeeze=False
    )
    for axis, log in zip(axes[:, 0], logs, strict=True):
        own = {key[1:]: found for key, found in around.items() if key[0] == log}
        seeds = sorted({seed for _, seed in own})
        waits = [own["bf size", s]["start_s"] - own["bf size", s]["submit_s"] for s in seeds]
        seed = seeds[int(np.argmax(waits))]
        since = own["bf size", seed]["submit_s"]
        reach = max(max(waits), own["bf size", seed]["end_s"] - since)
        lines = (("bf size", COLOURS[0]), ("sr size", COLOURS[4]))
        for name, colour in lines:
            found = own[name, seed]
            hours = (np.array(found["dates"]) - since) / 3600
            axis.step(
                hours, 100 * np.array(found["used"]) / found["hosts"], where="post",
                color=colour, linewidth=1, label=name,
            )  # fmt: skip
            start = (found["start_s"] - since) / 3600
            axis.axvline(start, color=colour, linestyle="--", linewidth=1)
        axis.axvline(0, color=LIGHT.ink, linewidth=1.5, alpha=0.4)
        axis.set_xlim(-0.8 * reach / 3600, 1.6 * reach / 3600)
        axis.set_ylim(0, 103)
        axis.set_ylabel("hosts in use (%)")
        axis.set_title(f"{log}: huge job submitted at 0, started at the dashed lines")
        axis.legend(loc="lower right")
    axes[-1, 0].set_xlabel("time (h)")
    return _saved(figure, path)


def _workloads(path: Path, rows: Sequence[Row], logs: Sequence[str]) -> Path:
    """Samples and shuffles under bf, each over the whole."""
    figure, axes = plt.subplots(
        1, len(logs), figsize=(1 + 3.6 * len(logs), 4), layout="constrained", squeeze=False
    )
    for axis, log in zip(axes[0], logs, strict=True):
        own = [row for row in rows if row["log"] == log]
        for k, part in enumerate(("systematic", "work", "shuffled")):
            for place, measure in enumerate(TITLES):
                found = values(own, part, "bf", measure) / values(own, "whole", "bf", measure)[0]
                axis.plot(
                    np.full(len(found), place + 0.2 * (k - 1)), found, "o", color=COLOURS[2 * k],
                    markersize=4, alpha=0.7, label=part if place == 0 else None,
                )  # fmt: skip
        axis.axhline(1, color=LIGHT.ink, linewidth=0.8)
        axis.set_yscale("log")
        plain_log(axis.yaxis)
        names = [title.split(" (")[0] for title in TITLES.values()]
        axis.set_xticks(range(len(names)), names, rotation=40, ha="right")
        axis.set_title(log)
    axes[0, 0].set_ylabel("over that of the whole")
    axes[0, 0].legend()
    return _saved(figure, path)


def _saved(figure: Any, path: Path) -> Path:
    figure.savefig(path, dpi=80)
    plt.close(figure)
    return path
