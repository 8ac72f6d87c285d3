"""Hosts, links, zones, traces and options that a platform file declares."""

from __future__ import annotations

import itertools

import pytest

from ptaskmodel.errors import PlatformError
from ptaskmodel.platform import AvailabilityTrace, PlatformWarning
from ptaskmodel.platform.facts import TraceError, parse_trace

WORLD = '<zone id="w" routing="Full">{}</zone>'
CLUSTER = '<cluster id="c" prefix="n" suffix=".x" radical="{}" speed="2Gf,1Gf" {}/>'


def test_a_host_keeps_its_facts(platform_of):
    platform = platform_of(
        WORLD.format(
            '<host id="a" speed="100f, 50f" core="4" pstate="1" coordinates="1 2 3">'
            '<prop id="k" value="first"/><prop id="k" value="second"/>'
            '<disk id="d" read_bw="1MBps" write_bw="2MBps"><prop id="size" value="1"/></disk>'
            "</host>"
        )
    )
    host = platform.host("a")
    assert (host.speeds_flops, host.cores, host.speed_flops) == ((100.0, 50.0), 4, 50.0)
    assert (dict(host.properties), host.coordinates) == ({"k": "first"}, (1.0, 2.0, 3.0))
    assert (host.disks[0].name, host.disks[0].write_bandwidth_Bps) == ("d", 2e6)
    assert (host.zone, platform.zones[platform.leaf_zone(0)].name) == ("w", "w")


def test_the_loopback_is_the_last_link(platform_of):
    platform = platform_of(
        '<config><prop id="network/loopback-bw" value="100"/>'
        '<prop id="network/loopback-lat" value="2"/></config>'
        + WORLD.format('<host id="a" speed="1f"/><link id="l" bandwidth="1Bps" latency="0s"/>')
    )
    last = platform.all_links[-1]
    assert [link.index for link in platform.all_links] == [0, 1]
    assert (last.name, last.policy) == ("__loopback__", "FATPIPE")
    assert (last.bandwidth_Bps, last.latency_s) == (100.0, 2.0)
    assert [link.name for link in platform.links] == ["l"]


def test_config_keys_of_old_are_renamed_and_the_first_holds(platform_of):
    platform = platform_of(
        '<config><prop id="maxmin/precision" value="1"/></config>'
        '<config><prop id="precision/work-amount" value="2"/></config>'
        + WORLD.format('<host id="a" speed="1f"/>')
    )
    assert platform.config == {"precision/work-amount": "1"}


def test_an_unknown_name_is_told_with_those_that_come_close(platform_of):
    platform = platform_of(CLUSTER.format("0-9", 'bw="1Bps" lat="0s"'))
    with pytest.raises(PlatformError, match=r"unknown host 'n3'; do you mean 'n3\.x'"):
        platform.host("n3")
    with pytest.raises(PlatformError, match=r"unknown link 'zzz'; e\.g\. "):
        platform.link("zzz")


def test_names_of_a_flat_cluster(platform_of):
    options = 'bw="1Bps" lat="0s" bb_lat="1s" loopback_bw="1Bps" limiter_link="1Bps" core="2"'
    platform = platform_of(CLUSTER.format("3,1-2", options))
    assert [host.name for host in platform.hosts] == ["n3.x", "n1.x", "n2.x"]
    assert platform.host("n1.x").speeds_flops == (2e9, 1e9)
    assert platform.host("n1.x").cores == 2
    names = {link.name for link in platform.links}
    private = {f"c_link_{k}{end}" for k in (1, 2, 3) for end in ("_UP", "_DOWN", "_limiter")}
    assert private | {"c_link_1_loopback", "c_backbone"} <= names
    assert platform.link("c_backbone").bandwidth_Bps == 0.0
    assert platform.link("c_link_1_loopback").policy == "FATPIPE"
    assert "nc_router.x" in platform.points.by_name


def test_a_cluster_of_fatpipes_is_shared_and_warns(platform_of):
    with pytest.warns(PlatformWarning, match="FATPIPE has no effect"):
        platform = platform_of(CLUSTER.format("1", 'bw="1Bps" lat="0s" sharing_policy="FATPIPE"'))
    assert platform.link("c_link_1").policy == "SHARED"


def test_cluster_properties_go_to_its_hosts(platform_of):
    text = CLUSTER.format("1-2", 'bw="1Bps" lat="0s"').replace("/>", ">")
    platform = platform_of(text + '<prop id="k" value="v"/></cluster>')
    assert [dict(host.properties) for host in platform.hosts] == [{"k": "v"}] * 2


def test_traces_are_connected_to_both_halves_of_a_link(platform_of):
    platform = platform_of(
        '<trace id="t" periodicity="21.0">\n 0.0 1.0\n 11.0 0.5\n</trace>'
        '<trace id="u" periodicity="0">5 3</trace>'
        + WORLD.format(
            '<host id="a" speed="1f"/>'
            '<link id="l" bandwidth="1Bps" latency="0s" sharing_policy="SPLITDUPLEX"/>'
        )
        + '<trace_connect kind="SPEED" trace="t" element="a"/>'
        '<trace_connect trace="t" element="a"/>'
        '<trace_connect kind="BANDWIDTH" trace="u" element="l"/>'
        '<trace_connect kind="LATENCY" trace="u" element="l_UP"/>'
        '<trace_connect kind="LINK_AVAIL" trace="u" element="l_UP"/>'
    )
    expected = AvailabilityTrace("t", (0.0, 11.0), (1.0, 0.5), 21.0)
    assert platform.host("a").speed_trace == platform.host("a").state_trace == expected
    other = AvailabilityTrace("u", (5.0,), (3.0,))
    assert [platform.link(f"l_{way}").bandwidth_trace for way in ("UP", "DOWN")] == [other] * 2
    assert platform.link("l_UP").latency_trace == platform.link("l_UP").state_trace == other
    assert platform.link("l_DOWN").latency_trace is None


def test_one_trace_file_may_serve_several_hosts(platform_of, tmp_path):
    (tmp_path / "speed.txt").write_text("% comment\n\n0 1.0\n2 0.5\nPERIODICITY 10\n")
    hosts = "".join(f'<host id="{n}" speed="1f" speed_file="speed.txt"/>' for n in "ab")
    platform = platform_of(WORLD.format(hosts))
    assert [host.speed_trace.period_s for host in platform.hosts] == [10.0, 10.0]


@pytest.mark.parametrize(
    ("text", "dates", "period"),
    [
        ("0 1\n2 0.5\n5 0.25\nLOOPAFTER 3", (0.0, 2.0, 5.0), 8.0),
        ("0 1\n2 0.5\n5 0.25\nPERIODICITY 10", (0.0, 2.0, 5.0), 10.0),
        ("1 1\n3 1\nLOOPAFTER 2", (1.0, 3.0), 5.0),
        ("1 1\n3 1\nPERIODICITY 0", (1.0, 3.0), 3.0),
        ("1s 1 ignored words\n# no\n% no\n3 1", (1.0, 3.0), None),
        ("1 -1\n3 1", (3.0,), None),
        ("STOCHASTIC\nDET 1 DET 1\nDET 3 DET 1\nLOOPAFTER 2", (1.0, 4.0), 6.0),
        ("STOCHASTIC LOOP\n1 1\n3 1", (1.0, 4.0), 4.0),
        ("", (), None),
        ("PERIODICITY 5", (), None),
    ],
)
def test_traces(text, dates, period):
    trace = parse_trace("p", text)
    assert (trace.dates_s, trace.period_s) == (dates, period)


@pytest.mark.parametrize(
    "text",
    [
        *("1", "x 1", "1 x", "-1 1", "nan 1", "1 inf", "2 1\n1 1", "1 1\n2 -1", "1 1\nLOOPAFTER"),
        *("1 -1\n3 1\nLOOPAFTER 1", "1 1\nPERIODICITY -1", "0 1\nPERIODICITY 0", "EXP 1 1"),
        *("1 1\nLOOPAFTER 1\nPERIODICITY 9", "STOCHASTIC\nNORM 1 2 DET 1", "5 1\nPERIODICITY 2"),
        "STOCHASTIC\nDET 1 DET 1\nPERIODICITY 9",
    ],
)
def test_bad_traces(text):
    with pytest.raises(TraceError):
        parse_trace("p", text)


@pytest.mark.parametrize("period", [None, 0.7, 5.0, 1e-3 + 5])
@pytest.mark.parametrize("since", [0.0, 0.1, 4.9, 5.0, 1234.5, 7e5, 1e6 * 0.7])
def test_the_events_of_a_trace_from_a_date_on(period, since):
    dates = (0.0, 0.1, 0.1, 0.7) if period == 0.7 else (0.0, 0.1, 4.9, 5.0)
    trace = AvailabilityTrace("t", dates, (1.0, 2.0, 3.0, 4.0), period)
    turns = range(1) if period is None else range(2_000_000)
    every = (
        (date + turn * period if turn else date, value)
        for turn in turns
        for date, value in zip(dates, trace.values, strict=True)
    )
    expected = itertools.islice(itertools.dropwhile(lambda event: event[0] < since, every), 9)
    assert list(itertools.islice(trace.events(since), 9)) == list(expected)


def test_a_trace_without_events_has_none():
    assert list(AvailabilityTrace("t", (), ()).events(3.0)) == []


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("0 1\nPERIODICITY 1e-300", 2, "shorter than 1e-09 s"),
        ("PERIODICITY 1e-16\n0 1", 1, "shorter than 1e-09 s"),
        ("0 1\n5e-10 0.5\nLOOPAFTER 1", 2, "less than 1e-09 s after 0.0"),
        ("1 1\n1 0.5\n1.0000000001 1", 3, "less than 1e-09 s after 1.0"),
        ("0 1\n1 0.5\n\nLOOPAFTER 1e-12", 4, "s after its last event"),
        ("STOCHASTIC\nDET 1e-12 DET 1\nDET 1e-12 DET 2", 3, "less than 1e-09 s after"),
    ],
)
def test_dates_that_cannot_be_told_apart_are_refused_with_their_line(text, line, said):
    with pytest.raises(TraceError, match=said) as found:
        parse_trace("p", text)
    assert found.value.line == line


def test_a_trace_of_very_many_events_is_told_of():
    told = []
    assert parse_trace("p", "0 1\nPERIODICITY 1e-4", None, told.append).period_s == 1e-4
    assert told == ["it changes 1e+04 times per second, and each change is an event"]
    parse_trace("p", "0 1\n5 0.5\nPERIODICITY 10", None, told.append)
    assert len(told) == 1
