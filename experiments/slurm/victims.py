"""How many CPUs suspend/resume stops for large jobs, by whole nodes and by CPUs.

Barberato 2018: jobs above 3,800 of 57,600 CPUs suspend the others, one of them has 20,000. On a
machine of nodes of 16 CPUs, select/linear stops little more than the CPUs that those jobs lack;
select/cons_res (here cons_tres) about twice as many.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import MODEL, Row, configuration, ended, evenly_spaced

from ptaskmodel.slurm.conf.facts import Conf
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.jobs.request import JobRequest
from ptaskmodel.slurm.jobs.submissions import CPUS, NODES, submissions_of
from ptaskmodel.slurm.run import simulate_slurm
from ptaskmodel.workload.formats import Cleaning
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.models import lublin
from ptaskmodel.workload.reading import read_workload
from ptaskmodel.workload.sampling import sampled, shuffled
from ptaskmodel.workload.works import DelayWork


class Machine(NamedTuple):
    """Of a log: nodes, CPUs of each, and the jobs of a sample that takes a minute."""

    name: str
    nodes: int
    cores: int
    jobs: int

    @property
    def cpus(self) -> int:
        """Of all nodes."""
        return self.nodes * self.cores


# By the beginning of the log's name.
MACHINES = (
    Machine(MODEL, 16, 16, 100),
    Machine("CEA-Curie", 5832, 16, 300),
    Machine("RICC", 1024, 8, 3000),
)
LARGE, HUGE = 3800 / 57600, 20000 / 57600
SELECTS = {
    "linear": ("SelectType=select/linear",),
    "cons": ("SelectType=select/cons_tres", "SelectTypeParameters=CR_CPU"),
}


def measured(log: str, most: int, load: float, orders: int) -> list[Row]:
    """A row for each selection and order: CPUs that large jobs lacked, and those stopped.

    parts_%: of the jobs that leave a part of a node to others.
    """
    name, nodes, cores, jobs = machine_of(log)
    rows = []
    for select, lines in SELECTS.items():
        unit = cores if select == "linear" else 1
        whole = _sample(log, min(jobs, most), load, nodes * cores, unit)
        conf = conf_of(nodes, cores, lines)
        for seed in range(orders):
            requests = requests_of(_with_huge(shuffled(whole, seed)), conf, unit)
            run = simulate_slurm(conf, requests, compiled=True)
            rows.append(
                {
                    "log": name,
                    "select": select,
                    "order": seed,
                    "parts_%": 100 * float(np.mean([j.num_hosts % cores > 0 for j in whole.jobs])),
                    **_stopped(ended(run), nodes, cores),
                }
            )
    return rows


def machine_of(log: str) -> Machine:
    """The machine of a log, by the log's name."""
    name = Path(log).name.split(".")[0]
    return next(each for each in MACHINES if name.startswith(each.name))._replace(name=name)


def _sample(log: str, count: int, load: float, cpus: int, unit: int) -> Workload:
    """So many jobs of a log, by work, or of the model, on whole units; evenly spaced, at a load."""
    if log == MODEL:
        whole = lublin(count, cpus, 7, walltime_factor=2.0)
    else:
        whole = read_workload(log, Cleaning())
        whole = sampled(whole, max(1.0, len(whole.jobs) / count), method="work")
    jobs = (replace(job, num_hosts=unit * math.ceil(job.num_hosts / unit)) for job in whole.jobs)
    return evenly_spaced(replace(whole.with_jobs(tuple(jobs)), num_hosts=cpus), load)


def conf_of(nodes: int, cores: int, select: tuple[str, ...]) -> Conf:
    return configuration(
        *select,
        "SchedulerParameters=defer,bf_continue,batch_sched_delay=10,bf_resolution=120,"
        "bf_interval=30,bf_window=20160,bf_max_job_test=50",
        "OverTimeLimit=1",
        "PreemptType=preempt/partition_prio",
        "PreemptMode=SUSPEND,GANG",
        f"NodeName=n[1-{nodes}] CPUs={cores}",
        "PartitionName=low PriorityTier=10 Nodes=ALL Default=YES OverSubscribe=FORCE:1",
        "PartitionName=high PriorityTier=30 Nodes=ALL OverSubscribe=FORCE:1",
    )


def _with_huge(workload: Workload) -> Workload:
    """One job more, in the middle, for a 50th of the time."""
    assert workload.num_hosts is not None
    last = workload.jobs[-1].submit_time_s
    work = DelayWork(last / 50)
    size = math.ceil(HUGE * workload.num_hosts)
    huge = Job("huge", last / 2, size, "huge", work, last / 25)
    return workload.with_jobs(
        tuple(sorted((*workload.jobs, huge), key=lambda job: job.submit_time_s))
    )


def requests_of(workload: Workload, conf: Conf, unit: int) -> list[JobRequest]:
    """The jobs by CPUs, or by nodes of `unit` CPUs; large ones in the high partition."""
    assert workload.num_hosts is not None
    bar = LARGE * workload.num_hosts
    high = {job.id for job in workload.jobs if job.num_hosts > bar}
    in_units = (replace(job, num_hosts=-(-job.num_hosts // unit)) for job in workload.jobs)
    asked = workload.with_jobs(tuple(in_units))
    # Nobody asks for nodes of its own: whoever does can neither suspend nor be suspended.
    return [
        replace(job, partitions=("high" if job.id in high else "low",), exclusive=None)
        for job in submissions_of(asked, conf, CPUS if unit == 1 else NODES).jobs
    ]


def _stopped(jobs: list[JobRecord], nodes: int, cores: int) -> Row:
    """Over the dates at which jobs were stopped for others: CPUs lacked, and those stopped.

    Lacked are those of the jobs that started at such a date without those that nobody had.
    """
    dates = {since for job in jobs for since, _ in job.suspensions}
    dates &= {job.start_s for job in jobs}  # else two jobs take turns
    lacked = stopped = 0
    for date in sorted(dates):
        starts = sum(cpus_of(job, cores) for job in jobs if job.start_s == date)
        before = [job for job in jobs if job.start_s < date < job.end_s]
        running = [j for j in before if not any(since < date < to for since, to in j.suspensions)]
        busy = sum(cpus_of(job, cores) for job in running)
        lacked += max(0, starts - (nodes * cores - busy))
        victims = (j for j in running if any(since == date for since, _ in j.suspensions))
        stopped += sum(cpus_of(job, cores) for job in victims)
    return {"dates": len(dates), "lacked_cpus": lacked, "stopped_cpus": stopped}


def cpus_of(job: JobRecord, cores: int) -> int:
    """The CPUs that a job holds."""
    assert job.allocation is not None
    return sum(job.allocation.cpus) or cores * job.allocation.size
