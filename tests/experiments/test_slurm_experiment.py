"""The study of simulated Slurm runs, made small, and its example log is what its script makes."""

from __future__ import annotations

import csv
import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ptaskmodel.campaign import read_plan

STUDY = Path(__file__).resolve().parents[2] / "experiments" / "slurm"
MODULES = (
    *("accuracy", "common", "figures", "logs", "make_log", "parameters", "separate", "sharing"),
    *("findings", "snapshots", "speed", "study", "suspension", "tables", "victims"),
)
FEW = {"jobs": 12, "speed_jobs": 50, "shared_jobs": 12, "victim_jobs": 12}


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(str(STUDY))
    monkeypatch.syspath_prepend(str(STUDY / "example"))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module
    for name in MODULES:
        sys.modules.pop(name, None)


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_study_writes_tables_and_pictures(study, monkeypatch, tmp_path):
    runs = read_plan(STUDY / "small.toml").runs()
    monkeypatch.setattr(study("parameters"), "DEPTHS", (100,))
    monkeypatch.setattr(study("parameters"), "LOADS", (0.9,))
    monkeypatch.setattr(study("snapshots"), "ASKED", (1.5,))
    monkeypatch.setattr(study("sharing"), "MEMORY", (0.6,))
    monkeypatch.setattr(study("suspension"), "FACTORS", (0.5,))
    made = [(run, study("study").one_run({**run.parameters, **FEW})) for run in runs]
    records = [(run, {"series": found["series"]}) for run, found in made]
    monkeypatch.setattr(
        study("tables"),
        "told_campaigns",
        lambda _: ([SimpleNamespace(records=lambda: records)], tmp_path),
    )
    study("tables").main()
    written = {path.name for path in tmp_path.iterdir()}
    assert {"speed.csv", "parameters.csv", "separate.png", "sharing.png"} <= written
    assert {"suspension.png", "suspension_orders.csv", "shrunk.csv", "published.md"} <= written
    found = rows(tmp_path / "published.csv")
    verdicts = {row["what"]: row["verdict"] for row in found}
    assert verdicts["[T] starts on a machine filled every 60 s"] == "agrees"
    assert verdicts["[T] model: response less waiting is the same without suspension"] == "agrees"
    assert {"agrees", "differs"} <= set(verdicts.values())
    free = [row for row in rows(tmp_path / "separate.csv") if float(row["test_s"]) == 0]
    by_kind = {}
    for row in free:
        by_kind.setdefault(row["kind"], []).append(float(row["waiting_h"]))
    # Without costs two kinds of nodes fare alike under one controller and two.
    assert all(abs(a - b) < 0.02 for a, b in by_kind.values())
    assert [float(row["start_s"]) for row in rows(tmp_path / "filled.csv")] == [
        60.0 * k for k in range(10)
    ]


def test_on_a_fuller_machine_less_is_stopped_beside_what_is_lacked(study):
    found = {}
    for row in study("snapshots").measured("model", 16, 1):
        assert row["stopped_cpus"] >= row["lacked_cpus"] > 0
        if row["sizes"] == "model" and row["asked"] < 1.3:
            found[row["busy_%"]] = row["stopped_cpus"] / row["lacked_cpus"]
    (emptier, more), (fuller, less) = sorted(found.items())
    assert emptier < 85 < 95 < fuller
    assert more > 1.5 > less


def test_the_recorded_sharing_shares_nodes_and_is_that_of_today(study):
    """The numbers of a campaign in which nobody shares a node would not depend on the way."""
    run = next(r for r in read_plan(STUDY / "small.toml").runs() if r.point["table"] == "sharing")
    found = study("study").one_run(run.parameters)
    recorded = next(row for row in rows(STUDY / "recorded.csv") if row["table"] == "sharing")
    assert found["rows"] == int(recorded["rows"])
    assert found["mean"] == pytest.approx(float(recorded["mean"]), rel=1e-9)
    full = [row for row in found["series"] if row["memory"].startswith("0.6")]
    waits = {row["sharing"]: row["waiting_h"] for row in full}
    assert len(set(waits.values())) == 3
    slowed = {row["sharing"]: row["small_contention"] for row in full}
    assert 1.0 == slowed["none"] < slowed["sockets"] < slowed["cores"]


def test_nodes_and_dates_of_recorded_runs_are_compared(study):
    accuracy = study("accuracy")
    life = accuracy.Life
    found = accuracy.means({"a": life(0, 10, 30, "n1"), "b": life(5, 5, 15, "n2")})
    assert found == {"waiting": 5.0, "response": 20.0, "slowdown": 1.25}


def test_the_example_log_has_the_jobs_of_its_script(study):
    """Dates of starts and ends are a simulation's, which takes some seconds more."""
    text = (STUDY / "example" / "march.txt").read_text(encoding="utf-8").splitlines()
    jobs = study("make_log").requests()
    assert len(text) == len(jobs) + 1
    for line, job in zip(text[1:], jobs, strict=True):
        cells = dict(zip(text[0].split("|"), line.split("|"), strict=True))
        hours, minutes, _ = map(int, cells["Timelimit"].split(":"))
        assert cells["JobID"] == job.id
        assert (int(cells["ReqCPUS"]), int(cells["ReqNodes"])) == (job.tasks, job.min_nodes)
        assert 60 * hours + minutes == job.limit_min
