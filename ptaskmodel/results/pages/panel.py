"""The time panel of a page: the machine, the queue and links by level over time, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ptaskmodel.recording.limits import LINK
from ptaskmodel.results.directory import POWER
from ptaskmodel.results.loading import LOAD, Results, load_over_time, power_curve
from ptaskmodel.results.pictures.drawing import ran
from ptaskmodel.results.pictures.load import load_in_cells
from ptaskmodel.results.tables import slurm_reading
from ptaskmodel.results.tables.places import DOWN, UP, Place, level_of
from ptaskmodel.results.tables.slurm_reading import SlurmJob
from ptaskmodel.style.colours import REASONS
from ptaskmodel.style.text import count, date, number

CELLS = 600
# Cells of the track of starts, and who starts jobs: roles.
STARTS = 120
SCHEDULERS = {"main": "use", "backfill": "transfer"}
# A link is full from this part of its bandwidth on.
FULL = 0.995
WAITING = "jobs waiting"
# Links of one level that are listed by a click.
MAX_MEMBERS = 200


def load_tracks(results: Results) -> list[dict[str, Any]]:
    """Of the `results` of a batch: hosts or CPUs in use and waited for, jobs waiting, over time."""
    end_s = results.end_s
    if results.what != "job" or end_s <= 0.0:
        return []
    slurm = slurm_reading.is_slurm(results.summary)
    if slurm:
        jobs = slurm_reading.read_jobs(results.directory)
        curves = (
            slurm_reading.used(jobs, end_s),
            slurm_reading.waiting(jobs, end_s, cpus=True),
            slurm_reading.waiting(jobs, end_s),
        )
        loads = [
            load_in_cells([(date_s, value, 0.0, 0.0) for date_s, value in zip(*curve, strict=True)],
                          end_s, CELLS)
            for curve in curves
        ]  # fmt: skip
        columns = [(load.mean[:, 0], load.most[:, 0]) for load in loads]
    elif (results.directory / LOAD).exists() and (rows := load_over_time(results)):
        load = load_in_cells(rows, end_s, CELLS)
        columns = [(load.mean[:, k], load.most[:, k]) for k in (2, 1, 0)]
    else:
        return []
    what, key = ("CPUs", "cpus") if slurm else ("hosts", "hosts")
    total = results.summary.get(key)
    limit = float(total) if isinstance(total, int | float) else float(columns[0][1].max())
    tracks = [_area(f"{what} in use", "use", *columns[0], end_s, limit)]
    if columns[2][1].any():
        tracks.append(_area(f"{what} waited for", "wait", *columns[1], end_s))
        tracks.append(_area(WAITING, "wait", *columns[2], end_s))
    return [*tracks, *_slurm_tracks(results, jobs)] if slurm else tracks


def _slurm_tracks(results: Results, jobs: Sequence[SlurmJob]) -> list[dict[str, Any]]:
    """Why jobs wait, and which scheduler started them, as layers."""
    end_s = results.end_s
    reasons = list(slurm_reading.reason_curves(results.directory, end_s).items())
    shown, others = reasons[: len(REASONS) - 1], reasons[len(REASONS) - 1 :]
    layers = []
    for k, (name, curve) in enumerate(shown):
        rows = [(date_s, value, 0.0, 0.0) for date_s, value in zip(*curve, strict=True)]
        layers.append((name, f"reason-{k}", load_in_cells(rows, end_s, CELLS).mean[:, 0]))
    tracks = []
    if len(reasons) > 1:
        name = "reasons to wait" + f", the {len(shown)} commonest" * bool(others)
        tracks.append(_layered(name, layers, end_s))
    edges = np.linspace(0.0, end_s, STARTS + 1)
    started = {by: [job.start_s for job in jobs if job.scheduler == by and job.start_s is not None]
               for by in SCHEDULERS}  # fmt: skip
    if all(started.values()):
        layers = [(f"by {by}", SCHEDULERS[by], np.histogram(dates, edges)[0].astype(float))
                  for by, dates in started.items()]  # fmt: skip
        tracks.append(_layered("jobs started", layers, end_s))
    return tracks


def _layered(name: str, layers: Sequence[tuple[str, str, Any]], end_s: float) -> dict[str, Any]:
    """A track of layers (name, role, mean in each cell) on each other."""
    whole = sum(mean for _, _, mean in layers)
    track = _area(name, layers[0][1], whole, whole, end_s)
    del track["most"]
    rounded = [{"name": each, "role": role, "mean": [round(value, 2) for value in mean.tolist()]}
               for each, role, mean in layers]  # fmt: skip
    return track | {"width": end_s / len(whole), "layers": rounded}


def power_tracks(results: Results) -> list[dict[str, Any]]:
    """The power of the hosts and links of `results`, over time, where energy was counted."""
    if not (results.directory / POWER).exists() or results.end_s <= 0.0:
        return []
    rows = power_curve(results)
    tracks = []
    for name, role, k in (("power of hosts", "use", 1), ("power of links", "transfer", 2)):
        curve = [(row[0], row[k], 0.0, 0.0) for row in rows]
        load = load_in_cells(curve, results.end_s, CELLS)
        if load.most[:, 0].any():
            found = _area(name, role, load.mean[:, 0], load.most[:, 0], results.end_s)
            tracks.append(found | {"of": "power"})
    return tracks


def _area(
    name: str, role: str, mean: Any, most: Any, end_s: float, limit: float | None = None
) -> dict[str, Any]:
    rounded = [[round(value, 2) for value in column.tolist()] for column in (mean, most)]
    found = {"name": name, "kind": "area", "role": role, "width": end_s / CELLS, "mean": rounded[0],
             "most": rounded[1], "top": max(rounded[1]) or 1}  # fmt: skip
    return found if limit is None else found | {"limit": limit}


def link_tracks(results: Results, places: Mapping[str, Place]) -> list[dict[str, Any]]:
    """Two rows a level and direction of links: the most used, and the mean, in each interval.

    results: with their utilisation. places: see `places.link_places`.
    """
    names = [name for name, kind in results.utilisation if kind == LINK]
    if not names:
        return []
    table = results.utilisation
    width = min(b - a for name in names for a, b, _ in table[name, LINK])
    cells = round(max(table[name, LINK][-1][1] for name in names) / width)
    levels: dict[tuple[str, str], list[str]] = {}
    for name in names:
        place = level_of(name, places)
        levels.setdefault((place.level, place.way), []).append(name)
    totals: dict[tuple[str, str], int] = {}
    for place in places.values():
        totals[place.level, place.way] = totals.get((place.level, place.way), 0) + 1
    found = []
    for (level, way), members in sorted(levels.items(), key=_from_above):
        use = np.zeros((len(members), cells))
        for k, name in enumerate(members):
            for start, _, share in table[name, LINK]:
                use[k, min(round(start / width), cells - 1)] = share
        number_of = totals.get((level, way), len(members))
        most, mean = use.max(axis=0), use.sum(axis=0) / number_of
        order = sorted(range(len(members)), key=lambda k: -use[k].sum())
        found.append(
            {
                "name": f"{level} {way} ({number_of})".replace("  ", " "),
                "kind": "heat",
                "width": width,
                "most": [round(1000 * value) for value in most.tolist()],
                "mean": [round(1000 * value, 1) for value in mean.tolist()],
                "full": float((most >= FULL).mean()),
                "members": [members[k] for k in order[:MAX_MEMBERS]],
            }
        )
    return found


def _from_above(item: tuple[tuple[str, str], list[str]]) -> tuple[int, str, int]:
    """Links of hosts last, up before down."""
    (level, way), _ = item
    return level.endswith("-host"), level, (UP, DOWN, "").index(way)


def panel_says(
    results: Results, tracks: list[dict[str, Any]], begin_unix_s: float | None = None
) -> str:
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
        on = f"{count(len(shown), 'rank')} on {on}"
        return f"{on}, for {number(end_s, 'time')}. Drag to move, wheel or pinch to zoom."
    said = f"{count(len(shown), results.what)} on {on}."
    by_name = {track["name"]: track for track in tracks}
    for what in ("hosts", "CPUs"):
        if (used := by_name.get(f"{what} in use")) is not None:
            mean = sum(used["mean"]) / len(used["mean"])
            said += f" {number(mean)} of {number(used['limit'])} {what} in use on average."
    if (jobs := by_name.get(WAITING)) is not None:
        most = max(jobs["most"])
        at = date(jobs["most"].index(most) * jobs["width"], end_s, begin_unix_s)
        said += f" At most {count(round(most), 'job')} wait, at {at}."
    full = [track for track in tracks if track["kind"] == "heat" and track["full"] > 0]
    if full:
        worst = max(full, key=lambda track: track["full"])
        name = worst["name"].rpartition(" (")[0]
        link = "link" if name == "links" else f"{name} link"
        said += f" Some {link} is full for {number(worst['full'], 'share')} of the time."
    return said
