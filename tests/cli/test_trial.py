"""Small runs are over before their kernels are compiled, with the same bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from ptaskmodel.cli import main
from ptaskmodel.cli.trial import Trial
from ptaskmodel.jit import INTERPRETED

pytestmark = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
ROOT = Path(__file__).resolve().parents[2]
PLATFORM = str(ROOT / "platforms" / "worked_example.xml")
TASKS = str(ROOT / "experiments" / "first_steps" / "worked_example.json")
SAID = "run without compiled kernels; `ptaskmodel warmup` compiles them, once (about 15 to 40 s)"
# The command line where all kernels are missing, and their compilation never ends.
PROGRAM = """
import sys, time
from ptaskmodel import kernel_sets
from ptaskmodel.cli import main, trial
def compile_sets(wanted, told=None):
    stand = kernel_sets.Stand((), (), 1, 0.0)
    for _ in range(50_000):
        told(stand)
        time.sleep(0.01)
kernel_sets.missing, kernel_sets.compile_sets = list, compile_sets
trial.ALONE_S, trial.PATIENCE_S = {alone_s}, 600.0
sys.exit(main())
"""


def typed(place, *arguments, alone_s=600.0, **kept):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(alone_s=alone_s), *arguments],
        env=os.environ | {"PTASKMODEL_CACHE_DIR": str(place / "cache"), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        **kept,
    )


def results(directory):
    found = json.loads((directory / "summary.json").read_text())
    assert found.pop("simulation_wall_time_s") > 0
    found.pop("kernels_wall_time_s")
    return found, (directory / "tasks.csv").read_bytes()


@pytest.mark.parametrize("alone_s", [600.0, 0.0])
def test_a_small_run_is_over_before_its_kernels_are_compiled(tmp_path, alone_s):
    kept = subprocess.run(
        [sys.executable, "-m", "ptaskmodel", "simulate", PLATFORM, TASKS, "-o", tmp_path / "kept"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    made = typed(tmp_path, "simulate", PLATFORM, TASKS, "-o", tmp_path / "made", alone_s=alone_s)
    assert made.returncode == 0
    assert made.stderr.splitlines()[-1] == SAID
    assert made.stdout.splitlines()[:8] == kept.stdout.splitlines()[:8]
    assert results(tmp_path / "made") == results(tmp_path / "kept")


def test_what_both_would_tell_is_told_once(tmp_path):
    tasks = [{"id": k, "hosts": ["a"], "cpu": 150, "start": k} for k in range(1000)]
    (tmp_path / "tasks.json").write_text(json.dumps({"tasks": tasks}))
    made = typed(tmp_path, "simulate", PLATFORM, str(tmp_path / "tasks.json"), "--until", "1")
    assert made.returncode == 0
    assert made.stderr.count("the offered load of host 'a' is 1.5") == 1
    assert made.stderr.splitlines()[-1] == SAID


def test_what_goes_wrong_is_told_once(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    made = typed(tmp_path, "simulate", PLATFORM, TASKS, "-o", tmp_path / "out")
    assert made.returncode == 2
    assert made.stderr.count("holds 'thesis.tex'") == 1


def test_a_run_that_can_go_on_later_is_not_tried(tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr("ptaskmodel.kernel_sets.missing", list)
    monkeypatch.setattr("ptaskmodel.kernel_sets.compile_sets", lambda *_: None)
    monkeypatch.setattr(
        "ptaskmodel.cli.trial.trial", lambda size, _: tried.append(size) or nullcontext(Trial())
    )
    for options in ([], ["-o", str(tmp_path / "out"), "--checkpoint-every", "9"]):
        assert main(["simulate", PLATFORM, TASKS, *options]) == 0
    assert tried == [3, None]
