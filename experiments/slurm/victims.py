"""How many CPUs suspend/resume stops for large jobs, by whole nodes and by CPUs.

Barberato 2018: jobs above 3,800 of 57,600 CPUs suspend the others, one of them has 20,000. On a
machine of nodes of 16 CPUs, select/linear stops little more than the CPUs that those jobs lack;
select/cons_res (here cons_tres) about twice as many.
"""

from __future__ import annotations

import math
from dataclasses import replace

from common import MODEL, Row, configuration, ended, evenly

from ptaskmodel.slurm.conf.facts import Conf
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.requests.submissions import CPUS, NODES, submissions_of
from ptaskmodel.slurm.run import simulate_slurm
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.transforms.sampling import shuffled
from ptaskmodel.workload.works import DelayWork

CORES = 16
LARGE, HUGE = 3800 / 57600, 20000 / 57600
SELECTS = {
    "linear": ("SelectType=select/linear",),
    "cons": ("SelectType=select/cons_tres", "SelectTypeParameters=CR_CPU"),
}


def measured(nodes: int, count: int, load: float, orders: int) -> list[Row]:
    """A row for each selection and order: CPUs that large jobs lacked, and those stopped."""
    whole = evenly(MODEL, count, load, nodes * CORES)
    rows = []
    for seed in range(orders):
        workload = _with_huge(shuffled(whole, seed))
        for select, lines in SELECTS.items():
            conf = _conf(nodes, lines)
            run = simulate_slurm(conf, _requests(workload, conf, select, nodes), compiled=True)
            rows.append({"select": select, "order": seed, **_stopped(ended(run), nodes)})
    return rows


def _conf(nodes: int, select: tuple[str, ...]) -> Conf:
    return configuration(
        *select,
        "SchedulerParameters=defer,bf_continue,batch_sched_delay=10,bf_resolution=120,"
        "bf_interval=30,bf_window=20160,bf_max_job_test=50",
        "OverTimeLimit=1",
        "PreemptType=preempt/partition_prio",
        "PreemptMode=SUSPEND,GANG",
        f"NodeName=n[1-{nodes}] CPUs={CORES}",
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


def _requests(workload: Workload, conf: Conf, select: str, nodes: int):
    """The jobs by CPUs, or by the nodes that hold them; large ones in the high partition."""
    bar = LARGE * nodes * CORES
    high = {job.id for job in workload.jobs if job.num_hosts > bar}
    if select == "linear":
        jobs = (replace(job, num_hosts=math.ceil(job.num_hosts / CORES)) for job in workload.jobs)
        workload = workload.with_jobs(tuple(jobs))
    made = submissions_of(workload, conf, NODES if select == "linear" else CPUS).jobs
    # Nobody asks for nodes of its own: whoever does can neither suspend nor be suspended.
    return [
        replace(job, partitions=("high" if job.id in high else "low",), exclusive=None)
        for job in made
    ]


def _stopped(jobs: list[JobRecord], nodes: int) -> Row:
    """Over the dates at which jobs were stopped: CPUs lacked, and those of the jobs stopped.

    Lacked are those of the jobs that started at such a date without those that nobody had.
    """
    lacked, stopped = [], []
    for date in sorted({since for job in jobs for since, _ in job.suspensions}):
        starts = sum(_cpus(job) for job in jobs if job.start_s == date)
        before = [job for job in jobs if job.start_s < date < job.end_s]
        running = [j for j in before if not any(since < date < to for since, to in j.suspensions)]
        busy = sum(_cpus(job) for job in running)
        wanted = starts - (nodes * CORES - busy)
        if wanted > 0:
            lacked.append(wanted)
            stopped.append(
                sum(_cpus(j) for j in running if any(since == date for since, _ in j.suspensions))
            )
    return {
        "dates": len(lacked),
        "lacked_cpus": sum(lacked),
        "stopped_cpus": sum(stopped),
    }


def _cpus(job: JobRecord) -> int:
    """The CPUs that a job holds."""
    assert job.allocation is not None
    return sum(job.allocation.cpus) or CORES * job.allocation.size
