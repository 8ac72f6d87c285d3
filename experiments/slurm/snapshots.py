"""What one large job stops on a machine full of small ones: by their sizes, and by how full it is.

`victims` says what suspend/resume stops in samples of logs, which differ in everything. Here only
sizes or the fullness differ: all machines, run times and dates are the same.
"""

from __future__ import annotations

import math

import numpy as np
from common import MODEL, Row, ended
from victims import HUGE, LARGE, SELECTS, Machine, conf_of, cpus_of, machine_of, requests_of

from ptaskmodel.slurm.run import simulate_slurm
from ptaskmodel.workload.formats import Cleaning
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.models import lublin
from ptaskmodel.workload.reading import read_workload
from ptaskmodel.workload.works import DelayWork

THESIS = "[T]"
CORES = 16
# CPUs asked for by jobs submitted at once over those of the machine.
ASKED = (1.05, 1.2, 1.5)
HUGE_COMES_S, MEAN_RUN_S, LEAST_RUN_S = 3600.0, 4 * 3600.0, 600.0
# [T]: shares of jobs by cores, %; 1.2 % have more than 1,000; the rest is not published.
SHARES = {1: 49.0, 2: 11.0, 4: 5.0, 8: 7.0, 16: 8.0, 48: 4.0, 64: 6.0}
ABOVE_1000 = 1.2
REST = (32, 128, 256, 512)


def measured(log: str, nodes: int, seeds: int) -> list[Row]:
    """A row for each source of sizes, fullness and seed: CPUs lacked, and those stopped."""
    machine = machine_of(log)
    known = _sizes_of(log, machine)
    known = known[known <= LARGE * machine.cpus]
    conf = conf_of(nodes, CORES, SELECTS["cons"])
    rows = []
    for asked in ASKED:
        for seed in range(seeds):
            for name in (machine.name, THESIS):
                rng = np.random.default_rng((seed, 7))
                if name == THESIS:
                    drawn, own = _thesis(rng, 20_000), Machine(THESIS, 3600, CORES, 0)
                else:
                    drawn, own = rng.choice(known, 20_000), machine
                sizes = _on(drawn, own, nodes)
                sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), asked * nodes * CORES))]
                runs_s = rng.exponential(MEAN_RUN_S, len(sizes)) + LEAST_RUN_S
                rows.append(
                    {"sizes": name, "asked": asked, "seed": seed} | _one(sizes, runs_s, nodes, conf)
                )
    return rows


def _sizes_of(log: str, machine: Machine) -> np.ndarray:
    """The CPUs of each job of a log, or of the model."""
    whole = lublin(1000, machine.cpus, 7) if log == MODEL else read_workload(log, Cleaning())
    return np.array([job.num_hosts for job in whole.jobs], float)


def _thesis(rng: np.random.Generator, count: int) -> np.ndarray:
    """CPUs of so many jobs, by the published shares."""
    rest = 100 - sum(SHARES.values()) - ABOVE_1000
    shares = [*SHARES.values(), *[rest / len(REST)] * len(REST), ABOVE_1000]
    large = np.exp(rng.uniform(math.log(1000), math.log(3800), count))
    chosen = rng.choice(np.array([*SHARES, *REST, 0.0]), count, p=np.array(shares) / 100)
    return np.where(chosen == 0, large, chosen)


def _on(sizes: np.ndarray, machine: Machine, nodes: int) -> np.ndarray:
    """CPUs on the machine here: of a node the same part, above it the same part of the machine.

    Jobs that leave no part of a node to others leave none here.
    """
    small = np.maximum(1, np.round(sizes * CORES / machine.cores))
    large = np.maximum(CORES, np.round(sizes * nodes * CORES / machine.cpus))
    large = np.where(sizes % machine.cores == 0, np.ceil(large / CORES) * CORES, large)
    found = np.where(sizes <= machine.cores, small, large)
    return np.minimum(found, int(LARGE * nodes * CORES)).astype(int)


def _one(sizes: np.ndarray, runs_s: np.ndarray, nodes: int, conf) -> Row:
    """All jobs come within a minute, the large one an hour later."""
    jobs = [
        Job(f"j{k}", float(k % 50), int(size), "", DelayWork(float(run_s)), 1.5 * run_s + 3600)
        for k, (size, run_s) in enumerate(zip(sizes, runs_s, strict=True))
    ]
    wanted = math.ceil(HUGE * nodes * CORES)
    jobs.append(Job("huge", HUGE_COMES_S, wanted, "", DelayWork(1800.0), 3600.0))
    jobs.sort(key=lambda job: job.submit_time_s)
    workload = Workload(tuple(jobs), {}, nodes * CORES)
    over = ended(simulate_slurm(conf, requests_of(workload, conf, 1), compiled=True))
    date = next(job.start_s for job in over if cpus_of(job, CORES) == wanted)
    before = [job for job in over if job.start_s < date < job.end_s]
    stopped = [job for job in before if any(since == date for since, _ in job.suspensions)]
    busy = sum(cpus_of(job, CORES) for job in before)
    return {
        "busy_%": 100 * busy / (nodes * CORES),
        "lacked_cpus": max(0, wanted - (nodes * CORES - busy)),
        "stopped_cpus": sum(cpus_of(job, CORES) for job in stopped),
    }
