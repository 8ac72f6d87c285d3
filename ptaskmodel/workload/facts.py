"""What is in a workload, in numbers: how many jobs, how large, how long, how great a load."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from ptaskmodel.workload.jobs import Workload


def facts_of(workload: Workload) -> dict[str, Any]:
    """What ``workload info`` says, ready for JSON; a statistic is mean, median and max.

    The run times are those of jobs that last as long on every platform; the offered load, of the
    machine over the time in which jobs are submitted, is there if these are all jobs.
    """
    jobs = workload.jobs
    delays = [job.work.duration_s for job in jobs]
    known = np.array([delay for delay in delays if delay is not None])
    sizes = np.array([job.num_hosts for job in jobs])
    dates = np.array([job.submit_time_s for job in jobs])
    span = float(dates.max() - dates.min()) if len(jobs) else 0.0
    kinds = Counter(type(job.work).__name__.removesuffix("Work").lower() for job in jobs)
    facts: dict[str, Any] = {
        "origin": workload.origin,
        "jobs": len(jobs),
        "machine_hosts": workload.num_hosts,
        "profiles": len(workload.profiles),
        "kinds": dict(sorted(kinds.items())),
        "submitted_over_s": span,
        "with_walltime": sum(job.walltime_s is not None for job in jobs),
    }
    if len(jobs):
        facts["hosts_per_job"] = _statistics(sizes)
    if len(known):
        facts["run_time_s"] = _statistics(known)
    if len(known) == len(jobs) and workload.num_hosts and span > 0:
        facts["offered_load"] = float((known * sizes).sum() / (workload.num_hosts * span))
    return facts | {"notes": list(workload.notes)}


def _statistics(values: np.ndarray) -> dict[str, float]:
    return {
        "mean": float(values.mean()),
        "median": float(np.median(values)),
        "max": values.max().item(),
    }
