"""The small size of each experiment gives the numbers that were recorded."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pandas
import pytest

from ptaskmodel.campaign import Campaign, read_plan
from ptaskmodel.campaign.run_types import numbers_of

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
SMALL = sorted(path.parent.name for path in EXPERIMENTS.glob("*/small.toml"))
TRIED = 2
# Parts that take a minute; other tests try smaller ones.
LONG = ("fit", "time scales", "follow-up")


@pytest.mark.jit
@pytest.mark.parametrize("name", SMALL)
def test_some_runs_give_the_recorded_numbers(name, monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS / name))
    plan = read_plan(EXPERIMENTS / name / "small.toml")
    runs = plan.runs()
    recorded = pandas.read_csv(EXPERIMENTS / name / "recorded.csv")
    assert len(recorded) == len(runs)
    short = [place for place, run in enumerate(runs) if run.point.get("part") not in LONG]
    for place in random.Random(name).sample(short, TRIED):
        found = numbers_of(plan.kind.run(runs[place].parameters))
        for metric in plan.metrics:
            expected = recorded[metric][place]
            assert found[metric] == pytest.approx(expected, rel=1e-6, abs=1e-9), runs[place].point


@pytest.mark.parametrize("name", SMALL)
def test_the_full_size_is_a_campaign_of_the_same_study(name):
    text = (EXPERIMENTS / name / "full.toml").read_text(encoding="utf-8")
    small = read_plan(EXPERIMENTS / name / "small.toml")
    assert (EXPERIMENTS / name / "tables.py").is_file()
    assert f'run = "{small.kind.name}"' in text


@pytest.mark.jit
def test_tables_and_pictures_are_made_of_a_campaign(tmp_path):
    folder = EXPERIMENTS / "trace_bundles"
    plan = tmp_path / "few.toml"
    text = (folder / "small.toml").read_text(encoding="utf-8")
    text = text.replace('"study.py', f'"{folder / "study.py"}').replace(', "stencil"', "")
    plan.write_text(text)
    runs = tmp_path / "runs"
    assert Campaign.in_file(plan, runs, (1, 1)).make(1).done == 3
    command = [sys.executable, str(folder / "tables.py"), str(runs), "-o", str(tmp_path / "out")]
    root = str(EXPERIMENTS.parent)
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": root}, timeout=120)
    made = {path.name for path in (tmp_path / "out").iterdir()}
    assert made == {
        *("alone.csv", "ratios.csv", "disturbed.csv"),
        *("alone.png", "cost.png", "ratio.png", "disturbed.png"),
    }
    rows = pandas.read_csv(tmp_path / "out" / "disturbed.csv")
    slowdowns = rows[rows.model == "replay"]["slowdown"]
    assert slowdowns.min() == 1.0 < slowdowns.max()
