"""A large platform graph made small enough to be drawn: alike hosts, then whole zones, as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from ptaskmodel import units

if TYPE_CHECKING:
    from ptaskmodel.platform.platform import Platform

MAX_UNGROUPED = 48
MAX_NODES = 300


def grouped_graph(platform: Platform) -> Any:
    """The graph of a platform, of at most 300 nodes.

    Up to 48 nodes it is ``Platform.graph``. In larger ones hosts that hang on the same node are
    one node of kind "hosts"; if that is not enough, large zones, then all zones, then zones with
    all that they hold are one node of kind "zone". Such nodes have ``hosts`` (their number) and a
    ``label``.
    """
    graph = platform.graph
    if graph.number_of_nodes() <= MAX_UNGROUPED:
        return graph
    small = _merge_alike(graph)
    if small.number_of_nodes() <= MAX_NODES:
        return small
    sizes = Counter(zone for _, zone in small.nodes(data="zone"))
    large = {zone for zone, size in sizes.items() if size > MAX_UNGROUPED}
    small = _merge_alike(_merge_zones(platform, lambda zone: zone if zone in large else None))
    if small.number_of_nodes() <= MAX_NODES:
        return small
    deepest = max(zone.depth for zone in platform.zones)
    for depth in range(deepest, -1, -1):
        above = _zones_above(platform, depth)
        small = _merge_alike(_merge_zones(platform, above.__getitem__))
        if small.number_of_nodes() <= MAX_NODES:
            break
    return small


def _zones_above(platform: Platform, depth: int) -> dict[str, str]:
    """Per zone the name of the one around it at a depth (of itself if it is less deep)."""
    above = {}
    for zone in platform.zones:
        top = zone
        while top.depth > depth:
            top = platform.zones[top.parent]
        above[zone.name] = top.name
    return above


def _merge_alike(graph: Any) -> Any:
    """Hosts, or zones, of one description that hang on the same node become one node."""

    def group(node: str, data: dict[str, Any]) -> Hashable:
        neighbours = list(graph.neighbors(node))
        if len(neighbours) != 1 or data["kind"] not in ("host", "zone"):
            return None
        if data["kind"] == "host":
            return neighbours[0], data["zone"], data["speed_flops"], data["cores"]
        return neighbours[0], data["hosts"], data["summary"]

    def describe(nodes: list[str]) -> dict[str, Any]:
        first = graph.nodes[nodes[0]]
        if first["kind"] == "host":
            cores = f"{first['cores']} x " if first["cores"] > 1 else ""
            speed = units.format_speed(first["speed_flops"], 3)
            label = f"{len(nodes):,} hosts\n{cores}{speed}"
            facts = {"kind": "hosts", "zone": first["zone"], "hosts": len(nodes), "label": label}
            return facts | ({"level": first["level"]} if "level" in first else {})
        label = f"{len(nodes):,} zones, each\n{first['summary']}"
        hosts = len(nodes) * first["hosts"]
        return {"kind": "zone", "zone": first["zone"], "hosts": hosts, "label": label}

    return _quotient(graph, group, describe)


def _merge_zones(platform: Platform, merged: Callable[[str], str | None]) -> Any:
    """Each zone for which ``merged`` names a zone becomes one node with that name."""
    graph = platform.graph
    topologies = {zone.name: zone.topology for zone in platform.zones}
    leaves = {zone.name for zone in platform.zones if not zone.is_internal}

    def group(node: str, data: dict[str, Any]) -> Hashable:
        zone = merged(data["zone"])
        # A link between zones stays, one inside a zone goes with it.
        between = data["kind"] == "link" and zone == data["zone"] and zone not in leaves
        return None if zone is None or between else (zone,)

    def describe(nodes: list[str]) -> dict[str, Any]:
        kinds = Counter(graph.nodes[node]["kind"] for node in nodes)
        zone = merged(graph.nodes[nodes[0]]["zone"])
        parts = [f"{kinds['host']:,} hosts"] if kinds["host"] else []
        parts += [f"{kinds['switch']:,} switches"] if kinds["switch"] else []
        summary = ", ".join(parts) or "no host"
        kind = topologies.get(zone or "", "").replace("_", " ").lower()
        label = "\n".join(part for part in (zone, kind, summary) if part)
        facts = {"kind": "zone", "zone": zone, "hosts": kinds["host"], "label": label}
        return facts | {"summary": summary}

    return _quotient(graph, group, describe)


def _quotient(
    graph: Any,
    group: Callable[[str, dict[str, Any]], Hashable],
    describe: Callable[[list[str]], dict[str, Any]],
) -> Any:
    """One node per group of two or more; edges between groups keep the facts of their first."""
    import networkx

    members: dict[Hashable, list[str]] = {}
    for node, data in graph.nodes(data=True):
        key = group(node, data)
        members.setdefault(("one", node) if key is None else ("many", key), []).append(node)
    small = networkx.Graph()
    names: dict[str, str] = {}
    for number, nodes in enumerate(members.values()):
        name = nodes[0] if len(nodes) == 1 else f"group {number}"
        small.add_node(name, **(graph.nodes[name] if len(nodes) == 1 else describe(nodes)))
        names |= dict.fromkeys(nodes, name)
    for a, b, data in graph.edges(data=True):
        ends = names[a], names[b]
        if ends[0] != ends[1] and not small.has_edge(*ends):
            small.add_edge(*ends, **data)
    return small
