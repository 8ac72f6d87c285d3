"""Elements that declare routes and bypasses: points, gateways, links and their reverse."""

from __future__ import annotations

from ptaskmodel.platform.builder import Builder
from ptaskmodel.platform.declared import CLUSTER, LOOPBACK, ROOT, ROUTED_KINDS, LocalRoute, Zone
from ptaskmodel.platform.facts import LOOPBACK_NAME, short
from ptaskmodel.platform.reader.elements import Element


def declare_route(builder: Builder, element: Element) -> None:
    """``route`` and ``zoneRoute``: one route, and its reverse unless symmetrical="NO"."""
    zone = builder.current()
    between_zones = element.tag == "zoneRoute"
    ends = [_end(builder, element, attribute, between_zones) for attribute in ("src", "dst")]
    for attribute, point in zip(("src", "dst"), ends, strict=True):
        if builder.points.zone[point] != zone.number:
            what = f"{attribute} {short(element[attribute])} is not directly in the zone"
            raise builder.source.error(element, f"{what} {short(zone.name)}; move the route")
    gateways = (-1, -1)
    if between_zones:
        gateways = _gateways(builder, element, ends)
        if gateways[0] == gateways[1]:
            raise builder.source.error(element, "gw_src and gw_dst are the same; name one per zone")
        if ends[0] == ends[1]:
            raise builder.source.error(element, "src and dst are the same zone; remove the route")
    links, back = _links(builder, element)
    symmetrical = element["symmetrical"].upper() == "YES"
    source, destination = (builder.points.position[point] for point in ends)
    if zone.kind in ROUTED_KINDS:
        _add(builder, element, zone, (source, destination), LocalRoute(links, *gateways))
        if symmetrical and source != destination:
            reverse = LocalRoute(back, *gateways[::-1])
            _add(builder, element, zone, (destination, source), reverse)
    elif zone.kind == CLUSTER and not between_zones and source == destination:
        builder.star_paths(ends[0]).loopback = links
    else:
        what = f"a zone of routing {zone.kind} takes no route between two points"
        raise builder.source.error(element, f"{what}; use routing='Full', Floyd or Dijkstra")


def declare_bypass(builder: Builder, element: Element) -> None:
    """``bypassRoute`` and ``bypassZoneRoute``: one way, consulted before the zone's routes."""
    between_zones = element.tag == "bypassZoneRoute"
    ends = [_end(builder, element, attribute, between_zones) for attribute in ("src", "dst")]
    zone = builder.current()
    gateways = _gateways(builder, element, ends) if between_zones else (-1, -1)
    links, _ = _links(builder, element)
    for attribute, point in zip(("src", "dst"), ends, strict=True):
        if not _is_within(builder, point, zone.number):
            what = f"{attribute} {short(element[attribute])} is not in the zone {short(zone.name)}"
            builder.source.note(element, "unused", f"{what}: the bypass is never used; move it")
    key = (ends[0], ends[1])
    if key in zone.bypasses:
        raise builder.source.error(element, "a bypass for these two exists; remove one")
    zone.bypasses[key] = LocalRoute(links, *gateways)


def _end(builder: Builder, element: Element, attribute: str, is_zone: bool) -> int:
    """The point that an attribute names."""
    if not is_zone:
        point = builder.point_by_name(element, attribute)
        if point in builder.points.child_zone:
            what = f"{attribute} {short(element[attribute])} is a zone; write a zoneRoute"
            raise builder.source.error(element, what)
        return point
    number = builder.zone_index.get(element[attribute])
    if number is None:
        what = f"{attribute}: unknown zone {short(element[attribute])}; declare it before this line"
        raise builder.source.unknown(element, what)
    return builder.zones[number].point


def _gateways(builder: Builder, element: Element, ends: list[int]) -> tuple[int, int]:
    """The two gateways, each a host or router inside its zone."""
    gateways = []
    for attribute, end, name in zip(("gw_src", "gw_dst"), ends, ("src", "dst"), strict=True):
        gateway = builder.point_by_name(element, attribute)
        if gateway in builder.points.child_zone:
            what = f"{attribute} {short(element[attribute])} is a zone; name a host or router of it"
            raise builder.source.error(element, what)
        if not _is_within(builder, gateway, builder.points.child_zone[end]):
            what = f"{attribute} {short(element[attribute])} is not in {short(element[name])}"
            raise builder.source.error(element, f"{what}; name one of its hosts or routers")
        gateways.append(gateway)
    return (gateways[0], gateways[1])


def _is_within(builder: Builder, point: int, zone: int) -> bool:
    """Whether a zone holds a point, at any depth."""
    number = builder.points.zone[point]
    while number not in (ROOT, zone):
        number = builder.zones[number].parent
    return number == zone


def _links(builder: Builder, element: Element) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Links of the route, and of its reverse (halves of split links swapped)."""
    links, back = [], []
    for child in element.children:
        name, direction = child["id"], child["direction"]
        if name == LOOPBACK_NAME:
            link = twin = LOOPBACK
        elif direction == "NONE":
            link = twin = builder.link_by_name(child, name)
        elif name in builder.duplex:
            link = builder.duplex[name] + (direction == "DOWN")
            twin = builder.duplex[name] + (direction == "UP")
        else:
            builder.link_by_name(child, name)
            raise builder.source.error(
                child, f"direction {direction} on a link that is not SPLITDUPLEX; remove it"
            )
        links.append(link)
        back.append(twin)
    if not links:
        raise builder.source.error(element, "the route has no link; add a link_ctn")
    return tuple(links), tuple(back[::-1])


def _add(
    builder: Builder, element: Element, zone: Zone, key: tuple[int, int], route: LocalRoute
) -> None:
    if key in zone.routes:
        names = " -> ".join(short(builder.points.names[zone.points[end]]) for end in key)
        hint = "remove one, or write symmetrical='NO' on both"
        raise builder.source.error(element, f"a route {names} exists already; {hint}")
    zone.routes[key] = route
