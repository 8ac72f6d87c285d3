"""The table and pictures of the study of job profiles, of campaigns that were run.

python experiments/job_profiles/tables.py RUNS... -o results/job_profiles
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from figures import draw_all

from ptaskmodel.campaign import Finding, between, told_campaigns, write_findings
from ptaskmodel.files import whole_file

# What was measured of Batsim, and the longest of the times published, s.
TRACES, BATSIM_S = (1024, "trace", "first-fit"), 175.0


def write_table(
    path: Path, runs: Mapping[str, Mapping[str, Any]], results: Mapping[str, Any]
) -> None:
    """One line a combination, means over the seeds."""
    groups: dict[tuple, list[Any]] = {}
    for name, parameters in runs.items():
        key = (parameters["jobs"], parameters["profiles"], parameters["allocation"])
        groups.setdefault(key, []).append(results[name])
    columns = ("execution_s", "waiting_s", "turnaround_s", "utilisation", "makespan_s")
    with whole_file(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        header = ["jobs", "profiles", "allocation", *(f"mean_{c}" for c in columns)]
        writer.writerow([*header, "mean_contention_slowdown", "simulation_s"])
        for key, group in groups.items():
            values = [np.mean([mean_of(r["metrics"], c) for r in group]) for c in columns]
            slowed = [np.mean(r["contention"]) for r in group if r["contention"]]
            simulated = min(r["simulation_s"] for r in group)  # that which was disturbed least
            cells = [f"{value:.6g}" for value in (*values, simulated)]
            # Nothing slows delays.
            cells.insert(-1, f"{np.mean(slowed):.6g}" if slowed else "1")
            writer.writerow([*key, *cells])


def mean_of(metrics: Mapping[str, float], name: str) -> float:
    return metrics.get(f"metrics.{name}.mean", metrics.get(f"metrics.{name}", 0.0))


def findings(runs: Mapping[str, Mapping[str, Any]], results: Mapping[str, Any]) -> list[Finding]:
    """What was published of the study at its size: how long Batsim simulates traces."""
    took_s = [
        results[name]["simulation_s"]
        for name, parameters in runs.items()
        if (parameters["jobs"], parameters["profiles"], parameters["allocation"]) == TRACES
    ]
    if not took_s:
        return []
    what = "time to simulate 1,024 traces on the first free nodes (there 125 to 175 s)"
    cause = "a slow or busy computer"
    return [between(what, -math.inf, BATSIM_S, min(took_s), unit="s", cause=cause)]


def main() -> None:
    campaigns, output = told_campaigns(__doc__)
    wanted, results = {}, {}
    for campaign in campaigns:
        for run, record in campaign.records():
            wanted[run.id] = run.parameters
            numbers = record["metrics"]
            results[run.id] = record["series"] | {
                "metrics": numbers,
                "simulation_s": numbers["simulation_s"],
            }
    write_table(output / "summary.csv", wanted, results)
    for path in draw_all(output, wanted, results):
        print(path)
    print((output / "summary.csv").read_text(), end="")
    if found := findings(wanted, results):  # at the published size
        print(write_findings(output, found))


if __name__ == "__main__":
    main()
