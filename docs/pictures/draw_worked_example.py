"""Draws the progress of the README's worked example: docs/pictures/worked_example.png.

Run from anywhere: python docs/pictures/draw_worked_example.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import ptaskmodel as pm
from ptaskmodel.style.figures import CATEGORIES, COLUMN, style

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# Colour, bytes over the link, what to call it.
TASKS = {
    "T1": (CATEGORIES[0], 600.0, "T1: 1000 flop on each host and 600 B"),
    "T2": (CATEGORIES[4], 1000.0, "T2: 1000 B"),
    "T3": (CATEGORIES[2], 0.0, "T3: 300 and 1000 flop"),
}


def progress_by_date() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Dates of the events, s, and how much of each task is done at each of them, 0 to 1."""
    simulation = pm.Simulation(pm.load_platform(ROOT / "platforms" / "worked_example.xml"))
    tasks = pm.load_tasks(ROOT / "experiments" / "first_steps" / "worked_example.json")
    running = {task.id: simulation.add(task) for task in tasks}
    dates = [0.0]
    progress = {name: [0.0] for name in running}
    while simulation.step():
        dates.append(simulation.now)
        for name, task in running.items():
            progress[name].append(task.progress)
    return np.array(dates), {name: np.array(done) for name, done in progress.items()}


def draw(path: Path) -> None:
    dates, progress = progress_by_date()
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(COLUMN, 4), sharex=True, height_ratios=[2.4, 1], layout="constrained"
    )
    for name, (colour, _, label) in TASKS.items():
        done = 100 * progress[name]
        first, last = np.flatnonzero(done == 0)[-1], np.flatnonzero(done == 100)[0]
        between = slice(first, last + 1)
        top.plot(dates[between], done[between], color=colour, lw=2.2, marker="o", label=label)
        side = {"ha": "right", "xytext": (-2, 6)} if name == "T1" else {"xytext": (-2, 6)}
        end = dates[last]
        top.annotate(f"{end:.2f} s", (end, 100), textcoords="offset points", color=colour, **side)
    flows = [
        np.diff(progress[name]) / np.diff(dates) * bytes_ for name, (_, bytes_, _) in TASKS.items()
    ]
    below = np.zeros(len(dates) - 1)
    for (colour, _, _), flow in zip(TASKS.values(), flows, strict=True):
        bottom.bar(dates[:-1], flow, np.diff(dates), below, align="edge", color=colour)
        below += flow
    top.set(ylabel="progress (%)", ylim=(0, 112))
    top.legend(loc="lower right")
    bottom.set(
        ylabel="on the link (B/s)",
        ylim=(0, 112),
        xlabel="time (s)",
        xlim=(0, 22.5),
        xticks=range(0, 21, 5),
    )
    bottom.axhline(100, color="0.3", lw=1, ls="--")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    mpl.rcParams.update(style())
    draw(HERE / "worked_example.png")
