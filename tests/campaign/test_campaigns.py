"""Campaigns make every run once and keep it, whatever dies."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ptaskmodel.campaign import Campaign, report, write_campaign_report, write_table
from ptaskmodel.campaign.plan import plan_of
from ptaskmodel.campaign.store import Store
from ptaskmodel.cli import main
from ptaskmodel.errors import CampaignError

ROOT = Path(__file__).resolve().parents[2]
STUDY = """
import os, signal, time
from pathlib import Path

def measure(parameters):
    x, marks = parameters["x"], Path(parameters["marks"])
    with (marks / f"made-{x}-{parameters['seed']}").open("a") as file:
        file.write("x")
    if x == 2 and parameters["seed"] == 0 and not (marks / "killed").exists():
        (marks / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if x == 3:
        os._exit(7)
    if x == 4:
        raise ValueError("no four")
    if x == 5 and parameters["seed"] == 1:
        time.sleep(600)
    time.sleep(parameters.get("sleep_s", 0.0))
    return {"y": x + parameters["seed"], "inner": {"z": 1.5}, "flag": True, "word": "w",
        "series": {"dates": [x, 2.5]}}
"""
PLAN = """
run = "study.py:measure"
repetitions = 2
timeout_s = 20
compare_with = {{x = {baseline}}}
[parameters]
marks = "{marks}"
sleep_s = {sleep_s}
[factors]
x = [{levels}]
"""


def study(place, levels="1, 2", sleep_s=0.0):
    place.mkdir(exist_ok=True)
    (place / "study.py").write_text(STUDY)
    (place / "marks").mkdir(exist_ok=True)
    first = levels.split(",")[0]
    text = PLAN.format(marks=place / "marks", levels=levels, sleep_s=sleep_s, baseline=first)
    (place / "plan.toml").write_text(text)
    return plan_of(text, place, "plan")


def made(place):
    """How often each run was made."""
    return {path.name: path.stat().st_size for path in (place / "marks").glob("made-*")}


def kept(directory):
    """What is kept of each run."""
    index = Store(directory).index()
    return {index.line(k).run_id: index.line(k).text for k in range(len(index.ids))}


def test_whatever_dies_the_others_go_on(tmp_path):
    plan = study(tmp_path, "1, 2, 3, 4")
    campaign = Campaign.of(plan, tmp_path / "runs")
    status = campaign.make(2)
    assert status == (4, 4, 0)
    counts = made(tmp_path)
    assert counts["made-2-0"] == 2
    assert counts["made-3-0"] == counts["made-3-1"] == 2
    assert sum(counts.values()) == 8 + 1 + 2
    reasons = {(run.point["x"], error) for run, error in campaign.failures()}
    assert reasons == {(3, "its process died twice (exit code 7)"), (4, "ValueError: no four")}
    assert campaign.make(1) == status
    assert made(tmp_path) == counts
    frame = campaign.frame(every=True)
    assert list(frame.columns) == [
        *("x", "repetition", "y", "inner.z", "flag", "status", "wall_s", "run")
    ]
    assert frame[frame["status"] == "done"]["y"].tolist() == [1, 2, 2, 3]


def test_a_run_that_takes_too_long_is_ended(tmp_path):
    plan = study(tmp_path, "5")
    text = plan.text.replace("timeout_s = 20", "timeout_s = 6")
    short = plan_of(text, tmp_path, "plan")
    campaign = Campaign.of(short, tmp_path / "runs")
    assert campaign.make(2) == (1, 1, 0)
    assert campaign.failures()[0][1] == "took longer than timeout_s = 6 s"


def test_a_kill_9_loses_nothing_and_nothing_is_made_twice(tmp_path, capsys):
    study(tmp_path, ", ".join(map(str, range(10, 40))), sleep_s=0.05)
    command = [sys.executable, "-m", "ptaskmodel", "campaign"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = [*command, "run", str(tmp_path / "plan.toml"), "--processes", "1"]
    process = subprocess.Popen(run, env=environment, start_new_session=True)
    runs = tmp_path / "plan-runs"
    deadline = time.monotonic() + 300
    while len(kept(runs)) < 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert main(["campaign", "status", str(tmp_path / "plan-runs")]) == 0
    assert re.search(r"under way: about [\d.]+ m?s left", capsys.readouterr().out)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = kept(runs)
    assert 5 <= len(before) < 60
    assert main(["campaign", "resume", str(tmp_path / "plan-runs"), "--processes", "1"]) == 0
    after = kept(runs)
    assert len(after) == 60
    assert [path.suffix for path in (runs / "runs").iterdir()] == [".zip"]
    assert after.items() >= before.items()
    counts = made(tmp_path)
    assert len(counts) == 60
    assert sum(counts.values()) <= 61  # one was in the making


def test_parts_are_merged_to_the_same_table(tmp_path):
    plan = study(tmp_path, "1, 6, 7")
    whole = Campaign.of(plan, tmp_path / "whole")
    whole.make(1)
    for k in (1, 2):
        Campaign.of(plan, tmp_path / f"part{k}", (k, 2)).make(1)
    parts = [str(tmp_path / "part1"), str(tmp_path / "part2")]
    assert main(["campaign", "merge", *parts, "-o", str(tmp_path / "merged")]) == 0
    merged = Campaign.in_directory(tmp_path / "merged")
    columns = ["x", "repetition", "y", "status", "run"]
    assert merged.frame(True)[columns].equals(whole.frame(True)[columns])


SLOW_TO_START = """
import time

ready = []

def measure(parameters):
    if parameters["x"] not in ready:
        time.sleep(0.5)
        ready.append(parameters["x"])
    return {"y": 1.0}
"""


def test_a_check_counts_what_is_loaded_once_once(tmp_path):
    """Each x loads something in half a second; a run takes no time."""
    (tmp_path / "study.py").write_text(SLOW_TO_START)
    text = 'run = "study.py:measure"\n[factors]\nx = [1, 2]\nk = {from = 1, to = 500}'
    found = Campaign.of(plan_of(text, tmp_path, "plan"), tmp_path / "runs").estimate(2)
    assert (found.runs, found.tried) == (1000, 2)
    assert found.seconds < 100
    assert 0.9 < found.start_s < 5


def test_a_check_says_that_a_run_fails(tmp_path, capsys):
    study(tmp_path, "1, 4")
    file = str(tmp_path / "plan.toml")
    given = ["-o", str(tmp_path / "runs"), "--processes", "1", "--try", "4"]
    assert main(["campaign", "check", file, *given]) == 2
    said = capsys.readouterr()
    assert "estimate of 2 runs" in said.out
    assert "plan.toml: 2 of 4 runs that were tried failed: ValueError: no four" in said.err


def test_a_check_warns_of_a_metric_that_no_run_has(tmp_path, capsys):
    study(tmp_path, "1")
    file = tmp_path / "plan.toml"
    file.write_text(f'metrics = ["inner"]\n{file.read_text()}')
    given = ["-o", str(tmp_path / "runs"), "--processes", "1", "--try", "1"]
    assert main(["campaign", "check", str(file), *given]) == 0
    assert "warning: metrics: no run has 'inner'; choose from inner.z" in capsys.readouterr().err


def test_what_a_user_sees(tmp_path, capsys):
    plan = study(tmp_path, "1, 6, 7")
    place = str(tmp_path / "runs")
    file = str(tmp_path / "plan.toml")
    assert main(["campaign", "check", file, "-o", place, "--processes", "1", "--try", "2"]) == 0
    assert "6 runs: x (3) x 2 repetitions" in capsys.readouterr().out
    assert main(["campaign", "status", place]) == 0
    assert "2 of 6 runs made, 0 failed, 4 missing" in capsys.readouterr().out
    assert main(["campaign", "run", file, "-o", place, "--processes", "1"]) == 0
    capsys.readouterr()
    assert main(["campaign", "table", place, "--kind", "differences"]) == 0
    line = next(one for one in capsys.readouterr().out.splitlines() if " y " in one)
    assert line.split()[:6] == ["6", "y", "2", "2", "5", "5"]
    assert line.split()[-3:] == ["0.5", "0.5", "1"]
    assert main(["campaign", "plot", place]) == 0
    assert (tmp_path / "runs/pictures/effects.png").stat().st_size > 5000
    capsys.readouterr()
    assert main(["campaign", "report", place]) == 0
    said = "y: 6, 7 not significantly different from 1."
    assert capsys.readouterr().out.splitlines()[0].startswith(said)
    page = (tmp_path / "runs/report.html").read_text()
    assert "against" not in plan.name
    assert "x: what each level changes against 1" in page
    assert "http" not in page.replace("http-equiv", "")
    write_table(Campaign.in_directory(place).frame(), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().startswith("x,repetition,y,")


def test_mistakes_of_the_command_line(tmp_path, capsys):
    study(tmp_path)
    file = str(tmp_path / "plan.toml")
    for arguments, said in (
        (["run", str(tmp_path / "no.toml")], "no such file"),
        (["run", file, "--part", "3/2"], "is no part"),
        (["resume", str(tmp_path)], "contains no campaign"),
        (["run", file, "-o", str(tmp_path)], "which belongs to no campaign"),
        (["merge", str(tmp_path), "-o", str(tmp_path / "m")], "contains no campaign"),
    ):
        assert main(["campaign", *arguments]) == 2
        assert said in capsys.readouterr().err


def test_series_are_kept_with_the_numbers(tmp_path):
    campaign = Campaign.of(study(tmp_path, "6"), tmp_path / "runs")
    campaign.make(1)
    found = [record["series"] for _, record in campaign.records()]
    assert found == [{"dates": [6, 2.5]}] * 2
    assert "series" not in campaign.frame(every=True)


def test_two_at_once_do_not_make_the_same(tmp_path):
    campaign = Campaign.of(study(tmp_path), tmp_path / "runs")
    Store(tmp_path / "runs").begin(campaign.plan)
    with Store(tmp_path / "runs").locked(), pytest.raises(CampaignError, match="another process"):
        campaign.make(1)


def test_a_report_needs_a_run(tmp_path):
    campaign = Campaign.of(study(tmp_path), tmp_path / "runs")
    campaign.store.begin(campaign.plan)
    with pytest.raises(CampaignError, match="no run has finished yet"):
        write_campaign_report(campaign, tmp_path / "report.html")


def test_a_page_of_many_runs_shows_some_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "MOST_RUNS", 3)
    campaign = Campaign.of(study(tmp_path, "1, 6"), tmp_path / "runs")
    campaign.make(1)
    write_campaign_report(campaign, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "The table of runs has the first 3 of 4; all else is of all of them." in page
