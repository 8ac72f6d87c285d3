"""Large platforms: what is read grows with the hosts, never with their pairs."""

from __future__ import annotations

import tracemalloc

import pytest

CLUSTER = (
    '<cluster id="c" prefix="n" suffix=".x" radical="0-{}" speed="1Gf" bw="1GBps" lat="1us" {}/>'
)


def test_many_hosts_take_little_memory(platform_of):
    tracemalloc.start()
    platform = platform_of(CLUSTER.format(19_999, 'bb_bw="10GBps" bb_lat="1us"'))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(platform.hosts) == 20_000
    assert peak < 60e6
    assert platform.route("n5.x", "n19999.x").links == (
        "c_link_5_UP",
        "c_backbone",
        "c_link_19999_DOWN",
    )


@pytest.mark.parametrize(
    "options",
    [
        'topology="FAT_TREE" topo_parameters="3;22,22,22;1,11,22;1,1,1"',
        'topology="TORUS" topo_parameters="22,22,22"',
    ],
)
def test_ten_thousand_hosts_of_a_topology(platform_of, options):
    platform = platform_of(CLUSTER.format(22**3 - 1, options))
    assert 1 <= len(platform.route("n0.x", "n10647.x").links) <= 6
    assert len(platform.walk_table(0).table) < 100


def test_what_routing_remembers_is_bounded(platform_of):
    """A hundred clusters: pairs of zones and gateways are kept, pairs of hosts are not."""
    text = "".join(
        f'<cluster id="c{k}" prefix="c{k}-" suffix="" radical="0-99" speed="1f" bw="1Bps" '
        f'lat="0s" router_id="r{k}"/>'
        for k in range(100)
    )
    text += '<link id="l" bandwidth="1Bps" latency="0s"/>'
    text += "".join(
        f'<zoneRoute src="c0" dst="c{k}" gw_src="r0" gw_dst="r{k}"><link_ctn id="l"/></zoneRoute>'
        for k in range(1, 100)
    )
    platform = platform_of(f'<zone id="w" routing="Dijkstra">{text}</zone>')
    for host in range(100, 10_000, 7):
        assert len(platform.route_parts(host, 10_000 - host).links) in (2, 3, 4)
    assert platform._cached_path.cache_info().currsize <= 3 * len(platform.hosts)
