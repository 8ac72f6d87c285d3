"""The queue of a batch over time: how long those in it have waited, and the use of the machine."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    new_figure,
    stopped_strip,
    time_unit,
)
from ptaskmodel.results.loading import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OVER_TIME, TUNING = "over_time.csv", "tuning.csv"
USES = (
    ("utilisation_1h", "1 h", GREY),
    ("utilisation_10h", "10 h", ORANGE),
    ("utilisation_24h", "24 h", BLUE),
)


def columns_of(path: Path, *needed: str) -> dict[str, list[float]]:
    """The columns of a table of numbers. Raises PTaskModelError if it is none or one lacks."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream, strict=True)
            names = reader.fieldnames or []
            missing = sorted(set(needed) - set(names))
            if missing:
                raise ValueError(f"no column {missing[0]!r}")
            found: dict[str, list[float]] = {name: [] for name in names}
            for row in reader:
                for name in names:
                    value = float(row[name])
                    if not math.isfinite(value):
                        raise ValueError(f"line {reader.line_num}: {row[name]!r} is not finite")
                    found[name].append(value)
    except FileNotFoundError:
        raise PTaskModelError(f"{path}: is missing; make the batch anew") from None
    except (OSError, ValueError, TypeError, csv.Error) as error:
        raise PTaskModelError(f"{path}: cannot be read ({error})") from None
    return found


def queue_over_time(results: Results) -> Figure:
    """Queue depth, utilisation over 1, 10 and 24 h, and what an adaptive policy made of them."""
    if results.what != "job":
        raise PTaskModelError(f"{results.directory}: not the results of a batch; it has no queue")
    names = [name for name, _, _ in USES]
    samples = columns_of(results.directory / OVER_TIME, "time", "queue_depth", *names)
    if not samples["time"]:
        raise PTaskModelError(
            f"{results.directory / OVER_TIME}: the run is too short for samples; nothing to draw"
        )
    tuning: dict[str, list[float]] = {}
    if (results.directory / TUNING).exists():
        tuning = columns_of(results.directory / TUNING, "time", "queue_depth", "utilisation")
    values = [name for name in tuning if name not in samples and name != "utilisation"]
    unit, unit_name = time_unit(samples["time"][-1])
    dates = [date / unit for date in samples["time"]]
    figure = new_figure(10.0, 5.0 + (2.0 if values else 0.0))
    panels: Any = figure.subplots(2 + bool(values), 1, sharex=True)
    panels[0].fill_between(dates, [depth / 3600 for depth in samples["queue_depth"]], color=RED,
                           linewidth=0)  # fmt: skip
    panels[0].set_ylim(bottom=0)
    panels[0].set_ylabel("queue depth (h)")
    panels[0].set_title("Time that the jobs in the queue have waited so far, summed", fontsize=10,
                        loc="left")  # fmt: skip
    for name, label, colour in USES:
        panels[1].plot(dates, [100 * used for used in samples[name]], color=colour, label=label,
                       linewidth=0.7 if name == "utilisation_1h" else 1.5)  # fmt: skip
    panels[1].set_ylim(0, 103)
    panels[1].set_ylabel("utilisation (%)")
    panels[1].legend(title="of the last", loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    for name, colour in zip(values, (BLUE, GREEN, ORANGE), strict=False):
        checks = [date / unit for date in tuning["time"]]
        panels[2].step(checks, tuning[name], where="post", color=colour, label=name)
    if values:
        panels[2].set_ylim(bottom=0)
        panels[2].set_ylabel("values")
        panels[2].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    for axes in panels:
        axes.grid(alpha=0.3)
    panels[-1].set_xlim(0.0, dates[-1])
    for axes in panels:
        stopped_strip(axes, results, unit)
    panels[-1].set_xlabel(f"time ({unit_name})")
    return figure
