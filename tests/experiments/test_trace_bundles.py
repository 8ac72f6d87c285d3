"""The study of bundles against replays runs, made small, and draws its pictures."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

STUDY = Path(__file__).resolve().parents[2] / "experiments" / "trace_bundles"


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(str(STUDY))
    for name in ("run", "figures"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import run

    yield run
    for name in ("run", "figures"):
        sys.modules.pop(name, None)


@pytest.mark.jit
def test_the_study_writes_tables_and_pictures(study, monkeypatch, tmp_path):
    monkeypatch.setattr(study, "PROGRAMS", ("all-to-all", "stencil"))
    monkeypatch.setattr(study, "HOSTS", "graphene-[1-2],graphene-[40-41]")
    monkeypatch.setattr(study, "FACTORS", (1.0,))
    monkeypatch.setattr(study, "FLOWS", (0, 2))
    monkeypatch.setattr(study, "WINDOWS", (1,))
    monkeypatch.setattr(sys, "argv", ["run.py", "-o", str(tmp_path / "out")])
    study.main()
    with (tmp_path / "out" / "disturbed.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["where"] for row in rows} == {"uplinks", "network cards"}
    slowdowns = [float(row["slowdown"]) for row in rows if row["model"] == "replay"]
    assert min(slowdowns) == 1.0 < max(slowdowns)
    pictures = {path.name for path in (tmp_path / "out").glob("*.png")}
    assert pictures == {"alone.png", "cost.png", "ratio.png", "disturbed.png"}
