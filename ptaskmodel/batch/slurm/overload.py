"""Says before a run that more work comes than the nodes can do meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from ptaskmodel.batch.slurm.conf.facts import Conf
from ptaskmodel.batch.slurm.nodes import nodes_of
from ptaskmodel.batch.slurm.requests.request import JobRequest
from ptaskmodel.remarks import OVERLOAD, warn

# With fewer jobs a burst of submissions would look like a load.
FEW_JOBS = 1000


def offered_load(conf: Conf, jobs: Sequence[JobRequest]) -> float:
    """CPU seconds of jobs whose run time is known, over those of all nodes while jobs come.

    A job runs for its limit at most. 0 if all come at one date.
    """
    nodes = nodes_of(conf)
    whole = sum(nodes.cpus)
    dates = [job.submit_s for job in jobs]
    span_s = max(dates, default=0.0) - min(dates, default=0.0)
    if span_s <= 0.0 or whole == 0:
        return 0.0
    of_node = whole / len(nodes)
    work = 0.0
    for job in jobs:
        if job.run_s is not None:
            limit_s = job.run_s if job.limit_min is None else 60.0 * job.limit_min
            cpus = max(job.cpus or 0, of_node * job.least_nodes if job.cpus is None else 0)
            work += min(job.run_s, limit_s) * cpus
    return work / (span_s * whole)


def warn_of_overload(conf: Conf, jobs: Sequence[JobRequest]) -> None:
    """Warn if the offered load is above 1."""
    load = offered_load(conf, jobs) if len(jobs) >= FEW_JOBS else 0.0
    if load > 1.0:
        warn(f"the offered load is {load:.3g}: the queue grows as long as jobs come", OVERLOAD)
