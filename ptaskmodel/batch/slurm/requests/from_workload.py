"""Any workload as requests to Slurm: logs in SWF, Batsim's JSON, models."""

from __future__ import annotations

import math
from collections.abc import Collection

from ptaskmodel.batch.slurm.conf.facts import Conf, Gres
from ptaskmodel.batch.slurm.requests.request import WHOLE_NODES, JobRequest, Submissions
from ptaskmodel.workload.jobs import Job, Workload

NODES, CPUS = "nodes", "cpus"
MIB = 2.0**20
ONE_MINUTE_s = 60


def submissions_of(
    workload: Workload, conf: Conf, counts: str = NODES, t0: int | None = None
) -> Submissions:
    """The jobs of a workload as requests to a cluster.

    counts: what ``num_hosts`` counts: NODES, taken whole unless a job asks for cores; or CPUS, as
    tasks that Slurm places, which suits logs that count processors. Walltimes are rounded up to
    minutes. Groups become accounts; partitions and queues count if the configuration has one of
    that name, else jobs go to the default one. t0: Unix time of date 0.
    """
    partitions = {partition.name for partition in conf.partitions}
    jobs = [_request(job, counts, partitions) for job in workload.jobs]
    strange = {name for job in workload.jobs for name in _places(job) if name not in partitions}
    notes = list(workload.notes)
    if strange:
        some = ", ".join(sorted(strange)[:3])
        notes.append(f"{len(strange)} queues or partitions are not in the configuration: {some}")
    return Submissions(tuple(jobs), t0, tuple(notes))


def _places(job: Job) -> list[str]:
    """The names that may be those of its partition, best first."""
    return [name for name in (job.partition, job.queue) if name is not None]


def _request(job: Job, counts: str, partitions: Collection[str]) -> JobRequest:
    limit = None if job.walltime_s is None else math.ceil(job.walltime_s / ONE_MINUTE_s)
    place = next((name for name in _places(job) if name in partitions), None)
    nodes = counts == NODES
    whole = nodes and job.cores is None
    return JobRequest(
        job.id,
        job.submit_time_s,
        job.work,
        user=job.user,
        account=job.group,
        name=job.executable,
        partitions=() if place is None else (place,),
        min_nodes=job.num_hosts if nodes else None,
        max_nodes=job.num_hosts if nodes else None,
        tasks=None if whole else job.num_hosts * (job.cores or 1),
        tasks_per_node=job.cores if nodes else None,
        memory_per_node_MiB=None if job.memory_B is None else math.ceil(job.memory_B / MIB),
        gres=tuple(Gres(name, None, count) for name, count in job.resources.items()),
        exclusive=WHOLE_NODES if whole else None,
        limit_min=limit,
        licenses=job.licences,
        fails=bool(job.return_code),
        where=f"job '{job.id}'",
    )
