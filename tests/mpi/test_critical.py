"""The critical path of a replay: end to end, the chain that determines the last end of a rank."""

from __future__ import annotations

import itertools

import pytest
from replay_traces import PLATFORMS, platform_text, random_case
from smpi import write_case

from ptaskmodel.mpi import Replay, read_trace
from ptaskmodel.mpi.critical_path import Told, critical_path
from ptaskmodel.platform import Platform, load_platform
from ptaskmodel.results.tables.critical_path import ReplayPath


def path_of(platform, trace, hosts):
    told = Told()
    made = Replay(platform, trace, hosts)
    result = made.run(told)
    return result, ReplayPath(made, hosts, told), told


def cluster(bandwidth=125e6):
    build = Platform.build("p")
    build.cluster("c", 4, prefix="n", speed=1e9, bandwidth=bandwidth, latency=50e-6)
    return build.finish()


@pytest.fixture
def path(tmp_path):
    def run(*ranks):
        file = tmp_path / "trace.txt"
        file.write_text("".join(f"{r} {line}\n" for r, own in enumerate(ranks) for line in own))
        hosts = [f"n{r}" for r in range(len(ranks))]
        return path_of(cluster(), read_trace(file), hosts)

    return run


def kinds(path):
    return [(part.kind, part.rank, part.to_rank) for part in path.parts]


def test_it_goes_back_over_messages_to_who_was_late(path):
    late = ["compute 2e9", "send 1 0 1e6"]
    result, found, _ = path(late, ["compute 1e9", "recv 0 0 1e6", "compute 5e8"], ["compute 1e9"])
    assert kinds(found) == [
        ("computing", 0, 0), ("latency", 0, 1), ("transfer", 0, 1), ("computing", 1, 1),
    ]  # fmt: skip
    assert [part.action for part in found.parts] == ["compute", "recv", "recv", "compute"]
    assert found.seconds()["computing"] == 2.5
    assert sum(found.seconds().values()) == pytest.approx(result.makespan_s, rel=1e-14)
    summary = found.summary()
    assert (summary["messages"], summary["ranks"], summary["parts"]) == (1, 2, 4)
    links = {share["link"]: share for share in summary["links"]}
    assert set(links) == {"c_link_0_UP", "c_link_1_DOWN"}
    assert all(share["bytes"] == 1e6 and share["messages"] == 1 for share in links.values())
    both = sum(share["latency_s"] for share in links.values())
    assert both == pytest.approx(found.seconds()["latency"], rel=1e-12)


def test_who_waits_for_a_receiver_is_not_to_blame(path):
    _, found, _ = path(["send 1 0 1e6"], ["compute 1e9", "recv 0 0 1e6"])
    assert kinds(found) == [("computing", 1, 1), ("latency", 0, 1), ("transfer", 0, 1)]


def test_what_others_use_meanwhile_is_contention(path):
    alone = path(["send 1 0 1e6"], ["recv 0 0 1e6"])[1].seconds()
    senders = ["irecv 1 0 1e6", "irecv 2 0 1e6", "waitall"], ["send 0 0 1e6"], ["send 0 0 1e6"]
    found = path(*senders)[1].seconds()
    assert "contention" not in alone
    assert found["transfer"] == pytest.approx(alone["transfer"], rel=1e-9)
    assert found["contention"] == pytest.approx(alone["transfer"], rel=0.1)  # and cross-traffic


def test_nothing_has_no_path(path):
    _, found, _ = path(["init"], ["init"])
    assert (found.parts, found.seconds(), found.link_shares()) == ([], {}, [])


@pytest.mark.jit
def test_it_is_end_to_end_on_random_traces(tmp_path):
    platforms = {}
    for name in PLATFORMS:
        (tmp_path / f"{name}.xml").write_text(platform_text(name))
        platforms[name] = load_platform(tmp_path / f"{name}.xml")
    names = {name: [host.name for host in its.hosts] for name, its in platforms.items()}
    for seed in range(24):
        platform, hosts, files = random_case(seed, names)
        traces = write_case(tmp_path / str(seed), hosts, files)
        trace = read_trace(traces if len(hosts) > 1 else tmp_path / str(seed) / "rank0.txt")
        result, found, told = path_of(platforms[platform], trace, hosts)
        parts = critical_path(trace, told.spans(), told.flights())
        for whole in (parts, found.parts):
            dates = [0.0, *(part.end_s for part in whole)]
            assert [part.start_s for part in whole] == dates[:-1]
            assert dates[-1] == result.makespan_s
            assert all(a < b for a, b in itertools.pairwise(dates))
