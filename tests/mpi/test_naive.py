"""Replays end when a naive interpreter of the same traces says."""

from __future__ import annotations

import pytest
from naive_replay import World
from replay_mixes import any_case
from replay_traces import PLATFORMS, platform_text, random_case
from smpi import write_case

from ptaskmodel.mpi import read_trace, replay
from ptaskmodel.platform import load_platform


@pytest.fixture(scope="module")
def platforms(tmp_path_factory):
    place = tmp_path_factory.mktemp("platforms")
    made = {}
    for name in PLATFORMS:
        (place / f"{name}.xml").write_text(platform_text(name))
        made[name] = load_platform(place / f"{name}.xml")
    return made


@pytest.mark.parametrize("part", range(4))
def test_random_traces(platforms, tmp_path, part):
    names = {name: [host.name for host in its.hosts] for name, its in platforms.items()}
    tried = 0
    for seed in range(5000 + part, 5080, 4):
        name, hosts, files = random_case(seed, names)
        tree = any("reducescatter" in text for text in files) and len(hosts) & (len(hosts) - 1)
        if len(hosts) > 5 or tree:
            continue
        tried += 1
        traces = write_case(tmp_path / str(seed), hosts, files)
        trace = read_trace(traces if len(hosts) > 1 else traces.parent / "rank0.txt")
        ours = replay(platforms[name], trace, hosts).end_s.tolist()
        naive = World(platforms[name], hosts, files).play()
        assert ours == pytest.approx(naive, rel=1e-9, abs=2e-9), seed
    assert tried > 5


def test_random_traces_of_receives_from_anybody(platforms, tmp_path):
    names = {name: [host.name for host in its.hosts] for name, its in platforms.items()}
    tried = 0
    for seed in range(5000, 5040):
        name, hosts, files = any_case(seed, names)
        if len(hosts) > 4 or any(" -1 " in text for text in files):  # it does not poll
            continue
        tried += 1
        trace = read_trace(write_case(tmp_path / str(seed), hosts, files))
        ours = replay(platforms[name], trace, hosts).end_s.tolist()
        naive = World(platforms[name], hosts, files).play()
        assert ours == pytest.approx(naive, rel=1e-9, abs=2e-9), seed
    assert tried > 10
