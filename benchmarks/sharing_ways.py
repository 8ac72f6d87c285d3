"""What each optimisation of sharing earns, on tasks, flows, replays of ranks and days of batches.

    python benchmarks/sharing_ways.py [--repeat 3] [--only LOAD ...]

Processor time of a run with all optimisations, and how many times as long it takes without one of
`ptaskmodel.engine.resharing.OPTIMISATIONS`: the least of several, in turn in one process. Below 1
an optimisation costs. Ends must be the same to 1e-9 of themselves, or to ten times the residual at
which the rule stops.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import costs  # noqa: F401  (puts tests/ on the path)
import loads
import numpy as np
import ours
import replay_loads
from smpi import write_case

from ptaskmodel import Simulation
from ptaskmodel.engine import resharing
from ptaskmodel.mpi import read_trace, replay
from ptaskmodel.platform import load_platform
from ptaskmodel.platform.routing import Ecmp
from ptaskmodel.sharing.rules import RULES

TASKS = (
    "crossbar-all-to-all", "crossbar-ring", "backbone-all-to-all", "fat-tree-all-to-all",
    "fat-tree-ring", "all-to-all-256", "load-120", "batch-day-10000",
)  # fmt: skip
BY = ("bmf", "maxmin", "fairbottleneck")
# Flows, and the part of what hosts can send that they offer.
FLOWS = {"flows-500-load-0.4": (500, 0.4), "flows-1000-load-0.4": (1000, 0.4)}


class Run(NamedTuple):
    """A load under a rule: ``run`` returns the ends of its tasks or ranks, s."""

    title: str
    rule: str
    run: Callable[[], np.ndarray]


def of_tasks(name: str, rule: str) -> Run:
    """A load of tasks."""
    platform, tasks, _ = ours.made(name)

    def run() -> np.ndarray:
        simulation = Simulation(platform, solver=rule)
        simulation.add_all(tasks)
        simulation.run()
        return np.array([record.end_s for record in simulation.records()])

    return Run(name, rule, run)


def of_ranks(name: str) -> Run:
    """A replay, whose messages are flows."""
    load = replay_loads.LOADS[name]()
    hosts = [f"n{rank}" for rank in range(len(load.traces))]
    with tempfile.TemporaryDirectory() as there:
        place = Path(there)
        write_case(place, hosts, load.traces)
        (place / "platform.xml").write_text(load.platform_xml)
        platform, trace = load_platform(place / "platform.xml"), read_trace(place / "traces.txt")
    return Run(name, "flow-maxmin", lambda: replay(platform, trace, hosts).end_s)


def of_flows(name: str) -> Run:
    """Flows of DCTCP between hosts of a fat tree of 1,024, by ECMP."""
    platform, flows = loads.wire_flows(*FLOWS[name])

    def run() -> np.ndarray:
        simulation = Simulation(platform, network_model="DCTCP", routing=Ecmp(1))
        simulation.add_all(flows)
        simulation.run()
        return np.array([record.end_s for record in simulation.records()])

    return Run(name, "proportional", run)


def row(load: Run, repeat: int) -> str:
    """The row of the table for one load."""
    names = resharing.OPTIMISATIONS
    choices = {"all": names, **{name: tuple(set(names) - {name}) for name in names}}
    best_s = dict.fromkeys(choices, float("inf"))
    ends: dict[str, np.ndarray] = {}
    load.run()  # loads the kernels
    for _ in range(repeat):
        for choice, on in choices.items():
            resharing.OPTIMISATIONS = on
            began = time.process_time()
            ends[choice] = np.asarray(load.run())
            best_s[choice] = min(best_s[choice], time.process_time() - began)
    resharing.OPTIMISATIONS = names
    for choice in names:
        close = max(1e-9, 10.0 * RULES[load.rule].aim)
        np.testing.assert_allclose(ends[choice], ends["all"], rtol=close, err_msg=choice)
    earned = (f"{best_s[name] / best_s['all']:.2f}" for name in names)
    return f"| {load.title} | {load.rule} | {best_s['all'] * 1e3:.1f} | {' | '.join(earned)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="+", metavar="LOAD")
    options = parser.parse_args()
    print(f"| load | rule | ms | {' | '.join(resharing.OPTIMISATIONS)} |")
    print("|---|---|--:|" + len(resharing.OPTIMISATIONS) * "--:|", flush=True)
    for name in options.only or (*TASKS, *FLOWS, *replay_loads.LOADS):
        if name in FLOWS:
            print(row(of_flows(name), options.repeat), flush=True)
        elif name in loads.SCENARIOS:
            for rule in BY:
                print(row(of_tasks(name, rule), options.repeat), flush=True)
        else:
            print(row(of_ranks(name), options.repeat), flush=True)


if __name__ == "__main__":
    main()
