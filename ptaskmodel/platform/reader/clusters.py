"""The ``<cluster>`` element: a zone of equal hosts, linked by the topology of its family.

`expand_radical` reads radicals of clusters and cabinets: "0-3,7" means 0, 1, 2, 3, 7.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ptaskmodel import units
from ptaskmodel.platform.builder import CLUSTER, MAX_HOSTS, MAX_LINKS, Builder, properties_of
from ptaskmodel.platform.facts import FATPIPE, short
from ptaskmodel.platform.reader.elements import MAY_BE_EMPTY, Element, Source
from ptaskmodel.platform.topologies import BY_NAME, kind_of
from ptaskmodel.platform.topologies.topology import ParameterError, Topology, WalkTable

_NUMBERS = re.compile(r"[+-]?\d+(-[+-]?\d+)?(,[+-]?\d+(-[+-]?\d+)?)*", re.ASCII)


def expand_radical(source: Source, element: Element) -> list[int]:
    """The integers of the ``radical`` attribute, in the order written.

    Raises PlatformError if it cannot be read, or holds nothing or too much.
    """
    text = element["radical"]
    radicals: list[int] = []
    for group in text.split(","):
        parts = group.split("-")
        try:
            bounds = [units.parse_integer(part) for part in parts]
        except units.UnitError as error:
            what = f"radical {short(text)}: {error}; write e.g. '0-15,20'"
            raise source.error(element, what) from None
        if len(bounds) > 2:
            what = f"radical {short(text)}: the group {short(group)} has more than two parts"
            raise source.error(element, f"{what}; write e.g. '0-15,20'")
        if bounds[-1] - bounds[0] + len(radicals) >= MAX_HOSTS:
            what = f"radical {short(text)} stands for more than {MAX_HOSTS} hosts; use fewer"
            raise source.error(element, what)
        radicals.extend(range(bounds[0], bounds[-1] + 1))
    if not radicals:
        raise source.error(element, f"radical {short(text)} stands for no host; write e.g. '0-15'")
    if not _NUMBERS.fullmatch(text):
        what = f"radical {short(text)} is read as {_read_as(text)}, as SimGrid does"
        source.hint(element, "number", f"{what}; write e.g. '0-15,20'")
    return radicals


def _read_as(text: str) -> str:
    groups = (group.split("-") for group in text.split(","))
    return short(",".join("-".join(str(units.parse_integer(each)) for each in g) for g in groups))


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
    site = ClusterSite(builder, element)
    zone = builder.open_zone(element, element["id"], CLUSTER)
    zone.topology = element["topology"]
    zone.cluster = {
        name: value for name, value in element.attributes.items() if value or name in MAY_BE_EMPTY
    }
    topology = _topology(builder, element, len(radicals))
    if topology.hosts > len(radicals):
        what = f"topo_parameters describe {topology.hosts} nodes, radical gives {len(radicals)}"
        raise source.error(element, f"{what}; make them agree")
    if topology.hosts < len(radicals):
        what = f"topo_parameters describe {topology.hosts} nodes; "
        what += f"the last {len(radicals) - topology.hosts} values"
        source.note(element, "ignored", f"{what} of radical are ignored")
    site.numbers = radicals[: topology.hosts]
    names = [f"{element['prefix']}{number}{element['suffix']}" for number in site.numbers]
    builder.add_hosts(element, names, speeds, cores, properties=properties_of(element))
    zone.walk = WalkTable(kind_of(type(topology)), topology.declare(site))
    builder.close_zone()


def _topology(builder: Builder, element: Element, hosts: int) -> Topology:
    family, text = BY_NAME[element["topology"]], element["topo_parameters"]
    try:
        topology = family.parse(text, hosts)
    except ParameterError as error:
        raise builder.source.error(element, str(error)) from None
    if text and not topology.parameters:
        what = f"topo_parameters have no effect on a {family.name} cluster"
        builder.source.note(element, "ignored", what)
    if topology.links > MAX_LINKS:
        what = f"topo_parameters describe {topology.links} links, more than {MAX_LINKS}; use fewer"
        raise builder.source.error(element, what)
    return topology


class ClusterSite:
    """The cluster being declared, as topologies see it (``topology.Site``)."""

    def __init__(self, builder: Builder, element: Element) -> None:
        self._builder = builder
        self._element = element
        self.id = element["id"]
        self.numbers: Sequence[int] = ()
        self.duplex = element["sharing_policy"] in ("SPLITDUPLEX", "FULLDUPLEX")
        self.counts = builder.counts
        self._bandwidth_Bps = builder.source.bandwidth_Bps(element, "bw")
        self._latency_s = builder.source.time_s(element, "lat")

    def add_loopbacks(self) -> int:
        """One FATPIPE loopback a host if asked for; the index of the first, or -1."""
        bandwidth, latency = self._optional_link("loopback")
        if bandwidth <= 0 and latency <= 0:
            return -1
        names = [f"{self.id}_link_{number}_loopback" for number in self.numbers]
        return self._builder.add_links(self._element, names, bandwidth, latency, FATPIPE)

    def add_limiters(self, numbers: Sequence[int]) -> int:
        """One limiter a node if asked for; the index of the first, or -1."""
        if not self._element["limiter_link"]:
            return -1
        bandwidth = self._builder.source.bandwidth_Bps(self._element, "limiter_link")
        names = [f"{self.id}_link_{number}_limiter" for number in numbers]
        if bandwidth == 0:
            return -1
        return self._builder.add_links(self._element, names, bandwidth, 0.0)

    def add_cables(self, ids: Sequence[str], factor: float = 1.0) -> int:
        """Cables of ``factor`` times the bandwidth; the index of the first."""
        bandwidth = self._bandwidth_Bps * factor
        return self._builder.add_cables(self._element, ids, self.duplex, bandwidth, self._latency_s)

    def add_backbone(self) -> int:
        """One link that all share if asked for; its index, or -1."""
        bandwidth, latency = self._optional_link("bb")
        if bandwidth <= 0 and latency <= 0:
            return -1
        name, policy = f"{self.id}_backbone", self._element["bb_sharing_policy"]
        return self._builder.add_links(self._element, [name], bandwidth, latency, policy)

    def keep_properties(self) -> None:
        """The properties of the cluster are those of its zone, too."""
        self._builder.current().properties.update(properties_of(self._element))

    def add_router(self) -> None:
        """The router by which a star is left and entered."""
        prefix, suffix = self._element["prefix"], self._element["suffix"]
        name = self._element["router_id"] or f"{prefix}{self.id}_router{suffix}"
        self._builder.add_router(self._element, name)

    def _optional_link(self, which: str) -> tuple[float, float]:
        """Bandwidth and latency of an optional link; 0 where not given."""
        source, element = self._builder.source, self._element
        bandwidth, latency = f"{which}_bw", f"{which}_lat"
        return (
            source.bandwidth_Bps(element, bandwidth) if element[bandwidth] else 0.0,
            source.time_s(element, latency) if element[latency] else 0.0,
        )
