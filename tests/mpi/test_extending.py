"""The guide's example of a new all-reduce: entries in one file, and everything knows it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from documents import ROOT, blocks

PAGE = blocks((ROOT / "docs" / "guides" / "extend.md").read_text(encoding="utf-8"))
IMPORTED = "from ptaskmodel.mpi.collectives.steps import (\n"


def index_of(words: str) -> int:
    """The place of the only block of the guide with these words."""
    (index,) = (k for k, block in enumerate(PAGE) if words in block.text)
    return index


def test_an_algorithm_is_entered_in_the_file_of_its_collective(tmp_path):
    package = tmp_path / "ptaskmodel"
    shutil.copytree(ROOT / "ptaskmodel", package, ignore=shutil.ignore_patterns("__pycache__"))
    file = package / "mpi" / "collectives" / "allreduce.py"
    text = file.read_text()
    number = PAGE[index_of("    AT_ONCE,\n")].text
    name = PAGE[index_of('"at_once": AT_ONCE')].text
    branch = PAGE[index_of("if algorithm == AT_ONCE:")].text
    for old, new in (
        (IMPORTED, IMPORTED + "    all_to_all_pairs,\n"),
        (") = numbers(9)\n", number),
        ('        "default": AUTOMATIC,\n', '        "default": AUTOMATIC,\n' + name),
        ("    if algorithm == AUTOMATIC:\n", branch + "    if algorithm == AUTOMATIC:\n"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    file.write_text(text)
    example = index_of('collectives={"allreduce": name}')
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "PTASKMODEL_KERNELS": "interpreted",
    }
    done = subprocess.run(
        [sys.executable, "-c", PAGE[example].text],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == PAGE[example + 1].text
