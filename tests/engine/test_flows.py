"""Flows laid out many together ask what their routes, one at a time, say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from replay_traces import LOOPBACK, PLATFORMS, platform_text

from ptaskmodel.engine.driver import Core
from ptaskmodel.engine.usage.network_models import network_model
from ptaskmodel.errors import RouteError
from ptaskmodel.platform import Platform, load_platform


def asked(platform, source, target):
    """(usage of each link, latency, 1 / weight) of a flow under LV08, from its two routes."""
    there, back = platform.route(source, target), platform.route(target, source)
    use, weight = {}, there.latency_s
    for links, amount in ((there.links, 1.0), (back.links, 0.05)):
        for link in links:
            use[link] = use.get(link, 0.0) + amount
    weight += sum(20537.0 / platform.link(link).bandwidth_Bps for link in there.links)
    return use, 13.01 * there.latency_s, weight


@pytest.mark.jit
@pytest.mark.parametrize("name", PLATFORMS)
def test_all_pairs_of_hosts(name, tmp_path):
    (tmp_path / "p.xml").write_text(platform_text(name))
    platform = load_platform(tmp_path / "p.xml")
    core = Core(platform, network_model("LV08", {}), "maxmin")
    n = len(platform.hosts)
    pairs = np.array(list(itertools.permutations(range(n), 2)))
    numbers = core.find_flows(pairs[:, 0], pairs[:, 1])
    core.route(numbers.tolist())
    counts, resources, usages = core.uses(numbers)
    ends = np.cumsum(counts)
    for k, (source, target) in enumerate(pairs.tolist()):
        own = slice(int(ends[k] - counts[k]), int(ends[k]))
        names = (platform.all_links[r - n].name for r in resources[own].tolist())
        use, latency, weight = asked(
            platform, platform.hosts[source].name, platform.hosts[target].name
        )
        assert dict(zip(names, usages[own].tolist(), strict=True)) == pytest.approx(use)
        laid = core.state.patterns[numbers[k]]
        assert laid["latency"] == pytest.approx(latency)
        assert laid["penalty"] == pytest.approx(weight)


def test_those_without_a_way_leave_the_others_alone():
    build = Platform.build("p")
    for name in "abc":
        build.host(name, speed=1e9)
    build.link("l", bandwidth=1e6, latency=1e-3)
    build.route("a", "b", ["l"])
    platform = build.finish()
    core = Core(platform, network_model("CM02", {}), "maxmin")
    numbers = core.find_flows(np.array([0, 0, 1]), np.array([2, 1, 0]))
    with pytest.raises(RouteError, match="no route from 'a' to 'c'"):
        core.route(numbers.tolist())
    assert core.state.patterns["first"][numbers].tolist()[0] == -1
    core.start(int(numbers[1]), 1e6)
    assert core.advance()[-1]["date"] == pytest.approx(1e-3 + 1.05)


def test_a_host_of_a_torus_has_no_way_to_itself(tmp_path):
    (tmp_path / "p.xml").write_text(platform_text("torus").replace(LOOPBACK, ""))
    platform = load_platform(tmp_path / "p.xml")
    core = Core(platform, network_model("LV08", {}), "maxmin")
    with pytest.raises(RouteError, match="for a flow; give its cluster a loopback_bw"):
        core.route(core.find_flows(np.array([1]), np.array([1])).tolist())


@pytest.mark.jit
@pytest.mark.parametrize("count", ["task", "flow", "pair"])
@pytest.mark.parametrize("name", PLATFORMS)
def test_parallel_flows_ask_what_one_parallel_work_does(name, count, tmp_path):
    (tmp_path / "p.xml").write_text(platform_text(name))
    core = Core(load_platform(tmp_path / "p.xml"), network_model("L07", {}), "bmf", count)
    n = len(core.platform.hosts)
    pairs = np.array(list(itertools.product(range(n), repeat=2)))
    numbers = core.find_flows(pairs[:, 0], pairs[:, 1])
    core.route(numbers.tolist())
    for number in numbers.tolist():
        row = core.router.route(core.patterns.shape(number))
        laid = core.state.patterns[number]
        elements = core.state.elements[laid["first"] : laid["first"] + laid["count"]]
        asked = zip(row.resource, row.usage, row.share, row.largest, strict=True)
        assert sorted(elements.tolist()) == sorted(map(tuple, map(list, asked)))
        assert laid["amount"] == row.amount
        assert laid["latency"] == pytest.approx(row.latency_s, rel=1e-15)
        assert laid["latency_bytes"] == pytest.approx(row.latency_bytes, rel=1e-15)
        assert (laid["penalty"], laid["bound"]) == (1.0, np.inf)
