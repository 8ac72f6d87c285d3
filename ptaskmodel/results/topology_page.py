"""The topology of a platform for a page: places, uses, and who used what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.drawing import HEAT, UNUSED, UNUSED_LINE, natural
from ptaskmodel.results.loading import Results
from ptaskmodel.results.topology import MEASURES, cable_of, platform_of

if TYPE_CHECKING:
    from ptaskmodel.platform.sketch import Sketch

MAX_BOXES = 30_000
MAX_USERS = 20  # of a link
TICKS = 100_000  # of the dates of users, over the whole run


def topology_data(results: Results, chosen: Sequence[str]) -> dict[str, Any] | str:
    """What the page draws, as JSON (see topology.js), or why it cannot.

    chosen: the links whose users are shown.
    """
    from ptaskmodel.platform.sketch import sketch

    if not results.utilisation:
        return ""
    try:
        platform = platform_of(results)
    except PTaskModelError as error:
        return f"The topology is not drawn: {error}."
    if len(platform.hosts) > MAX_BOXES:
        return f"The topology is not drawn: {len(platform.hosts):,} hosts are too many for a page."
    drawn = sketch(platform)
    uses = {kind: [MEASURES[name](results, kind) for name in MEASURES] for kind in ("host", "link")}
    names = sorted({name for its in uses["link"] for name in its}, key=natural)
    number = {name: k for k, name in enumerate(names)}
    return {
        "heat": HEAT,
        "unused": [UNUSED, UNUSED_LINE],
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
                [number[half] for name in line.links for half in _halves(name) if half in number],
            ]
            for line in drawn.lines
        ],
        "hosts": _uses(uses["host"], [host.name for host in platform.hosts]),
        "links": [[name, *use] for name, use in _uses(uses["link"], names).items()],
        "tick": (results.end_s or 1.0) / TICKS,
        "users": _users(results, chosen, drawn),
    }


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
    number: dict[str, int] = {task.task_id: k for k, task in enumerate(results.tasks)}
    scale = (results.end_s or 1.0) / TICKS
    found = {}
    for name in chosen:
        if name not in results.link_users:
            continue
        count, users = results.link_users[name]
        rows = [
            [
                number.get(user.task_id, user.task_id),
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
