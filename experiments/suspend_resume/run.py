"""Suspend/resume against first come first served with backfilling, on samples of public logs.

Of each log the first jobs are spaced evenly at an offered load, and a sample of them (by work) is
shuffled several times, as the published study does. Every order is scheduled by backfilling without
priorities (bf), with priority for jobs of random choice or of many hosts (bf rand, bf size: they
come first in the queue), and with those pushing the others aside (sr rand, sr size:
suspend/resume). Then: one huge job in the middle; other samples; all times shrunk; and jobs that
feel contention, as parallel tasks on a torus. Every finished run is kept: a second start, after a
kill too, goes on from there.

    python experiments/suspend_resume/run.py --logs ../shared/data/swf -o results/suspend_resume

``--logs`` names a directory, or logs one by one. A workload of the Lublin-Feitelson model is always
among them.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from samples import SYNTHETIC, WORK_RATIOS, likeness, made, whole_of, with_huge, with_priority

from ptaskmodel.batch import (
    BatchOptions,
    BatchSimulation,
    Easy,
    Plan,
    Policy,
    Preemptive,
    Schedule,
    job_times,
    load,
    machine_of,
    metrics,
    run_campaign,
    walltime_or_inf,
)
from ptaskmodel.platform import Platform, Torus

# Who has priority, and whether by suspending the others.
POLICIES = {
    "bf": ("nobody", False),
    "bf rand": ("random", False),
    "sr rand": ("random", True),
    "bf size": ("size", False),
    "sr size": ("size", True),
}
FACTORS = (0.5, 0.1, 0.08, 0.0625)
MOST_HOSTS = 128  # of a machine that is simulated with contention
MEASURES = ("waiting_s", "response_s", "slowdown", "weighted_slowdown", "utilisation")


@cache
def torus(hosts: int) -> Platform:
    """A torus of so many hosts, as near to a cube as can be."""
    x = max(k for k in range(1, round(hosts ** (1 / 3)) + 1) if hosts % k == 0)
    y = max(k for k in range(1, math.isqrt(hosts // x) + 1) if hosts // x % k == 0)
    build = Platform.build("machine")
    build.cluster(
        "m",
        Torus((hosts // x // y, y, x)),
        prefix="n",
        speed=1e10,
        bandwidth=1.25e9,
        latency=1e-6,
        loopback=5e9,
        loopback_latency=1e-7,
    )
    return build.finish()


def policy_of(name: str) -> Policy:
    who, suspends = POLICIES[name]
    if suspends:
        return Preemptive(field="priority")
    return Easy() if who == "nobody" else Easy(order=lambda job: -job.extra["priority"])


def one_run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The measures of one policy on one order of one sample."""
    workload = made(parameters)
    if parameters["part"] == "huge":
        workload = with_huge(workload, parameters["huge"])
    workload = with_priority(workload, POLICIES[parameters["policy"]][0], parameters["seed"])
    policy = policy_of(parameters["policy"])
    assert workload.num_hosts is not None
    alone = None
    if parameters["part"] == "contention":
        machine = machine_of(torus(workload.num_hosts))
        options = BatchOptions(profiles="ptask", ratio=1.0, walltimes="ignore")
        plan = Plan(machine, workload, options)
        schedule = BatchSimulation(
            plan.workload.jobs,
            machine.capacities,
            policy,
            execution=plan.execution,
            estimate=plan.estimate,
            limited=plan.limited,
        ).run()
        alone = np.array(plan.alone_s(list(schedule.ended())))
    else:
        schedule = BatchSimulation(
            workload.jobs, workload.num_hosts, policy, estimate=walltime_or_inf
        ).run()
    found = measured(schedule, alone)
    found |= likeness(
        workload, whole_of(parameters["log"], parameters["whole"], parameters["load"])
    )
    found["high"] = sum(job.extra["priority"] for job in workload.jobs)
    if parameters["part"] == "huge":
        found["around"] = around_huge(schedule)
    return found


def measured(schedule: Schedule, alone_s: np.ndarray | None) -> dict[str, Any]:
    """The published measures: means over jobs; run times are those alone, if contention counts."""
    times = job_times(schedule)
    base = times.execution_s if alone_s is None else alone_s
    slowdown = times.turnaround_s / base
    return {
        "jobs": len(base),
        "waiting_s": float(times.waiting_s.mean()),
        "response_s": float(times.turnaround_s.mean()),
        "slowdown": float(slowdown.mean()),
        "weighted_slowdown": float((slowdown * times.asked_hosts).mean()),
        "utilisation": metrics(schedule)["utilisation"],
        "suspended_s": float(times.suspended_s.mean()),
        "suspended_jobs": int((times.suspended_s > 0).sum()),
        "contention": float((times.execution_s / base).mean()),
    }


def around_huge(schedule: Schedule) -> dict[str, Any]:
    """The huge job's dates, the use of the machine around them, and whom it pushed aside."""
    huge = next(attempt for attempt in schedule.final if attempt.job.id == "huge")
    assert huge.start_s is not None
    found = load(schedule)
    before = int(np.searchsorted(found.date_s, huge.start_s)) - 1
    pushed = sum(
        attempt.job.num_hosts
        for attempt in schedule.attempts
        if any(since == huge.start_s for since, _ in attempt.suspensions)
    )
    return {
        "submit_s": huge.job.submit_time_s,
        "start_s": huge.start_s,
        "end_s": huge.end_s,
        "hosts": schedule.num_hosts,
        "pushed_hosts": pushed,
        "needed_hosts": huge.job.num_hosts - (schedule.num_hosts - int(found.used_hosts[before])),
        "dates": found.date_s.tolist(),
        "used": found.used_hosts.tolist(),
    }


def campaign(given: argparse.Namespace, logs: list[str]) -> dict[str, dict[str, Any]]:
    """Name and parameters of every run."""
    wanted = {}

    def add(log: str, part: str, policy: str, seed: int, **more: Any) -> None:
        parameters = {
            "log": log,
            "whole": given.ratio * given.jobs,
            "jobs": given.jobs,
            "load": given.load,
            "part": part,
            "policy": policy,
            "seed": seed,
            "factor": None,
            "huge": given.huge,
            **more,
        }
        factor = parameters["factor"]
        kind = part if factor is None else f"{part}{factor:g}"
        name = f"{stem_of(log)}_{kind}_{policy.replace(' ', '-')}_{seed}"
        wanted[name] = parameters

    for log in logs:
        hosts = whole_of(log, given.ratio * given.jobs, given.load).num_hosts
        assert hosts is not None
        add(log, "whole", "bf", 0)
        for seed in range(given.shuffles):
            for policy in POLICIES:
                add(log, "shuffled", policy, seed)
            for policy in ("bf size", "sr size"):
                add(log, "huge", policy, seed)
        for seed in range(len(WORK_RATIOS)):
            add(log, "systematic", "bf", seed)
            add(log, "work", "bf", seed)
        for factor in FACTORS:
            for policy in ("bf", "sr size"):
                add(log, "shrunk", policy, 0, factor=factor)
        if hosts <= MOST_HOSTS:
            for seed in range(min(3, given.shuffles)):
                for policy in POLICIES:
                    few = max(1, int(given.jobs * given.contending))
                    add(log, "contention", policy, seed, jobs=few)
    return wanted


def stem_of(log: str) -> str:
    return Path(log).name.split(".")[0]


def row_of(parameters: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: parameters[key] for key in ("part", "policy", "seed", "factor")}
    told = {key: value for key, value in found.items() if key != "around"}
    return {"log": stem_of(parameters["log"]), **kept, **told}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=Path, nargs="+", help="SWF logs, or a directory of them")
    parser.add_argument("-o", "--output", type=Path, default=Path("results/suspend_resume"))
    parser.add_argument("--jobs", type=int, default=1000, help="of each sample, about (1000)")
    parser.add_argument("--ratio", type=int, default=10, help="jobs of the log for each (10)")
    parser.add_argument("--shuffles", type=int, default=5, help="orders of each sample (5)")
    parser.add_argument("--load", type=float, default=0.9, help="offered load (0.9)")
    parser.add_argument("--huge", type=float, default=0.35, help="the huge job's hosts (0.35)")
    parser.add_argument(
        "--contending", type=float, default=0.3, help="share of the jobs with contention (0.3)"
    )
    parser.add_argument("--processes", type=int, help="at once (default: one a core)")
    given = parser.parse_args()
    logs = [SYNTHETIC]
    if given.logs:
        logs += [
            str(path)
            for place in given.logs
            for path in ([place] if place.is_file() else sorted(place.glob("*.swf*")))
        ]
    if given.logs and len(logs) == 1:
        raise SystemExit(f"{given.logs[0]}: no log (*.swf, *.swf.gz) is there")
    wanted = campaign(given, logs)

    def tell(done: int, total: int, name: str) -> None:
        if done % 20 == 0 or done == total:
            print(f"{done}/{total} {name}", file=sys.stderr)

    results = run_campaign(
        given.output / "runs", wanted, one_run, processes=given.processes, tell=tell
    )
    rows = [row_of(wanted[name], results[name]) for name in wanted]
    with (given.output / "runs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    around = {
        (stem_of(p["log"]), p["policy"], p["seed"]): results[name]["around"]
        for name, p in wanted.items()
        if p["part"] == "huge"
    }
    from figures import draw
    from relations import report, summary

    for path in draw(given.output, rows, around):
        print(path)
    claims = {}
    for log in dict.fromkeys(row["log"] for row in rows):
        own = {key[1:]: found for key, found in around.items() if key[0] == log}
        text, claims[log] = report([row for row in rows if row["log"] == log], own)
        print(text)
    print(summary(claims))
    return 0


if __name__ == "__main__":
    sys.exit(main())
