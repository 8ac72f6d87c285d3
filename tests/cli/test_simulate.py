"""``ptaskmodel simulate``: what it shows, writes, and refuses without writing."""

from __future__ import annotations

import csv
import json
import re
from hashlib import sha256
from pathlib import Path

import pytest
from loading import loaded_by

import ptaskmodel as pm
from ptaskmodel.cli import main
from ptaskmodel.simulation.checkpoint import save_checkpoint

ROOT = Path(__file__).resolve().parents[2]
PLATFORM = str(ROOT / "platforms" / "worked_example.xml")
TASKS = str(ROOT / "experiments" / "first_steps" / "worked_example.json")
ENDS = {"T1": 47 / 3, "T2": 16.4, "T3": 125 / 6}


@pytest.fixture
def tasks_file(tmp_path):
    def write(tasks):
        path = tmp_path / "tasks.json"
        path.write_text(json.dumps({"tasks": tasks}))
        return str(path)

    return write


@pytest.mark.parametrize("solver", [None, "bmf", "fairbottleneck"])
def test_the_worked_example(solver, capsys):
    options = [] if solver is None else ["--solver", solver]
    assert main(["simulate", PLATFORM, TASKS, "--json", *options]) == 0
    found = json.loads(capsys.readouterr().out)
    for record in found["records"]:
        assert record["finish_time"] == pytest.approx(ENDS[record["task_id"]], rel=1e-12)
        assert record["final_state"] == "completed"
        assert record["hosts"] == ["a", "b"]
    assert found["summary"]["makespan"] == pytest.approx(125 / 6, rel=1e-12)
    assert found["summary"]["solver"] == (solver or "bmf")


def test_the_table_and_the_summary(capsys):
    assert main(["simulate", PLATFORM, TASKS]) == 0
    captured = capsys.readouterr()
    assert re.search(r"^T2 +1.0 +16.4 +15.4  ended  a b$", captured.out, re.MULTILINE)
    assert "makespan  20.8 s\ntasks     3: 3 ended\n" in captured.out
    assert captured.err == ""


def test_many_tasks_are_shown_as_the_slowest_and_the_latest(tasks_file, capsys):
    tasks = [{"id": f"t{k}", "delay": k % 20, "start": 100 - k} for k in range(100)]
    assert main(["simulate", PLATFORM, tasks_file(tasks)]) == 0
    said = capsys.readouterr().out
    slowest, latest = said.split("The 5 latest tasks")
    assert re.findall(r"^(t\d+)", slowest, re.MULTILINE) == ["t19", "t39", "t59", "t79", "t99"]
    assert re.findall(r"^(t\d+)", latest, re.MULTILINE) == ["t0", "t1", "t2", "t3", "t4"]


def test_the_files_written(tmp_path, capsys):
    output = tmp_path / "deep" / "results"
    assert main(["simulate", PLATFORM, TASKS, "--output", str(output)]) == 0
    with (output / "tasks.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == [
        "task_id",
        "profile",
        "start_time",
        "finish_time",
        "execution_time",
        "final_state",
        "hosts",
    ]
    assert [float(row["finish_time"]) for row in rows] == pytest.approx(list(ENDS.values()))
    assert {row["hosts"] for row in rows} == {"a b"}
    summary = json.loads((output / "summary.json").read_text())
    assert summary["counts"] == {"completed": 3}
    assert summary["simulation_wall_time_s"] > 0
    assert summary["simulation_processor_time_s"] >= 0
    assert set(summary["versions"]) == {"ptaskmodel", "python", "numpy", "kernels"}
    assert summary["inputs"] == [
        {"path": path, "sha256": sha256(Path(path).read_bytes()).hexdigest()}
        for path in (PLATFORM, TASKS)
    ]
    assert sorted(p.name for p in output.iterdir()) == sorted(summary["files"])


def test_equal_runs_write_equal_tasks(tmp_path, capsys):
    content = []
    for _ in range(2):
        assert main(["simulate", PLATFORM, TASKS, "--output", str(tmp_path / "out")]) == 0
        content.append((tmp_path / "out" / "tasks.csv").read_bytes())
    assert content[0] == content[1]


def test_until(capsys):
    assert main(["simulate", PLATFORM, TASKS, "--json", "--until", "16"]) == 0
    found = json.loads(capsys.readouterr().out)
    states = {record["task_id"]: record["final_state"] for record in found["records"]}
    assert states == {"T1": "completed", "T2": "running", "T3": "running"}
    assert found["summary"]["end_date"] == 16.0
    assert found["records"][1]["finish_time"] is None


def test_flow_models(tasks_file, capsys):
    tasks = tasks_file([{"id": "f", "hosts": ["a", "b"], "flows": [[0, 1, 100]]}])
    assert main(["simulate", PLATFORM, tasks, "--json", "--network-model", "CM02"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["network_model"] == "CM02"


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([{"id": 1, "hosts": ["nobody"], "cpu": 1}], "nobody"),
        ([{"id": 1, "hosts": ["a"], "cpu": -1}], "/tasks/0/cpu: -1.0 is negative"),
        ([], "/tasks: is empty"),
    ],
)
def test_bad_tasks_exit_with_2_and_nothing_is_written(tasks, message, tasks_file, tmp_path, capsys):
    output = tmp_path / "out"
    assert main(["simulate", PLATFORM, tasks_file(tasks), "--output", str(output)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("ptaskmodel: error: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not output.exists()
    assert [p.name for p in tmp_path.iterdir()] == ["tasks.json"]


@pytest.mark.parametrize("until", ["-1", "nan", "inf"])
def test_bad_dates(until, capsys):
    assert main(["simulate", PLATFORM, TASKS, "--until", until]) == 2
    assert "--until" in capsys.readouterr().err


def test_missing_files(capsys):
    assert main(["simulate", PLATFORM, "nothing.json"]) == 2
    assert "nothing.json: no such file" in capsys.readouterr().err
    assert main(["simulate", "nothing.xml", TASKS]) == 2
    assert "nothing.xml" in capsys.readouterr().err


def test_a_directory_of_something_else_is_refused_before_the_simulation(tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("years of work")
    assert main(["simulate", PLATFORM, TASKS, "--output", str(tmp_path)]) == 2
    assert "holds 'thesis.tex'" in capsys.readouterr().err
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_simulation_imports_no_library_that_it_does_not_need():
    loaded = loaded_by("simulate", PLATFORM, TASKS)
    assert not {"numba", "scipy", "pandas", "networkx", "matplotlib", "rich", "msgspec"} & loaded
    assert not {"numpy.ma", "concurrent.futures", "difflib", "html", "random", "shutil"} & loaded
    assert not {"secrets", "subprocess", "tempfile", "zipfile"} & loaded
    ours = ("batch", "connect", "energy", "mpi.ranks", "recording", "results.loading", "slurm")
    ours += ("results.pages", "results.traces", "sharing.problem", "workload.traces")
    assert not {f"ptaskmodel.{name}" for name in ours} & loaded


def test_a_run_with_checkpoints_gives_the_same_results_and_leaves_none(tmp_path):
    plain, cut = tmp_path / "plain", tmp_path / "cut"
    assert main(["simulate", PLATFORM, TASKS, "--output", str(plain)]) == 0
    options = ["--checkpoint-every", "0", "--resume"]
    assert main(["simulate", PLATFORM, TASKS, "--output", str(cut), *options]) == 0
    assert (cut / "tasks.csv").read_bytes() == (plain / "tasks.csv").read_bytes()
    assert not (tmp_path / "cut.checkpoint").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--resume"], "give --output DIR"),
        (["--checkpoint-every", "60"], "give --output DIR"),
        (["--resume", "--output", "new", "--attribution"], "leave out --trace, --attribution"),
    ],
)
def test_checkpoints_that_make_no_sense_are_refused(options, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", PLATFORM, TASKS, *options]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_checkpoint_of_another_run_is_refused(tmp_path, capsys):
    simulation = pm.Simulation(pm.load_platform(PLATFORM))
    save_checkpoint(simulation, tmp_path / "run.checkpoint", {"solver": "maxmin"})
    command = ["simulate", PLATFORM, TASKS, "--output", str(tmp_path / "run"), "--resume"]
    assert main(command) == 2
    assert "belongs to another run" in capsys.readouterr().err
