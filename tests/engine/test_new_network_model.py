"""The guide's example of a new network model: one entry, and everything knows it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from documents import ROOT, blocks

GUIDE = ROOT / "docs" / "guides" / "extend.md"
TABLE = "NETWORK_MODELS: Mapping[str, NetworkModel] = {\n"


def test_the_entry_of_the_guide_is_a_model(tmp_path):
    package = tmp_path / "ptaskmodel"
    shutil.copytree(ROOT / "ptaskmodel", package, ignore=shutil.ignore_patterns("__pycache__"))
    page = blocks(GUIDE.read_text(encoding="utf-8"))
    (k,) = (k for k, block in enumerate(page) if block.text.startswith('    "frames": '))
    entry, program, printed = (block.text for block in page[k : k + 3])
    models = package / "engine" / "usage" / "network_models.py"
    source = models.read_text()
    assert source.count(TABLE) == 1
    models.write_text(source.replace(TABLE, TABLE + entry))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PTASKMODEL_KERNELS": "interpreted"}

    def output(*arguments):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout

    assert output("-c", program) == printed
    assert "frames" in output("-m", "ptaskmodel", "simulate", "--help")
