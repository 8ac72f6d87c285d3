"""Nodes shared by jobs: not at all, by sockets, by cores; and what the neighbours cost then.

As Simakov et al. 2018: jobs of one node become jobs of 1, 2, 4, 6, 8 or 12 cores, or stay whole.
What they left out is added: each job moves data between its cores and the memory of its nodes, and
jobs on one node share that link.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from common import Row, by_scheduler, configuration, ended, evenly, waits_by_nodes

from ptaskmodel.platform import load_platform
from ptaskmodel.slurm.jobs.request import WHOLE_NODES, JobRequest
from ptaskmodel.slurm.jobs.submissions import NODES, submissions_of
from ptaskmodel.slurm.run import alone_s, execution_on, simulate_slurm
from ptaskmodel.workload.works import ParallelWork

CORES = 16
SIZES = (1, 2, 4, 6, 8, 12)
MODES = {
    "none": ("CR_Core", "EXCLUSIVE"),
    "sockets": ("CR_Socket", "NO"),
    "cores": ("CR_Core", "NO"),
}
# What part of a node's memory bandwidth a job uses while it runs alone.
MEMORY = (None, 0.2, 0.6)
SPEED, MEMORY_Bps = 1e9, 1e11
# Limits leave room for neighbours, so that nobody is killed for them.
LONGER = 3


def measured(nodes: int, count: int, load: float, seeds: int) -> list[Row]:
    """A row for the way of sharing, the use of memory, and the seed of the jobs and their cores."""
    rows = []
    for seed in range(seeds):
        workload = evenly("model", count, load, nodes, seed)
        draw = np.random.default_rng(seed)
        drawn = [int(draw.choice((*SIZES, CORES))) for _ in workload.jobs]
        for name, (select, share) in MODES.items():
            conf = configuration(
                "SelectType=select/cons_tres",
                f"SelectTypeParameters={select}",
                "SchedulerParameters=bf_interval=120,bf_window=6480,bf_max_job_test=30",
                f"NodeName=n[1-{nodes}] Sockets=2 CoresPerSocket={CORES // 2}",
                f"PartitionName=p Nodes=ALL Default=YES OverSubscribe={share}",
            )
            given = submissions_of(workload, conf, NODES).jobs
            for memory in MEMORY:
                jobs = [_job(job, cores, memory) for job, cores in zip(given, drawn, strict=True)]
                rows.append(_row(conf, jobs, nodes, name, memory, seed))
    return rows


def _job(job: JobRequest, cores: int, memory: float | None) -> JobRequest:
    """A job of one node on some cores; with its use of memory as a parallel task."""
    single = job.least_nodes == 1 and cores < CORES
    tasks = cores if single else job.least_nodes * CORES
    made = replace(
        job,
        tasks=tasks,
        tasks_per_node=cores if single else CORES,
        exclusive=None if single else WHOLE_NODES,
        limit_min=LONGER * (job.limit_min or 60),
    )
    if memory is None:
        return made
    each = cores if single else CORES
    moved = memory * MEMORY_Bps * (job.run_s or 0.0) / each
    flows = [(k, k, moved) for k in range(tasks)]
    return replace(made, work=ParallelWork.of(tasks, (job.run_s or 0.0) * SPEED, flows=flows))


def _row(conf, jobs, nodes: int, mode: str, memory: float | None, seed: int) -> Row:
    execution = None
    if memory is not None:
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "nodes.xml"
            path.write_text(_platform(nodes), encoding="utf-8")
            execution = execution_on(load_platform(path), conf)
    run = simulate_slurm(conf, jobs, execution=execution)
    over = ended(run)
    waits = np.array([job.start_s - job.submit_s for job in over], dtype=float)
    small = np.array([job.request.exclusive is None for job in over])
    slowdown = small_slowdown = 1.0
    if execution is not None:
        attempts = [job.attempt for job in over]
        alone = np.array(alone_s(execution, attempts))
        ratio = np.array([a.end_s - a.start_s for a in attempts]) / alone
        slowdown, small_slowdown = float(ratio.mean()), float(ratio[small].mean())
    return {
        "sharing": mode,
        "memory": "not simulated" if memory is None else f"{memory:g} of a node's",
        "seed": seed,
        "waiting_h": float(waits.mean()) / 3600,
        "small_waiting_h": float(waits[small].mean()) / 3600,
        "contention": slowdown,
        "small_contention": small_slowdown,
        **by_scheduler(over),
        **waits_by_nodes([job for job in over if job.request.exclusive is not None]),
        "makespan_d": (run.loop.now - jobs[0].submit_s) / 86_400,
    }


def _platform(nodes: int) -> str:
    """Hosts with a memory link each; whoever sends to itself crosses it."""
    parts = ["<?xml version='1.0'?>", '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
             '<platform version="4.1"><zone id="z" routing="Full">']  # fmt: skip
    parts += [f'<host id="n{k}" speed="{SPEED}f" core="{CORES}"/>' for k in range(1, nodes + 1)]
    parts += [
        f'<link id="m{k}" bandwidth="{MEMORY_Bps}Bps" latency="0s"/>' for k in range(1, nodes + 1)
    ]
    parts += [
        f'<route src="n{k}" dst="n{k}"><link_ctn id="m{k}"/></route>' for k in range(1, nodes + 1)
    ]
    return "\n".join([*parts, "</zone></platform>"])
