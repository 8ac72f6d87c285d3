"""Pictures over time of `tracks` (load, queue, reasons to wait, backfill, power, links, hosts), and
of queues of links."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.recording import HOST, LINK
from ptaskmodel.results.directory import finite, read_table, readable, rows
from ptaskmodel.results.directory import number as as_number
from ptaskmodel.results.loading import LOAD, Results, power_curve
from ptaskmodel.results.pictures.charts import Pane, areas, heat_rows, time_panel
from ptaskmodel.results.pictures.drawing import NEEDS_ATTRIBUTION, natural, unit_axis
from ptaskmodel.results.pictures.topology import places_of
from ptaskmodel.results.pictures.tracks import (
    Track,
    cells_of,
    link_tracks,
    load_tracks,
    power_tracks,
    reason_tracks,
    said_of,
    start_tracks,
    track_of,
    use_table,
)
from ptaskmodel.results.tables import slurm_reading
from ptaskmodel.results.tables.places import Place, link_name
from ptaskmodel.results.tables.tasks import PAUSES, QUEUES, RANGE_COLUMNS, TASKS
from ptaskmodel.style.figures import LIGHT, finished, picture, role_colour
from ptaskmodel.style.text import count, date, duration, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_ROWS, MOST_USED = 60, 16  # resources in a picture, and below levels
MOST_QUEUES = 40
OVER_TIME, TUNING = "over_time.csv", "tuning.csv"
USES = (
    ("utilisation_1h", "last 1 h"),
    ("utilisation_10h", "last 10 h"),
    ("utilisation_24h", "last 24 h"),
)


class Sure(NamedTuple):
    """The range of a task: between its ends 80 % of its durations lie, s."""

    task_id: str
    low_s: float
    high_s: float

    @property
    def width(self) -> float:
        """The upper end over the lower one."""
        return self.high_s / self.low_s if self.low_s > 0.0 else 1.0


def _draw(track: Track, axes: Any) -> None:
    """Draw a track, which is not one of heat, on ``axes``."""
    edges = np.arange(len(track.mean) + 1, dtype=np.float64) * track.width_s
    if track.most is not None:
        most, colour = np.append(track.most, track.most[-1]), role_colour(track.layers[0][1])
        axes.fill_between(edges, 0.0, most, step="post", color=colour, alpha=0.35, lw=0)
    areas(axes, edges, [(name, np.append(mean, mean[-1]), role_colour(role))
                        for name, role, mean in track.layers])  # fmt: skip
    unit_axis(axes, "", track.kind, track.top)
    axes.set_title(track.name)


def figure_of(results: Results, tracks: Sequence[Track], title: str, note: str = "") -> Figure:
    """Return a picture of ``tracks`` below each other on one time, the first with a ``note``."""
    panes = []
    for _, its in itertools.groupby(tracks, key=lambda track: (track.heat, bool(track.members))):
        group = list(its)
        if not group[0].heat:
            panes += [
                Pane(partial(_draw, track), 1.2 if k else 1.8) for k, track in enumerate(group)
            ]
            continue
        rows, names = [], []
        for track in group:
            if track.most is not None:
                rows.append(track.most)
                names.append(f"{track.name}  max")
            rows.append(track.mean)
            names.append(track.name if track.most is None else "mean")
        draw = partial(heat_rows, names=names, table=100.0 * np.array(rows),
                       end_s=len(rows[0]) * group[0].width_s,
                       label="use of its capacity; grey: none")  # fmt: skip
        panes.append(Pane(draw, 0.3 + 0.17 * len(rows)))
    figure = time_panel(panes, results.end_s or 1.0, results)
    first = figure.axes[0].get_title(loc="left")
    return finished(figure, title.rstrip("."), "; ".join(filter(None, (first, note))), title)


@picture
def load_figure(results: Results) -> Figure:
    """Hosts or CPUs in use, those that waiting jobs ask for, and how many jobs wait, over time."""
    if results.what != "job":
        raise PTaskModelError(f"{results.directory}: not the results of a batch; it has no queue")
    if not (tracks := load_tracks(results)):
        raise PTaskModelError(f"{results.directory / LOAD}: no job was there; nothing to draw")
    said = said_of(tracks, results.end_s, results.summary.get("begin_unix_s"))
    if len(tracks) == 1:
        said.append("No job waits.")
    note = f"dark: mean of cells of {duration(tracks[0].width_s)}; pale: the most"
    return figure_of(results, tracks, " ".join(said), note)


@picture
def reasons_figure(results: Results) -> Figure:
    """How many jobs wait for which reason, over time."""
    check_slurm(results)
    curves = slurm_reading.reason_curves(results.directory, results.end_s)
    if not curves:
        raise PTaskModelError(f"{results.directory}: no job waited; nothing to draw")
    spent = {reason: curve.integral for reason, curve in curves.items()}
    most, whole = next(iter(spent)), sum(spent.values()) or 1.0
    rows = list(zip(*curves[most], strict=True))
    tracks = reason_tracks(results) or [track_of(most, {most: "reason-0"}, rows, results.end_s)]
    told = ", ".join(f"{name} {number(its / 3600)} job h" for name, its in spent.items())
    title = f"{most} is the reason for {number(spent[most] / whole, 'share')} of all waiting"
    return figure_of(results, tracks, f"{title}: {told}.", "jobs that wait")


def check_slurm(results: Results) -> None:
    """Raises PTaskModelError for results of anything else."""
    if not slurm_reading.is_slurm(results.summary):
        raise PTaskModelError(f"{results.directory}: this picture needs a run of ptaskmodel slurm")


@picture
def backfill_figure(results: Results) -> Figure:
    """Jobs in the queue and jobs tested in each backfill cycle, how long cycles took, starts."""
    check_slurm(results)
    cycles = slurm_reading.read_cycles(results.directory)
    if not cycles:
        raise PTaskModelError(f"{results.directory}: backfill made no cycle; nothing to draw")
    end_s = max(results.end_s, cycles[-1][0])
    known = (("jobs in the queue at a cycle", "wait", 1, "number"),
             ("jobs that a cycle tests", "use", 2, "number"),
             ("length of a cycle", "use", 3, "time"))  # fmt: skip
    tracks = [
        track_of(name, {"": role}, [(cycle[0], float(cycle[k])) for cycle in cycles], end_s,
                 kind=kind)
        for name, role, k, kind in known if any(cycle[k] for cycle in cycles)
    ]  # fmt: skip
    queue, tested = (number(float(np.mean([cycle[k] for cycle in cycles]))) for k in (1, 2))
    title = f"Backfill tests {tested} jobs a cycle, of {queue} in the queue, on average"
    late = sum(cycle[4] == "time" for cycle in cycles)
    title += f"; {count(late)} of {count(len(cycles), 'cycle')} reach bf_max_time."
    return figure_of(results, [*tracks, *start_tracks(results)], title)


@picture
def power_figure(results: Results) -> Figure:
    """Power of hosts and links over time, stacked, and the energy of it all."""
    rows = power_curve(results)
    if len(rows) < 2 or not (tracks := power_tracks(results)):
        raise PTaskModelError(f"{results.directory}: no time passed; nothing to draw")
    energy = results.summary.get("energy", {})
    peak = max(hosts + links for _, hosts, links in rows)
    total = sum((a[1] + a[2]) * (b[0] - a[0]) for a, b in itertools.pairwise(rows))
    title = f"{number(total, 'energy')} in all, at most {number(peak, 'power')}"
    if energy.get("links_J"):
        title += f"; links {number(energy['links_J'], 'energy')}"
    return figure_of(
        results, tracks, f"{title}.", f"mean of cells of {duration(tracks[0].width_s)}"
    )


@picture
def links_figure(results: Results) -> Figure:
    """The use of links over time: of each level and direction the most and the mean, then the most
    used ones; without levels those alone.

    results: of a run with attribution.
    """
    places = places_of(results)
    single, said, note = _one_by_one(results, LINK, MOST_USED if places else MAX_ROWS, places)
    levels = link_tracks(results, places) if places else []
    if not levels:
        return figure_of(results, single, said, note)
    worst = sorted(levels, key=lambda track: (-track.full, -float(track.mean.mean())))
    told = [f"{track.name.rpartition(' (')[0]} are {number(float(track.mean.mean()), 'share')} used"
            f" on average, one is full {number(track.full, 'share')} of the time"
            for track in worst]  # fmt: skip
    figure = figure_of(results, [*levels, *single], f"Links {'; '.join(told)}.",
                       f"max: the fullest link of a level; below: {note}")  # fmt: skip
    figure.suptitle(f"Links {told[0]}", x=0.005, ha="left")
    return figure


@picture
def hosts_figure(results: Results) -> Figure:
    """What part of each host is used over time; of many, the most used.

    results: of a run with attribution.
    """
    return figure_of(results, *_one_by_one(results, HOST, MAX_ROWS, {}))


def _one_by_one(
    results: Results, kind: str, most: int, places: Mapping[str, Place]
) -> tuple[list[Track], str, str]:
    """A row for each of the most used resources, what they show in a sentence, and which these are.

    Raises PTaskModelError if none was used.
    """
    if not results.utilisation:
        raise PTaskModelError(f"{results.directory}: {NEEDS_ATTRIBUTION}")
    use, width_s = use_table(results, kind)
    if not use:
        raise PTaskModelError(f"{results.directory}: no {kind} was used; nothing to draw")
    shown = sorted(use, key=lambda name: (-use[name].sum(), natural(name)))[:most]
    tracks = [Track(link_name(name, places), [("", "use", use[name])], width_s, heat=True)
              for name in shown]  # fmt: skip
    mean, highest = (number(float(part), "share") for part in (
        np.mean([its.mean() for its in use.values()]), use[shown[0]].mean()))  # fmt: skip
    said = f"{count(len(use), kind)} in use: {mean} of their capacity on average, one {highest}."
    of = f"the {len(shown)} most used of {count(len(use), kind)}"
    return tracks, said, f"{of}, a cell is {duration(width_s)}"


@picture
def queues_figure(results: Results) -> Figure:
    """The queues of links over time, the longest ones, and when a full switch paused which link.

    results: of a run with packets in queues.
    """
    spells, pauses = packet_spells(results, QUEUES, largest_queue_B=finite), []
    if (results.directory / PAUSES).exists():
        pauses = packet_spells(results, PAUSES)
    if not spells:
        raise PTaskModelError(f"{results.directory / QUEUES}: no link had a queue; nothing to draw")
    places = places_of(results)
    end_s = max(end_s for _, _, end_s, _ in spells)
    queues, cell_s = cells_of(spells, end_s)
    largest = {name: float(its.max()) for name, its in queues.items()}
    paused = dict.fromkeys(name for name, *_ in pauses)
    order = sorted(largest, key=lambda name: (name not in paused, -largest[name], natural(name)))
    shown = sorted(order[:MOST_QUEUES], key=natural)
    row_of = {name: k for k, name in enumerate(shown)}
    most = max(spells, key=lambda spell: spell[3])
    table = 100.0 * np.array([queues[name] for name in shown]) / (most[3] or 1.0)

    def draw(axes: Any) -> None:
        names = [link_name(name, places) for name in shown]
        heat_rows(axes, names, table, end_s, f"longest queue in a cell, of {size}; grey: none")
        for name, begin_s, until_s in pauses:
            if name in row_of:
                at = row_of[name]
                axes.hlines(at, begin_s, until_s, color=LIGHT.lost, linewidth=3)

    size = number(most[3], "bytes")
    figure = time_panel([Pane(draw, 0.4 + 0.14 * len(shown))], end_s, results)
    title = f"The longest queue is {size}, of {link_name(most[0], places)} after "
    title += duration(most[1])
    if pauses:
        name, begin_s, until_s = max(pauses, key=lambda pause: pause[2] - pause[1])
        longest = duration(until_s - begin_s)
        title += f"; {count(len(pauses), 'pause')}, of {link_name(name, places)} the "
        title += f"longest, {longest}"
    what = count(len(shown), "link")
    if len(shown) < len(largest):
        what = f"{len(shown)} of {count(len(largest), 'link')} with queues"
    note = f"{what}, a cell is {duration(cell_s)}; red: a full switch ahead pauses the link"
    return finished(figure, title, note, f"{title}: {what}.")


def ranges_of(results: Results) -> list[Sure]:
    """The ranges of the tasks of `results`, the latest end first; none without draws."""
    if not results.summary.get("draws"):
        return []
    low, high = RANGE_COLUMNS
    columns: dict[str, Any] = {"task_id": str, low: as_number, high: as_number}
    found = read_table(results.directory / TASKS, "simulate again", **columns)
    known = [Sure(*row) for row in found if None not in row and row[2] > 0.0]
    return sorted(known, key=lambda one: -one.high_s)


def packet_spells(
    results: Results, file: str, **more: Callable[[str], Any]
) -> list[tuple[Any, ...]]:
    """(link, begin, end, values of more columns) of each line of a table of packets.

    results: of a run with packets in queues. file: QUEUES or PAUSES. more: what reads the texts of
    other columns. What goes on at the end of the run ends there.
    """
    place = results.directory / file
    if not place.exists():
        raise PTaskModelError(f"{place}: is missing; simulate with --network-level packets")

    def end_s(text: str) -> float:
        return finite(text) if text else results.end_s

    return read_table(place, "simulate again", link=str, begin_s=finite, end_s=end_s, **more)


@picture
def queue_figure(results: Results) -> Figure:
    """Queue depth, utilisation over 1, 10 and 24 h, and what an adaptive policy made of them."""
    if results.what != "job":
        raise PTaskModelError(f"{results.directory}: not the results of a batch; it has no queue")
    path, tuning = results.directory / OVER_TIME, results.directory / TUNING
    samples = _columns(path, "time", "queue_depth", *(name for name, _ in USES))
    if not (dates := samples.get("time")):
        raise PTaskModelError(f"{path}: the run is too short for samples; nothing to draw")
    end_s = results.end_s or 1.0

    def one(name: str, role: str, values: Sequence[float], **given: Any) -> Track:
        rows = list(zip(given.pop("at", dates), values, strict=True))
        return track_of(name, {"": role}, rows, end_s, **given)

    depth = samples["queue_depth"]
    name = "queue depth: the time that the jobs in the queue have waited so far, summed"
    tracks = [one(name, "wait", depth, kind="time")]
    tracks += [one(f"utilisation, {of}", "use", samples[column], limit=1.0, kind="share")
               for column, of in USES]  # fmt: skip
    if tuning.exists():
        tuned = _columns(tuning, "time", "queue_depth", "utilisation")
        tracks += [one(name, "ink", values, at=tuned["time"]) for name, values in tuned.items()
                   if name not in samples and name != "utilisation"]  # fmt: skip
    worst = int(np.argmax(depth))
    last = number(samples["utilisation_24h"][-1], "share")
    title = f"At most, jobs in the queue have waited {duration(depth[worst])} together"
    title += (
        f", at {date(samples['time'][worst], end_s)}; the last utilisation over 24 h is {last}."
    )
    return figure_of(results, tracks, title)


def _columns(path: Path, *needed: str) -> dict[str, list[float]]:
    """The columns of a table of numbers. Raises PTaskModelError if it is none or one lacks."""
    with readable(path, "make the batch anew"):
        lines = list(rows(path, *needed))
        return {name: [finite(line[name]) for line in lines] for name in (lines or [{}])[0]}
