"""Results on the command line: what simulate writes, plot, report and compare."""

from __future__ import annotations

import csv
import json
import re
import shutil

import pytest
from browsing import console, opened, ready

from ptaskmodel.cli import main
from ptaskmodel.results.pages import report
from ptaskmodel.results.pictures.drawing import natural

PLATFORM = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-7" speed="1Gf" bw="{bandwidth}" lat="50us"
           bb_bw="150MBps" bb_lat="10us"/>
</platform>
"""
FILES = {
    "tasks.csv", "summary.json", "bottlenecks.csv", "attribution.csv", "utilisation.csv",
    "link_users.csv", "trace.csv", "trace.paje", "trace.perfetto.json",
}  # fmt: skip
KINDS = ("gantt", "progress", "links", "hosts", "topology", "slowdowns")


def make(place, count, bandwidth="100MBps", name="run"):
    """The results of ``count`` tasks, in a directory."""
    (place / f"{name}.xml").write_text(PLATFORM.format(bandwidth=bandwidth))
    tasks = []
    for k in range(count):
        hosts = [f"n{(k + j) % 8}" for j in range(1 + k % 4)]
        flows = [[0, j, 2e7 * (1 + k % 3)] for j in range(1, len(hosts))]
        task = {"id": f"job <{k}>", "start": k * 0.7, "hosts": hosts}
        task |= {"cpu": [1e9 + 1e8 * (k % 7)] * len(hosts)}
        tasks.append(task | ({"flows": flows} if flows else {}))
    (place / "tasks.json").write_text(json.dumps({"tasks": tasks}))
    arguments = ["simulate", str(place / f"{name}.xml"), str(place / "tasks.json"), "--attribution"]
    for format_ in ("csv", "paje", "perfetto"):
        arguments += ["--trace", format_]
    assert main([*arguments, "--output", str(place / name)]) == 0
    return place / name


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return make(tmp_path_factory.mktemp("small"), 10)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return make(tmp_path_factory.mktemp("large"), 1500)


def rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_simulate_writes_what_was_asked_for(small):
    assert {path.name for path in small.iterdir()} == FILES
    assert set(json.loads((small / "summary.json").read_text())["files"]) == FILES
    for row in rows(small / "tasks.csv"):
        slowdown = float(row["execution_time"]) / float(row["time_alone"])
        assert float(row["slowdown"]) == slowdown >= 1 - 1e-9


def test_results_are_replaced(small, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(small, copy)
    place = small.parent
    base = ["simulate", str(place / "run.xml"), str(place / "tasks.json"), "--output", str(copy)]
    assert main(base) == 0
    assert {path.name for path in copy.iterdir()} == {"tasks.csv", "summary.json"}
    assert "slowdown" not in rows(copy / "tasks.csv")[0]


@pytest.mark.parametrize("option", [["--trace", "csv"], ["--attribution"]])
def test_traces_need_a_directory(small, option, capsys):
    place = small.parent
    assert main(["simulate", str(place / "run.xml"), str(place / "tasks.json"), *option]) == 2
    assert f"{option[0]} writes files; give --output DIR" in capsys.readouterr().err


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", ["small", "large"])
def test_plots(kind, size, request, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / f"{kind}.png"
    assert main(["plot", str(request.getfixturevalue(size)), kind, "-o", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_tasks_are_said_to_be_slowed_only_where_some_are(small, tmp_path):
    alone = make(tmp_path, 1, name="alone")
    for results, shown in ((small, True), (alone, False)):
        assert main(["report", str(results), "-o", str(tmp_path / "report.html")]) == 0
        page = (tmp_path / "report.html").read_text()
        assert bool(re.search(r"of 10 tasks lose .+ to each other, most on ", page)) is shown
        assert ("as long as alone" in page) is not shown


@pytest.mark.parametrize("suffix", ["svg", "pdf"])
def test_pictures_are_the_same_each_time(small, suffix, tmp_path):
    pytest.importorskip("matplotlib")
    paths = [tmp_path / f"{k}.{suffix}" for k in range(2)]
    for path in paths:
        assert main(["plot", str(small), "gantt", "-o", str(path)]) == 0
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_what_cannot_be_drawn_is_told(small, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert main(["plot", str(tmp_path), "gantt", "-o", str(tmp_path / "x.png")]) == 2
    assert "holds no results (summary.json is missing)" in capsys.readouterr().err
    assert main(["plot", str(small), "load", "-o", str(tmp_path / "x.png")]) == 2
    assert "not the results of a batch; it has no queue" in capsys.readouterr().err
    assert main(["plot", str(small), "gantt", "-o", str(tmp_path / "x.gif")]) == 2
    assert "pictures are .png, .svg or .pdf" in capsys.readouterr().err
    bare = tmp_path / "bare"
    shutil.copytree(small, bare)
    limits = bare / "bottlenecks.csv"
    head, first, *_ = limits.read_text().splitlines()
    # Of a replay, whose computations and messages are no tasks.
    limits.write_text(f"{head}\n0>1,{first.partition(',')[2]}\n")
    for _ in range(2):
        assert main(["plot", str(bare), "progress", "-o", str(tmp_path / "x.png")]) == 2
        assert "needs a run with --attribution" in capsys.readouterr().err
        limits.unlink(missing_ok=True)


def test_names_have_one_order_numbers_in_it_as_numbers():
    names = ["n10-b", "n2", "n10-a", "beta", "alpha", "2", "10"]
    for order in (names, names[::-1]):
        assert sorted(order, key=natural) == ["2", "10", "alpha", "beta", "n2", "n10-a", "n10-b"]


def test_compare(small, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    other = make(small.parent, 10, "200MBps", "faster")
    table, picture = tmp_path / "c.csv", tmp_path / "c.png"
    capsys.readouterr()
    base = ["compare", str(small), str(other)]
    assert main([*base, "-o", str(table), "--picture", str(picture)]) == 0
    said = capsys.readouterr().out
    assert "10 tasks in both: " in said
    assert "faster" in said
    assert "run.xml" in said
    assert "makespan (s)" in said
    found = rows(table)
    assert [row["task_id"] for row in found] == [f"job <{k}>" for k in range(10)]
    for row in found:
        change = float(row["time_b_s"]) - float(row["time_a_s"])
        assert float(row["change_s"]) == pytest.approx(change)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_run_equals_itself(small, capsys):
    assert main(["compare", str(small), str(small)]) == 0
    said = capsys.readouterr().out
    assert "10 tasks in both: 10 equal" in said
    assert "changed most" not in said


def test_batch_results_are_taken(tmp_path):
    (tmp_path / "summary.json").write_text('{"makespan_s": 9.0, "policy": "easy"}')
    (tmp_path / "machines.csv").write_text("id,name\n0,a\n1,b\n2,c\n")
    (tmp_path / "jobs.csv").write_text(
        "job_id,profile,starting_time,finish_time,execution_time,final_state,"
        "allocated_resources,contention_slowdown\n"
        "1,p,0.0,4.0,4.0,COMPLETED_SUCCESSFULLY,0-1,2.0\n2,p,,,,REJECTED,,\n"
    )
    from ptaskmodel.results.loading import load_results

    first, second = load_results(tmp_path).tasks
    assert (first.hosts, first.slowdown, second.hosts) == (("a", "b"), 2.0, ())
    page = tmp_path / "report.html"
    assert main(["report", str(tmp_path), "-o", str(page)]) == 0
    assert "1 of 2 jobs end; 1 rejected." in page.read_text()


def test_of_two_schedules_the_waiting_is_compared(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    head = "job_id,profile,starting_time,finish_time,execution_time,waiting_time,"
    head += "final_state,allocated_resources\n"
    for name, waits in {"a": (0.0, 5.0, 3.0), "b": (0.0, 1.0, 2e5)}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text('{"makespan_s": 9.0, "policy": "easy"}')
        lines = [
            f"{k},p,{k + wait},{k + wait + 2},2.0,{wait},COMPLETED_SUCCESSFULLY,0\n"
            for k, wait in enumerate(waits)
        ]
        (tmp_path / name / "jobs.csv").write_text(head + "".join(lines))
    table, picture = tmp_path / "c.csv", tmp_path / "c.png"
    base = ["compare", str(tmp_path / "a"), str(tmp_path / "b")]
    assert main([*base, "-o", str(table), "--picture", str(picture)]) == 0
    said = capsys.readouterr().out
    assert "3 jobs in both: 3 equal; 1 wait less, 1 wait the same, 1 wait longer" in said
    assert re.search(r"2 +ended +0.1 +3\u202f333.3 +3\u202f333\n1 +ended +0.1 +0.0 +0\n", said)
    assert [row["waiting_b_s"] for row in rows(table)] == ["0.0", "1.0", "200000.0"]
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("size", ["small", "large"])
def test_the_report_in_a_browser(size, request, tmp_path, browser):
    page = tmp_path / "report.html"
    assert main(["report", str(request.getfixturevalue(size)), "-o", str(page)]) == 0
    text = page.read_text()
    assert "http" not in text.replace("https://simgrid.org", "")
    opened(browser, page)

    def by_id(name):
        return browser.find_element("id", name)

    before = by_id("range").text
    by_id("zoom-in").click()
    ready(browser, lambda: by_id("range").text != before)
    by_id("panel").send_keys("0")
    ready(browser, lambda: by_id("range").text == before)
    by_id("panel").send_keys("+")
    ready(browser, lambda: by_id("range").text != before)
    everything = by_id("tasks-count").text
    by_id("tasks-search").send_keys("<7>")
    ready(browser, lambda: by_id("tasks-count").text != everything)
    shown = browser.find_elements("css selector", "#tasks tbody tr")
    assert shown
    assert all("<7>" in row.text for row in shown)
    by_id("tasks-search").send_keys("no such thing")
    ready(browser, lambda: by_id("tasks-count").text.startswith("0 of "))
    by_id("tasks-search").clear()
    by_id("tasks-search").send_keys("<7>")
    ready(browser, lambda: not by_id("tasks-count").text.startswith("0 of "))
    browser.find_element("css selector", "#tasks tbody button").click()
    ready(browser, lambda: browser.switch_to.active_element.get_attribute("id") == "panel")
    browser.execute_script("window.scrollTo(0, 0); document.getElementById('zoom-all').click()")
    assert console(browser) == []


def test_of_too_many_tasks_those_with_most_host_time_are_on_the_page(small, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "MAX_LIMITED", 3)
    page = tmp_path / "page.html"
    report.write_report(small, page)
    text = page.read_text()
    data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', text, re.DOTALL)[1])
    times = {row["task_id"]: float(row["execution_time"]) * len(row["hosts"].split())
             for row in rows(small / "tasks.csv")}  # fmt: skip
    shown = [task[0] for task in data["tasks"]]
    assert sorted(times[name] for name in shown) == sorted(times.values())[-3:]
    part = 100 * sum(times[name] for name in shown) / sum(times.values())
    assert data["cut"].startswith("the 3 of 10 with most host time, ")
    assert float(data["cut"].split(", ")[1].split()[0]) == pytest.approx(part, rel=5e-3)
    assert "10 tasks" in text


def test_a_link_picked_on_the_platform_shows_who_was_on_it(small, tmp_path, browser):
    page = tmp_path / "report.html"
    assert main(["report", str(small), "-o", str(page)]) == 0
    opened(browser, page)
    canvas = browser.find_element("id", "topology")
    chosen = "return document.getElementById('use-says').textContent"
    # The backbone is a bar near the upper edge, across the page.
    pick = (
        "const c = arguments[0], a = c.getBoundingClientRect();"
        "for (let y = a.top; y < a.bottom; y += 3) {"
        "  const at = {clientX: a.left + a.width / 2, clientY: y, bubbles: true, pointerId: 1};"
        "  c.dispatchEvent(new MouseEvent('click', at));"
        "  if (document.getElementById('use-says').textContent.startsWith('link c_backbone'))"
        "    break; }"
    )
    browser.execute_script(pick, canvas)
    assert browser.execute_script(chosen).startswith("link c_backbone")
    users = browser.find_element("id", "users").text
    assert "Who used link c_backbone, from first to last use: " in users
    assert "sent (MB)" in users
    canvas.send_keys("+")
    canvas.send_keys("0")
    canvas.send_keys("\ue007")  # Enter
    assert not browser.execute_script(chosen).startswith("link c_backbone")
    canvas.send_keys("\ue008\ue007")  # with Shift
    assert browser.execute_script(chosen).startswith("link c_backbone")
    browser.find_element("id", "topology-colour").send_keys("highest")
    assert console(browser) == []


def test_the_report_fits_a_phone(small, tmp_path, browser):
    page = tmp_path / "report.html"
    assert main(["report", str(small), "-o", str(page)]) == 0
    metrics = {"width": 375, "height": 700, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    opened(browser, page)
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= 375


def test_the_platform_of_a_run_is_found_from_other_directories(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    make(tmp_path, 3)
    run = "simulate run.xml tasks.json --attribution -q -o results/first"
    assert main(run.split()) == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    draw = "plot ../results/first topology -o topology.svg"
    assert main(draw.split()) == 0
    capsys.readouterr()
    (tmp_path / "run.xml").write_text(PLATFORM.format(bandwidth="10MBps"))
    assert main(draw.split()) == 2
    assert "has changed since the run" in capsys.readouterr().err
    (tmp_path / "run.xml").unlink()
    assert main(draw.split()) == 2
    assert "do this where the run was made" in capsys.readouterr().err


def test_times_are_equal_up_to_a_tolerance(small, capsys):
    other = make(small.parent, 10, "50MBps", "slow")
    compare = ["compare", str(small), str(other)]
    for tolerance, said in (("0.9", "10 equal"), ("0.01", "slower")):
        capsys.readouterr()
        assert main([*compare, "--tolerance", tolerance]) == 0
        assert said in capsys.readouterr().out
    assert main([*compare, "--tolerance", "-1"]) == 2
