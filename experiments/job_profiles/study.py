"""One run of the study of job profiles: does it matter where jobs are placed?

NAS FT jobs of class C on 8, 16 and 32 nodes arrive at the Graphene cluster and start first come
first served. Their profiles are parallel tasks, or delays as long as the tasks alone, or traces
replayed message by message; their nodes are the first that are free, or random ones, or contiguous
ones (strict, or as few pieces as possible).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ptaskmodel.batch import (
    BatchOptions,
    contention_slowdown,
    metrics,
    run_batch,
)
from ptaskmodel.batch.machine.host_sets import runs
from ptaskmodel.platform import load_platform
from ptaskmodel.workload.jobs import Workload
from ptaskmodel.workload.models import JobKind, weibull
from ptaskmodel.workload.ptask_rule import trace_of_work
from ptaskmodel.workload.works import HomogeneousWork, SequenceWork, TraceWork

HERE = Path(__file__).resolve().parent
PLATFORM = HERE.parent.parent / "platforms" / "graphene.xml"
PROFILES = {"delay": "delay", "ptask": "as-given", "trace": "as-given"}
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
    """Metrics of one combination, and for each job: size, dates, nodes, time alone.

    ``contention`` False leaves out the times alone.
    """
    traces = parameters["profiles"] == "trace"
    options = BatchOptions(
        policy="fcfs",
        allocation=parameters["allocation"],
        profiles=PROFILES[parameters["profiles"]],
        estimates="walltime",
        seed=parameters["seed"],
        contention=parameters.get("contention", True),
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
        "simulation_s": result.simulation_s,
    }
    slowdowns = [] if alone is None else contention_slowdown(schedule, alone).tolist()
    return found | {"series": {"jobs": rows, "contention": slowdowns}}
