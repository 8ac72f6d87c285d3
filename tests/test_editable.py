"""An editable install is one that type checkers follow from other folders."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
BUILD = "from setuptools import build_meta; print(build_meta.build_editable('..'))"


def test_a_program_elsewhere_finds_the_types(tmp_path):
    """The tables of setuptools are ours; the package is a small one of the same name."""
    pytest.importorskip("setuptools", minversion="77")
    pytest.importorskip("mypy")
    source, venv = tmp_path / "source", tmp_path / "venv"
    (source / "ptaskmodel" / "below").mkdir(parents=True)
    (source / "tests").mkdir()
    sections = re.split(r"^(?=\[)", PROJECT.read_text(), flags=re.M)
    tables = "".join(each for each in sections if each.startswith("[tool.setuptools"))
    assert tables
    named = '[project]\nname = "ptaskmodel"\nversion = "0.1.0"\n\n' + tables
    (source / "pyproject.toml").write_text(named)
    (source / "ptaskmodel" / "py.typed").touch()
    (source / "ptaskmodel" / "__init__.py").write_text("def hosts() -> int:\n    return 3\n")
    (source / "ptaskmodel" / "below" / "__init__.py").touch()
    subprocess.run([sys.executable, "-c", BUILD], cwd=source, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (packages,) = venv.glob("lib/python*/site-packages")
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(packages)
    program = tmp_path / "program.py"
    program.write_text("from ptaskmodel import hosts\n\nreveal_type(hosts())\n")
    python = f"--python-executable={venv / 'bin' / 'python'}"
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", python, "--cache-dir=cache", program],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
    )
    assert 'Revealed type is "int"' in checked.stdout.replace("builtins.", ""), checked.stdout
    assert checked.returncode == 0
