"""The topology of a platform for a page: places, uses, and who used what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.drawing import HEAT, natural
from ptaskmodel.results.loading import Results
from ptaskmodel.results.topology import MEASURES, cable_of, platform_of

if TYPE_CHECKING:
    from ptaskmodel.platform.sketch import Sketch

MAX_BOXES = 30_000
MAX_USERS = 20  # of a link
MAX_LINKS = 2_000  # whose users are on the page, the most used


def topology_data(results: Results) -> dict[str, Any] | str:
    """What the page draws, as JSON (see topology.js), or why it cannot."""
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
        "users": _users(results, uses["link"][0], drawn),
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


def _users(results: Results, mean: dict[str, float], drawn: Sketch) -> dict[str, list[Any]]:
    """Of the most used links: [cable, how many tasks, [[task, start, end, bytes], ...]]."""
    known = {name for line in drawn.lines for name in line.links}
    known |= {box.name for box in drawn.boxes if box.kind == "link"}
    chosen = sorted(results.link_users, key=lambda name: (-mean.get(name, 0.0), natural(name)))
    found = {}
    for name in chosen[:MAX_LINKS]:
        count, users = results.link_users[name]
        rows = [[user.task_id, user.start_s, user.end_s, user.bytes] for user in users[:MAX_USERS]]
        found[name] = [cable_of(name, known), count, rows]
    return found


def _rounded(*values: float) -> list[float]:
    return [round(value, 2) for value in values]
