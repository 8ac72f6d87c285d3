"""One run of the study of redirection: EASY, or redirection with alpha and theta, on a busy week.

The weeks are the busiest of a log that do not overlap; arrivals of a week with a lower offered load
than asked for are brought closer together until it is reached. The principal group has as many
hosts as the machine of the log; those set apart are added, and EASY has them too. Estimates are the
run times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from ptaskmodel.batch import Easy, Redirection, actual_duration_s, metrics
from ptaskmodel.batch.allocations.rules import FirstFit
from ptaskmodel.batch.compiled.delays import compiled_batch
from ptaskmodel.workload.formats.swf import read_swf, workload_from_swf
from ptaskmodel.workload.jobs import Workload
from ptaskmodel.workload.models import lublin
from ptaskmodel.workload.scaling import WEEK_S, Window, cut_workload, workload_windows

SYNTHETIC = "synthetic"
MOST_DECISIONS = 100_000  # at one date
COLUMNS = ("bounded_slowdown", "waiting_s")


@cache
def log(path: str) -> Workload:
    """The jobs of a log."""
    if path == SYNTHETIC:
        return lublin(8000, 128, 7, pace=1.3, walltime_factor=2.0)
    whole = workload_from_swf(read_swf(path))
    if whole.num_hosts is None:  # a header without MaxProcs: the largest job had all of it
        return replace(whole, num_hosts=max(job.num_hosts for job in whole.jobs))
    return whole


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


def enlarged(hosts: int, policy: Redirection) -> int:
    """The hosts of a machine whose principal group has so many."""
    whole = hosts
    while (missing := hosts - policy.groups(whole)[0].bit_count()) > 0:
        whole += missing
    return whole


def one_run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics of EASY (theta 0), or of redirection, on the week of that rank; 0 jobs: none."""
    windows = busiest_weeks(parameters["log"], parameters["weeks"], parameters["least_load"])
    if parameters["week"] >= len(windows):
        return {"jobs": {"all": 0}}
    window = windows[parameters["week"]]
    jobs, load = week(parameters, window)
    assert jobs.num_hosts is not None
    theta = parameters["theta"]
    redirection = Redirection(parameters["alpha"], theta, redirected=parameters["redirected"])
    hosts = enlarged(jobs.num_hosts, redirection)
    batch = compiled_batch(
        jobs.jobs,
        hosts,
        redirection if theta else Easy(),
        FirstFit(),
        estimate=actual_duration_s,
        limited=True,
        most_decisions=MOST_DECISIONS,
    )
    assert batch is not None
    schedule = batch.run()
    assert schedule is not None
    found = metrics(schedule)
    return {
        "jobs": found["jobs"],
        "day": window.start_s / 86400,
        "load": load,
        "utilisation": found["utilisation"],
        **{name: found[name] for name in COLUMNS},
    }
