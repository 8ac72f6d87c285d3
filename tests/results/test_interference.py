"""Who cost whom how many seconds, on which host or link, against closed forms."""

from __future__ import annotations

import csv
import json

import pytest

from ptaskmodel.cli import main

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
    text = page.read_text()
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
