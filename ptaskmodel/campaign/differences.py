"""Differences of a campaign's runs: from the baseline's level, and from published tables.

A level's changes are shown metric by metric, within each condition; the page of a campaign begins
with them. A change is coloured only if Holm's p is below 0.05 and the plan declares which direction
is better; a level that ends fewer jobs than the baseline's wins nothing.

The tables of a study's campaign make a `Finding` of each published figure or relation by `near`,
`between`, `ordered` or `stated`, which can fail, and write all of them with `write_findings`. Each
is given the cause of a difference, which is shown if there is one.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptaskmodel.campaign.plan import Plan
from ptaskmodel.campaign.statistics import MANY_LEVELS, SIGNIFICANT, paired, pairs, within
from ptaskmodel.files import whole_file
from ptaskmodel.results.pages.page import Section, dot_table
from ptaskmodel.results.pictures.charts import Cumulative, Curve, Dot, DotPanel
from ptaskmodel.results.states import ENDED, in_words
from ptaskmodel.style.text import MINUS, UNKNOWN, count, number, p_value

if TYPE_CHECKING:
    import pandas


SUCCEEDED = "succeeded"
# Levels that a sentence names, at most.
MOST_TOLD = 4
NOT_APART = "not told apart"
# Metrics whose levels over the jobs of a run make a curve: (part, statistic).
LEVELS = ((0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (1.0, "max"))
# Kinds of metrics by what their names end with, or hold.
KINDS = (
    (re.compile(r"_s(\.|$)"), "time"),
    (re.compile(r"utilisation|loss_of_capacity"), "share"),
    (re.compile(r"_J$"), "energy"),
    (re.compile(r"_W$"), "power"),
)
NOTE = (
    "Runs that are alike in all else, seed included, are compared. Dots: each pair; line: 95 % "
    "interval over seeds; the middle is no change. Colour: told apart (Holm's p below 0.05) and a "
    "direction is declared; grey: not told apart."
)


class Compared(NamedTuple):
    """Levels of some factors against a baseline, within each condition.

    baseline: a level of each of these factors. found: the rows of `paired` for all conditions, with
    their columns. parts: of each condition its levels and its runs.
    """

    baseline: Mapping[str, Any]
    found: pandas.DataFrame
    parts: list[tuple[tuple[Any, ...], pandas.DataFrame]]


def conditions_of(plan: Plan, frame: pandas.DataFrame) -> list[str]:
    """Return the conditions of a `plan` that vary between the runs of a `frame`."""
    return [name for name in plan.conditions if frame[name].nunique() > 1]


def compared(plan: Plan, frame: pandas.DataFrame, metrics: Sequence[str]) -> list[Compared]:
    """Return each choice of a `plan` against its baseline's level, or its first one.

    frame: a row a run that was made. metrics: its columns that are compared.
    """
    conditions = conditions_of(plan, frame)
    known = {*plan.conditions, *plan.baseline}
    choices = [n for n in plan.factors if n not in known and 1 < frame[n].nunique() <= MANY_LEVELS]
    baselines = [dict(plan.baseline)] if plan.baseline else []
    baselines += [{name: frame[name].iloc[0]} for name in choices]
    parts = within(conditions, frame)
    made = []
    for baseline in baselines:
        found = paired(frame, list(plan.factors), metrics, baseline, conditions)
        if len(found):
            made.append(Compared(baseline, found, parts))
    return made


def ended_share(every: pandas.DataFrame) -> pandas.Series | None:
    """Return which part of its jobs or tasks each run ended, from `every` number of the runs.

    None: the runs do not count them.
    """
    for group in ("jobs", "counts"):
        names = [name for name in every.columns if name.startswith(f"{group}.")]
        ended = [n for n in names if in_words(n.partition(".")[2]) in (ENDED, SUCCEEDED)]
        if names:
            whole = every[f"{group}.all"] if f"{group}.all" in names else every[names].sum(axis=1)
            return every[ended].sum(axis=1) / whole
    return None


def level_sections(
    plan: Plan, frame: pandas.DataFrame, metrics: Sequence[str], ended: pandas.Series | None
) -> list[Section]:
    """Return a section for each choice: levels down, metrics across, a table for each condition.

    frame: a row a run of the `plan`. metrics: its columns. ended: of each run the part of its jobs
    that ended; None: not known.
    """
    sections: list[Section] = []
    for one in compared(plan, frame, metrics):
        tables = []
        for found in changes_of(plan, one, metrics, ended):
            more = [] if found.ended is None else [("ended", found.ended)]
            told = [sum(dot.role in ("gain", "lose") for row in panel.rows for dot in row)
                    for panel in found.panels]  # fmt: skip
            # Where columns are few, the one in which most is told apart.
            key = (
                *range(1, 1 + len(more)),
                1 + len(more) + max(range(len(told)), key=lambda k: told[k], default=0),
            )
            tables.append(dot_table(" + ".join(one.baseline), found.names, found.panels, more,
                                    caption=found.where or "All runs", key=key))  # fmt: skip
        base = level_text(tuple(one.baseline.values()))
        title = f"{' and '.join(one.baseline)}: what each level changes against {base}"
        sections.append(Section(title, "" if sections else NOTE, tuple(tables)))
    return sections


class Changes(NamedTuple):
    """What the levels of a choice change in a condition: the baseline's first.

    where: the condition; "": there is none. ended: which part of their jobs ended; None: not known.
    """

    where: str
    names: list[str]
    ended: list[str] | None
    panels: list[DotPanel]


def changes_of(
    plan: Plan, one: Compared, metrics: Sequence[str], ended: pandas.Series | None
) -> Iterator[Changes]:
    """Yield what the levels of `one` choice change in each condition, as dots with intervals.

    plan, metrics, ended: as `level_sections` takes them.
    """
    conditions = [name for name in one.found.columns if name in plan.conditions]
    named = list(one.baseline)
    base = tuple(one.baseline.values())
    for where, part in one.parts:
        found = one.found[_are(one.found, conditions, where)] if conditions else one.found
        of_pairs = {
            (levels, metric): (both.iloc[:, 1] - both.iloc[:, 0]).to_numpy(float)
            / (np.abs(both.iloc[:, 0].to_numpy(float)).mean() or np.nan)
            for levels, metric, both in pairs(part, list(plan.factors), metrics, one.baseline)
        }
        every = [base, *dict.fromkeys(found[named].itertuples(index=False, name=None))]
        shares = None
        if ended is not None:
            shares = [float(ended.loc[part.index[_are(part, named, ls)]].mean()) for ls in every]
        panels = []
        for metric in metrics:
            mine = found[found["metric"] == metric]
            rows: list[list[Dot]] = [[_of_base(part.loc[_are(part, named, base), metric], metric)]]
            for k, levels in enumerate(every[1:], 1):
                of_level = mine[_are(mine, named, levels)]
                fewer = shares is not None and shares[k] < shares[0] - 1e-9
                others = of_pairs.get((levels, metric), np.array([])).tolist()
                sign = plan.better.get(metric, 0)
                rows.append([_changed(row, others, sign, fewer)
                             for row in of_level.to_dict("records")])  # fmt: skip
            panels.append(DotPanel(words_of(metric), "share", rows, change=True))
        texts = None if shares is None else [number(share, "share") for share in shares]
        yield Changes(
            where_text(conditions, where), [level_text(levels) for levels in every], texts, panels
        )


def where_text(conditions: Sequence[str], levels: Sequence[Any]) -> str:
    """Return the `levels` of `conditions` as text: load = 0.6."""
    return ", ".join(f"{name} = {level}" for name, level in zip(conditions, levels, strict=True))


def _are(frame: pandas.DataFrame, names: Sequence[str], levels: Sequence[Any]) -> Any:
    """Whether rows have these levels."""
    return np.logical_and.reduce([frame[n] == v for n, v in zip(names, levels, strict=True)])


def _of_base(values: pandas.Series, metric: str) -> Dot:
    """The mean of the baseline's runs, which changes are against: a number without a dot."""
    mean = float(np.nanmean(values.to_numpy(float)))
    text = f"{words_of(metric)}: mean of {len(values)} runs"
    return Dot(math.nan, label=number(mean, kind_of(metric)), text=text)


def _changed(row: Mapping[Any, Any], others: Sequence[float], sign: int, fewer: bool) -> Dot:
    """A change, its interval, and each pair; coloured if it is told apart and has a side.

    fewer: fewer jobs end than with the baseline, so that no change is a gain.
    """
    middle, low, high = (float(row[name]) for name in ("relative", "relative_low", "relative_high"))
    if not np.isfinite(middle):
        return Dot(math.nan, label=UNKNOWN, text=f"no change known, {row['pairs']} pairs")
    told = float(row["p_holm"]) < SIGNIFICANT
    better = told and sign != 0 and middle * sign > 0
    role = "soft" if not told else "ink" if not sign else "gain" if better else "lose"
    if better and fewer:
        role = "ink"
    half = 50.0 * (high - low)
    digits = 0 if max(abs(100.0 * middle), half if np.isfinite(half) else 0.0) >= 10.0 else 1
    label = (
        f"{'+' if middle > 0 else MINUS if middle < 0 else ''}{abs(100.0 * middle):.{digits}f} %"
    )
    if np.isfinite(half):
        label += f" ± {half:.{digits}f}"
    said = {"gain": "better", "lose": "worse", "ink": "told apart"}.get(role, "not told apart")
    text = f"{label}, {said}, {row['pairs']} pairs{', ' * told}{p_value(row['p_holm']) * told}"
    mark = {"gain": "✓ ", "lose": "✗ "}.get(role, "")
    return Dot(middle, low, high, role, others=others, label=mark + label, text=text)


def answer_of(plan: Plan, frame: pandas.DataFrame, metrics: Sequence[str],
              ended: pandas.Series | None) -> str:  # fmt: skip
    """Return the sentences at the head of the page: which levels end what, and are told apart.

    frame: a row a run of the `plan`. metrics: its columns. ended: as `level_sections` takes it.
    """
    found = compared(plan, frame, metrics)
    if not found:
        return ""
    lines = []
    if ended is not None:
        shares = ended.groupby([frame[name] for name in found[0].baseline], sort=False).mean()
        lines.append(_ends(shares.to_dict()))
    told = [_against(plan, one, len(found) > 1) for one in found]
    alike = [" and ".join(one.baseline) for one, (_, apart) in zip(found, told, strict=True)
             if not apart and one is not found[0]]  # fmt: skip
    lines += [text for k, (text, apart) in enumerate(told) if apart or not k]
    if alike:
        lines.append(f"{_listed(alike)}: no level is told apart from the first.")
    return "\n".join(lines)


def _against(plan: Plan, one: Compared, named: bool) -> tuple[str, bool]:
    """Which levels of a choice are told apart from its baseline's, and whether any is.

    named: say of which factors they are levels.
    """
    verdicts: dict[str, list[str]] = {}
    for level, verdict in _verdicts(plan, one):
        verdicts.setdefault(verdict, []).append(level)
    alike = verdicts.pop(NOT_APART, [])
    texts = [f"{_listed(names)} {'is' if len(names) == 1 else 'are'} {verdict}"
             for verdict, names in verdicts.items()]  # fmt: skip
    if alike:
        some = f"{len(alike)} others" if texts and len(alike) > 1 else _listed(alike)
        texts.append(f"{some} {'is' if len(alike) == 1 else 'are'} {NOT_APART}")
    seeds = count(int(one.found["seeds"].max()), "seed")
    base = level_text(tuple(one.baseline.values()))
    begin = f"{' and '.join(one.baseline)} against" if named else "Against"
    return f"{begin} {base}: {'; '.join(texts)} ({seeds}).", bool(verdicts)


def _ends(shares: Mapping[Any, float]) -> str:
    """Which level ends most of its jobs, and which fewest; of few levels each."""
    order = sorted(shares, key=lambda level: -shares[level])
    texts = {level: f"{level_text(level)} {number(shares[level], 'share')}" for level in order}
    if shares[order[0]] - shares[order[-1]] < 1e-9:
        return f"All levels end {number(shares[order[0]], 'share')} of their jobs."
    if len(order) <= MOST_TOLD:
        return f"Jobs that end: {', '.join(texts[level] for level in order)}."
    return f"Jobs that end: most with {texts[order[0]]}, fewest with {texts[order[-1]]}."


def _listed(names: Sequence[str]) -> str:
    """Names as a list, of many how many there are."""
    if len(names) > MOST_TOLD:
        return f"{len(names)} levels"
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]


def _verdicts(plan: Plan, one: Compared) -> Iterator[tuple[str, str]]:
    """Of each level, in what it is better or worse in every condition, of what is declared."""
    named, conditions = list(one.baseline), len(one.parts)
    for levels in dict.fromkeys(one.found[named].itertuples(index=False, name=None)):
        mine = one.found[_are(one.found, named, levels)]
        sides: dict[str, list[str]] = {"better": [], "worse": []}
        for metric, sign in plan.better.items():
            rows = mine[(mine["metric"] == metric) & (mine["p_holm"] < SIGNIFICANT)]
            for side, way in (("better", sign), ("worse", -sign)):
                if (n := int((rows["relative"] * way > 0).sum())) > 0:
                    part = "" if n == conditions else f" (in {n} of {conditions} conditions)"
                    sides[side].append(f"{words_of(metric)}{part}")
        said = " and ".join(f"{side} in {', '.join(its)}" for side, its in sides.items() if its)
        yield level_text(levels), said or NOT_APART


def level_text(levels: Any) -> str:
    """Return `levels`, one or those of several factors, as text: random + easy."""
    return " + ".join(map(str, levels)) if isinstance(levels, tuple) else str(levels)


def wait_sections(plan: Plan, every: pandas.DataFrame) -> list[Section]:
    """Return how long jobs wait with each level of the first choice, a chart for each condition.

    every: a row a run of the `plan`, with all its numbers.
    """
    names = [f"waiting_s.{statistic}" for _, statistic in LEVELS]
    choices = [name for name in plan.factors if name not in plan.conditions]
    by = next(iter(plan.baseline), None) or next(iter(choices), None)
    if by is None or not set(names) <= set(every.columns) or not 1 < every[by].nunique() <= 6:
        return []
    parts = np.array([part for part, _ in LEVELS])
    conditions = conditions_of(plan, every)
    charts = []
    for levels, runs in within(conditions, every):
        where = where_text(conditions, levels)
        curves = []
        for level, its in runs.groupby(by, sort=False):
            values = its[names].dropna().to_numpy(float)
            if len(values):
                ends = values.min(axis=0), values.max(axis=0)
                middle = np.median(values, axis=0)
                half, most = (float(middle[np.searchsorted(parts, p)]) for p in (0.5, 0.95))
                curves.append(Curve(str(level), len(values), parts, middle, *ends, half, most))
        if curves:
            label = f"waiting{', ' * bool(where)}{where}"
            charts.append(Cumulative(label, "time", curves, joined=True).data())
    note = "Lines join what 50, 90, 95, 99 and 100 % of the jobs of a run wait at most."
    return [Section("How many jobs wait how long", note, charts=tuple(charts))] if charts else []


def kind_of(metric: str) -> str:
    """Return the kind of quantity of a `metric`, by its name."""
    return next((kind for part, kind in KINDS if part.search(metric)), "number")


def words_of(metric: str) -> str:
    """Return the name of a `metric` for a reader: waiting_s.mean is "mean waiting"."""
    head, _, statistic = metric.partition(".")
    head, statistic = (
        re.sub("_(s|J|W)$", "", part).replace("_", " ") for part in (head, statistic)
    )
    return f"{statistic} {head}".strip()


AGREES, DIFFERS = "agrees", "differs"


class Finding(NamedTuple):
    """One published figure or relation beside one's own.

    what: it is about. published, here: figures as shown. rule: by which the verdict is found.
    verdict: `AGREES` or `DIFFERS`, with how many of several inequalities hold. cause: of the
    difference; shown where there is one.
    """

    what: str
    published: str
    here: str
    rule: str
    verdict: str
    cause: str = ""


def near(
    what: str, published: float, here: float, within: float, *, cause: str, unit: str = ""
) -> Finding:
    """One's own figure agrees if it is near the published one.

    what: it is about. here: one's own figure. within: the largest relative difference. cause: of
    the difference, if there is one. unit: of both.
    """
    holds = abs(here - published) <= within * abs(published)
    rule = f"within {100 * within:g} %"
    theirs, ours = (f"{_short(value)}{_space(unit)}" for value in (published, here))
    return _finding(what, theirs, ours, rule, holds, cause)


def between(
    what: str, low: float, high: float, here: float, *, cause: str, unit: str = ""
) -> Finding:
    """One's own figure agrees if it lies in the published range.

    what: it is about. low, high: of the range, either of which may be infinite. here: one's own
    figure. cause: of the difference, if there is one. unit: of all.
    """
    if low == float("-inf"):
        published, rule = f"{_short(high)}{_space(unit)} at most", "not above"
    elif high == float("inf"):
        published, rule = f"{_short(low)}{_space(unit)} at least", "not below"
    else:
        published, rule = f"{_short(low)} to {_short(high)}{_space(unit)}", "in the range"
    return _finding(
        what, published, f"{_short(here)}{_space(unit)}", rule, low <= here <= high, cause
    )


def ordered(
    what: str,
    published: Mapping[str, float | None],
    here: Mapping[str, float],
    *,
    cause: str,
    unit: str = "",
) -> Finding:
    """One's own figures agree if each is less than the next in the published order.

    what: it is about. published: figures by name, the smallest first; None: only the order is
    published. here: one's own by the same names. cause: of the difference, if there is one.
    unit: of all.
    """
    steps = [here[one] < here[other] for one, other in pairwise(published)]
    shown = (
        " < ".join(
            name if (value := figures[name]) is None else f"{name} {_short(value)}"
            for name in published
        )
        for figures in (published, {name: here[name] for name in published})
    )
    theirs, ours = (f"{text}{_space(unit)}" for text in shown)
    ours = ours.replace(" < ", ", ")
    found = _finding(what, theirs, ours, "in increasing order", all(steps), cause)
    if all(steps) or len(steps) == 1:
        return found
    return found._replace(verdict=f"{found.verdict}: {sum(steps)} of {len(steps)}")


def stated(what: str, here: str, holds: bool, *, cause: str, rule: str = "as stated") -> Finding:
    """A relation that is published in words, which one's own runs keep or not.

    what: the relation. here: one's own figures as shown. holds: whether they keep it. cause: of
    the difference, if there is one. rule: by which that was found.
    """
    return _finding(what, "holds", here, rule, holds, cause)


def write_findings(output: Path, findings: Iterable[Finding]) -> str:
    """Write ``published.csv`` and ``published.md``; the text of the latter, a table in Markdown.

    output: the directory. findings: in the order of the lines.
    """
    lines = list(findings)
    with whole_file(output / "published.csv") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Finding._fields)
        writer.writerows(lines)
    text = "".join(
        f"| {' | '.join(cells)} |\n"
        for cells in (
            ("", "published", "here", "rule", "verdict", "why they differ"),
            ("---",) * len(Finding._fields),
            *lines,
        )
    )
    with whole_file(output / "published.md") as file:
        file.write(text)
    return text


def _finding(what: str, published: str, here: str, rule: str, holds: bool, cause: str) -> Finding:
    verdict = AGREES if holds else DIFFERS
    return Finding(what, published, here, rule, verdict, "" if holds else cause)


def _short(value: float) -> str:
    """Four digits; thousands as whole numbers with commas."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _space(unit: str) -> str:
    return f" {unit}" if unit else ""
