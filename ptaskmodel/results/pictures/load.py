"""Pictures of load over time: hosts in use, the queue and its waiting times, power and energy."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.platform.power import host_power
from ptaskmodel.results.loading import LOAD, Results, load_over_time, power_curve
from ptaskmodel.results.pictures.charts import Track, areas, steps, time_panel
from ptaskmodel.results.pictures.drawing import finished, picture, unit_axis
from ptaskmodel.results.pictures.topology import platform_of
from ptaskmodel.style.colours import CATEGORIES, LIGHT
from ptaskmodel.style.text import count, date, duration, number, round_time

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FloatArray = NDArray[np.float64]
CELLS = 600
# Of more changes than that, means over as many parts of the time are drawn.
MOST_STEPS = 2000
OVER_TIME, TUNING = "over_time.csv", "tuning.csv"
USES = (
    ("utilisation_1h", "1 h", LIGHT.nothing),
    ("utilisation_10h", "10 h", LIGHT.soft),
    ("utilisation_24h", "24 h", LIGHT.use),
)


class Load(NamedTuple):
    """The load in cells of time of equal length, arrays (cells, 3): of the jobs that wait, the
    hosts that they ask for and the hosts in use, the mean and the most."""

    mean: FloatArray
    most: FloatArray


def load_in_cells(
    rows: Sequence[tuple[float, float, float, float]], end_s: float, cells: int
) -> Load:
    """Gather what `loading.load_over_time` gives, values that hold from a date on, up to end_s."""
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    edges = np.linspace(0.0, end_s, cells + 1)
    dates, values = table[:, 0], table[:, 1:]
    # The values at all dates at which anything changes or a cell begins.
    every = np.unique(np.concatenate([dates[(dates > 0.0) & (dates < end_s)], edges]))
    at = np.searchsorted(dates, every, side="right") - 1
    held = np.where((at >= 0)[:, None], values[np.maximum(at, 0)], 0.0)[:-1]
    first = np.searchsorted(every, edges[:-1])
    lasted = np.diff(every)
    mean = np.add.reduceat(held * lasted[:, None], first) / (end_s / cells)
    return Load(mean, np.maximum.reduceat(held, first))


def _end_s(results: Results, rows: Sequence[tuple[float, float, float, float]]) -> float:
    """Up to where the load is known, s: the last change, or the date at which it was stopped."""
    return rows[-1][0] if results.stopped is None else results.stopped.at_s


@picture
def machine_load(results: Results) -> Figure:
    """Hosts in use, hosts that waiting jobs ask for, and how many jobs wait, over time."""
    rows = load_over_time(results)
    if not rows:
        raise PTaskModelError(f"{results.directory / LOAD}: no job was there; nothing to draw")
    end_s = _end_s(results, rows) or 1.0
    cell_s = round_time(end_s / CELLS)
    cells = math.ceil(end_s / cell_s)
    load = load_in_cells(rows, cells * cell_s, cells)
    dates = np.minimum(np.arange(cells + 1) * cell_s, end_s)
    # Waiting jobs, hosts that they ask for, hosts in use; of each the last value once more.
    mean, most = (np.concatenate([each, each[-1:]]).T for each in load)
    total = results.summary.get("hosts")
    whole = float(total) if isinstance(total, int | float) else float(most[2].max())

    def machine(axes: Any) -> None:
        idle = np.maximum(whole - mean[2], 0.0)
        areas(axes, dates, [("in use", mean[2], LIGHT.use), ("idle", idle, LIGHT.nothing)])
        unit_axis(axes, "hosts", "number", whole)

    def asked(axes: Any) -> None:
        high = areas(axes, dates, [("waited for", mean[1], LIGHT.wait)])
        unit_axis(axes, "hosts", "number", high)

    def queue(axes: Any) -> None:
        unit_axis(axes, "jobs", "number", steps(axes, dates, [("jobs", most[0], LIGHT.wait_text)]))
        axes.set_title("jobs that wait, the most in each cell")

    waits = bool(most[0].any())
    figure = time_panel(
        [Track(machine, 1.8), *[Track(asked), Track(queue)] * waits], end_s, results
    )
    used = float(mean[2, :-1].mean()) / whole if whole else 0.0
    title = f"{number(used, 'share')} of {count(int(whole), 'host')} in use on average"
    sentence = title
    if waits:
        at = float(dates[int(most[0].argmax())])
        sentence += f"; at most {count(int(most[0].max()), 'job')} wait ({date(at, end_s)})"
    else:
        sentence += "; no job waits"
    note = f"Hosts in use, mean of cells of {duration(cell_s)}"
    return finished(figure, sentence, note, sentence + ".")


@picture
def power_over_time(results: Results) -> Figure:
    """Power of hosts and links over time, stacked, and the energy of it all."""
    rows = power_curve(results)
    if len(rows) < 2:
        raise PTaskModelError(f"{results.directory}: no time passed; nothing to draw")
    table = np.array(rows)
    dates, watts = table[:, 0], table[:, 1:]
    lasted = np.diff(dates)
    joules = np.concatenate([np.zeros((1, 2)), np.cumsum(watts[:-1] * lasted[:, None], axis=0)])
    peak = float(watts.sum(axis=1).max())
    total = joules[-1].sum()
    note = "Power"
    if len(rows) > MOST_STEPS:
        cell_s = round_time((dates[-1] - dates[0]) / MOST_STEPS)
        whole = np.append(np.arange(dates[0], dates[-1], cell_s), dates[-1])
        joules = np.column_stack([np.interp(whole, dates, joules[:, k]) for k in range(2)])
        watts = np.diff(joules, axis=0) / np.diff(whole)[:, None]
        watts = np.concatenate([watts, watts[-1:]])
        dates = whole
        note = f"Mean power in cells of {duration(cell_s)}"
    floor, energy = _idle_W(results), results.summary.get("energy", {})
    idle = np.minimum(watts[:, 0], floor)
    layers = [
        ("idle", idle, LIGHT.nothing),
        ("working" if floor else "hosts", watts[:, 0] - idle, LIGHT.use),
        ("links", watts[:, 1], LIGHT.transfer),
    ]
    end_s = float(dates[-1])
    track = Track(lambda axes: unit_axis(axes, "power", "power", areas(axes, dates, layers)), 2.6)
    figure = time_panel([track], end_s, results, begin_s=float(dates[0]))
    title = f"{number(total, 'energy')} in all, at most {number(peak, 'power')}"
    if energy.get("links_J"):
        title += f"; links {number(energy['links_J'], 'energy')}"
    return finished(figure, title, f"{note} of {results.directory.name}", title + ".")


def _idle_W(results: Results) -> float:
    """What all hosts draw while they are on and idle, W; 0 if the platform cannot be read again."""
    try:
        platform = platform_of(results)
        power = [host_power(platform, host) for host in platform.hosts]
    except PTaskModelError:
        return 0.0
    return math.fsum(each.states[0].idle_W for each in power if each is not None)


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


@picture
def queue_over_time(results: Results) -> Figure:
    """Queue depth, utilisation over 1, 10 and 24 h, and what an adaptive policy made of them."""
    if results.what != "job":
        raise PTaskModelError(f"{results.directory}: not the results of a batch; it has no queue")
    names = [name for name, _, _ in USES]
    samples = {
        name: np.array(values)
        for name, values in columns_of(
            results.directory / OVER_TIME, "time", "queue_depth", *names
        ).items()
    }
    dates = samples["time"]
    if not len(dates):
        raise PTaskModelError(
            f"{results.directory / OVER_TIME}: the run is too short for samples; nothing to draw"
        )
    tuning: dict[str, list[float]] = {}
    if (results.directory / TUNING).exists():
        tuning = columns_of(results.directory / TUNING, "time", "queue_depth", "utilisation")
    values = [name for name in tuning if name not in samples and name != "utilisation"]
    depth = samples["queue_depth"]

    def queue(axes: Any) -> None:
        high = areas(axes, dates, [("queue", depth, LIGHT.wait)])
        unit_axis(axes, "queue depth", "time", high)

    def uses(axes: Any) -> None:
        steps(axes, dates, [(f"last {of}", 100 * samples[name], c) for name, of, c in USES])
        axes.set_ylim(0, 101)
        axes.set_ylabel("utilisation (%)")

    def tuned(axes: Any) -> None:
        checks = np.array(tuning["time"])
        lines = zip(values, CATEGORIES, strict=False)
        high = steps(axes, checks, [(name, np.array(tuning[name]), c) for name, c in lines])
        unit_axis(axes, "values", "number", high)

    tracks = [Track(queue), Track(uses, 1.5), *[Track(tuned)] * bool(values)]
    end_s = float(dates[-1])
    figure = time_panel(tracks, end_s, results)
    worst = int(depth.argmax())
    title = f"At most, jobs in the queue have waited {duration(float(depth[worst]))} together"
    sentence = f"{title}, at {date(float(dates[worst]), end_s)}; the last utilisation over 24 h is "
    sentence += number(float(samples["utilisation_24h"][-1]), "share")
    note = "Queue depth: the time that the jobs in the queue have waited so far, summed"
    return finished(figure, title, note, sentence + ".")
