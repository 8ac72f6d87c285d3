"""What each level changes against the baseline's, metric by metric, within each condition.

The page of a campaign begins with it. A change is coloured only if Holm's p is below 0.05 and the
plan declares which direction is better; a level that ends fewer jobs than the baseline's wins
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptaskmodel.campaign.plan import Plan
from ptaskmodel.campaign.statistics import MANY_LEVELS, SIGNIFICANT, holm, paired, pairs
from ptaskmodel.results.comparison.repetitions import Curve
from ptaskmodel.results.pages.drawn import MIDDLE, Mark, axis, cell, cumulative_chart
from ptaskmodel.results.pages.page import Section, Table
from ptaskmodel.results.states import ENDED, in_words
from ptaskmodel.style.quantities import MINUS, UNKNOWN, column, number

if TYPE_CHECKING:
    import pandas

SUCCEEDED = "succeeded"
# Pairs that are drawn as dots in a cell, at most.
MOST_DOTS = 60
# Metrics whose levels over the jobs of a run make a curve: (part, statistic).
LEVELS = ((0.0, "min"), (0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (1.0, "max"))
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


def within(
    conditions: Sequence[str], frame: pandas.DataFrame
) -> list[tuple[tuple[Any, ...], pandas.DataFrame]]:
    """Return the levels of the `conditions`, and the runs of the `frame` that have them."""
    if not conditions:
        return [((), frame)]
    return [(levels, part) for levels, part in frame.groupby(list(conditions), sort=False)]


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
        frames = [
            paired(part, list(plan.factors), metrics, baseline).assign(
                **dict(zip(conditions, levels, strict=True))
            )
            for levels, part in parts
        ]
        found = _joined([one for one in frames if len(one)])
        if found is not None:
            found["p_holm"] = holm(found["p_value"].to_numpy(float))
            made.append(Compared(baseline, found, parts))
    return made


def _joined(frames: list[pandas.DataFrame]) -> pandas.DataFrame | None:
    import pandas

    return pandas.concat(frames, ignore_index=True) if frames else None


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
    conditions = conditions_of(plan, frame)
    sections: list[Section] = []
    for one in compared(plan, frame, metrics):
        tables = []
        for levels, part in one.parts:
            where = ", ".join(f"{n} = {v}" for n, v in zip(conditions, levels, strict=True))
            mine = one.found
            for name, level in zip(conditions, levels, strict=True):
                mine = mine[mine[name] == level]
            tables.append(_table(plan, one, part, mine, metrics, ended, where))
        base = ", ".join(map(str, one.baseline.values()))
        title = f"{' and '.join(one.baseline)}: what each level changes against {base}"
        sections.append(Section(title, "" if sections else NOTE, tuple(tables)))
    return sections


def _table(
    plan: Plan,
    one: Compared,
    part: pandas.DataFrame,
    found: pandas.DataFrame,
    metrics: Sequence[str],
    ended: pandas.Series | None,
    where: str,
) -> Table:
    named = list(one.baseline)
    of_pairs = {
        (levels, metric): (both.iloc[:, 1] - both.iloc[:, 0]).to_numpy(float)
        / (np.abs(both.iloc[:, 0].to_numpy(float)).mean() or np.nan)
        for levels, metric, both in pairs(part, list(plan.factors), metrics, one.baseline)
    }
    spans = {
        metric: max((float(np.nanmax(np.abs(x))) for (_, m), x in of_pairs.items() if m == metric
                     and np.isfinite(x).any()), default=0.0)
        for metric in metrics
    }  # fmt: skip
    is_base = _are(part, named, tuple(one.baseline.values()))
    base_ended = None if ended is None else float(ended.loc[part.index[is_base]].mean())
    heads = [", ".join(named), *([] if ended is None else ["ended"])]
    base: list[Any] = [", ".join(map(str, one.baseline.values()))]
    base += [] if base_ended is None else [number(base_ended, "share")]
    for metric in metrics:
        values = part.loc[is_base, metric].to_numpy(float)
        mean = float(np.nanmean(values))
        unit = column([mean], kind_of(metric))
        heads.append(words_of(metric))
        text = f"{words_of(metric)}: mean of {len(values)} runs"
        base.append(cell(text, [], f"{unit.text(mean)} {unit.unit}".strip()))
    rows = [base]
    for levels in dict.fromkeys(found[named].itertuples(index=False, name=None)):
        mine = found[_are(found, named, levels)]
        is_level = _are(part, named, levels)
        row: list[Any] = [", ".join(map(str, levels))]
        fewer = False
        if ended is not None and base_ended is not None:
            share = float(ended.loc[part.index[is_level]].mean())
            fewer = share < base_ended - 1e-9
            row.append(number(share, "share"))
        for metric in metrics:
            of_metric = mine[mine["metric"] == metric]
            dots = of_pairs.get((levels, metric), np.array([]))
            row.append(
                _changed(of_metric.iloc[0], dots, spans[metric], plan.better.get(metric, 0), fewer)
                if len(of_metric) else None
            )  # fmt: skip
        rows.append(row)
    kinds = ["text", *([] if ended is None else ["said"]), *["drawn"] * len(metrics)]
    return Table(heads, rows, kinds=kinds, caption=where or "All runs", key=(1, 2))


def _are(frame: pandas.DataFrame, names: Sequence[str], levels: Sequence[Any]) -> Any:
    """Whether rows have these levels."""
    return np.logical_and.reduce([frame[n] == v for n, v in zip(names, levels, strict=True)])


def _changed(row: Any, dots: np.ndarray, span: float, sign: int, fewer: bool) -> dict[str, Any]:
    """A change in %, its interval, and each pair; coloured if it is told apart and has a side.

    fewer: fewer jobs end than with the baseline, so that no change is a gain.
    """
    middle, low, high = (float(row[name]) for name in ("relative", "relative_low", "relative_high"))
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
    text = f"{label}, {said}, {row['pairs']} pairs"
    if not np.isfinite(middle):
        return cell(f"no change known, {row['pairs']} pairs", [], UNKNOWN)
    if not span:
        return cell(text, [axis()], label, middle)

    def at(value: float) -> float:
        return min(max(0.5 + 0.48 * value / span, 0.0), 1.0)

    step = -(-len(dots) // MOST_DOTS) or 1
    marks: list[Mark] = [axis(), (0.5, None, "ink", "|", MIDDLE)]
    marks += [(at(float(x)), None, "nothing", "•", MIDDLE) for x in dots[::step] if np.isfinite(x)]
    if np.isfinite([low, high]).all():
        marks.append((at(low), at(high), role, "", MIDDLE))
    marks.append((at(middle), None, role, "●", MIDDLE))
    return cell(text, marks, {"gain": "✓ ", "lose": "✗ "}.get(role, "") + label, middle)


def answer_of(plan: Plan, frame: pandas.DataFrame, metrics: Sequence[str],
              ended: pandas.Series | None) -> str:  # fmt: skip
    """Return the sentences at the head of the page: which levels end what, and are told apart.

    frame: a row a run of the `plan`. metrics: its columns. ended: as `level_sections` takes it.
    """
    found = compared(plan, frame, metrics)
    if not found:
        return ""
    one = found[0]
    named = list(one.baseline)
    lines = []
    if ended is not None:
        shares = ended.groupby([frame[name] for name in named], sort=False).mean()
        texts = [f"{_level(level)} {number(float(x), 'share')}" for level, x in shares.items()]
        most = float(shares.max())
        if most - float(shares.min()) < 1e-9:
            lines.append(f"All levels end {number(most, 'share')} of their jobs.")
        else:
            lines.append(f"Of their jobs end with {', '.join(texts)}.")
    base = _level(tuple(one.baseline.values()))
    lines.append(f"Against {base}: {'; '.join(_verdicts(plan, one))}.")
    return "\n".join(lines)


def _verdicts(plan: Plan, one: Compared) -> Iterator[str]:
    """Of each level, in what it is better or worse in every condition, of what is declared."""
    named, count = list(one.baseline), len(one.parts)
    for levels in dict.fromkeys(one.found[named].itertuples(index=False, name=None)):
        mine = one.found[_are(one.found, named, levels)]
        sides: dict[str, list[str]] = {"better": [], "worse": []}
        for metric, sign in plan.better.items():
            rows = mine[(mine["metric"] == metric) & (mine["p_holm"] < SIGNIFICANT)]
            for side, way in (("better", sign), ("worse", -sign)):
                if (n := int((rows["relative"] * way > 0).sum())) > 0:
                    part = "" if n == count else f" (in {n} of {count} conditions)"
                    sides[side].append(f"{words_of(metric)}{part}")
        said = " and ".join(f"{side} in {', '.join(its)}" for side, its in sides.items() if its)
        yield f"{_level(levels)} is {said or 'not told apart'}"


def _level(levels: Any) -> str:
    return ", ".join(map(str, levels)) if isinstance(levels, tuple) else str(levels)


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
        where = ", ".join(f"{n} = {v}" for n, v in zip(conditions, levels, strict=True))
        curves = []
        for level, its in runs.groupby(by, sort=False):
            values = its[names].dropna().to_numpy(float)
            if len(values):
                ends = values.min(axis=0), values.max(axis=0)
                middle = np.median(values, axis=0)
                half, most = (float(middle[np.searchsorted(parts, p)]) for p in (0.5, 0.95))
                curves.append(Curve(str(level), len(values), parts, middle, *ends, half, most))
        if curves:
            charts.append(
                cumulative_chart(f"waiting{', ' * bool(where)}{where}", "time", curves, joined=True)
            )
    note = "Lines join what 50, 90, 95, 99 and 100 % of the jobs of a run wait at most."
    return [Section("How many jobs wait how long", note, charts=tuple(charts))] if charts else []


def kind_of(metric: str) -> str:
    """Return the kind of quantity of a `metric`, by its name."""
    return next((kind for part, kind in KINDS if part.search(metric)), "number")


def words_of(metric: str) -> str:
    """Return the name of a `metric` for a reader: waiting_s.mean is "mean waiting"."""
    head, _, statistic = metric.partition(".")
    head = re.sub("_(s|J|W)$", "", head).replace("_", " ")
    return f"{statistic.replace('_', ' ')} {head}".strip()
