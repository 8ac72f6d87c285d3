"""The recorded runs of a real Slurm, where they are, and what their files say."""

import csv
import json
from pathlib import Path

import pytest

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "data" / "slurm"
FOLDERS = sorted(path.parent.name for path in RECORDED.glob("*/slurm.conf"))


def folder(name: str) -> Path:
    """The folder of a recorded workload; the test is skipped where it is not there."""
    path = RECORDED / name
    if not path.is_dir():
        pytest.skip("the recorded runs are not here")
    return path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def meta(path: Path) -> dict:
    return json.loads(path.read_text())
