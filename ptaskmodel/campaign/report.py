"""The HTML page of a campaign: its findings, tables and pictures, and how to run it again.

Pictures show effects, the strongest interaction, differences to a baseline, and the Pareto front.
"""

from __future__ import annotations

import itertools
import math
import numbers
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ptaskmodel import __version__
from ptaskmodel.campaign.campaign import Campaign
from ptaskmodel.campaign.plan import digest_of
from ptaskmodel.campaign.statistics import (
    MANY_LEVELS,
    SEED,
    SIGNIFICANT,
    effects,
    means,
    p_digits,
    p_text,
    paired,
    pareto,
)
from ptaskmodel.campaign.store import DONE, FAILED
from ptaskmodel.campaign.words import in_short
from ptaskmodel.errors import CampaignError
from ptaskmodel.results.pages.page import Section, Table, empty_data, write_page
from ptaskmodel.results.pictures.drawing import (
    BLUE,
    GREY,
    ORANGE,
    RED,
    NoMatplotlib,
    colour_of,
    lasting,
    new_figure,
    short_name,
)
from ptaskmodel.results.states import ENDED, WORDS, in_words

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


MOST_METRICS = 4
MOST_FACTORS = 6
# Of more runs than these, so many are drawn where each is a point.
MOST_POINTS = 5000
# Rows of a table that is not searched; rows and cells of the one of runs, which is.
MOST_ROWS = 400
# Of more runs not all numbers are looked at for warnings.
MOST_LOOKED_AT = 100_000
MOST_RUNS = 5000
MOST_CELLS = 250_000
TITLES = {
    "differences": "Against the baseline, run by run",
    "effects": "What each factor does",
    "interactions": "Which factors depend on each other",
    "pareto": "Trade-offs",
}
NOTES = {
    "differences": "Compares runs that differ only in this factor (same seed), averaged for "
    "each seed; bars are 95 % intervals over independent seeds. Grey: Holm's p is 0.05 or more.",
    "effects": "Means over all other factors, with 95 % intervals over seeds. Below, part: share "
    "of the variation of a metric that one factor explains, or two beyond each alone; p of an F "
    "test with the seed as a block, and Holm's.",
    "interactions": "For each metric, the two factors with the largest interaction; above it, "
    "whether it is significant.",
    "pareto": "Means of each combination; the line joins those that no other beats in both "
    "metrics.",
}


def effects_figure(
    frame: pandas.DataFrame, factors: Sequence[str], metrics: Sequence[str]
) -> Figure:
    """A row for each metric, a column for each factor: means of its levels, with 95 % intervals."""
    shown_factors, shown_metrics = list(factors)[:MOST_FACTORS], list(metrics)[:MOST_METRICS]
    width = 1.2 + 2.5 * len(shown_factors)
    figure = new_figure(max(width, 4.0), 0.4 + 2.1 * len(shown_metrics))
    panels = figure.subplots(
        len(shown_metrics), len(shown_factors), sharey="row", sharex="col", squeeze=False
    )
    for row, metric in zip(panels, shown_metrics, strict=True):
        for panel, factor in zip(row, shown_factors, strict=True):
            _effect(panel, frame, factor, metric)
        row[0].set_ylabel(short_name(metric, 26), fontsize=8)
    for panel, factor in zip(panels[-1], shown_factors, strict=True):
        panel.set_xlabel(short_name(factor, 30))
    return figure


def _effect(panel: Any, frame: pandas.DataFrame, factor: str, metric: str) -> None:
    levels = list(dict.fromkeys(frame[factor]))
    if len(levels) > MANY_LEVELS and _are_numbers(levels):
        some = frame.iloc[:: -(-len(frame) // MOST_POINTS)]
        panel.plot(some[factor], some[metric], ".", color=GREY, markersize=3, alpha=0.6)
    else:
        middle, reach = _means(frame, factor, metric, levels)
        places = _places(panel, levels)
        style = "o-" if _are_numbers(levels) else "o"
        panel.errorbar(places, middle, reach, fmt=style, color=BLUE, capsize=3, linewidth=1)
    _tidy(panel)


def _means(
    frame: pandas.DataFrame, factor: str, metric: str, levels: Sequence[Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Means of levels, and how far their intervals reach below and above."""
    found = means(frame, [factor], [metric]).set_index(factor).reindex(levels)
    ends = found[["low", "high"]].to_numpy(float).T
    middle = found["mean"].to_numpy(float)
    return middle, np.abs(np.nan_to_num(ends - middle))


def interaction_figure(
    frame: pandas.DataFrame, factors: Sequence[str], metrics: Sequence[str]
) -> Figure | None:
    """For each metric its two factors that depend on each other most: a line for each level.

    None with fewer than two factors that have levels.
    """
    names = [name for name in factors if frame[name].nunique() <= MANY_LEVELS]
    found = effects(frame, names, list(metrics)[:MOST_METRICS])
    pairs = found[(found["with_factor"] != "") & found["part"].notna()]
    if not len(pairs):
        return None
    best = pairs.loc[pairs.groupby("metric", sort=False)["part"].idxmax()]
    columns = min(len(best), 2)
    rows = -(-len(best) // columns)
    figure = new_figure(1.0 + 4.6 * columns, 3.4 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for panel, row in itertools.zip_longest(panels, best.itertuples()):
        if row is None:
            panel.set_axis_off()
            continue
        along, lines = sorted((row.factor, row.with_factor), key=lambda one: -frame[one].nunique())
        levels = list(dict.fromkeys(frame[along]))
        places = _places(panel, levels)
        for k, level in enumerate(dict.fromkeys(frame[lines])):
            middle, reach = _means(frame[frame[lines] == level], along, row.metric, levels)
            panel.errorbar(
                places, middle, reach, fmt="o-", color=colour_of(k), capsize=3, linewidth=1,
                label=short_name(str(level)),
            )  # fmt: skip
        panel.set(xlabel=short_name(along, 30), ylabel=short_name(row.metric, 30))
        tested = "no test" if np.isnan(row.p_holm) else f"Holm's {p_text(row.p_holm)}"
        panel.set_title(f"interaction: {row.part:.0%} of the variation, {tested}", fontsize=9)
        panel.legend(title=short_name(lines), frameon=False, fontsize=8, title_fontsize=8)
        _tidy(panel)
    return figure


def differences_figure(
    frame: pandas.DataFrame,
    factors: Sequence[str],
    metrics: Sequence[str],
    baseline: Mapping[str, Any],
) -> Figure | None:
    """Each level against the baseline's, run by run, with 95 % intervals; None without one."""
    if not baseline:
        return None
    shown = list(metrics)[:MOST_METRICS]
    named = [name for name in factors if name in baseline]
    found = paired(frame, factors, shown, baseline)
    if not len(found):
        return None
    labels = [
        ", ".join(str(level) for level in levels) for levels in found[named].itertuples(index=False)
    ]
    rows = list(dict.fromkeys(labels))
    figure = new_figure(1.8 + 2.6 * len(shown), 1.4 + 0.34 * len(rows))
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for panel, metric in zip(panels, shown, strict=True):
        part = found[found["metric"] == metric]
        places = [rows.index(labels[k]) for k in np.flatnonzero(found["metric"] == metric)]
        centre = part["relative"].to_numpy(float) * 100
        ends = part[["relative_low", "relative_high"]].to_numpy(float).T * 100
        reach = np.abs(np.nan_to_num(ends - centre))
        sure = part["p_holm"].to_numpy(float) < SIGNIFICANT
        for k, place in enumerate(places):
            colour = GREY if not sure[k] else (RED if centre[k] > 0 else BLUE)
            panel.errorbar(centre[k], place, xerr=reach[:, [k]], fmt="o", color=colour, capsize=3)
        panel.axvline(0.0, color="black", linewidth=0.8)
        panel.set_xlabel("% of the baseline")
        panel.set_title(short_name(metric, 30), fontsize=9)
        panel.set_yticks(range(len(rows)), [short_name(row, 32) for row in rows])
        panel.set_ylim(len(rows) - 0.5, -0.5)
        low, high = panel.get_xlim()
        panel.set_xlim(min(low, -0.1), max(high, 0.1))
        _tidy(panel)
    said = ", ".join(f"{name} = {value}" for name, value in baseline.items())
    figure.suptitle(f"against {said}", fontsize=10)
    return figure


def pareto_figure(
    frame: pandas.DataFrame, factors: Sequence[str], better: Mapping[str, int]
) -> Figure | None:
    """Means of two metrics of which more or less is better, the front joined; None without two."""
    if len(better) < 2:
        return None
    across, up = list(better)[:2]
    table = means(frame, factors, [across, up])
    wide = table.pivot_table(index=list(factors), columns="metric", values="mean", sort=False)
    front = pareto(wide.reset_index(), {across: better[across], up: better[up]}).sort_values(across)
    figure = new_figure(6.0, 4.2)
    panel = figure.subplots()
    panel.plot(wide[across], wide[up], "o", color=GREY, markersize=4)
    panel.plot(front[across], front[up], "o-", color=ORANGE, linewidth=1)
    for row in front.to_dict("records"):
        label = ", ".join(str(row[name]) for name in factors)
        panel.annotate(
            short_name(label, 40), (row[across], row[up]), fontsize=7, xytext=(4, 4),
            textcoords="offset points",
        )  # fmt: skip
    words = {1: "more is better", -1: "less is better"}
    panel.set(xlabel=f"{across} ({words[better[across]]})", ylabel=f"{up} ({words[better[up]]})")
    _tidy(panel)
    return figure


def _are_numbers(levels: Sequence[object]) -> bool:
    return all(isinstance(level, int | float) and not isinstance(level, bool) for level in levels)


def _places(panel: Any, levels: Sequence[Any]) -> list[float]:
    """Where levels stand: numbers where they are, others in their order, named."""
    if _are_numbers(levels):
        if len(levels) <= MANY_LEVELS:
            panel.set_xticks(levels, [f"{level:g}" for level in levels])
        return [float(level) for level in levels]
    names = [short_name(str(level), 18) for level in levels]
    if sum(map(len, names)) > 24:
        panel.set_xticks(range(len(levels)), names, rotation=30, ha="right")
    else:
        panel.set_xticks(range(len(levels)), names)
    panel.set_xlim(-0.5, len(levels) - 0.5)
    return list(map(float, range(len(levels))))


def _tidy(panel: Any) -> None:
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis="y", color="#e5e5e5", linewidth=0.6)
    panel.set_axisbelow(True)


def figures(campaign: Campaign, frame: pandas.DataFrame) -> dict[str, Figure]:
    """Return the figures, by name, that a `campaign` allows; `frame`: its finished runs."""
    plan = campaign.plan
    factors = [name for name in plan.factors if frame[name].nunique() > 1]
    metrics = list(metrics_of(campaign, frame))
    if not factors or not metrics:
        return {}
    made = {
        "effects": effects_figure(frame, factors, metrics),
        "interactions": interaction_figure(frame, factors, metrics),
        "differences": differences_figure(frame, list(plan.factors), metrics, plan.baseline),
        "pareto": pareto_figure(
            frame, factors, {name: sign for name, sign in plan.better.items() if name in frame}
        ),
    }
    return {name: figure for name, figure in made.items() if figure is not None}


def done(campaign: Campaign, frame: pandas.DataFrame | None = None) -> pandas.DataFrame:
    """Return the rows of the finished runs of a `campaign`.

    frame: the table of all its runs; None: read it. Raises CampaignError if no run has finished.
    """
    frame = campaign.frame() if frame is None else frame
    made = frame[frame["status"] == DONE]
    if not len(made):
        raise CampaignError(
            f"{campaign.store.directory}: no run has finished yet; run the campaign"
        )
    return made


def metrics_of(campaign: Campaign, frame: pandas.DataFrame) -> Sequence[str]:
    """Return the metrics of a `campaign` to show, columns of `frame`.

    These are those of the plan or of the kind of run, else all numeric columns.
    """
    if campaign.metrics():
        return campaign.metrics()
    known = {*campaign.plan.factors, "repetition", "status", "wall_s", "run"}
    return [name for name in frame.columns if name not in known]


def write_campaign_report(campaign: Campaign, path: str | Path) -> list[str]:
    """Write the page; return what it found in short.

    Raises CampaignError if no run is made, or it cannot be written.
    """
    whole = campaign.frame()
    frame = done(campaign, whole)
    plan, metrics = campaign.plan, list(metrics_of(campaign, whole))
    factors = list(plan.factors)
    short = in_short(frame, factors, metrics, plan.baseline, plan.better)
    before = [Section("In short", points=tuple(short))] if short else []
    before += _found(campaign, frame, factors, metrics)
    again = f"ptaskmodel campaign run campaign.toml -o {campaign.store.directory.name}"
    after = [
        *_failures(campaign, factors),
        Section("How to reproduce it", text=f"{again}\n\n# campaign.toml\n{plan.text}"),
    ]
    names = [name for name in (*factors, SEED, "status", *metrics) if name in whole]
    shown = whole[names].head(min(MOST_RUNS, MOST_CELLS // len(names)))
    directory = campaign.store.directory.name
    left_out = (
        f"The table of runs has the first {len(shown):,} of {len(whole):,}; all else is of all of "
        f"them. ptaskmodel campaign table {directory} -o FILE.csv has each."
    )
    data = empty_data("run") | {
        "cards": _cards(campaign, whole, factors),
        "facts": _facts(campaign),
        "warnings": [*_warnings(campaign, len(whole)), *[left_out] * (len(shown) < len(whole))],
        "table": _runs(shown),
    }
    subject = f"A campaign of {len(whole):,} runs"
    write_page(path, data, title=plan.name, subject=subject, before=before, after=after)
    return short


def _found(
    campaign: Campaign, frame: pandas.DataFrame, factors: list[str], metrics: list[str]
) -> list[Section]:
    """What the runs say: pictures, with the tables that they are drawn from."""
    try:
        pictures, lack = figures(campaign, frame), ""
    except NoMatplotlib as lacking:
        pictures, lack = {}, f"{lacking}."
    varied = [one for one in factors if frame[one].nunique() > 1]
    tables = {
        "differences": lambda: paired(frame, factors, metrics, campaign.plan.baseline),
        "effects": lambda: effects(frame, varied, metrics),
    }
    found = [
        _tabled(title, NOTES[name], tables[name]() if name in tables else None, pictures[name])
        for name, title in TITLES.items()
        if name in pictures
    ]
    return [*found, _tabled("Means", lack, means(frame, factors, metrics))]


def _tabled(
    title: str, note: str, frame: pandas.DataFrame | None, picture: Figure | None = None
) -> Section:
    """A section with the first rows of a table, which says if there are more."""
    if frame is None:
        return Section(title, note, (), picture, title)
    if len(frame) > MOST_ROWS:
        note = f"{note} The first {MOST_ROWS} of {len(frame):,} rows.".lstrip()
    return Section(title, note, (_table(frame),), picture, title)


def _cards(campaign: Campaign, whole: pandas.DataFrame, factors: list[str]) -> list[list[str]]:
    count = Counter(whole["status"])
    cards = [["runs finished", f"{count[DONE]:,}", f"of {len(whole):,}"]]
    if count[FAILED]:
        cards.append(["runs failed", f"{count[FAILED]:,}"])
    cards += [[name, f"{whole[name].nunique():,}", "levels"] for name in factors]
    cards.append(["repetitions", f"{campaign.plan.repetitions:,}"])
    seconds = float(whole["wall_s"].sum()) if "wall_s" in whole else 0.0
    if seconds > 0.0:
        cards.append(["total computing time", lasting(seconds)])
    return cards


def _warnings(campaign: Campaign, runs_in_all: int) -> list[str]:
    """In how many runs there was what changes how means are read: ends that are none, stops.

    All numbers of all runs are looked through, unless there are too many runs to hold them.
    """
    if runs_in_all > MOST_LOOKED_AT:
        return []
    frame = done(campaign, campaign.frame(every=True))
    found = []
    for name in frame.columns:
        group, _, state = name.partition(".")
        word = in_words(state)
        if group in ("jobs", "counts") and word in WORDS and word != ENDED:
            runs, total = int((frame[name] > 0).sum()), float(frame[name].sum())
            if runs:
                what = "tasks" if group == "counts" else "jobs"
                found.append(f"{runs:,} of {len(frame):,} runs: {total:,.0f} {what} {word}")
    if (name := "stopped_early.at_s") in frame and (runs := int(frame[name].notna().sum())):
        found.append(f"{runs:,} of {len(frame):,} runs stopped before their end")
    return found


def _facts(campaign: Campaign) -> list[list[str]]:
    """What was run, the files that runs read, with their digests, and the version."""
    paths = {
        path
        for run in campaign.runs
        for name, value in run.parameters.items()
        if (path := campaign.plan.kind.file_in(name, value)) is not None
    }
    facts = [
        ["input", f"{path} (SHA-256 {digest_of(Path(path), path)[:12]}…)"] for path in sorted(paths)
    ]
    return [*facts, ["versions", f"ptaskmodel {__version__}"]]


def _failures(campaign: Campaign, factors: list[str]) -> list[Section]:
    import pandas

    failed = [(*run.point.values(), run.repetition, error) for run, error in campaign.failures()]
    if not failed:
        return []
    return [
        _tabled("Runs that failed", "", pandas.DataFrame(failed, columns=[*factors, SEED, "error"]))
    ]


def _runs(frame: pandas.DataFrame) -> dict[str, Any]:
    """The table of runs, searched and sorted on the page."""
    rows = [[_plain(value) for value in row] for row in frame.itertuples(index=False, name=None)]
    # A column is sorted as numbers only if it holds nothing else.
    texts = [k for k in range(len(frame.columns)) if any(isinstance(row[k], str) for row in rows)]
    for row in rows:
        for k in texts:
            row[k] = "" if row[k] is None else str(row[k])
    return {"heads": list(frame.columns), "rows": rows, "texts": texts, "order": [0, False]}


def _plain(value: Any) -> Any:
    """A value as JSON has it; None for what is missing."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return float(value) if math.isfinite(value) else None
    return None if value is None else str(value)


def _table(frame: pandas.DataFrame) -> Table:
    """The first rows of a frame as texts; columns of numbers to the right."""
    shown = printed(frame.head(MOST_ROWS))
    rows = [tuple(map(_text, row)) for row in shown.itertuples(index=False, name=None)]
    right = [k for k, kind in enumerate(frame.dtypes) if kind.kind in "iuf"]
    return Table([str(name).replace("_", " ") for name in frame.columns], rows, right)


def printed(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Return the table `frame` with rounded p values."""
    return frame.assign(
        **{name: frame[name].map(p_digits) for name in frame if str(name).startswith("p_")}
    )


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return str(value)
    number = float(value)
    if math.isnan(number):
        return ""
    return f"{number:,.0f}" if number.is_integer() and abs(number) < 1e15 else f"{number:.5g}"
