"""What the tests of a real Slurm share: they are left out where none is installed."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.jobs.submissions import read_submissions
from ptaskmodel.slurm.live.programs import LiveFault, built, installed
from ptaskmodel.slurm.live.run import LiveRun, run_live

CONF = """SchedulerType=sched/backfill
SelectType={select}
SlurmdTimeout=60
ReturnToService=1
NodeName=n[1-4] CPUs=4 RealMemory=1000
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE
"""
LINEAR, CORES = "select/linear", "select/cons_tres\nSelectTypeParameters=CR_Core"


@functools.cache
def missing() -> str:
    """Why no real Slurm can run here; empty if it can."""
    try:
        installed()
        built()
    except LiveFault as fault:
        return str(fault)
    return ""


needs_slurm = pytest.mark.skipif(bool(missing()), reason=missing())


def written(place: Path, jobs: str, select: str = LINEAR) -> tuple[Path, Path]:
    """A slurm.conf of four nodes, and a jobs.csv."""
    conf, file = place / "slurm.conf", place / "jobs.csv"
    conf.write_text(CONF.format(select=select))
    file.write_text(jobs)
    return conf, file


def ran(conf: Path, jobs: Path, **options) -> LiveRun:
    return run_live(conf, read_submissions(jobs, read_conf(conf)).jobs, **options)


def dates(run: LiveRun) -> dict[str, tuple[int, int]]:
    """Start and end of each job, s from date 0."""
    t0 = run.phases.t0
    return {job.id: (job.start_s - t0, int(job.end_s) - t0) for job in run.jobs}


def lines(run: LiveRun) -> list[str]:
    """Everything that a run says of its jobs and events."""
    jobs = [
        f"{job.id} {job.submit_s} {job.start_s} {job.end_s} {job.state} {job.by} {job.allocation}"
        for job in run.jobs
    ]
    return [*jobs, *map(repr, run.events)]
