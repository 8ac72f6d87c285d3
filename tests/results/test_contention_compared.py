"""Allocations by what contention costs, wherever runs stand side by side: worst is random."""

from __future__ import annotations

import csv
import json
import re

import pytest

from ptaskmodel.cli import main
from ptaskmodel.style.text import number

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="t" prefix="n" suffix="" radical="0-15" speed="1Gf" bw="1.25GBps" lat="10us"
           topology="FAT_TREE" topo_parameters="2;4,4;1,1;1,1"/>
</platform>
"""
ALLOCATIONS = ("contiguous", "first-fit", "random")
PLAN = """
run = "batch"
metrics = ["contention_slowdown.mean"]
[parameters]
platform = "p.xml"
workload = "w.json"
profiles = "ptask"
[factors]
allocation = ["random", "contiguous", "first-fit"]
"""
ALL, BY_NEIGHBOURS = "mean contention slowdown of all jobs", "killed, only because of neighbours"

pytestmark = pytest.mark.jit


def crowd():
    """Jobs of 1 to 8 hosts, one every 100 s, whose walltimes are half as long again as alone."""
    jobs, profiles, state = [], {}, 7
    for k in range(60):
        state = (state * 1103515245 + 12345) % 2**31
        hosts = 2 ** (state // 65536 % 4)
        state = (state * 1103515245 + 12345) % 2**31
        time_s = 100.0 + state // 65536 % 1000
        job = {"id": str(k), "subtime": 100.0 * k, "res": hosts, "walltime": 1.5 * time_s}
        jobs.append(job | {"profile": f"d{k}"})
        profiles[f"d{k}"] = {"type": "delay", "delay": time_s}
    return {"nb_res": 16, "jobs": jobs, "profiles": profiles}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("allocations")
    (place / "p.xml").write_text(PLATFORM)
    (place / "w.json").write_text(json.dumps(crowd()))
    for name in ALLOCATIONS:
        command = ["batch", str(place / "p.xml"), str(place / "w.json"), "--profiles", "ptask"]
        assert main([*command, "--allocation", name, "-o", str(place / name), "-q"]) == 0
    return place


def first_number(cell):
    return float(re.match(r"[\d.]+", cell)[0])


def is_in_order(cells):
    values = [first_number(cell) for cell in cells]
    return len(values) == 3 and 1.0 <= values[0] < values[1] < values[2]


def test_compare_has_them_in_order_on_the_terminal_and_on_its_page(place, capsys):
    pytest.importorskip("matplotlib")
    page = place / "page.html"
    capsys.readouterr()
    assert main(["compare", *(str(place / name) for name in ALLOCATIONS), "--page", str(page)]) == 0
    printed = [re.split(r"\s{2,}", line.strip()) for line in capsys.readouterr().out.splitlines()]
    terminal = {cells[0]: cells[1:4] for cells in printed}
    text = page.read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', text, re.DOTALL)[1])
    shown = {row[0]: row[1:4] for table in data["tables"] for row in table["rows"]}
    for name in (ALL, BY_NEIGHBOURS):
        assert is_in_order(terminal[name])
        assert is_in_order(shown[name])


def test_batch_says_once_what_part_of_the_machine_was_of_use(place, capsys):
    files = [str(place / "p.xml"), str(place / "w.json")]
    assert main(["batch", *files, "--profiles", "ptask", "--allocation", "random"]) == 0
    printed = capsys.readouterr().out
    summary = json.loads((place / "random" / "summary.json").read_text())
    assert printed.count("useful") == 1
    assert f"of it useful {number(summary['useful_utilisation'], 'share')}\n" in printed
    assert summary["useful_utilisation"] < 0.5 * summary["utilisation"]


def test_a_campaign_has_them_in_order(place, capsys):
    (place / "plan.toml").write_text(PLAN)
    runs, table = place / "runs", place / "table.csv"
    assert main(["campaign", "run", str(place / "plan.toml"), "-o", str(runs)]) == 0
    assert main(["campaign", "table", str(runs), "-o", str(table)]) == 0
    with table.open(newline="") as file:
        rows = {row["allocation"]: row for row in csv.DictReader(file)}
    assert is_in_order([rows[name]["contention_slowdown.mean"] for name in ALLOCATIONS])
