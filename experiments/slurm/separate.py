"""One controller for two kinds of nodes, or one each, with and without costs of scheduling.

As Simakov et al. 2018: every job belongs to one kind, drawn with the fraction of nodes; separate
controllers are two Slurms that exchange nothing.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from common import Row, configuration, ended, evenly, measures

from ptaskmodel.slurm.conf.phases import FREE, Costs
from ptaskmodel.slurm.requests.submissions import NODES, submissions_of
from ptaskmodel.slurm.run import simulate_slurm
from ptaskmodel.slurm.several_controllers import parts_of

# Of the nodes: 4200 of 5936, as published.
KNL = 4200 / 5936
LIMIT_s = 120


def measured(
    log: str | Path, nodes: int, count: int, load: float, test_s: float, seeds: int
) -> list[Row]:
    """A row for costs, controllers and kind: mean waits, cycles at their limit, tests."""
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
    rows = []
    for seed in range(seeds):
        draw = np.random.default_rng(seed)
        jobs = []
        for job in submissions_of(workload, conf, NODES).jobs:
            kind = "knl" if draw.random() < KNL else "slx"
            most = first if kind == "knl" else nodes - first
            size = min(job.least_nodes, most)
            jobs.append(replace(job, partitions=(kind,), min_nodes=size, max_nodes=size))
        for costs in (FREE, Costs(test_s)):
            for controllers in (1, 2):
                parts, _ = parts_of(conf, jobs, controllers)
                runs = [simulate_slurm(p.conf, p.jobs, costs=costs, compiled=True) for p in parts]
                rows += _rows(runs, costs, controllers, seed)
    return rows


def _rows(runs, costs: Costs, controllers: int, seed: int) -> list[Row]:
    rows = []
    for kind in ("knl", "slx"):
        which = runs[0] if controllers == 1 else runs[("knl", "slx").index(kind)]
        statistics = which.loop.statistics
        jobs = [job for run in runs for job in ended(run) if job.partition.name == kind]
        waits = np.array([job.start_s - job.submit_s for job in jobs], dtype=float)
        by = [job.by for job in jobs]
        rows.append(
            {
                "test_s": costs.test_s,
                "controllers": controllers,
                "kind": kind,
                "seed": seed,
                "waiting_h": waits.mean() / 3600,
                "backfilled_%": 100 * by.count("backfill") / len(by),
                "cycle_s": statistics.lasted_s / statistics.cycles,
                "at_limit_%": 100 * statistics.at_limit / statistics.cycles,
                "tested": statistics.tested / statistics.cycles,
                "utilisation": measures(runs)["utilisation"],
            }
        )
    return rows
