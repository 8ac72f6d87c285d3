"""The lessons run from start to end, as they were run when their outputs were kept."""

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "course"
LESSONS = sorted(FOLDER.glob("*.ipynb"))

pytestmark = pytest.mark.jit


def code_cells(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def printed_in(cell):
    texts = [output["text"] for output in cell["outputs"] if output["output_type"] == "stream"]
    return "".join("".join(text) for text in texts)


def test_there_are_five():
    assert [path.name[0] for path in LESSONS] == list("12345")


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_prints_what_it_shows(path, capsys):
    pytest.importorskip("matplotlib").use("agg")
    names = {}
    for number, cell in enumerate(code_cells(path)):
        exec(compile("".join(cell["source"]), f"{path.name}, code cell {number}", "exec"), names)
        assert capsys.readouterr().out == printed_in(cell)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_outputs_are_kept_and_small(path):
    outputs = [output for cell in code_cells(path) for output in cell["outputs"]]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert path.stat().st_size < 200_000
