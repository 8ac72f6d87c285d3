"""How sure a prediction is: durations of tasks over draws of routes and of small delays of starts.

What switches hash is not known, nor when exactly flows start. So tasks are simulated several times,
each time with another seed of `Ecmp` (if flows choose their routes) and with starts moved by a
random part of a jitter. What a level gets wrong even with the true routes widens the range: its
residuals on named cases (``residuals.json``), by size and by how much others slow a flow down. A
part of them, found by leaving out one case at a time, is added to the draws, which hold the rest:
both the level and the draws know how much a start matters.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel import interrupts
from ptaskmodel.packets.tasks import PacketSimulation
from ptaskmodel.platform.routing import Ecmp, Routing
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.tasks import Task

FloatArray = NDArray[np.float64]
# The part of durations that a range holds: from the first of these quantiles to the second.
QUANTILES = (0.1, 0.9)


class Range(NamedTuple):
    """How long a task lasts, s: the median of the draws, their range, and the widened one."""

    median_s: float
    drawn_low_s: float
    drawn_high_s: float
    low_s: float
    high_s: float


class Draws(NamedTuple):
    """What is drawn: ``n`` times a seed of routes (from ``seed`` on) and starts within a jitter.

    routing: of flows if their routes are not drawn; None: seeds of `Ecmp`.
    """

    n: int
    jitter_s: float
    seed: int
    routing: Routing | None


def drawn(
    like: Simulation,
    tasks: Sequence[Task],
    by_packets: bool,
    draws: Draws,
    tell: Callable[[int], None] = lambda _: None,
) -> FloatArray:
    """Execution times, shape (draws, tasks), s; nan for a task that did not end.

    like: a simulation of the same platform, model and solver. tasks: what is simulated. by_packets:
    else fluid. tell: hears how many draws are done. Raises as `Simulation` and `PacketSimulation`.
    """
    found = np.empty((draws.n, len(tasks)))
    for k in range(draws.n):
        later = np.random.default_rng(draws.seed + k).uniform(0.0, draws.jitter_s, len(tasks))
        moved = [
            task if task.after else replace(task, start_s=task.start_s + delay)
            for task, delay in zip(tasks, later.tolist(), strict=True)
        ]
        routing = Ecmp(draws.seed + k) if draws.routing is None else draws.routing
        found[k] = _durations(like, moved, by_packets, routing)
        tell(k + 1)
    return found


def alone(
    like: Simulation, tasks: Sequence[Task], by_packets: bool, routing: Routing
) -> FloatArray:
    """The execution time of each task with no other, s: one after the other.

    like, tasks, by_packets: as `drawn` takes them. routing: of flows.
    """
    ids = [str(k) if task.id is None else task.id for k, task in enumerate(tasks)]
    before = [(), *((name,) for name in ids)]
    chain = [
        replace(task, id=name, start_s=0.0, after=after)
        for task, name, after in zip(tasks, ids, before, strict=False)
    ]
    return _durations(like, chain, by_packets, routing)


def _durations(
    like: Simulation, tasks: Sequence[Task], by_packets: bool, routing: Routing
) -> FloatArray:
    simulation = Simulation(
        like.platform,
        solver=like.solver,
        network_model=like.network_model,
        count=like.count,
        routing=routing,
    )
    simulation.add_all(tasks)
    runner = PacketSimulation(simulation) if by_packets else simulation
    runner.run()
    interrupts.check()
    records = runner.records()
    return np.array([np.nan if r.execution_s is None else r.execution_s for r in records])


class Residuals(NamedTuple):
    """Quantiles of log(true / predicted) duration with the true routes, by size and slowdown.

    sizes_B, slowdowns: bounds of the classes. quantiles: shape (sizes, slowdowns, levels). part:
    of them, what is added to draws. cases: where they are from.
    """

    sizes_B: tuple[float, ...]
    slowdowns: tuple[float, ...]
    quantiles: FloatArray
    part: float
    cases: tuple[str, ...]

    def of(self, size_B: FloatArray, slowdown: FloatArray) -> FloatArray:
        """What is added to the logarithms of the draws of tasks of ``size_B`` and ``slowdown``."""
        sizes = np.searchsorted(self.sizes_B, size_B, side="right")
        slowdowns = np.searchsorted(self.slowdowns, slowdown, side="right")
        found: FloatArray = self.part * self.quantiles[sizes, slowdowns]
        return found


@functools.cache
def _known() -> dict[str, Any]:
    text = resources.files("ptaskmodel.runs").joinpath("residuals.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def residuals_of(model: str, by_packets: bool) -> Residuals | None:
    """The residuals of a network ``model``; by_packets: else fluid. None: none are known."""
    document = _known()
    found = document["models"].get(f"{model} {'packets' if by_packets else 'fluid'}")
    if found is None:
        return None
    return Residuals(
        tuple(document["sizes_B"]),
        tuple(document["slowdowns"]),
        np.array(found["log_quantiles"]),
        float(found["part"]),
        tuple(found["cases"]),
    )


def ranges(
    durations: FloatArray, alone_s: FloatArray, size_B: FloatArray, residuals: Residuals | None
) -> list[Range]:
    """The range of each task; nan where it ended in no draw.

    durations: as `drawn` gives them. alone_s: as `alone` does. size_B: of each task. residuals:
    None: ranges are those of the draws.
    """
    found = []
    for k in range(durations.shape[1]):
        own = durations[~np.isnan(durations[:, k]), k]
        if not len(own):
            found.append(Range(*[np.nan] * 5))
            continue
        median = float(np.median(own))
        low_s, high_s = wide = np.quantile(own, QUANTILES).tolist()
        if residuals is not None and size_B[k] > 0.0 and median > 0.0:
            slowdown = np.array([median / alone_s[k]])
            added = residuals.of(size_B[k : k + 1], slowdown)[0]
            wide = np.quantile(own[:, None] * np.exp(added)[None, :], QUANTILES).tolist()
        found.append(Range(median, low_s, high_s, *wide))
    return found


class TaskRanges(NamedTuple):
    """The range of each task and its draws, shape (draws, tasks), s; facts: of the summary."""

    ranges: list[Range]
    durations: FloatArray
    facts: dict[str, Any]


def task_ranges(
    simulation: Simulation,
    by_packets: bool,
    n: int,
    jitter_s: float,
    tell: Callable[[int], None] = lambda _: None,
) -> TaskRanges:
    """Ranges of the tasks of a simulation, by ``n`` draws.

    simulation: has the platform, the tasks and the model, and is left as it is; routes that it was
    given in a file stay, others are drawn. by_packets: else fluid. jitter_s: of starts. tell: hears
    how many are done. Raises as `drawn`, and Interrupted after a signal.
    """
    tasks = [ref.task for ref in simulation.tasks()]
    own = simulation.routing
    is_drawn = own is None or isinstance(own, Ecmp)
    seed = own.seed if isinstance(own, Ecmp) else 0
    draws = Draws(n, jitter_s, seed, None if is_drawn else own)
    durations = drawn(simulation, tasks, by_packets, draws, tell)
    residuals = residuals_of(simulation.network_model.name, by_packets)
    alone_s = alone(simulation, tasks, by_packets, own or Ecmp(seed))
    sizes = np.array([_bytes(task) for task in tasks])
    facts = {
        "n": n,
        "jitter_s": jitter_s,
        "routes": f"ecmp:{seed} to ecmp:{seed + n - 1}" if is_drawn else str(own),
        "part": round(QUANTILES[1] - QUANTILES[0], 3),
        "residuals": [] if residuals is None else list(residuals.cases),
    }
    return TaskRanges(ranges(durations, alone_s, sizes, residuals), durations, facts)


def _bytes(task: Task) -> float:
    """What a task sends, bytes; 0 for a delay."""
    if task.work.duration_s is not None:
        return 0.0
    ranks = len(task.hosts)
    return task.work.summed(
        lambda work: (
            work.demand(ranks).pair_bytes * ranks * (ranks - 1)
            + float(work.demand(ranks).flow_bytes.sum())
        )
    )
