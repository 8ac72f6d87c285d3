"""Sketches: all hosts and links are in them, nothing hides anything, people know the shapes."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from ptaskmodel.platform import load_platform
from ptaskmodel.platform.sketch import extent, sketch

PLATFORMS = Path(__file__).resolve().parent.parent.parent / "platforms"
LEFT_OUT = ("limiter", "dark-fibre")  # of nodes of a cluster; a bypass
FILES = sorted(PLATFORMS.glob("*.xml"))


def boxes_of(drawn):
    return {box.name: box for box in drawn.boxes}


def overlap(a, b):
    return (
        abs(a.x - b.x) < (a.width + b.width) / 2 - 1e-9
        and abs(a.y - b.y) < (a.height + b.height) / 2 - 1e-9
    )


def rows_of(boxes, size=8.0):
    """Boxes by squares of the page, those at borders in two or four of them."""
    squares = {}
    for box in boxes:
        xs = {int((box.x + side * box.width / 2) // size) for side in (-1, 1)}
        ys = {int((box.y + side * box.height / 2) // size) for side in (-1, 1)}
        for square in itertools.product(range(min(xs), max(xs) + 1), range(min(ys), max(ys) + 1)):
            squares.setdefault(square, []).append(box)
    return squares.values()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_host_has_one_box_and_no_two_boxes_overlap(file):
    platform = load_platform(file)
    drawn = sketch(platform)
    hosts = [box.name for box in drawn.boxes if box.kind == "host"]
    assert sorted(hosts) == sorted(host.name for host in platform.hosts)
    for row in rows_of(drawn.boxes):
        assert not [(a.name, b.name) for a, b in itertools.combinations(row, 2) if overlap(a, b)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_links_of_routes_are_drawn(file):
    platform = load_platform(file)
    drawn = sketch(platform)
    names = {name for line in drawn.lines for name in line.links}
    names |= {box.name for box in drawn.boxes if box.kind == "link"}
    hosts = [host.name for host in platform.hosts][:: max(1, len(platform.hosts) // 9)]
    for a, b in itertools.permutations(hosts, 2):
        for link in platform.route(a, b).links:
            cable = link.removesuffix("_UP").removesuffix("_DOWN")
            assert {link, cable} & names or any(word in link for word in LEFT_OUT)


def test_the_same_sketch_at_each_call():
    platform = load_platform(PLATFORMS / "multi_site.xml")
    assert sketch(platform) == sketch(load_platform(PLATFORMS / "multi_site.xml"))


def test_switches_of_a_fat_tree_stand_above_racks_by_level():
    drawn = sketch(load_platform(PLATFORMS / "fat_tree_1024.xml"))
    heights = {
        kind: {box.y for box in drawn.boxes if box.kind == kind} for kind in ("host", "switch")
    }
    assert len(heights["switch"]) == 2
    assert max(heights["host"]) < min(heights["switch"])


def test_hosts_of_a_torus_stand_in_a_grid_that_is_open_where_it_closes(platform_of):
    cluster = (
        '<cluster id="c" prefix="n" suffix="" radical="0-11" speed="1f" bw="1Bps" lat="0s" '
        'topology="TORUS" topo_parameters="4,3"/>'
    )
    drawn = sketch(platform_of(cluster))
    assert len({round(box.x, 6) for box in drawn.boxes}) == 4
    assert len({round(box.y, 6) for box in drawn.boxes}) == 3
    assert sorted(len(line.paths) for line in drawn.lines) == [1] * (3 * 3 + 4 * 2) + [2] * (3 + 4)


def test_groups_of_a_dragonfly_stand_apart_by_name():
    drawn = sketch(load_platform(PLATFORMS / "dragonfly.xml"))
    names = [group.name for group in drawn.groups]
    assert names == [f"group {k}" for k in range(4)]
    assert {len(group.hosts) for group in drawn.groups} == {48}


def test_links_between_groups_do_not_run_along_routers():
    drawn = sketch(load_platform(PLATFORMS / "dragonfly.xml"))
    blue = [line for line in drawn.lines if any("blue" in name for name in line.links)]
    assert len(blue) == 6
    assert all(abs(line.paths[0][0][1] - line.paths[0][-1][1]) > 0.5 for line in blue)


def test_hosts_stand_below_their_backbone_which_is_one_bar():
    drawn = sketch(load_platform(PLATFORMS / "small_cluster.xml"))
    boxes = boxes_of(drawn)
    bar = boxes["small_backbone"]
    assert bar.kind == "link"
    for box in drawn.boxes:
        if box.kind == "host":
            assert box.y < bar.y
            assert abs(box.x - bar.x) < bar.width / 2


def test_links_that_all_follow_each_other_meet_in_a_point():
    drawn = sketch(load_platform(PLATFORMS / "graphene.xml"))
    (point,) = [box for box in drawn.boxes if box.kind == "junction"]
    ends = [line for line in drawn.lines if (point.x, point.y) in line.paths[0]]
    assert len(ends) == 4


def test_twenty_thousand_hosts_behind_one_switch(platform_of):
    cluster = (
        '<cluster id="c" prefix="n" suffix="" radical="0-19999" speed="1f" bw="1Bps" lat="0s"/>'
    )
    drawn = sketch(platform_of(cluster))
    assert len(drawn.boxes) == 20001
    left, bottom, right, top = extent(drawn)
    assert 1.0 < (right - left) / (top - bottom) < 4.0


def test_many_clusters_do_not_hide_each_other(platform_of):
    text = '<zone id="hub" routing="Full"><router id="r"/></zone>'
    text += "".join(
        f'<cluster id="c{k}" prefix="c{k}-" suffix="" radical="0-29" speed="1f" bw="1Bps" '
        f'lat="0s" router_id="r{k}" bb_bw="1Bps"/>'
        for k in range(40)
    )
    text += "".join(f'<link id="l{k}" bandwidth="1Bps" latency="0s"/>' for k in range(40))
    text += "".join(
        f'<zoneRoute src="c{k}" dst="hub" gw_src="r{k}" gw_dst="r">'
        f'<link_ctn id="l{k}"/></zoneRoute>'
        for k in range(40)
    )
    drawn = sketch(platform_of(f'<zone id="w" routing="Dijkstra">{text}</zone>'))
    assert not [
        (a.name, b.name) for a, b in itertools.combinations(drawn.boxes, 2) if overlap(a, b)
    ]


def test_no_line_between_sites_passes_behind_hosts(platform_of):
    sites = ("nancy", "lyon", "rennes")
    text = "".join(
        f'<cluster id="{site}" prefix="{site}-" suffix="" radical="0-15" speed="1f" bw="1Bps" '
        f'lat="0s" router_id="r-{site}"/>'
        for site in sites
    )
    pairs = list(itertools.combinations(sites, 2))
    text += "".join(f'<link id="{a}-{b}" bandwidth="1Bps" latency="0s"/>' for a, b in pairs)
    text += "".join(
        f'<zoneRoute src="{a}" dst="{b}" gw_src="r-{a}" gw_dst="r-{b}">'
        f'<link_ctn id="{a}-{b}"/></zoneRoute>'
        for a, b in pairs
    )
    drawn = sketch(platform_of(f'<zone id="w" routing="Full">{text}</zone>'))
    ways = [line.paths[0] for line in drawn.lines if not line.in_rack]
    assert len(ways) == 3
    hosts = [box for box in drawn.boxes if box.kind == "host"]
    for ((x, y), (u, v)), step in itertools.product(ways, range(101)):
        at = x + (u - x) * step / 100, y + (v - y) * step / 100
        assert not [
            box.name
            for box in hosts
            if abs(at[0] - box.x) < box.width / 2 and abs(at[1] - box.y) < box.height / 2
        ]
