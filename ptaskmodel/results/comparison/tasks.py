"""Compare two runs task by task, and in total."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import whole_file
from ptaskmodel.recording.limits import WAITING
from ptaskmodel.results.loading import Results, ShownTask, results_of
from ptaskmodel.results.pictures.charts import TIME_MARKS
from ptaskmodel.results.pictures.drawing import (
    WIDE,
    check_picture,
    finished,
    new_figure,
    picture,
    save,
)
from ptaskmodel.results.states import ENDED, NOT_RUN, OUTCOMES, in_words, outcome_of
from ptaskmodel.style.colours import LIGHT
from ptaskmodel.style.text import change, count, number, unit_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]
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
    "waiting_a_s",
    "waiting_b_s",
    "limit_a",
    "limit_b",
    "hosts_changed",
)
# Relative difference of times up to which they are called equal, if nothing is said.
SAME = 1e-6
# What may become of the waiting of a job.
WAITS = ("wait less", "wait the same", "wait longer")
# Of a task that was killed, or did not run, in one of the runs or both: its time says nothing.
NOT_BOTH = "did not end in both"
# Of what takes less, the same and more: colours and markers.
STYLES = ((LIGHT.gain, "v"), (LIGHT.soft, "o"), (LIGHT.lose, "^"))


@dataclass(frozen=True, slots=True)
class Pair:
    """One task in both runs, and what mostly limited it in each (None if that is not known)."""

    a: ShownTask
    b: ShownTask
    limit_a: str | None
    limit_b: str | None

    @property
    def states(self) -> str:
        """What became of it in a, and in b where that is something else, in words."""
        before, after = in_words(self.a.state), in_words(self.b.state)
        return before if before == after else f"{before} → {after}"

    @property
    def ended_in_both(self) -> bool:
        return outcome_of(self.a.state) == outcome_of(self.b.state) == ENDED

    @property
    def change_s(self) -> float | None:
        """How much longer it took in b, s; None unless it ended in both."""
        before, after = self.a.duration_s, self.b.duration_s
        if before is None or after is None or not self.ended_in_both:
            return None
        return after - before

    @property
    def waits_longer_s(self) -> float | None:
        before, after = self.a.waiting_s, self.b.waiting_s
        return None if before is None or after is None else after - before

    @property
    def ratio(self) -> float | None:
        before, after = self.a.duration_s, self.b.duration_s
        return after / before if before and after is not None and self.ended_in_both else None

    def row(self) -> tuple[Any, ...]:
        """The values of COLUMNS."""
        a, b = self.a, self.b
        return (
            a.task_id, a.state, b.state, a.duration_s, b.duration_s, self.change_s, self.ratio,
            a.end_s, b.end_s, a.slowdown, b.slowdown, a.waiting_s, b.waiting_s,
            self.limit_a, self.limit_b,
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

    def outcomes(self) -> list[tuple[str, tuple[int, int, int]]]:
        """(what became of tasks in a, how many of them ended, were killed, did not run in b).

        One that only one run has did not run in the other. What runs when a run is stopped has
        neither ended nor been killed: it counts as not run.
        """
        b = {task.task_id: outcome_of(task.state) for task in self.b.tasks}
        counts = Counter(
            (outcome_of(task.state), b.pop(task.task_id, NOT_RUN)) for task in self.a.tasks
        )
        counts.update((NOT_RUN, outcome) for outcome in b.values())
        ended, killed, not_run = OUTCOMES
        return [(each, (counts[each, ended], counts[each, killed], counts[each, not_run]))
                for each in OUTCOMES]  # fmt: skip

    def verdict(self, pair: Pair) -> str:
        """Return "faster", "slower" or "equal" for a `pair`; NOT_BOTH if it did not end in both
        runs.
        """
        change, before = pair.change_s, pair.a.duration_s
        if change is None or before is None:
            return NOT_BOTH
        if abs(change) <= self.tolerance * max(before, abs(before + change)):
            return "equal"
        return "slower" if change > 0.0 else "faster"

    def counts(self) -> dict[str, int]:
        """How many tasks that ended in both got faster, slower, kept their time; and the rest."""
        counts = {"faster": 0, "slower": 0, "equal": 0, NOT_BOTH: 0}
        for pair in self.pairs:
            counts[self.verdict(pair)] += 1
        return counts

    def waiting_verdict(self, pair: Pair) -> str | None:
        """Return one of WAITS for a `pair`; None for tasks, and for a job that did not start in
        both runs.
        """
        change = pair.waits_longer_s
        if change is None:
            return None
        less, same, longer = WAITS
        if abs(change) <= self.tolerance * max(pair.a.waiting_s or 0.0, pair.b.waiting_s or 0.0):
            return same
        return longer if change > 0.0 else less

    def waits(self) -> dict[str, int]:
        """How many jobs wait less, the same or longer, of those that start in both runs."""
        verdicts = [self.waiting_verdict(pair) for pair in self.pairs]
        return {name: verdicts.count(name) for name in WAITS}

    def said(self) -> str:
        """`counts` and `waits` for a reader."""
        return "; ".join(
            ", ".join(f"{number:,} {name}" for name, number in counts.items() if number)
            for counts in (self.counts(), self.waits())
            if any(counts.values())
        )

    def most_changed(self, number: int) -> list[Pair]:
        """Return the `number` of pairs whose time changed most, in s; ties in order."""
        known = [pair for pair in self.pairs if self.verdict(pair) in ("faster", "slower")]
        return sorted(known, key=lambda pair: -abs(pair.change_s or 0.0))[:number]

    def most_moved(self, number: int) -> list[Pair]:
        """Return the `number` of pairs of jobs whose waiting time changed most, in s; ties in
        order.
        """
        known = [pair for pair in self.pairs if pair.waits_longer_s]
        return sorted(known, key=lambda pair: -abs(pair.waits_longer_s or 0.0))[:number]

    def write(self, stream: IO[str]) -> None:
        """Write COLUMNS of every task of both runs to `stream` as CSV."""
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
    """Compare two runs, `a` and `b`, task by task; tasks are matched by id.

    Each is `Results` or a directory. tolerance: relative difference of times up to which they are
    equal. table: also write a CSV file with a line for every task. picture: also draw the times of
    one run against those of the other (.png, .svg or .pdf). Raises PTaskModelError if results
    cannot be read, have no task in common, or a file cannot be written.
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


@picture
def comparison_figure(comparison: Comparison) -> Figure:
    """Times of tasks that ended in both runs against each other, and how ratios are distributed.

    Of jobs that all keep their time, when only the schedule changed: how long they wait.
    """
    counts = comparison.counts()
    if any(comparison.waits().values()) and not counts["faster"] + counts["slower"]:
        return _waiting_figure(comparison)
    timed = [pair for pair in comparison.pairs if comparison.verdict(pair) != NOT_BOTH]
    if not timed:
        raise PTaskModelError(f"no {comparison.a.what} ended in both runs; nothing to draw")
    times = np.array([(pair.a.duration_s, pair.b.duration_s) for pair in timed])
    verdicts = np.array([comparison.verdict(pair) for pair in timed])
    figure, right = _against(comparison, times, verdicts, ("faster", "equal", "slower"), "time")
    ratios = np.sort([pair.ratio for pair in timed if pair.ratio is not None])
    if len(ratios):
        _step(right, ratios)
        if ratios[0] > 0.0 and ratios[-1] > 20 * ratios[0]:
            right.set_xscale("log")
    right.axvline(1.0, color=LIGHT.soft, linewidth=1.0)
    right.set_xlabel("time in b / time in a")
    right.set_ylabel(f"{comparison.a.what}s with at most that ratio (%)")
    half = float(np.median(ratios)) if len(ratios) else 1.0
    middle = "" if abs(half - 1.0) < 1e-3 else f"; in the middle {number(half)} times as long"
    return _named(figure, comparison, f"{comparison.said()}{middle}")


def _waiting_figure(comparison: Comparison) -> Figure:
    """How long each job waits in both runs, and how the differences are distributed."""
    pairs = [pair for pair in comparison.pairs if pair.waits_longer_s is not None]
    waits = np.array([(pair.a.waiting_s, pair.b.waiting_s) for pair in pairs])
    verdicts = np.array([comparison.waiting_verdict(pair) for pair in pairs])
    figure, right = _against(comparison, waits, verdicts, WAITS, "waiting")
    changes = np.sort(waits[:, 1] - waits[:, 0])
    unit, unit_name = unit_of(float(np.abs(changes).max()), "time")
    _step(right, changes / unit)
    right.axvline(0.0, color=LIGHT.soft, linewidth=1.0)
    right.set_xlabel(f"waiting in b minus that in a ({unit_name})")
    right.set_ylabel("jobs with at most that change (%)")
    half = change(float(np.median(changes)), "time")
    return _named(figure, comparison, f"{comparison.said()}; in the middle {half}")


def _named(figure: Figure, comparison: Comparison, said: str) -> Figure:
    """The figure with its head: what is said of it, and which runs these are."""
    runs = f"a: {comparison.a.directory.name}, b: {comparison.b.directory.name}"
    return finished(figure, said, runs, f"{runs}: {said}.")


def _against(
    comparison: Comparison,
    times: FloatArray,
    verdicts: NDArray[np.str_],
    names: Sequence[str],
    what: str,
) -> tuple[Figure, Any]:
    """A figure whose left half has times in b over times in a, s, shape (n, 2); its right half.

    names: of the verdicts that times in b are less, the same, and more.
    """
    figure = new_figure(WIDE, 4.8)
    left, right = figure.subplots(1, 2)
    size = 30.0 if len(times) <= 200 else 6.0
    for name, (colour, marker) in zip(names, STYLES, strict=True):
        chosen = np.maximum(times[verdicts == name], 1.0)
        left.scatter(
            chosen[:, 0], chosen[:, 1], s=size, c=colour, marker=marker, linewidths=0, alpha=0.8,
            rasterized=len(times) > 2000, label=f"{count(len(chosen))} {name}",
        )  # fmt: skip
    left.axline((1.0, 1.0), (2.0, 2.0), color=LIGHT.soft, linewidth=1.0)
    marks = {at: name for at, name in TIME_MARKS.items() if at <= max(float(times.max()), 60.0)}
    left.set(xscale="log", yscale="log")
    for axis, run in ((left.xaxis, "a"), (left.yaxis, "b")):
        axis.set_ticks(list(marks), list(marks.values()))
        axis.set_ticks([], minor=True)
        axis.set_label_text(f"{what} in {run} (log, up to 1 s at 1 s)")
    left.set(xlim=(0.8, 1.3 * max(times.max(), 60.0)), ylim=(0.8, 1.3 * max(times.max(), 60.0)))
    left.legend(markerscale=1.0 if len(times) <= 200 else 3.0)
    right.set_ylim(0.0, 102.0)
    return figure, right


def _step(axes: Any, values: FloatArray) -> None:
    """The distribution of sorted values, in %."""
    part = 100.0 * np.arange(1, len(values) + 1) / len(values)
    axes.step(values, part, where="post", color=LIGHT.use, linewidth=2)
