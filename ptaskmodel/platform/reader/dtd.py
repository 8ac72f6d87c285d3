"""The SimGrid platform language as data: tags, attributes, nesting (DTD versions 4 and 4.1)."""

from __future__ import annotations

from typing import NamedTuple

from ptaskmodel.platform.topologies.families import BY_NAME


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
    "storage": "declare a disk inside a host",
    "storage_type": "declare a disk inside a host",
    "mount": "declare a disk inside a host",
    "model_prop": "declare a prop inside a disk",
}

REFUSED_ATTRIBUTES = {
    ("host", "power"): "write speed",
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
