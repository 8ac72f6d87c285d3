"""Pages of replays and campaigns: members of the family, in a real browser where there is one."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from browsing import console, opened, ready, well_made

from ptaskmodel.cli import main

PLATFORM = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-3" speed="1Gf" bw="125MBps" lat="50us"/>
</platform>
"""
RANKS = (
    "0 init\n1 init\n0 compute 1e9\n0 isend 1 0 1e8\n0 waitall\n0 compute 5e8\n0 finalize\n"
    "1 recv 0 0 1e8\n1 compute 5e8\n1 finalize\n"
)
PLAN = """name = "Two lengths"
run = "simulate"
compare_with = { tasks = "short.json" }
[parameters]
platform = "p.xml"
[factors]
tasks = ["short.json", "long.json"]
"""


def data_of(page):
    """What the script of a page shows."""
    return json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', page, re.DOTALL)[1])


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    pytest.importorskip("matplotlib")
    place = tmp_path_factory.mktemp("replay")
    (place / "p.xml").write_text(PLATFORM)
    (place / "t.txt").write_text(RANKS)
    files = [str(place / "p.xml"), str(place / "t.txt")]
    wanted = ["--timeline", "--critical-path", "--attribution"]
    assert main(["replay", *files, *wanted, "-o", str(place / "out")]) == 0
    assert main(["report", str(place / "out"), "-o", str(place / "page.html")]) == 0
    return place


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    pytest.importorskip("matplotlib")
    place = tmp_path_factory.mktemp("campaign")
    (place / "p.xml").write_text(PLATFORM)
    (place / "plan.toml").write_text(PLAN)
    for name, flop in (("short", 1e9), ("long", 3e9)):
        task = {"id": "a", "hosts": ["n0"], "cpu": [flop]}
        (place / f"{name}.json").write_text(json.dumps({"tasks": [task]}))
    run = ["campaign", "run", str(place / "plan.toml"), "-o", str(place / "out")]
    assert main([*run, "--processes", "1"]) == 0
    assert main(["report", str(place / "out"), "-o", str(place / "page.html")]) == 0
    return place


def test_a_page_of_a_replay_holds_what_its_tables_say(replayed):
    page = (replayed / "page.html").read_text()
    for title in ("Where the time goes", "What determined the end", "Who sent to whom"):
        assert f"<h2>{title}</h2>" in page
    data = data_of(page)
    timeline = data["timeline"]
    states = [name for name, _ in timeline["states"]]
    spent = {}
    for flat in timeline["ranks"]:
        for lasted, state in zip(flat[1::3], flat[2::3], strict=True):
            spent[states[state]] = spent.get(states[state], 0.0) + lasted * timeline["tick"]
    assert spent["computing"] == pytest.approx(2.0, rel=1e-6)
    ends = [sum(flat[::3]) + sum(flat[1::3]) for flat in timeline["ranks"]]
    assert max(ends) * timeline["tick"] == pytest.approx(data["end"], rel=1e-6)
    assert len(timeline["messages"]) == 1
    # Rank 0 computes, sends, and rank 1 computes: three parts, one after the other.
    assert [part[:2] for part in timeline["path"]][:2] == [[0, 0], [0, 1]]
    assert all(a[3] == b[2] for a, b in zip(timeline["path"], timeline["path"][1:], strict=False))
    assert [row[0] for row in data["table"]["rows"]] == ["rank 0", "rank 1"]


def test_a_page_of_a_replay_has_the_matrix_of_its_messages_and_is_the_same_each_time(replayed):
    text = (replayed / "page.html").read_text()
    (chart,) = (one for one in data_of(text)["charts"] if one["chart"] == "matrix")
    assert (
        chart["sentence"] == "2 ranks send 100 MB to each other; rank 0 sends rank 1 most, 100 MB."
    )
    assert chart["cells"] == [[0.0, 1e8, 1e8], [0.0, 0.0, 0.0]]
    assert chart["members"][0] == [[0, 0], [0, 1], [0]]
    assert main(["report", str(replayed / "out"), "-o", str(replayed / "again.html")]) == 0
    assert (replayed / "again.html").read_text() == text


def test_a_bare_replay_says_what_it_lacks(replayed, tmp_path, browser):
    files = [str(replayed / "p.xml"), str(replayed / "t.txt")]
    assert main(["replay", *files, "-o", str(tmp_path / "out")]) == 0
    assert main(["report", str(tmp_path / "out"), "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "made without --timeline" in page
    assert "Where the time goes" in page
    assert data_of(page)["timeline"] is None
    assert "2 ranks on 2 hosts" in well_made(browser, tmp_path / "page.html")


def test_a_damaged_timeline_is_one_line(replayed, tmp_path, capsys):
    shutil.copytree(replayed / "out", tmp_path / "out")
    (tmp_path / "out/spans.csv").write_text("rank,action,start_s,end_s\n7,compute,0,1\n")
    assert main(["report", str(tmp_path / "out"), "-o", str(tmp_path / "page.html")]) == 2
    assert "a timeline that cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


def test_a_page_of_a_campaign_has_its_runs(campaign):
    data = data_of((campaign / "page.html").read_text())
    heads = data["table"]["heads"]
    assert heads[:3] == ["tasks", "repetition", "status"]
    assert sorted(row[heads.index("makespan")] for row in data["table"]["rows"]) == [1.0, 3.0]
    assert ["runs finished", "2", "of 2"] in data["cards"]
    assert main(["report", str(campaign / "out"), "--against", str(campaign / "out")]) == 2


def test_what_a_rank_does_is_told_where_the_mouse_is(replayed, browser):
    opened(browser, replayed / "page.html")
    legend = browser.find_element("id", "legend").text.split("\n")
    assert legend == ["computing", "receiving", "waiting", "message", "critical path"]
    point = (
        "const c = arguments[0], a = c.getBoundingClientRect();"
        "c.dispatchEvent(new PointerEvent('pointermove', {clientX: a.left + a.width * arguments[1],"
        " clientY: a.top + 60, bubbles: true}));"
        "return document.getElementById('tip').textContent"
    )
    canvas = browser.find_element("id", "panel")
    assert "computing from 0 s to 1 s" in browser.execute_script(point, canvas, 0.25)
    assert len(browser.find_elements("css selector", "#tasks tbody tr")) == 2
    browser.find_element("css selector", "#tasks tbody button").click()
    ready(browser, lambda: browser.switch_to.active_element.get_attribute("id") == "panel")
    assert console(browser) == []


def test_runs_of_a_campaign_are_sorted_and_searched(campaign, browser):
    opened(browser, campaign / "page.html")
    assert not browser.find_element("id", "panel-part").is_displayed()
    heads = browser.find_elements("css selector", "#tasks thead button")
    next(head for head in heads if head.text == "makespan").click()
    first = browser.find_element("css selector", "#tasks tbody tr")
    assert first.text.startswith("long.json")
    browser.find_element("id", "tasks-search").send_keys("short")
    count = browser.find_element("id", "tasks-count")
    ready(browser, lambda: count.text == "1 of 2")
    assert console(browser) == []


def test_the_page_of_a_campaign_is_well_made(campaign, browser):
    text = well_made(browser, campaign / "page.html")
    assert "tasks: what each level changes against" in text


def test_a_campaign_is_sorted_and_searched_with_keys_alone(campaign, browser):
    opened(browser, campaign / "page.html")
    in_runs = "return document.activeElement.closest('#tasks') !== null"
    for _ in range(120):
        browser.switch_to.active_element.send_keys("\ue004")  # Tab
        if browser.switch_to.active_element.text == "makespan" and browser.execute_script(in_runs):
            break

    def first():
        return browser.find_element("css selector", "#tasks tbody tr").text.split(".")[0]

    browser.switch_to.active_element.send_keys("\ue007")  # Enter
    ready(browser, lambda: first() == "long")
    browser.switch_to.active_element.send_keys(" ")
    ready(browser, lambda: first() == "short")
    assert console(browser) == []


def test_more_bars_than_can_be_seen_are_cells_until_one_zooms_in(tmp_path, browser):
    tasks = [{"id": f"t{k}", "hosts": ["n0"], "cpu": [9e8], "start": 1.0 * k} for k in range(3000)]
    (tmp_path / "p.xml").write_text(PLATFORM)
    (tmp_path / "t.json").write_text(json.dumps({"tasks": tasks}))
    files = [str(tmp_path / "p.xml"), str(tmp_path / "t.json")]
    assert main(["simulate", *files, "-o", str(tmp_path / "out")]) == 0
    assert main(["report", str(tmp_path / "out"), "-o", str(tmp_path / "page.html")]) == 0
    opened(browser, tmp_path / "page.html")
    said = browser.find_element("id", "range")
    assert "zoom in for single tasks" in said.text
    for _ in range(4):
        browser.find_element("id", "panel").send_keys("+")
    ready(browser, lambda: "zoom in" not in said.text)


def test_who_searches_the_documents_for_an_option_finds_it(browser):
    browser.get("about:blank")
    script = (Path(__file__).resolve().parents[2] / "docs" / "search.js").read_text()
    sent = browser.execute_script(
        "Worker.prototype.postMessage = (message) => { window.sent = message.query; };"
        f"{script}; Worker.prototype.postMessage({{query: '--profiles -o bounded-slowdown'}});"
        "return window.sent;"
    )
    assert sent == "profiles o bounded-slowdown"


def test_the_page_of_a_campaign_warns_of_runs_that_did_not_do_their_work(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.xml").write_text(PLATFORM)
    task = {"id": "a", "hosts": ["n0"], "cpu": [1e9]}
    (tmp_path / "t.json").write_text(json.dumps({"tasks": [task]}))
    plan = 'name = "cut"\nrun = "simulate"\n[parameters]\nplatform = "p.xml"\ntasks = "t.json"\n'
    (tmp_path / "plan.toml").write_text(plan + "[factors]\nuntil_s = [0.5, 5]\n")
    assert main(["campaign", "run", "plan.toml", "-o", "out", "--processes", "1"]) == 0
    assert main(["report", "out", "-o", "page.html"]) == 0
    assert data_of((tmp_path / "page.html").read_text())["warnings"] == [
        "1 of 2 runs: 1 task running at the end",
        "1 of 2 runs stopped before their end",
    ]
