"""Several batches side by side: one table of metrics, one picture."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import whole_file
from ptaskmodel.results.drawing import check_picture, colour_of, new_figure, save, time_unit
from ptaskmodel.results.loading import Results, results_of
from ptaskmodel.results.queue_over_time import OVER_TIME, columns_of
from ptaskmodel.results.slurm.curves import last_date_s, queue_depth
from ptaskmodel.results.slurm.reading import is_slurm, read_jobs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Values from here on are shown to the unit.
LARGE = 1e4


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of each run: where it is in the summary, its factor, and what is better.

    better: min or max; None: neither is.
    """

    name: str
    path: tuple[str, ...]
    factor: float = 1.0
    better: Callable[[list[float]], float] | None = min


METRICS = (
    Metric("mean waiting (min)", ("waiting_s", "mean"), 1 / 60),
    Metric("95 % wait at most (min)", ("waiting_s", "p95"), 1 / 60),
    Metric("largest waiting (min)", ("waiting_s", "max"), 1 / 60),
    Metric("mean bounded slowdown", ("bounded_slowdown", "mean")),
    Metric("mean contention slowdown", ("contention_slowdown", "mean")),
    Metric("unfair jobs, by runtimes", ("unfair_jobs", "runtimes")),
    Metric("unfair jobs, by estimates", ("unfair_jobs", "estimates")),
    Metric("loss of capacity (%)", ("loss_of_capacity",), 100.0),
    Metric("utilisation (%)", ("utilisation",), 100.0, max),
    Metric("useful utilisation (%)", ("useful_utilisation",), 100.0, max),
    Metric("mean queue depth (h)", ("queue_depth_s", "mean"), 1 / 3600),
    Metric("largest queue depth (h)", ("queue_depth_s", "max"), 1 / 3600),
    Metric("energy (kWh)", ("energy", "total_J"), 1 / 3.6e6),
    Metric("peak power (kW)", ("energy", "peak_W"), 1e-3),
    Metric("killed at walltime", ("jobs", "killed_at_walltime"), 1.0, None),
    Metric("makespan (h)", ("makespan_s",), 1 / 3600),
)


@dataclass(frozen=True, slots=True, eq=False)
class Standings:
    """Runs by name, and of each metric that some run has a value for each, with the best."""

    runs: dict[str, Results]
    rows: list[tuple[Metric, list[float | None]]]

    def best(self, metric: Metric, values: Sequence[float | None]) -> float | None:
        """The best of the values; None where none is, or all are equal."""
        known = [value for value in values if value is not None]
        if metric.better is None or len(set(known)) < 2:
            return None
        return metric.better(known)

    def text(self, metric: Metric, values: Sequence[float | None], k: int) -> str:
        """The value of a run for a reader, with * if it is the best."""
        value = values[k]
        if value is None:
            return "-"
        text = f"{value:.4g}" if abs(value) < LARGE else f"{value:,.0f}"
        return text + "*" * (value == self.best(metric, values))

    def write(self, path: str | Path) -> None:
        """Write a CSV file: a line for each metric, a column for each run."""
        with whole_file(path) as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(("metric", *self.runs))
            for metric, values in self.rows:
                writer.writerow((metric.name, *("" if v is None else v for v in values)))


def standings(
    runs: Sequence[Results | str | Path],
    *,
    table: str | Path | None = None,
    picture: str | Path | None = None,
) -> Standings:
    """Batches side by side, or those in directories, each by the name of its directory.

    table: also write a CSV file; picture: also draw metrics and queues (.png, .svg or .pdf). Raises
    PTaskModelError if results cannot be read or are not of batches, or a file cannot be written.
    """
    if picture is not None:
        check_picture(picture)
    found: dict[str, Results] = {}
    for each in runs:
        results = results_of(each)
        if results.what != "job":
            raise PTaskModelError(f"{results.directory}: not the results of a batch")
        name = results.directory.name
        found[name if name not in found else str(results.directory)] = results
    rows = []
    for metric in METRICS:
        values = [_value(results.summary, metric) for results in found.values()]
        if any(value is not None for value in values):
            rows.append((metric, values))
    made = Standings(found, rows)
    if table is not None:
        made.write(table)
    if picture is not None:
        save(standings_figure(made), picture)
    return made


def _value(summary: dict[str, Any], metric: Metric) -> float | None:
    value: Any = summary
    for key in metric.path:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value * metric.factor


def _queue(results: Results) -> dict[str, list[float]]:
    """Dates in s, and how long the jobs in the queue have waited then."""
    if not is_slurm(results.summary):
        return columns_of(results.directory / OVER_TIME, "time", "queue_depth")
    jobs = read_jobs(results.directory)
    dates, depths = queue_depth(jobs, last_date_s(jobs))
    return {"time": dates.tolist(), "queue_depth": depths.tolist()}


def standings_figure(found: Standings) -> Figure:
    """Each metric relative to its largest value, and the queue of each run over time."""
    figure = new_figure(11.0, 8.0)
    above, below = figure.subplots(2, 1)
    names = list(found.runs)
    shown = [(metric, values) for metric, values in found.rows if max(v or 0 for v in values) > 0]
    width = 0.8 / len(names)
    for k, name in enumerate(names):
        heights = [100 * (values[k] or 0) / max(v or 0 for v in values) for _, values in shown]
        places = [place + (k - (len(names) - 1) / 2) * width for place in range(len(shown))]
        bars = above.bar(places, heights, width, color=colour_of(k), label=name)
        texts = [found.text(metric, values, k) for metric, values in shown]
        above.bar_label(bars, texts, fontsize=7, rotation=90, padding=2)
    above.set_ylim(0, 130)
    above.set_yticks(range(0, 101, 20))
    above.set_xticks(range(len(shown)))
    above.set_xticklabels([metric.name for metric, _ in shown], rotation=30, ha="right", fontsize=8)
    above.set_ylabel("% of the largest")
    above.set_title("Metrics, each in per cent of its largest value; * the best of each",
                    fontsize=10, loc="left")  # fmt: skip
    above.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    queues = {name: _queue(results) for name, results in found.runs.items()}
    last = max((date for queue in queues.values() for date in queue["time"][-1:]), default=1.0)
    unit, unit_name = time_unit(last)
    for k, queue in enumerate(queues.values()):
        dates = [date / unit for date in queue["time"]]
        depths = [depth / 3600 for depth in queue["queue_depth"]]
        below.plot(dates, depths, color=colour_of(k), linewidth=1.2)
    below.set_ylim(bottom=0)
    below.set_xlim(0, last / unit)
    below.set_ylabel("queue depth (h)")
    below.set_xlabel(f"time ({unit_name})")
    below.set_title("Time that the jobs in the queue have waited so far, summed", fontsize=10,
                    loc="left")  # fmt: skip
    for axes in (above, below):
        axes.grid(alpha=0.3, axis="y")
    return figure
