"""What changed between two runs: task by task, and in total."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import whole_file
from ptaskmodel.recording.limits import WAITING
from ptaskmodel.results.drawing import (
    BLUE,
    GREY,
    RED,
    check_picture,
    new_figure,
    save,
    time_unit,
)
from ptaskmodel.results.loading import Results, ShownTask, results_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = (
    "task_id",
    "state_a",
    "state_b",
    "time_a_s",
    "time_b_s",
    "change_s",
    "ratio",
    "finish_a_s",
    "finish_b_s",
    "slowdown_a",
    "slowdown_b",
    "limit_a",
    "limit_b",
    "hosts_changed",
)
CHOICES = ("solver", "network_model", "count", "policy", "allocation")
# Relative difference of times up to which they are called equal, if nothing is said.
SAME = 1e-6
# Metrics in summaries: name, key, and the statistic of a distribution or a part.
METRICS = (
    ("mean waiting (s)", "waiting_s", "mean"),
    ("mean turnaround (s)", "turnaround_s", "mean"),
    ("mean slowdown", "slowdown", "mean"),
    ("mean bounded slowdown", "bounded_slowdown", "mean"),
    ("largest waiting (s)", "waiting_s", "max"),
    ("utilisation", "utilisation", None),
    ("jobs per hour", "throughput_jobs_per_hour", None),
    ("energy (J)", "energy", "total_J"),
    ("peak power (W)", "energy", "peak_W"),
)


@dataclass(frozen=True, slots=True)
class Pair:
    """One task in both runs, and what mostly limited it in each (None if that is not known)."""

    a: ShownTask
    b: ShownTask
    limit_a: str | None
    limit_b: str | None

    @property
    def change_s(self) -> float | None:
        before, after = self.a.duration_s, self.b.duration_s
        return None if before is None or after is None else after - before

    @property
    def ratio(self) -> float | None:
        before, after = self.a.duration_s, self.b.duration_s
        return after / before if before and after is not None else None

    def row(self) -> tuple[Any, ...]:
        """The values of COLUMNS."""
        a, b = self.a, self.b
        return (
            a.task_id, a.state, b.state, a.duration_s, b.duration_s, self.change_s, self.ratio,
            a.finish_s, b.finish_s, a.slowdown, b.slowdown, self.limit_a, self.limit_b,
            "yes" if sorted(a.hosts) != sorted(b.hosts) else "no",
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Two runs: the tasks of both, and the ids of those that only one has.

    tolerance: the relative difference of times up to which they are equal.
    """

    a: Results
    b: Results
    pairs: list[Pair]
    only_a: list[str]
    only_b: list[str]
    tolerance: float = SAME

    def choices(self) -> list[tuple[str, str, str]]:
        """(name, in a, in b) of the inputs and choices that differ."""
        found = []
        for name in CHOICES:
            values = [str(results.summary.get(name)) for results in (self.a, self.b)]
            if values[0] != values[1]:
                found.append((name, values[0], values[1]))
        inputs = [results.summary.get("inputs") or [] for results in (self.a, self.b)]
        for before, after in zip(*inputs, strict=False):
            if before.get("sha256") != after.get("sha256"):
                found.append(("input", str(before.get("path")), str(after.get("path"))))
        return found

    def totals(self) -> list[tuple[str, float | None, float | None]]:
        """(what, in a, in b) over the tasks of each run; what neither says is left out."""
        measures: list[tuple[str, Callable[[Results], float | None]]] = [
            ("makespan (s)", lambda r: r.end_s),
            (f"{self.a.what}s", lambda r: float(len(r.tasks))),
            ("completed", lambda r: float(sum(_completed(t) for t in r.tasks))),
            ("mean time (s)", lambda r: _mean([t.duration_s for t in r.tasks])),
            ("longest time (s)", lambda r: _largest([t.duration_s for t in r.tasks])),
            ("mean contention slowdown", lambda r: _mean([t.slowdown for t in r.tasks])),
            ("largest contention slowdown", lambda r: _largest([t.slowdown for t in r.tasks])),
        ]
        found = [(name, of(self.a), of(self.b)) for name, of in measures]
        for name, key, statistic in METRICS:
            x, y = (_metric(results.summary, key, statistic) for results in (self.a, self.b))
            found.append((name, x, y))
        return [row for row in found if row[1:] != (None, None)]

    def verdict(self, pair: Pair) -> str:
        """ "faster", "slower", "equal", or "without a time" in one of the runs."""
        change, before = pair.change_s, pair.a.duration_s
        if change is None or before is None:
            return "without a time"
        if abs(change) <= self.tolerance * max(before, abs(before + change)):
            return "equal"
        return "slower" if change > 0.0 else "faster"

    def counts(self) -> dict[str, int]:
        """How many tasks got faster, slower, kept their time, or have none in one of the runs."""
        counts = {"faster": 0, "slower": 0, "equal": 0, "without a time": 0}
        for pair in self.pairs:
            counts[self.verdict(pair)] += 1
        return counts

    def most_changed(self, number: int) -> list[Pair]:
        """The pairs whose time changed most, in s; ties in order."""
        known = [pair for pair in self.pairs if self.verdict(pair) in ("faster", "slower")]
        return sorted(known, key=lambda pair: -abs(pair.change_s or 0.0))[:number]

    def write(self, stream: IO[str]) -> None:
        """Write COLUMNS of every task of both runs as CSV."""
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(pair.row() for pair in self.pairs)


def compare(
    a: Results | str | Path,
    b: Results | str | Path,
    *,
    table: str | Path | None = None,
    picture: str | Path | None = None,
    tolerance: float = SAME,
) -> Comparison:
    """Compare two runs, or those in two directories, task by task: tasks are matched by id.

    tolerance: relative difference of times up to which they are equal. table: also write a CSV
    file, a line for every task; picture: also draw times against each other (.png, .svg or .pdf).
    Raises PTaskModelError if results cannot be read, have no task in common, or a file
    cannot be written.
    """
    if picture is not None:
        check_picture(picture)
    found = _compared(results_of(a), results_of(b), tolerance)
    if table is not None:
        with whole_file(table) as stream:
            found.write(stream)
    if picture is not None:
        save(comparison_figure(found), picture)
    return found


def _compared(a: Results, b: Results, tolerance: float) -> Comparison:
    others = {task.task_id: task for task in b.tasks}
    limits = _main_limits(a), _main_limits(b)
    pairs = [
        Pair(t, others[t.task_id], limits[0].get(t.task_id), limits[1].get(t.task_id))
        for t in a.tasks
        if t.task_id in others
    ]
    if not pairs:
        raise PTaskModelError(
            f"{a.directory} and {b.directory}: no id is in both; compare runs of the same tasks"
        )
    mine = {task.task_id for task in a.tasks}
    only_a = [t.task_id for t in a.tasks if t.task_id not in others]
    only_b = [t.task_id for t in b.tasks if t.task_id not in mine]
    return Comparison(a, b, pairs, only_a, only_b, tolerance)


def _main_limits(results: Results) -> dict[str, str]:
    times: dict[str, dict[str, float]] = {}
    for interval in results.limits:
        if interval.limited_by != WAITING:
            limit = f"{interval.limited_by} {interval.resource}".strip()
            mine = times.setdefault(interval.task_id, {})
            mine[limit] = mine.get(limit, 0.0) + interval.end_s - interval.start_s
    return {task_id: max(mine, key=lambda n: mine[n]) for task_id, mine in times.items()}


def _metric(summary: dict[str, Any], key: str, statistic: str | None) -> float | None:
    value = summary.get(key)
    if statistic is not None:
        value = value.get(statistic) if isinstance(value, dict) else None
    return float(value) if isinstance(value, int | float) else None


def _completed(task: ShownTask) -> bool:
    return task.state in ("completed", "COMPLETED_SUCCESSFULLY")


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _largest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def comparison_figure(comparison: Comparison) -> Figure:
    """Times of each task in both runs against each other, and how the ratios are distributed."""
    timed = [pair for pair in comparison.pairs if comparison.verdict(pair) != "without a time"]
    if not timed:
        raise PTaskModelError("no task has a time in both runs; nothing to draw")
    longest = max(max(p.a.duration_s or 0.0, p.b.duration_s or 0.0) for p in timed)
    unit, unit_name = time_unit(longest)
    figure = new_figure(11.0, 5.2)
    left, right = figure.subplots(1, 2)
    styles = {"faster": (BLUE, "v"), "equal": (GREY, "o"), "slower": (RED, "^")}
    size = 30.0 if len(timed) <= 200 else 6.0
    for verdict, (colour, marker) in styles.items():
        chosen = [pair for pair in timed if comparison.verdict(pair) == verdict]
        left.scatter(
            [(pair.a.duration_s or 0.0) / unit for pair in chosen],
            [(pair.b.duration_s or 0.0) / unit for pair in chosen],
            s=size, c=colour, marker=marker, linewidths=0, alpha=0.8, rasterized=len(timed) > 2000,
            label=f"{len(chosen):,} {verdict}",
        )  # fmt: skip
    left.axline((0.0, 0.0), slope=1.0, color=GREY, linewidth=1.0)
    left.set_xlabel(f"time in a ({unit_name})")
    left.set_ylabel(f"time in b ({unit_name})")
    left.legend(frameon=False)
    ratios = np.sort([pair.ratio for pair in timed if pair.ratio is not None])
    if len(ratios):
        part = 100.0 * np.arange(1, len(ratios) + 1) / len(ratios)
        right.step(ratios, part, where="post", color=BLUE, linewidth=2)
        if ratios[0] > 0.0 and ratios[-1] > 20 * ratios[0]:
            right.set_xscale("log")
    right.axvline(1.0, color=GREY, linewidth=1.0)
    right.set_xlabel("time in b / time in a")
    right.set_ylabel(f"{comparison.a.what}s with at most that ratio (%)")
    right.set_ylim(0.0, 102.0)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    names = f"a: {comparison.a.directory}\nb: {comparison.b.directory}"
    figure.suptitle(names, fontsize=10, ha="left", x=0.01)
    return figure
