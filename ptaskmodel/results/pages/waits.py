"""Charts of a batch: how long classes of jobs waited, and how slow jobs were."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ptaskmodel.results.loading import Results
from ptaskmodel.results.pages.drawn import MIDDLE, Mark, cell
from ptaskmodel.results.pages.page import Section, Table
from ptaskmodel.results.pictures.charts import Strip
from ptaskmodel.results.pictures.waiting import Waited, waited
from ptaskmodel.results.states import KILLED, outcome_of
from ptaskmodel.style.text import count, duration, number

# With fewer jobs of a class each is a dot.
FEW = 30
# Waits up to this are called none; the axis begins here.
AT_ONCE_S = 1.0
# Points of a cumulative curve.
POINTS = 300
LEAST_RANGE = 10.0
QUANTILES = (0.25, 0.5, 0.75, 0.95, 1.0)


def waiting_sections(results: Results, users: Mapping[str, str]) -> list[Section]:
    """Return strips of the waits of a batch's `results` by classes, and size by run time.

    users: of jobs, where they are known.
    """
    jobs = waited(results, users)
    if len(jobs.waits_s) < 2 or not jobs.waits_s.max():
        return []
    kinds = [kind for kind, of in jobs.classes.items() if len(set(of)) > 1]
    charts = tuple(_strips(kind, jobs.strips(kind)) for kind in kinds)
    return [Section("Who waited how long", "", _by_size_and_length(jobs), charts=charts)]


def _strips(kind: str, classes: Sequence[Strip]) -> dict[str, Any]:
    rows, halves = [], {}
    for each in classes:
        some = np.sort(each.values[each.values > AT_ONCE_S])
        halves[each.name] = float(np.quantile(each.values, 0.5, method="inverted_cdf"))
        rows.append(
            {
                "name": each.name,
                "jobs": len(each.values),
                "zero": 1.0 - len(some) / len(each.values),
                "killed": each.killed,
                "quantiles": np.quantile(some, QUANTILES, method="inverted_cdf").tolist()
                if len(some) else [],
                "dots": some.tolist() if 0 < len(some) < FEW else None,
            }
        )  # fmt: skip
    worst = max(halves, key=lambda name: halves[name])
    many = count(sum(len(each.values) for each in classes), "job")
    sentence = f"By {kind}: of {many} the median wait is longest for {worst}, "
    sentence += duration(halves[worst])
    most = max(classes, key=lambda each: each.killed)
    if most.killed:
        sentence += f"; most are killed of {most.name}, {number(most.killed, 'share')}"
    return {
        "chart": "strip",
        "label": kind,
        "sentence": f"{sentence}.",
        "killed": most.killed > 0.0,
        "rows": rows,
    }


def _by_size_and_length(jobs: Waited) -> tuple[Table, ...]:
    """A table of median waits of jobs by size and run time, with how many there are."""
    cells: dict[tuple[Any, Any], list[float]] = {}
    both = zip(jobs.classes["size"], jobs.classes["run time"], jobs.waits_s.tolist(), strict=True)
    for size, length, wait in both:
        cells.setdefault((size, length), []).append(wait)
    sizes, lengths = (sorted(set(jobs.classes[kind])) for kind in ("size", "run time"))
    if len(sizes) * len(lengths) < 2:
        return ()
    halves = {key: float(np.median(waits)) for key, waits in cells.items()}
    most = math.log1p(max(halves.values())) or 1.0
    rows: list[list[Any]] = []
    for size in sizes:
        rows.append([size[1]])
        for length in lengths:
            if (half := halves.get((size, length))) is None:
                rows[-1].append(None)
                continue
            many = count(len(cells[size, length]), "job")
            text = f"{size[1]}, {length[1]}: half of {many} wait at most {duration(half)}"
            bar: Mark = (0.0, math.log1p(half) / most, "wait", "thick", MIDDLE)
            rows[-1].append(cell(text, [bar], f"{duration(half)} · {many}", half))
    caption = "By size and run time: what half wait at most, of how many; bars are logarithmic"
    heads = ["size", *(name for _, name in lengths)]
    return (Table(heads, rows, kinds=["text", *["drawn"] * len(lengths)], caption=caption),)


def slowdown_sections(results: Results) -> list[Section]:
    """Return the cumulative slowdowns of `results`, of those killed a curve of its own.

    The axis begins at 1 and ends at 10 or more, so that pages can be held side by side.
    """
    title = "Slowdowns"
    what = results.what
    if what == "rank" or len(results.tasks) < 2:
        return []
    sections = []
    slow = {"ended": _slowdowns(results, False), "killed": _slowdowns(results, True)}
    known = sum(map(len, slow.values()))
    if known:
        every = np.concatenate(list(slow.values()))
        half, tail = np.quantile(every, (0.5, 0.95), method="inverted_cdf")
        sentence = (
            f"Contention slows half of {count(known, what)} by a factor of at most {number(half)}, "
            f"5 % by more than {number(tail)}, one by {number(float(every.max()))}."
        )
        series = [
            {"name": f"{name}: {count(len(values), what)}", "role": role,
             "dashed": name == "killed", "at": _curve(values)}
            for (name, values), role in zip(slow.items(), ("use", "lost"), strict=True)
            if len(values)
        ]  # fmt: skip
        sections.append(_cumulative("contention slowdown", sentence, series))
    tau = results.summary.get("tau_s")
    if what == "job" and not known and isinstance(tau, int | float):
        values = np.array(
            [
                max((task.waiting_s + task.duration_s) / max(task.duration_s, tau), 1.0)
                for task in results.tasks
                if task.waiting_s is not None and task.duration_s is not None
            ]
        )
        if len(values):
            half, tail = np.quantile(values, (0.5, 0.95), method="inverted_cdf")
            sentence = (
                f"Half of {count(len(values), what)} have a bounded slowdown of at most "
                f"{number(half)}, 5 % more than {number(tail)}."
            )
            series = [{"name": f"bounded slowdown: {count(len(values), what)}", "role": "wait-text",
                       "dashed": False, "at": _curve(values)}]  # fmt: skip
            sections.append(_cumulative("bounded slowdown", sentence, series))
    return [Section(title, charts=tuple(sections))] if sections else []


def _slowdowns(results: Results, killed: bool) -> np.ndarray:
    return np.array(
        [
            task.slowdown
            for task in results.tasks
            if task.slowdown is not None and (outcome_of(task.state) == KILLED) == killed
        ]
    )


def _cumulative(label: str, sentence: str, series: list[dict[str, Any]]) -> dict[str, Any]:
    return {"chart": "cumulative", "axis": "number", "label": label, "sentence": sentence,
            "from": 1.0, "to": LEAST_RANGE, "series": series}  # fmt: skip


def _curve(values: np.ndarray) -> list[list[float]]:
    """[value, part of those that are at most so large] at POINTS of them."""
    ordered = np.sort(values)
    at = np.unique(np.linspace(0, len(ordered) - 1, min(POINTS, len(ordered))).round().astype(int))
    return [[float(f"{ordered[k]:.5g}"), round((k + 1) / len(ordered), 4)] for k in at.tolist()]
