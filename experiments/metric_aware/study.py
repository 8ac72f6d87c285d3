"""One run of the study of metric-aware scheduling: balance x window, static or tuned, on a log.

Of each run: mean waiting time, mean bounded slowdown, unfair jobs (by run times and by estimates),
loss of capacity, and the queue over time. The threshold of the queue depth is the mean depth of
balance 1, window 1 (first come first served with EASY). With an allocation, jobs feel contention:
they are parallel tasks on a torus. Other samples of the log, and higher loads, say how much one
sample is worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ptaskmodel.batch import BatchOptions
from ptaskmodel.platform import Platform, Torus
from ptaskmodel.runs.batch import batch_into
from ptaskmodel.runs.scheduling_options import BatchWriting
from ptaskmodel.workload.formats import Cleaning
from ptaskmodel.workload.jobs import Workload
from ptaskmodel.workload.models import lublin
from ptaskmodel.workload.reading import read_workload
from ptaskmodel.workload.scaling import loaded, offered_load

SYNTHETIC = "synthetic"
NOWHERE = "none"  # jobs that are delays, wherever they run
TORUS = (8, 4, 4)
LAST_SAMPLE = 23  # of a log, which ends with it
WRITING = BatchWriting(tau_s=10.0)


@cache
def jobs_of(path: str, count: int, load: float, sample: int) -> Workload:
    """Jobs of a log, brought to at least an offered load; killed at their walltimes.

    sample: 0 begins with the first job, `LAST_SAMPLE` ends with the last; of the model, its seed.
    """
    if path == SYNTHETIC:
        whole, first = lublin(count, 128, 7 + sample, pace=1.3, walltime_factor=2.0), 0
    else:
        whole = read_workload(path, Cleaning())
        first = max(0, len(whole.jobs) - count) * sample // LAST_SAMPLE
    part = whole.with_jobs(whole.jobs[first : first + count])
    found = offered_load(part)
    return part if found >= load else loaded(part, load / found)


@cache
def platform_of(hosts: int, torus: bool) -> Platform:
    build = Platform.build("machine")
    build.cluster(
        "m",
        Torus(TORUS) if torus else hosts,
        prefix="n",
        speed=1e10,
        bandwidth=1.25e9,
        latency=1e-6,
        loopback=5e9,
        loopback_latency=1e-7,
    )
    return build.finish()


@cache
def threshold_s(log: str, jobs: int, load: float, sample: int, backfill: str) -> float:
    """The mean depth of the queue with balance 1, window 1; a second where nobody ever waits."""
    workload = jobs_of(log, jobs, load, sample)
    assert workload.num_hosts is not None
    given = {"balance": 1.0, "window": 1, "backfill": backfill}
    options = BatchOptions(policy="metric-aware", policy_options=given)
    run = batch_into(None, platform_of(workload.num_hosts, False), workload, options, WRITING)
    return max(run.summary["queue_depth_s"]["sampled_mean"], 1.0)


def one_run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The measures of one configuration on one log."""
    source = tuple(parameters[name] for name in ("log", "jobs", "load", "sample"))
    workload = jobs_of(*source)
    contention = parameters["allocation"] != NOWHERE
    hosts = workload.num_hosts
    assert hosts is not None
    platform = platform_of(hosts, contention)
    if contention:
        limit = len(platform.hosts)
        workload = workload.with_jobs(tuple(j for j in workload.jobs if j.num_hosts <= limit))
    tuned = {"adaptive": parameters["adaptive"]}
    if parameters["adaptive"] in ("balance", "both"):
        tuned["threshold_s"] = threshold_s(*source, parameters["backfill"])
    options = BatchOptions(
        policy="metric-aware",
        policy_options={
            "balance": parameters["balance"],
            "window": parameters["window"],
            "backfill": parameters["backfill"],
            **tuned,
        },
        allocation=parameters["allocation"] if contention else "first-fit",
        profiles="ptask" if contention else "as-given",
        ratio=1.0,
        estimates=parameters["estimates"] or None,
        fairness=None if contention or parameters["sample"] or parameters["load"] else "both",
    )
    run = batch_into(None, platform, workload, options, WRITING)
    summary = run.summary
    kept = {
        "jobs": summary["jobs"],
        "waiting_s": summary["waiting_s"]["mean"],
        "bounded_slowdown": summary["bounded_slowdown"]["mean"],
        "loss_of_capacity": summary["loss_of_capacity"],
        "queue_depth_s": summary["queue_depth_s"]["sampled_mean"],
        "utilisation": summary["utilisation"],
        "unfair_jobs": summary.get("unfair_jobs"),
        "contention_slowdown": summary.get("contention_slowdown", {}).get("mean"),
    }
    if parameters["window"] == 1 and not contention:
        from ptaskmodel.batch.queue_metrics import QueueMeasures

        found = QueueMeasures(run.result.schedule).over_time()
        first = int((found.date_s <= found.date_s[0] + 200 * 3600).sum())
        kept["series"] = {
            "hours": ((found.date_s - found.date_s[0]) / 3600)[:first].tolist(),
            "queue_depth_min": (found.queue_depth_s / 60)[:first].tolist(),
            **{
                f"utilisation_{hours}h": values[:first].tolist()
                for hours, values in found.utilisation.items()
            },
        }
    return kept
