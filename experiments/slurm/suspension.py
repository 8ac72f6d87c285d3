"""Suspend/resume by two partitions against backfilling: the relations of the thesis.

Barberato 2018: priority for jobs at random (20 %) or of many nodes (700 of 3000), by a partition
that is first in the queue (bf), or that suspends the other (sr). All policies on the same orders.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from common import Row, configuration, evenly, measures

from ptaskmodel.slurm.conf.facts import Conf
from ptaskmodel.slurm.jobs.request import JobRequest
from ptaskmodel.slurm.jobs.submissions import NODES, submissions_of
from ptaskmodel.slurm.run import simulate_slurm
from ptaskmodel.workload.jobs import Workload
from ptaskmodel.workload.sampling import shuffled
from ptaskmodel.workload.works import DelayWork

RANDOM, LARGE = 0.2, 700 / 3000
POLICIES = {
    "bf": ("nobody", False),
    "bf rand": ("random", False),
    "sr rand": ("random", True),
    "bf size": ("size", False),
    "sr size": ("size", True),
}
LONGER = 2.0  # an offered load: are the orders those of a longer queue?
FACTORS = (0.5, 0.1, 0.0625)
EXACT = 16  # s, of limits min: multiples of it stay whole when they are shrunk
# Published orders of the means, smallest first.
ORDERS = {
    "waiting_s": ("bf", "bf rand", "sr rand", "bf size", "sr size"),
    "response_s": ("bf", "bf rand", "sr rand", "bf size", "sr size"),
    "slowdown": ("bf rand", "bf", "sr rand", "bf size", "sr size"),
    "weighted_slowdown": ("bf size", "sr size", "bf", "sr rand", "bf rand"),
}


def conf_of(nodes: int, suspends: bool, scale: float = 1.0, step: int = 1) -> Conf:
    """The thesis' configuration; scale: of all intervals, made multiples of ``step`` s before."""
    interval, resolution, delay, full = (
        max(1, round(step * math.ceil(each / step) * scale)) for each in (30, 120, 10, 60)
    )
    preempts = ["PreemptType=preempt/partition_prio", "PreemptMode=SUSPEND,GANG"] * suspends
    share = " OverSubscribe=FORCE:1" * suspends
    return configuration(
        "SelectType=select/linear",
        f"SchedulerParameters=defer,bf_continue,batch_sched_delay={delay},sched_interval={full},"
        f"bf_resolution={resolution},bf_interval={interval},bf_window=20160",
        "OverTimeLimit=1",
        *preempts,
        f"NodeName=n[1-{nodes}] CPUs=1",
        f"PartitionName=low PriorityTier=10 Nodes=ALL Default=YES{share}",
        f"PartitionName=high PriorityTier=30 Nodes=ALL{share}",
    )


def requests(workload: Workload, conf: Conf, who: str, nodes: int, seed: int) -> list[JobRequest]:
    """The jobs, those with priority in the high partition; limits hold suspended time too."""
    lot = np.random.default_rng((seed, 1)).random(len(workload.jobs)) < RANDOM
    found = []
    for job, lucky in zip(submissions_of(workload, conf, NODES).jobs, lot.tolist(), strict=True):
        high = lucky if who == "random" else who == "size" and job.least_nodes >= LARGE * nodes
        # Nobody asks for nodes of its own: whoever does can neither suspend nor be suspended.
        found.append(replace(job, partitions=("high" if high else "low",), exclusive=None))
    return found


def measured(log: str | Path, nodes: int, count: int, load: float, orders: int) -> list[Row]:
    """A row for each policy and order."""
    whole = evenly(log, count, load, nodes)
    name = str(log) if isinstance(log, str) else log.name.split("-")[0]
    rows = []
    for seed in range(orders):
        workload = shuffled(whole, seed)
        for policy, (who, suspends) in POLICIES.items():
            conf = conf_of(nodes, suspends)
            run = simulate_slurm(conf, requests(workload, conf, who, nodes, seed), compiled=True)
            preempted = sum(job.state == "PREEMPTED" for job in run.jobs)
            rows.append(
                {
                    "log": name,
                    "policy": policy,
                    "order": seed,
                    **measures([run]),
                    "killed_after_suspension": preempted,
                }
            )
    return rows


def relations(rows: list[Row]) -> list[Row]:
    """For each measure: how many of the published inequalities between neighbours hold."""
    found = []
    for log in dict.fromkeys(row["log"] for row in rows):
        means = {
            policy: {
                key: float(
                    np.mean([r[key] for r in rows if (r["log"], r["policy"]) == (log, policy)])
                )
                for key in ORDERS
            }
            for policy in POLICIES
        }
        for key, order in ORDERS.items():
            pairs = list(pairwise(order))
            hold = [means[a][key] < means[b][key] for a, b in pairs]
            fails = [f"{a} < {b}" for (a, b), holds in zip(pairs, hold, strict=True) if not holds]
            found.append(
                {
                    "log": log,
                    "measure": key,
                    "hold": sum(hold),
                    "of": len(hold),
                    "fail": "; ".join(fails),
                }
            )
    return found


def shrunk(log: str | Path, nodes: int, count: int, load: float) -> list[Row]:
    """All times shrunk, alone and with the intervals: waiting over the factor should stay.

    Again where nothing is rounded: limits, intervals and dates are multiples of `EXACT`.
    """
    whole = evenly(log, count, load, nodes)
    kinds = [(1, factor, scale) for factor in (1.0, *FACTORS) for scale in {1.0, factor}]
    kinds += [(EXACT, factor, factor) for factor in (1.0, *FACTORS) if EXACT * factor % 1 == 0]
    kinds.sort(key=lambda kind: (kind[0], -kind[1], -kind[2]))
    rows: list[Row] = []
    for step, factor, scale in kinds:
        conf = conf_of(nodes, False, scale, step)
        jobs = [_shrunk(job, factor, step) for job in requests(whole, conf, "nobody", nodes, 0)]
        row = measures([simulate_slurm(conf, jobs, compiled=True)])
        rows.append(
            {
                "multiples_of": step,
                "factor": factor,
                "intervals": scale,
                "waiting_over_factor_s": row["waiting_s"] / factor,
                "response_over_factor_s": row["response_s"] / factor,
                "slowdown": row["slowdown"],
                "utilisation": row["utilisation"],
            }
        )
    return rows


def _shrunk(job: JobRequest, factor: float, step: int) -> JobRequest:
    """A job with all times times ``factor``; before that multiples of ``step``, if it is not 1."""
    submit_s, run_s = job.submit_s, job.run_s or 0.0
    limit = job.limit_min
    if step > 1:
        submit_s, run_s = step * round(submit_s / step), step * max(1, round(run_s / step))
        limit = limit and step * math.ceil(limit / step)
    return replace(
        job,
        submit_s=submit_s * factor,
        work=DelayWork(run_s * factor),
        limit_min=limit and max(1, round(limit * factor)),
    )


def filled(nodes: int = 16) -> list[Row]:
    """Ten jobs of 60 s that fill the machine, one every 60 s: the starts."""
    conf = configuration(
        "SelectType=select/linear",
        "Epilog=/bin/true",
        f"NodeName=n[1-{nodes}] CPUs=1",
        "PartitionName=p Nodes=ALL Default=YES",
    )
    jobs = [
        JobRequest(
            f"j{k}",
            60.0 * k,
            DelayWork(60.0),
            min_nodes=nodes,
            max_nodes=nodes,
            exclusive="nodes",
            limit_min=2,
        )
        for k in range(10)
    ]
    run = simulate_slurm(conf, jobs)
    first = run.jobs[0].start_s
    published = (0, 60.09, 120.21, 180.32, 240.44, 300.55, 360.65, 420.75, 480.84, 540.95)
    return [
        {"job": k + 1, "start_s": job.start_s - first, "published_s": date}
        for k, (job, date) in enumerate(zip(run.jobs, published, strict=True))
    ]
