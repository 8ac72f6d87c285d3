"""The compiled walks: laws of the topologies, and the table that patterns get."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptaskmodel.platform.topologies import kind_of
from ptaskmodel.platform.topologies.fat_tree import FatTree, fat_tree_table
from ptaskmodel.platform.topologies.star import Star, flat_table, star_rows, star_table
from ptaskmodel.platform.topologies.topology import LinkBlock, WalkTable
from ptaskmodel.platform.topologies.torus import Torus, torus_table
from ptaskmodel.platform.zone_routes import walk

PLAIN = LinkBlock(True, 0, -1, -1)


def route(table, a, b):
    out = np.empty(table.table[0], np.int64)
    count = walk(table.kind, table.table, a, b, out)
    return out[:count].tolist()


def star(*paths):
    return WalkTable(kind_of(Star), star_table(*paths))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(2, 6), min_size=1, max_size=3), st.data())
def test_a_torus_route_has_the_least_number_of_hops(sizes, data):
    table = WalkTable(kind_of(Torus), torus_table(sizes, PLAIN))
    nodes = math.prod(sizes)
    a, b = (data.draw(st.integers(0, nodes - 1)) for _ in range(2))
    hops = 0
    for j, size in enumerate(sizes):
        stride = math.prod(sizes[:j])
        gap = abs(a // stride % size - b // stride % size)
        hops += min(gap, size - gap)
    assert len(route(table, a, b)) == hops


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_a_fat_tree_route_goes_up_to_the_nearest_common_switch(data):
    levels = data.draw(st.integers(1, 3))
    children, parents, cables = (
        data.draw(st.lists(st.integers(1, 4), min_size=levels, max_size=levels)) for _ in range(3)
    )
    tree = FatTree(tuple(children), tuple(parents), tuple(cables))
    flat = fat_tree_table(tree, data.draw(st.integers(0, 50)), PLAIN)
    table = WalkTable(kind_of(FatTree), flat)
    nodes = math.prod(children)
    a, b = (data.draw(st.integers(0, nodes - 1)) for _ in range(2))
    up = next(
        level
        for level in range(1, levels + 1)
        if a // math.prod(children[:level]) == b // math.prod(children[:level])
    )
    links = route(table, a, b)
    assert len(links) == 2 * up
    assert [link % 2 for link in links] == [0] * up + [1] * up


def test_a_star_crosses_each_link_once():
    table = star([(1, 2), (3, 2)], [(2, 4), (2, 5)], [(), (7, 7)])
    assert route(table, 0, 1) == [1, 2, 5]
    assert route(table, 0, 0) == [1, 2, 4]
    assert route(table, 1, 1) == [7]


def test_undefined_paths_of_a_star_are_told_apart_from_empty_ones():
    table = star([None, ()], [None, ()], [(7,), ()])
    out = np.empty(table.table[0], np.int64)
    assert walk(table.kind, table.table, 0, 0, out) == 1
    assert walk(table.kind, table.table, 0, 1, out) == -1
    assert walk(table.kind, table.table, 1, 1, out) == 0


def test_a_flat_cluster_is_a_star():
    table = WalkTable(kind_of(Star), flat_table(2, 10, (20, 1), 30, 40))
    assert star_rows(table.table) == [
        ((10, 20, 30), (30, 21, 10)),
        ((11, 22, 30), (30, 23, 11)),
        ((), ()),
    ]
    assert route(table, 1, 1) == [41]
    assert route(table, 0, 2) == [10, 20, 30]


@pytest.mark.parametrize(
    "options",
    [
        'bb_bw="1Bps"',
        'topology="TORUS" topo_parameters="2,3,2"',
        'topology="FAT_TREE" topo_parameters="2;4,3;1,2;1,2"',
        'topology="DRAGONFLY" topo_parameters="2,1;1,1;3,1;2" limiter_link="1Bps"',
    ],
)
def test_the_engine_can_walk_from_host_indices(platform_of, options):
    cluster = (
        '<cluster id="{0}" prefix="{0}" suffix="" radical="0-11" speed="1f" bw="1Bps" '
        f'lat="0s" {options}/>'
    )
    zones = cluster.format("c") + cluster.format("d")
    platform = platform_of(f'<zone id="w" routing="Full">{zones}</zone>')
    table = platform.walk_table(platform.leaf_zone(15))
    local = platform.local_numbers
    for a, b in ((12, 23), (17, 14), (13, 13)):
        assert tuple(route(table, local[a], local[b])) == platform.route_parts(a, b).links


def test_a_zone_with_a_bypass_or_coordinates_has_no_walk(platform_of):
    platform = platform_of(
        '<zone id="w" routing="Full"><zone id="x" routing="Cluster"><host id="a" speed="1f"/>'
        '<link id="l" bandwidth="1Bps" latency="0s"/>'
        '<bypassRoute src="a" dst="a"><link_ctn id="l"/></bypassRoute></zone>'
        '<zone id="v" routing="Vivaldi">'
        '<peer id="p" speed="1f" bw_in="1Bps" bw_out="1Bps" coordinates="0 0 0"/></zone></zone>'
    )
    assert [platform.walk_table(platform.leaf_zone(k)) for k in (0, 1)] == [None, None]
    assert platform.route("a", "a").links == ("l",)


def test_parts_between_two_zones_are_separable(platform_of):
    platform = platform_of(
        """<zone id="w" routing="Full">
        <cluster id="c" prefix="c" suffix="" radical="0-3" speed="1f" bw="1Bps" lat="1s"
                 router_id="r"/>
        <cluster id="d" prefix="d" suffix="" radical="0-3" speed="1f" bw="1Bps" lat="1s"
                 router_id="s"/>
        <link id="l" bandwidth="1Bps" latency="1s"/>
        <zoneRoute src="c" dst="d" gw_src="r" gw_dst="s"><link_ctn id="l"/></zoneRoute></zone>"""
    )
    one, other = platform.route_parts(0, 4), platform.route_parts(1, 5)
    mixed = platform.route_parts(0, 5)
    assert one.separable
    assert mixed == (one.up, one.across, other.down, 0.0, True, False)
    assert not platform.route_parts(0, 1).separable


def test_facts_of_families_need_no_compiler():
    code = (
        "import sys; from ptaskmodel.platform.topologies import FAMILIES; "
        "from ptaskmodel import load_platform; "
        "load_platform('platforms/torus.xml').graph; print('numba' in sys.modules)"
    )
    root = Path(__file__).resolve().parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
