"""Pages of comparisons: what is on them, and that a browser shows them without complaint."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from browsing import well_made

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


DIFFERENT, CURVES = "What was different?", "How many waited how long, and were how slow"
BECAME = "What became of them in a, and in b?"
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
    same, *others = QUESTIONS
    assert heads_of(text) == [BECAME, same, DIFFERENT, *others, CURVES, "From a to b"]
    assert re.search(r'\["mean waiting \(min\)",.*\["utilisation \(%\)",', text)
    assert "waiting of all jobs that started" in text
    assert "waiting of the 12 jobs in both" not in text  # the same


@pytest.mark.jit
def test_three_batches_have_metrics_on_their_page(runs, capsys):
    text = page_of(runs, "a", "b", "c").read_text()
    capsys.readouterr()
    same, *others = QUESTIONS
    assert heads_of(text) == [same, DIFFERENT, *others, CURVES]
    assert "differ in policy" in text


@pytest.mark.jit
def test_many_runs_are_rows_named_by_what_differs(runs, browser, tmp_path, capsys):
    places = []
    for k in range(8):
        name = f"a_study_of_queues_with_a_long_name_{k}_of_the_policy"
        places.append(str(shutil.copytree(runs / "abc"[k % 3], tmp_path / name)))
    page = tmp_path / "many.html"
    assert main(["compare", *places, "--page", str(page)]) == 0
    text = well_made(browser, page)
    capsys.readouterr()
    assert "8 runs compared, which differ in policy" in text
    cells = "document.querySelectorAll('[data-table=\"0\"] tbody th')"
    script = f"return [...{cells}].map((cell) => cell.textContent)"
    assert browser.execute_script(script) == list("01234567")
    cells = "document.querySelectorAll('[data-table=\"1\"] tbody tr')"
    script = f"return [...{cells}].map((row) => row.textContent)"
    assert browser.execute_script(script)[:3] == ["0fcfs", "1easy", "2sjf"]


def test_a_run_with_a_long_name_is_no_wider_than_the_window(runs, browser, tmp_path):
    names = ["名前" + "_測試" * 30, "a_long_name_" * 12]
    for name in names:
        shutil.copytree(runs / "s", tmp_path / name)
    page = tmp_path / "long.html"
    assert main(["compare", *(str(tmp_path / name) for name in names), "--page", str(page)]) == 0
    assert "Both runs end 1 of 1 task" in well_made(browser, page)


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.jit
def test_runs_of_no_job_and_of_one_have_a_page(runs, browser, tmp_path, capsys, count):
    jobs = JOBS | {"jobs": JOBS["jobs"][:count]}
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    for name in "ab":
        files = [str(runs / "p.xml"), str(tmp_path / "jobs.json")]
        assert main(["batch", *files, "-o", str(tmp_path / name), "-q"]) == 0
    page = tmp_path / "page.html"
    if not count:
        assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--page", str(page)]) == 2
        assert "no id is in both" in capsys.readouterr().err
        return
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--page", str(page)]) == 0
    capsys.readouterr()
    text = well_made(browser, page)
    assert "Both runs end 1 of 1 job." in text
    assert "1 jobs" not in text


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
        well_made(browser, page_of(runs, *names))
        shown = browser.execute_script("return document.getElementById('tasks-part').hidden")
        assert shown is (len(names) == 3)
    capsys.readouterr()
