"""Redirection against EASY on busy weeks of logs: does moving long jobs away help the short ones?

For every share alpha of the redirection group and every threshold theta, and for EASY alone on the
whole machine, each week is scheduled with delays. Of each log, weeks that were used enough in
reality are taken from the beginning on, none of which overlap, and the busiest of these are kept.
Arrivals of a week with a lower offered load than ``--load`` are brought closer together until it is
reached. Jobs that would not fit in the smallest principal group are left out, for EASY too. With
``--contention`` jobs are parallel tasks that share a torus. Every finished run is kept: a second
start, after a kill too, goes on from there.

    python experiments/redirection/run.py --logs ../shared/data/swf -o results/redirection

Without ``--logs``, a log of the Lublin-Feitelson model stands in for the real ones.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from ptaskmodel.batch import (
    BatchOptions,
    BatchSimulation,
    Easy,
    Policy,
    Redirection,
    actual_duration_s,
    metrics,
    run_batch,
    run_campaign,
)
from ptaskmodel.batch.allocations.first_fit import FirstFit
from ptaskmodel.batch.compiled_loop import compiled_batch
from ptaskmodel.batch.measures import distribution, job_times
from ptaskmodel.batch.schedule import Schedule
from ptaskmodel.batch.simulator import MAX_DECISIONS_AT_A_DATE
from ptaskmodel.platform import Platform, Torus
from ptaskmodel.workload.formats.swf import clean, read_swf, workload_from_swf
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.models.lublin import lublin
from ptaskmodel.workload.transforms.windows import (
    WEEK_S,
    Window,
    cut_workload,
    swf_windows,
    workload_windows,
)

ALPHAS = (0.1, 0.15, 0.2, 0.25)
# With the last nobody is ever redirected: EASY on the principal group alone.
THETAS = (1, 2, 5, 10, 15, 25, 50, 100, 125, inf)
SYNTHETIC = "synthetic"
# Bounded slowdowns of jobs below 60 s and, by its name, below 10 s.
COLUMNS = ("bounded_slowdown", "bounded_slowdown_10", "waiting_s")


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


def busiest_weeks(path: str, count: int, least: float) -> list[Window]:
    """The busiest of the weeks, as many as there are from the first on, that do not overlap.

    Of a real log the utilisation is that of its real start dates.
    """
    whole = log(path)
    if path == SYNTHETIC:
        found = workload_windows(whole, min_utilisation=least)
    else:
        whole_log, hosts = clean(read_swf(path))[0], whole.num_hosts
        found = swf_windows(whole_log, machine_hosts=hosts, min_utilisation=least)
    apart: list[Window] = []
    for window in sorted(found, key=lambda w: w.start_s):
        if not apart or window.start_s - apart[-1].start_s >= WEEK_S:
            apart.append(window)
    chosen = sorted(apart, key=lambda w: (-w.utilisation, w.start_s))[:count]
    return sorted(chosen, key=lambda window: window.start_s)


@lru_cache(maxsize=2)
def week(path: str, start_s: float, least_load: float) -> tuple[Workload, float]:
    """The jobs of a week and their offered load, not less than asked for."""
    piece = cut_workload(log(path), Window(start_s, start_s + WEEK_S, 0.0, 0))
    assert piece.num_hosts is not None
    work = sum(actual_duration_s(job) * job.num_hosts for job in piece.jobs)
    load = work / (piece.num_hosts * WEEK_S)
    pace = max(1.0, least_load / load)
    jobs = tuple(replace(job, submit_time_s=job.submit_time_s / pace) for job in piece.jobs)
    return piece.with_jobs(jobs), load * pace


def believed_s(job: Job) -> float:
    """The walltime where the log has it, else the run time."""
    return actual_duration_s(job) if job.walltime_s is None else job.walltime_s


def scheduled(jobs: Workload, policy: Policy) -> Schedule:
    """The jobs as delays under a policy: by the compiled loop if it can, else by the open one."""
    hosts = jobs.num_hosts
    assert hosts is not None
    compiled = compiled_batch(
        jobs.jobs,
        hosts,
        policy,
        FirstFit(),
        estimate=believed_s,
        limited=True,
        most_decisions=MAX_DECISIONS_AT_A_DATE,
    )
    schedule = None if compiled is None else compiled.run()
    return schedule or BatchSimulation(jobs.jobs, hosts, policy, estimate=believed_s).run()


def torus(hosts: int) -> Platform:
    """Hosts in the most cubic torus of three dimensions that holds just so many."""
    sides = [
        (a, b, hosts // (a * b))
        for a in range(1, hosts + 1)
        if a**3 <= hosts and hosts % a == 0
        for b in range(a, hosts + 1)
        if a * b * b <= hosts and hosts // a % b == 0
    ]
    build = Platform.build("machine")
    build.cluster(
        "m",
        Torus(min(sides, key=max)),
        speed=1e10,
        bandwidth=1.25e9,
        latency=1e-6,
        loopback=5e9,
        loopback_latency=1e-7,
    )
    return build.finish()


def contending(jobs: Workload, parameters: Mapping[str, Any]) -> Schedule:
    """The jobs as parallel tasks, as long communicating as computing when alone, on a torus."""
    chosen: dict[str, Any] = {"policy": "easy"}
    if parameters["alpha"] is not None:
        names = ("alpha", "theta", "conflict")
        chosen = {"policy": "redirection", "policy_options": {n: parameters[n] for n in names}}
    assert jobs.num_hosts is not None
    options = BatchOptions(**chosen, profiles="ptask", ratio=1.0, contention=False)
    return run_batch(torus(jobs.num_hosts), jobs, options).schedule


def one_run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics of one policy on one week."""
    jobs, load = week(parameters["log"], parameters["start_s"], parameters["load"])
    if parameters["contention"]:
        schedule = contending(jobs, parameters)
    elif parameters["alpha"] is None:
        schedule = scheduled(jobs, Easy())
    else:
        alpha, theta = parameters["alpha"], parameters["theta"]
        schedule = scheduled(jobs, Redirection(alpha, theta, conflict=parameters["conflict"]))
    found = metrics(schedule)
    found["bounded_slowdown_10"] = distribution(job_times(schedule).bounded_slowdown(10.0))
    return {
        "jobs": found["jobs"],
        "load": load,
        "utilisation": found["utilisation"],
        **{name: found[name] for name in COLUMNS},
    }


def campaign(given: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Name and parameters of every run."""
    logs = sorted(given.logs.glob("*.swf*")) if given.logs else []
    if given.logs and not logs:
        raise SystemExit(f"{given.logs}: no log (*.swf, *.swf.gz) is there")
    settings = [(None, None), *((alpha, theta) for alpha in given.alphas for theta in given.thetas)]
    wanted = {}
    for path in map(str, logs or [SYNTHETIC]):
        stem = Path(path).name.split(".")[0]
        for window in busiest_weeks(path, given.weeks, given.min_utilisation):
            for alpha, theta in settings:
                kind = "easy" if alpha is None else f"alpha_{alpha}_theta_{theta:g}"
                wanted[f"{stem}_{window.start_s / 86400:.0f}_{kind}"] = {
                    "log": path,
                    "start_s": window.start_s,
                    "load": given.load,
                    "alpha": alpha,
                    "theta": theta,
                    "conflict": given.conflict,
                    "contention": given.contention,
                }
    return wanted


def ratios(
    wanted: Mapping[str, Mapping[str, Any]], results: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """For each run with redirection: its mean and largest values over EASY's on the same week."""
    easy = {
        (p["log"], p["start_s"]): results[name] for name, p in wanted.items() if p["alpha"] is None
    }
    rows = []
    for name, parameters in wanted.items():
        if parameters["alpha"] is None:
            continue
        base, found = easy[parameters["log"], parameters["start_s"]], results[name]
        row = {
            "log": Path(parameters["log"]).name.split(".")[0],
            "day": parameters["start_s"] / 86400,
            "alpha": parameters["alpha"],
            "theta": parameters["theta"],
            "load": found["load"],
            "redirected": found["jobs"]["lost_runs"],
        }
        for column in COLUMNS:
            for key in ("mean", "max"):
                row[f"{key}_{column}"] = found[column][key]
                row[f"{key}_{column}_easy"] = base[column][key]
        rows.append(row)
    return rows


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=Path, help="directory of SWF logs")
    parser.add_argument("-o", "--output", type=Path, default=Path("results/redirection"))
    parser.add_argument("--weeks", type=int, default=8, help="of each log (default: 8)")
    parser.add_argument("--load", type=float, default=0.8, help="least offered load (0.8)")
    parser.add_argument(
        "--min-utilisation", type=float, default=0.0, help="of a week, in reality (0)"
    )
    parser.add_argument("--alphas", type=float, nargs="+", default=ALPHAS, help="(all)")
    parser.add_argument("--thetas", type=float, nargs="+", default=THETAS, help="(all)")
    parser.add_argument("--conflict", default="counter", help="which job goes first (counter)")
    parser.add_argument("--contention", action="store_true", help="parallel tasks on a torus")
    parser.add_argument("--processes", type=int, help="at once (default: one a core)")
    given = parser.parse_args()
    wanted = campaign(given)

    def tell(done: int, total: int, name: str) -> None:
        if done % 50 == 0 or done == total:
            print(f"{done}/{total} {name}", file=sys.stderr)

    results = run_campaign(
        given.output / "runs", wanted, one_run, processes=given.processes, tell=tell
    )
    rows = ratios(wanted, results)
    write_rows(given.output / "runs.csv", rows)
    from figures import draw

    for path in draw(given.output, rows):
        print(path)
    for alpha in given.alphas:
        chosen = [row for row in rows if row["alpha"] == alpha and row["theta"] < inf]
        for name in ("mean_bounded_slowdown", "mean_waiting_s"):
            values = [r[name] / r[f"{name}_easy"] for r in chosen if r[f"{name}_easy"] > 0]
            print(f"alpha {alpha}: median {name} over EASY's {np.median(values):.3f}")
    for name in dict.fromkeys(row["log"] for row in rows):
        print(best(name, [row for row in rows if row["log"] == name]))
    return 0


def best(name: str, rows: list[dict[str, Any]]) -> str:
    """The parameters of least mean bounded slowdown over the weeks, against EASY's.

    And against that of EASY on the principal group alone, if that was run.
    """
    changes = {}
    for key in {(row["alpha"], row["theta"]) for row in rows if row["theta"] < inf}:
        own = [_change(row, row["mean_bounded_slowdown_easy"]) for row in rows if _of(row) == key]
        changes[key] = float(np.mean(own)), sum(change < 0 for change in own), len(own)
    (alpha, theta), (change, better, weeks) = min(changes.items(), key=lambda one: (one[1], one[0]))
    alone = {row["day"]: row["mean_bounded_slowdown"] for row in rows if _of(row) == (alpha, inf)}
    chosen = [row for row in rows if _of(row) == (alpha, theta) and row["day"] in alone]
    text = (
        f"{name}: best alpha {alpha:g}, theta {theta:g}: mean bounded slowdown {change:+.1f} % "
        f"against EASY's, better in {better} of {weeks} weeks"
    )
    if chosen:
        change = float(np.mean([_change(row, alone[row["day"]]) for row in chosen]))
        text += f"; {change:+.1f} % against EASY's on the principal group alone"
    return text


def _of(row: Mapping[str, Any]) -> tuple[float, float]:
    return row["alpha"], row["theta"]


def _change(row: Mapping[str, Any], base: float) -> float:
    """How much larger the mean bounded slowdown of a row is, %."""
    return 100 * (row["mean_bounded_slowdown"] / base - 1)


if __name__ == "__main__":
    sys.exit(main())
