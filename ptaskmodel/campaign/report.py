"""The HTML page of a campaign: its findings, tables and pictures, and how to run it again.

It begins with what each level changes, within each condition; see `levels`.
"""

from __future__ import annotations

import math
import numbers
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptaskmodel import __version__
from ptaskmodel.campaign.campaign import Campaign
from ptaskmodel.campaign.levels import (
    answer_of,
    ended_share,
    level_sections,
    wait_sections,
)
from ptaskmodel.campaign.pictures import figures, metrics_of
from ptaskmodel.campaign.plan import digest_of
from ptaskmodel.campaign.statistics import (
    MANY_LEVELS,
    SEED,
    effects,
    means,
    p_digits,
)
from ptaskmodel.campaign.store import DONE, FAILED
from ptaskmodel.campaign.words import in_short
from ptaskmodel.errors import CampaignError
from ptaskmodel.results.pages.page import Section, Table, empty_data, write_page
from ptaskmodel.results.pictures.drawing import NoMatplotlib
from ptaskmodel.results.states import ENDED, WORDS, in_words
from ptaskmodel.style.quantities import count, duration

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


# Rows of a table that is not searched; rows and cells of the one of runs, which is.
MOST_ROWS = 400
# Of more runs not all numbers are looked at for warnings.
MOST_LOOKED_AT = 100_000
MOST_RUNS = 5000
MOST_CELLS = 250_000
TITLES = {
    "effects": "What each factor does",
    "interactions": "Which factors depend on each other",
    "pareto": "Trade-offs",
}
NOTES = {
    "effects": "Means over all other factors, with 95 % intervals over seeds. Below, part: share "
    "of the variation of a metric that one factor explains, or two beyond each alone; p of an F "
    "test with the seed as a block, and Holm's.",
    "interactions": "For each metric, the two factors with the largest interaction; above it, "
    "whether it is significant.",
    "pareto": "Means of each combination, within each condition; the line joins those that no "
    "other beats in both metrics.",
}


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


def write_campaign_report(campaign: Campaign, path: str | Path) -> list[str]:
    """Write the page; return what it found in short.

    Raises CampaignError if no run is made, or it cannot be written.
    """
    whole = campaign.frame()
    frame = done(campaign, whole)
    plan, metrics = campaign.plan, list(metrics_of(campaign, whole))
    factors = list(plan.factors)
    short = in_short(frame, factors, metrics, plan.baseline, plan.better)
    every = _every(campaign, len(whole))
    ended = None if every is None else ended_share(every)
    before = level_sections(plan, frame, metrics, ended)
    before += [] if every is None else wait_sections(plan, every)
    before += [Section("In short", points=tuple(short))] if short else []
    details = _found(campaign, frame, factors, metrics)
    again = f"ptaskmodel campaign run campaign.toml -o {campaign.store.directory.name}"
    after = [
        *details,
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
        "warnings": [*_warnings(every), *[left_out] * (len(shown) < len(whole))],
        "table": _runs(shown),
    }
    subject = f"A campaign of {len(whole):,} runs"
    write_page(path, data, title=plan.name, subject=subject, before=before, after=after,
               answer=answer_of(plan, frame, metrics, ended))  # fmt: skip
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
    tables = {"effects": lambda: effects(frame, varied, metrics)}
    scales = any(frame[one].nunique() > MANY_LEVELS for one in varied)
    found = [
        _tabled(
            title,
            NOTES[name],
            tables[name]() if name in tables else None,
            None if name == "effects" and not scales else pictures[name],
        )
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
    states = Counter(whole["status"])
    cards = [["runs finished", f"{states[DONE]:,}", f"of {len(whole):,}"]]
    if states[FAILED]:
        cards.append(["runs failed", f"{states[FAILED]:,}"])
    many = {name: whole[name].nunique() for name in factors}
    if many:
        texts = [f"{name} {count(levels)}" for name, levels in many.items()]
        cards.append(
            ["combinations", count(len(whole.drop_duplicates(factors))), " · ".join(texts)]
        )
    cards.append(["repetitions", f"{campaign.plan.repetitions:,}"])
    seconds = float(whole["wall_s"].sum()) if "wall_s" in whole else 0.0
    if seconds > 0.0:
        cards.append(["total computing time", duration(seconds)])
    return cards


def _every(campaign: Campaign, runs_in_all: int) -> pandas.DataFrame | None:
    """All numbers of the runs that were made; None if there are too many runs to hold them."""
    if runs_in_all > MOST_LOOKED_AT:
        return None
    return done(campaign, campaign.frame(every=True))


def _warnings(frame: pandas.DataFrame | None) -> list[str]:
    """In how many runs there was what changes how means are read: ends that are none, stops.

    frame: all numbers of the runs; None: there are too many to look through.
    """
    if frame is None:
        return []
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
