"""One run of the study of robustness: a policy and an allocation in one of several worlds.

Jobs of the Lublin-Feitelson model are parallel tasks on Graphene. What conclusions should not
depend on is varied: the workload drawn, the solver, how well users estimate (run times times a
number drawn from 1 to F, the f-model of Mu'alem and Feitelson), and the order in which an
allocation takes hosts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ptaskmodel.batch import BatchOptions
from ptaskmodel.platform import load_platform
from ptaskmodel.runs.batch import batch_into
from ptaskmodel.runs.scheduling_options import BatchWriting
from ptaskmodel.workload.jobs import Workload
from ptaskmodel.workload.models import lublin
from ptaskmodel.workload.scaling import loaded, offered_load

PLATFORM = Path(__file__).resolve().parents[2] / "platforms" / "graphene.xml"
HOSTS = 144
# Policy, order of the queue.
POLICIES = {"fcfs": ("fcfs", "fcfs"), "easy": ("easy", "fcfs"), "easy-sjf": ("easy", "sjf")}


@cache
def platform() -> Any:
    return load_platform(PLATFORM)


@cache
def jobs_of(count: int, seed: int, load: float, most: float) -> Workload:
    """A workload at an offered load, its walltimes up to so many times the run times."""
    whole = lublin(count, HOSTS, seed, walltime_factor=1.0)
    made = loaded(whole, load / offered_load(whole))
    factors = 1.0 + (most - 1.0) * np.random.default_rng((seed, 1)).random(count)
    return made.with_jobs(
        tuple(
            replace(job, walltime_s=job.walltime_s * factor)
            for job, factor in zip(made.jobs, factors.tolist(), strict=True)
        )
    )


def one_run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The measures of a policy and an allocation."""
    seed = parameters["seed"]
    workload = jobs_of(parameters["jobs"], seed, parameters["load"], parameters["estimates_up_to"])
    policy, order = POLICIES[parameters["policy"]]
    options = BatchOptions(
        policy=policy,
        order=order,
        allocation=parameters["allocation"],
        seed=seed,
        estimates="walltime",
        walltimes="ignore",
        profiles="ptask",
        solver=parameters["solver"],
        host_order=parameters["host_order"],
    )
    summary = batch_into(None, platform(), workload, options, BatchWriting(60.0)).summary
    return {
        "bounded_slowdown": summary["bounded_slowdown"]["mean"],
        "waiting_s": summary["waiting_s"]["mean"],
        "turnaround_s": summary["turnaround_s"]["mean"],
        "contention_slowdown": summary["contention_slowdown"]["mean"],
        "makespan_s": summary["makespan_s"],
    }
