"""The library calls behind ``simulate`` and ``batch``: the same files, as values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ptaskmodel as pm
from ptaskmodel.kernels.decorators import waited

ROOT = Path(__file__).resolve().parents[2]
PLATFORM = ROOT / "platforms" / "worked_example.xml"
TASKS = ROOT / "experiments" / "first_steps" / "worked_example.json"


@pytest.fixture(scope="module")
def platform():
    return pm.load_platform(PLATFORM)


def test_a_run_is_returned_and_written(platform, tmp_path):
    options = pm.SimulationOptions(attribution=True)
    tasks = pm.load_tasks(TASKS)
    run = pm.simulate_into(tmp_path / "x", platform, tasks, options, inputs=[PLATFORM, TASKS])
    assert {path.name for path in run.directory.iterdir()} == set(run.files)
    written = json.loads((run.directory / "summary.json").read_text())
    assert written == {**run.summary, "files": list(run.files)}
    assert [entry["path"] for entry in written["inputs"]] == [str(PLATFORM), str(TASKS)]
    found = pm.load_results(run.directory)
    assert [t.end_s for t in found.tasks] == [r.end_s for r in run.records]
    assert run.frame().finish_time.tolist() == found.frame().finish_s.tolist()


def test_without_a_directory_nothing_is_written(platform, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = pm.simulate_into(None, platform, pm.load_tasks(TASKS))
    assert (run.directory, run.files) == (None, ())
    assert run.summary["makespan"] == pytest.approx(125 / 6, rel=1e-12)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "options", [{"attribution": True}, {"traces": ("csv",)}, {"until_s": -1.0}, {"solver": "best"}]
)
def test_bad_options_are_errors_of_the_user(platform, options):
    with pytest.raises(pm.PTaskModelError):
        pm.simulate_into(None, platform, pm.load_tasks(TASKS), pm.SimulationOptions(**options))


def test_the_loading_of_kernels_is_not_part_of_the_simulation(platform, monkeypatch):
    before = pm.Simulation.run

    def run_with_a_new_kernel(simulation, *arguments, **options):
        before(simulation, *arguments, **options)
        waited(10_000.0)

    monkeypatch.setattr(pm.Simulation, "run", run_with_a_new_kernel)
    run = pm.simulate_into(None, platform, pm.load_tasks(TASKS))
    assert run.summary["kernels_wall_time_s"] >= 10_000.0
    assert run.summary["simulation_wall_time_s"] < 1_000.0


def test_a_batch_is_returned_and_written(platform, tmp_path):
    profiles = {"wait": {"type": "delay", "delay": 10}}
    jobs = [{"id": str(k), "subtime": k, "res": 1, "profile": "wait"} for k in range(3)]
    source = tmp_path / "jobs.json"
    source.write_text(json.dumps({"nb_res": 2, "jobs": jobs, "profiles": profiles}))
    workload = pm.read_workload(source)
    run = pm.batch_into(tmp_path / "x", platform, workload, pm.BatchOptions(policy="fcfs"))
    assert {path.name for path in run.directory.iterdir()} == set(run.files)
    assert run.summary["makespan_s"] == 20.0
    assert pm.load_results(run.directory).frame().finish_s.tolist() == [10.0, 11.0, 20.0]
    with pytest.raises(pm.PTaskModelError, match="--plots writes files"):
        pm.batch_into(None, platform, workload, writing=pm.BatchWriting(plots=True))
