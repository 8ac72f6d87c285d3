"""What the scheduler believes of the durations of jobs: of one, or of all in arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.execution import actual_duration_s, delay_of, walltime_or_inf
from ptaskmodel.workload.job_arrays import JobArrays
from ptaskmodel.workload.jobs import Job

Estimate = Callable[[Job], float]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scaled:
    """So many times another estimate; at most the walltime, if jobs are ``limited`` to it."""

    factor: float
    of: Estimate
    limited: bool

    def __call__(self, job: Job) -> float:
        scaled = self.factor * self.of(job)
        return min(scaled, walltime_or_inf(job)) if self.limited else scaled


def estimates_of(estimate: Estimate, jobs: Sequence[Job], arrays: JobArrays) -> FloatArray:
    """The estimate of each job, s; those built in need no `Job` for it."""
    if estimate is walltime_or_inf:
        return arrays.limit_s
    if estimate is delay_of:
        return arrays.duration_s
    if estimate is actual_duration_s:
        return np.minimum(arrays.duration_s, arrays.limit_s)
    if isinstance(estimate, Scaled):
        scaled = estimate.factor * estimates_of(estimate.of, jobs, arrays)
        return np.minimum(scaled, arrays.limit_s) if estimate.limited else scaled
    return np.array([estimate(job) for job in jobs], dtype=np.float64)
