"""Metrics on pages: of several runs, each at its place on a line; of a batch, by class of jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ptaskmodel.results.batch_comparison import Standings, placed
from ptaskmodel.results.compared_metrics import COUNT, NUMBER, SHARE, Group, Metric
from ptaskmodel.results.loading import Results
from ptaskmodel.results.pages.page import MIDDLE, Mark, Section, Table, cell, dot_table
from ptaskmodel.results.pictures.charts import Dot, DotPanel, Strip, log_marks
from ptaskmodel.results.pictures.waiting import RUNNING, TAU_S, Waited, slowdown_chart, waited
from ptaskmodel.results.states import NOT_SLOWED
from ptaskmodel.results.tables.slurm_reading import is_slurm
from ptaskmodel.style.figures import run_sign
from ptaskmodel.style.text import count, duration, number

# So many runs are rows of tables; fewer are columns.
MANY = 6
PLACE = "from 0 to the largest"
PLACED = "The dot is the place of a number between 0, at the left, and the largest."


def metric_sections(found: Standings) -> list[Section]:
    """Return a section for each question, with the metrics of the runs `found` that answer it."""
    return [_group(found, group) for group in found.groups]


def _group(found: Standings, group: Group) -> Section:
    """The metrics that answer a question: a column for each run, or a row where there are many."""
    apart = found.apart if group is found.groups[0] else {}
    comparable = [apart.get(name, "yes") for name in found.runs]
    if len(found.runs) >= MANY:
        panels = [_places(found, metric, values) for metric, values in group.rows]
        more = [("comparable", comparable)] if apart else []
        table = dot_table("run", list(found.runs), panels, more, key=(1, 2))
        return Section(group.title, PLACED, (table,))
    names = [metric.label(values) for metric, values in group.rows]
    told = [[found.text(metric, values, k) for metric, values in group.rows]
            for k in range(len(found.runs))]  # fmt: skip
    rows = [_in_a_row(found, metric, values) for metric, values in group.rows]
    if apart:
        names, rows = ["comparable", *names], [[], *rows]
        told = [[one, *texts] for one, texts in zip(comparable, told, strict=True)]
    heads = [f"{run_sign(k)} {name}" for k, name in enumerate(found.runs)]
    note = ""
    if group is found.groups[0]:
        note = f"Changes are against {run_sign(0)} {found.first}; {', '.join(heads[1:])}."
    # A small screen has room for two runs, or for the places of all.
    key = (1, 2) if len(heads) == 2 else (1, len(heads) + 1)
    panel = DotPanel(PLACE, SHARE, rows, ends=(0.0, 1.0), bare=True)
    table = dot_table("metric", names, [panel], list(zip(heads, told, strict=True)), key=key)
    return Section(group.title, note, (table,))


def _in_a_row(found: Standings, metric: Metric, values: Sequence[float | None]) -> list[Dot]:
    """A dot of each run between 0 and the largest value; the first says all of them."""
    shown = metric.column(values)
    pairs = zip(found.runs, values, strict=True)
    said = ", ".join(f"{name} {shown.text(value)}" for name, value in pairs)
    text = f"{metric.label(values)}: {said}"
    text += f"; {metric.better} is better" if metric.better else ""
    return [dot._replace(text=text * (k == 0)) for k, dot in enumerate(placed(values))]


def _places(found: Standings, metric: Metric, values: Sequence[float | None]) -> DotPanel:
    """A row for each run: its number, and the place of that between 0 and the largest."""
    unit, most = metric.column(values), max((value or 0.0 for value in values), default=0.0)
    rows = [
        [] if value is None else
        [Dot(value, text=f"{results.directory.name}: {metric.label(values)} {unit.text(value)}")]
        for results, value in zip(found.runs.values(), values, strict=True)
    ]  # fmt: skip
    return DotPanel(metric.name, NUMBER if metric.kind == COUNT else metric.kind, rows,
                    ends=(0.0, most))  # fmt: skip


def waiting_sections(results: Results, users: Mapping[str, str]) -> list[Section]:
    """Return strips of the waits of a batch's `results` by classes, and size by run time.

    users: of jobs, where they are known.
    """
    jobs = waited(results, users)
    if len(jobs.waits_s) < 2 or not jobs.waits_s.max():
        return []
    kinds = [kind for kind, of in jobs.classes.items() if len(set(of)) > 1]
    charts = tuple(_strips(kind, jobs.strips(kind)) for kind in kinds)
    tau_s = results.summary.get("tau_s")
    what = "CPU h" if is_slurm(results.summary) else "host h"
    fair = _fairness(jobs, tau_s if isinstance(tau_s, int | float) else TAU_S, what)
    return [Section("Who waited how long", "", (*_by_size_and_length(jobs), *fair), charts=charts)]


def _strips(kind: str, classes: Sequence[Strip]) -> dict[str, Any]:
    worst = max((each for each in classes if each.name != RUNNING[1]), key=lambda each: each.half)
    many = count(sum(each.jobs for each in classes), "job")
    named = f"{kind} " if kind in ("user", "partition") else ""
    sentence = f"By {kind}, of {many}: those of {named}{worst.name} wait longest, in the median "
    sentence += duration(worst.half)
    most = max(classes, key=lambda each: each.killed)
    if most.killed:
        part = number(most.killed, "share")
        sentence += f"; those of {named}{most.name} are killed most often, {part} of them"
    return {
        "chart": "strip",
        "label": kind,
        "sentence": f"{sentence}.",
        "killed": most.killed > 0.0,
        "rows": [each._asdict() for each in classes],
        "to": (to := 1.1 * max([60.0, *(level for each in classes for level in each.quantiles)])),
        "marks": log_marks("time", 1.0, to),
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
    columns = {"size": "text"} | {name: "drawn" for _, name in lengths}
    return (Table(columns, rows, caption=caption),)


def _fairness(jobs: Waited, tau_s: float, what: str) -> tuple[Table, ...]:
    """A table of what each user got: work, waits, and mean bounded slowdowns of jobs that ended.

    what: the unit of work. Jain's index of the means: 1 where all are equal, 1 / n where one of n
    users has all the slowdown.
    """
    names = [name for _, name in jobs.classes.get("user", ())]
    done = np.isfinite(jobs.lasted_s)
    users = [name for name in dict.fromkeys(names) if np.any(done[np.array(names) == name])]
    if len(users) < 2:
        return ()
    lasted_s = np.where(done, jobs.lasted_s, 0.0)
    slow = np.maximum((jobs.waits_s + lasted_s) / np.maximum(lasted_s, tau_s), 1.0)
    hours = jobs.sizes * lasted_s / 3600
    rows = []
    for user in users:
        its = done & (np.array(names) == user)
        half, tail = np.quantile(jobs.waits_s[its], (0.5, 0.95), method="inverted_cdf").tolist()
        used = float(hours[its].sum())
        part = used / (float(hours.sum()) or 1.0)
        rows.append((user, int(its.sum()), used, part, half, tail, float(slow[its].mean())))
    means = np.array([row[-1] for row in rows])
    index = float(means.sum() ** 2 / (len(means) * (means**2).sum()))
    caption = f"What users got; fairness of their mean bounded slowdowns (Jain): {number(index)}, "
    columns = {"user": "text", "jobs": "count", what: "number", "of all": "share",
               "median wait": "time", "95 % wait": "time",
               "mean bounded slowdown": "number"}  # fmt: skip
    return (Table(columns, rows, caption=f"{caption}where 1 is equal", order=(6, True),
                  key=(3, 6), same=(4, 5)),)  # fmt: skip


def slowdown_sections(results: Results) -> list[Section]:
    """Return the cumulative slowdowns of `results`, of those killed a curve of its own.

    Where no task is slowed there is nothing to draw.
    """
    chart = slowdown_chart(results) if results.what != "rank" and len(results.tasks) > 1 else None
    if chart is None or max(curve.high[-1] for curve in chart.curves) <= NOT_SLOWED:
        return []
    return [Section("Slowdowns", charts=(chart.data(),))]
