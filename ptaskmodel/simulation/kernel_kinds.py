"""Call the kernels of simulations with all kinds of arguments, to compile them ahead."""

from __future__ import annotations

import numpy as np

from ptaskmodel.csv_tables import lines
from ptaskmodel.engine.activity import STOP, change, refresh_routed, start_now
from ptaskmodel.engine.loop import advance, upcoming
from ptaskmodel.engine.state import PATTERN
from ptaskmodel.engine.usage.placement import Placement, places_of
from ptaskmodel.kernels.records import records
from ptaskmodel.mpi.applications import Applications
from ptaskmodel.mpi.protocol import protocol_of
from ptaskmodel.platform import Dragonfly, FatTree, Platform, Torus
from ptaskmodel.platform.topologies.topology import Topology
from ptaskmodel.sharing.arrays import solve
from ptaskmodel.sharing.problem import SharingProblem
from ptaskmodel.sharing.rules import RULES
from ptaskmodel.sharing.state import ELEMENT
from ptaskmodel.simulation.beside import run as run_beside
from ptaskmodel.simulation.life import finish, run
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.formats.json import cut_numbers
from ptaskmodel.workload.formats.log_lines import parsed
from ptaskmodel.workload.tasks import ParallelTask
from ptaskmodel.workload.works import HomogeneousWork, ParallelWork

EXCHANGE = HomogeneousWork(1e9, 1e6)


def prepare_kernels() -> None:
    """All of them."""
    prepare_loop()
    prepare_ranks()
    prepare_laying()
    prepare_routes()
    prepare_changes()
    prepare_front_ends()
    prepare_sharing()
    prepare_files()


def prepare_loop() -> None:
    """The loop of tasks, with all that it may do."""
    simulation = Simulation(_platform())
    run.prepare(simulation.core.state, simulation._intake.arrays, simulation.core.options)


def prepare_ranks() -> None:
    """The loop of tasks some of which replay traces."""
    core = (simulation := Simulation(_platform())).core
    ranks = Applications(core, protocol_of(core.model.name, {})).state
    run_beside.prepare(core.state, simulation._intake.arrays, ranks, core.options)


def prepare_laying() -> None:
    """What lays out tasks inside a cluster."""
    router = Simulation(_platform()).core.router
    patterns, elements = records(1, PATTERN), records(64, ELEMENT)
    placement = Placement.of([places_of((0, 1))], router.clusters)
    shape = router.shape(EXCHANGE, (0, 1), None)[0]
    router.route_together(placement, [shape], patterns, np.zeros(1, dtype=np.int64), elements, 0)


def prepare_routes() -> None:
    """What lays out other tasks, for each kind of work, and flows."""
    platform = _platform()
    router = Simulation(platform).core.router
    flow = ParallelTask(["c0", "c1"], 1.0, flows=[(0, 1, 1.0)]).work
    assert isinstance(flow, ParallelWork)
    other = platform.host("m0").index
    for work, hosts in (
        (EXCHANGE, [0, 1]),
        (EXCHANGE, [0, 1, other, other + 1]),
        (flow, [0, 1]),
        (flow, [0, other]),
    ):
        router.route(router.shape(work, tuple(hosts), None)[0])
    for model in ("L07", "LV08", "ROCE"):
        core = Simulation(platform, network_model=model).core
        core.route(core.find_flows(np.array([0, 0]), np.array([1, other])).tolist())


def prepare_changes() -> None:
    """What can be asked for between two runs."""
    simulation = Simulation(_platform())
    state, options = simulation.core.state, simulation.core.options
    upcoming.prepare(state)
    change.prepare(state, STOP, 0, 0.0, options)
    refresh_routed.prepare(state, 0, options)
    finish.prepare(state, simulation._intake.arrays, 0, 0)


def prepare_front_ends() -> None:
    """What runs activities from Python."""
    core = Simulation(_platform()).core
    start_now.prepare(core.state, 0, 1.0, 1.0, 1.0, 1.0, 0, core.options)
    advance.prepare(core.state, core.options)


def prepare_sharing() -> None:
    """The rules of sharing on problems of their own."""
    problem = SharingProblem.from_dense([[2.0, 1.0], [1.0, 2.0]], [1.0, 1.0])
    for rule in RULES:
        solve(problem, rule)


def prepare_files() -> None:
    """What reads long arrays of numbers and logs, and writes tables."""
    cut_numbers(b"[]", ())
    parsed(b"1", 1, 1.0, large=0)
    lines(np.zeros(1))


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
