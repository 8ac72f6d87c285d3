"""The platform on a page: places, use and bandwidth of hosts and links, and who used which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ptaskmodel.results.loading import Results
from ptaskmodel.results.pictures.topology import MEASURES, cable_of
from ptaskmodel.results.tables.places import Place, level_of, link_name
from ptaskmodel.style.text import count, number

if TYPE_CHECKING:
    from ptaskmodel.platform import Platform
    from ptaskmodel.platform.pictures.layout import Sketch

MAX_BOXES = 30_000
MAX_USERS = 20  # of a link
TICKS = 100_000  # of the dates of users, over the whole run
# Of the use at a time: intervals over the run, and a letter for each level, the first for none.
MOMENTS = 64
LEVELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def topology_data(
    results: Results, platform: Platform, chosen: Sequence[str], places: Mapping[str, Place]
) -> dict[str, Any] | str:
    """What the page draws, as JSON (see topology.js), or why it cannot.

    results: with their utilisation. platform: theirs. chosen: the links whose users are shown.
    places: see `places.link_places`.
    """
    from ptaskmodel.platform.pictures.layout import sketch

    if len(platform.hosts) > MAX_BOXES:
        return f"The topology is not drawn: {count(len(platform.hosts), 'host')} are too many."
    drawn = sketch(platform)
    uses = {kind: [MEASURES[name](results, kind) for name in MEASURES] for kind in ("host", "link")}
    names = sorted({name for its in uses["link"] for name in its})
    index = {name: k for k, name in enumerate(names)}
    used = _uses(uses["link"], names)
    bandwidth = {link.name: link.bandwidth_Bps for link in platform.all_links}
    narrowest = min((bandwidth[name] for name in names), default=1.0) or 1.0
    return {
        "says": _says(used, places),
        "measures": list(MEASURES),
        "boxes": [
            [box.name, box.kind, *_rounded(box.x, box.y, box.width, box.height)]
            for box in drawn.boxes
        ],
        "groups": [
            [group.name, len(group.hosts), *_rounded(group.x, group.y, group.width)]
            for group in drawn.groups
        ],
        "lines": [
            [
                [_rounded(*(value for point in path for value in point)) for path in line.paths],
                list(line.links),
                [index[half] for name in line.links for half in _halves(name) if half in index],
            ]
            for line in drawn.lines
        ],
        "hosts": _uses(uses["host"], [host.name for host in platform.hosts]),
        "links": [
            [name, *use, round(bandwidth[name] / narrowest, 2)] for name, use in used.items()
        ],
        "moments": MOMENTS,
        "now": _now(results),
        "tick": (results.end_s or 1.0) / TICKS,
        "users": _users(results, chosen, drawn),
    }


def _now(results: Results) -> dict[str, str]:
    """The use of each host and link, by "kind name", in each of MOMENTS as a letter of LEVELS."""
    width = (results.end_s or 1.0) / MOMENTS
    found = {}
    for (name, kind), spans in results.utilisation.items():
        starts, ends, shares = np.array(spans).T
        spent = np.concatenate([[0.0], np.cumsum((ends - starts) * shares)])
        # Intervals without use may be missing.
        edges = np.column_stack([starts, ends]).ravel()
        reached = np.column_stack([spent[:-1], spent[1:]]).ravel()
        means = np.diff(np.interp(np.arange(MOMENTS + 1) * width, edges, reached)) / width
        level = np.where(means > 0.0, 1.0 + np.minimum(means, 1.0) * (len(LEVELS) - 2), 0.0)
        found[f"{kind} {name}"] = "".join(LEVELS[k] for k in level.round().astype(int).tolist())
    return found


def _says(used: Mapping[str, Sequence[float]], places: Mapping[str, Place]) -> str:
    """The sentence of the picture: the most used link, and the highest mean of each level."""
    if not used:
        return "0 links were used."
    most = max(used, key=lambda name: used[name][0])
    mean, peak = used[most][:2]
    said = (
        f"Of {count(len(used), 'link')} in use, {link_name(most, places)} is used most: "
        f"{number(mean / 100, 'share')} of its bandwidth on average, "
        f"{number(peak / 100, 'share')} at most."
    )
    levels: dict[str, list[float]] = {}
    for link, use in used.items():
        level = level_of(link, places)
        levels.setdefault(f"{level.level} {level.way}".strip(), []).append(use[0])
    if len(levels) > 1:
        means = {level: sum(its) / len(its) / 100 for level, its in levels.items()}
        told = [f"{level}: {number(mean, 'share')}" for level, mean in sorted(means.items())]
        said += f" On average by level: {'; '.join(told)}."
    return said


def _halves(name: str) -> tuple[str, str, str]:
    return name, f"{name}_UP", f"{name}_DOWN"


def _uses(measures: Sequence[dict[str, float]], names: Sequence[str]) -> dict[str, list[float]]:
    """Of each that was used, in per cent: its mean and highest use, the time it limited."""
    return {
        name: [round(each.get(name, 0.0), 2) for each in measures]
        for name in names
        if any(name in each for each in measures)
    }


def _users(results: Results, chosen: Sequence[str], drawn: Sketch) -> dict[str, list[Any]]:
    """Of the chosen links: [cable, how many tasks, [[task, start, end, bytes], ...]].

    A task is its number if it is one of those on the page, else its name.
    """
    known = {name for line in drawn.lines for name in line.links}
    known |= {box.name for box in drawn.boxes if box.kind == "link"}
    index: dict[str, int] = {task.task_id: k for k, task in enumerate(results.tasks)}
    scale = (results.end_s or 1.0) / TICKS
    found = {}
    for name in chosen:
        if name not in results.link_users:
            continue
        count, users = results.link_users[name]
        rows = [
            [
                index.get(user.task_id, user.task_id),
                round(user.start_s / scale),
                round(user.end_s / scale),
                float(f"{user.bytes:.5g}"),
            ]
            for user in users[:MAX_USERS]
        ]
        found[name] = [cable_of(name, known), count, rows]
    return found


def _rounded(*values: float) -> list[float]:
    return [round(value, 2) for value in values]
