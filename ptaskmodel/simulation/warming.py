"""Compiles every kernel that a simulation may need, by running small simulations."""

from __future__ import annotations

import subprocess
import sys

import numba
from numba import typeof, types

from ptaskmodel.core.levels import follow_levels
from ptaskmodel.core.loop import go_on
from ptaskmodel.core.patterns.placement import Placement
from ptaskmodel.core.solving import apply_rates, is_alone, solve_alone
from ptaskmodel.core.state import ELEMENT, PATTERN
from ptaskmodel.core.store import records
from ptaskmodel.core.sub_system import find_sub_system, lay_sub_system
from ptaskmodel.kernel_cache import cache_directory, cached, mark_cached
from ptaskmodel.platform import Dragonfly, FatTree, Platform, Torus
from ptaskmodel.platform.topologies.topology import Topology
from ptaskmodel.sharing.arrays import Answer, Settings, System
from ptaskmodel.sharing.bmf_hard import bmf_hard
from ptaskmodel.sharing.problem import SharingProblem
from ptaskmodel.sharing.rules import RULES
from ptaskmodel.sharing.solvers import kernel
from ptaskmodel.simulation.life import begin_ready
from ptaskmodel.simulation.loop import process
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.formats.json_numbers import cut_numbers
from ptaskmodel.workload.tasks import Delay, Flow, ParallelTask, Sequence, Task
from ptaskmodel.workload.works import HomogeneousWork, ParallelWork

EXCHANGE = HomogeneousWork(1e9, 1e6)

# What every solver's kernel is given: system, settings, answer, scratch.
SMALL = SharingProblem.from_dense([[2.0, 1.0], [1.0, 2.0]], [1.0, 1.0])
SIGNATURE = (
    typeof(System.of(SMALL)),
    typeof(Settings()),
    typeof(Answer.room(SMALL)),
    types.float64[::1],
    types.int64[::1],
)

# What a second process compiles; the line says that the event loop can be compiled with them.
HELPER = """
from ptaskmodel.simulation import warming
warming.compile_solvers("bmf", "fairbottleneck")
print("solvers", flush=True)
warming.compile_laying()
"""


def compile_kernels(everything: bool) -> None:
    """Run small simulations, then note that what these need is compiled.

    Compiling takes one core: where kernels are kept, a second process compiles half of them.
    everything: also use the kernels that few simulations need.
    """
    platform = _platform()
    jit = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
    if jit and not cached() and cache_directory() is not None and sys.executable:
        with subprocess.Popen(
            [sys.executable, "-c", HELPER],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as helper:
            _compile_parts(platform)
            compile_solvers("maxmin")
            assert helper.stdout is not None
            helper.stdout.readline()
            Simulation(platform).run()
    _simulate(platform)
    mark_cached()
    if everything:
        _change(platform)
        _solve_hard()
        cut_numbers("[]", ())


def _platform() -> Platform:
    """One zone of each kind whose routes are computed by compiled code, and two of one kind."""
    build = Platform.build("world")
    clusters: dict[str, int | Topology] = {
        "c": 4,
        "m": 4,
        "t": Torus((2, 2)),
        "f": FatTree((2, 2), (1, 2), (1, 1)),
        "d": Dragonfly((2, 1), (2, 1), (2, 1), 1),
    }
    for name, hosts in clusters.items():
        build.cluster(name, hosts, prefix=name, speed=1e9, bandwidth=1e9, latency=1e-6)
    build.link("between", 1e9, 1e-6)
    build.zone_route("c", "m", ("c0", "m0"), ["between"])
    return build.finish()


def compile_solvers(*rules: str) -> None:
    """Compile the kernels of rules for the arguments that `solving.solve` gives them."""
    for rule in rules:
        kernel(RULES[rule]).compile(SIGNATURE)


def compile_laying() -> None:
    """Compile what lays out tasks, by laying out each kind of work."""
    platform = _platform()
    router = Simulation(platform).core.router
    flow = ParallelTask(["c0", "c1"], 1.0, flows=[(0, 1, 1.0)]).work
    assert isinstance(flow, ParallelWork)
    patterns, elements = records(1, PATTERN), records(64, ELEMENT)
    placement = Placement.of([(0, 1)], router.clusters)
    shape = router.shape(EXCHANGE, (0, 1), None)[0]
    router.route_together(placement, [shape], patterns, [0], elements, 0)
    other = platform.host("m0").index
    for work, hosts in (
        (EXCHANGE, [0, 1]),
        (EXCHANGE, [0, 1, other, other + 1]),
        (flow, [0, 1]),
        (flow, [0, other]),
    ):
        router.route(router.shape(work, tuple(hosts), None)[0])


def _compile_parts(platform: Platform) -> None:
    """Compile the parts of the event loop that need no solver."""
    simulation = Simulation(platform)
    state, options = typeof(simulation.core.state), typeof(simulation.core.options)
    tasks = typeof(simulation._intake.arrays)
    number, flag = types.int64, types.boolean
    for part, arguments in (
        (begin_ready, (tasks, options)),
        (process, (tasks, options)),
        (go_on, (options,)),
        (solve_alone, (number,)),
        (is_alone, (number,)),
        (apply_rates, (number, flag)),
        (follow_levels, ()),
        (find_sub_system, (flag,)),
        (lay_sub_system, (number,)),
    ):
        part.compile((state, *arguments))


def _simulate(platform: Platform) -> None:
    """Parallel tasks of every kind, then flows."""
    simulation = Simulation(platform)
    tasks: list[Task] = [
        Task(tuple(f"{prefix}{k}" for k in range(4)), EXCHANGE, start_s=0.1) for prefix in "ctfd"
    ]
    tasks += [
        ParallelTask(["c0", "c1"], 1e9, flows=[(0, 1, 1e9)], walltime_s=50, id="first"),
        ParallelTask(["c1", "c0"], 1e9, flows=[(0, 1, 1e9)], weight=2.0),
        Delay(1.0, after=["first"]),
        Sequence(["c2", "c3"], [EXCHANGE, EXCHANGE], repeat=2),
    ]
    simulation.add_all(tasks)
    simulation.run()
    simulation = Simulation(platform, network_model="LV08")
    simulation.add_all([Flow("c0", "c1", 1e6), Flow("c1", "c0", 1e6)])
    simulation.run()


def _change(platform: Platform) -> None:
    """What can be asked for between two runs."""
    simulation = Simulation(platform)
    task = simulation.add(ParallelTask(["c0", "c1"], 1e9, flows=[(0, 1, 1e9)]))
    simulation.next_event_time()
    simulation.set_speed("c0", 0.5)
    simulation.set_latency(platform.links[0].name, 1e-3)
    simulation.cancel(task)
    simulation.run()


def _solve_hard() -> None:
    """The first of the slow rungs of bmf, with which it solves what its kernel does not."""
    bmf_hard(SMALL)
