"""One run of the null test on real jobs: what one source says of all jobs side by side on Graphene.

A source is what was measured, or a model of it. The jobs: runs of NAS benchmarks that were
published with the evaluation of Batsim (23,993 of them; its README says where), a table with the
columns experiment, benchmark, class, processes, start_s, stop_s and graphene_nodes; or some that
are drawn, whose time the others do not change.
"""

from __future__ import annotations

import heapq
import itertools
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas

import ptaskmodel as pm
from ptaskmodel.platform import load_platform
from ptaskmodel.workload.ptask_rule import trace_of_work
from ptaskmodel.workload.works import HomogeneousWork, SequenceWork

GRAPHENE = Path(__file__).resolve().parents[2] / "platforms" / "graphene.xml"
CARD_BPS = 125e6
SPEED = 16.673e9
HOSTS = 32  # that each experiment had
# Dates are whole seconds: shorter runs say little.
LEAST_S = 60.0
FEWEST = 50
KIND = ["benchmark", "class", "processes"]
# What all processes together hand to each other in an all-to-all, bytes, and how often.
EXCHANGED = {
    ("ft", "B"): (512 * 256 * 256 * 16, 20),
    ("ft", "C"): (512**3 * 16, 20),
    ("is", "B"): (2**25 * 4, 10),
    ("is", "C"): (2**27 * 4, 10),
}
ROUNDS = 5  # of the simulated jobs: so many computations and exchanges in turn
# Drawn jobs: benchmark, class and processes of each kind, its usual time, s; how many a day, days.
DRAWN = (("ft", "B", 4, 70.0), ("lu", "B", 8, 90.0), ("lu", "B", 1, 60.0))
A_DAY, DAYS = 150, 8
# Hours are busy and quiet in turn: nodes rest so long between jobs, s.
RESTS_S = (0.0, 300.0)
DRAWS = 1000
GROUPS = {
    "one node (control)": lambda runs: runs.processes == 1,
    "lu, 2 nodes or more": lambda runs: (runs.processes > 1) & (runs.benchmark == "lu"),
    "ft, 2 nodes or more": lambda runs: (runs.processes > 1) & (runs.benchmark == "ft"),
}


def drawn(seed: int) -> pandas.DataFrame:
    """Runs like the published ones, one after the other on the nodes that are free first."""
    rng = np.random.default_rng(seed)
    rows = []
    for day in range(DAYS):
        free = [(86400 * day, node) for node in range(1, HOSTS + 1)]
        heapq.heapify(free)
        for _ in range(A_DAY):
            benchmark, size, count, usual_s = DRAWN[rng.integers(len(DRAWN))]
            own = [heapq.heappop(free) for _ in range(count)]
            free_at = max(date for date, _ in own)
            rest_s = RESTS_S[free_at // 3600 % len(RESTS_S)]
            start = free_at + 1 + round(rng.exponential(rest_s))
            stop = start + round(usual_s * float(np.exp(rng.normal(0.0, 0.02))))
            nodes = sorted(node for _, node in own)
            for node in nodes:
                heapq.heappush(free, (stop, node))
            rows.append((f"day {day}", benchmark, size, count, start, stop,
                         " ".join(map(str, nodes))))  # fmt: skip
    columns = ["experiment", *KIND, "start_s", "stop_s", "graphene_nodes"]
    return pandas.DataFrame(rows, columns=columns)


def read(path: Path) -> pandas.DataFrame:
    """The runs of a table; see `described`."""
    return described(pandas.read_csv(path))


def described(runs: pandas.DataFrame) -> pandas.DataFrame:
    """The runs, with their nodes, times, machine and day, and how much company each had."""
    runs["nodes"] = [tuple(map(int, str(text).split())) for text in runs["graphene_nodes"]]
    runs["time_s"] = (runs["stop_s"] - runs["start_s"]).astype(float)
    first = [nodes[0] <= 39 for nodes in runs["nodes"]]
    runs["machine"] = np.where(first, "cabinet 1", "cabinet 4")
    runs["day"] = runs["machine"] + (runs["start_s"] // 86400).astype(str)
    runs["usual_s"] = runs.groupby(KIND)["time_s"].transform("median")
    runs["company"] = company(runs)
    return runs.reset_index(drop=True)


def company(runs: pandas.DataFrame) -> np.ndarray:
    """Of the other nodes, the part that ran parallel jobs meanwhile; a mean over the run."""
    found = np.zeros(len(runs))
    parallel = runs["processes"].where(runs["processes"] > 1, 0).to_numpy()
    for _, own in runs.groupby("experiment").indices.items():
        part = runs.iloc[own]
        starts, stops = part["start_s"].to_numpy(float), part["stop_s"].to_numpy(float)
        dates = np.concatenate([starts, stops])
        steps = np.concatenate([parallel[own], -parallel[own]])
        order = np.argsort(dates, kind="stable")
        dates, busy = dates[order], np.cumsum(steps[order])
        area = np.concatenate([[0.0], np.cumsum(busy[:-1] * np.diff(dates))])
        between = np.interp(stops, dates, area) - np.interp(starts, dates, area)
        others = between / np.maximum(stops - starts, 1.0) - parallel[own]
        found[own] = others / (HOSTS - part["processes"].to_numpy()).clip(min=1)
    return found


def effect(runs: pandas.DataFrame, times_s: np.ndarray, seed: int = 0) -> dict[str, float]:
    """How much longer runs take with all other nodes in parallel jobs than with none, %.

    Least squares of the logarithm of the time: each kind of job on each machine has its own time,
    each node its own factor (some are slower), and company has one. The interval holds 95 % of the
    values when days of a machine are drawn anew.
    """
    kinds = pandas.get_dummies(runs[KIND].astype(str).agg(" ".join, axis=1) + runs["machine"])
    every = sorted(set(itertools.chain.from_iterable(runs["nodes"])))
    nodes = np.zeros((len(runs), len(every)))
    for row, own in enumerate(runs["nodes"]):
        nodes[row, [every.index(node) for node in own]] = 1.0 / len(own)
    x = np.column_stack([runs["company"], kinds.to_numpy(float), nodes])
    y = np.log(times_s)
    days = [np.flatnonzero(runs["day"] == day) for day in sorted(set(runs["day"]))]
    squares = np.array([x[own].T @ x[own] for own in days])
    products = np.array([x[own].T @ y[own] for own in days])
    ridge = 1e-6 * np.eye(x.shape[1])

    def solved(weights: np.ndarray) -> np.ndarray:
        return np.linalg.solve(
            np.tensordot(weights, squares, 1) + ridge, np.tensordot(weights, products, 1)
        )

    best = solved(np.ones(len(days)))
    rng = np.random.default_rng(seed)
    draws = [
        solved(np.bincount(rng.integers(0, len(days), len(days)), minlength=len(days)))[0]
        for _ in range(DRAWS)
    ]
    low, high = np.quantile(draws, [0.025, 0.975])
    percent = 100 * np.expm1([best[0], low, high])
    rest = y - x @ best
    return {
        "runs": len(runs),
        "days": len(days),
        "effect": percent[0],
        "low": percent[1],
        "high": percent[2],
        "unexplained": 100 * float(rest.std()),
    }


def predicted_s(runs: pandas.DataFrame, switch_Gbps: float | None, place: Path) -> np.ndarray:
    """The times of all runs as parallel tasks that start when and where the real ones did.

    Each computes and exchanges in turn, alone as long as it really took; what it is slowed by the
    others makes its time, from the usual one of its kind. A node's next job waits for the last one,
    should that take longer than it did. switch_Gbps: what all
    nodes together may exchange; None: Graphene as it is described.
    """
    path = GRAPHENE if switch_Gbps is None else place / f"switch_{switch_Gbps:g}.xml"
    if switch_Gbps is not None:
        path.write_text(
            '<platform version="4.1"><cluster id="c" prefix="graphene-" suffix="" radical="1-144"'
            ' speed="16.673Gf" bw="125MBps" lat="24us" sharing_policy="SPLITDUPLEX"'
            f' bb_bw="{switch_Gbps / 8}GBps" bb_lat="0us"/></platform>'
        )
    found = np.zeros(len(runs))
    for _, own in runs.groupby("experiment").indices.items():
        sim = pm.Simulation(load_platform(path))
        first = runs["start_s"].iloc[own].min()
        tasks, last = [], {}
        for row in own[np.argsort(runs["start_s"].iloc[own].to_numpy(), kind="stable")]:
            run = runs.iloc[row]
            hosts = tuple(f"graphene-{node}" for node in run["nodes"])
            before = tuple({last[host] for host in hosts if host in last})
            last |= dict.fromkeys(hosts, str(row))
            tasks.append(
                pm.Task(
                    hosts, work_of(run), start_s=float(run["start_s"] - first), id=str(row),
                    after=before,
                )
            )  # fmt: skip
        refs = sim.add_all(tasks)
        sim.run()
        for ref in refs:
            run = runs.iloc[int(ref.id)]
            slowed = (ref.end_s - ref.start_s) / run["time_s"]
            found[int(ref.id)] = slowed * run["usual_s"]
    return found


def work_of(run: pandas.Series) -> SequenceWork:
    """Computations and exchanges in turn, alone as long as the run took."""
    volume, times = EXCHANGED.get((run["benchmark"], run["class"]), (0, 0))
    count = run["processes"]
    # Half of the time at most, where dates in whole seconds leave less than it takes.
    pair = volume * times / count**2 / ROUNDS if count > 1 else 0.0
    exchange_s = pair * (count - 1) / CARD_BPS
    if exchange_s > run["time_s"] / ROUNDS / 2:
        pair *= run["time_s"] / ROUNDS / 2 / exchange_s
        exchange_s = run["time_s"] / ROUNDS / 2
    compute_s = max(run["time_s"] / ROUNDS - exchange_s, 0.0)
    stages = [HomogeneousWork(compute_s * SPEED, 0.0)]
    if pair:
        stages.append(HomogeneousWork(0.0, pair))
    return SequenceWork(tuple(stages), ROUNDS)


def replayed_slowdown() -> float:
    """The largest slowdown of four FT-like MPI applications, replayed side by side on 32 nodes."""
    platform = load_platform(GRAPHENE)
    nodes = [f"graphene-{k}" for k in range(1, HOSTS + 1)]
    volume, _ = EXCHANGED["ft", "C"]
    stages = (HomogeneousWork(SPEED, 0.0), HomogeneousWork(0.0, volume / 64))
    trace = trace_of_work(SequenceWork(stages, 2), 8, "ft")
    ends = []
    for count in (1, 4):
        sim = pm.Simulation(platform)
        refs = [sim.add_replay(trace, nodes[k::4]) for k in range(count)]
        sim.run()
        ends.append(max(ref.end_s for ref in refs))
    return ends[1] / ends[0]


def told_of(runs: pandas.DataFrame) -> pandas.Series:
    """Which runs say something: long ones, of kinds that there are many of."""
    known = runs.groupby(KIND)["time_s"].transform("size") >= FEWEST
    return known & (runs["usual_s"] >= LEAST_S)


def runs_of(parameters: Mapping[str, Any]) -> pandas.DataFrame:
    """The jobs: of the table ``runs``, or drawn with the seed ``drawn``."""
    if "runs" in parameters:
        return read(Path(parameters["runs"]))
    return described(drawn(parameters["drawn"]))


def one_run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The effect of company on each group of jobs, as a source says; a replay says one slowdown.

    source: "measured", "Graphene", "switch of N Gbit/s" (what all nodes together may exchange), or
    "replays": four FT-like applications side by side.
    """
    source = parameters["source"]
    if source == "replays":
        return {"effect": 100 * (replayed_slowdown() - 1), "series": []}
    runs = runs_of(parameters)
    if source == "measured":
        times_s = runs["time_s"].to_numpy()
    else:
        switch_Gbps = None if source == "Graphene" else float(source.split()[2])
        with tempfile.TemporaryDirectory() as place:
            times_s = predicted_s(runs, switch_Gbps, Path(place))
    told, rows = told_of(runs), []
    for group, chosen in GROUPS.items():
        part = (told & chosen(runs)).to_numpy()
        rows.append({"source": source, "jobs": group} | effect(runs[part], times_s[part]))
    return {"effect": rows[-1]["effect"], "series": rows}
