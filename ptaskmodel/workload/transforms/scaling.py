"""Compress a workload into less time, or scale its load.

The first functions are common to all transforms of whole workloads: run times as a column, dates,
and the dependencies that remain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.jobs import Job, Workload, listed
from ptaskmodel.workload.works import DelayWork, Work

LOAD_KNOBS = ("arrivals", "run-times")


def run_times_s(workload: Workload, purpose: str) -> NDArray[np.float64]:
    """How long each job runs; WorkloadError if that depends on the platform."""
    times = [job.work.duration_s for job in workload.jobs]
    if None in times:
        job = workload.jobs[times.index(None)]
        raise WorkloadError(
            f"{workload.origin}: the run time of job '{job.id}' depends on the platform; {purpose}"
        )
    return np.array(times, dtype=np.float64)


def dates_s(workload: Workload) -> NDArray[np.float64]:
    return np.array([job.submit_time_s for job in workload.jobs], dtype=np.float64)


def without_lost_links(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """The jobs, of which none names preceding jobs that are not among them."""
    jobs = tuple(jobs)
    ids = {job.id for job in jobs}
    return tuple(
        job
        if ids.issuperset(job.preceding_jobs)
        else linked(job, (each for each in job.preceding_jobs if each in ids))
        for job in jobs
    )


def linked(job: Job, preceding: Iterable[str]) -> Job:
    """A job whose `preceding` jobs are others; without any its user thinks about none."""
    before = listed(preceding)
    think_s = 0.0 if before is None else job.think_time_s
    return replace(job, preceding_job=before, think_time_s=think_s)


def shrunk(workload: Workload, factor: float) -> Workload:
    """All times multiplied by ``factor``: dates, run times, walltimes, think times.

    Waiting times shrink alike, slowdowns and utilisation stay; to the bit if the factor is a power
    of two, as long as nothing else in the simulation is a time (bounds of metrics, intervals of a
    scheduler). Amounts of parallel tasks shrink by the same factor; latencies do not.
    Raises WorkloadError if the factor is not positive and finite.
    """
    _check("factor", factor)
    change = _longer(factor)
    jobs = tuple(
        replace(
            job,
            submit_time_s=job.submit_time_s * factor,
            work=change(job.work),
            profile=f"{job.profile}*{factor:g}",
            walltime_s=None if job.walltime_s is None else job.walltime_s * factor,
            think_time_s=job.think_time_s * factor,
        )
        for job in workload.jobs
    )
    return workload.with_jobs(jobs, f"all times multiplied by {factor:g}")


def offered_load(workload: Workload, hosts: int | None = None) -> float:
    """Host seconds asked for over those of the machine while jobs are submitted.

    hosts: of the machine, by default as the workload says. Raises WorkloadError if that is unknown,
    if run times are, or if all jobs are submitted at once.
    """
    machine = hosts or workload.num_hosts
    if machine is None:
        raise WorkloadError(f"{workload.origin}: nb_res is unknown; give --machine-hosts")
    dates = dates_s(workload)
    span = float(np.ptp(dates)) if len(dates) else 0.0
    if span <= 0:
        raise WorkloadError(
            f"{workload.origin}: all jobs are submitted at the same time, so their load is "
            "undefined; give more jobs"
        )
    times = run_times_s(workload, "give a log or a workload of delays")
    sizes = np.array([job.num_hosts for job in workload.jobs])
    return float((times * sizes).sum() / (machine * span))


def loaded(workload: Workload, factor: float, by: str = "arrivals") -> Workload:
    """The workload at ``factor`` times its load.

    by: ``arrivals``, the gaps between submissions divided by the factor, run times untouched (hours
    of the day and weeks change their length); ``run-times``, run times and walltimes multiplied.
    Neither is a real log of a busier machine, whose users would behave otherwise; compare both, and
    `resampled`. Raises WorkloadError for an unknown way or a factor out of range.
    """
    if by not in LOAD_KNOBS:
        raise WorkloadError(f"load by '{by}' is unknown; use one of {', '.join(LOAD_KNOBS)}")
    _check("factor", factor)
    if by == "arrivals":
        first = workload.jobs[0].submit_time_s if workload.jobs else 0.0
        jobs = tuple(
            replace(job, submit_time_s=first + (job.submit_time_s - first) / factor)
            for job in workload.jobs
        )
        return workload.with_jobs(jobs, f"arrivals are {factor:g} times as fast")
    change = _longer(factor)
    jobs = tuple(
        replace(
            job,
            work=change(job.work),
            profile=f"{job.profile}*{factor:g}",
            walltime_s=None if job.walltime_s is None else job.walltime_s * factor,
        )
        for job in workload.jobs
    )
    return workload.with_jobs(jobs, f"run times and walltimes multiplied by {factor:g}")


def _longer(factor: float) -> Callable[[Work], Work]:
    """The same work ``factor`` times as long, each work made once."""
    known: dict[int, Work] = {}

    def simple(work: Work) -> Work:
        if isinstance(work, DelayWork):
            return DelayWork(work.delay_s * factor)
        return work.divided(1 / factor, 1 / factor)

    def change(work: Work) -> Work:
        if id(work) not in known:
            known[id(work)] = work.mapped(simple)
        return known[id(work)]

    return change


def _check(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise WorkloadError(f"the {name} is {value:g}; give a positive, finite number")
