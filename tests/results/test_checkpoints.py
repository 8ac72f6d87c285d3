"""A run goes on only with what it began with: what was read decides, not the names of files."""

from __future__ import annotations

import json

import pytest

import ptaskmodel as pm
from ptaskmodel.results.batch_comparison import standings
from ptaskmodel.results.directory import provenance
from ptaskmodel.runs.options import SimulationOptions
from ptaskmodel.runs.recording import Checkpoints
from ptaskmodel.runs.simulate import simulate_into
from ptaskmodel.workload.formats.tasks_json import load_tasks

PLATFORM = """<?xml version='1.0'?><platform version="4.1"><zone id="w" routing="Full">
<host id="a" speed="100f" speed_file="speed.txt"/><host id="b" speed="100f" state_file="state.txt"/>
<link id="l" bandwidth="1kBps" latency="1us" bandwidth_file="bw.txt" latency_file="lat.txt"/>
<route src="a" dst="b"><link_ctn id="l"/></route></zone></platform>"""
FILES = {
    "p.xml": PLATFORM,
    "speed.txt": "0 1.0\n",
    "state.txt": "0 1\n",
    "bw.txt": "0 1000\n",
    "lat.txt": "0 1e-6\n",
    "t.json": json.dumps({"tasks": [{"id": "x", "hosts": ["a", "b"], "cpu": 1000}]}),
}
OPTIONS = SimulationOptions(checkpoint_every_s=0.0, resume=True)


@pytest.fixture
def begun(tmp_path):
    """A directory with inputs and the checkpoint of a run of them."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    platform, tasks = inputs(tmp_path)
    simulation = pm.Simulation(platform)
    simulation.add_all(tasks)
    simulation.advance_to(5.0)
    Checkpoints(tmp_path / "run", OPTIONS, platform, tasks).watching(simulation, None)(5.0, 0, 1)
    return tmp_path


def inputs(place):
    return pm.load_platform(place / "p.xml"), load_tasks(place / "t.json")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("speed.txt", "0 1.0\n6 0.1\n"),
        ("state.txt", "0 1\n6 0\n"),
        ("bw.txt", "0 1000\n6 1\n"),
        ("lat.txt", "0 1e-6\n6 1\n"),
        ("p.xml", PLATFORM.replace("1kBps", "2kBps")),
        ("t.json", FILES["t.json"].replace("1000", "1001")),
    ],
)
def test_a_run_with_another_input_does_not_go_on(begun, name, text):
    (begun / name).write_text(text)
    other = "tasks" if name == "t.json" else "platform"
    with pytest.raises(pm.SimulationError, match=rf"belongs to another run \(different {other}\)"):
        simulate_into(begun / "run", *inputs(begun), OPTIONS)


@pytest.mark.parametrize("option", [{"solver": "maxmin"}, {"network_model": "LV08"},
                                    {"count": "flow"}])  # fmt: skip
def test_a_run_with_another_option_does_not_go_on(begun, option):
    options = SimulationOptions(resume=True, **option)
    with pytest.raises(pm.SimulationError, match=rf"\(different {next(iter(option))}\)"):
        simulate_into(begun / "run", *inputs(begun), options)


def test_a_run_that_shall_stop_before_its_checkpoint_says_what_to_do(begun):
    with pytest.raises(pm.SimulationError, match=r"run.checkpoint: is of 5 s, .*without --resume"):
        simulate_into(begun / "run", *inputs(begun), SimulationOptions(resume=True, until_s=4.0))


def test_the_same_inputs_elsewhere_go_on(begun):
    """Files of other names that hold the same, and works of one object or of several."""
    (begun / "p.xml").write_text(f"{PLATFORM}\n<!-- a remark -->\n")
    run = simulate_into(begun / "run", *inputs(begun), OPTIONS)
    assert run.records[0].end_s == 10.0
    assert run.summary["events"] > 0


def test_a_summary_names_the_files_that_its_inputs_name(begun):
    given = [begun / "p.xml", begun / "t.json"]
    paths = [entry["path"] for entry in provenance(given)["inputs"]]
    traces = [begun / name for name in ("speed.txt", "state.txt", "bw.txt", "lat.txt")]
    assert paths == list(map(str, given + traces))


def test_runs_with_other_traces_had_other_inputs(begun):
    platform, tasks = inputs(begun)
    given = [begun / "p.xml", begun / "t.json"]
    for name in ("one", "same", "other"):
        if name == "other":
            (begun / "speed.txt").write_text("0 0.5\n")
        simulate_into(begun / name, platform, tasks, inputs=given)
    assert standings([begun / "one", begun / "same"]).choices() == []
    ((name, *changed),) = standings([begun / "one", begun / "other"]).choices()
    assert (name, [text.rpartition(" ")[0] for text in changed]) == (
        "input",
        ["speed.txt"] * 2,
    )
