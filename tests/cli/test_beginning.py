"""`demo` and `init`: what an installed package alone begins with runs and says the truth."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from ptaskmodel.cli import main
from ptaskmodel.cli.commands.demo import DEMO, PROJECT, starting_files

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_demo_is_the_first_example_of_the_repository():
    files = starting_files(DEMO)
    assert files["platform.xml"] == (ROOT / "platforms/worked_example.xml").read_text()
    assert files["tasks.json"] == (
        (ROOT / "experiments/first_steps/worked_example.json").read_text()
    )


def test_the_demo_runs_and_may_be_run_again(tmp_path, capsys):
    for _ in range(2):
        assert main(["demo", "-q"]) == 0
        said = capsys.readouterr().out
        assert "makespan  20.8 s" in said
        assert "ptaskmodel report ptaskmodel-demo/results" in said
    assert (tmp_path / "ptaskmodel-demo/results/attribution.csv").exists()


def test_the_demo_touches_nothing_of_others(tmp_path, capsys):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/thesis.tex").write_text("mine")
    assert main(["demo", "-o", "d"]) == 2
    assert "holds other things than a demo" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "d").iterdir()] == ["thesis.tex"]


def test_a_project_is_made_and_its_commands_run(tmp_path, monkeypatch, capsys):
    assert main(["init", "study"]) == 0
    assert {path.name for path in (tmp_path / "study").iterdir()} == set(starting_files(PROJECT))
    monkeypatch.chdir(tmp_path / "study")
    text = (tmp_path / "study/README.md").read_text()
    commands = text.split("```sh\n")[1].split("```")[0].splitlines()
    assert len(commands) == 4
    for command in commands:
        assert main(command.removeprefix("ptaskmodel ").split()) == 0
    said = capsys.readouterr()
    assert "no warnings" in said.out
    assert "warning" not in said.err


def test_the_notebook_of_a_project_runs(tmp_path, monkeypatch, capsys):
    assert main(["init", "study"]) == 0
    monkeypatch.chdir(tmp_path / "study")
    shown = []
    names: dict = {}
    for cell in json.loads(Path("study.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            body = ast.parse("".join(cell["source"])).body
            last = body.pop()
            exec(compile(ast.Module(body, []), "study", "exec"), names)
            shown.append(eval(compile(ast.Expression(last.value), "study", "eval"), names))
    limits, slowdowns, what_if = shown[1:]
    assert limits.loc["backup", "shared_with"] == "solver"
    assert slowdowns.slowdown.max() > 1.2
    assert (what_if["backup 20 s later"] <= what_if["as it is"]).all()
    capsys.readouterr()


def test_nothing_is_replaced_by_a_project(tmp_path, capsys):
    (tmp_path / "study").mkdir()
    (tmp_path / "study/notes.txt").write_text("mine")
    assert main(["init", "study"]) == 2
    assert "is there and not empty" in capsys.readouterr().err
    assert main(["init", "no/such/study"]) == 0
