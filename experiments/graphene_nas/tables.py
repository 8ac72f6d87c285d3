"""Tables and the picture of the null test on real jobs, of a campaign that was run.

    python experiments/graphene_nas/tables.py RUNS -o results/graphene_nas

writes effects.csv, spread.csv and company.png there.
"""

from __future__ import annotations

import pandas
from figures import company_figure
from study import GROUPS, KIND, runs_of, told_of

from ptaskmodel.campaign import told_campaigns, write_table
from ptaskmodel.results.pictures.drawing import save


def main() -> None:
    (campaign,), output = told_campaigns(__doc__)
    rows = []
    for run, record in campaign.records():
        rows += record["series"]
        if run.parameters["source"] == "replays":
            slowdown = 1 + record["metrics"]["effect"] / 100
            print(f"replayed side by side: slowed by a factor of {slowdown:.9f}")
    effects = pandas.DataFrame(rows)
    write_table(effects, output / "effects.csv")
    runs = runs_of(campaign.runs[0].parameters)
    told = runs[told_of(runs)]
    spread = (
        told.assign(relative=told["time_s"] / told["usual_s"])
        .groupby(KIND)["relative"]
        .describe(percentiles=[0.05, 0.5, 0.95])
        .reset_index()
    )
    write_table(spread, output / "spread.csv")
    save(company_figure(told, effects, GROUPS), output / "company.png")
    print(output / "company.png")
    print(effects.to_string(index=False, float_format=lambda value: f"{value:.3f}"))


if __name__ == "__main__":
    main()
