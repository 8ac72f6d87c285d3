"""Platform.graph: nodes, edges, and shortest paths that cost what routes do."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import networkx as nx
import pytest

from ptaskmodel.platform import load_platform

PLATFORMS = Path(__file__).resolve().parent.parent.parent / "platforms"


def kinds(graph):
    return sorted(kind for _, kind in graph.nodes(data="kind"))


@pytest.mark.parametrize("name", ["small_cluster", "torus", "changing_speeds", "worked_example"])
def test_shortest_paths_have_the_latency_of_routes(name):
    platform = load_platform(PLATFORMS / f"{name}.xml")
    names = [host.name for host in platform.hosts[::7]]
    for a, b in itertools.combinations(names, 2):
        length = nx.shortest_path_length(platform.graph, a, b, weight="path_latency_s")
        assert length == pytest.approx(platform.route(a, b).latency_s, rel=1e-9)


def test_a_cable_is_an_edge_with_its_facts():
    graph = load_platform(PLATFORMS / "worked_example.xml").graph
    assert graph.nodes["a"] == {"kind": "host", "zone": "world", "speed_flops": 100.0, "cores": 1}
    edge = graph.edges["a", "b"]
    assert edge["links"] == ("l",)
    assert (edge["bandwidth_Bps"], edge["latency_s"], edge["policy"]) == (100.0, 0.0, "SHARED")


def test_hosts_behind_a_backbone_are_a_star():
    graph = load_platform(PLATFORMS / "small_cluster.xml").graph
    assert kinds(graph) == ["host"] * 32 + ["link", "router"]
    assert graph.number_of_edges() == 33
    assert graph.degree("link:small_backbone") == 33
    assert graph.edges["node-small_router", "link:small_backbone"]["bandwidth_Bps"] == math.inf


def test_full_mesh_over_private_cables_is_a_star_too(platform_of):
    """n (n - 1) declared routes, n cables, one backbone."""
    n = 12
    text = "".join(f'<host id="h{k}" speed="1f"/>' for k in range(n))
    text += "".join(f'<link id="l{k}" bandwidth="1Bps" latency="1s"/>' for k in range(n))
    text += '<link id="b" bandwidth="5Bps" latency="2s"/>'
    for i, j in itertools.combinations(range(n), 2):
        names = (f"l{i}", "b", f"l{j}")
        inner = "".join(f'<link_ctn id="{name}"/>' for name in names)
        text += f'<route src="h{i}" dst="h{j}">{inner}</route>'
    graph = platform_of(f'<zone id="w" routing="Full">{text}</zone>').graph
    assert kinds(graph) == ["host"] * n + ["link"]
    assert graph.edges["h3", "link:b"]["links"] == ("l3",)


def test_switches_of_a_fat_tree():
    graph = load_platform(PLATFORMS / "fat_tree_1024.xml").graph
    assert kinds(graph) == ["host"] * 1024 + ["switch"] * 48
    assert nx.diameter(graph.subgraph(["fat switch 0", "node-0", "node-1"])) == 2
    levels = [level for _, level in graph.nodes(data="level")]
    assert [levels.count(k) for k in range(3)] == [1024, 32, 16]


def test_parallel_cables_are_counted(platform_of):
    cluster = (
        '<cluster id="c" prefix="n" suffix="" radical="0-3" speed="1f" bw="1Bps" lat="0s" '
        'topology="FAT_TREE" topo_parameters="1;4;2;3" limiter_link="7Bps"/>'
    )
    graph = platform_of(cluster).graph
    assert {data["cables"] for _, _, data in graph.edges(data=True)} == {3}
    assert graph.nodes["n0"]["limiter_Bps"] == 7.0
    assert graph.nodes["c switch 1"]["limiter_Bps"] == 7.0


def test_nested_zones_are_joined_at_their_gateways():
    graph = load_platform(PLATFORMS / "multi_site.xml").graph
    assert nx.is_connected(graph)
    assert graph.edges["north-router", "west-router"]["links"] == ("north-west",)
