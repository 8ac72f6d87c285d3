"""Names of links by their place in a generated topology, and hosts by the switch above them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ptaskmodel.platform.topologies import FAMILIES
from ptaskmodel.platform.topologies.topology import DUPLEX
from ptaskmodel.recording import LINK

if TYPE_CHECKING:
    from ptaskmodel.platform import Platform

UP, DOWN = "↑", "↓"
# Hosts of a group where no switch divides them.
GROUPS = 128
# Of a dragonfly, by the first word of a link's name.
DRAGONFLY = {
    "local": "router-host",
    "green": "in chassis",
    "black": "between chassis",
    "blue": "between groups",
}
AXES = "xyzuvw"


class Place(NamedTuple):
    """Where a link is.

    level: of links that are alike: "spine-leaf". way: UP, DOWN, or "" for both. name: "leaf 1 →
    spine 0"; "" where the link's own name says it.
    """

    level: str
    way: str
    name: str


def link_places(platform: Platform) -> dict[str, Place]:
    """Return the place of each link of the generated topologies of ``platform``, by its name."""
    found: dict[str, Place] = {}
    walks = [(zone, zone.walk) for zone in platform.zones if zone.walk is not None]
    several = Counter(FAMILIES[walk.kind].name for _, walk in walks)
    for zone, walk in walks:
        family = FAMILIES[walk.kind]
        if family.spokes(walk.table) is not None:
            continue
        table = walk.table.tolist()
        edges = list(family.edges(table))
        hosts = [platform.points.names[point] for point in zone.points]
        top = max((edge.level + 1 for edge in edges if edge.level is not None), default=0)
        first = _firsts(edges)
        where = f"{zone.name}: " if several[family.name] > 1 else ""
        coordinates = dict(family.coordinates(table))
        for edge in edges:
            names = [platform.all_links[edge.link + k].name for k in range(1 + bool(table[DUPLEX]))]
            if edge.level is not None:
                low, high = (_switch(level, top) for level in (edge.level, edge.level + 1))
                ends = [
                    hosts[node] if level == 0 else f"{kind} {node - first[level]}"
                    for node, level, kind in (
                        (edge.node, edge.level, low),
                        (edge.other, edge.level + 1, high),
                    )
                ]
                _add(found, names, f"{high}-{low}", where, ends)
            elif family.name == "DRAGONFLY":
                level = DRAGONFLY[names[0].split("_")[0]]
                ends = [_router(coordinates[edge.node]), _router(coordinates.get(edge.other))]
                if edge.other < len(hosts):
                    ends = [hosts[edge.other], ends[0]]
                _add(found, names, level, where, ends)
            else:
                axis = _axis(coordinates.get(edge.node), coordinates.get(edge.other))
                _add(found, names, axis, where, [hosts[edge.node], hosts[edge.other]])
    return found


def _add(
    found: dict[str, Place], names: Sequence[str], level: str, where: str, ends: Sequence[str]
) -> None:
    """Add a cable: of one link for both ways, or of two."""
    a, b = ends
    if len(names) == 1:
        found[names[0]] = Place(level, "", f"{where}{a} – {b}")
        return
    found[names[0]] = Place(level, UP, f"{where}{a} → {b}")
    found[names[1]] = Place(level, DOWN, f"{where}{b} → {a}")


def _router(place: Sequence[int] | None) -> str:
    """The router of a dragonfly at (group, chassis, blade)."""
    return f"router {'.'.join(map(str, place or ()))}"


def _firsts(edges: Iterable[Any]) -> dict[int, int]:
    """The first number of the nodes of each level of a tree."""
    found: dict[int, int] = {}
    for edge in edges:
        if edge.level is not None:
            for node, level in ((edge.node, edge.level), (edge.other, edge.level + 1)):
                found[level] = min(found.get(level, node), node)
    return found


def _switch(level: int, top: int) -> str:
    """What the nodes of a level of a tree are called."""
    if level == 0:
        return "host"
    if level == 1:
        return "leaf"
    if level == top:
        return "spine"
    return "middle" if top == 3 else f"tier-{level}"


def _axis(a: Sequence[int] | None, b: Sequence[int] | None) -> str:
    """The direction of a torus in which two nodes differ."""
    if a is None or b is None:
        return "links"
    k = next((k for k, (x, y) in enumerate(zip(a, b, strict=True)) if x != y), 0)
    return f"along {AXES[k]}" if k < len(AXES) else f"along axis {k}"


def link_name(name: str, places: Mapping[str, Place]) -> str:
    """The ``name`` of a link for readers: by its place in ``places``, or "cable-02 ↑"."""
    place = level_of(name, places)
    if place.name:
        return place.name
    return f"{name.removesuffix('_UP').removesuffix('_DOWN')} {place.way}".rstrip()


def resource_name(kind: str, name: str, places: Mapping[str, Place]) -> str:
    """A ``kind`` of limit, and the ``name`` of its resource, if it has one, by its place."""
    return f"{kind} {link_name(name, places) if kind == LINK and name else name}".strip()


def level_of(name: str, places: Mapping[str, Place]) -> Place:
    """The level and the way of the link ``name``: without a place in ``places`` by its end."""
    if name in places:
        return places[name]
    way = UP if name.endswith("_UP") else DOWN if name.endswith("_DOWN") else ""
    return Place("links", way, "")


def host_groups(hosts: Sequence[str], places: Mapping[str, Place]) -> list[list[Any]]:
    """[name, first, how many] of ``hosts`` that follow each other and hang on the same switch.

    Where no tree says it, groups of equal size. places: see `link_places`.
    """
    above: dict[str, str] = {}
    for place in places.values():
        if place.way == UP and place.level.endswith("-host"):
            host, _, switch = place.name.partition(" → ")
            above[host.rpartition(": ")[2]] = switch
    if not above:
        size = max(-(-len(hosts) // GROUPS), 1)
        starts = range(0, len(hosts), size)
        return [[f"{hosts[k]} …", k, min(size, len(hosts) - k)] for k in starts]
    groups: list[list[Any]] = []
    for k, host in enumerate(hosts):
        name = above.get(host, "others")
        if groups and groups[-1][0] == name:
            groups[-1][2] += 1
        else:
            groups.append([name, k, 1])
    return groups
