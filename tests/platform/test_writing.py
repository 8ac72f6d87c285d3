"""A platform written as XML reads as the same platform, here and in SimGrid."""

from __future__ import annotations

import random
from pathlib import Path

import live_routes
import pytest
from quiet import load, no_platform_warnings
from random_platforms import random_platform

from ptaskmodel.errors import PlatformError, RouteError
from ptaskmodel.platform import Platform
from ptaskmodel.platform.reader.xml import parse_platform

HERE = Path(__file__).resolve().parent
OWN = sorted((HERE.parent.parent / "platforms").glob("*.xml"))
SHARED = sorted((HERE.parent.parent.parent / "shared" / "data" / "platforms").glob("*.xml"))
FILES = [pytest.param(file, id=file.stem) for file in (*OWN, *SHARED)]
PAIRS = 400


def again(platform: Platform) -> Platform:
    with no_platform_warnings():
        return parse_platform(platform.to_xml().encode(), Path("again.xml"))


def pairs_of(platform: Platform) -> list[tuple[str, str]]:
    names = [host.name for host in platform.hosts]
    if len(names) ** 2 <= PAIRS:
        return [(a, b) for a in names for b in names]
    generator = random.Random(5)
    return [(generator.choice(names), generator.choice(names)) for _ in range(PAIRS)]


def route(platform: Platform, pair: tuple[str, str]) -> object:
    try:
        return platform.route(*pair)
    except RouteError:
        return None


def facts(item: object, *but: str) -> dict[str, object]:
    slots = {name: getattr(item, name) for name in type(item).__slots__}
    for name in ("speed_trace", "state_trace", "bandwidth_trace", "latency_trace"):
        trace = slots.pop(name, None)
        if trace is not None and trace.dates_s:
            slots[name] = (trace.dates_s, trace.values, trace.period_s)
    return {name: value for name, value in slots.items() if name not in but}


def assert_same(one: Platform, other: Platform) -> None:
    assert [facts(host) for host in one.hosts] == [facts(host) for host in other.hosts]
    ours = sorted((facts(link, "index") for link in one.links), key=lambda link: link["name"])
    theirs = sorted((facts(link, "index") for link in other.links), key=lambda link: link["name"])
    assert ours == theirs
    assert one.config == other.config
    assert [(zone.name, zone.kind, zone.properties) for zone in one.zones] == [
        (zone.name, zone.kind, zone.properties) for zone in other.zones
    ]
    for pair in pairs_of(one):
        assert route(one, pair) == route(other, pair), pair


@pytest.mark.parametrize("file", FILES)
def test_a_platform_reads_back_as_the_same(file):
    try:
        platform = load(file)
    except PlatformError:
        pytest.skip("not read")
    copy = again(platform)
    assert_same(platform, copy)
    assert copy.to_xml() == platform.to_xml()


@pytest.mark.parametrize("first", range(3000, 3200, 40))
def test_random_platforms_read_back_as_the_same(first):
    for seed in range(first, first + 40):
        try:
            platform = parse_platform(random_platform(seed).encode(), Path("random.xml"))
        except PlatformError:
            continue
        assert_same(platform, again(platform))


@pytest.mark.parametrize(
    "file", [pytest.param(*f.values, id=f.id, marks=live_routes.needs_simgrid) for f in FILES]
)
def test_simgrid_reads_what_is_written(file, tmp_path):
    if not live_routes.loads(file):
        pytest.skip("SimGrid does not load it")
    platform = load(file)
    if any(
        link.bandwidth_trace or link.latency_trace or link.state_trace for link in platform.links
    ):
        pytest.skip("SimGrid 3.32 connects no traces to links but those in files of their own")
    written = tmp_path / file.name
    written.write_text(platform.to_xml())
    assert live_routes.loads(written)
    pairs = pairs_of(platform)[:150]
    before, after = live_routes.routes(file, pairs), live_routes.routes(written, pairs)
    assert after == before


def test_names_and_texts_are_quoted(platform_of):
    zone = '<zone id="&lt;&amp;&quot;" routing="Full"><prop id="&#10;" value="\'"/>'
    platform = platform_of(zone + '<host id="a&gt;" speed="1f"/></zone>')
    assert_same(platform, again(platform))
    assert platform.zones[0].properties == {"\n": "'"}


def test_references_to_characters_are_read(platform_of):
    platform = platform_of(
        '<zone id="&lt;&gt;&amp;&quot;&apos;&#65;&#x42;" routing="Full">'
        '<host id="a" speed="1f"/></zone>'
    )
    assert platform.zones[0].name == "<>&\"'AB"


def test_a_comment_is_kept_inside_its_marks(platform_of):
    platform = platform_of('<zone id="w" routing="Full"><host id="a" speed="1f"/></zone>')
    text = platform.to_xml("what ---> it is\n")
    assert "<!--\nwhat -> it is\n-->" in text
    assert len(parse_platform(text.encode(), Path("p.xml")).hosts) == 1
