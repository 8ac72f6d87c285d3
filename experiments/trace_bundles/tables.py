"""Tables and pictures of bundles against replays, of campaigns that were run.

    python experiments/trace_bundles/tables.py RUNS... -o results/trace_bundles

writes alone.csv, ratios.csv, disturbed.csv and four pictures there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas
from figures import alone_figure, cost_figure, disturbed_figure, ratio_figure

from ptaskmodel.campaign import Campaign, write_table
from ptaskmodel.results.drawing import save

FIGURES = {
    "alone": [alone_figure, cost_figure],
    "ratios": [ratio_figure],
    "disturbed": [disturbed_figure],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    rows = {name: [] for name in FIGURES}
    for place in given.runs:
        for run, record in Campaign.in_directory(place).records():
            rows[run.parameters["table"]] += record["series"]
    for name, figures in FIGURES.items():
        write_table(pandas.DataFrame(rows[name]), given.output / f"{name}.csv")
        for figure in figures:
            kind = figure.__name__.removesuffix("_figure")
            save(figure(rows[name]), given.output / f"{kind}.png")
            print(given.output / f"{kind}.png")


if __name__ == "__main__":
    main()
