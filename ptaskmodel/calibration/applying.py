"""A calibration laid on tasks and jobs: runs of the calibrated application need more."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ptaskmodel.calibration.calibration_file import read_calibration
from ptaskmodel.calibration.measurements import MeasurementError
from ptaskmodel.calibration.results import Calibration
from ptaskmodel.workload.jobs import Workload
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import Work

if TYPE_CHECKING:
    from ptaskmodel.platform import Platform

# Of a parallel task.
PARAMETERS = ("network_efficiency", "compute_efficiency", "competitors")


def apply(
    calibration: Calibration | str | Path,
    platform: Platform,
    tasks: Iterable[Task],
    group: Mapping[str, str] | None = None,
) -> tuple[Platform, list[Task]]:
    """The platform and the tasks as the calibration sees them.

    Tasks without ``competitors`` are runs of the calibrated application: their flops are divided
    by its compute efficiency, their bytes by its network efficiency, and they compete as its
    number of competitors. Tasks with ``competitors`` are interference and stay as they are, and so
    does the platform: an efficiency is a fact about the application, and dividing its amounts is
    the same as multiplying what it gets.

    calibration: an object or a file written by ``ptaskmodel calibrate --model ptask``; group: the
    labels that choose one of its groups (not needed if it has one).
    Raises MeasurementError for a calibration of rates or an ambiguous group.
    """
    network, compute, competitors = _parameters(calibration, group)
    calibrated = []
    for task in tasks:
        if task.competitors is None:
            work = task.work.divided(compute, network)
            task = dataclasses.replace(task, work=work, competitors=competitors)
        calibrated.append(task)
    return platform, calibrated


def apply_to_jobs(
    calibration: Calibration | str | Path,
    workload: Workload,
    group: Mapping[str, str] | None = None,
) -> Workload:
    """The workload as the calibration sees it, with a note of how many jobs it changed.

    Jobs that are parallel tasks, without ``competitors``, are runs of the calibrated application
    (see `apply`); delays, and jobs with ``competitors``, stay as they are.

    Raises MeasurementError as `apply` does, and if no job is one; WorkloadError for traces.
    """
    network, compute, competitors = _parameters(calibration, group)
    works: dict[int, Work] = {}
    jobs, changed = [], 0
    others = {job.profile for job in workload.jobs if job.competitors is not None}
    for job in workload.jobs:
        if job.competitors is None and job.work.duration_s is None:
            work = works.get(id(job.work))
            if work is None:
                work = works[id(job.work)] = job.work.divided(compute, network)
            name = f"{job.profile}@calibrated" if job.profile in others else job.profile
            job = dataclasses.replace(job, work=work, profile=name, competitors=competitors)
            changed += 1
        jobs.append(job)
    if not changed:
        raise MeasurementError(
            "calibration: no job of the workload is a parallel task without competitors (delays "
            "stay as they are), so it changes nothing; leave it out"
        )
    note = f"calibrated: {changed} jobs, each counts for {competitors:.4g} competitors"
    return workload.with_jobs(tuple(jobs), note)


def _parameters(
    calibration: Calibration | str | Path, group: Mapping[str, str] | None
) -> tuple[float, float, float]:
    """The efficiencies of network and compute, and how many competitors it counts for."""
    found = calibration if isinstance(calibration, Calibration) else read_calibration(calibration)
    chosen = found.group(**dict(group or {}))
    missing = [name for name in PARAMETERS if name not in chosen.parameters]
    if found.model != "ptask" or missing:
        raise MeasurementError(
            f"calibration of {chosen.name}: model {found.model!r} has no parameters of a ptask "
            f"({', '.join(missing) or 'it is another model'}); calibrate with --model ptask"
        )
    network, compute, competitors = map(chosen.value, PARAMETERS)
    return network, compute, competitors
