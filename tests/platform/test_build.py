"""Platforms built in Python: the same facts as from a file, the same refusals."""

from __future__ import annotations

import math
import pickle

import pytest

from ptaskmodel.errors import PlatformError
from ptaskmodel.platform import (
    AvailabilityTrace,
    Dragonfly,
    FatTree,
    Platform,
    Torus,
    load_platform,
)

ONE = {"speed": "1Gf", "bandwidth": "1Gbps", "latency": "1us"}


def test_a_star_with_a_backbone():
    build = Platform.build("lab", "Cluster")
    build.backbone("switch", "10Gbps", "500ns")
    for k in range(8):
        build.host(f"n{k}", "40Gf", cores=16)
        build.link(f"cable{k}", "1Gbps", "20us", "SPLITDUPLEX")
        build.host_link(f"n{k}", f"cable{k}_UP", f"cable{k}_DOWN")
    platform = build.finish()
    assert platform.route("n1", "n5").links == ("cable1_UP", "switch", "cable5_DOWN")
    assert platform.route("n1", "n5").latency_s == pytest.approx(40.5e-6)
    assert platform.host("n3").cores == 16
    assert repr(platform) == "<Platform lab: 8 hosts, 17 links>"


def test_routes_may_come_between_hosts():
    build = Platform.build("lab")
    build.link("wire", 1.25e8, 1e-5)
    build.router("r")
    for name in "ab":
        build.host(name, (2e9, 1e9), pstate=1)
        build.link(f"l{name}", "1GBps", policy="SPLITDUPLEX")
        build.route(name, "r", [(f"l{name}", "UP")])
    build.route("a", "b", [("la", "UP"), "wire", ("lb", "DOWN")])
    platform = build.finish()
    assert platform.route("b", "a").links == ("lb_UP", "wire", "la_DOWN")
    assert platform.link("wire").bandwidth_Bps == 1.25e8
    assert platform.host("a").speed_flops == 1e9


@pytest.mark.parametrize(
    ("hosts", "count"),
    [
        (5, 5),
        (Torus((2, 3)), 6),
        (FatTree((2, 2), (1, 2), (1, 1)), 4),
        (Dragonfly((2, 1), (2, 1), (2, 1), 3), 24),
    ],
)
def test_a_cluster_of_every_family_is_that_of_a_file(hosts, count, platform_of):
    build = Platform.build("w")
    more = {"loopback": "1GBps", "loopback_latency": "1us", "limiter": "5GBps"}
    build.cluster("c", hosts, cores=2, suffix=".x", first=3, properties={"k": "v"}, **more, **ONE)
    platform = build.finish()
    topology = "" if isinstance(hosts, int) else f'topology="{hosts.name}" '
    topology += "" if isinstance(hosts, int) else f'topo_parameters="{hosts.parameters}" '
    other = platform_of(
        f'<zone id="w" routing="Full"><cluster id="c" prefix="c-" suffix=".x" '
        f'radical="3-{count + 2}" speed="1Gf" core="2" bw="1Gbps" lat="1us" {topology}'
        'limiter_link="5GBps" loopback_bw="1GBps" loopback_lat="1us">'
        '<prop id="k" value="v"/></cluster></zone>'
    )
    assert platform.hosts == other.hosts
    assert platform.links == other.links
    for a in platform.hosts:
        for b in platform.hosts:
            assert platform.route(a.name, b.name) == other.route(a.name, b.name)


def test_zones_joined_by_a_route():
    build = Platform.build("site", config={"network/TCP-gamma": 0})
    build.link("between", "40Gbps", "20us", "SPLITDUPLEX")
    build.cluster("old", 4, router="gate", backbone="1Gbps", backbone_latency="1us", **ONE)
    with build.zone("desk", properties={"room": "5"}):
        build.host("pc", "5Gf")
    build.zone_route("old", "desk", ("gate", "pc"), [("between", "UP")])
    platform = build.finish()
    expected = ("between_DOWN", "old_backbone", "old_link_2_DOWN")
    assert platform.route("pc", "old-2").links == expected
    assert platform.config == {"network/TCP-gamma": "0"}
    assert platform.zones[2].properties == {"room": "5"}


def test_peers_and_a_medium():
    build = Platform.build("world")
    with build.zone("far", "Vivaldi"):
        build.peer("p", "1Gf", "1Gbps", 1e6, (0, 0, 1))
        build.peer("q", "1Gf", "1Gbps", "1Gbps", (3, 4, 1))
    with build.zone("air", "Wifi", properties={"access_point": "ap"}):
        build.router("ap")
        build.host("phone", "1Gf")
        build.link("medium", ["54Mbps", "6Mbps"])
    platform = build.finish()
    assert platform.route("p", "q").latency_s == pytest.approx(7e-3)
    assert platform.link("link_p_UP").bandwidth_Bps == 1e6
    assert platform.route("phone", "phone").links == ("medium", "medium")


def test_traces_given_as_events_or_as_they_are():
    trace = AvailabilityTrace("t", (0.0, 3.0), (1.0, 0.5), 10.0)
    build = Platform.build("w")
    build.host("a", "1Gf", speed_trace=trace, state_trace=[(5, 0), (6, 1)])
    build.link("l", "1GBps", "1us", "SPLITDUPLEX", bandwidth_trace=[(1, 5e8)], latency_trace=trace)
    platform = build.finish()
    host, link = platform.host("a"), platform.link("l_DOWN")
    assert (host.speed_trace.dates_s, host.speed_trace.period_s) == ((0.0, 3.0), 10.0)
    assert (host.state_trace.values, host.state_trace.period_s) == ((0.0, 1.0), None)
    assert (link.bandwidth_trace.values, link.latency_trace.values) == ((5e8,), (1.0, 0.5))


@pytest.mark.parametrize(
    ("declare", "part"),
    [
        (lambda b: b.host("a", "1Gf"), "lab: host 'a': the host 'a' exists already"),
        (lambda b: b.host("b", "fast"), "lab: host 'b': speed: 'fast' does not start"),
        (lambda b: b.host("b", math.nan), "not a finite number"),
        (lambda b: b.host("b", -1.0), "negative"),
        (lambda b: b.host("b", "1Gf", cores=0), "at least 1"),
        (lambda b: b.host("", "1Gf"), "id is empty"),
        (lambda b: b.host("b\0", "1Gf"), "text that a file can hold"),
        (lambda b: b.host(5, "1Gf"), "text that a file can hold"),
        (lambda b: b.host("b", "1Gf", coordinates=(1, 2)), "three numbers"),
        (lambda b: b.link("l", "1Gbps", "-1s"), "negative"),
        (lambda b: b.link("l", "1Gbps", policy="shared"), "write one of SHARED"),
        (lambda b: b.route("a", "z", ["l"]), "unknown host or router 'z'"),
        (lambda b: b.route("a", "a", ["z"]), "unknown link 'z'"),
        (lambda b: b.route("a", "a", [("x", "LEFT")]), "write one of UP, DOWN, NONE"),
        (lambda b: b.route("a", "a", []), "no link"),
        (lambda b: b.cluster("c", 4, **ONE), "is not allowed here"),
        (lambda b: b.cluster("c", Torus((0, 2)), **ONE), "every number must be in 1"),
        (lambda b: b.cluster("c", FatTree((2,), (1, 1), (1,)), **ONE), "levels;children"),
        (lambda b: b.peer("p", "1f", "1Bps", "1Bps", (0, 0, 0)), "is not allowed here"),
    ],
)
def test_what_a_file_would_be_refused_for_is_refused_at_once(declare, part):
    build = Platform.build("lab")
    build.host("a", "1Gf")
    with pytest.raises(PlatformError, match=part) as caught:
        declare(build)
    assert "\n" not in str(caught.value)
    build.link("x", "1Gbps")
    build.route("a", "a", ["x"])
    assert len(build.finish().hosts) == 1


def test_what_is_refused_at_the_end():
    with pytest.raises(PlatformError, match="lab: platform: it holds no host"):
        Platform.build("lab").finish()
    build = Platform.build("lab")
    build.host("a", "1Gf", speed_trace=[(2, 1), (1, 1)])
    with pytest.raises(
        PlatformError, match=r"lab: trace 'a SPEED 0': .*line 2 of it: the date 1 is " r"bef"
    ):
        build.finish()


def test_a_finished_platform_takes_no_more():
    build = Platform.build("lab")
    build.host("a", "1Gf")
    assert build.finish().hosts == build.finish().hosts
    with pytest.raises(PlatformError, match="finished"):
        build.host("b", "1Gf")


def test_what_is_odd_is_noted():
    build = Platform.build("lab")
    build.host("a", "5")
    assert [note.text for note in build.finish().notes] == [
        "host 'a': speed='5' has no unit, which means f; write it"
    ]


def test_a_platform_can_be_pickled(platform_of):
    build = Platform.build("w")
    build.cluster("c", Torus((3, 3)), properties={"k": "v"}, **ONE)
    with build.zone("z", "Floyd"):
        build.host("a", "1Gf", speed_trace=[(0, 1), (5, 0.5)])
        build.host("b", "1Gf")
        build.link("l", "1Gbps", "1us", "SPLITDUPLEX")
        build.route("a", "b", [("l", "UP")])
    build.zone_route("c", "z", ("c-0", "b"), [("l", "UP")])
    platform = build.finish()
    routes = [[platform.route(a.name, b.name) for b in platform.hosts] for a in platform.hosts]
    assert platform.local_numbers.size
    assert platform.graph is not None
    copy = pickle.loads(pickle.dumps(platform))
    assert (copy.hosts, copy.links) == (platform.hosts, platform.links)
    assert copy.to_xml() == platform.to_xml()
    again = [[copy.route(a.name, b.name) for b in copy.hosts] for a in copy.hosts]
    assert again == routes
    host = pickle.loads(pickle.dumps(platform.host("a")))
    assert host == platform.host("a")
    assert host.properties is platform.host("a").properties


def test_a_large_cluster_is_pickled_small_and_soon(tmp_path):
    build = Platform.build("w")
    build.cluster("c", 100_000, backbone="1Tbps", loopback="1GBps", **ONE)
    platform = build.finish()
    packed = pickle.dumps(platform)
    assert len(packed) < 30e6
    copy = pickle.loads(packed)
    assert copy.route("c-5", "c-99999") == platform.route("c-5", "c-99999")
    assert copy.host("c-77777") == platform.host("c-77777")
    path = tmp_path / "c.xml"
    path.write_text(platform.to_xml())
    assert path.stat().st_size < 1000
    assert load_platform(path).hosts == platform.hosts
