"""One controller for two kinds of nodes, or one each, with and without costs of scheduling.

As Simakov et al. 2018: every job belongs to one kind, drawn with the fraction of nodes; separate
controllers are two Slurms that exchange nothing.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from common import Row, by_scheduler, configuration, ended, evenly, measures, waits_by_nodes

from ptaskmodel.slurm.conf.phases import FREE, Costs, drawn
from ptaskmodel.slurm.jobs.submissions import NODES, submissions_of
from ptaskmodel.slurm.run import parts_of, simulate_slurm

# Of the nodes: 4200 of 5936, as published.
KNL = 4200 / 5936
LIMIT_s = 120


def measured(
    log: str | Path, nodes: int, count: int, load: float, test_s: float, seeds: int
) -> list[Row]:
    """A row for costs, controllers and kind: mean waits, cycles at their limit, tests."""
    given = log, nodes, count, load
    return [
        row
        for seed in range(seeds)
        for costs in (FREE, Costs(test_s))
        for row in _compared(*given, seed, costs)
    ]


def repeated(
    log: str | Path, nodes: int, count: int, load: float, test_s: float, phases: int
) -> list[Row]:
    """The same with costs, of one draw of the kinds; only the threads' phases are drawn anew."""
    return [
        row
        for phase in range(phases)
        for row in _compared(log, nodes, count, load, 0, Costs(test_s), phase)
    ]


def _compared(
    log: str | Path, nodes: int, count: int, load: float, seed: int, costs: Costs, phase: int = 0
) -> list[Row]:
    """One controller and two, on the same jobs. seed: of the kinds; phase: of the threads."""
    first = round(nodes * KNL)
    conf = configuration(
        "SelectType=select/linear",
        f"SchedulerParameters=bf_interval=30,bf_max_time={LIMIT_s},bf_continue,bf_window=6480",
        f"NodeName=k[1-{first}] CPUs=1",
        f"NodeName=s[1-{nodes - first}] CPUs=1",
        f"PartitionName=knl Nodes=k[1-{first}] Default=YES",
        f"PartitionName=slx Nodes=s[1-{nodes - first}]",
    )
    workload = evenly(log, count, load, nodes)
    draw, jobs, rows = np.random.default_rng(seed), [], []
    for job in submissions_of(workload, conf, NODES).jobs:
        kind = "knl" if draw.random() < KNL else "slx"
        size = min(job.least_nodes, first if kind == "knl" else nodes - first)
        jobs.append(replace(job, partitions=(kind,), min_nodes=size, max_nodes=size))
    for controllers in (1, 2):
        parts, _ = parts_of(conf, jobs, controllers)
        runs = [
            simulate_slurm(part.conf, part.jobs, costs=costs, compiled=True, phases=drawn(phase))
            for part in parts
        ]
        rows += _rows(runs, costs, controllers, seed, phase)
    return rows


def _rows(runs, costs: Costs, controllers: int, seed: int, phase: int) -> list[Row]:
    rows = []
    for kind in ("knl", "slx"):
        which = runs[0] if controllers == 1 else runs[("knl", "slx").index(kind)]
        statistics = which.loop.statistics
        jobs = [job for run in runs for job in ended(run) if job.partition.name == kind]
        waits = np.array([job.start_s - job.submit_s for job in jobs], dtype=float)
        rows.append(
            {
                "test_s": costs.test_s,
                "controllers": controllers,
                "kind": kind,
                "seed": seed,
                "phase": phase,
                "waiting_h": waits.mean() / 3600,
                **by_scheduler(jobs),
                **waits_by_nodes(jobs),
                "cycle_s": statistics.lasted_s / statistics.cycles,
                "at_limit_%": 100 * statistics.at_limit / statistics.cycles,
                "tested": statistics.tested / statistics.cycles,
                "utilisation": measures(runs)["utilisation"],
            }
        )
    return rows
