"""The study of simulated Slurm runs, made small, and its example log is what its script makes."""

from __future__ import annotations

import csv
import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
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


@pytest.mark.parametrize(("published", "refused"), [(1.0, False), (3.0, True)])
def test_chance_is_refused_where_the_interval_leaves_the_published_out(study, published, refused):
    said = study("findings")._chance("draws", published, np.array([0.9, 1.1, 1.2]))
    assert said.startswith("unknown, not chance") is refused


@pytest.mark.parametrize(
    ("holds", "refused"), [((True, True, False), False), ((True, False), True)]
)
def test_chance_is_refused_where_a_relation_holds_in_half_of_the_draws(study, holds, refused):
    assert study("findings")._how_often("draws", holds).startswith("unknown, not") is refused


@pytest.mark.parametrize(
    ("longer", "found"),
    [
        ({"a": 1, "b": 2, "c": 3}, "the queue: 2 of 2"),
        ({"a": 1, "b": 3, "c": 2}, "the queue, in part: 1 of 2"),
        ({"a": 3, "b": 2, "c": 1}, "unknown, not the queue: 0 of 2"),
    ],
)
def test_the_queue_is_refused_where_a_longer_one_mends_no_order(study, longer, found):
    said = study("findings")._queue("abc", {"a": 3, "b": 2, "c": 1}, longer)
    assert said.startswith(found)


def settings(off, half):
    """Rows of nodes by load, all off by a percentage; of half the nodes, by tests."""
    nodes = {"": 10.0, " at load 2": off}
    for load, here in nodes.items():
        for size in (75, 88, 100, 112, 125):
            numbers = {"waiting_s_off_%": here, "response_s_off_%": here, "tests": 1}
            yield {"setting": f"nodes{load}", "value": size} | numbers
    for name, value in (("of half", 6.0), ("of half at load 2", half)):
        yield {"setting": name, "value": 100, "tests": 1.0}
        yield {"setting": name, "value": 50, "tests": value}
    for interval in (7, 15):
        yield {"setting": "bf_interval", "value": interval, "waiting_s_off_%": 0.0}


@pytest.mark.parametrize(("off", "half", "refused"), [(120.0, 2.5, False), (20.0, 6.0, True)])
def test_the_queue_is_refused_where_no_load_gives_what_was_published(study, off, half, refused):
    lines = study("findings")._parameters(list(settings(off, half)))
    found = {line.what: line.cause for line in lines if line.verdict == "differs"}
    fewer = next(cause for what, cause in found.items() if "waiting with -25 % nodes" in what)
    backfill = next(cause for what, cause in found.items() if "half the nodes" in what)
    assert fewer.startswith("unknown, not the queue") is refused
    assert backfill.startswith("unknown, not the queue") is refused


@pytest.mark.parametrize(("full", "refused"), [(1.2, False), (2.5, True)])
def test_fullness_is_refused_where_as_much_is_stopped_on_a_full_machine(study, full, refused):
    said = study("findings")._fullness({80.0: 1.9, 99.0: full, 100.0: 1.1})
    assert said.startswith("unknown") is refused


@pytest.mark.parametrize(("exact", "refused"), [(101.0, False), (117.0, True)])
def test_rounding_is_refused_where_waits_differ_without_it(study, exact, refused):
    waits = {(1, 1.0): 100.0, (1, 0.5): 117.0, (16, 1.0): 100.0, (16, 0.5): exact}
    rows = [
        {"multiples_of": step, "factor": x, "intervals": x, "waiting_over_factor_s": wait}
        for (step, x), wait in waits.items()
    ]
    (line,) = study("findings")._shrunk(rows)
    assert line.verdict == "differs"
    assert line.cause.startswith("unknown, not rounding") is refused


@pytest.mark.parametrize(("deviation", "refused"), [(10.0, False), (40.0, True)])
def test_fewer_jobs_are_refused_where_as_many_would_deviate_more(study, deviation, refused):
    rows = [
        {"kind": kind, "controllers": 1, "waiting_h": 10 + sign * deviation / 10}
        for kind in ("knl", "slx")
        for sign in (-1, 1)
    ]
    _, small = study("findings")._phases(rows)
    assert small.cause.startswith("unknown, not fewer jobs") is refused


@pytest.mark.parametrize(("real", "refused"), [(4584.0, False), (3.0, True)])
def test_branches_are_refused_where_real_runs_agree_with_each_other(study, real, refused):
    off = {"waiting_off_%": -2.5, "response_off_%": -2.5, "slowdown_off_%": -2.5}
    row = {"jobs": 60, "largest_gap_s": 4512.0, "real_largest_gap_s": real} | off
    lines = study("findings")._accuracy([row])
    assert [line.cause.startswith("unknown") for line in lines] == [refused] * 3


def test_waits_shrink_in_proportion_where_nothing_is_rounded(study):
    """Limits of whole minutes and intervals of whole seconds are all that differs otherwise."""
    rows = study("suspension").shrunk("model", 64, 60, 1.2)
    waits = {
        (row["multiples_of"], row["factor"]): row["waiting_over_factor_s"]
        for row in rows
        if row["factor"] == row["intervals"]
    }
    assert set(waits) == {
        (1, 1.0),
        (1, 0.5),
        (1, 0.1),
        (1, 0.0625),
        (16, 1.0),
        (16, 0.5),
        (16, 0.0625),
    }
    assert waits[16, 0.0625] == pytest.approx(waits[16, 1.0], rel=1e-3)
    assert abs(waits[1, 0.0625] / waits[1, 1.0] - 1) > 5e-3


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
