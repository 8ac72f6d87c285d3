"""Replays end when SimGrid's do: recorded, and live where smpirun is installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from replay_configs import config_case
from replay_crowds import crowd_case
from replay_mixes import any_case, mixed_case
from replay_polls import polling_case
from replay_traces import (
    PLATFORMS,
    WIDE,
    algorithm_case,
    platform_text,
    random_case,
    wide_case,
)
from smpi import ends_by_smpirun, is_installed, write_case

from ptaskmodel.mpi import read_trace, replay
from ptaskmodel.mpi.collectives.names import COLLECTIVES
from ptaskmodel.platform import load_platform

REFERENCE = Path(__file__).parent / "reference"


def recorded(name):
    return json.loads((REFERENCE / f"{name}.json").read_text())["cases"]


CASES = recorded("ends")


@pytest.fixture(scope="module")
def platforms(tmp_path_factory):
    place = tmp_path_factory.mktemp("platforms")
    made = {}
    for name in PLATFORMS | WIDE:
        (place / f"{name}.xml").write_text(platform_text(name))
        made[name] = place / f"{name}.xml", load_platform(place / f"{name}.xml")
    return made


def ours(platforms, place, seed, model):
    names = {name: [host.name for host in its.hosts] for name, (_, its) in platforms.items()}
    platform, hosts, files = random_case(seed, names)
    traces = write_case(place, hosts, files)
    trace = read_trace(traces if len(hosts) > 1 else place / "rank0.txt")
    result = replay(platforms[platform][1], trace, hosts, model=model)
    return platform, hosts, result


def replayed(platforms, place, platform, hosts, files, **options):
    traces = write_case(place, hosts, files)
    return replay(platforms[platform][1], read_trace(traces), hosts, **options)


@pytest.mark.jit
@pytest.mark.parametrize("part", range(8))
def test_ranks_end_when_simgrids_do(platforms, tmp_path, part):
    for case in CASES[part::8]:
        seed, model = case["seed"], case["model"]
        _, _, result = ours(platforms, tmp_path / str(seed), seed, model)
        assert result.end_s.tolist() == pytest.approx(case["ends"], rel=1e-9, abs=1e-12), seed
        assert result.unmatched == 0


@pytest.mark.jit
@pytest.mark.parametrize("part", range(5))
def test_so_do_many_ranks_in_collectives(platforms, tmp_path, part):
    names = {name: [host.name for host in its.hosts] for name, (_, its) in platforms.items()}
    for case in recorded("wide")[part::5]:
        platform, hosts, files = wide_case(case["seed"], names, case["collective"])
        result = replayed(platforms, tmp_path / str(case["seed"]), platform, hosts, files)
        assert result.end_s.tolist() == pytest.approx(case["ends"], rel=1e-9, abs=1e-12), case


@pytest.mark.jit
@pytest.mark.parametrize("part", range(2))
def test_so_do_many_ranks_that_do_all_kinds_of_things(platforms, tmp_path, part):
    names = {name: [host.name for host in its.hosts] for name, (_, its) in platforms.items()}
    for case in recorded("mixed")[part::2]:
        platform, hosts, files, chosen = mixed_case(case["seed"], names, case["algorithms"])
        place = tmp_path / str(case["seed"])
        result = replayed(platforms, place, platform, hosts, files, collectives=chosen)
        assert result.end_s.tolist() == pytest.approx(case["ends"], rel=1e-9, abs=1e-12), case


@pytest.mark.jit
def test_so_they_do_if_they_receive_from_anybody(platforms, tmp_path):
    names = {name: [host.name for host in its.hosts] for name, (_, its) in platforms.items()}
    for case in recorded("any"):
        platform, hosts, files = any_case(case["seed"], names)
        result = replayed(platforms, tmp_path / str(case["seed"]), platform, hosts, files)
        assert result.end_s.tolist() == pytest.approx(case["ends"], rel=1e-9, abs=1e-12), case


def under_config(place, seed):
    """The platform file, our result and the hosts of a case of `config_case`."""
    text, model, chosen, files = config_case(seed)
    place.mkdir(parents=True, exist_ok=True)
    file = place / "platform.xml"
    file.write_text(text)
    platform = load_platform(file)
    hosts = [platform.hosts[k].name for k in chosen]
    traces = read_trace(write_case(place, hosts, files), len(hosts))
    return file, model, hosts, replay(platform, traces, hosts, model=model)


@pytest.mark.jit
@pytest.mark.parametrize("part", range(4))
def test_so_they_do_under_any_config(tmp_path, part):
    for case in recorded("configs")[part::4]:
        _, _, _, result = under_config(tmp_path / str(case["seed"]), case["seed"])
        assert result.end_s.tolist() == pytest.approx(case["ends"], rel=1e-9, abs=1e-12), case


@pytest.mark.jit
@pytest.mark.parametrize(("kind", "made"), [("polls", polling_case), ("crowds", crowd_case)])
def test_so_they_do_if_they_test_and_poll_or_if_one_link_limits_them_all(tmp_path, kind, made):
    """Ranks that test and poll do so at the same dates."""
    for case in recorded(kind):
        text, hosts, files = made(case["seed"])
        place = tmp_path / str(case["seed"])
        traces = read_trace(write_case(place, hosts, files), len(hosts))
        (place / "platform.xml").write_text(text)
        result = replay(load_platform(place / "platform.xml"), traces, hosts)
        assert result.end_s.tolist() == pytest.approx(case["ends"], rel=1e-9, abs=1e-12), case


@pytest.mark.jit
def test_so_they_do_by_any_algorithm(platforms, tmp_path):
    hosts = [host.name for host in platforms["fat_tree"][1].hosts]
    for case in recorded("algorithms"):
        collective, name, ranks = case["collective"], case["algorithm"], case["ranks"]
        files = algorithm_case(COLLECTIVES[collective].action, name, ranks)
        place = tmp_path / f"{collective}-{name}-{ranks}"
        chosen = {collective: name}
        result = replayed(platforms, place, "fat_tree", hosts[:ranks], files, collectives=chosen)
        ends = pytest.approx(case["ends"], rel=1e-9, abs=1e-12)
        assert result.end_s.tolist() == ends, (collective, name, ranks)


@pytest.mark.jit
def test_so_do_applications_with_what_its_replay_does_not_know(platforms, tmp_path):
    """Non-blocking collectives, and waits for any message: the ends are the applications' own."""
    for k, case in enumerate(recorded("applications")):
        hosts = [f"n{rank}" for rank in range(len(case["ends"]))]
        result = replayed(platforms, tmp_path / str(k), "flat", hosts, case["traces"])
        assert result.end_s.tolist() == pytest.approx(case["ends"], rel=1e-9, abs=1e-12), k


@pytest.mark.jit
@pytest.mark.parametrize("part", range(3))
def test_so_do_many_ranks_by_any_algorithm(platforms, tmp_path, part):
    hosts = [host.name for host in platforms["switch"][1].hosts]
    for case in recorded("many")[part::3]:
        collective, name, ranks = case["collective"], case["algorithm"], case["ranks"]
        files = algorithm_case(COLLECTIVES[collective].action, name, ranks)
        place = tmp_path / f"{collective}-{name}"
        chosen = {collective: name}
        result = replayed(platforms, place, "switch", hosts[:ranks], files, collectives=chosen)
        ends = pytest.approx(case["ends"], rel=1e-9, abs=1e-12)
        assert result.end_s[::7].tolist() == ends, (collective, name, ranks)


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_some_of_them_without_the_jit_too(platforms, tmp_path, seed):
    case = CASES[seed]
    _, _, result = ours(platforms, tmp_path, seed, case["model"])
    assert result.end_s.tolist() == pytest.approx(case["ends"], rel=1e-9, abs=1e-12)


@pytest.mark.jit
@pytest.mark.skipif(not is_installed(), reason="smpirun is not installed")
@pytest.mark.parametrize("seed", range(1000, 1008))
def test_ranks_end_when_a_live_simgrid_says(platforms, tmp_path, seed):
    platform, hosts, result = ours(platforms, tmp_path, seed, "SMPI")
    live = ends_by_smpirun(tmp_path, platforms[platform][0], hosts)
    assert result.end_s.tolist() == pytest.approx(live, rel=1e-9, abs=1e-12)


@pytest.mark.jit
@pytest.mark.skipif(not is_installed(), reason="smpirun is not installed")
@pytest.mark.parametrize("seed", range(1000, 1004))
def test_so_they_do_under_a_config(tmp_path, seed):
    file, model, hosts, result = under_config(tmp_path, seed)
    live = ends_by_smpirun(tmp_path, file, hosts, f"--cfg=network/model:{model}")
    assert result.end_s.tolist() == pytest.approx(live, rel=1e-9, abs=1e-12)
