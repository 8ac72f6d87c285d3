"""Compiles every kernel that a simulation may need, by running small simulations."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numba

from ptaskmodel.engine import kernels
from ptaskmodel.engine.sharing_graph import find_sub_system, lay_sub_system
from ptaskmodel.engine.simulation import Simulation
from ptaskmodel.engine.store import new_state
from ptaskmodel.jit import cache_directory, mark_cached
from ptaskmodel.platform import Platform, load_platform
from ptaskmodel.workload.tasks import Delay, Flow, HomogeneousWork, ParallelTask, Sequence, Task

# One zone of each kind whose routes are computed by compiled code.
PLATFORM = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="world" routing="Full">
    <cluster id="flat" prefix="c" suffix="" radical="0-3" speed="1Gf" bw="1GBps" lat="1us"/>
    <cluster id="torus" prefix="t" suffix="" radical="0-3" speed="1Gf" bw="1GBps" lat="1us"
             topology="TORUS" topo_parameters="2,2"/>
    <cluster id="tree" prefix="f" suffix="" radical="0-3" speed="1Gf" bw="1GBps" lat="1us"
             topology="FAT_TREE" topo_parameters="2;2,2;1,2;1,1"/>
    <cluster id="fly" prefix="d" suffix="" radical="0-7" speed="1Gf" bw="1GBps" lat="1us"
             topology="DRAGONFLY" topo_parameters="2,1;2,1;2,1;1"/>
  </zone>
</platform>
"""


# What a second process runs while this one compiles the rest.
SOLVERS = "from ptaskmodel.engine.warming import compile_solvers; compile_solvers()"


def compile_kernels() -> None:
    """Run small simulations that use every kernel, then note that all are compiled.

    Compiling takes one core: where kernels are kept, a second process compiles the solvers.
    """
    helper = None
    if cache_directory() is not None and sys.executable and not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        helper = subprocess.Popen(
            [sys.executable, "-c", SOLVERS],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    platform = _platform()
    if helper is not None:
        _compile_parts(platform)
        helper.wait()
    _parallel_tasks(platform)
    _flows(platform)
    mark_cached()


def _platform() -> Platform:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "platform.xml"
        path.write_text(PLATFORM)
        return load_platform(path)


def compile_solvers() -> None:
    """Compile the solvers, by solving an empty system."""
    state = new_state(_platform())
    lay_sub_system(state, 0)
    kernels.solve(state, 0, 0, kernels.BMF)


def _compile_parts(platform: Platform) -> None:
    """Compile what the event loop calls besides the solvers, on a state where nothing happens."""
    simulation = Simulation(platform)
    state, options = simulation._s, simulation._options
    find_sub_system(state, True)
    kernels.begin_ready(state, options.gamma)
    kernels.apply_profiles(state, 0.0, options)
    kernels.process(state, 0.0, options)


def _parallel_tasks(platform: Platform) -> None:
    simulation = Simulation(platform)
    exchange = HomogeneousWork(1e9, 1e6)
    tasks = [
        simulation.add(Task(tuple(f"{prefix}{k}" for k in range(4)), exchange, start_s=0.1))
        for prefix in "ctfd"
    ]
    first = simulation.add(ParallelTask(["c0", "c1"], 1e9, flows=[(0, 1, 1e9)], walltime_s=50))
    simulation.add(ParallelTask(["c1", "c0"], 1e9, flows=[(0, 1, 1e9)], weight=2.0))
    simulation.add(Delay(1.0, after=[first.id]))
    simulation.add(Sequence(["c2", "c3"], [exchange, exchange], repeat=2))
    simulation.advance_to(0.2)
    simulation.suspend(first)
    simulation.resume(first)
    simulation.set_speed("c0", 0.5)
    simulation.set_bandwidth(platform.links[0].name, 1e8)
    simulation.fail("t3")
    simulation.restore("t3")
    simulation.cancel(tasks[2])
    simulation.next_event_time()
    simulation.step()
    simulation.run_until_change()
    simulation.run()


def _flows(platform: Platform) -> None:
    simulation = Simulation(platform, network_model="LV08")
    simulation.add(Flow("c0", "c1", 1e6))
    simulation.add(Flow("c1", "c0", 1e6))
    simulation.run()
