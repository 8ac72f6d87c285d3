"""One run of the study of redirection: EASY, or redirection with alpha and theta, on a busy week.

The weeks are the busiest of a log that do not overlap; arrivals of a week with a lower offered load
than asked for are brought closer together until it is reached. Jobs that would not fit in the
smallest principal group are left out, for EASY too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from ptaskmodel.batch import (
    BatchSimulation,
    Easy,
    Policy,
    Redirection,
    actual_duration_s,
    metrics,
)
from ptaskmodel.workload.formats.swf import read_swf, workload_from_swf
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.models import lublin
from ptaskmodel.workload.transforms.windows import WEEK_S, Window, cut_workload, workload_windows

ALPHAS = (0.1, 0.15, 0.2, 0.25)
SYNTHETIC = "synthetic"
COLUMNS = ("bounded_slowdown", "waiting_s")


@cache
def log(path: str) -> Workload:
    """The jobs of a log, without those that need more than the smallest principal group."""
    if path == SYNTHETIC:
        whole = lublin(8000, 128, 7, pace=1.3, walltime_factor=2.0)
    else:
        whole = workload_from_swf(read_swf(path))
        if whole.num_hosts is None:  # a header without MaxProcs: the largest job had all of it
            whole = replace(whole, num_hosts=max(job.num_hosts for job in whole.jobs))
    assert whole.num_hosts is not None
    limit = whole.num_hosts - int(max(ALPHAS) * whole.num_hosts + 0.5)
    kept = tuple(job for job in whole.jobs if job.num_hosts <= limit)
    return whole.with_jobs(kept)


@cache
def busiest_weeks(path: str, count: int, least: float) -> list[Window]:
    """The weeks of most work, at least so loaded, no two of which overlap, by date."""
    found = workload_windows(log(path), min_utilisation=least)
    chosen: list[Window] = []
    for window in sorted(found, key=lambda w: (-w.utilisation, w.start_s)):
        if all(abs(window.start_s - other.start_s) >= WEEK_S for other in chosen):
            chosen.append(window)
    return sorted(chosen[:count], key=lambda window: window.start_s)


def week(parameters: Mapping[str, Any], window: Window) -> tuple[Workload, float]:
    """The jobs of a week and their offered load, not less than asked for."""
    whole = log(parameters["log"])
    start = window.start_s
    piece = cut_workload(whole, Window(start, start + WEEK_S, 0.0, 0))
    assert piece.num_hosts is not None
    work = sum(actual_duration_s(job) * job.num_hosts for job in piece.jobs)
    load = work / (piece.num_hosts * WEEK_S)
    pace = max(1.0, parameters["load"] / load)
    jobs = tuple(replace(job, submit_time_s=job.submit_time_s / pace) for job in piece.jobs)
    return piece.with_jobs(jobs), load * pace


def believed_s(job: Job) -> float:
    """The walltime where the log has it, else the run time."""
    return actual_duration_s(job) if job.walltime_s is None else job.walltime_s


def one_run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics of EASY (alpha 0), or of redirection, on the week of that rank; 0 jobs: none."""
    windows = busiest_weeks(parameters["log"], parameters["weeks"], parameters["least_load"])
    if parameters["week"] >= len(windows):
        return {"jobs": {"all": 0}}
    window = windows[parameters["week"]]
    jobs, load = week(parameters, window)
    assert jobs.num_hosts is not None
    policy: Policy = Easy()
    if parameters["alpha"]:
        policy = Redirection(parameters["alpha"], parameters["theta"])
    schedule = BatchSimulation(jobs.jobs, jobs.num_hosts, policy, estimate=believed_s).run()
    found = metrics(schedule)
    return {
        "jobs": found["jobs"],
        "day": window.start_s / 86400,
        "load": load,
        "utilisation": found["utilisation"],
        **{name: found[name] for name in COLUMNS},
    }
