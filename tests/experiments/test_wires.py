"""The checks of the wire models: their table, a bound that is missed, and ranges left out."""

from __future__ import annotations

import csv
import importlib
import shutil
from pathlib import Path

import numpy as np
import pytest

WIRES = Path(__file__).resolve().parents[2] / "experiments" / "wires"


@pytest.fixture
def checks(monkeypatch):
    monkeypatch.syspath_prepend(str(WIRES))
    return importlib.import_module("checks")


def table(checks, monkeypatch, output, *given):
    """The verdicts that the program writes, by what is checked."""
    monkeypatch.setattr("sys.argv", ["checks.py", *map(str, given), "-o", str(output)])
    checks.main()
    rows = [
        line.strip("| ").split(" | ") for line in output.read_text(encoding="utf-8").splitlines()
    ]
    assert rows[0] == ["check", "found", "bound", "holds"]
    return {row[0]: row[-1] for row in rows[2:]}


@pytest.mark.jit
def test_own_cases_hold_what_they_can_show(checks, monkeypatch, tmp_path):
    found = table(checks, monkeypatch, tmp_path / "checks.md")
    assert sorted(found.values()) == ["no case"] * 5 + ["yes"] * 3


@pytest.mark.jit
def test_a_missed_bound_is_said(checks, monkeypatch, tmp_path):
    shutil.copytree(WIRES / "cases" / "dctcp_alone", tmp_path / "case")
    path = tmp_path / "case" / "measured.csv"
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("task", "duration_s"))
        writer.writerows((row["task"], 2.0 * float(row["duration_s"])) for row in rows)
    found = table(checks, monkeypatch, tmp_path / "c.md", tmp_path, "--only", "withheld")
    assert list(found.values()) == ["no"]


def test_ranges_of_a_case_are_made_without_its_own_residuals(checks):
    def seen(name, off):
        """20 flows that last as long as all draws say, but for a factor."""
        ones = np.ones(20)
        return checks.Seen(name, off * ones, ones, ones, 1e6 * ones, np.ones((20, 20)))

    known = checks.residuals_of("DCTCP", False).cases[:2]
    own = [seen(known[0], 1.0), seen(known[1], 1.5)]
    held = [holds for holds, _, _ in checks.in_ranges(own, "DCTCP", False)]
    assert not any(held)
    assert list(checks.in_ranges(own[:1], "DCTCP", False)) == []
    assert len(list(checks.in_ranges([seen("another", 1.0)], "DCTCP", False))) == 20


@pytest.mark.jit
def test_reads_of_a_testbed_last_as_long_as_measured(checks, shared_data, tmp_path):
    place = shared_data / "wires" / "rdma_testbed"
    verdicts = [*checks.reads(list(checks.cases_in([place])), tmp_path), *checks.loops([place])]
    assert len(verdicts) == 6
    assert all(verdict.holds for verdict in verdicts)
