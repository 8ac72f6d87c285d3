"""link_users.csv: what tasks sent over links is what was used of these."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import ptaskmodel as pm
from ptaskmodel.cli import main
from ptaskmodel.results.loading import load_results
from ptaskmodel.results.traces import attribution
from ptaskmodel.runs.recording import Observation

PLATFORMS = Path(__file__).resolve().parent.parent.parent / "platforms"
PLATFORM = """<platform version="4.1"><zone id="w" routing="Full">
<host id="a" speed="1f"/><host id="b" speed="1f"/><link id="l" bandwidth="100Bps" latency="0s"/>
<route src="a" dst="b"><link_ctn id="l"/></route></zone></platform>"""


def table(directory):
    with (directory / attribution.LINK_USERS).open() as stream:
        return [line.rstrip("\n").split(",") for line in stream][1:]


def observed(platform, tasks, directory):
    simulation = pm.Simulation(platform)
    for task in tasks:
        simulation.add(task)
    with Observation(simulation, directory, attribution=True):
        simulation.run()
    return simulation


@pytest.fixture
def cable(tmp_path):
    file = tmp_path / "cable.xml"
    file.write_text(PLATFORM)
    return pm.load_platform(file)


def test_two_flows_that_share_a_link(cable, tmp_path):
    """x alone for 1 s, then half the link each until y, with 100 B, ends at 3 s; x ends at 4 s."""
    tasks = [pm.Flow("a", "b", 300.0, id="x"), pm.Flow("a", "b", 100.0, start_s=1.0, id="y")]
    observed(cable, tasks, tmp_path)
    assert table(tmp_path) == [
        ["l", "2", "x", "0.0", "4.0", "300.0"],
        ["l", "2", "y", "1.0", "3.0", "100.0"],
    ]


def test_of_many_users_those_that_sent_most_are_named_and_all_are_counted(
    cable, tmp_path, monkeypatch
):
    monkeypatch.setattr(attribution, "MOST", 3)
    monkeypatch.setattr(attribution, "MAX_PAIRS", 5)
    monkeypatch.setattr(attribution, "PENDING", 1)
    tasks = [pm.Flow("a", "b", 10.0 * (k + 1), start_s=20.0 * k, id=f"t{k}") for k in range(9)]
    observed(cable, tasks, tmp_path)
    rows = table(tmp_path)
    assert [row[2] for row in rows] == ["t8", "t7", "t6"]
    assert {row[1] for row in rows} == {"9"}


def test_bytes_are_the_integral_of_the_use(tmp_path):
    platform = pm.load_platform(PLATFORMS / "fat_tree_1024.xml")
    random = np.random.default_rng(5)
    names = [host.name for host in platform.hosts]
    tasks = [
        pm.ParallelTask(
            list(random.choice(names, 8, replace=False)),
            work=pm.HomogeneousWork(0.0, 1e9),
            start_s=float(k % 3),
        )
        for k in range(6)
    ]
    observed(platform, tasks, tmp_path)
    (tmp_path / "tasks.csv").write_text(
        "task_id,profile,start_time,finish_time,final_state,hosts\n"
    )
    (tmp_path / "summary.json").write_text("{}")
    results = load_results(tmp_path)
    bandwidth = {link.name: link.bandwidth_Bps for link in platform.all_links}
    assert results.link_users
    for link, (users, rows) in results.link_users.items():
        spans = results.utilisation[link, "link"]
        used = math.fsum((end - start) * share for start, end, share in spans)
        assert users == len(rows)
        sent = math.fsum(row.bytes for row in rows)
        assert sent == pytest.approx(used * bandwidth[link], rel=1e-6)


def test_of_a_replay_pairs_of_ranks_are_the_users(tmp_path):
    """Of equal messages three times as many one way as back: as many bytes on the link."""
    (tmp_path / "cable.xml").write_text(PLATFORM)
    lines = ["0 init", *["0 send 1 0 1"] * 1500, *["0 recv 1 0 1"] * 500, "0 finalize"]
    lines += ["1 init", *["1 recv 0 0 1"] * 1500, *["1 send 0 0 1"] * 500, "1 finalize"]
    (tmp_path / "trace.txt").write_text("\n".join(lines) + "\n")
    files = [str(tmp_path / "cable.xml"), str(tmp_path / "trace.txt")]
    options = ["--network-model", "CM02", "--attribution", "-o", str(tmp_path / "out")]
    assert main(["replay", *files, *options]) == 0
    there, back = table(tmp_path / "out")
    assert (there[:3], back[:3]) == (["l", "2", "0>1"], ["l", "2", "1>0"])
    assert float(there[5]) == pytest.approx(3 * float(back[5]))
