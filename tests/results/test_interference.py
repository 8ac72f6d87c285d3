"""Who cost whom how many seconds, on which host or link, against closed forms."""

from __future__ import annotations

import csv
import json
import random

import numpy as np
import pytest

import ptaskmodel as pm
from ptaskmodel.cli import main
from ptaskmodel.engine.state import RATE
from ptaskmodel.recording import attribution
from ptaskmodel.results.pages.report import write_report
from ptaskmodel.results.tables import costs
from ptaskmodel.style.text import number

PLATFORM = """<?xml version="1.0"?>
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-3" speed="1Gf" bw="100MBps" lat="0s"/>
</platform>
"""
# On the way out of n0 each has half while both send, so each loses a second.
TASKS = [
    {"id": "long", "hosts": ["n0", "n1"], "flows": [[0, 1, 4e8]]},
    {"id": "short", "hosts": ["n0", "n2"], "flows": [[0, 1, 1e8]], "start": 1.0},
    {"id": "alone", "hosts": ["n3"], "cpu": 1e9},
]


def lost(place, tasks, *options):
    (place / "p.xml").write_text(PLATFORM)
    (place / "t.json").write_text(json.dumps({"tasks": tasks}))
    files = [str(place / "p.xml"), str(place / "t.json")]
    out = place / "out"
    assert main(["simulate", *files, "--neighbours", *options, "-o", str(out), "-q"]) == 0
    with (out / "interference.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_two_flows_cost_each_other_a_second_on_the_link_that_they_share(tmp_path):
    rows = lost(tmp_path, TASKS)
    assert [(row["task_id"], row["slowed_by"], row["limited_by"]) for row in rows] == [
        ("long", "short", "link"),
        ("short", "long", "link"),
    ]
    assert len({row["resource"] for row in rows}) == 1
    assert [float(row["seconds"]) for row in rows] == pytest.approx([1.0, 1.0])


def test_what_is_lost_is_divided_by_what_others_use(tmp_path):
    # Three on a host of 1 Gflop/s, 1 Gflop each: 3 s instead of 1, a second for each other one.
    tasks = [{"id": name, "hosts": ["n0"], "cpu": 1e9} for name in "abc"]
    rows = lost(tmp_path, tasks)
    assert [(row["limited_by"], row["resource"]) for row in rows] == [("host", "n0")] * 6
    assert [float(row["seconds"]) for row in rows] == pytest.approx([1.0] * 6)


def test_the_terminal_begins_with_the_answer_of_the_page(tmp_path, capsys):
    lost(tmp_path, TASKS, "--attribution")
    said = capsys.readouterr().out
    assert said.startswith("long and short cost each other 1 s on link ")
    assert "\nNo other task slows alone.\n\ntask " in said
    lost(tmp_path, TASKS)
    assert capsys.readouterr().out.startswith("task ")


def test_requests_of_closed_loops_are_told_by_loop(tmp_path):
    (tmp_path / "p.xml").write_text(PLATFORM)
    asks = {"hosts": ["n0", "n1"], "flows": [[0, 1, 1e8]], "count": 3}
    loops = [{"id": "a", **asks}, {"id": "b", **asks}]
    (tmp_path / "t.json").write_text(json.dumps({"loops": loops}))
    files = [str(tmp_path / "p.xml"), str(tmp_path / "t.json")]
    assert (
        main(["simulate", *files, "--neighbours", "--attribution", "-o", str(tmp_path / "out")])
        == 0
    )
    page = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "out"), "-o", str(page)]) == 0
    text = page.read_text().replace("\u00a0%", " %")
    assert "Half of a&#x27;s requests take up to 2 s, 1 % more than 2 s; half of b&#x27;s" in text
    assert '<p class="answer">a and b cost each other 3 s on link ' in text
    assert "2 clients lost 6 s to 2 clients; client" in text
    assert '["a",3,2.0' in text


def test_the_page_says_who_slowed_whom(tmp_path):
    lost(tmp_path, TASKS, "--attribution")
    page = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "out"), "-o", str(page)]) == 0
    text = page.read_text()
    assert "<h2>Who slowed whom</h2>" in text
    assert '<p class="answer">long and short cost each other 1 s on link ' in text
    assert "2 tasks lost 2 s to 2 tasks; task short cost task long most: 1 s." in text


def test_a_run_without_company_says_that_nobody_lost(tmp_path):
    assert lost(tmp_path, TASKS[2:]) == []
    page = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "out"), "-o", str(page)]) == 0
    assert "No task lost time to another one." in page.read_text()


class Naive:
    """Charges each pair of tasks at each change of any rate."""

    def __init__(self, simulation):
        self.core, self.running, self.since, self.found = simulation.core, {}, 0.0, {}
        simulation.listen(self)

    def forget(self, patterns): ...

    def take(self, events):
        for event in events[events["kind"] == RATE]:
            passed, self.since = float(event["date"]) - self.since, float(event["date"])
            for task, (_, _, limit) in self.running.items():
                uses = {other: rate * row.get(limit, 0.0)
                        for other, (row, rate, _) in self.running.items()}  # fmt: skip
                for other, use in uses.items():
                    if limit >= 0 and passed > 0.0 and use > 0.0 and other != task:
                        key = task, other, limit
                        charge = passed * use / sum(uses.values())
                        self.found[key] = self.found.get(key, 0.0) + charge
            self.running.pop(int(event["subject"]), None)
            if event["value"] > 0.0:
                _, resource, usage = self.core.uses(np.array([event["pattern"]]))
                row = dict(zip(resource.tolist(), usage.tolist(), strict=True))
                own = row, float(event["value"]), int(event["limit"])
                self.running[int(event["subject"])] = own


@pytest.mark.parametrize("least_empty", [0, 4096])
def test_charges_are_those_of_each_pair_at_each_change(tmp_path, monkeypatch, least_empty):
    monkeypatch.setattr(attribution, "LEAST_EMPTY", least_empty)
    monkeypatch.setattr(attribution, "PENDING", 10)
    (tmp_path / "p.xml").write_text(PLATFORM)
    simulation = pm.Simulation(pm.load_platform(tmp_path / "p.xml"))
    draw = random.Random(3)
    for k in range(60):
        hosts = draw.sample(["n0", "n1", "n2", "n3"], draw.choice((1, 2, 3)))
        flows = [(0, n, draw.uniform(1e7, 1e8)) for n in range(1, len(hosts))]
        task = pm.ParallelTask(hosts, draw.uniform(1e8, 1e9), flows=flows, start_s=0.2 * k)
        simulation.add(task)
    watch, naive = attribution.Neighbours(simulation, by_limit=True), Naive(simulation)
    simulation.run()
    found = {(task, other, limit): seconds for task, other, limit, seconds in watch.rows().tolist()}
    assert len(found) > 100
    assert found == pytest.approx(naive.found, rel=1e-9, abs=1e-12)


@pytest.mark.filterwarnings("default")
def test_of_very_many_costs_the_worst_of_each_task_are_kept(tmp_path, monkeypatch):
    tasks = [{"id": f"t{k}", "hosts": ["n0"], "cpu": 1e9 * (k + 1)} for k in range(4)]
    whole = lost(tmp_path, tasks)
    monkeypatch.setattr(costs, "MOST_COSTS", 8)
    rows = lost(tmp_path, tasks)
    assert rows == [row for k, row in enumerate(whole) if k % 3 < 2]
    part = sum(float(r["seconds"]) for r in rows) / sum(float(r["seconds"]) for r in whole)
    (told,) = json.loads((tmp_path / "out" / "summary.json").read_text())["remarks"]
    of_each = "interference.csv has the 2 worst of each task"
    assert told["text"] == f"{of_each}, {number(part, 'share')} of all"
    write_report(tmp_path / "out", tmp_path / "r.html")
    assert f"Only a part is shown: {told['text']}." in (tmp_path / "r.html").read_text()
