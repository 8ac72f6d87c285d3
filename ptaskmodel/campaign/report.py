"""The HTML page of a campaign: its findings, tables and pictures, and how to run it again.

It begins with what each level changes, within each condition; see `differences`. A sentence claims
a difference only if Holm's p value is below 0.05.
"""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptaskmodel import __version__
from ptaskmodel.campaign.campaign import Campaign
from ptaskmodel.campaign.differences import (
    answer_of,
    conditions_of,
    ended_share,
    kind_of,
    level_sections,
    level_text,
    wait_sections,
    where_text,
    words_of,
)
from ptaskmodel.campaign.pictures import (
    Rows,
    factor_rows,
    fronts,
    interactions,
    mean_rows,
    metrics_of,
)
from ptaskmodel.campaign.plan import digest_of
from ptaskmodel.campaign.statistics import (
    MANY_LEVELS,
    SEED,
    SIGNIFICANT,
    effects,
    means,
    paired,
)
from ptaskmodel.campaign.store import DONE, FAILED
from ptaskmodel.errors import CampaignError
from ptaskmodel.results.pages.page import Section, Table, dot_table, write_page
from ptaskmodel.results.states import ENDED, WORDS, in_words
from ptaskmodel.style.text import (
    LEAST_WIDTH,
    count,
    duration,
    number,
    p_value,
    terminal_width,
    text_table,
)

if TYPE_CHECKING:
    import pandas

MOST_EFFECTS = 3
# Part of the variation below which a factor beside others is not worth a sentence.
LITTLE = 0.01
MOST_LEVELS = 12


def in_short(
    frame: pandas.DataFrame,
    factors: Sequence[str],
    metrics: Sequence[str],
    baseline: Mapping[str, Any],
    better: Mapping[str, int],
    conditions: Sequence[str] = (),
) -> list[str]:
    """A sentence on each metric, and one on the tests behind them.

    frame: a row a run that was made. baseline: levels that others are compared with. better: +1 for
    metrics of which more is better, -1 for those of which less is. conditions: factors within whose
    levels runs are compared.
    """
    parts = effects(frame, factors, metrics)
    against = paired(frame, factors, metrics, baseline, conditions) if baseline else None
    found = []
    for metric in metrics:
        table = parts[parts["metric"] == metric]
        if against is None:
            told = _strongest(frame, metric, table)
        else:
            mine = against[against["metric"] == metric]
            told = _against(mine, baseline, better.get(metric, 0), conditions)
        told += _depends(table, baseline)
        if told:
            found.append(f"{words_of(metric)}: {'; '.join(told)}.")
    return [*found, _tests(parts if against is None else against)] if found else []


def _tests(tested: pandas.DataFrame) -> str:
    """How many seeds there are, and what tells apart."""
    seeds = int(tested["seeds"].max())
    if seeds < 2:
        return "One seed, or seeds without effect: no test and no interval; set repetitions."
    return (
        f"{seeds} independent seeds; runs with the same seed are averaged first. Significant: "
        f"Holm's p below {SIGNIFICANT:g}, over all levels and metrics."
    )


def _against(
    table: pandas.DataFrame, baseline: Mapping[str, Any], sign: int, conditions: Sequence[str]
) -> list[str]:
    """Each level against the baseline's, those told apart from it first."""
    named = [name for name in table.columns if name in baseline]
    base = level_text(tuple(baseline[name] for name in named))
    untested = table[table["p_holm"].isna()]
    sure = table[table["p_holm"] < SIGNIFICANT]
    order = sure["relative"].abs().sort_values(ascending=False, kind="stable").index
    told = [
        _difference(row, named, base, side, conditions)
        for rows, side in ((sure.loc[order], sign), (untested, 0))
        for row in rows.to_dict("records")
    ]
    told = _shortened(told)
    same = table[table["p_holm"] >= SIGNIFICANT]
    known = {*sure[named].itertuples(index=False, name=None)}
    alike = dict.fromkeys(same[named].itertuples(index=False, name=None))
    levels = [level_text(one) for one in alike if one not in known]
    if len(levels) > MOST_LEVELS:
        levels = [f"{len(levels)} of {len(table[named].drop_duplicates())} levels"]
    if levels:
        told.append(f"{', '.join(levels)} not significantly different from {base}")
    return told


def _shortened(told: list[str]) -> list[str]:
    """The first of them, and how many more there are."""
    if len(told) <= MOST_LEVELS:
        return told
    return [*told[:MOST_LEVELS], f"{len(told) - MOST_LEVELS} more levels differ less"]


def _difference(
    row: Mapping[Any, Any], named: Iterable[str], base: str, sign: int, conditions: Sequence[str]
) -> str:
    """How a level differs from the baseline's, in which condition."""
    less = row["difference"] < 0
    amount = number(abs(row["relative"]), "share") + (" less" if less else " more")
    verdict = "" if not sign else "better, " if less == (sign < 0) else "worse, "
    tested = row["p_holm"] < SIGNIFICANT
    why = f" ({verdict}{p_value(row['p_holm'])})" if tested else " (no test)"
    share = number(row["lower_in" if less else "higher_in"], "share")
    level = level_text(tuple(row[name] for name in named))
    where = where_text(conditions, [row[name] for name in conditions])
    text = f"{level} has {amount} than {base}{' at ' * bool(where)}{where}{why}"
    return f"{text}, in {share} of {count(row['pairs'], 'pair')}"


def _strongest(frame: pandas.DataFrame, metric: str, table: pandas.DataFrame) -> list[str]:
    """The factors that the variation goes with, and between which means."""
    alone = table[(table["with_factor"] == "") & table["p_holm"].notna()]
    sure = alone[alone["p_holm"] < SIGNIFICANT].sort_values("part", ascending=False, kind="stable")
    if not len(sure):
        return ["no factor has a significant effect"] if len(alone) else []
    told = []
    shown = sure[(sure["part"] >= LITTLE) | (sure["part"] == sure["part"].max())]
    for row in shown.head(MOST_EFFECTS).to_dict("records"):
        why = p_value(row["p_holm"])
        found = means(frame, [row["factor"]], [metric]).sort_values("mean", kind="stable")
        if len(found) <= MANY_LEVELS:
            ends = [
                f"{number(found['mean'].iloc[k], kind_of(metric))} with "
                f"{found[row['factor']].iloc[k]}"
                for k in (0, -1)
            ]
            why += f", means from {' to '.join(ends)}"
        part = number(row["part"], "share")
        told.append(f"{part} of the variation is explained by {row['factor']} ({why})")
    return told


def _depends(table: pandas.DataFrame, baseline: Mapping[str, Any]) -> list[str]:
    """On which other factors the effect of the baseline's depends."""
    pairs = table[(table["with_factor"] != "") & table["p_holm"].notna()]
    if baseline:
        named = list(baseline)
        pairs = pairs[pairs["factor"].isin(named) | pairs["with_factor"].isin(named)]
    sure = pairs[pairs["p_holm"] < SIGNIFICANT].sort_values("part", ascending=False, kind="stable")
    if len(pairs) and not len(sure):
        return ["no interaction of factors is significant"]
    told = []
    for row in sure.head(MOST_EFFECTS).to_dict("records"):
        one, other = row["factor"], row["with_factor"]
        if other in baseline and one not in baseline:
            one, other = other, one
        share = f"{number(row['part'], 'share')} of the variation, {p_value(row['p_holm'])}"
        told.append(f"the effect of {one} depends on {other} ({share})")
    return told


# Rows of a table that is not searched; rows and cells of the one of runs, which is.
MOST_ROWS = 400
# Of more runs not all numbers are looked at for warnings.
MOST_LOOKED_AT = 100_000
MOST_RUNS = 5000
MOST_CELLS = 250_000


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
    """Write the page of a campaign to ``path``; return its findings, a sentence each.

    Raises CampaignError if no run is made, or it cannot be written.
    """
    whole = campaign.frame()
    frame = done(campaign, whole)
    plan, metrics = campaign.plan, list(metrics_of(campaign, whole))
    factors = list(plan.factors)
    conditions = conditions_of(plan, frame)
    short = in_short(frame, factors, metrics, plan.baseline, plan.better, conditions)
    every = _every(campaign, len(whole))
    ended = None if every is None else ended_share(every)
    before = level_sections(plan, frame, metrics, ended)
    before += [] if every is None else wait_sections(plan, every)
    before += [Section("In short", points=tuple(short))] if short and not before else []
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
        f"The table of runs has the first {count(len(shown))} of {count(len(whole))}; all else is "
        f"of all of them. ptaskmodel campaign table {directory} -o FILE.csv has each."
    )
    data = {
        "what": "run",
        "cards": _cards(campaign, whole, factors),
        "facts": _facts(campaign),
        "warnings": [*_warnings(every), *[left_out] * (len(shown) < len(whole))],
        "table": _runs(shown, factors, metrics),
    }
    subject = f"A campaign of {count(len(whole))} runs"
    write_page(path, data, title=plan.name, subject=subject, before=before, after=after,
               answer=answer_of(plan, frame, metrics, ended))  # fmt: skip
    return short


def _found(
    campaign: Campaign, frame: pandas.DataFrame, factors: list[str], metrics: list[str]
) -> list[Section]:
    """What the runs say beside the changes of levels: interactions, trade-offs, means."""
    varied = [one for one in factors if frame[one].nunique() > 1]
    better = {name: sign for name, sign in campaign.plan.better.items() if name in frame}
    found = []
    if varied:
        parts = effects(frame, varied, metrics)
        note = "Of the variation of a metric: the part that goes with a factor, or with two beyond "
        note += "each alone; p of an F test with the seed as a block, by Holm over all."
        scales = [one for one in varied if frame[one].nunique() > MANY_LEVELS]
        tables = [_rows(rows) for rows in factor_rows(frame, scales, metrics)]
        found.append(Section("What each factor does", note, (_parts(parts), *tables)))
        tables = [_rows(rows) for rows in interactions(frame, factors, metrics)]
        pairs = parts[parts["with_factor"] != ""]
        if tables:
            note = "Means, with 95 % intervals over seeds, of the two factors that do most."
            found.append(Section("Which factors depend on each other", note, tuple(tables)))
        elif pairs["p_holm"].notna().any():
            found.append(Section("Which factors depend on each other", _no_pair(pairs)))
        rows = fronts(frame, varied, better, conditions_of(campaign.plan, frame))
        if rows:
            tables = [_rows(one) for one in rows]
            found.append(Section("Trade-offs", "Means of each combination.", tuple(tables)))
    table = _rows(mean_rows(frame, factors, metrics))
    note = "With 95 % intervals over seeds, from the least to the largest value of a column."
    if len(table.rows) > MOST_ROWS:
        note += f" The first {MOST_ROWS} of {count(len(table.rows), 'row')}."
    return [*found, Section("Means", note, (table._replace(rows=table.rows[:MOST_ROWS]),))]


def _rows(rows: Rows) -> Table:
    head = rows.head or "runs"
    caption = ". ".join(text for text in (rows.where, rows.key) if text) or f"By {head}"
    return dot_table(head, rows.names, rows.panels, caption=caption, key=(1, 2))


def _no_pair(pairs: pandas.DataFrame) -> str:
    """That no two factors depend on each other, and which come nearest."""
    row = pairs.loc[pairs["p_holm"].idxmin()]
    part = number(row["part"], "share")
    return (
        f"No two significantly. Nearest: {row['factor']} and {row['with_factor']}, "
        f"{part} of the variation of {words_of(row['metric'])}, {p_value(row['p_holm'])}."
    )


def _parts(found: pandas.DataFrame) -> Table:
    rows = [
        [words_of(row["metric"]), " with ".join(filter(None, (row["factor"], row["with_factor"]))),
         row["part"], row["seeds"],
         *(_text(row[name], "p") for name in ("p_value", "p_holm"))]
        for row in found.to_dict("records")
    ]  # fmt: skip
    columns = {"metric": "text", "factor": "text", "part": "share", "seeds": "count", "p": "said",
               "p by Holm": "said"}  # fmt: skip
    return Table(columns, rows, caption="Parts of the variation", key=(1, 2))


def _cards(campaign: Campaign, whole: pandas.DataFrame, factors: list[str]) -> list[list[str]]:
    states = Counter(whole["status"])
    cards = [["runs finished", count(states[DONE]), f"of {count(len(whole))}"]]
    if states[FAILED]:
        cards.append(["runs failed", count(states[FAILED])])
    many = {name: whole[name].nunique() for name in factors}
    if many:
        texts = [f"{name} {count(levels)}" for name, levels in many.items()]
        cards.append(
            ["combinations", count(len(whole.drop_duplicates(factors))), " · ".join(texts)]
        )
    cards.append(["repetitions", count(campaign.plan.repetitions)])
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
                many = count(round(total), "task" if group == "counts" else "job")
                found.append(f"{count(runs)} of {count(len(frame), 'run')}: {many} {word}")
    if (name := "stopped_early.at_s") in frame and (runs := int(frame[name].notna().sum())):
        found.append(f"{count(runs)} of {count(len(frame))} runs stopped before their end")
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
    failed = [(*run.point.values(), run.repetition, error) for run, error in campaign.failures()]
    if not failed:
        return []
    rows = [[str(value) for value in row] for row in failed]
    return [
        Section(
            "Runs that failed",
            "",
            (Table([(each, "text") for each in (*factors, SEED, "error")], rows),),
        )
    ]


def _runs(
    frame: pandas.DataFrame, factors: Sequence[str], metrics: Sequence[str]
) -> dict[str, Any]:
    """The table of runs, searched and sorted on the page."""
    names = list(frame.columns)
    rows = [[_plain(value) for value in row] for row in frame.itertuples(index=False, name=None)]
    kinds = []
    for k, name in enumerate(names):
        # A column has a unit, and is sorted as numbers, only if it holds nothing else.
        if any(isinstance(row[k], str) for row in rows):
            kinds.append("text")
        else:
            kinds.append(kind_of(name) if name in metrics else "said")
        for row in rows:
            if kinds[k] == "text" or name in factors:
                row[k] = (
                    "" if row[k] is None else f"{row[k]:g}" if kinds[k] == "said" else str(row[k])
                )
    heads = [words_of(name) if name in metrics else name for name in names]
    return Table(list(zip(heads, kinds, strict=True)), rows, order=(0, False)).data("Runs")


def _plain(value: Any) -> Any:
    """A value as JSON has it; None for what is missing."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return float(value) if math.isfinite(value) else None
    return None if value is None else str(value)


def printed(frame: pandas.DataFrame) -> str:
    """Return the table `frame` of runs, or of statistics of metrics, as text for the terminal.

    Of statistics on a terminal, a count that all rows share stands below.
    """
    is_told = terminal_width() is not None and "metric" in frame
    same = [name for name in ("runs", "pairs", "seeds")
            if is_told and name in frame and frame[name].nunique() == 1]  # fmt: skip
    below = ", ".join(f"{name} {frame[name].iloc[0]}" for name in same)
    # What decides stands first: columns are left out from the right.
    of_levels = is_told and "factor" not in frame
    levels = [*frame.columns].index("metric") + 1 if of_levels else 0
    decide = [name for name in DECIDE if levels and name in frame]
    order = dict.fromkeys((*frame.columns[:levels], *decide, *frame.columns))
    frame = frame[[name for name in order if name not in same]]
    texts = []
    for name in map(str, frame.columns):
        values = frame[name].tolist()
        kinds = [_kind(name, metric) for metric in frame.get("metric", [name] * len(values))]
        texts.append([_text(value, kind) for value, kind in zip(values, kinds, strict=True)])
    right = [k for k, kind in enumerate(frame.dtypes) if kind.kind in "iuf"]
    heads = [str(name).replace("_", " ") for name in frame.columns]
    if "metric" not in frame:
        heads = [words_of(str(name)) for name in frame.columns]
    least = [max(NAMES_WIDTH // levels, LEAST_WIDTH)] * levels if levels else ()
    table = text_table(heads, list(zip(*texts, strict=True)), right, least=least)
    return f"{table}\nin all rows: {below}" if below else table


DECIDE = ("mean", "difference", "relative", "p_holm")
NAMES_WIDTH = 54  # of levels and metrics together on the terminal, at least
# Columns of statistics that are values of the metric, and that are shares; others are numbers.
VALUES = ("mean", "standard_deviation", "difference", "low", "high")
SHARES = ("relative", "relative_low", "relative_high", "lower_in", "higher_in", "part")


def _kind(name: str, metric: str) -> str:
    if name.startswith("p_"):
        return "p"
    if name in SHARES:
        return "share"
    return kind_of(metric) if name in VALUES or name == metric else "number"


def _text(value: Any, kind: str) -> str:
    if isinstance(value, str) or value is None:
        return value or ""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return str(value)
    if kind == "p":
        return p_value(float(value)).removeprefix("p ").removeprefix("= ")
    return number(float(value), kind if isinstance(value, float) else "number")
