"""Tables and pictures of redirection over EASY, of campaigns that were run.

python experiments/redirection/tables.py RUNS... -o results/redirection
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas
from figures import draw

from ptaskmodel.campaign import (
    Campaign,
    Finding,
    between,
    told_campaigns,
    write_findings,
    write_table,
)

MEASURES = ("bounded_slowdown", "waiting_s")
GAIN = 0.9  # published, of the mean bounded slowdown over EASY's, in the mean over weeks


def ratios(campaigns: Iterable[Campaign]) -> list[dict[str, Any]]:
    """For each run with redirection: its mean and largest values over EASY's on the same week."""
    easy, others = {}, []
    for campaign in campaigns:
        for run, record in campaign.records():
            found = record["metrics"]
            if not found["jobs.all"]:
                continue
            log = Path(str(run.parameters["log"])).name.split(".")[0]
            if run.parameters["theta"]:
                others.append((log, run.parameters, found))
            else:
                easy[log, run.parameters["week"], run.parameters["alpha"]] = found
    rows = []
    for log, parameters, found in others:
        base = easy[log, parameters["week"], parameters["alpha"]]
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


def combinations(rows: list[dict[str, Any]]) -> pandas.DataFrame:
    """For each log, alpha and theta: means and medians over the weeks of ratios to EASY's."""
    frame = pandas.DataFrame(rows)
    keys = ["log", "alpha", "theta"]
    found = frame[[*keys, "redirected"]].copy()
    for measure in ("mean_bounded_slowdown", "mean_waiting_s"):
        found[measure] = frame[measure] / frame[f"{measure}_easy"]
    grouped = found.groupby(keys, sort=False)
    means, medians = grouped.mean(), grouped.median()
    made = means.rename(columns=lambda name: f"{name}, mean").join(
        medians.rename(columns=lambda name: f"{name}, median")
    )
    return made.assign(weeks=grouped.size()).reset_index()


def findings(table: pandas.DataFrame) -> list[Finding]:
    """The published gain beside the best here, with what it costs."""
    found = []
    for log, own in table.groupby("log", sort=False):
        column = "mean_bounded_slowdown, mean"
        best = own.loc[own[column].idxmin()]
        reached = int((own[column] <= GAIN).sum())
        found.append(
            between(
                f"{log}, {best.weeks} weeks: mean bounded slowdown over EASY's, mean over weeks, "
                f"best of {len(own)} (alpha {best.alpha:g}, theta {best.theta:g})",
                -math.inf,
                GAIN,
                float(best[column]),
                cause=f"{reached} of {len(own)} alphas and thetas reach it; waits are "
                f"{best['mean_waiting_s, mean']:.3g} times EASY's at the best",
            )
        )
    return found


def main() -> None:
    campaigns, output = told_campaigns(__doc__)
    rows = ratios(campaigns)
    write_table(pandas.DataFrame(rows), output / "runs.csv")
    for path in draw(output, rows):
        print(path)
    table = combinations(rows)
    write_table(table, output / "combinations.csv")
    print(table.round(3).to_string(index=False))
    print(write_findings(output, findings(table)))


if __name__ == "__main__":
    main()
