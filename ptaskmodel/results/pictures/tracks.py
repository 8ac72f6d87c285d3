"""Tracks over time: a machine, its queue, power, and links by level of the topology.

Each track is a table of amounts in cells of equal length. Pictures (`load`) and pages
(`Track.data`) draw the same tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.platform.power import host_power
from ptaskmodel.recording import LINK
from ptaskmodel.results.directory import POWER, finite, read_optional
from ptaskmodel.results.loading import LOAD, Results, load_over_time, power_curve
from ptaskmodel.results.pictures.drawing import ran
from ptaskmodel.results.pictures.topology import platform_of
from ptaskmodel.results.tables import slurm_reading
from ptaskmodel.results.tables.places import DOWN, UP, Place, level_of
from ptaskmodel.style.figures import REASONS
from ptaskmodel.style.text import count, date, number, round_time

FloatArray = NDArray[np.float64]
Row = tuple[float, ...]
CELLS = 600
STARTS = 120  # cells of jobs started
# A link is full from this part of its bandwidth on.
FULL = 0.995
WAITING = "jobs waiting"
MACHINE_STATES = "machine_states.csv"
MAX_MEMBERS = 200  # links of one level that are listed by a click


class Track(NamedTuple):
    """Amounts over time, from 0 on, in cells of ``width_s``.

    layers: (name, role, mean in each cell), on each other. most: the most in each cell. limit: what
    there is; None: not known. kind: of `style.text.number`. heat: a row of colours of parts of a
    capacity, of the most and the mean of ``members``, links by name, the most used first.
    """

    name: str
    layers: Sequence[tuple[str, str, FloatArray]]
    width_s: float
    most: FloatArray | None = None
    limit: float | None = None
    kind: str = "number"
    heat: bool = False
    members: Sequence[str] = ()

    @property
    def mean(self) -> FloatArray:
        """The mean of all layers in each cell."""
        return np.sum([mean for _, _, mean in self.layers], axis=0)

    @property
    def top(self) -> float:
        """The end of its axis."""
        highest = float((self.mean if self.most is None else self.most).max(initial=0.0))
        return highest if self.limit is None else self.limit

    @property
    def full(self) -> float:
        """For which part of the time the most used of the members is full."""
        return 0.0 if self.most is None else float((self.most >= FULL).mean())

    def data(self) -> dict[str, Any]:
        """The track as JSON; see time.js."""
        found = {"name": self.name, "width": self.width_s, "kind": "heat" if self.heat else "area"}
        if self.heat:
            most = self.mean if self.most is None else self.most
            found |= {"most": _rounded(1000 * most, 0), "mean": _rounded(1000 * self.mean, 1)}
            return found | {"full": self.full, "members": list(self.members[:MAX_MEMBERS])}
        found |= {"role": self.layers[0][1], "mean": _rounded(self.mean), "of": self.kind,
                  "top": round(self.top, 2) or 1}  # fmt: skip
        if self.most is not None:
            found["most"] = _rounded(self.most)
        if len(self.layers) > 1:
            found["layers"] = [{"name": name, "role": role, "mean": _rounded(mean)}
                               for name, role, mean in self.layers]  # fmt: skip
        return found | ({} if self.limit is None else {"limit": self.limit})


def _rounded(values: FloatArray, decimals: int = 2) -> list[float]:
    return [round(value, decimals or None) for value in values.tolist()]


def load_in_cells(rows: Sequence[Row], end_s: float, cells: int) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the most of amounts in cells up to ``end_s``, arrays (cells, amounts).

    rows: (date, amounts...): from which date on they hold.
    """
    table = np.array(rows, dtype=np.float64)
    edges = np.linspace(0.0, end_s, cells + 1)
    dates, values = table[:, 0], table[:, 1:]
    # The values at all dates at which anything changes or a cell begins.
    every = np.unique(np.concatenate([dates[(dates > 0.0) & (dates < end_s)], edges]))
    at = np.searchsorted(dates, every, side="right") - 1
    held = np.where((at >= 0)[:, None], values[np.maximum(at, 0)], 0.0)[:-1]
    first = np.searchsorted(every, edges[:-1])
    lasted = np.diff(every)
    mean = np.add.reduceat(held * lasted[:, None], first) / (end_s / cells)
    return mean, np.maximum.reduceat(held, first)


def in_cells(
    row: NDArray[np.int64],
    begin: FloatArray,
    end: FloatArray,
    weight: FloatArray | float,
    shape: tuple[int, int],
) -> FloatArray:
    """Return how much of spans lies in each cell of a table of this ``shape``, by its length.

    row, begin, end: of each span, its dates in cells. weight: what each counts.
    """
    cells = shape[1]
    begin, end = np.clip(begin, 0.0, cells), np.clip(end, 0.0, cells)
    first, last = (np.minimum(each.astype(int), cells - 1) for each in (begin, end))
    # Cells between the first and the last as steps, those two directly.
    one = first == last
    between = np.where(one, 0.0, weight)
    steps = np.zeros((shape[0], cells + 1))
    np.add.at(steps, (row, first + 1), between)
    np.add.at(steps, (row, last), -between)
    found: FloatArray = np.cumsum(steps, axis=1)[:, :cells]
    np.add.at(found, (row, first), weight * (np.where(one, end, first + 1) - begin))
    np.add.at(found, (row, last), between * (end - last))
    return found


def track_of(
    name: str,
    layers: Mapping[str, str],
    rows: Sequence[Row],
    end_s: float,
    limit: float | None = None,
    kind: str = "number",
) -> Track:
    """Return the track of amounts that hold from a date on.

    layers: the role of each amount by its name. rows: (date in s, amounts...), one or more. end_s:
    of the run. limit, kind: of the track.
    """
    width_s = round_time(end_s / CELLS)
    cells = math.ceil(end_s / width_s)
    mean, most = load_in_cells(rows, cells * width_s, cells)
    its = [(each, role, mean[:, k]) for k, (each, role) in enumerate(layers.items())]
    return Track(name, its, width_s, most[:, 0] if len(its) == 1 else None, limit, kind)


def load_tracks(results: Results) -> list[Track]:
    """Of the `results` of a batch: hosts or CPUs in use and waited for, jobs waiting, over time."""
    end_s = results.end_s
    if results.what != "job" or end_s <= 0.0:
        return []
    slurm = slurm_reading.is_slurm(results.summary)
    what, total = "hosts", results.summary.get("cpus" if slurm else "hosts")
    if slurm:
        what, jobs = "CPUs", results.jobs
        used, asked, queue = (
            list(zip(*curve, strict=True))
            for curve in (
                slurm_reading.used(jobs, end_s),
                slurm_reading.waiting(jobs, end_s, cpus=True),
                slurm_reading.waiting(jobs, end_s),
            )
        )
    elif (results.directory / LOAD).exists() and (rows := load_over_time(results)):
        used, asked, queue = ([(row[0], row[k]) for row in rows] for k in (3, 2, 1))
    else:
        return []
    limit = float(total) if isinstance(total, int | float) else max(row[1] for row in used)
    tracks = [track_of(f"{what} in use", {"": "use"}, used, end_s, limit)]
    if any(row[1] for row in queue):
        tracks.append(track_of(f"{what} waited for", {"": "wait"}, asked, end_s))
        tracks.append(track_of(WAITING, {"": "wait"}, queue, end_s))
    return tracks


def reason_tracks(results: Results) -> list[Track]:
    """Why jobs of the `results` of Slurm wait, over time; nothing if there is one reason."""
    if not slurm_reading.is_slurm(results.summary):
        return []
    curves = slurm_reading.reason_curves(results.directory, results.end_s)
    shown = list(curves)[: len(REASONS) - 1]
    if len(curves) < 2:
        return []
    # All curves have the same dates.
    dates = curves[shown[0]].dates_s
    rows = list(zip(dates, *(curves[name].values for name in shown), strict=True))
    roles = {name: f"reason-{k}" for k, name in enumerate(shown)}
    name = "reasons to wait" + f", the {len(shown)} commonest" * (len(shown) < len(curves))
    return [track_of(name, roles, rows, results.end_s)]


def start_tracks(results: Results) -> list[Track]:
    """Which scheduler started how many jobs of the `results` of Slurm; nothing if one did all."""
    roles, end_s = {"main": "category-0", "backfill": "category-1"}, results.end_s
    if not slurm_reading.is_slurm(results.summary):
        return []
    jobs = results.jobs
    edges = np.linspace(0.0, end_s, STARTS + 1)
    dates = {by: [job.start_s for job in jobs if job.scheduler == by and job.start_s is not None]
             for by in roles}  # fmt: skip
    if not all(dates.values()):
        return []
    layers = [(f"by {by}", roles[by], np.histogram(its, edges)[0].astype(float))
              for by, its in dates.items()]  # fmt: skip
    return [Track("jobs started", layers, end_s / STARTS)]


def power_tracks(results: Results) -> list[Track]:
    """What idle hosts, working hosts and links of `results` draw, where energy was counted.

    Where hosts sleep, how many do or switch, and what all hosts draw together.
    """
    if not (results.directory / POWER).exists() or results.end_s <= 0.0:
        return []
    off = hosts_off(results)
    floor = 0.0 if off else _idle_W(results)
    rows = [(at, min(hosts, floor), max(hosts - floor, 0.0), links)
            for at, hosts, links in power_curve(results)]  # fmt: skip
    roles = {"idle": "nothing", "working" if floor else "hosts": "use", "links": "transfer"}
    track = track_of("power", roles, rows, results.end_s, kind="power")
    layers = [layer for layer in track.layers if layer[2].any()]
    tracks = [track._replace(layers=layers)] if layers else []
    if off:
        states = [(at, asleep, to_on + to_off) for at, asleep, to_on, to_off in off]
        roles = {"asleep": "category-0", "switching": "category-3"}
        whole = results.summary.get("hosts")
        tracks.append(track_of("hosts off", roles, states, results.end_s, whole))
    return tracks


def hosts_off(results: Results) -> list[Row]:
    """Return (date, hosts asleep, switching on, switching off) of `results`, from each change on.

    [] if no host ever sleeps or switches.
    """
    found = read_optional(
        results.directory / MACHINE_STATES, time=finite, nb_sleeping=finite,
        nb_switching_on=finite, nb_switching_off=finite,
    )  # fmt: skip
    return found if any(any(row[1:]) for row in found) else []


def _idle_W(results: Results) -> float:
    """What all hosts draw while they are on and idle, W; 0 if the platform cannot be read again."""
    try:
        platform = platform_of(results)
        power = [host_power(platform, host) for host in platform.hosts]
    except PTaskModelError:
        return 0.0
    return math.fsum(each.states[0].idle_W for each in power if each is not None)


def link_tracks(results: Results, places: Mapping[str, Place]) -> list[Track]:
    """A track a level and direction of links: the most used, and the mean, in each interval.

    results: with their utilisation. places: see `places.link_places`.
    """
    use, width_s = use_table(results, LINK)
    levels: dict[tuple[str, str], list[str]] = {}
    for name in use:
        place = level_of(name, places)
        levels.setdefault((place.level, place.way), []).append(name)
    totals: dict[tuple[str, str], int] = {}
    for place in places.values():
        totals[place.level, place.way] = totals.get((place.level, place.way), 0) + 1
    found = []
    for (level, way), members in sorted(levels.items(), key=_from_above):
        whole = totals.get((level, way), len(members))
        mean = np.sum([use[name] for name in members], axis=0) / whole
        most = np.max([use[name] for name in members], axis=0)
        name = f"{level} {way} ({whole})".replace("  ", " ")
        order = sorted(members, key=lambda name: -use[name].sum())
        found.append(Track(name, [("", "transfer", mean)], width_s, most, heat=True, members=order))
    return found


def _from_above(item: tuple[tuple[str, str], Any]) -> tuple[int, str, int]:
    """Links of hosts last, up before down."""
    (level, way), _ = item
    return level.endswith("-host"), level, (UP, DOWN, "").index(way)


def use_table(results: Results, kind: str) -> tuple[dict[str, FloatArray], float]:
    """Return what part of each host or link was used in each cell, and the length of cells, s."""
    spans = [(name, *span) for (name, its_kind), its in results.utilisation.items()
             for span in its if its_kind == kind]  # fmt: skip
    return cells_of(spans, results.end_s)


def cells_of(
    spans: Sequence[tuple[str, float, float, float]], end_s: float
) -> tuple[dict[str, FloatArray], float]:
    """Return the amounts of each name in cells up to ``end_s``, and the length of cells, s.

    spans: (name, begin, end, amount), each a cell, the last of a run perhaps less.
    """
    if not spans:
        return {}, 1.0
    width_s = min(end - begin for _, begin, end, _ in spans)
    end_s = max(end_s, *(end for _, _, end, _ in spans))
    cells = max(math.ceil(end_s / width_s - 1e-6), 1)
    found: dict[str, FloatArray] = {}
    for name, begin, _, amount in spans:
        if name not in found:
            found[name] = np.zeros(cells)
        found[name][min(round(begin / width_s), cells - 1)] = amount
    return found, width_s


def panel_says(results: Results, tracks: Iterable[Track], begin_unix_s: float | None = None) -> str:
    """The sentence of the time panel of `results` with these ``tracks``, and its numbers.

    begin_unix_s: as of `date`.
    """
    shown = ran(results)
    hosts = {host for task, _, _ in shown for host in task.hosts}
    end_s = results.end_s
    on = f"{count(len(hosts), 'host')}"
    if not shown:
        return f"0 of {count(results.submitted, results.what)} ran."
    if results.what == "rank":
        return f"{count(len(shown), 'rank')} on {on}, for {number(end_s, 'time')}."
    said = [f"{count(len(shown), results.what)} on {on}.", *said_of(tracks, end_s, begin_unix_s)]
    return " ".join(said)


def said_of(tracks: Iterable[Track], end_s: float, begin_unix_s: float | None = None) -> list[str]:
    """What tracks show, a sentence each."""
    found, fullest = [], None
    for track in tracks:
        mean, most = (float(track.mean.sum() * track.width_s / end_s), track.most)
        if track.heat and track.full > (0.0 if fullest is None else fullest.full):
            fullest = track
        elif track.name.endswith(" in use") and track.limit:
            what = track.name.removesuffix(" in use")
            found.append(f"{number(mean)} of {number(track.limit)} {what} in use on average.")
        elif track.name == WAITING and most is not None:
            at = date(float(most.argmax()) * track.width_s, end_s, begin_unix_s)
            jobs = round(float(most.max()))
            found.append(f"At most {count(jobs, 'job')} wait{'s' * (jobs == 1)}, at {at}.")
    if fullest is not None:
        name = fullest.name.rpartition(" (")[0]
        link = name.replace("links", "link", 1) if name.startswith("links") else f"{name} link"
        found.append(f"Some {link} is full for {number(fullest.full, 'share')} of the time.")
    return found
