"""The null test on real runs: company as counted by hand, effects as they were put in."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pandas
import pytest

ROOT = Path(__file__).resolve().parents[2]
STUDY = ROOT / "experiments" / "graphene_nas"
DATA = "PTASKMODEL_GRAPHENE_NAS"


@pytest.fixture
def study():
    spec = importlib.util.spec_from_file_location("graphene_nas_study", STUDY / "study.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def runs_of(rows):
    columns = ["experiment", "processes", "start_s", "stop_s"]
    return pandas.DataFrame(rows, columns=columns)


def test_company_is_the_part_of_the_others_that_ran_parallel_jobs(study):
    runs = runs_of(
        [("a", 2, 0, 100), ("a", 15, 0, 50), ("a", 1, 0, 100), ("a", 4, 75, 200), ("b", 8, 0, 100)]
    )
    found = study.company(runs)
    assert found[0] == pytest.approx((15 * 0.5 + 4 * 0.25) / 30)
    assert found[2] == pytest.approx((2 + 15 * 0.5 + 4 * 0.25) / 31)
    assert found[4] == 0.0


def test_the_effect_that_was_put_in_is_found(study):
    rng = np.random.default_rng(3)
    count = 2000
    runs = pandas.DataFrame({
        "benchmark": rng.choice(["ft", "lu"], count), "class": "B", "processes": 2,
        "machine": "cabinet 1", "day": rng.integers(0, 12, count).astype(str),
        "company": rng.random(count),
        "nodes": [tuple(rng.choice(8, 2, replace=False)) for _ in range(count)],
    })  # fmt: skip
    times_s = (
        np.where(runs["benchmark"] == "ft", 60.0, 140.0)
        * np.array([1.05 if 3 in nodes else 1.0 for nodes in runs["nodes"]])
        * 1.02 ** runs["company"].to_numpy()
        * np.exp(rng.normal(0.0, 0.01, count))
    )
    found = study.effect(runs, times_s)
    assert found["effect"] == pytest.approx(2.0, abs=0.25)
    assert found["low"] < 2.0 < found["high"]
    assert found["unexplained"] == pytest.approx(1.0, abs=0.1)


def test_the_real_runs(study):
    path = os.environ.get(DATA)
    if path is None:
        pytest.skip(f"{DATA} names no table of the runs")
    runs = study.read(Path(path))
    chosen = (runs["usual_s"] >= 60) & (runs["processes"] > 1) & (runs["benchmark"] == "ft")
    part = chosen.to_numpy()
    found = study.effect(runs[part], runs["time_s"].to_numpy()[part])
    assert -0.3 < found["low"] < 0.0 < found["high"] < 0.15
