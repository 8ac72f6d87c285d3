"""The same links, order and latency as SimGrid: recorded results, and live where installed.

Routes that end in a Dijkstra zone have their links in natural order here; SimGrid 3.32 puts the
links of that zone first. So where a platform has such a zone, the order is not compared.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import live_routes
import pytest
from quiet import load
from random_platforms import random_platform

from ptaskmodel.errors import PlatformError, RouteError
from ptaskmodel.platform import Platform

HERE = Path(__file__).resolve().parent
PLATFORMS = HERE.parent.parent / "platforms"
REFERENCE = HERE / "reference"
MAX_PAIRS = 4000


def ours(platform: Platform, pair: tuple[str, str]) -> tuple[tuple[str, ...] | None, float]:
    try:
        route = platform.route(*pair)
    except RouteError:
        return None, 0.0
    return route.links, route.latency_s


def assert_same(
    platform: Platform, pair: tuple[str, str], links: tuple[str, ...] | None, latency_s: float
) -> None:
    found, latency = ours(platform, pair)
    if links is None:
        assert found is None, pair
        return
    assert found is not None, pair
    in_order = all(zone.kind != "Dijkstra" for zone in platform.zones)
    assert (found if in_order else Counter(found)) == (links if in_order else Counter(links)), pair
    assert latency == pytest.approx(latency_s, rel=1e-12, abs=0.0), pair


@pytest.mark.parametrize("file", sorted(REFERENCE.glob("*.tsv")), ids=lambda file: file.stem)
def test_recorded_routes(file):
    beside = file.with_suffix(".xml")
    platform = load(beside if beside.exists() else PLATFORMS / beside.name)
    for line in file.read_text().splitlines():
        source, destination, latency, *links = line.split("\t")
        if latency == "error":
            assert_same(platform, (source, destination), None, 0.0)
        else:
            assert_same(platform, (source, destination), tuple(links), float(latency))


def pairs_of(platform: Platform, seed: int) -> list[tuple[str, str]]:
    names = [host.name for host in platform.hosts]
    if len(names) ** 2 <= MAX_PAIRS:
        return [(a, b) for a in names for b in names]
    generator = random.Random(seed)
    return sorted({(generator.choice(names), generator.choice(names)) for _ in range(MAX_PAIRS)})


def compare_live(file: Path, seed: int) -> None:
    platform = load(file)
    for pair, route in live_routes.routes(file, pairs_of(platform, seed)).items():
        if not route.crashed:
            assert_same(platform, pair, route.links, route.latency_s)


def live_parameters(files):
    return [pytest.param(file, marks=live_routes.needs_simgrid, id=file.stem) for file in files]


SHARED = HERE.parent.parent.parent / "shared" / "data" / "platforms"


@pytest.mark.parametrize(
    "file", live_parameters(sorted(PLATFORMS.glob("*.xml")) + sorted(SHARED.glob("*.xml")))
)
def test_live_routes(file):
    if not live_routes.loads(file):
        pytest.skip("SimGrid does not load it")
    compare_live(file, 1)


@pytest.mark.parametrize(
    "first",
    [pytest.param(k, marks=live_routes.needs_simgrid, id=str(k)) for k in range(2000, 2040, 20)],
)
def test_live_routes_of_generated_platforms(first, tmp_path):
    for seed in range(first, first + 20):
        file = tmp_path / f"{seed}.xml"
        file.write_text(random_platform(seed))
        if live_routes.loads(file):
            compare_live(file, seed)
        else:
            with pytest.raises(PlatformError):
                load(file)
