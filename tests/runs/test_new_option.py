"""An option of batch: one field, as the guide says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap

import pytest
from documents import ROOT, blocks

GUIDE = ROOT / "docs" / "guides" / "extend.md"
PROGRAM = """
import json, sys
sys.path.insert(0, "docs")
import reference_pages
import ptaskmodel as pm
from ptaskmodel.campaign.run_types import KINDS
from ptaskmodel.cli import main
from ptaskmodel.errors import CampaignError
from ptaskmodel.runs.batch import batch_inputs

assert pm.BatchOptions().pause_s is None
kind = KINDS["batch"]
kind.check_names(["platform", "workload", "pause_s"])
try:
    kind.check_value("pause_s", -1, "parameters")
except CampaignError as error:
    print(error)
page = "\\n".join(reference_pages.commands())
print({line for line in page.splitlines() if "--pause" in line})
given = {"platform": "p.xml", "workload": "w.json", "pause_s": 2.0}
print(batch_inputs(given).options.pause_s)
sys.exit(main(["batch", "p.xml", "w.json", "--pause", "3", "--json"]))
"""


@pytest.fixture
def extended(tmp_path):
    """A copy of the package with the addition of the guide."""
    package = tmp_path / "ptaskmodel"
    shutil.copytree(ROOT / "ptaskmodel", package, ignore=shutil.ignore_patterns("__pycache__"))
    page = blocks(GUIDE.read_text(encoding="utf-8"))
    (field,) = (block.text for block in page if block.text.strip().startswith("pause_s"))
    options = package / "batch" / "options.py"
    text = options.read_text()
    before = "    roles: Mapping"
    assert text.count(before) == 1
    options.write_text(text.replace(before, textwrap.indent(field, "    ") + before))
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "reference_pages.py", tmp_path / "docs")
    shutil.copy(ROOT / "platforms" / "worked_example.xml", tmp_path / "p.xml")
    jobs = {"jobs": [{"id": "1", "subtime": 0, "res": 1, "profile": "d"}], "nb_res": 2}
    jobs["profiles"] = {"d": {"type": "delay", "delay": 5}}
    (tmp_path / "w.json").write_text(json.dumps(jobs))
    return tmp_path


def test_a_field_is_an_option_of_the_command_of_campaigns_and_of_the_library(extended):
    environment = {**os.environ, "PYTHONPATH": str(extended), "PTASKMODEL_KERNELS": "interpreted"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=extended, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    problem, row, value, printed = done.stdout.split("\n", 3)
    assert problem == "parameters.pause_s: -1 is not a number from 0"
    assert row == "{'| `--pause X` | Pause after each job. |'}"
    assert value == "2.0"
    assert json.loads(printed)["parameters"]["pause_s"] == 3.0
