"""Tables, pictures and published relations of suspend/resume, of campaigns that were run.

python experiments/suspend_resume/tables.py RUNS... -o results/suspend_resume
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas
from figures import draw
from relations import findings, report

from ptaskmodel.campaign import Finding, told_campaigns, write_findings, write_table

KEPT = ("part", "policy", "seed", "factor")


def stem_of(log: str) -> str:
    return Path(log).name.split(".")[0]


def row_of(parameters: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    log = {"log": stem_of(parameters["log"])}
    return log | {name: parameters[name] for name in KEPT} | dict(found)


def main() -> None:
    campaigns, output = told_campaigns(__doc__)
    made = [
        (run.parameters, record)
        for campaign in campaigns
        for run, record in campaign.records()
        if record["metrics"]["jobs"]
    ]
    rows = [row_of(parameters, record["metrics"]) for parameters, record in made]
    write_table(pandas.DataFrame(rows), output / "runs.csv")
    around, alone = (
        {
            (stem_of(p["log"]), p["policy"], p["seed"]): record["series"]
            for p, record in made
            if p["part"] == part
        }
        for part in ("huge", "huge alone")
    )
    for path in draw(output, rows, around):
        print(path)
    found: list[Finding] = []
    for log in dict.fromkeys(row["log"] for row in rows):
        own, own_alone = (
            {key[1:]: found for key, found in each.items() if key[0] == log}
            for each in (around, alone)
        )
        mine = [row for row in rows if row["log"] == log]
        text, claims = report(mine, own)
        print(text)
        found += findings(mine, claims, own_alone)
    print(write_findings(output, found))


if __name__ == "__main__":
    main()
