"""Metric-aware scheduling on public logs: balance x window, static and adaptive, with contention.

For each log: every balance in 1, 0.75, 0.5, 0.25, 0 with every window in 1 to 5, then balance,
window and both tuned while the run goes on. Of each run: mean waiting time, mean bounded slowdown,
unfair jobs (by run times and by estimates), loss of capacity, and the queue over time. The
threshold of the queue depth is the mean depth of the run with balance 1, window 1 (first come first
served with EASY). Then the seven configurations of the published table again with jobs that feel
contention: parallel tasks on a torus, on any hosts and on partitions. Every finished run is kept: a
second start, after a kill too, goes on from there.

    python experiments/metric_aware/run.py --logs ../shared/data/swf -o results/metric_aware

Without ``--logs``, a log of the Lublin-Feitelson model stands in for the real ones.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ptaskmodel.batch import BatchOptions, run_campaign
from ptaskmodel.platform import Platform, Torus
from ptaskmodel.results.batches import BatchWriting, batch_into
from ptaskmodel.workload.formats.table import Cleaning
from ptaskmodel.workload.jobs import Workload
from ptaskmodel.workload.models.lublin import lublin
from ptaskmodel.workload.reading import read_workload
from ptaskmodel.workload.transforms.scaling import loaded, offered_load

BALANCES = (1.0, 0.75, 0.5, 0.25, 0.0)
WINDOWS = (1, 2, 3, 4, 5)
ADAPTIVE = ("balance", "window", "both")
# Of the published tables 2 and 3, in their order: (balance, window, adaptive).
TABLE = (
    (1.0, 1, "none"),
    (1.0, 4, "none"),
    (0.5, 1, "none"),
    (0.5, 4, "none"),
    (1.0, 1, "balance"),
    (1.0, 1, "window"),
    (1.0, 1, "both"),
)
SYNTHETIC = "synthetic"
ALLOCATIONS = ("random", "first-fit", "buddy")
TORUS = (8, 4, 4)


@cache
def jobs_of(path: str, count: int, load: float) -> Workload:
    """The first jobs of a log, brought to at least an offered load; killed at their walltimes."""
    if path == SYNTHETIC:
        whole = lublin(count, 128, 7, pace=1.3, walltime_factor=2.0)
    else:
        whole = read_workload(path, Cleaning())
    part = whole.with_jobs(whole.jobs[:count])
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


def one_run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The measures of one configuration on one log."""
    workload = jobs_of(parameters["log"], parameters["jobs"], parameters["load"])
    contention = parameters["allocation"] is not None
    hosts = workload.num_hosts
    assert hosts is not None
    platform = platform_of(hosts, contention)
    if contention:
        limit = len(platform.hosts)
        workload = workload.with_jobs(tuple(j for j in workload.jobs if j.num_hosts <= limit))
    tuned = {"adaptive": parameters["adaptive"]}
    if parameters["adaptive"] in ("balance", "both"):
        tuned["threshold_s"] = parameters["threshold_s"]
    options = BatchOptions(
        policy="metric-aware",
        policy_options={
            "balance": parameters["balance"],
            "window": parameters["window"],
            "backfill": parameters["backfill"],
            **tuned,
        },
        allocation=parameters["allocation"] or "first-fit",
        profiles="ptask" if contention else "as-given",
        ratio=1.0,
        fairness=None if contention else "both",
    )
    run = batch_into(None, platform, workload, options, BatchWriting(tau=10.0))
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
    if parameters["series"]:
        from ptaskmodel.batch.queue_measures import QueueMeasures

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


def name_of(parameters: Mapping[str, Any]) -> str:
    stem = Path(parameters["log"]).name.split(".")[0]
    kind = f"bf{parameters['balance']:g}_w{parameters['window']}_{parameters['adaptive']}"
    where = "" if parameters["allocation"] is None else f"_{parameters['allocation']}"
    return f"{stem}_{kind}{where}"


def configurations(given: argparse.Namespace, log: str) -> list[dict[str, Any]]:
    """The static runs of a log without contention."""
    return [
        {
            "log": log,
            "jobs": given.jobs,
            "load": given.load,
            "balance": balance,
            "window": window,
            "adaptive": "none",
            "backfill": given.backfill,
            "allocation": None,
            "threshold_s": None,
            "series": window == 1,
        }
        for balance in BALANCES
        for window in WINDOWS
        if window == 1 or balance in (1.0, 0.5) or not given.quick
    ]


def tell(done: int, total: int, name: str) -> None:
    print(f"{done}/{total} {name}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=Path, help="directory of SWF logs, or one log")
    parser.add_argument("-o", "--output", type=Path, default=Path("results/metric_aware"))
    parser.add_argument("--jobs", type=int, default=800, help="of each log, the first (800)")
    parser.add_argument("--load", type=float, default=0.0, help="least offered load (0: as it is)")
    parser.add_argument("--backfill", choices=("easy", "conservative"), default="easy")
    parser.add_argument("--quick", action="store_true", help="only balances 1 and 0.5 with windows")
    parser.add_argument("--processes", type=int, help="at once (default: one a core)")
    given = parser.parse_args()
    logs = [SYNTHETIC]
    if given.logs:
        found = [given.logs] if given.logs.is_file() else sorted(given.logs.glob("*.swf*"))
        logs = [str(path) for path in found]
    if not logs:
        raise SystemExit(f"{given.logs}: no log (*.swf, *.swf.gz) is there")
    static = {name_of(p): p for log in logs for p in configurations(given, log)}
    place = given.output / "runs"
    results = run_campaign(place, static, one_run, processes=given.processes, tell=tell)
    more = {}
    for log in logs:
        first = {**static[name_of({**configurations(given, log)[0]})]}
        threshold = results[name_of(first)]["queue_depth_s"]
        adaptive = [{**first, "adaptive": kind, "series": True} for kind in ADAPTIVE]
        contending = [
            {
                **first,
                "balance": b,
                "window": w,
                "adaptive": a,
                "allocation": where,
                "series": False,
            }
            for b, w, a in TABLE
            for where in ALLOCATIONS
        ]
        for parameters in (*adaptive, *contending):
            parameters["threshold_s"] = threshold
            more[name_of(parameters)] = parameters
    results |= run_campaign(place, more, one_run, processes=given.processes, tell=tell)
    wanted = static | more
    rows = [_row(wanted[name], results[name]) for name in wanted]
    with (given.output / "runs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    from figures import draw
    from relations import relations, table

    series = {name: results[name]["series"] for name in wanted if "series" in results[name]}
    for path in draw(given.output, rows, series):
        print(path)
    for log in logs:
        own = [row for row in rows if row["log"] == Path(log).name.split(".")[0]]
        print(table(own))
        print(relations(own))
    (given.output / "series.json").write_text(json.dumps(series))
    return 0


def _row(parameters: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    unfair = found["unfair_jobs"] or {}
    return {
        "log": Path(parameters["log"]).name.split(".")[0],
        "balance": parameters["balance"],
        "window": parameters["window"],
        "adaptive": parameters["adaptive"],
        "allocation": parameters["allocation"] or "",
        "jobs": found["jobs"]["all"],
        "killed": found["jobs"]["killed_at_walltime"],
        "waiting_min": found["waiting_s"] / 60,
        "bounded_slowdown": found["bounded_slowdown"],
        "unfair_by_runtimes": unfair.get("runtimes"),
        "unfair_by_estimates": unfair.get("estimates"),
        "loss_of_capacity": 100 * found["loss_of_capacity"],
        "utilisation": found["utilisation"],
        "contention_slowdown": found["contention_slowdown"],
    }


if __name__ == "__main__":
    sys.exit(main())
