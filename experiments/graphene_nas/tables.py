"""Tables and the picture of the null test on real jobs, of a campaign that was run.

    python experiments/graphene_nas/tables.py RUNS -o results/graphene_nas

writes effects.csv, spread.csv, company.png and published.md there.
"""

from __future__ import annotations

import pandas
from figures import company_figure
from study import GROUPS, KIND, runs_of, told_of

from ptaskmodel.campaign import Finding, between, told_campaigns, write_findings, write_table
from ptaskmodel.style.figures import save

MEASURED, GRAPHENE = "measured", "Graphene"


def findings(effects: pandas.DataFrame) -> list[Finding]:
    """What was measured of the runs beside what each model says of them.

    A model agrees if its effect of full company is in the interval of the measured one.
    """
    measured = effects[effects["source"] == MEASURED].set_index("jobs")
    found = []
    for row in effects[effects["source"] != MEASURED].itertuples():
        low, high = (float(measured[name][row.jobs]) for name in ("low", "high"))
        what = f"{row.source}: {row.jobs}: longer with full company"
        cause = "the switch is not as slow: the test could have failed"
        if row.source == GRAPHENE:
            cause = "the model's noise, of which the measured runs have more"
        found.append(between(what, low, high, float(row.effect), unit="%", cause=cause))
    return found


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
    print(write_findings(output, findings(effects)))


if __name__ == "__main__":
    main()
