"""Make ptaskmodel/runs/residuals.json: what a level gets wrong with the true routes, and its part.

    python experiments/wires/residuals.py CASES ... [-o FILE]

CASES are as of judge.py; those count in which flows have several shortest paths and the true routes
are known, and reads on an RDMA testbed, whose routes are no question. The part of the residuals
that is added to draws is the least, in steps of 0.05, at which ranges of 80 % hold 80 % of the true
durations of a case whose residuals are left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from judge import FLUID, PACKETS, Case, cases_in

from ptaskmodel.engine.usage.network_models import NetworkModel, read_wire
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.platform import load_platform
from ptaskmodel.platform.routing import Ecmp, Routing, read_routes
from ptaskmodel.runs.draws import QUANTILES, Draws, Residuals, alone, drawn, ranges
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.formats.tasks_json import load_tasks

HERE = Path(__file__).resolve().parent
FILE = HERE.parents[1] / "ptaskmodel" / "runs" / "residuals.json"
SIZES_B = (5e4, 2e5, 1e6)
SLOWDOWNS = (1.1, 1.5, 2.5)
LEVELS = np.linspace(0.05, 0.95, 10)
# A class with fewer flows takes those of its slowdown, and then all.
FEWEST = 10
DRAWS = 20
TESTBED = "RDMA"
JITTER_S = 1e-6


class Seen(NamedTuple):
    """A case with its draws: durations by the true routes and alone, and what is true, s."""

    name: str
    true_s: np.ndarray
    given_s: np.ndarray
    alone_s: np.ndarray
    size_B: np.ndarray
    draws_s: np.ndarray


def counts(case: Case) -> bool:
    """Whether the true routes of a case are known, or there is one only."""
    return case.kind == TESTBED or (case.place / "routes.csv").exists()


def seen(case: Case, by_packets: bool) -> Seen | None:
    """Simulate a case with its true routes, alone, and with drawn routes; None: one path each.

    Only the flows that are judged are kept.
    """
    platform = load_platform(case.place / "platform.xml")
    tasks = load_tasks(case.place / "tasks.json")
    wire = read_wire(case.place / "wire.json")
    like = Simulation(platform, network_model=NetworkModel.of_wire(wire))
    fabric = platform.fabric
    routes: Routing = Ecmp()
    if case.kind != TESTBED:
        ends = {tuple(fabric.node[platform.host(name).index] for name in t.hosts) for t in tasks}
        if all(fabric.equal_paths(*pair)[0] == 1 for pair in ends):
            return None
        routes = read_routes(case.place / "routes.csv")
    ids = [str(task.id) for task in tasks]
    judged = np.array([name in case.measured_s for name in ids])
    own = [name for name in ids if name in case.measured_s]
    return Seen(
        case.place.name,
        np.array([case.measured_s[name] for name in own]),
        drawn(like, tasks, by_packets, Draws(1, 0.0, 0, routes))[0][judged],
        alone(like, tasks, by_packets, routes)[judged],
        np.array([case.size_B[name] for name in own]),
        drawn(like, tasks, by_packets, Draws(DRAWS, JITTER_S, 0, None))[:, judged],
    )


def log_quantiles(cases: Sequence[Seen]) -> np.ndarray:
    """Quantiles of log(true / predicted), by class of size and of slowdown."""
    logs = np.concatenate([np.log(each.true_s / each.given_s) for each in cases])
    size = np.concatenate([np.searchsorted(SIZES_B, each.size_B, side="right") for each in cases])
    slow = np.concatenate(
        [np.searchsorted(SLOWDOWNS, each.given_s / each.alone_s, side="right") for each in cases]
    )
    found = np.empty((len(SIZES_B) + 1, len(SLOWDOWNS) + 1, len(LEVELS)))
    for i in range(len(SIZES_B) + 1):
        for j in range(len(SLOWDOWNS) + 1):
            own = next(
                some
                for some in (logs[(size == i) & (slow == j)], logs[slow == j], logs)
                if len(some) >= FEWEST
            )
            found[i, j] = np.quantile(own, LEVELS)
    return found


def held(case: Seen, residuals: Residuals) -> np.ndarray:
    """Whether the range of each flow of a case holds its true duration."""
    found = ranges(case.draws_s, case.alone_s, case.size_B, residuals)
    return np.array(
        [one.low_s <= true <= one.high_s for one, true in zip(found, case.true_s, strict=True)]
    )


def fitted(cases: list[Seen]) -> dict[str, Any]:
    """The residuals of cases, and the part of them that is added."""
    names = tuple(each.name for each in cases)
    others = [log_quantiles([one for one in cases if one is not each]) for each in cases]
    for part in np.arange(0.0, 2.05, 0.05).tolist():
        made = [Residuals(SIZES_B, SLOWDOWNS, each, part, names) for each in others]
        own = [held(case, each) for case, each in zip(cases, made, strict=True)]
        share = float(np.mean(np.concatenate(own)))
        print(f"  part {part:.2f}: {share:.3f} of {sum(map(len, own))} flows")
        if share >= QUANTILES[1] - QUANTILES[0]:
            break
    quantiles = np.round(log_quantiles(cases), 4).tolist()
    return {"cases": names, "part": round(part, 2), "log_quantiles": quantiles}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=FILE)
    given = parser.parse_args()
    cases = [case for case in cases_in(given.cases) if counts(case)]
    models = {}
    for level in (FLUID, PACKETS):
        by_packets = level is PACKETS
        for kind in ("DCTCP", "ROCE") if by_packets else ("DCTCP", "ROCE", TESTBED):
            name = f"{kind} {'packets' if by_packets else 'fluid'}"
            print(name)
            found = []
            for case in cases:
                if case.kind == kind:
                    try:
                        found.append(seen(case, by_packets))
                    except PTaskModelError as error:
                        print(f"  {case.place.name}: left out: {error}")
            models[name] = fitted([each for each in found if each is not None])
    levels = [round(level, 3) for level in LEVELS.tolist()]
    document = {"sizes_B": SIZES_B, "slowdowns": SLOWDOWNS, "levels": levels, "models": models}
    given.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
