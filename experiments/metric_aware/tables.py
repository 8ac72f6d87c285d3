"""Tables, pictures and published relations of metric-aware scheduling, of campaigns that were run.

python experiments/metric_aware/tables.py RUNS... -o results/metric_aware
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas
from figures import draw
from relations import BASE, findings, table, weighted_gains

from ptaskmodel.campaign import Finding, told_campaigns, write_findings, write_table

# The queue depths that are compared, by the names of their series.
DEPTHS = {"bf1_w1_none": BASE, "bf0.75_w1_none": "BF 0.75, W 1", "bf0.5_w1_none": "BF 0.5, W 1"}


def name_of(parameters: Mapping[str, Any]) -> str:
    stem = Path(parameters["log"]).name.split(".")[0]
    kind = f"bf{parameters['balance']:g}_w{parameters['window']}_{parameters['adaptive']}"
    where = "" if parameters["allocation"] == "none" else f"_{parameters['allocation']}"
    return f"{stem}_{kind}{where}" + (f"_{parameters['sample']}" if parameters["sample"] else "")


def row_of(parameters: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "log": Path(parameters["log"]).name.split(".")[0],
        "sample": parameters["sample"],
        "balance": parameters["balance"],
        "window": parameters["window"],
        "adaptive": parameters["adaptive"],
        "allocation": "" if parameters["allocation"] == "none" else parameters["allocation"],
        "jobs": found["jobs.all"],
        "killed": found["jobs.killed_at_walltime"],
        "waiting_min": found["waiting_s"] / 60,
        "bounded_slowdown": found["bounded_slowdown"],
        "unfair_by_runtimes": found.get("unfair_jobs.runtimes"),
        "unfair_by_estimates": found.get("unfair_jobs.estimates"),
        "loss_of_capacity": 100 * found["loss_of_capacity"],
        "utilisation": found["utilisation"],
        "contention_slowdown": found.get("contention_slowdown"),
    }


def main() -> None:
    campaigns, output = told_campaigns(__doc__)
    made = [
        (run.parameters, record) for campaign in campaigns for run, record in campaign.records()
    ]
    rows = [row_of(parameters, record["metrics"]) for parameters, record in made]
    series = {name_of(p): record["series"] for p, record in made if "series" in record}
    write_table(pandas.DataFrame(rows), output / "runs.csv")
    first = [row for row in rows if not row["sample"]]
    for path in draw(output, first, series):
        print(path)
    found: list[Finding] = []
    for log in dict.fromkeys(row["log"] for row in rows):
        own = [row for row in first if row["log"] == log]
        print(table(own))
        print(weighted_gains(own))
        samples = []
        for sample in dict.fromkeys(row["sample"] for row in rows):
            end = f"_{sample}" if sample else ""
            peaks = {
                name: max(series[f"{log}_{key}{end}"]["queue_depth_min"])
                for key, name in DEPTHS.items()
                if f"{log}_{key}{end}" in series
            }
            of = [row for row in rows if row["log"] == log and row["sample"] == sample]
            samples.append((of, peaks))
        found += findings(samples)
    print(write_findings(output, found))
    (output / "series.json").write_text(json.dumps(series))


if __name__ == "__main__":
    main()
