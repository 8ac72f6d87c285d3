"""Pictures of a platform whose hosts and links are coloured by their utilisation."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import digest, split_names
from ptaskmodel.results import COLOURS
from ptaskmodel.results.directory import read_optional
from ptaskmodel.results.loading import Results
from ptaskmodel.results.pictures.drawing import (
    NEEDS_ATTRIBUTION,
    UNUSED_LINE,
    USE,
    heat,
    heat_bar,
    natural,
    scale,
)
from ptaskmodel.results.tables.places import Place, link_places
from ptaskmodel.results.tables.tasks import ROUTES
from ptaskmodel.style.figures import LIGHT, WIDE, finished, new_figure, picture
from ptaskmodel.style.text import count, elided, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ptaskmodel.platform import Platform
    from ptaskmodel.platform.sketch import Line, Sketch


MARKED = 5  # links named below the picture
# Inches: of a picture, and of a sketch's unit at most.
MAX_HEIGHT, MAX_UNIT = 8.5, 0.75
# So that the bar of colours has room for its label.
LEAST_HEIGHT = 5.4
LABELS = {
    "mean": "mean use over the run (% of the capacity); grey: none",
    "peak": "highest use in an interval of the run (% of the capacity); grey: none",
    "limiting": "time in which it limited a {what} (% of the run); grey: never",
}


@picture
def topology(
    results: Results, platform: Platform | None = None, colour: str | None = None
) -> Figure:
    """The platform with each host and link in the colour of its use.

    platform: the one that the run was on; None: read again from the file that the summary names.
    colour: one of `results.COLOURS`: "mean" use over the run, "peak": the highest in an interval of
    utilisation.csv, "limiting": the part of the run in which it was what limited some task.

    Raises PTaskModelError if that file has changed, or the results have no utilisation.
    """
    from ptaskmodel.platform.sketch import sketch

    if not results.utilisation:
        raise PTaskModelError(f"{results.directory}: {NEEDS_ATTRIBUTION}")
    colour = colour or next(iter(COLOURS))
    if colour not in COLOURS:
        raise PTaskModelError(f"colour {colour!r} is not known; choose one of {', '.join(COLOURS)}")
    platform = platform or platform_of(results)
    hosts, links = (MEASURES[colour](results, kind) for kind in ("host", "link"))
    drawn = sketch(platform)
    places = {name: place.name for name, place in link_places(platform).items() if place.name}
    label = LABELS[colour].format(what=results.what)
    figure, worst = _paint(platform, drawn, hosts, links, places, label)
    title = f"{platform.path.name}: {count(len(platform.hosts), 'host')}"
    if worst:
        title += f"; most: {places.get(worst, worst)}, {number(links[worst] / 100, 'share')}"
    note = f"Hosts and links by their {COLOURS[colour]}; width: bandwidth of links"
    return finished(figure, title, note, f"{title} ({COLOURS[colour]}).")


@picture
def routes(results: Results, platform: Platform | None = None) -> Figure:
    """The platform with each link in the colour of how many flows cross it, by routes.csv.

    results: of a run that wrote its routes. platform: as of `topology`.
    """
    from ptaskmodel.platform.sketch import sketch

    place = results.directory / ROUTES
    if not place.exists():
        raise PTaskModelError(f"{place}: is missing; simulate with --routes")
    paths = [set(path) for _, path in routes_of(results)]
    flows = Counter(itertools.chain.from_iterable(paths))
    if not flows:
        raise PTaskModelError(f"{place}: no flow crosses a link; nothing to draw")
    most = max(flows.values())
    links = {name: 100.0 * crossed / most for name, crossed in flows.items()}
    platform = platform or platform_of(results)
    places = {name: each.name for name, each in link_places(platform).items() if each.name}
    label = f"flows that cross a link (% of {most}, the most); grey: none"
    figure, worst = _paint(platform, sketch(platform), {}, links, places, label)
    title = f"{count(len(paths), 'flow')} over {count(len(flows), 'link')}; most: "
    title += f"{places.get(worst, worst)}, {count(most, 'flow')}"
    note = "Links by the number of flows that cross them; width: bandwidth of links"
    return finished(figure, title, note, f"{title}.")


def routes_of(results: Results) -> list[tuple[Any, ...]]:
    """The task of each flow of `results`, and its links; none without routes.csv."""
    place = results.directory / ROUTES
    return read_optional(place, "simulate again", task=str, path=split_names)


def _paint(
    platform: Platform,
    drawn: Sketch,
    hosts: Mapping[str, float],
    links: Mapping[str, float],
    places: Mapping[str, str],
    label: str,
) -> tuple[Figure, str]:
    """The figure, and the link of most use; empty if none is used."""
    from ptaskmodel.platform.drawing import add_boxes, add_groups, line_widths, page

    width, height, unit = page(drawn, WIDE - 1.2, MAX_HEIGHT, MAX_UNIT)
    worst = sorted((name for name in links if links[name] > 0.0),
                   key=lambda name: (-links[name], natural(name)))[:MARKED]  # fmt: skip
    whole = max(height + 0.9 + 0.17 * len(worst), LEAST_HEIGHT)
    figure = new_figure(width + 1.2, whole)
    from matplotlib.collections import LineCollection

    used, colours = scale(*USE), heat()
    axes = figure.add_subplot()
    uses = [max((use_of(links, name) for name in line.links), default=0.0) for line in drawn.lines]
    order = sorted(range(len(uses)), key=lambda k: uses[k])
    paths = [(path, k) for k in order for path in drawn.lines[k].paths]
    widths = line_widths(platform, drawn, unit)
    axes.add_collection(
        LineCollection(
            [path for path, _ in paths],
            colors=[colours(used(uses[k])) if uses[k] else UNUSED_LINE for _, k in paths],
            linewidths=[2 * widths[k] for _, k in paths],
            zorder=1,
        )
    )

    def fill(name: str, kind: str) -> Any:
        if kind == "host":
            return colours(used(hosts.get(name, 0.0)))
        return colours(used(use_of(links, name))) if kind == "link" else "white"

    add_boxes(axes, drawn, fill, unit)
    add_groups(axes, drawn, unit, {})
    _mark(axes, drawn, worst)
    heat_bar(axes, USE, label)
    if worst:
        lines = [
            f"{k}  {elided(places.get(name, name), 90)}: {number(links[name] / 100, 'share')}"
            for k, name in enumerate(worst, 1)
        ]
        axes.annotate("\n".join(lines), (0.0, 0.0), xycoords="axes fraction", va="top",
                      xytext=(0, -4), textcoords="offset points")  # fmt: skip
    return figure, worst[0] if worst else ""


def _mark(axes: Any, drawn: Sketch, names: list[str]) -> None:
    """Put the numbers of links at their lines."""
    lines: dict[str, Line] = {name: line for line in reversed(drawn.lines) for name in line.links}
    bars = {box.name: (box.x, box.y) for box in drawn.boxes if box.kind == "link"}
    at: dict[tuple[float, float], list[str]] = {}
    for k, name in enumerate(names, 1):
        name = cable_of(name, lines.keys() | bars.keys())
        if name in bars:
            at.setdefault(bars[name], []).append(str(k))
        elif name in lines:
            path = lines[name].paths[0]
            (xa, ya), (xb, yb) = path[(len(path) - 1) // 2], path[len(path) // 2]
            at.setdefault(((xa + xb) / 2, (ya + yb) / 2), []).append(str(k))
    for place, numbers in at.items():
        axes.annotate(",".join(numbers), place, fontsize=8, fontweight="bold", ha="center",
                      va="center", zorder=6, color=LIGHT.ink,
                      bbox={"boxstyle": "round,pad=0.2", "fc": "white", "ec": LIGHT.ink, "lw": 0.8}
                      )  # fmt: skip


def cable_of(link: str, known: Any) -> str:
    """The name by which a sketch has a link: that of its cable where it is one half of it."""
    for half in ("_UP", "_DOWN"):
        if link not in known and link.endswith(half) and link.removesuffix(half) in known:
            return link.removesuffix(half)
    return link


def halves(name: str) -> tuple[str, str, str]:
    """Return ``name`` of a link, and the names of the halves of a cable of this name."""
    return name, f"{name}_UP", f"{name}_DOWN"


def use_of(uses: Mapping[str, float], name: str) -> float:
    """The use of a link, or of the more used of its two halves."""
    return max(uses.get(each, 0.0) for each in halves(name))


def mean_use(results: Results, kind: str) -> dict[str, float]:
    """Per cent of its capacity that each host (or link) used over the run."""
    span = results.end_s or 1.0
    return {
        name: 100.0 * math.fsum((b - a) * share for a, b, share in spans) / span
        for (name, its), spans in results.utilisation.items()
        if its == kind
    }


def peak_use(results: Results, kind: str) -> dict[str, float]:
    """Per cent of its capacity that each used in the interval in which it used most."""
    return {
        name: 100.0 * max((share for _, _, share in spans), default=0.0)
        for (name, its), spans in results.utilisation.items()
        if its == kind
    }


def limiting_time(results: Results, kind: str) -> dict[str, float]:
    """Per cent of the run in which each limited at least one task."""
    covered: dict[str, float] = {}
    reached: dict[str, float] = {}
    for limit in sorted(results.limits, key=lambda limit: limit.start_s):
        name, end_s = limit.resource, limit.end_s
        if limit.limited_by == kind and end_s > (until := reached.get(name, 0.0)):
            covered[name] = covered.get(name, 0.0) + end_s - max(limit.start_s, until)
            reached[name] = end_s
    return {name: 100.0 * seconds / (results.end_s or 1.0) for name, seconds in covered.items()}


MEASURES: Mapping[str, Callable[[Results, str], dict[str, float]]] = {
    "mean": mean_use,
    "peak": peak_use,
    "limiting": limiting_time,
}


def platform_of(results: Results) -> Platform:
    """The platform of a run, read again from the file that its summary names.

    A relative path is taken from here, or from the directory of the results or one above. Raises
    PTaskModelError if the file is not there, or not as it was.
    """
    from ptaskmodel.platform import load_platform

    return load_platform(input_of(results, 0, "platform"))


def input_of(results: Results, k: int, what: str) -> Path:
    """Return the file that the summary of `results` names as input ``k``, of ``what`` kind.

    Raises PTaskModelError as `platform_of`.
    """
    inputs = results.summary.get("inputs") or []
    if len(inputs) <= k:
        raise PTaskModelError(f"{results.directory}: its summary names no {what} file")
    path = Path(inputs[k]["path"])
    above = results.directory.absolute().parents
    places = [path, *(folder / path for folder in (results.directory, *above))]
    there = [place for place in dict.fromkeys(places) if place.is_file()]
    if not there:
        raise PTaskModelError(
            f"{path}: the {what} of the run is not there; "
            "put it back, or do this where the run was made"
        )
    found = next((place for place in there if digest(place) == inputs[k]["sha256"]), None)
    if found is None:
        raise PTaskModelError(
            f"{there[0]}: has changed since the run; what runs were made of is to be kept: "
            "change a copy of it"
        )
    return found


def places_of(results: Results) -> dict[str, Place]:
    """The places of links on the platform of `results`; none if it cannot be read again."""
    try:
        return link_places(platform_of(results))
    except PTaskModelError:
        return {}
