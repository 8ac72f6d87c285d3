"""Pages of comparisons: what is on them, and that a browser shows them without complaint."""

from __future__ import annotations

import json
import re

import pytest
from browsing import console, opened

from ptaskmodel.cli import main

PLATFORM = """<?xml version="1.0"?>
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-3" speed="1Gf" bw="125MBps" lat="50us"/>
</platform>
"""
JOBS = {
    "nb_res": 4,
    "profiles": {"p": {"type": "delay", "delay": 100.0}, "q": {"type": "delay", "delay": 40.0}},
    "jobs": [
        {"id": str(k), "subtime": k, "res": 1 + k % 3, "profile": "pq"[k % 2], "walltime": 200.0}
        for k in range(12)
    ],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Batches a, b, c and runs of tasks s, t."""
    pytest.importorskip("matplotlib")
    place = tmp_path_factory.mktemp("compared")
    (place / "p.xml").write_text(PLATFORM)
    (place / "jobs.json").write_text(json.dumps(JOBS))
    for name, policy in (("a", "fcfs"), ("b", "easy"), ("c", "sjf")):
        files = [str(place / "p.xml"), str(place / "jobs.json")]
        assert main(["batch", *files, "--policy", policy, "-o", str(place / name), "-q"]) == 0
    for name, flop in (("s", 1e9), ("t", 3e9)):
        tasks = [{"id": "<b>", "hosts": ["n0"], "cpu": flop}]
        (place / "t.json").write_text(json.dumps({"tasks": tasks}))
        files = [str(place / "p.xml"), str(place / "t.json")]
        assert main(["simulate", *files, "-o", str(place / name), "-q"]) == 0
    return place


QUESTIONS = [
    "Did they do the same work?",
    "What did users get?",
    "What did the machine do?",
]


def heads_of(text):
    """Of the sections made before the page is opened."""
    return re.findall("<section><h2>([^<]*)</h2>", text)


def page_of(runs, *names):
    page = runs / f"{''.join(names)}.html"
    assert main(["compare", *(str(runs / name) for name in names), "--page", str(page)]) == 0
    return page


def test_what_neither_of_two_runs_says_is_no_total(runs, capsys):
    assert main(["compare", str(runs / "a"), str(runs / "b")]) == 0
    printed = capsys.readouterr().out
    assert "mean waiting (min)" in printed
    assert "contention slowdown" not in printed


@pytest.mark.jit
def test_two_batches_have_metrics_and_jobs_on_their_page(runs, capsys):
    text = page_of(runs, "a", "b").read_text()
    capsys.readouterr()
    assert heads_of(text) == [*QUESTIONS, "What was different?", "From a to b", "All metrics"]
    assert re.search(r'\["mean waiting \(min\)",.*\["utilisation \(%\)",', text)
    assert text.count("data:image/svg+xml") == 2


@pytest.mark.jit
def test_three_batches_have_metrics_on_their_page(runs, capsys):
    text = page_of(runs, "a", "b", "c").read_text()
    capsys.readouterr()
    assert heads_of(text) == [*QUESTIONS, "What was different?", "All metrics"]
    assert '"heads":["metric","a","b","c"' in text.replace('", "', '","').replace('": [', '":[')


@pytest.mark.jit
def test_tasks_have_their_times_on_the_page_and_names_are_no_html(runs, capsys):
    text = page_of(runs, "s", "t").read_text()
    capsys.readouterr()
    assert "Tasks in both runs" in text
    assert "<b>" not in text
    assert "\\u003cb>" in text


@pytest.mark.jit
def test_a_table_is_not_taken_for_a_page(runs, capsys):
    names = [str(runs / name) for name in "ab"]
    assert main(["compare", *names, "-o", str(runs / "table.html")]) == 2
    assert "give --page" in capsys.readouterr().err
    assert not (runs / "table.html").exists()


@pytest.mark.jit
def test_a_browser_shows_the_page(runs, browser, capsys):
    for names in ("ab", "abc", "st"):
        opened(browser, page_of(runs, *names))
        script = "return document.documentElement.scrollWidth - window.innerWidth"
        assert browser.execute_script(script) <= 0
        shown = browser.execute_script("return document.getElementById('tasks-part').hidden")
        assert shown is (len(names) == 3)
        assert console(browser) == []
    capsys.readouterr()
