"""Directories of results that somebody damaged: one clear error, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ptaskmodel as pm
from ptaskmodel.cli import main
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.loading import load_results

PLATFORM = str(Path(__file__).resolve().parents[2] / "platforms" / "worked_example.xml")


@pytest.fixture
def batch(tmp_path):
    """Results of a batch on two hosts."""
    source = tmp_path / "jobs.json"
    profiles = {"wait": {"type": "delay", "delay": 10}}
    jobs = [{"id": "1", "subtime": 0, "res": 2, "profile": "wait"}]
    source.write_text(json.dumps({"nb_res": 2, "jobs": jobs, "profiles": profiles}))
    assert main(["batch", PLATFORM, str(source), "-o", str(tmp_path / "out")]) == 0
    return tmp_path / "out"


BROKEN = {
    "no name": ("machines.csv", "id,name\n0\n", r"machines\.csv:2: not 2 fields"),
    "no column": ("machines.csv", "x\n", r"machines\.csv:1: no column 'id'"),
    "too many": ("machines.csv", "id,name\n0,a,b\n", r"machines\.csv:2: not 2 fields"),
    "not text": ("machines.csv", b"\xff\xfe", "cannot be read"),
    "nul": ("jobs.csv", b"\0", "no column"),
    "empty": ("jobs.csv", "", r"jobs\.csv:1: no column"),
    "list": ("summary.json", "[]", "Expected `object`"),
    "inputs": ("summary.json", '{"inputs": [5]}', r"inputs\[0\]"),
    "date": ("summary.json", '{"end_date": "late"}', r"end_date"),
    "nan": ("summary.json", '{"end_date": NaN}', "malformed"),
    "deep": ("summary.json", "[" * 100_000, "not the summary of a run"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_broken_is_named(batch, case):
    name, content, message = BROKEN[case]
    (batch / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(pm.PTaskModelError, match=message) as caught:
        pm.load_results(batch)
    assert "\n" not in str(caught.value)
    assert str(batch) in str(caught.value)


def test_a_file_is_no_directory_of_results(tmp_path):
    (tmp_path / "r.json").write_text("{}")
    with pytest.raises(PTaskModelError, match="is a file; give a directory, the --output of a run"):
        load_results(tmp_path / "r.json")
