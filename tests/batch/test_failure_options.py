"""``ptaskmodel batch`` with failures, maintenance and checkpoints: what options do, and refuse."""

from __future__ import annotations

import csv
import json

import pytest

from ptaskmodel.cli import main

HOSTS = 4
PLATFORM = f"""<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-{HOSTS - 1}" speed="1Gf" bw="1GBps" lat="1us"/>
</platform>
"""
JOBS = [
    {"id": 1, "subtime": 0, "res": 3, "profile": "long", "walltime": 50},
    {"id": 2, "subtime": 1, "res": 1, "profile": "short", "walltime": 20},
]
PROFILES = {"long": {"type": "delay", "delay": 40}, "short": {"type": "delay", "delay": 10}}
# The middle of job 1; host 3 is that of job 2, whose walltime would run into the window.
FAILURES = "date,resource,event\n20.0,n1,down\n25.0,n1,up\n"
WINDOWS = "hosts,start,end\n3,15,30\n"


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.xml").write_text(PLATFORM)
    content = {"nb_res": HOSTS, "jobs": JOBS, "profiles": PROFILES}
    (tmp_path / "w.json").write_text(json.dumps(content))
    (tmp_path / "failures.csv").write_text(FAILURES)
    (tmp_path / "windows.csv").write_text(WINDOWS)
    return tmp_path


def run(capsys, *options):
    assert main(["batch", "p.xml", "w.json", "--json", "-o", "out", *options]) == 0
    summary = json.loads(capsys.readouterr().out)
    with open("out/jobs.csv") as file:
        dates = {row["job_id"]: float(row["starting_time"]) for row in csv.DictReader(file)}
    return summary, dates


def test_without_failures_both_start_at_once(capsys, place):
    summary, dates = run(capsys)
    assert dates == {"1": 0, "2": 1}
    assert summary["jobs"]["lost_runs"] == 0


def test_a_job_on_a_host_that_fails_is_lost_or_begins_anew(capsys, place):
    summary, _ = run(capsys, "--failures", "failures.csv")
    assert summary["jobs"]["other"] == 1
    assert summary["jobs"]["succeeded"] == 1
    summary, dates = run(capsys, "--failures", "failures.csv", "--on-failure", "requeue")
    assert dates == {"1": 20, "2": 1}  # job 2 has ended: its host takes the place of n1
    assert summary["jobs"]["succeeded"] == 2
    assert summary["jobs"]["lost_runs"] == 1
    assert summary["lost_host_s"] == 3 * 20
    assert (place / "out" / "failures.csv").read_text() == FAILURES


def test_drawn_failures_are_replayed_from_their_file(capsys, place):
    law = [word for pair in ("mtbf=30", "repair=5", "seed=2") for word in ("--failure-law", pair)]
    drawn, dates = run(capsys, "--on-failure", "requeue", *law)
    assert drawn["jobs"]["lost_runs"] > 0
    (place / "out" / "failures.csv").rename(place / "drawn.csv")
    again, same = run(capsys, "--on-failure", "requeue", "--failures", "drawn.csv")
    assert same == dates
    assert again["jobs"] == drawn["jobs"]


def test_a_job_goes_on_from_its_checkpoint(capsys, place):
    options = ["--failures", "failures.csv", "--on-failure", "requeue"]
    checkpoint = [w for pair in ("interval=5", "write=1") for w in ("--checkpoint", pair)]
    summary, _ = run(capsys, *options, *checkpoint)
    assert 0 < summary["lost_host_s"] < 3 * 20


def test_nobody_starts_what_would_run_into_maintenance(capsys, place):
    summary, dates = run(capsys, "--maintenance", "windows.csv")
    assert dates == {"1": 0, "2": 30}
    assert summary["jobs"]["succeeded"] == 2


BAD = {
    "no file": (["--failures", "absent.csv"], "absent.csv: no such file"),
    "columns": (["--failures", "windows.csv"], "windows.csv:1: the header names column 'date'"),
    "no host": (["--failures", "bad.csv"], "there is no host and no link 'n9'"),
    "law form": (["--failure-law", "mtbf"], "--failure-law: 'mtbf' is not KEY=VALUE"),
    "law key": (["--failure-law", "rate=3"], "option 'rate' is unknown; use one of mtbf"),
    "law number": (["--failure-law", "mtbf=often"], "mtbf is 'often'; give 0.001 to"),
    "law shape": (
        ["--failure-law", "mtbf=3", "--failure-law", "shape=0"],
        "shape is 0; give 0.1 to 100",
    ),
    "law of nothing": (["--failure-law", "repair=3"], "neither mtbf nor link_mtbf is given"),
    "rule": (["--on-failure", "pray"], "'pray'"),
    "no windows": (["--maintenance", "absent.csv"], "absent.csv: no such file"),
    "windows": (["--maintenance", "failures.csv"], "failures.csv:1: the header names column"),
    "window": (["--maintenance", "bad_window.csv"], "bad_window.csv:2: ends at 15 s, not after"),
    "checkpoint": (["--checkpoint", "often=1"], "option 'often' is unknown"),
    "fairness of drawn failures": (
        ["--failure-law", "mtbf=30", "--fairness", "both"],
        "--fairness: failures that are drawn cannot be drawn again in forks; give them in a file",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_options_are_refused_in_one_line(capsys, place, case):
    options, message = BAD[case]
    (place / "bad.csv").write_text(FAILURES.replace("n1", "n9"))
    (place / "bad_window.csv").write_text("hosts,start,end\n3,30,15\n")
    assert main(["batch", "p.xml", "w.json", "-o", "out", *options]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not (place / "out").exists()


def test_fairness_with_failures_of_a_file(capsys, place):
    options = ["--failures", "failures.csv", "--on-failure", "requeue", "--fairness", "both"]
    summary, _ = run(capsys, *options)
    assert summary["unfair_jobs"] == {"runtimes": 0, "estimates": 0, "frozen": False}
