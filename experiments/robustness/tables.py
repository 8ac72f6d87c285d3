"""Which conclusions hold in which worlds: a table and a picture of campaigns that were run.

python experiments/robustness/tables.py RUNS... -o results/robustness
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
from matplotlib.ticker import LogLocator
from scipy import stats

from ptaskmodel.campaign import Finding, stated, told_campaigns, write_findings, write_table
from ptaskmodel.style.figures import LIGHT, POINTS, new_figure, picture, save

WORLD = ["solver", "estimates_up_to", "host_order"]
USUAL = ("bmf", 1, "platform")
# What is said, the measure, what is less, than what.
BEST = "contiguous-best-effort"
SLOWED = "contention_slowdown"
WAITED = "bounded_slowdown"
CONCLUSIONS = (
    ("EASY is better than FCFS", WAITED, "easy, first-fit", "fcfs, first-fit"),
    ("shortest first is better", WAITED, "easy-sjf, first-fit", "easy, first-fit"),
    ("first fit slows less than random", SLOWED, "easy, first-fit", "easy, random"),
    ("contiguous slows less than first fit", SLOWED, f"easy, {BEST}", "easy, first-fit"),
    ("contiguous is better than random", WAITED, f"easy, {BEST}", "easy, random"),
    ("good allocation beats backfilling", WAITED, f"fcfs, {BEST}", "easy, random"),
)


# Colour and marker of a conclusion by what becomes of it in a world.
LOOKS = {"holds": (LIGHT.gain, "o"), "fails": (LIGHT.lose, "s"), "open": (LIGHT.soft, "D")}
TICKS = [0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0]

# Of these, what a study stated before: FCFS leaves many nodes idle, therefore EASY (its abstract).
STATED = {"EASY is better than FCFS": "Mu'alem and Feitelson 2001"}


def name_of(world: tuple[Any, ...]) -> str:
    """What is not usual in a world."""
    solver, accuracy, order = world
    told = [
        "" if solver == USUAL[0] else solver,
        "" if accuracy == USUAL[1] else f"estimates up to {accuracy:g} x",
        "" if order == USUAL[2] else f"{order} hosts",
    ]
    return ", ".join(filter(None, told)) or "usual"


def conclusions(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Of each conclusion in each world: pairs, how often it holds, the ratio and its interval.

    The ratio is the geometric mean over seeds of the measure said to be less over the other; its
    interval holds it with 95 % (Student's t of its logarithm).
    """
    rows = []
    for world, runs in frame.groupby(WORLD, sort=False):
        who = runs["policy"] + ", " + runs["allocation"]
        by = runs.assign(who=who).set_index(["who", "repetition"]).sort_index()
        for said, measure, less, than in CONCLUSIONS:
            ratios = np.log(by.loc[less][measure] / by.loc[than][measure]).to_numpy()
            half = stats.t.ppf(0.975, len(ratios) - 1) * ratios.std(ddof=1) / len(ratios) ** 0.5
            low, middle, high = np.exp(ratios.mean() + np.array([-half, 0.0, half]))
            verdict = "holds" if high < 1 else "fails" if low > 1 else "open"
            rows.append((name_of(world), said, len(ratios), float((ratios < 0).mean()),
                         middle, low, high, verdict))  # fmt: skip
    columns = ["world", "conclusion", "pairs", "holds_in", "ratio", "low", "high", "verdict"]
    return pandas.DataFrame(rows, columns=columns)


def findings(found: pandas.DataFrame) -> list[Finding]:
    """What studies of backfilling stated, in the usual world and in the others."""
    said = []
    for conclusion, source in STATED.items():
        for row in found[found["conclusion"] == conclusion].itertuples():
            here = f"ratio {row.ratio:.2g}, 95 %: {row.low:.2g} to {row.high:.2g}"
            cause = f"{row.pairs} workloads do not decide it" if row.verdict == "open" else ""
            what, rule = f"{conclusion} ({source}): {row.world}", "interval below 1"
            said.append(stated(what, here, row.verdict == "holds", rule=rule, cause=cause))
    return said


@picture
def conclusions_figure(found: pandas.DataFrame) -> Any:
    """A panel for each conclusion: its ratio in each world."""
    said = list(dict.fromkeys(found["conclusion"]))
    worlds = list(dict.fromkeys(found["world"]))
    figure = new_figure(12.0, 5.4)
    panels = figure.subplots(2, 3, sharey=True).flat
    for panel, one in zip(panels, said, strict=True):
        for row in found[found["conclusion"] == one].itertuples():
            colour, marker = LOOKS[row.verdict]
            panel.errorbar(
                row.ratio, worlds.index(row.world), color=colour, fmt=marker, capsize=3,
                xerr=np.array([[row.ratio - row.low], [row.high - row.ratio]]),
            )  # fmt: skip
        panel.axvline(1.0, color=LIGHT.ink, linewidth=0.8)
        panel.set_xscale("log")
        panel.minorticks_off()
        low, high = panel.get_xlim()
        if high < 1e3 * low:
            panel.set_xticks([t for t in TICKS if low <= t <= high])
        else:
            panel.xaxis.set_major_locator(LogLocator(numticks=4))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.set_title(one)
        panel.set_yticks(range(len(worlds)), worlds)
        panel.set_ylim(len(worlds) - 0.5, -0.5)
    for verdict, (colour, marker) in LOOKS.items():
        panel.plot([], [], marker, color=colour, label=verdict)
    figure.legend(loc="outside upper right", ncols=len(LOOKS))
    figure.supxlabel(
        "measure said to be less, over the other, and its 95 % interval; below 1 it holds",
        fontsize=POINTS, color=LIGHT.soft,
    )  # fmt: skip
    return figure


def main() -> None:
    campaigns, output = told_campaigns(__doc__)
    frame = pandas.concat([campaign.frame() for campaign in campaigns])
    found = conclusions(frame[frame["status"] == "done"])
    write_table(found, output / "conclusions.csv")
    save(conclusions_figure(found), output / "conclusions.png")
    print(f"| conclusion | {' | '.join(dict.fromkeys(found['world']))} |")
    print("|---" * (found["world"].nunique() + 1) + "|")
    for said, rows in found.groupby("conclusion", sort=False):
        cells = [f"{row.verdict} ({row.ratio:.2g})" for row in rows.itertuples()]
        print(f"| {said} | {' | '.join(cells)} |")
    print(write_findings(output, findings(found)))


if __name__ == "__main__":
    main()
