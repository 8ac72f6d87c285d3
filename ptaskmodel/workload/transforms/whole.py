"""What transforms of whole workloads share: run times as a column, and what remains of links."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.jobs import Job, Workload


def run_times_s(workload: Workload, purpose: str) -> NDArray[np.float64]:
    """How long each job runs; WorkloadError if that depends on the platform."""
    times = [job.work.duration_s for job in workload.jobs]
    if None in times:
        job = workload.jobs[times.index(None)]
        raise WorkloadError(
            f"{workload.origin}: how long job '{job.id}' runs depends on the platform: {purpose}"
        )
    return np.array(times, dtype=np.float64)


def dates_s(workload: Workload) -> NDArray[np.float64]:
    return np.array([job.submit_time_s for job in workload.jobs], dtype=np.float64)


def without_lost_links(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """The jobs, of which none names a preceding job that is not among them."""
    jobs = tuple(jobs)
    ids = {job.id for job in jobs}
    return tuple(
        replace(job, preceding_job=None, think_time_s=0.0)
        if job.preceding_job is not None and job.preceding_job not in ids
        else job
        for job in jobs
    )
