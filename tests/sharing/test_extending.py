"""The guide's example of a new rule: one file, one entry, and everything knows it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from documents import ROOT, blocks
from sharing.systems import needs_jit

GUIDE = ROOT / "docs" / "guides" / "extend.md"
SIMULATE = """
from ptaskmodel import ParallelTask, Simulation, load_platform
simulation = Simulation(load_platform(PLATFORM), solver="parts")
# Two tasks on host a of 100 flop/s; the link of 100 B/s holds the first back.
first = simulation.add(ParallelTask(["a", "b"], [100.0, 0.0], flows=[(0, 1, 1000.0)]))
second = simulation.add(ParallelTask(["a"], 100.0))
simulation.run()
print(first.end_s, second.end_s)
"""


PAGE = blocks(GUIDE.read_text(encoding="utf-8"))


def index_of(words: str) -> int:
    """The place of the only block of the guide with these words."""
    (index,) = (k for k, block in enumerate(PAGE) if words in block.text)
    return index


@pytest.fixture
def extended(tmp_path) -> Path:
    """A copy of the package with the file and the entry of the guide."""
    package = tmp_path / "ptaskmodel"
    shutil.copytree(ROOT / "ptaskmodel", package, ignore=shutil.ignore_patterns("__pycache__"))
    solver = PAGE[index_of("def solve_by_parts(")]
    (tmp_path / str(solver.file)).write_text(solver.text)
    table = package / "sharing" / "rules.py"
    source = table.read_text()
    assert source.count("RULES = {\n") == 1
    entry = PAGE[index_of('"parts": Rule(')].text
    table.write_text(source.replace("RULES = {\n", "RULES = {\n" + entry))
    return tmp_path


def output(place: Path, *arguments: str, jit: bool) -> str:
    """What Python prints with the copy of the package."""
    way = "numba" if jit else "interpreted"
    environment = {**os.environ, "PYTHONPATH": str(place), "PTASKMODEL_KERNELS": way}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=place, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=needs_jit)])
def test_a_problem_alone(extended, jit):
    example = index_of('solve(problem, "parts")')
    said = output(extended, "-c", PAGE[example].text, jit=jit)
    assert said == PAGE[example + 1].text


def test_a_simulation(extended):
    platform = str(ROOT / "platforms" / "worked_example.xml")
    said = output(extended, "-c", f"PLATFORM = {platform!r}" + SIMULATE, jit=False)
    # The second owns half of the host: 2 s. The first crosses the link in 10 s.
    assert said.split() == ["10.0", "2.0"]


def test_the_command_line_offers_it(extended):
    said = output(extended, "-m", "ptaskmodel", "simulate", "--help", jit=False)
    assert "parts" in said
