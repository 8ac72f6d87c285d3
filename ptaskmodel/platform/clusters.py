"""The ``<cluster>`` element: flat, torus, fat tree or dragonfly, from parameters to objects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ptaskmodel import units
from ptaskmodel.platform.builder import MAX_LINKS, Builder, properties_of
from ptaskmodel.platform.elements import Element, short
from ptaskmodel.platform.model import FATPIPE
from ptaskmodel.platform.radicals import expand_radical
from ptaskmodel.platform.routing.cluster_tables import (
    LinkBlock,
    dragonfly_table,
    fat_tree_table,
    flat_cluster_table,
    torus_table,
)
from ptaskmodel.platform.zones import CLUSTER

MAX_PARAMETER = 10**9


class _Cables(NamedTuple):
    """What all links of a cluster have in common."""

    duplex: bool
    bandwidth_Bps: float
    latency_s: float


def make_cluster(builder: Builder, element: Element) -> None:
    """Add the zone of a cluster with its hosts, links and table of routes."""
    source = builder.source
    radicals = expand_radical(source, element)
    speeds = source.speeds_flops(element, "speed")
    cores = source.integer(element, "core", 1)
    policy = element["sharing_policy"]
    if policy == "FULLDUPLEX":
        source.note(element, "old", "FULLDUPLEX is an old name of SPLITDUPLEX")
    if policy == "FATPIPE":
        what = "sharing_policy FATPIPE has no effect on a cluster: its links are SHARED"
        source.note(element, "surprising", what)
    duplex = policy in ("SPLITDUPLEX", "FULLDUPLEX")
    cables = _Cables(duplex, source.bandwidth_Bps(element, "bw"), source.time_s(element, "lat"))
    zone = builder.open_zone(element, element["id"], CLUSTER)
    zone.topology = element["topology"]
    makers = {"FLAT": _flat, "TORUS": _torus, "FAT_TREE": _fat_tree, "DRAGONFLY": _dragonfly}
    parameters = _PARAMETERS[zone.topology](builder, element)
    nodes = _node_count(zone.topology, parameters, len(radicals))
    if nodes > len(radicals):
        what = f"topo_parameters describe {nodes} nodes, radical gives {len(radicals)}"
        raise source.error(element, f"{what}; make them agree")
    if nodes < len(radicals):
        what = f"topo_parameters describe {nodes} nodes; the last {len(radicals) - nodes} values"
        source.note(element, "ignored", f"{what} of radical are ignored")
    radicals = radicals[:nodes]
    names = [f"{element['prefix']}{radical}{element['suffix']}" for radical in radicals]
    builder.add_hosts(element, names, speeds, cores, properties=properties_of(element))
    makers[zone.topology](builder, element, radicals, parameters, cables)
    builder.close_zone()


def _flat(
    builder: Builder,
    element: Element,
    radicals: Sequence[int],
    _: Sequence[Sequence[int]],
    cables: _Cables,
) -> None:
    zone, prefix = builder.current(), f"{element['id']}_link_"
    zone.properties.update(properties_of(element))
    loopback = _loopbacks(builder, element, radicals)
    limiter = _limiters(builder, element, [f"{prefix}{radical}_limiter" for radical in radicals])
    private = builder.add_cables(element, [f"{prefix}{radical}" for radical in radicals], *cables)
    backbone = -1
    bandwidth, latency = _optional_link(builder, element, "bb")
    if bandwidth > 0 or latency > 0:
        name = f"{element['id']}_backbone"
        policy = element["bb_sharing_policy"]
        backbone = builder.add_links(element, [name], bandwidth, latency, policy)
    router = element["router_id"] or f"{element['prefix']}{element['id']}_router{element['suffix']}"
    builder.add_router(element, router)
    zone.walk = flat_cluster_table(
        len(radicals), limiter, (private, int(cables.duplex)), backbone, loopback
    )


def _torus(
    builder: Builder,
    element: Element,
    radicals: Sequence[int],
    parameters: Sequence[Sequence[int]],
    cables: _Cables,
) -> None:
    sizes, nodes = parameters[0], len(radicals)
    loopback = _loopbacks(builder, element, radicals)
    limiter = _limiters(builder, element, _limiter_names(element, range(nodes)))
    strides = [math.prod(sizes[:j]) for j in range(len(sizes))]
    names = []
    for i in range(nodes):
        for size, stride in zip(sizes, strides, strict=True):
            last = (i // stride) % size == size - 1
            after = i - (size - 1) * stride if last else i + stride
            names.append(f"{element['id']}_link_from_{i}_to_{after}")
    first = builder.add_cables(element, names, *cables)
    links = LinkBlock(cables.duplex, first, limiter, loopback)
    builder.current().walk = torus_table(sizes, links)


def _fat_tree(
    builder: Builder,
    element: Element,
    radicals: Sequence[int],
    parameters: Sequence[Sequence[int]],
    cables: _Cables,
) -> None:
    children, parents, counts = parameters
    nodes, levels = len(radicals), len(children)
    switches = sum(_fat_tree_width(children, parents, level) for level in range(1, levels + 1))
    loopback = _loopbacks(builder, element, radicals)
    numbers = [*range(nodes), *range(2 * nodes - 1, 2 * nodes - 1 - switches, -1)]
    limiter = _limiters(builder, element, _limiter_names(element, numbers))
    names = []
    unique, child_first = builder.fat_tree_links, 0
    for level in range(levels):
        low, width = math.prod(parents[:level]), _fat_tree_width(children, parents, level)
        parent_first = child_first + width
        for child in range(width):
            rest = child % low + low * parents[level] * (child // (low * children[level]))
            child_id = numbers[child_first + child]
            for digit in range(parents[level]):
                parent_id = numbers[parent_first + rest + low * digit]
                for _ in range(counts[level]):
                    names.append(f"link_from_{child_id}_{parent_id}_{unique}")
                    unique += 1
        child_first = parent_first
    first = builder.add_cables(element, names, *cables)
    links = LinkBlock(cables.duplex, first, limiter, loopback)
    shift = builder.fat_tree_hosts
    builder.current().walk = fat_tree_table(children, parents, counts, shift, links)
    builder.fat_tree_links = unique
    builder.fat_tree_hosts += nodes


def _fat_tree_width(children: Sequence[int], parents: Sequence[int], level: int) -> int:
    """Number of nodes of a level (0: the hosts)."""
    return math.prod(parents[:level]) * math.prod(children[level:])


def _dragonfly(
    builder: Builder,
    element: Element,
    radicals: Sequence[int],
    parameters: Sequence[Sequence[int]],
    cables: _Cables,
) -> None:
    (groups, n_blue), (chassis, n_black), (blades, n_green), (per,) = parameters
    nodes, routers = len(radicals), groups * chassis * blades
    loopback = _loopbacks(builder, element, radicals)
    numbers = [*range(nodes), *range(2 * nodes - 1, 2 * nodes - 1 - routers, -1)]
    limiter = _limiters(builder, element, _limiter_names(element, numbers))
    local = [
        f"local_link_from_router_{router}_to_node_{node}"
        for router in range(routers)
        for node in range(per)
    ]
    green = [
        f"green_link_in_chassis_{c}_between_routers_{j}_and_{k}"
        for _ in range(groups)
        for c in range(chassis)
        for j in range(blades)
        for k in range(j + 1, blades)
    ]
    black = [
        f"black_link_in_group_{group}_between_chassis_{j}_and_{k}_blade_{blade}"
        for group in range(groups)
        for j in range(chassis)
        for k in range(j + 1, chassis)
        for blade in range(blades)
    ]
    per_group = chassis * blades
    blue = [
        f"blue_link_between_group_{i}_and_{j}_routers_{i * per_group + j}_and_{j * per_group + i}"
        for i in range(groups)
        for j in range(i + 1, groups)
    ]
    first = len(builder.links)
    for names, factor in ((local, 1), (green, n_green), (black, n_black), (blue, n_blue)):
        unique = builder.dragonfly_links
        builder.dragonfly_links += len(names)
        ids = [f"{name}_{number}" for number, name in enumerate(names, unique)]
        bandwidth = cables.bandwidth_Bps * factor
        builder.add_cables(element, ids, cables.duplex, bandwidth, cables.latency_s)
    links = LinkBlock(cables.duplex, first, limiter, loopback)
    builder.current().walk = dragonfly_table(groups, chassis, blades, per, links)


def _optional_link(builder: Builder, element: Element, which: str) -> tuple[float, float]:
    """Bandwidth and latency of an optional link; 0 where not given."""
    bandwidth, latency = f"{which}_bw", f"{which}_lat"
    return (
        builder.source.bandwidth_Bps(element, bandwidth) if element[bandwidth] else 0.0,
        builder.source.time_s(element, latency) if element[latency] else 0.0,
    )


def _loopbacks(builder: Builder, element: Element, radicals: Sequence[int]) -> int:
    """One FATPIPE loopback per host if asked for; the index of the first, or -1."""
    bandwidth, latency = _optional_link(builder, element, "loopback")
    if bandwidth <= 0 and latency <= 0:
        return -1
    names = [f"{element['id']}_link_{radical}_loopback" for radical in radicals]
    return builder.add_links(element, names, bandwidth, latency, FATPIPE)


def _limiter_names(element: Element, numbers: Sequence[int]) -> list[str]:
    return [f"{element['id']}_link_{number}_limiter" for number in numbers]


def _limiters(builder: Builder, element: Element, names: Sequence[str]) -> int:
    """One limiter per node if asked for; the index of the first, or -1."""
    if not element["limiter_link"]:
        return -1
    bandwidth = builder.source.bandwidth_Bps(element, "limiter_link")
    return builder.add_links(element, names, bandwidth, 0.0) if bandwidth > 0 else -1


def _integers(builder: Builder, element: Element, text: str) -> list[int]:
    """Positive integers separated by commas, from a part of topo_parameters."""
    try:
        numbers = [units.parse_integer(item) for item in text.split(",")]
    except units.UnitError as error:
        raise builder.source.error(element, f"topo_parameters: {error}") from None
    if not all(0 < number <= MAX_PARAMETER for number in numbers):
        what = f"topo_parameters: {short(text)}; every number must be in 1 ... {MAX_PARAMETER}"
        raise builder.source.error(element, what)
    return numbers


def _flat_parameters(builder: Builder, element: Element) -> list[list[int]]:
    if element["topo_parameters"]:
        builder.source.note(element, "ignored", "topo_parameters have no effect on a FLAT cluster")
    return []


def _torus_parameters(builder: Builder, element: Element) -> list[list[int]]:
    sizes = _integers(builder, element, element["topo_parameters"])
    _bound_links(builder, element, len(sizes) * math.prod(sizes))
    return [sizes]


def _fat_tree_parameters(builder: Builder, element: Element) -> list[list[int]]:
    parts = [_integers(builder, element, part) for part in element["topo_parameters"].split(";")]
    if len(parts) != 4 or len(parts[0]) != 1 or any(len(p) != parts[0][0] for p in parts[1:]):
        what = f"topo_parameters {short(element['topo_parameters'])}; write 'levels;children of "
        what += "each level;parents of each level;cables of each level', e.g. '2;4,4;1,2;1,2'"
        raise builder.source.error(element, what)
    children, parents, counts = parts[1:]
    links = sum(
        _fat_tree_width(children, parents, level) * parents[level] * counts[level]
        for level in range(len(children))
    )
    _bound_links(builder, element, links)
    return [children, parents, counts]


def _dragonfly_parameters(builder: Builder, element: Element) -> list[list[int]]:
    parts = [_integers(builder, element, part) for part in element["topo_parameters"].split(";")]
    if [len(part) for part in parts] != [2, 2, 2, 1]:
        what = f"topo_parameters {short(element['topo_parameters'])}; write 'groups,blue cables;"
        what += "chassis,black cables;blades,green cables;nodes per blade', e.g. '2,1;2,1;2,1;4'"
        raise builder.source.error(element, what)
    (groups, _), (chassis, _), (blades, _), (per,) = parts
    if blades < groups:
        what = f"topo_parameters: {groups} groups but {blades} blades per chassis; "
        raise builder.source.error(element, f"{what}give at least one blade per group")
    routers = groups * chassis * blades
    _bound_links(builder, element, routers * (per + blades + chassis) + groups * groups)
    return parts


def _bound_links(builder: Builder, element: Element, links: int) -> None:
    if links > MAX_LINKS:
        what = f"topo_parameters describe {links} links, more than {MAX_LINKS}; use fewer"
        raise builder.source.error(element, what)


def _node_count(topology: str, parameters: Sequence[Sequence[int]], radicals: int) -> int:
    if topology == "FLAT":
        return radicals
    if topology == "DRAGONFLY":
        return math.prod(part[0] for part in parameters)
    return math.prod(parameters[0])


_PARAMETERS = {
    "FLAT": _flat_parameters,
    "TORUS": _torus_parameters,
    "FAT_TREE": _fat_tree_parameters,
    "DRAGONFLY": _dragonfly_parameters,
}
