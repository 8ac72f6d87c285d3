"""Workloads of chosen kinds of jobs that arrive at random, after Weibull."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.workload.amounts import FieldError, check_number
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.works import Work


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job for `weibull`: its profile, how many hosts it asks for, how often it comes."""

    profile: str
    work: Work
    num_hosts: int
    walltime_s: float | None = None
    weight: float = 1.0


def kinds_of(workload: Workload) -> list[JobKind]:
    """The kinds of jobs that a workload shows: each of its jobs is one.

    Its field ``weight`` (1 by default) says how often the kind comes. Raises WorkloadError.
    """
    kinds = []
    for job in workload.jobs:
        try:
            weight = check_number("weight", job.extra.get("weight", 1.0))
        except FieldError as error:
            raise WorkloadError(f"{workload.origin}: job {shown(job.id)}: {error}") from None
        kinds.append(JobKind(job.profile, job.work, job.num_hosts, job.walltime_s, weight))
    return kinds


def weibull(
    jobs: int,
    kinds: Sequence[JobKind],
    seed: int,
    *,
    shape: float,
    scale_s: float,
    hosts: int | None = None,
) -> Workload:
    """Jobs drawn from ``kinds`` by weight, Weibull(shape, scale_s) seconds from one to the next.

    The mean time between arrivals is scale_s * gamma(1 + 1 / shape). The first job is at 0.
    """
    if jobs < 1 or not kinds:
        raise WorkloadError("a workload needs 1 job and 1 kind of job or more")
    if not (shape > 0 and scale_s > 0 and math.isfinite(scale_s)):
        raise WorkloadError(f"Weibull({shape:g}, {scale_s:g}): both must be positive and finite")
    weights = np.array([kind.weight for kind in kinds])
    if not (weights >= 0).all() or weights.sum() <= 0:
        raise WorkloadError("the weights of the kinds of jobs must be 0 or more, one above 0")
    random = np.random.default_rng(seed)
    chosen = random.choice(len(kinds), size=jobs, p=weights / weights.sum())
    gaps = scale_s * random.weibull(shape, jobs)
    dates = np.cumsum(gaps) - gaps[0]
    made = []
    for k, (date, index) in enumerate(zip(dates.tolist(), chosen.tolist(), strict=True)):
        kind = kinds[index]
        made.append(Job(str(k + 1), date, kind.num_hosts, kind.profile, kind.work, kind.walltime_s))
    size = hosts or max(kind.num_hosts for kind in kinds)
    origin = f"Weibull arrivals, shape {shape:g}, scale {scale_s:g} s, seed {seed}"
    profiles = {kind.profile: kind.work for kind in kinds}
    return Workload(tuple(made), profiles, size, name="weibull", origin=origin)
