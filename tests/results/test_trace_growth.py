"""Traces that grow too large are announced, and stopped where that is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

import ptaskmodel as pm
from ptaskmodel.results.traces import tables as trace_growth

PLATFORM = Path(__file__).resolve().parents[2] / "platforms" / "worked_example.xml"


def run(place, **options):
    tasks = [
        pm.ParallelTask(["a", "b"], flops=10.0 + k, flows=[(0, 1, 5.0)], id=str(k), start_s=k)
        for k in range(40)
    ]
    chosen = pm.SimulationOptions(traces=("csv",), **options)
    return pm.simulate_into(place, pm.load_platform(PLATFORM), tasks, chosen)


def test_large_traces_are_announced_once_with_what_they_will_take(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_growth, "WARNED_GB", 1e-6)
    with pytest.warns(UserWarning, match="the traces have .* GB at .* s") as told:
        run(tmp_path / "x")
    assert len(told) == 1


def test_a_limit_stops_the_run_and_nothing_is_left(tmp_path):
    with pytest.raises(pm.PTaskModelError, match="--trace-limit: the traces reach 1e-06 GB at"):
        run(tmp_path / "x", trace_limit_GB=1e-6)
    assert not list(tmp_path.iterdir())
    assert run(tmp_path / "x", trace_limit_GB=1.0).files


def test_what_a_use_takes_is_about_right(tmp_path):
    run(tmp_path / "x")
    content = (tmp_path / "x" / "trace.csv").read_text()
    mean = len(content) / content.count("\n")
    assert 0.5 < trace_growth.BYTES_PER_USE["csv"] / mean < 2.0
