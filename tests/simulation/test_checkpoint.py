"""Checkpoints: what is read again goes on bit for bit, also after a sudden end."""

from __future__ import annotations

import hashlib
import json
import pickle
import pickletools
import signal
import subprocess
import sys

import numpy as np
import pytest
from engine_runner import prepare
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scenarios import random_flow_scenario, random_scenario

import ptaskmodel as pm
from ptaskmodel.simulation.checkpoint import FORMAT, load_checkpoint, save_checkpoint


def facts(simulation: pm.Simulation) -> list[tuple]:
    return [(r.task_id, r.start_s, r.end_s, r.final_state) for r in simulation.records()]


@pytest.mark.jit
@pytest.mark.parametrize("seed", range(12))
def test_a_simulation_read_again_goes_on_bit_for_bit(seed, tmp_path):
    """Cut in its middle, with tasks in every state, traces and latencies under way."""
    if seed % 3:
        simulation = prepare(random_scenario(seed), solver=("bmf", "fairbottleneck")[seed % 2])
    else:
        simulation = prepare(random_flow_scenario(seed), network_model="LV08")
    reference = simulation.fork()
    reference.run()
    for part in (0.0, 0.3, 0.7):
        simulation.advance_to(part * reference.makespan_s)
        save_checkpoint(simulation, tmp_path / "c", {"part": part})
        twin, about = load_checkpoint(tmp_path / "c")
        assert about == {"part": part}
        twin.run()
        assert facts(twin) == facts(reference)
        assert (twin.events, twin.now) == (reference.events, reference.now)


def test_a_snapshot_can_be_pickled(tmp_path):
    simulation = prepare(random_scenario(4))
    simulation.step()
    snapshot = pickle.loads(pickle.dumps(simulation.snapshot()))
    simulation.run()
    twin = snapshot.restart()
    twin.run()
    assert facts(twin) == facts(simulation)


@pytest.mark.jit
def test_tasks_can_be_added_to_what_was_read(tmp_path):
    found = []
    for read in (False, True):
        simulation = prepare(random_scenario(7))
        simulation.step()
        if read:
            save_checkpoint(simulation, tmp_path / "c")
            simulation, _ = load_checkpoint(tmp_path / "c")
        host = simulation.platform.hosts[0].name
        simulation.add_all([pm.Execution(host, 1e9 * k, id=f"new {k}") for k in range(1, 50)])
        simulation.run()
        found.append(facts(simulation))
    assert found[0] == found[1]


SUDDEN = """
import os, signal, sys
import numpy as np
import ptaskmodel as pm
from ptaskmodel.simulation import advancing, simulation as module
from ptaskmodel.runs.options import SimulationOptions
from ptaskmodel.runs.simulate import simulate_into
advancing.EVENTS_PER_SLICE = 50
place, tasks_file, output, end = sys.argv[1:]
platform = pm.load_platform(place)
saved = []
def progress(*_):
    if end == "kill" and os.path.exists(output + ".checkpoint"):
        saved.append(1)
        if len(saved) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
options = SimulationOptions(checkpoint_every_s=0.0, resume=end == "resume")
module.PROGRESS_EVERY_S = 0.0
simulate_into(output, platform, pm.load_tasks(tasks_file), options,
              inputs=[place, tasks_file], progress=progress)
"""


@pytest.mark.jit
def test_a_run_that_was_killed_goes_on_to_the_same_bits(tmp_path):
    platform = tmp_path / "platform.xml"
    platform.write_text(
        "<?xml version='1.0'?><platform version='4.1'><cluster id='c' prefix='n' suffix='' "
        "radical='0-9' speed='1Gf' bw='100MBps' lat='50us'/></platform>"
    )
    rng = np.random.default_rng(3)
    tasks = [
        {
            "id": f"t{k}",
            "start": float(rng.uniform(0, 100)),
            "hosts": [f"n{h}" for h in rng.choice(10, 3, replace=False)],
            "cpu": float(rng.uniform(1e8, 1e10)),
            "flows": [[0, 1, float(rng.uniform(1e6, 1e8))], [1, 2, float(rng.uniform(1e6, 1e8))]],
        }
        for k in range(400)
    ]
    (tmp_path / "tasks.json").write_text(json.dumps({"tasks": tasks}))

    def run(output: str, end: str) -> int:
        command = [sys.executable, "-c", SUDDEN, str(platform), str(tmp_path / "tasks.json")]
        return subprocess.run([*command, str(tmp_path / output), end], check=False).returncode

    assert run("whole", "end") == 0
    assert run("cut", "kill") == -signal.SIGKILL
    assert (tmp_path / "cut.checkpoint").exists()
    assert not (tmp_path / "cut").exists()
    assert run("cut", "resume") == 0
    assert not (tmp_path / "cut.checkpoint").exists()
    whole, cut = (tmp_path / name / "tasks.csv" for name in ("whole", "cut"))
    assert whole.read_bytes() == cut.read_bytes()


@pytest.mark.parametrize(
    "content",
    [b"", b"no checkpoint", b'{"format": "ptaskmodel checkpoint"}\n', b'["format"]\n', b"\x80\x05"],
)
def test_what_is_no_checkpoint_is_refused(tmp_path, content):
    path = tmp_path / "c"
    path.write_bytes(content)
    with pytest.raises(pm.SimulationError, match="c: "):
        load_checkpoint(path)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    path = tmp_path / "c"
    save_checkpoint(prepare(random_scenario(1)), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(pm.SimulationError, match="damaged"):
        load_checkpoint(path)


def with_pickle(path, data):
    """A checkpoint that holds a pickle, with the right version and digest."""
    header = {
        "format": FORMAT,
        "version": pm.__version__,
        "sha256": hashlib.sha256(data).hexdigest(),
        "about": {},
    }
    path.write_bytes(json.dumps(header).encode() + b"\n" + data)
    return path


EMPTY_SIMULATION = b"\x80\x04cptaskmodel.simulation.simulation\nSimulation\n)\x81."
MALFORMED = [
    b"",
    b"\x80\x04]",
    b"\x80\x04\x8c\x02\xff\xff.",
    b"\x80\x04(]\x91.",
    b"\x80\x04N.",
    b"\x80\x04cnumpy\nndarray\n((J\xff\xff\xff\x7fJ\xff\xff\xff\x7ftt\x81.",
    b"\x80\x04cpathlib\nPosixPath\n)\x81}X\x01\x00\x00\x00aK\x01sb.",
    b"\x80\x04" + b"(" * 100_000 + b"t" * 100_000 + b".",
    EMPTY_SIMULATION,
    EMPTY_SIMULATION[:-1] + b"}X\x04\x00\x00\x00coreNsb.",
]


@pytest.mark.parametrize("data", MALFORMED, ids=lambda data: repr(data[:24]))
def test_a_pickle_that_is_malformed_is_one_line(tmp_path, data):
    with pytest.raises(pm.SimulationError, match="c: cannot be used: ") as found:
        load_checkpoint(with_pickle(tmp_path / "c", data))
    assert "\n" not in str(found.value)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(sorted(pickletools.code2op)) | st.characters(max_codepoint=255)))
def test_any_pickle_is_refused(tmp_path, opcodes):
    data = b"\x80\x04" + "".join(opcodes).encode("latin-1") + b"."
    with pytest.raises(pm.SimulationError, match="c: "):
        load_checkpoint(with_pickle(tmp_path / "c", data))


@pytest.mark.parametrize(
    "header", ["[" * 100_000, "1" * 5000, json.dumps({"format": FORMAT}), "null"]
)
def test_any_header_is_refused(tmp_path, header):
    (tmp_path / "c").write_text(header + "\n")
    with pytest.raises(pm.SimulationError, match="c: is not a checkpoint"):
        load_checkpoint(tmp_path / "c")


WRONG = {
    "no intake": lambda s: vars(s).pop("_intake"),
    "no model": lambda s: setattr(s, "network_model", None),
    "another solver": lambda s: setattr(s, "solver", "maxmin"),
    "other options": lambda s: setattr(s.core, "options", s.core.options._replace(solver=99)),
    "numbers of another type": lambda s: setattr(
        s.core, "state", s.core.state._replace(lists=s.core.state.lists.astype(np.int32))
    ),
    "records of another type": lambda s: setattr(
        s._intake, "arrays", s._intake.arrays._replace(tasks=s._intake.arrays.stages)
    ),
    "no arrays": lambda s: setattr(s._intake, "arrays", None),
}


@pytest.mark.parametrize("name", WRONG)
def test_parts_of_another_kind_are_refused(tmp_path, name):
    simulation = prepare(random_scenario(1))
    WRONG[name](simulation)
    with pytest.raises(pm.SimulationError, match="cannot be used: "):
        load_checkpoint(with_pickle(tmp_path / "c", pickle.dumps(simulation)))


class Evil:
    def __reduce__(self):
        return print, ("this must not run",)


@pytest.mark.parametrize("evil", [Evil(), {"x": Evil()}])
def test_a_checkpoint_runs_no_code(tmp_path, evil, monkeypatch, capsys):
    path = tmp_path / "c"
    monkeypatch.setattr(pickle, "dumps", lambda _, protocol: pickle._dumps(evil))
    save_checkpoint(prepare(random_scenario(1)), path)
    with pytest.raises(pm.SimulationError, match=r"builtins\.print, which checkpoints do not need"):
        load_checkpoint(path)
    assert capsys.readouterr().out == ""
