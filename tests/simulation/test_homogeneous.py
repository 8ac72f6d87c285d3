"""A homogeneous work is the matrix that it stands for, on every kind of platform."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import quiet
import scenarios

import ptaskmodel as pm

STAR = '<cluster id="c" prefix="n" suffix="" radical="0-99" speed="1Gf" bw="1GBps" lat="1us"{}/>'
TREE = ' topology="FAT_TREE" topo_parameters="2;10,10;1,{};1,{}"'


def load(place: Path, text: str) -> pm.Platform:
    path = place / "platform.xml"
    path.write_text(text)
    return quiet.load(path)


def dates(platform: pm.Platform, tasks: list[pm.Task]) -> list[float | None]:
    simulation = pm.Simulation(platform, solver="fairbottleneck")
    simulation.add_all(tasks)
    simulation.run()
    return [record.end_s for record in simulation.records()]


def check(platform: pm.Platform, jobs: list[tuple[list[str], float, float]]) -> None:
    """The same dates with homogeneous works as with matrices of which the diagonal is not sent."""
    short, long = [], []
    for k, (hosts, flops, size) in enumerate(jobs):
        n = len(hosts)
        flows = [(i, j, size) for i in range(n) for j in range(n) if i != j]
        common = {"id": f"t{k}", "start_s": 0.1 * k}
        short.append(pm.Task(hosts, pm.HomogeneousWork(flops, size), **common))
        work = pm.ParallelWork.of(n, flops, flows=flows)
        assert work.pair_bytes == size
        object.__setattr__(work, "pair_bytes", 0.0)  # as if it were not recognised
        long.append(pm.Task(hosts, work, **common))
    assert dates(platform, short) == pytest.approx(dates(platform, long), rel=1e-9)


@pytest.mark.parametrize(
    "extra",
    [
        "",
        ' bb_bw="3GBps" bb_lat="2us"',
        ' limiter_link="1.5GBps"',
        ' sharing_policy="SHARED" bb_bw="5GBps" bb_lat="0s" bb_sharing_policy="FATPIPE"',
        TREE.format("1", "1"),
        TREE.format("5", "1"),
        TREE.format("3", "2"),
        TREE.format("4", "1") + ' sharing_policy="SHARED"',
        ' topology="TORUS" topo_parameters="10,5,2"',
        ' topology="DRAGONFLY" topo_parameters="5,2;2,1;5,2;2"',
    ],
)
def test_clusters(tmp_path: Path, extra: str) -> None:
    rng = random.Random(extra)
    zone = f'<zone id="world" routing="Full">{STAR.format(extra)}</zone>'
    platform = load(tmp_path, f"{scenarios.HEADER}{zone}</platform>")
    jobs = []
    for n in (2, 3, 7, 10, 33, 64, 100):
        hosts = rng.sample(range(100), n)
        jobs.append(([f"n{i}" for i in hosts], 1e9 * rng.random(), 1e9 * rng.random() / n))
    check(platform, jobs)


@pytest.mark.parametrize("seed", range(20))
def test_small_platforms_with_repeated_hosts(tmp_path: Path, seed: int) -> None:
    rng = random.Random(f"homogeneous {seed}")
    family = rng.choice(["cluster", "structured", "graph", "two-clusters", "vivaldi"])
    place = scenarios.Place(rng, family)
    scenarios.FAMILIES[family](place)
    if place.has_fatpipe:
        place.loopback_Bps = place.bandwidth
    platform = load(tmp_path, place.text)
    jobs = []
    for _ in range(4):
        hosts = [rng.choice(place.hosts) for _ in range(rng.randint(2, 6))]
        jobs.append((hosts, place.number(place.speed), place.number(place.bandwidth)))
    check(platform, jobs)


def star(name: str, links: tuple[str, ...], spokes: dict[str, str]) -> str:
    """A zone written link by link: the links that it declares, and each host's."""
    parts = [f'<zone id="{name}" routing="Cluster">']
    parts += [f'<host id="{host}" speed="1Gf"/>' for host in spokes]
    parts += [f'<link id="{link}" bandwidth="1MBps" latency="1us"/>' for link in links]
    parts += [f'<host_link id="{h}" up="{link}" down="{link}"/>' for h, link in spokes.items()]
    return "".join([*parts, f'<router id="{name}-router"/></zone>'])


def test_a_link_that_another_zone_names_too(tmp_path: Path) -> None:
    """Of one host in its own zone, common to all in the other."""
    own = star("a", ("x", "y", "z"), {"a0": "x", "a1": "y", "a2": "z"})
    other = star("b", (), {"b0": "x", "b1": "x"})
    zones = f'<zone id="world" routing="Full">{own}{other}</zone>'
    platform = load(tmp_path, f"{scenarios.HEADER}{zones}</platform>")
    hosts = ["a0", "a1", "a2"]
    check(platform, [(hosts, 0.0, 1e6)])
    task = pm.Task(hosts, pm.HomogeneousWork(0.0, 1e6))
    assert dates(platform, [task]) == [pytest.approx(4.0, rel=1e-5)]
