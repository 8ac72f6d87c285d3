"""Routes of each kind of zone, from the worked examples of the format's description."""

from __future__ import annotations

import pytest

from ptaskmodel.errors import RouteError

FULL = '<zone id="w" routing="Full">{}</zone>'
CLUSTER = '<cluster id="c" prefix="n" suffix="" radical="{}" speed="1Gf" bw="1GBps" lat="1s" {}/>'


def links(platform, source, destination):
    return list(platform.route(source, destination).links)


def test_full_without_a_route_is_empty_and_free(platform_of):
    platform = platform_of(FULL.format('<host id="a" speed="1f"/><host id="b" speed="1f"/>'))
    assert platform.route("a", "b") == ((), 0.0)
    assert platform.route("a", "a") == (("__loopback__",), 0.0)


def test_a_symmetrical_route_swaps_the_halves(platform_of):
    platform = platform_of(
        FULL.format(
            '<host id="a" speed="1f"/><host id="b" speed="1f"/>'
            '<link id="l" bandwidth="1Bps" latency="1s" sharing_policy="SPLITDUPLEX"/>'
            '<link id="m" bandwidth="1Bps" latency="2s"/>'
            '<route src="a" dst="b"><link_ctn id="l" direction="UP"/><link_ctn id="m"/></route>'
        )
    )
    assert platform.route("a", "b") == (("l_UP", "m"), 3.0)
    assert platform.route("b", "a") == (("m", "l_DOWN"), 3.0)


def test_a_half_named_directly_is_used_both_ways(platform_of):
    platform = platform_of(
        FULL.format(
            '<host id="a" speed="1f"/><host id="b" speed="1f"/>'
            '<link id="l" bandwidth="1Bps" latency="1s" sharing_policy="SPLITDUPLEX"/>'
            '<route src="a" dst="b"><link_ctn id="l_UP"/></route>'
        )
    )
    assert links(platform, "b", "a") == ["l_UP"]


def test_a_one_way_route_is_legal(platform_of):
    platform = platform_of(
        FULL.format(
            '<host id="a" speed="1f"/><host id="b" speed="1f"/>'
            '<link id="l" bandwidth="1Bps" latency="1s"/>'
            '<route src="a" dst="b" symmetrical="NO"><link_ctn id="l"/></route>'
        )
    )
    assert links(platform, "a", "b") == ["l"]
    assert links(platform, "b", "a") == []


@pytest.mark.parametrize("routing", ["Floyd", "Dijkstra"])
def test_gateways_of_hops_are_joined(platform_of, routing):
    """Worked example of B.3; SimGrid's Dijkstra crashes on it."""
    platform = platform_of(
        f"""<zone id="w" routing="{routing}">
        <zone id="x" routing="Full"><host id="a" speed="1f"/></zone>
        <zone id="y" routing="Full"><host id="b" speed="1f"/><host id="c" speed="1f"/>
          <link id="bc" bandwidth="1Bps" latency="5s"/>
          <route src="b" dst="c"><link_ctn id="bc"/></route></zone>
        <zone id="z" routing="Full"><host id="d" speed="1f"/></zone>
        <link id="l1" bandwidth="1Bps" latency="1s"/><link id="l2" bandwidth="1Bps" latency="2s"/>
        <zoneRoute src="x" dst="y" gw_src="a" gw_dst="b"><link_ctn id="l1"/></zoneRoute>
        <zoneRoute src="y" dst="z" gw_src="c" gw_dst="d"><link_ctn id="l2"/></zoneRoute></zone>"""
    )
    assert platform.route("a", "d") == (("l1", "bc", "l2"), 8.0)


@pytest.mark.parametrize(
    ("gateway", "expected"),
    [
        ("c_router", {"c0": (("c_link_0_UP", "c_backbone", "l"), 111.0)}),
        (
            "c0",
            {
                "c1": (("c_link_1_UP", "c_backbone", "c_link_0_DOWN", "l"), 112.0),
                "c0": (("l",), 10.0),
            },
        ),
    ],
)
def test_a_flat_cluster_behind_its_router_or_a_host(platform_of, gateway, expected):
    """Worked example of B.4."""
    platform = platform_of(
        f"""<zone id="w" routing="Full">
        <cluster id="c" prefix="c" suffix="" radical="0-1" speed="1Gf" bw="1Bps" lat="1s"
                 bb_bw="1Bps" bb_lat="100s" router_id="c_router"/>
        <zone id="z" routing="Full"><host id="h" speed="1f"/></zone>
        <link id="l" bandwidth="1Bps" latency="10s"/>
        <zoneRoute src="c" dst="z" gw_src="{gateway}" gw_dst="h"><link_ctn id="l"/></zoneRoute>
        </zone>"""
    )
    for source, route in expected.items():
        assert platform.route(source, "h") == route


def test_a_flat_cluster_to_itself_crosses_its_backbone_once(platform_of):
    platform = platform_of(CLUSTER.format("0-1", 'bb_bw="1Bps" limiter_link="5Bps"'))
    itself = ["c_link_0_limiter", "c_link_0_UP", "c_backbone", "c_link_0_DOWN"]
    assert links(platform, "n0", "n0") == itself


@pytest.mark.parametrize(
    ("sizes", "nodes", "source", "destination", "expected"),
    [
        ("4,3", 12, 0, 2, ["0_to_1_UP", "1_to_2_UP"]),
        ("4,3", 12, 2, 0, ["1_to_2_DOWN", "0_to_1_DOWN"]),
        ("4,3", 12, 0, 3, ["3_to_0_DOWN"]),
        ("4,3", 12, 3, 0, ["3_to_0_UP"]),
        ("4,3", 12, 1, 10, ["1_to_2_UP", "10_to_2_DOWN"]),
        ("5", 5, 0, 3, ["4_to_0_DOWN", "3_to_4_DOWN"]),
    ],
)
def test_torus(platform_of, sizes, nodes, source, destination, expected):
    options = f'topology="TORUS" topo_parameters="{sizes}"'
    platform = platform_of(CLUSTER.format(f"0-{nodes - 1}", options))
    found = links(platform, f"n{source}", f"n{destination}")
    assert found == [f"c_link_from_{name}" for name in expected]


FAT_TREE = 'topology="FAT_TREE" topo_parameters="2;4,4;1,2;1,2"'


@pytest.mark.parametrize(
    ("source", "destination", "expected"),
    [
        (0, 1, ["0_31_0_UP", "1_31_1_DOWN"]),
        (0, 4, ["0_31_0_UP", "31_27_16_UP", "30_27_20_DOWN", "4_30_4_DOWN"]),
        (1, 6, ["1_31_1_UP", "31_27_17_UP", "30_27_21_DOWN", "6_30_6_DOWN"]),
        (3, 15, ["3_31_3_UP", "31_26_19_UP", "28_26_31_DOWN", "15_28_15_DOWN"]),
    ],
)
def test_fat_tree(platform_of, source, destination, expected):
    platform = platform_of(CLUSTER.format("0-15", FAT_TREE))
    found = links(platform, f"n{source}", f"n{destination}")
    assert found == [f"link_from_{name}" for name in expected]


def test_a_fat_tree_after_another_takes_other_paths(platform_of):
    first = CLUSTER.format("0-2", 'topology="FAT_TREE" topo_parameters="1;3;1;1"')
    second = CLUSTER.format("0-15", FAT_TREE).replace('id="c"', 'id="d"').replace('"n"', '"m"')
    platform = platform_of(f'<zone id="w" routing="Full">{first}{second}</zone>')
    assert "_26_" in links(platform, "m0", "m4")[1]


@pytest.mark.parametrize(
    ("parameters", "source", "destination", "expected"),
    [
        (
            "2,3;1,2;3,4;2",
            0,
            11,
            [
                "local_link_from_router_0_to_node_0_0_UP",
                "green_link_in_chassis_0_between_routers_0_and_1_12_UP",
                "blue_link_between_group_0_and_1_routers_1_and_3_18_UP",
                "green_link_in_chassis_0_between_routers_0_and_2_16_UP",
                "local_link_from_router_5_to_node_1_11_DOWN",
            ],
        ),
        (
            "3,4;3,3;4,1;2",
            8,
            10,
            [
                "green_link_in_chassis_1_between_routers_0_and_1_78_UP",
                "black_link_in_group_0_between_chassis_0_and_1_blade_1_127_UP",
            ],
        ),
        ("3,4;3,3;4,1;2", 8, 2, ["green_link_in_chassis_1_between_routers_0_and_1_78_UP"]),
        ("3,4;3,3;4,1;2", 8, 0, ["black_link_in_group_0_between_chassis_0_and_1_blade_0_126_DOWN"]),
    ],
)
def test_dragonfly(platform_of, parameters, source, destination, expected):
    groups, chassis, blades, per = (part.split(",")[0] for part in parameters.split(";"))
    nodes = int(groups) * int(chassis) * int(blades) * int(per)
    options = f'topology="DRAGONFLY" topo_parameters="{parameters}"'
    platform = platform_of(CLUSTER.format(f"0-{nodes - 1}", options))
    found = links(platform, f"n{source}", f"n{destination}")
    inner = [link for link in expected if not link.startswith("local")]
    assert found[1:-1] == inner
    assert found[0].startswith("local_link")
    assert found[-1].endswith("_DOWN")


def test_dragonfly_links_are_wider_between_groups(platform_of):
    options = 'topology="DRAGONFLY" topo_parameters="2,3;1,2;3,4;2"'
    platform = platform_of(CLUSTER.format("0-11", options))
    blue = "blue_link_between_group_0_and_1_routers_1_and_3_18_UP"
    assert platform.link(blue).bandwidth_Bps == 3e9


def test_vivaldi_adds_the_distance(platform_of):
    platform = platform_of(
        '<zone id="w" routing="Vivaldi">'
        '<peer id="a" speed="1f" bw_in="1Bps" bw_out="2Bps" coordinates="0 0 1000"/>'
        '<peer id="b" speed="1f" bw_in="1Bps" bw_out="2Bps" coordinates="3000 4000 0"/></zone>'
    )
    assert platform.route("a", "b") == (("link_a_UP", "link_b_DOWN"), 6.0)
    assert platform.route("a", "a").latency_s == 2.0
    assert platform.link("link_a_UP").bandwidth_Bps == 2.0


def test_wifi_crosses_its_medium_once_per_station(platform_of):
    platform = platform_of(
        '<zone id="w" routing="Wifi"><prop id="access_point" value="r"/><host id="a" speed="1f"/>'
        '<host id="r" speed="1f"/><link id="l" bandwidth="2Bps,1Bps" latency="0s"/></zone>'
    )
    assert links(platform, "a", "a") == ["l", "l"]
    assert links(platform, "a", "r") == ["l"]
    assert platform.link("l").wifi_bandwidths_Bps == (2.0, 1.0)


def test_none_has_no_route(platform_of):
    platform = platform_of('<zone id="w" routing="None"><host id="a" speed="1f"/></zone>')
    with pytest.raises(RouteError, match=r"p\.xml:\d+: no route from 'a' to 'a'"):
        platform.route("a", "a")


def test_a_missing_zone_route_is_told(platform_of):
    platform = platform_of(
        '<zone id="w" routing="Full"><zone id="x" routing="Full"><host id="a" speed="1f"/></zone>'
        '<zone id="y" routing="Full"><host id="b" speed="1f"/></zone></zone>'
    )
    with pytest.raises(RouteError, match="no route from 'x' to 'y' in zone 'w'"):
        platform.route("a", "b")


def test_a_bypass_is_one_way_and_crosses_the_gateways_own_routes(platform_of):
    platform = platform_of(
        """<zone id="w" routing="Full">
        <zone id="x" routing="Full"><host id="a" speed="1f"/></zone>
        <zone id="y" routing="Full"><host id="b" speed="1f"/></zone>
        <link id="l" bandwidth="1Bps" latency="1s"/><link id="s" bandwidth="1Bps" latency="2s"/>
        <zoneRoute src="x" dst="y" gw_src="a" gw_dst="b"><link_ctn id="l"/></zoneRoute>
        <bypassZoneRoute src="x" dst="y" gw_src="a" gw_dst="b"><link_ctn id="s"/></bypassZoneRoute>
        </zone>"""
    )
    assert links(platform, "a", "b") == ["__loopback__", "s", "__loopback__"]
    assert links(platform, "b", "a") == ["l"]


def test_deeply_nested_zones_are_routed(platform_of):
    depth = 48
    text = '<zone id="z0" routing="Floyd">'
    for k in range(1, depth):
        text += f'<zone id="s{k}" routing="Full"><host id="h{k}" speed="1f"/></zone>'
        text += f'<zone id="z{k}" routing="{"Floyd" if k < depth - 1 else "Full"}">'
    text += '<host id="end" speed="1f"/><link id="l" bandwidth="1Bps" latency="1s"/></zone>'
    for k in range(depth - 1, 0, -1):
        text += (
            f'<zoneRoute src="s{k}" dst="z{k}" gw_src="h{k}" gw_dst="end"><link_ctn id="l"/>'
            "</zoneRoute></zone>"
        )
    platform = platform_of(text)
    assert links(platform, "h1", "end") == ["l"]
