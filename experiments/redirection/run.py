"""Redirection against EASY on busy weeks of logs: does moving long jobs away help the short ones?

For every share alpha of the redirection group and every threshold theta, and for EASY alone on the
whole machine, each week is scheduled with delays. The weeks are the busiest of the logs that do not
overlap; arrivals of a week with a lower offered load than ``--load`` are brought closer together
until it is reached. Jobs that would not fit in the smallest principal group are left out, for EASY
too. Every finished run is kept: a second start, after a kill too, goes on from there.

    python experiments/redirection/run.py --logs ../shared/data/swf -o results/redirection

Without ``--logs``, a log of the Lublin-Feitelson model stands in for the real ones.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ptaskmodel.batch import (
    BatchSimulation,
    Easy,
    Policy,
    Redirection,
    actual_duration_s,
    metrics,
    run_campaign,
)
from ptaskmodel.workload.formats.swf import read_swf, workload_from_swf
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.models.lublin import lublin
from ptaskmodel.workload.transforms.windows import WEEK_S, Window, cut_workload, workload_windows

ALPHAS = (0.1, 0.15, 0.2, 0.25)
THETAS = (1, 2, 5, 10, 15, 25, 50, 100, 125)
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


def busiest_weeks(path: str, count: int, least: float) -> list[Window]:
    """The weeks of most work, at least so loaded, no two of which overlap, by date."""
    found = workload_windows(log(path), min_utilisation=least)
    chosen: list[Window] = []
    for window in sorted(found, key=lambda w: (-w.utilisation, w.start_s)):
        if all(abs(window.start_s - other.start_s) >= WEEK_S for other in chosen):
            chosen.append(window)
    return sorted(chosen[:count], key=lambda window: window.start_s)


def week(parameters: Mapping[str, Any]) -> tuple[Workload, float]:
    """The jobs of a week and their offered load, not less than asked for."""
    whole = log(parameters["log"])
    start = parameters["start_s"]
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
    """The metrics of one policy on one week."""
    jobs, load = week(parameters)
    assert jobs.num_hosts is not None
    policy: Policy = Easy()
    if parameters["alpha"] is not None:
        policy = Redirection(
            parameters["alpha"], parameters["theta"], conflict=parameters["conflict"]
        )
    schedule = BatchSimulation(jobs.jobs, jobs.num_hosts, policy, estimate=believed_s).run()
    found = metrics(schedule)
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
                kind = "easy" if alpha is None else f"alpha_{alpha}_theta_{theta}"
                wanted[f"{stem}_{window.start_s / 86400:.0f}_{kind}"] = {
                    "log": path,
                    "start_s": window.start_s,
                    "load": given.load,
                    "alpha": alpha,
                    "theta": theta,
                    "conflict": given.conflict,
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
        "--min-utilisation", type=float, default=0.0, help="of a week, by the work submitted (0)"
    )
    parser.add_argument("--alphas", type=float, nargs="+", default=ALPHAS, help="(all)")
    parser.add_argument("--thetas", type=int, nargs="+", default=THETAS, help="(all)")
    parser.add_argument("--conflict", default="counter", help="which job goes first (counter)")
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
        chosen = [row for row in rows if row["alpha"] == alpha]
        for name in ("mean_bounded_slowdown", "mean_waiting_s"):
            values = [r[name] / r[f"{name}_easy"] for r in chosen if r[f"{name}_easy"] > 0]
            print(f"alpha {alpha}: median {name} over EASY's {np.median(values):.3f}")
    for name in dict.fromkeys(row["log"] for row in rows):
        print(best(name, [row for row in rows if row["log"] == name]))
    return 0


def best(name: str, rows: list[dict[str, Any]]) -> str:
    """The parameters of least mean bounded slowdown over the weeks, against EASY's."""
    means = {}
    for key in {(row["alpha"], row["theta"]) for row in rows}:
        own = [row for row in rows if (row["alpha"], row["theta"]) == key]
        gains = [1 - r["mean_bounded_slowdown"] / r["mean_bounded_slowdown_easy"] for r in own]
        means[key] = float(np.mean(gains)), sum(gain > 0 for gain in gains), len(own)
    (alpha, theta), (gain, better, weeks) = max(means.items(), key=lambda one: (one[1], one[0]))
    return (
        f"{name}: best alpha {alpha}, theta {theta}: mean bounded slowdown {100 * gain:+.1f} % "
        f"against EASY's, better in {better} of {weeks} weeks"
    )


if __name__ == "__main__":
    sys.exit(main())
