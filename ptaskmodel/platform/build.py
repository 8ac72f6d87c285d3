"""Build platforms in Python: calls for the elements of a platform file, with the same checks."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from ptaskmodel.errors import PlatformError
from ptaskmodel.platform.builder import Builder, Facts
from ptaskmodel.platform.facts import SHARED, AvailabilityTrace, short
from ptaskmodel.platform.reader.document import Document
from ptaskmodel.platform.reader.elements import Source
from ptaskmodel.platform.topologies.star import Star
from ptaskmodel.platform.topologies.topology import Topology

P = TypeVar("P")
# Text with a unit, as in a file, or a number in flop/s, B/s or s.
Quantity = str | float
# The name of a link; of a split one, the name and "UP" or "DOWN".
Crossed = str | tuple[str, str]
# A trace, or its events: date in s, value.
Events = AvailabilityTrace | Sequence[tuple[float, float]]

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class PlatformBuild(Generic[P]):
    """A platform being built; see `Platform.build`.

    make: makes the platform of the facts. name, routing: of the outermost zone. config: values of
    its ``<config>`` by name (None: none). A quantity (speed, bandwidth, latency) is a number in
    flop/s, B/s or s, or text with a unit, as in a file. A trace is an `AvailabilityTrace` or pairs
    of a time (s) and a value. properties: text by name, for other programs.

    Names are checked at once: what a call refers to must be there. Every call raises PlatformError
    for what a file would be refused for. What is odd but usable is in ``Platform.notes``.
    """

    def __init__(
        self,
        make: Callable[[Facts], P],
        name: str,
        routing: str,
        config: Mapping[str, str | float] | None,
    ) -> None:
        self._make = make
        self._document = Document(Builder(Source(Path(name), lines=False)), ordered=False)
        self._calls = 0
        self._traces: list[tuple[str, str, Events]] = []
        self._finished = False
        self._open("platform", {"version": "4.1"})
        if config:
            given = {key: str(value) for key, value in config.items()}
            self._declare("config", {}, properties=given)
        self._open("zone", {"id": name, "routing": routing})

    @contextlib.contextmanager
    def zone(
        self, name: str, routing: str = "Full", properties: Mapping[str, str] | None = None
    ) -> Iterator[None]:
        """Declare a zone inside the present one; what the ``with`` block declares is in it.

        name: of the zone. routing: Full, Floyd, Dijkstra, Cluster, Vivaldi, Wifi or None.
        properties: of the zone.
        """
        self._open("zone", {"id": name, "routing": routing})
        self._properties(properties)
        yield
        self._document.end()

    def host(
        self,
        name: str,
        speed: Quantity | Sequence[Quantity],
        cores: int = 1,
        *,
        pstate: int = 0,
        coordinates: Sequence[float] | None = None,
        properties: Mapping[str, str] | None = None,
        speed_trace: Events | None = None,
        state_trace: Events | None = None,
    ) -> None:
        """Declare the host ``name`` of so many cores of ``speed`` each (one speed for each pstate).

        pstate: the one it begins in. coordinates: x, y and height in ms, in a Vivaldi zone.
        properties: of the host. Values of ``speed_trace`` are factors of the speed, of
        ``state_trace`` 1 (on) or 0 (off).
        """
        facts = {
            "id": name,
            "speed": _speed(speed),
            "core": str(cores),
            "pstate": str(pstate),
            "coordinates": _coordinates(coordinates),
        }
        self._declare("host", facts, properties=properties)
        self._connect(name, SPEED=speed_trace, HOST_AVAIL=state_trace)

    def router(self, name: str, *, coordinates: Sequence[float] | None = None) -> None:
        """Declare the router ``name``: a point of routes that computes nothing.

        coordinates: as of `host`.
        """
        self._declare("router", {"id": name, "coordinates": _coordinates(coordinates)})

    def link(
        self,
        name: str,
        bandwidth: Quantity | Sequence[Quantity],
        latency: Quantity = 0.0,
        policy: str = SHARED,
        *,
        properties: Mapping[str, str] | None = None,
        bandwidth_trace: Events | None = None,
        latency_trace: Events | None = None,
        state_trace: Events | None = None,
    ) -> None:
        """Declare the link ``name``.

        bandwidth: B/s; several of them in a Wifi zone. latency: s. policy: SHARED by both
        directions, SPLITDUPLEX (one each way) or FATPIPE. properties: of the link. Values of
        ``bandwidth_trace`` are B/s, of ``latency_trace`` s, of ``state_trace`` 1 (on) or 0 (off).
        """
        facts = {
            "id": name,
            "bandwidth": _several(bandwidth, "Bps"),
            "latency": _quantity(latency, "s"),
            "sharing_policy": policy,
        }
        self._declare("link", facts, properties=properties)
        traces = {
            "BANDWIDTH": bandwidth_trace,
            "LATENCY": latency_trace,
            "LINK_AVAIL": state_trace,
        }
        self._connect(name, **traces)

    def route(
        self,
        source: str,
        destination: str,
        links: Iterable[Crossed],
        *,
        symmetrical: bool = True,
        bypass: bool = False,
    ) -> None:
        """Declare the links from a host or router of the present zone to another.

        source, destination: their names. symmetrical: the way back has the same links. bypass: one
        way only, used before the zone's own routes.
        """
        facts = {"src": source, "dst": destination}
        self._route("bypassRoute" if bypass else "route", facts, links, symmetrical, bypass)

    def zone_route(
        self,
        source: str,
        destination: str,
        gateways: tuple[str, str],
        links: Iterable[Crossed],
        *,
        symmetrical: bool = True,
        bypass: bool = False,
    ) -> None:
        """Declare the links from a zone inside the present one to another, as `route` does.

        source, destination: names of the zones. gateways: a host or router of each, between which
        the links are. symmetrical, bypass: as of `route`.
        """
        facts = {"src": source, "dst": destination}
        facts |= dict(zip(("gw_src", "gw_dst"), gateways, strict=True))
        tag = "bypassZoneRoute" if bypass else "zoneRoute"
        self._route(tag, facts, links, symmetrical, bypass)

    def backbone(self, name: str, bandwidth: Quantity, latency: Quantity = 0.0) -> None:
        """Declare the link ``name`` that all routes cross, of a zone of routing Cluster.

        bandwidth: B/s. latency: s.
        """
        facts = {"bandwidth": _quantity(bandwidth, "Bps"), "latency": _quantity(latency, "s")}
        self._declare("backbone", {"id": name} | facts)

    def host_link(self, host: str, up: str, down: str | None = None) -> None:
        """Declare the links of a host, in a zone of routing Cluster.

        up: name of the link from the host. down: of the one to it (None: the same).
        """
        self._declare("host_link", {"id": host, "up": up, "down": up if down is None else down})

    def peer(
        self,
        name: str,
        speed: Quantity | Sequence[Quantity],
        bandwidth_in: Quantity,
        bandwidth_out: Quantity,
        coordinates: Sequence[float],
    ) -> None:
        """Declare the host ``name`` and its two links, in a zone of routing Vivaldi.

        speed: of its core, one for each pstate. bandwidth_in, bandwidth_out: of its links, B/s.
        coordinates: x, y and height in ms.
        """
        facts = {
            "id": name,
            "speed": _speed(speed),
            "bw_in": _quantity(bandwidth_in, "Bps"),
            "bw_out": _quantity(bandwidth_out, "Bps"),
            "coordinates": _coordinates(coordinates),
        }
        self._declare("peer", facts)

    def cluster(
        self,
        name: str,
        hosts: int | Topology,
        *,
        speed: Quantity | Sequence[Quantity],
        bandwidth: Quantity,
        latency: Quantity,
        cores: int = 1,
        prefix: str | None = None,
        suffix: str = "",
        first: int = 0,
        policy: str = "SPLITDUPLEX",
        backbone: Quantity | None = None,
        backbone_latency: Quantity | None = None,
        backbone_policy: str = SHARED,
        limiter: Quantity | None = None,
        loopback: Quantity | None = None,
        loopback_latency: Quantity | None = None,
        router: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Declare equal hosts around a switch (hosts: their number), or in a topology.

        hosts: a `Torus`, `FatTree` or `Dragonfly` is a topology. Hosts are called ``prefix`` (None:
        the cluster's name and a dash), a number from ``first`` on, ``suffix``; each has ``cores``
        cores of ``speed`` (one for each pstate). bandwidth (B/s), latency (s), policy: of each
        cable. backbone: B/s that the switch carries in all (None: whatever comes), with
        backbone_latency and backbone_policy. limiter: B/s that a node carries. loopback: B/s that a
        host sends to itself, with loopback_latency. router: the name of the gateway of a flat
        cluster. properties: of each host.
        """
        topology = Star(hosts) if isinstance(hosts, int) else hosts
        facts = {
            "id": name,
            "prefix": f"{name}-" if prefix is None else prefix,
            "suffix": suffix,
            "radical": f"{first}-{first + topology.hosts - 1}",
            "speed": _speed(speed),
            "core": str(cores),
            "bw": _quantity(bandwidth, "Bps"),
            "lat": _quantity(latency, "s"),
            "sharing_policy": policy,
            "topology": topology.name,
            "topo_parameters": topology.parameters,
            "bb_bw": _quantity(backbone, "Bps"),
            "bb_lat": _quantity(backbone_latency, "s"),
            "bb_sharing_policy": backbone_policy,
            "limiter_link": _quantity(limiter, "Bps"),
            "loopback_bw": _quantity(loopback, "Bps"),
            "loopback_lat": _quantity(loopback_latency, "s"),
            "router_id": router or "",
        }
        self._declare("cluster", facts, properties=properties)

    def finish(self) -> P:
        """The platform. Nothing can be added any more."""
        if not self._finished:
            self._document.end()
            for number, (kind, element, events) in enumerate(self._traces):
                name = events.name if isinstance(events, AvailabilityTrace) else f"{element} {kind}"
                self._trace(f"{name} {number}", events)
                facts = {"kind": kind, "trace": f"{name} {number}", "element": element}
                self._declare("trace_connect", facts)
            self._document.end()
            self._facts = self._document.finish()
            self._finished = True
        return self._make(self._facts)

    def _trace(self, name: str, events: Events) -> None:
        period_s = 0.0
        if isinstance(events, AvailabilityTrace):
            period_s = events.period_s or 0.0
            events = tuple(zip(events.dates_s, events.values, strict=True))
        self._open("trace", {"id": name, "periodicity": repr(period_s)})
        text = "\n".join(f"{float(date)!r} {float(value)!r}" for date, value in events)
        self._document.characters(text, self._calls)
        self._document.end()

    def _connect(self, element: str, **traces: Events | None) -> None:
        self._traces += [
            (kind, element, trace) for kind, trace in traces.items() if trace is not None
        ]

    def _route(
        self,
        tag: str,
        facts: dict[str, str],
        links: Iterable[Crossed],
        symmetrical: bool,
        bypass: bool,
    ) -> None:
        if not bypass:
            facts["symmetrical"] = "YES" if symmetrical else "NO"

        def crossed() -> None:
            for link in [links] if isinstance(links, str) else links:
                name, direction = (link, "NONE") if isinstance(link, str) else link
                self._declare("link_ctn", {"id": name, "direction": direction})

        self._whole(tag, facts, crossed)

    def _declare(
        self, tag: str, facts: dict[str, str], properties: Mapping[str, str] | None = None
    ) -> None:
        self._whole(tag, facts, lambda: self._properties(properties))

    def _whole(self, tag: str, facts: dict[str, str], inside: Callable[[], None]) -> None:
        """Declare an element with what is inside; if that is refused, it leaves none open."""

        def declare() -> None:
            self._open(tag, facts)
            inside()
            self._document.end()

        if (error := self._document.tried(declare)) is not None:
            raise error

    def _properties(self, properties: Mapping[str, str] | None) -> None:
        for key, value in (properties or {}).items():
            self._declare("prop", {"id": key, "value": str(value)})

    def _open(self, tag: str, facts: dict[str, str]) -> None:
        if self._finished:
            raise PlatformError(f"{tag}: the platform is finished; build another one")
        for key, value in facts.items():
            if not isinstance(value, str) or _NO_XML.search(value):
                what = f"{tag}: {key}={short(str(value))}; give text that a file can hold"
                raise PlatformError(what)
        self._calls += 1
        self._document.start(tag, facts, self._calls)


def _quantity(value: Quantity | None, unit: str) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return f"{float(value)!r}{unit}"


def _several(value: Quantity | Sequence[Quantity], unit: str) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(_quantity(item, unit) for item in value)
    return _quantity(value, unit)


def _speed(value: Quantity | Sequence[Quantity]) -> str:
    return _several(value, "f")


def _coordinates(coordinates: Sequence[float] | None) -> str:
    return "" if coordinates is None else " ".join(repr(float(x)) for x in coordinates)
