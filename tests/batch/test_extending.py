"""The guide's example of a new policy: one file, one entry, and everything knows it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from documents import ROOT, blocks

GUIDE = ROOT / "docs" / "guides" / "extend.md"
CHECK = """
from ptaskmodel.batch import BatchSimulation, check_policy, policy_by_name, random_jobs
from ptaskmodel.batch.policies.widest import Widest
check_policy(Widest, workloads=10)
policy = policy_by_name("widest", float, options={"patience_s": 5.0})
jobs = random_jobs(3, 30, 8)
print(len(BatchSimulation(jobs, 8, policy).run().attempts))
"""


@pytest.fixture
def extended(tmp_path):
    """A copy of the package with the file and the entry of the guide."""
    package = tmp_path / "ptaskmodel"
    shutil.copytree(ROOT / "ptaskmodel", package, ignore=shutil.ignore_patterns("__pycache__"))
    page = blocks(GUIDE.read_text(encoding="utf-8"))
    (policy,) = (block for block in page if "class Widest:" in block.text)
    (entry,) = (block for block in page if '"widest": Entry(' in block.text)
    (tmp_path / str(policy.file)).write_text(policy.text)
    table = package / "batch" / "policies" / "__init__.py"
    source = table.read_text()
    assert source.count("POLICIES = {\n") == 1
    table.write_text(source.replace("POLICIES = {\n", "POLICIES = {\n" + entry.text))
    return tmp_path


def output(place, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(place)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=place, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_new_policy_is_checked_and_has_a_name(extended):
    assert output(extended, "-c", CHECK).split() == ["30"]


def test_the_command_line_offers_it(extended):
    assert "widest" in output(extended, "-m", "ptaskmodel", "batch", "--help")
