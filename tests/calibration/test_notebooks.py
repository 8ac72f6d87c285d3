"""The notebooks run from start to end, and are kept with readable outputs."""

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "calibration"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

pytestmark = pytest.mark.jit


def cells(path, kind):
    data = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in data["cells"] if cell["cell_type"] == kind]


def test_there_are_four():
    assert [path.name[:2] for path in NOTEBOOKS] == ["01", "02", "03", "04"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_code_runs(path, monkeypatch):
    monkeypatch.chdir(FOLDER)
    names = {}
    for number, cell in enumerate(cells(path, "code")):
        code = compile("".join(cell["source"]), f"{path.name}, code cell {number}", "exec")
        exec(code, names)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_kept_and_small(path):
    outputs = [output for cell in cells(path, "code") for output in cell["outputs"]]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert path.stat().st_size < 300_000
