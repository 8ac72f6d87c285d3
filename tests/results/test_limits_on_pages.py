"""What limited whom, on a page: spells of a task, tasks of a limit, and what is a bottleneck."""

from __future__ import annotations

import csv
import json

import pytest
from browsing import console, opened, ready

from ptaskmodel.cli import main
from ptaskmodel.results.loading import Results, ShownTask, load_results
from ptaskmodel.results.pages import interference
from ptaskmodel.results.pages.answers import (
    Found,
    answer_of,
    energies_of,
    energy_section,
    numbers_of,
)
from ptaskmodel.results.pages.interference import limits_of, limits_section, spells_of
from ptaskmodel.results.pictures.tracks import power_tracks
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
    *_, free, asked = said.splitlines()
    assert free == "No other task slows alone."
    assert asked == "Which task slowed which was not recorded: run again with --neighbours."
    lonely = load_results(run(tmp_path, TASKS[2:]))
    said = answer_of(Found(lonely, limits_of(lonely), (), {}))
    assert said == "1 task takes 1 s in all, as long as alone."


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


def test_energy_is_told_by_outcome_and_user(tmp_path):
    """10 MJ: 2 of a job of x that ends, 3 of one of y that is killed, 5 of nobody."""
    (tmp_path / "energy.csv").write_text(
        "kind,name,energy_J,share_J\nrun,,1e7,5e6\nhost,n0,1e7,5e6\njob,a,2e6,2e6\njob,b,4e6,3e6\n"
    )
    (tmp_path / "machine_states.csv").write_text(
        "time,nb_sleeping,nb_switching_on,nb_switching_off,nb_idle,nb_computing,nb_unavailable\n"
        "0,0,0,0,2,0,0\n1800,2,1,0,0,0,0\n"
    )
    jobs = [
        ShownTask("a", None, 0.0, 3600.0, "COMPLETED_SUCCESSFULLY", ("n0",), None),
        ShownTask("b", None, 0.0, 60.0, "COMPLETED_WALLTIME_REACHED", ("n0",), None),
    ]
    (tmp_path / "power.csv").write_text("time,hosts_W,links_W\n0,3000,0\n1800,60,0\n")
    summary = {"energy": {"total_J": 1e7, "peak_W": 3e3}, "hosts": 3}
    results = Results(tmp_path, "job", summary, jobs)
    users = {"a": "x", "b": "y"}
    found = Found(results, (), (), {}, users=users, energies=energies_of(results))
    (section,) = energy_section(found)
    whole, users = section.tables
    assert [list(row) for row in whole.rows] == [
        ["jobs that ended", 2e6, 0.2],
        ["jobs that are killed", 3e6, 0.3],
        ["idle, sleeping and switching hosts, links", 5e6, 0.5],
    ]
    assert [list(row) for row in users.rows] == [["y", 3e6, 0.3], ["x", 2e6, 0.2]]
    assert section.note == "Host hours: sleeping 1, switching on 0.5, switching off 0."
    # Of what hosts draw while some sleep nothing is called idle.
    power, off = power_tracks(results)
    assert [name for name, _, _ in power.layers] == ["hosts"]
    parts = {name: float(mean.sum() * off.width_s / 3600) for name, _, mean in off.layers}
    assert (parts, off.limit) == ({"asleep": 1.0, "switching": 0.5}, 3)
    card = numbers_of(found)[0]
    assert card == ["energy", "2.78 kWh", "at most 3 kW · 30 % in killed jobs"]
