"""Places of links in generated topologies, and what a page makes of them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from ptaskmodel.platform import load_platform
from ptaskmodel.results.loading import Results
from ptaskmodel.results.pages.platform import LEVELS, MOMENTS, topology_data
from ptaskmodel.results.pictures.tracks import link_tracks
from ptaskmodel.results.tables.places import host_groups, link_name, link_places

PLATFORM = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-{last}" speed="1Gf" bw="1GBps" lat="1us"
           topology="{kind}" topo_parameters="{parameters}"/>
</platform>
"""


def platform_of(place, kind, parameters, hosts):
    path = place / "p.xml"
    path.write_text(PLATFORM.format(kind=kind, parameters=parameters, last=hosts - 1))
    return load_platform(path)


@pytest.mark.parametrize(
    ("kind", "parameters", "hosts", "levels"),
    [
        ("FAT_TREE", "2;4,2;1,2;1,1", 8, {"leaf-host": 8, "spine-leaf": 4}),
        ("FAT_TREE", "3;2,2,2;1,1,1;1,1,1", 8,
         {"leaf-host": 8, "middle-leaf": 4, "spine-middle": 2}),
        ("TORUS", "3,2", 6, {"along x": 6, "along y": 6}),
        ("DRAGONFLY", "2,1;2,1;3,1;2", 24,
         {"router-host": 24, "in chassis": 12, "between chassis": 6, "between groups": 1}),
    ],
)  # fmt: skip
def test_each_link_has_a_level_and_two_ways(tmp_path, kind, parameters, hosts, levels):
    places = link_places(platform_of(tmp_path, kind, parameters, hosts))
    assert Counter((place.level, place.way) for place in places.values()) == {
        (level, way): count for level, count in levels.items() for way in "↑↓"
    }


def test_links_of_a_fat_tree_are_named_by_their_ends(tmp_path):
    platform = platform_of(tmp_path, "FAT_TREE", "2;4,2;1,2;1,1", 8)
    places = link_places(platform)
    names = {place.name for place in places.values()}
    assert {"n5 → leaf 1", "leaf 1 → n5", "leaf 0 → spine 1", "spine 0 → leaf 1"} <= names
    groups = host_groups([host.name for host in platform.hosts], places)
    assert groups == [["leaf 0", 0, 4], ["leaf 1", 4, 4]]


def test_links_of_a_dragonfly_are_named_so_that_a_route_is_a_chain(tmp_path):
    platform = platform_of(tmp_path, "DRAGONFLY", "2,1;2,1;3,1;2", 24)
    places = link_places(platform)
    for other in (3, 7, 11):
        route = [places[name].name.split(" → ") for name in platform.route("n0", f"n{other}").links]
        assert all(a[1] == b[0] for a, b in pairwise(route))
        assert (route[0][0], route[-1][1]) == ("n0", f"n{other}")
    assert "router 0.0.1 → router 1.0.0" in {place.name for place in places.values()}
    groups = host_groups([host.name for host in platform.hosts], places)
    assert groups[:2] == [["router 0.0.0", 0, 2], ["router 0.0.1", 2, 2]]


def test_no_hosts_have_no_groups():
    assert host_groups([], {}) == []
    assert host_groups(["a", "b"], {}) == [["a …", 0, 1], ["b …", 1, 1]]


def test_other_links_keep_their_names():
    assert link_name("cable-02_UP", {}) == "cable-02 ↑"
    assert link_name("backbone", {}) == "backbone"


def used(links):
    """Results of 10 s: each link full from one second to another, and otherwise unused."""
    table = {
        (name, "link"): [(s, s + 1.0, 1.0) for s in map(float, range(begin, end))]
        for name, (begin, end) in links.items()
    }
    summary = {"end_date": 10.0}
    return Results(Path(), "task", summary, [], utilisation=table)


def test_a_level_has_its_highest_and_its_mean_use_over_time(tmp_path):
    places = link_places(platform_of(tmp_path, "FAT_TREE", "2;4,2;1,1;1,1", 8))
    up = [name for name, place in places.items() if (place.level, place.way) == ("spine-leaf", "↑")]
    (track,) = link_tracks(used({up[0]: (0, 4), up[1]: (2, 10)}), places)
    track = track.data()
    assert track["name"] == "spine-leaf ↑ (2)"
    assert track["most"] == [1000] * 10
    assert track["mean"] == [500] * 2 + [1000] * 2 + [500] * 6
    assert track["full"] == 1.0
    assert track["members"] == [up[1], up[0]]


def test_use_at_a_time_is_that_of_the_intervals_around_it(tmp_path):
    platform = platform_of(tmp_path, "FAT_TREE", "2;4,2;1,1;1,1", 8)
    places = link_places(platform)
    name = next(iter(places))
    data = topology_data(used({name: (5, 10)}), platform, [], places)
    assert data["now"] == {f"link {name}": LEVELS[0] * (MOMENTS // 2) + LEVELS[-1] * (MOMENTS // 2)}
    assert data["says"].startswith("Of 1 link in use, n0 → leaf 0 is used most: 50 % of its")
