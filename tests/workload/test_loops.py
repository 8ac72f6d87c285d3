"""Closed loops: requests that follow each other, against closed forms; what their summary says."""

import json
import statistics

import pytest

from ptaskmodel import Simulation
from ptaskmodel.cli import main
from ptaskmodel.errors import WorkloadError
from ptaskmodel.platform import load_platform
from ptaskmodel.results.tables.tasks import times_of_loops
from ptaskmodel.workload.formats.tasks_json import load_tasks
from ptaskmodel.workload.tasks import closed_loop, exponential, uniform
from ptaskmodel.workload.works import ParallelWork

XML = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="z" routing="Full">
    <host id="server" speed="1Gf"/><host id="a" speed="1Gf"/><host id="b" speed="1Gf"/>
    <link id="up" bandwidth="1MBps" latency="0"/>
    <route src="server" dst="a"><link_ctn id="up"/></route>
    <route src="server" dst="b"><link_ctn id="up"/></route>
  </zone>
</platform>
"""
REQUEST = ParallelWork.of(2, None, [[0, 1e5], [0, 0]])


def ran(tmp_path, *loops):
    (tmp_path / "p.xml").write_text(XML)
    tasks = [task for loop in loops for task in loop]
    simulation = Simulation(load_platform(tmp_path / "p.xml"))
    simulation.add_all(tasks)
    simulation.run()
    return times_of_loops(tasks, simulation.records()), simulation


def test_alone_a_request_follows_its_pause(tmp_path):
    found, simulation = ran(tmp_path, closed_loop("c", ["server", "a"], REQUEST, 10, [0.3]))
    assert simulation.makespan_s == pytest.approx(10 * 0.1 + 9 * 0.3, rel=1e-12)
    assert found["c"]["mean_s"] == pytest.approx(0.1, rel=1e-12)
    assert found["c"]["bytes_per_s"] == pytest.approx(1e6 / 3.7, rel=1e-12)


def test_a_loop_that_keeps_the_link_busy_lasts_as_its_requests_together(tmp_path):
    loops = [
        closed_loop(f"c{k}", ["server", "a"], REQUEST, 50, [0.02], start_s=0.03 * k)
        for k in range(4)
    ]
    found, _ = ran(tmp_path, *loops)
    middle = [found[f"c{k}"]["p50_s"] for k in range(4)]
    assert statistics.mean(middle) == pytest.approx(4 * 0.1 - 0.02, rel=0.02)


def test_two_at_once_share_and_ask_apart(tmp_path):
    found, simulation = ran(tmp_path, closed_loop("c", ["server", "a"], REQUEST, 6, at_once=2))
    assert simulation.makespan_s == pytest.approx(0.6, rel=1e-12)
    assert found["c"]["mean_s"] == pytest.approx(0.2, rel=1e-12)


@pytest.mark.parametrize(
    ("draws", "mean_s"), [(exponential(2.0, "1 c"), 2.0), (uniform(1.0, 5.0, "1 c"), 3.0)]
)
def test_drawn_pauses_have_their_mean(draws, mean_s):
    found = [next(draws) for _ in range(20_000)]
    assert statistics.mean(found) == pytest.approx(mean_s, rel=0.02)
    assert min(found) >= 0.0


def test_pauses_of_a_file_begin_anew(tmp_path):
    (tmp_path / "think.txt").write_text("0.5\n\n0.25\n")
    loop = {"id": "c", "delay": 1, "count": 4, "think": {"file": "think.txt"}}
    (tmp_path / "t.json").write_text(json.dumps({"loops": [loop]}))
    tasks = load_tasks(tmp_path / "t.json")
    assert [t.id for t in tasks] == [
        *("c#1", "c#1 think", "c#2", "c#2 think", "c#3", "c#3 think", "c#4"),
    ]
    assert [t.work.duration_s for t in tasks[1::2]] == [0.5, 0.25, 0.5]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"count": 0}, "count is 0; give 1 to"),
        ({"count": None}, "/loops/0/count: is null; give a whole number"),
        ({"at_once": 9}, "at_once is 9; give 1 to its count, 3"),
        ({"think": -1}, "/loops/0/think: -1"),
        ({"think": {"uniform": [2, 1]}}, "exchange them"),
        ({"think": {"exponential": 1, "uniform": [1, 2]}}, "2 kinds of think times"),
        ({"think": {"normal": 1}}, "is not a field of think times"),
        ({"think": {"file": "none.txt"}}, "none.txt: no such file; name a text file with seconds"),
        ({"think": "1s"}, "is '1s'; give seconds, or an object with one of exponential, uniform"),
        ({"after": ["x"]}, "is not a field of a loop"),
        ({"hosts": []}, "give the hosts"),
    ],
)
def test_what_no_loop_can_be_is_refused(tmp_path, changes, complaint):
    loop = {"id": "c", "hosts": ["a"], "cpu": 1, "count": 3} | changes
    (tmp_path / "t.json").write_text(json.dumps({"loops": [loop]}))
    with pytest.raises(WorkloadError) as caught:
        load_tasks(tmp_path / "t.json")
    assert complaint in str(caught.value)


def test_the_command_tells_times_and_throughput(tmp_path, capsys):
    (tmp_path / "p.xml").write_text(XML)
    loop = {"id": "c", "hosts": ["server", "a"], "flows": [[0, 1, 1e5]], "count": 9}
    (tmp_path / "t.json").write_text(json.dumps({"loops": [loop]}))
    out = tmp_path / "out"
    assert (
        main(["simulate", *(str(tmp_path / n) for n in ("p.xml", "t.json")), "-o", str(out)]) == 0
    )
    assert "c: 9 of 9 requests, mean 100 ms" in capsys.readouterr().out
    found = json.loads((out / "summary.json").read_text())["loops"]["c"]
    assert found["requests_per_s"] == pytest.approx(10.0, rel=1e-9)
