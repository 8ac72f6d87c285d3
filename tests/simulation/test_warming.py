"""What is compiled ahead is what a simulation then calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ptaskmodel import jit, kernel_cache, kernel_sets
from ptaskmodel.core.loop import upcoming
from ptaskmodel.jit import INTERPRETED
from ptaskmodel.kernel_cache import kernel_directory
from ptaskmodel.platform import load_platform
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.tasks import Flow, ParallelTask

compiled = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")

# Each kind of thing that a simulation is asked for; says which kernels had to be compiled.
USE = """
from ptaskmodel import jit, kernel_parts
compiled = []
before = kernel_parts.compiled
def noted(function, *arguments):
    compiled.append(function.__name__)
    return before(function, *arguments)
kernel_parts.compiled = noted
from ptaskmodel.core.driver import Core
from ptaskmodel.simulation import warming
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.tasks import Delay, Flow, ParallelTask, Sequence, Task
platform = warming._platform()
simulation = Simulation(platform)
work = warming.EXCHANGE
tasks = [Task(tuple(f"{p}{k}" for k in range(4)), work, start_s=0.1) for p in "ctfd"]
tasks += [
    ParallelTask(["c0", "c1"], 1e9, flows=[(0, 1, 1e9)], walltime_s=50, id="first"),
    ParallelTask(["c1", "m0"], 1e9, flows=[(0, 1, 1e9)], weight=2.0),
    Delay(1.0, after=["first"]),
    Sequence(["c2", "c3"], [work, work], repeat=2),
]
simulation.add_all(tasks)
simulation.run()
simulation = Simulation(platform, network_model="LV08", solver="fairbottleneck")
simulation.add_all([Flow("c0", "c1", 1e6), Flow("c1", "c0", 1e6)])
simulation.run()
simulation = Simulation(platform)
task = simulation.add(ParallelTask(["c0", "c1"], 1e9, flows=[(0, 1, 1e9)]))
simulation.next_event_time()
simulation.set_speed("c0", 0.5)
simulation.set_latency(platform.links[0].name, 1e-3)
simulation.cancel(task)
core = Simulation(platform).core
core.start(core.find([core.router.shape(work, (0, 1), None)[0]])[0], weight=2.0)
core.advance()
core.advance(1.5)
print(compiled)
"""


@compiled
@pytest.mark.skipif(kernel_directory() is None, reason="nothing is kept")
def test_sets_have_what_a_simulation_calls():
    kernel_sets.compile_sets()
    assert not kernel_sets.missing()
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@compiled
def test_a_set_is_missing_where_a_kernel_of_it_is_not_kept_any_more(monkeypatch, tmp_path):
    monkeypatch.setattr("ptaskmodel.kernel_cache.kernel_directory", lambda: tmp_path)
    noted = {"ptaskmodel.core.loop:upcoming": (upcoming.identity, ["upcoming-of-a-test"])}
    kernel_cache.keep(kernel_sets._mark("tasks"), json.dumps(noted).encode())
    assert kernel_sets.missing(["tasks"]) == ["tasks"]
    kernel_cache.keep("upcoming-of-a-test", b"code")
    assert not kernel_sets.missing(["tasks"])


@compiled
def test_copies_of_the_package_that_share_a_cache_note_sets_apart(monkeypatch, tmp_path):
    marks = {kernel_sets._mark("tasks")}
    monkeypatch.setattr("ptaskmodel.kernel_cache.PACKAGE", tmp_path)
    assert kernel_sets._mark("tasks") not in marks


@compiled
def test_compilation_is_told_as_it_goes(monkeypatch, tmp_path):
    monkeypatch.setitem(kernel_sets.SETS, "nothing", "ptaskmodel.errors:PTaskModelError")
    monkeypatch.setattr("ptaskmodel.kernel_cache.kernel_directory", lambda: tmp_path)
    told = []
    kernel_sets.compile_sets(["nothing"], told.append)
    assert {(stand.running, stand.done) for stand in told} <= {
        (("nothing",), ()),
        ((), ("nothing",)),
    }
    assert told[-1].done == ("nothing",)
    assert told[-1].total == 1


def test_without_a_place_nothing_is_compiled_ahead(monkeypatch):
    monkeypatch.setattr("ptaskmodel.kernel_cache.kernel_directory", lambda: None)
    monkeypatch.setattr("subprocess.Popen", lambda *_, **__: os.abort())
    kernel_sets.compile_sets()


@compiled
@pytest.mark.parametrize("program", ["frozen", "worker"])
def test_programs_that_are_no_interpreter_start_no_copies_of_themselves(
    monkeypatch, tmp_path, program
):
    monkeypatch.setitem(kernel_sets.SETS, "nothing", "ptaskmodel.errors:PTaskModelError")
    monkeypatch.setattr("ptaskmodel.kernel_cache.kernel_directory", lambda: tmp_path)
    monkeypatch.setattr("subprocess.Popen", lambda *_, **__: os.abort())
    if program == "frozen":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    else:
        monkeypatch.setenv(kernel_sets.WORKER, "1")
    kernel_sets.compile_sets(["nothing"])


@compiled
def test_where_no_process_can_be_started_nothing_is_compiled_ahead(monkeypatch, tmp_path):
    monkeypatch.setitem(kernel_sets.SETS, "nothing", "ptaskmodel.errors:PTaskModelError")
    monkeypatch.setattr("ptaskmodel.kernel_cache.kernel_directory", lambda: tmp_path)
    monkeypatch.setattr("sys.executable", str(tmp_path / "no python"))
    kernel_sets.compile_sets(["nothing"])
    assert kernel_sets.missing(["nothing"])


ONE_CLUSTER = """<platform version="4.1"><zone id="z" routing="Full">
<cluster id="c" prefix="c" suffix="" radical="0-3" speed="1Gf" bw="1GBps" lat="0s"/>
</zone></platform>"""


@pytest.fixture
def asked(monkeypatch):
    """The sets that were to be compiled, by simulations that find no kernel kept."""
    told = []
    monkeypatch.setattr("ptaskmodel.kernel_cache.is_kept", lambda _: False)
    monkeypatch.setattr(kernel_sets, "compile_sets", lambda sets: told.append(tuple(sets)))
    jit.ask_anew()
    return told


def _run(folder, task, **options):
    (folder / "p.xml").write_text(ONE_CLUSTER)
    simulation = Simulation(load_platform(folder / "p.xml"), **options)
    simulation.add(task)
    simulation.run()


@compiled
def test_a_first_simulation_has_the_sets_that_it_needs_compiled_at_once(asked, tmp_path):
    for _ in range(2):
        _run(tmp_path, ParallelTask(["c0", "c1"], 1e9, flows=[(0, 1, 1e9)]))
    assert asked == [kernel_sets.SIMULATION]


@compiled
@pytest.mark.parametrize(
    ("options", "sets"),
    [
        ({"solver": "fairbottleneck"}, ("tasks", "other rules", "laying")),
        ({"network_model": "CM02"}, ("tasks", "max-min", "laying", "routes")),
    ],
)
def test_solvers_and_network_models_have_sets_of_their_own(asked, tmp_path, options, sets):
    _run(tmp_path, Flow("c0", "c1", 1e6), **options)
    assert asked == [sets]


@compiled
def test_processes_that_compute_for_another_compile_nothing_ahead(asked, tmp_path, monkeypatch):
    monkeypatch.setattr("multiprocessing.parent_process", object)
    _run(tmp_path, Flow("c0", "c1", 1e6))
    assert asked == []
