"""The SimGrid platform language (DTD versions 4 and 4.1): its elements, and how to read one.

`Source` reads the attributes of an element and raises errors that name file and line. The tables
at the end list tags, attributes and nesting as data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from ptaskmodel import units
from ptaskmodel.errors import PlatformError
from ptaskmodel.platform.facts import short
from ptaskmodel.platform.topologies import BY_NAME
from ptaskmodel.remarks import WARNING, Account, Remark, finding

# Rates of real networks in Gbit/s: the same figure in gigabytes is suspect, except near a host.
_NETWORK_GBIT = frozenset({10.0, 25.0, 40.0, 56.0, 100.0, 200.0, 400.0})
# An eighth of such figures, in Gbit/s, was surely meant in gigabytes.
_EIGHTHS_GBIT = frozenset({0.125, 1.25, 12.5})
_LOCAL_RATES = frozenset({"loopback_bw", "limiter_link", "read_bw", "write_bw"})

MAX_HINTS = 1000
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")


Value = TypeVar("Value")


class UnknownName(PlatformError):
    """Nothing in the platform has a name that is used."""


class Element:
    """An XML element: tag, attributes (defaults filled in), line, children that belong to it."""

    __slots__ = ("attributes", "children", "line", "tag", "text")

    def __init__(self, tag: str, attributes: dict[str, str], line: int) -> None:
        self.tag = tag
        self.attributes = attributes
        self.line = line
        self.children: list[Element] = []
        self.text = ""

    def __getitem__(self, name: str) -> str:
        return self.attributes[name]

    def __str__(self) -> str:
        attributes = self.attributes
        if attributes.get("id"):
            return f"{self.tag} {short(attributes['id'])}"
        if "src" in attributes and "dst" in attributes:
            return f"{self.tag} {short(attributes['src'])} -> {short(attributes['dst'])}"
        return self.tag

    def of(self, tag: str) -> Iterator[Element]:
        """Its children of one tag."""
        return (child for child in self.children if child.tag == tag)


class Source:
    """The file being read: makes the errors, keeps the account, converts attribute values.

    lines: whether errors name the line (the elements of a platform built in Python have none).
    """

    def __init__(self, path: Path, account: Account | None = None, lines: bool = True) -> None:
        self.path = path
        self._lines = lines
        self.account = account or Account(path, PlatformError)
        self.hints: list[Remark] = []
        # Of such a file it is enough to say that it is old.
        self.is_version3 = False

    def error(self, element: Element, what: str) -> PlatformError:
        """The error ``file:line: element: what`` at an `element`, to be raised."""
        return self.error_at(element.line, f"{element}: {what}")

    def unknown(self, element: Element, what: str) -> UnknownName:
        """The same error, of a name at an `element` that nothing has, as `what` says."""
        return UnknownName(self.error(element, what).message)

    def error_at(self, line: int, what: str) -> PlatformError:
        place = self.account.file
        return PlatformError(f"{place}:{line}: {what}" if self._lines else f"{place}: {what}")

    def refuse(self, element: Element, what: str, instead: Value) -> Value:
        """Refuse a value of an `element` for `what`: raise the error, or go on with `instead`.

        A file is read on, so that one message has all its problems (see `Account.check`).
        """
        error = self.error(element, what)
        if not self._lines:
            raise error
        self.account.refused(error)
        return instead

    def note(self, element: Element, kind: str, what: str) -> None:
        """Tell the account that `what` is odd at an element; kind: a word for what is alike."""
        if not (self.is_version3 and kind in ("old", "unit")):
            self.account.tell(kind, f"{element}: {what}", element.line, level=WARNING)

    def hint(self, element: Element, kind: str, what: str) -> None:
        """Remember something for whoever validates the file; at most MAX_HINTS in all."""
        if len(self.hints) < MAX_HINTS:
            self.hints.append(finding(element.line, kind, f"{element}: {what}"))

    def time_s(self, element: Element, name: str) -> float:
        return self._quantity(element, name, element[name], units.TIME_UNITS, "s")

    def bandwidth_Bps(self, element: Element, name: str) -> float:
        return self._quantity(element, name, element[name], units.BANDWIDTH_UNITS, "Bps")

    def bandwidths_Bps(self, element: Element, name: str) -> tuple[float, ...]:
        items = element[name].replace(";", ",").split(",")
        return tuple(
            self._quantity(element, name, item.strip(), units.BANDWIDTH_UNITS, "Bps")
            for item in items
        )

    def speeds_flops(self, element: Element, name: str) -> tuple[float, ...]:
        """One speed per pstate."""
        return tuple(
            self._quantity(element, name, item.strip(), units.SPEED_UNITS, "f")
            for item in element[name].split(",")
        )

    def number(self, element: Element, name: str, instead: float = 0.0) -> float:
        """The attribute `name` of an `element`: a finite number without unit.

        instead: what a file with another is read on with.
        """
        try:
            value, rest = units.split_float(element[name])
        except units.UnitError as error:
            return self.refuse(element, f"{name}: {error}; give a number", instead)
        if rest.strip() or not abs(value) < 1e300:
            what = f"{name}={short(element[name])}; give a finite number"
            return self.refuse(element, what, instead)
        return value

    def integer(self, element: Element, name: str, least: int) -> int:
        try:
            value = units.parse_integer(element[name])
        except units.UnitError as error:
            return self.refuse(element, f"{name}: {error}; give an integer", least)
        if value < least:
            return self.refuse(element, f"{name} is {value}; it must be at least {least}", least)
        if not _INTEGER.fullmatch(element[name]):
            what = f"{name}={short(element[name])} is read as {value}, as SimGrid does"
            self.hint(element, "number", f"{what}; write an integer")
        return value

    def coordinates(self, element: Element) -> tuple[float, float, float] | None:
        """The three numbers of Vivaldi, or None if not given."""
        if not element["coordinates"]:
            return None
        try:
            numbers = tuple(float(word) for word in element["coordinates"].split())
        except ValueError:
            numbers = ()
        if len(numbers) != 3 or not all(abs(number) < 1e300 for number in numbers):
            what = f"coordinates {short(element['coordinates'])}; give three numbers: 'x y z'"
            return self.refuse(element, what, None)
        return (numbers[0], numbers[1], numbers[2])

    def _quantity(
        self, element: Element, name: str, text: str, known: dict[str, float], default: str
    ) -> float:
        try:
            value, bare = units.parse_quantity(text, known, default)
        except units.UnitError as error:
            return self.refuse(element, f"{name}: {error}", 1.0)
        if bare:
            self.note(
                element, "unit", f"{name}={text!r} has no unit, which means {default}; write it"
            )
        suspect = text.endswith("GBps") and value / 1e9 in _NETWORK_GBIT
        if suspect and name not in _LOCAL_RATES:
            what = f"{name}={text!r} is in bytes; if you mean {text[:-3]}bps, write that"
            self.hint(element, "bits or bytes", what)
        if text.endswith("bps") and value * 8 / 1e9 in _EIGHTHS_GBIT:
            what = f"{name}={text!r} is in bits; if you mean bytes, write {text[:-3]}Bps"
            self.hint(element, "bits or bytes", what)
        return value


class Tag(NamedTuple):
    """Attributes of a tag: their defaults ("" if there is none), those that must be given, and
    the texts allowed where there are but a few."""

    attributes: dict[str, str]
    defaults: dict[str, str]
    required: tuple[str, ...]
    choices: dict[str, tuple[str, ...]]


def _attributes(text: str, **choices: str) -> Tag:
    """From "id src core=1": names (required) and name=default pairs; ``choices``: "YES NO"."""
    attributes, defaults = {}, {}
    for item in text.split():
        name, given, default = item.partition("=")
        attributes[name] = default
        if given:
            defaults[name] = default
    required = tuple(name for name in attributes if name not in defaults)
    return Tag(attributes, defaults, required, {k: tuple(v.split()) for k, v in choices.items()})


_SYMMETRICAL = "YES NO yes no"
_ZONE_ROUTE = "src dst gw_src gw_dst"
_HOSTS = "id prefix suffix radical speed bw lat"
_ACTOR = "host function start_time=-1 kill_time=-1 on_failure=DIE"
_CLUSTER = (
    f"{_HOSTS} core=1 sharing_policy=SPLITDUPLEX topology=FLAT topo_parameters= bb_bw= bb_lat= "
    "bb_sharing_policy=SHARED router_id= limiter_link= loopback_bw= loopback_lat="
)

TAGS: dict[str, Tag] = {
    "platform": _attributes("version=0.0"),
    "config": _attributes("id="),
    "random": _attributes("id min= max= mean= std_deviation= radical= seed= generator="),
    "zone": _attributes("id routing"),
    "host": _attributes(
        "id speed core=1 pstate=0 speed_file= availability_file= state_file= coordinates="
    ),
    "disk": _attributes("id=/ read_bw write_bw"),
    "link": _attributes(
        "id bandwidth latency= bandwidth_file= latency_file= state_file= sharing_policy=SHARED",
        sharing_policy="SHARED SPLITDUPLEX FULLDUPLEX FATPIPE WIFI",
    ),
    "router": _attributes("id coordinates="),
    "route": _attributes("src dst symmetrical=YES", symmetrical=_SYMMETRICAL),
    "zoneRoute": _attributes(f"{_ZONE_ROUTE} symmetrical=YES", symmetrical=_SYMMETRICAL),
    "bypassRoute": _attributes("src dst"),
    "bypassZoneRoute": _attributes(_ZONE_ROUTE),
    "link_ctn": _attributes("id direction=NONE", direction="UP DOWN NONE"),
    "cluster": _attributes(
        _CLUSTER,
        sharing_policy="SHARED SPLITDUPLEX FULLDUPLEX FATPIPE",
        topology=" ".join(BY_NAME),
        bb_sharing_policy="SHARED FATPIPE",
    ),
    "cabinet": _attributes(_HOSTS),
    "backbone": _attributes("id bandwidth latency"),
    "host_link": _attributes("id up down"),
    "peer": _attributes(
        "id speed bw_in bw_out lat= coordinates= speed_file= availability_file= state_file="
    ),
    "trace": _attributes("id file= periodicity"),
    "trace_connect": _attributes(
        "kind=HOST_AVAIL trace element", kind="HOST_AVAIL SPEED LINK_AVAIL BANDWIDTH LATENCY"
    ),
    "prop": _attributes("id value"),
    "actor": _attributes(_ACTOR, on_failure="DIE RESTART"),
    "argument": _attributes("value"),
}

MAY_BE_EMPTY = frozenset({"prefix", "suffix", "value"})

OLD_TAGS = {
    "AS": "zone",
    "ASroute": "zoneRoute",
    "bypassASroute": "bypassZoneRoute",
    "process": "actor",
}

REFUSED_TAGS = {
    "link:ctn": "write link_ctn",
    "link-ctn": "write link_ctn",
    "trace:connect": "write trace_connect",
    "include": "put the content of the file in its place",
    "model_prop": "declare a prop inside a disk",
}

# What other files are, by their first element.
NO_PLATFORMS = {
    "adag": "a workflow of Pegasus (DAX), whose tasks are written as tasks.json",
    "html": "a page of the web (html)",
    "clusters": "a list of clusters of another simulator",
}

# Storage before SimGrid 3.26, with what is in it: no host or link depends on it.
PASSED_OVER_TAGS = frozenset({"storage", "storage_type", "mount"})

REFUSED_ATTRIBUTES = {
    **{(tag, "power"): "write speed" for tag in ("host", "cluster", "cabinet", "peer")},
    ("host", "availability"): "write a speed_file",
    ("host", "state"): "write a state_file",
}

# What an element other than platform and zone may hold.
CHILDREN: dict[str, frozenset[str]] = {
    "host": frozenset({"prop", "disk"}),
    "disk": frozenset({"prop"}),
    "link": frozenset({"prop"}),
    "cluster": frozenset({"prop"}),
    "config": frozenset({"prop"}),
    "route": frozenset({"link_ctn"}),
    "zoneRoute": frozenset({"link_ctn"}),
    "bypassRoute": frozenset({"link_ctn"}),
    "bypassZoneRoute": frozenset({"link_ctn"}),
    "actor": frozenset({"argument", "prop"}),
}

_TRACES = frozenset({"trace", "trace_connect"})

# Ordered content: each stage may be empty; a child moves the element to the first later stage
# that holds it.
PLATFORM_STAGES: tuple[frozenset[str], ...] = (
    frozenset({"config", "random"}),
    frozenset({"zone", "cluster", "peer", "cabinet"}) | _TRACES,
    frozenset({"actor"}),
)
INTERNAL_STAGES: tuple[frozenset[str], ...] = (
    frozenset({"prop"}),
    frozenset({"zone", "cluster", "peer", "link", "backbone", "cabinet"}) | _TRACES,
    frozenset({"zoneRoute", "bypassZoneRoute"}) | _TRACES,
)
LEAF_STAGES: tuple[frozenset[str], ...] = (
    frozenset({"prop"}),
    frozenset({"host", "router", "link", "backbone", "cabinet", "host_link"}) | _TRACES,
    frozenset({"route", "bypassRoute"}) | _TRACES,
)
# The first child decides: one of these makes the zone internal, any other (but prop) makes it leaf.
INTERNAL_FIRST = frozenset({"zone", "cluster", "peer", "zoneRoute", "bypassZoneRoute"}) | _TRACES
ZONE_CHILDREN = INTERNAL_STAGES[1] | INTERNAL_STAGES[2] | LEAF_STAGES[1] | LEAF_STAGES[2]
