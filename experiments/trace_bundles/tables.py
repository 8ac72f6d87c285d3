"""Tables and pictures of bundles against replays, of campaigns that were run.

    python experiments/trace_bundles/tables.py RUNS... -o results/trace_bundles

writes alone.csv, ratios.csv, disturbed.csv and four pictures there.
"""

from __future__ import annotations

import pandas
from figures import alone_figure, cost_figure, disturbed_figure, ratio_figure

from ptaskmodel.campaign import told_campaigns, write_table
from ptaskmodel.style.figures import save

FIGURES = {
    "alone": [alone_figure, cost_figure],
    "ratios": [ratio_figure],
    "disturbed": [disturbed_figure],
}


def main() -> None:
    campaigns, output = told_campaigns(__doc__)
    rows = {name: [] for name in FIGURES}
    for campaign in campaigns:
        for run, record in campaign.records():
            rows[run.parameters["table"]] += record["series"]
    for name, figures in FIGURES.items():
        write_table(pandas.DataFrame(rows[name]), output / f"{name}.csv")
        for figure in figures:
            kind = figure.__name__.removesuffix("_figure")
            save(figure(rows[name]), output / f"{kind}.png")
            print(output / f"{kind}.png")


if __name__ == "__main__":
    main()
