"""Delays, parallel tasks, replayed traces: does it matter where jobs are placed?

NAS FT jobs of class C on 8, 16 and 32 nodes arrive at the Graphene cluster and start first come
first served. Their profiles are parallel tasks, or delays as long as the tasks alone, or traces
replayed message by message (only if asked for: they take long); their nodes are the first that are
free, or random ones, or contiguous ones (strict, or as few pieces as possible). Every combination
is run; a second start reuses the runs that are there.

    python experiments/job_profiles/run.py -o results/job_profiles
    python experiments/job_profiles/run.py --profiles delay ptask trace -o results/job_profiles
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ptaskmodel.batch import (
    BatchOptions,
    contention_slowdown,
    metrics,
    run_batch,
    run_campaign,
)
from ptaskmodel.batch.hostset import runs
from ptaskmodel.platform import load_platform
from ptaskmodel.workload.jobs import Workload
from ptaskmodel.workload.models.weibull import JobKind, weibull
from ptaskmodel.workload.trace_work import TraceWork
from ptaskmodel.workload.transforms.trace_rule import trace_of_work
from ptaskmodel.workload.works import HomogeneousWork, SequenceWork

HERE = Path(__file__).resolve().parent
PLATFORM = HERE.parent.parent / "platforms" / "graphene.xml"
PROFILES = {"delay": "delay", "ptask": "as-given", "trace": "as-given"}
ALLOCATIONS = ("first-fit", "random", "contiguous", "contiguous-best-effort")
NODES = (8, 16, 32)
CUBE = 512**3
ITERATIONS = 20
SHAPE = 2.0


def ft_class_c(nodes: int) -> HomogeneousWork:
    """NAS FT class C: 20 iterations, each an all-to-all and a 3-D FFT of 512^3 complex values.

    An all-to-all moves 16 bytes a value in all, 1 / nodes^2 of that from a node to another; a 3-D
    FFT costs 5 N log2 N flop. As one parallel task, the iterations follow each other without a gap.
    """
    flops = ITERATIONS * 5 * CUBE * math.log2(CUBE) / nodes
    volume = ITERATIONS * 16 * CUBE / nodes**2
    return HomogeneousWork(flops, volume)


def ft_trace(nodes: int) -> TraceWork:
    """The same as the trace of an MPI application: each iteration computes, then exchanges."""
    whole = ft_class_c(nodes)
    once = HomogeneousWork(whole.flops / ITERATIONS, whole.bytes / ITERATIONS)
    return TraceWork(trace_of_work(SequenceWork((once,), ITERATIONS), nodes, f"ft.C.{nodes}"))


def workload(jobs: int, seed: int, scale_s: float, traces: bool = False) -> Workload:
    """FT jobs of the three sizes, equally likely, with Weibull times between arrivals."""
    work = ft_trace if traces else ft_class_c
    kinds = [JobKind(f"ft.C.{nodes}", work(nodes), nodes) for nodes in NODES]
    return weibull(jobs, kinds, seed, shape=SHAPE, scale_s=scale_s, hosts=144)


@cache
def platform() -> Any:
    return load_platform(PLATFORM)


def one_run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Metrics of one combination, and for each job: size, dates, nodes, time alone."""
    traces = parameters["profiles"] == "trace"
    options = BatchOptions(
        policy="fcfs",
        allocation=parameters["allocation"],
        profiles=PROFILES[parameters["profiles"]],
        estimates="walltime",
        seed=parameters["seed"],
        contention=not traces,
    )
    jobs = workload(parameters["jobs"], parameters["seed"], parameters["scale_s"], traces)
    result = run_batch(platform(), jobs, options)
    schedule = result.schedule
    rows = [
        (
            run.job.num_hosts,
            run.job.submit_time_s,
            run.start_s,
            run.end_s,
            list(runs(run.hosts)),
        )
        for run in schedule.final
    ]
    alone = result.alone_s
    found: dict[str, Any] = {
        "metrics": metrics(schedule, alone_s=alone),
        "jobs": rows,
        "simulation_s": result.simulation_s,
    }
    if alone is not None:
        found["contention"] = contention_slowdown(schedule, alone).tolist()
    return found


def campaign(
    jobs: list[int], seeds: int, scale_s: float, kinds: list[str]
) -> dict[str, dict[str, Any]]:
    """Name and parameters of every run."""
    return {
        f"{count}_jobs_{profiles}_{allocation}_seed_{seed}": {
            "jobs": count,
            "profiles": profiles,
            "allocation": allocation,
            "seed": seed,
            "scale_s": scale_s,
        }
        for count in jobs
        for seed in range(1, seeds + 1)
        for profiles in kinds
        for allocation in ALLOCATIONS
    }


def write_table(
    path: Path, runs_: Mapping[str, Mapping[str, Any]], results: Mapping[str, Any]
) -> None:
    """One line a combination, means over the seeds."""
    groups: dict[tuple, list[Any]] = {}
    for name, parameters in runs_.items():
        key = (parameters["jobs"], parameters["profiles"], parameters["allocation"])
        groups.setdefault(key, []).append(results[name])
    columns = ("execution_s", "waiting_s", "turnaround_s", "utilisation", "makespan_s")
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        header = ["jobs", "profiles", "allocation", *(f"mean_{c}" for c in columns)]
        writer.writerow([*header, "mean_contention_slowdown", "simulation_s"])
        for key, group in groups.items():
            values = [np.mean([_mean(r["metrics"][c]) for r in group]) for c in columns]
            values.append(np.mean([np.mean(r.get("contention", [1.0])) for r in group]))
            values.append(np.median([r["simulation_s"] for r in group]))
            writer.writerow([*key, *(f"{value:.6g}" for value in values)])


def _mean(value: Any) -> float:
    return value["mean"] if isinstance(value, dict) else value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("results/job_profiles"))
    parser.add_argument("--jobs", type=int, nargs="+", default=[512, 1024])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=6.0, help="of arrivals, s (default: 6)")
    parser.add_argument("--processes", type=int, help="at once (default: one a core)")
    parser.add_argument("--profiles", nargs="+", choices=PROFILES, default=["delay", "ptask"])
    given = parser.parse_args()
    wanted = campaign(given.jobs, given.seeds, given.scale, given.profiles)

    def tell(done: int, total: int, name: str) -> None:
        print(f"{done}/{total} {name}", file=sys.stderr)

    results = run_campaign(
        given.output / "runs", wanted, one_run, processes=given.processes, tell=tell
    )
    write_table(given.output / "summary.csv", wanted, results)
    from figures import draw_all

    for path in draw_all(given.output, wanted, results):
        print(path)
    print((given.output / "summary.csv").read_text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
