"""Tables, pictures and published relations of metric-aware scheduling, of campaigns that were run.

python experiments/metric_aware/tables.py RUNS... -o results/metric_aware
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
    sample = f"_{parameters['sample']}" if parameters["sample"] else ""
    load = f"_load{parameters['load']:g}" if parameters["load"] else ""
    return f"{stem}_{kind}{where}{sample}{load}"


def row_of(parameters: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "log": Path(parameters["log"]).name.split(".")[0],
        "sample": parameters["sample"],
        "load": parameters["load"],
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


def peaks_of(
    series: Mapping[str, Mapping[str, list[float]]], rows: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    """The peaks of the queue depth in one sample at one load, min, as far as they are known."""
    end = f"_{rows[0]['sample']}" if rows[0]["sample"] else ""
    end += f"_load{rows[0]['load']:g}" if rows[0]["load"] else ""
    names = {f"{rows[0]['log']}_{key}{end}": name for key, name in DEPTHS.items()}
    return {
        name: max(series[key]["queue_depth_min"]) for key, name in names.items() if key in series
    }


def main() -> None:
    campaigns, output = told_campaigns(__doc__)
    made = [
        (run.parameters, record) for campaign in campaigns for run, record in campaign.records()
    ]
    rows = [row_of(parameters, record["metrics"]) for parameters, record in made]
    series = {name_of(p): record["series"] for p, record in made if "series" in record}
    write_table(pandas.DataFrame(rows), output / "runs.csv")
    first = [row for row in rows if not row["sample"] and not row["load"]]
    for path in draw(output, first, series):
        print(path)
    found: list[Finding] = []
    for log in dict.fromkeys(row["log"] for row in rows):
        own = [row for row in first if row["log"] == log]
        print(table(own))
        print(weighted_gains(own))
        of = [row for row in rows if row["log"] == log]
        samples, loads = (
            [
                (chosen, peaks_of(series, chosen))
                for each in dict.fromkeys(row[key] for row in of)
                if (chosen := [row for row in of if row[key] == each and not row[other]])
            ]
            for key, other in (("sample", "load"), ("load", "sample"))
        )
        found += findings(samples, loads)
    print(write_findings(output, found))
    (output / "series.json").write_text(json.dumps(series))


if __name__ == "__main__":
    main()
