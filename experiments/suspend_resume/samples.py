"""The workloads of the study: samples of logs, their orders, a huge job, and who has priority."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from ptaskmodel.workload.formats import Cleaning
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.models import lublin
from ptaskmodel.workload.reading import read_workload
from ptaskmodel.workload.sampling import sampled, shuffled
from ptaskmodel.workload.scaling import loaded, offered_load, shrunk
from ptaskmodel.workload.works import DelayWork

RANDOM_SHARE = 0.2  # of the jobs
# Shares of the machine from which on a job is large: in most parts, and in the headline.
LARGE, HEADLINE = 700 / 3000, 3800 / 57600
# Processors of a node, by the beginning of a log's name: the headline is on whole nodes.
NODES = {"CEA-Curie": 16, "RICC": 8, "SDSC-BLUE": 8}
WORK_RATIOS = (0.5, 0.75, 1.0, 1.5, 2.0)  # times the ratio of the other samples
SYNTHETIC = "synthetic"
HUGE = "huge"  # the id of that job


@cache
def log_of(path: str, count: int, processors: int = 1) -> Workload:
    """All jobs of a log, or so many of the model. processors: of the log, for each host."""
    if path == SYNTHETIC:
        return lublin(count, 64, 7, walltime_factor=2.0)
    log = read_workload(path, Cleaning(processors))
    if log.num_hosts is None:  # a header without MaxProcs: the largest job had all of it
        return replace(log, num_hosts=max(job.num_hosts for job in log.jobs))
    return log


@cache
def whole_of(path: str, count: int, target: float) -> Workload:
    """The first jobs of a log, spaced evenly, at the offered load."""
    log = log_of(path, count)
    return evenly(log.with_jobs(log.jobs[:count]), target)


@cache
def headline_of(path: str, count: int, target: float) -> Workload:
    """A sample by work of a whole log on nodes, spaced evenly, at the offered load."""
    log = log_of(path, count, processors_of(path))
    return evenly(sampled(log, max(1.0, len(log.jobs) / count), method="work"), target)


def processors_of(path: str) -> int:
    """The processors of a node of the machine of a log."""
    name = path.rpartition("/")[2]
    return next((each for start, each in NODES.items() if name.startswith(start)), 1)


def evenly(log: Workload, target: float) -> Workload:
    """The jobs evenly spaced, at the offered load."""
    jobs = log.jobs
    dates = np.linspace(0.0, jobs[-1].submit_time_s, len(jobs)).tolist()
    even = log.with_jobs(
        tuple(replace(job, submit_time_s=date) for job, date in zip(jobs, dates, strict=True))
    )
    return loaded(even, target / offered_load(even))


def made(parameters: Mapping[str, Any]) -> Workload:
    """The jobs of a run, before anybody has priority."""
    if parameters["part"] == "headline":
        given = parameters["log"], parameters["headline"], parameters["headline_load"]
        return shuffled(headline_of(*given), parameters["seed"])
    load = parameters["queue_load" if parameters["part"] == "queue" else "load"]
    whole = whole_of(parameters["log"], parameters["whole"], load)
    if parameters["part"] == "whole":
        return whole
    kept = min(parameters["jobs"], len(whole.jobs))
    ratio = len(whole.jobs) / kept
    if parameters["part"] == "systematic":
        return sampled(whole, ratio, offset=int(parameters["seed"] * ratio / 5))
    if parameters["part"] in ("work", "work orders"):
        chosen = max(1.0, ratio * WORK_RATIOS[parameters["seed"]])
        return sampled(whole, chosen, method="work")
    found = shuffled(sampled(whole, ratio, method="work"), parameters["seed"])
    return shrunk(found, parameters["factor"]) if parameters["part"] == "shrunk" else found


def with_huge(workload: Workload, share: float) -> Workload:
    """One job more, submitted in the middle: a share of the machine for a 50th of the time."""
    assert workload.num_hosts is not None
    first, last = workload.jobs[0].submit_time_s, workload.jobs[-1].submit_time_s
    lasts = (last - first) / 50
    huge = Job(
        HUGE,
        (first + last) / 2,
        math.ceil(share * workload.num_hosts),
        "huge",
        DelayWork(lasts),
        2 * lasts,
    )
    jobs = sorted((*workload.jobs, huge), key=lambda job: job.submit_time_s)
    return workload.with_jobs(tuple(jobs))


def with_priority(workload: Workload, who: str, seed: int, large: float = LARGE) -> Workload:
    """Each job with its priority, 1 or 0, in a field.

    who: random; size, from a share ``large`` of the hosts on; or the id of the only such job.
    """
    assert workload.num_hosts is not None
    jobs = workload.jobs
    first = np.array([job.num_hosts for job in jobs]) >= large * workload.num_hosts
    if who == "random":
        first = np.random.default_rng((seed, 1)).random(len(jobs)) < RANDOM_SHARE
    elif who == HUGE:
        first = np.array([job.id == HUGE for job in jobs])
    return workload.with_jobs(
        tuple(
            replace(job, extra={"priority": int(own)})
            for job, own in zip(jobs, first.tolist(), strict=True)
        )
    )


def likeness(workload: Workload, whole: Workload) -> dict[str, float]:
    """Host seconds a job over those of the whole, %; largest difference of the shares of sizes."""
    sizes, all_sizes = (np.sort([j.num_hosts for j in each.jobs]) for each in (workload, whole))
    asked, all_asked = (
        np.mean([j.num_hosts * (j.work.duration_s or 0.0) for j in each.jobs])
        for each in (workload, whole)
    )
    shares, all_shares = (
        np.searchsorted(each, np.unique(all_sizes), side="right") / len(each)
        for each in (sizes, all_sizes)
    )
    return {
        "work_kept": float(100 * asked / all_asked),
        "sizes_off": float(100 * np.abs(shares - all_shares).max()),
    }
