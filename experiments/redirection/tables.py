"""Tables and pictures of redirection over EASY, of campaigns that were run.

python experiments/redirection/tables.py RUNS... -o results/redirection
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from figures import draw

from ptaskmodel.campaign import Campaign, told_campaigns, write_table

MEASURES = ("bounded_slowdown", "waiting_s")


def ratios(campaigns: Iterable[Campaign]) -> list[dict[str, Any]]:
    """For each run with redirection: its mean and largest values over EASY's on the same week."""
    easy, others = {}, []
    for campaign in campaigns:
        for run, record in campaign.records():
            found = record["metrics"]
            if not found["jobs.all"]:
                continue
            log = Path(str(run.parameters["log"])).name.split(".")[0]
            if run.parameters["alpha"]:
                others.append((log, run.parameters, found))
            else:
                easy[log, run.parameters["week"]] = found
    rows = []
    for log, parameters, found in others:
        base = easy[log, parameters["week"]]
        row = {
            "log": log,
            "day": found["day"],
            "alpha": parameters["alpha"],
            "theta": parameters["theta"],
            "load": found["load"],
            "redirected": found["jobs.lost_runs"],
        }
        for measure in MEASURES:
            for key in ("mean", "max"):
                row[f"{key}_{measure}"] = found[f"{measure}.{key}"]
                row[f"{key}_{measure}_easy"] = base[f"{measure}.{key}"]
        rows.append(row)
    return rows


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


def main() -> None:
    campaigns, output = told_campaigns(__doc__)
    rows = ratios(campaigns)
    write_table(pandas.DataFrame(rows), output / "runs.csv")
    for path in draw(output, rows):
        print(path)
    for alpha in sorted({row["alpha"] for row in rows}):
        chosen = [row for row in rows if row["alpha"] == alpha]
        for name in ("mean_bounded_slowdown", "mean_waiting_s"):
            values = [r[name] / r[f"{name}_easy"] for r in chosen if r[f"{name}_easy"] > 0]
            print(f"alpha {alpha}: median {name} over EASY's {np.median(values):.3f}")
    for name in dict.fromkeys(row["log"] for row in rows):
        print(best(name, [row for row in rows if row["log"] == name]))


if __name__ == "__main__":
    main()
