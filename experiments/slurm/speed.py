"""How many simulated days an hour of one processor simulates, by log."""

from __future__ import annotations

import time
from pathlib import Path

from common import MODEL, Row, configuration, evenly

from ptaskmodel.slurm.jobs.submissions import NODES, submissions_of
from ptaskmodel.slurm.run import simulate_slurm
from ptaskmodel.workload.formats import Cleaning
from ptaskmodel.workload.reading import read_workload

# Logs by the beginning of their names: nodes, processors of a node.
MACHINES = {"KTH": (100, 1), "HPC2N": (240, 1), "SDSC-BLUE": (144, 8), "CEA-Curie": (5040, 16)}
ANCHORS_DAYS_AN_HOUR = {"Simakov 2018": 1.05, "Simakov 2017": 4.0, "Jokanovic 2018": 10.0}


def conf_of(nodes: int, *lines: str):
    """Whole nodes, backfill every 30 s as deep as 500 jobs, multifactor by size."""
    return configuration(
        "SelectType=select/linear",
        "PriorityType=priority/multifactor",
        "PriorityWeightJobSize=1000",
        "SchedulerParameters=bf_interval=30,bf_max_job_test=500,bf_window=4320",
        f"NodeName=n[1-{nodes}] CPUs=1",
        "PartitionName=p Nodes=ALL Default=YES",
        *lines,
    )


def measured(log: str | Path, count: int) -> list[Row]:
    """A row: jobs, simulated days, processor time, days an hour."""
    if isinstance(log, str):
        name, nodes = "model, load 0.95", 64
        workload = evenly(MODEL, min(count, 5000), 0.95)
    else:
        name = log.name.split(".")[0]
        found = [machine for start, machine in MACHINES.items() if log.name.startswith(start)]
        if not found:
            return []
        nodes, each = found[0]
        workload = read_workload(log, Cleaning(each))
        fitting = [job for job in workload.jobs[:count] if job.num_hosts <= nodes]
        workload = workload.with_jobs(tuple(fitting))
    conf = conf_of(nodes)
    jobs = submissions_of(workload, conf, NODES).jobs
    began = time.process_time()
    run = simulate_slurm(conf, jobs, compiled=True)
    took = time.process_time() - began
    statistics = run.loop.statistics
    days = (run.loop.now - jobs[0].submit_s) / 86_400
    return [
        {
            "log": name,
            "nodes": nodes,
            "jobs": len(jobs),
            "simulated_days": days,
            "cycles": statistics.cycles,
            "mean_tested": statistics.tested / max(statistics.cycles, 1),
            "processor_s": took,
            "days_an_hour": days / took * 3600,
            "jobs_a_second": len(jobs) / took,
        }
    ]
