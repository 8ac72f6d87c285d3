"""What limited whom, on a page: spells of a task, tasks of a limit, and what is a bottleneck."""

from __future__ import annotations

import csv
import json

import pytest
from browsing import console, opened, ready

from ptaskmodel.cli import main
from ptaskmodel.results.loading import load_results
from ptaskmodel.results.pages import interference
from ptaskmodel.results.pages.answers import Found, answer_of
from ptaskmodel.results.pages.interference import limits_of, limits_section, spells_of
from ptaskmodel.results.tables.places import link_name

PLATFORM = """<?xml version="1.0"?>
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-3" speed="1Gf" bw="100MBps" lat="50us"/>
</platform>
"""
# Two tasks share a link for a while; the third has a host of its own.
TASKS = [
    {"id": "long", "hosts": ["n0", "n1"], "flows": [[0, 1, 4e8]]},
    {"id": "short", "hosts": ["n0", "n2"], "flows": [[0, 1, 1e8]], "start": 1.0},
    {"id": "alone", "hosts": ["n3"], "cpu": 1e9},
]


def run(place, tasks):
    (place / "p.xml").write_text(PLATFORM)
    (place / "t.json").write_text(json.dumps({"tasks": tasks}))
    files = [str(place / "p.xml"), str(place / "t.json")]
    assert main(["simulate", *files, "--attribution", "-o", str(place / "out"), "-q"]) == 0
    return place / "out"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return load_results(run(tmp_path_factory.mktemp("limits"), TASKS))


def test_spells_are_those_of_the_table(results):
    words = {}
    found = spells_of(results, words)
    names = list(words)
    listed = [
        (task.task_id, names[limit], end - start, sharers, names[who])
        for task, spells in zip(results.tasks, found["tasks"], strict=True)
        for limit, start, end, sharers, who in spells
    ]
    with (results.directory / "bottlenecks.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(listed) == len(rows)
    for (task, limit, lasted, sharers, who), row in zip(listed, rows, strict=True):
        assert task == row["task_id"]
        assert limit == f"{row['limited_by']} {row['resource']}".strip()
        assert lasted == pytest.approx(float(row["duration_s"]), abs=1e-8)
        assert (str(sharers), who) == (row["sharers"], row["shared_with"].replace(";", ", "))


def test_a_limit_lists_its_tasks(results):
    (section,) = limits_section(results, limits_of(results), {})
    (table,) = section.tables
    members, text, link = table.picks[0]
    assert [results.tasks[k].task_id for k in members] == ["long", "short"]
    assert text == f"limited by {table.rows[0][0]}"
    assert table.rows[0][0] == f"link {link_name(link, {})}"


def test_of_too_many_spells_the_longest_are_kept(results, monkeypatch):
    monkeypatch.setattr(interference, "MAX_SPELLS", 3)
    found = spells_of(results, {})
    assert found["kept"] == 3
    assert all(len(spells) <= 3 for spells in found["tasks"])
    assert all(spells == sorted(spells, key=lambda one: one[1]) for spells in found["tasks"])


def test_the_bottleneck_is_what_was_shared_longest(results, tmp_path):
    first = limits_of(results)[0]
    # The link limits the long one for 5 s, the short one for 2 s; no spell of either is without
    # the other.
    assert first[2:4] == pytest.approx([7.0, 7.0], rel=1e-2)
    assert all(row[3] == 0.0 for row in limits_of(results)[1:])
    said = answer_of(Found(results, limits_of(results), (), {}))
    assert said.startswith("2 of 3 tasks lose ")
    assert f"most on {first[0]} {link_name(first[1], {})}: there " in said
    assert said.endswith("No other task slows alone.")
    lonely = load_results(run(tmp_path, TASKS[2:]))
    said = answer_of(Found(lonely, limits_of(lonely), (), {}))
    assert said == "No task slows another one: 1 task takes 1 s in all, as long as alone."


def test_a_click_on_a_limit_filters_and_one_on_a_task_tells_its_spells(results, tmp_path, browser):
    page = tmp_path / "page.html"
    assert main(["report", str(results.directory), "-o", str(page)]) == 0
    opened(browser, page)

    def text(name):
        return browser.find_element("id", name).text

    browser.execute_script("document.querySelector('#why [data-table] tbody button').click()")
    ready(browser, lambda: text("tasks-count").startswith("2 of 3, limited by link "))
    browser.execute_script("document.querySelector('#tasks tbody button').click()")
    ready(browser, lambda: "spell by spell" in text("spells-title"))
    rows = browser.find_elements("css selector", "#spells tbody tr")
    assert any("short" in row.text or "long" in row.text for row in rows)
    browser.execute_script("document.querySelector('#filter button').click()")
    ready(browser, lambda: text("tasks-count") == "")
    assert console(browser) == []
