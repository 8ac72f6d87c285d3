"""Compare two runs task by task, and in total."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import whole_file
from ptaskmodel.results.loading import Results, ShownTask, main_limits, results_of
from ptaskmodel.results.pictures.charts import Cumulative, cumulative_figure, curves
from ptaskmodel.results.states import ENDED, NOT_RUN, OUTCOMES, in_words, outcome_of
from ptaskmodel.style.figures import check_picture, picture, save
from ptaskmodel.style.text import count, elided

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = (
    *("task_id", "state_a", "state_b", "time_a_s", "time_b_s", "change_s", "ratio"),
    *("finish_a_s", "finish_b_s", "slowdown_a", "slowdown_b", "waiting_a_s", "waiting_b_s"),
    *("limit_a", "limit_b", "hosts_changed"),
)
# Relative difference of times up to which they are called equal, if nothing is said.
SAME = 1e-6
# What may become of the time of a task, and of the waiting of a job.
TIMES = ("faster", "equal", "slower")
WAITS = ("wait less", "wait the same", "wait longer")
WAITING = "waiting of the"  # of the jobs in both
MOST_LETTERS = 40  # of the name of a run
# Of a task that was killed, or did not run, in one of the runs or both: its time says nothing.
NOT_BOTH = "did not end in both"


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
        if pair.change_s is None:
            return NOT_BOTH
        return self._told(pair.change_s, pair.a.duration_s, pair.b.duration_s, TIMES)

    def _told(
        self, change_s: float, before_s: float | None, after_s: float | None, words: Sequence[str]
    ) -> str:
        """One of ``words``, for less, the same and more."""
        if abs(change_s) <= self.tolerance * max(before_s or 0.0, after_s or 0.0):
            return words[1]
        return words[2 if change_s > 0.0 else 0]

    def counts(self) -> dict[str, int]:
        """How many tasks that ended in both got faster, slower, kept their time; and the rest."""
        verdicts = Counter(map(self.verdict, self.pairs))
        return {name: verdicts[name] for name in ("faster", "slower", "equal", NOT_BOTH)}

    def waiting_verdict(self, pair: Pair) -> str | None:
        """Return one of WAITS for a `pair`; None for tasks, and for a job that did not start in
        both runs.
        """
        if pair.waits_longer_s is None:
            return None
        return self._told(pair.waits_longer_s, pair.a.waiting_s, pair.b.waiting_s, WAITS)

    def waits(self) -> dict[str, int]:
        """How many jobs wait less, the same or longer, of those that start in both runs."""
        verdicts = Counter(map(self.waiting_verdict, self.pairs))
        return {name: verdicts[name] for name in WAITS}

    def said(self) -> str:
        """`counts` and `waits` for a reader."""
        return "; ".join(
            ", ".join(f"{count(number)} {name}" for name, number in counts.items() if number)
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
    limits = [{name: limit for name, (limit, *_) in main_limits(each.limits).items()}
              for each in (a, b)]  # fmt: skip
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


def changes_of(comparison: Comparison) -> list[Cumulative]:
    """Return charts of the times of tasks that ended in both runs, and of their ratios.

    Ratios are left out if each is 1. Of jobs that all keep their time, when only the schedule
    changed: how long they wait.
    """
    counts, what = comparison.counts(), comparison.a.what
    if any(comparison.waits().values()) and not counts["faster"] + counts["slower"]:
        pairs = [pair for pair in comparison.pairs if pair.waits_longer_s is not None]
        return [_of_both(f"{WAITING} {count(len(pairs), what)} in both", pairs, "waiting_s")]
    timed = [pair for pair in comparison.pairs if pair.change_s is not None]
    label = f"time of the {count(len(timed), what)} that ended in both"
    charts = [_of_both(label, timed, "duration_s")] if timed else []
    ratios = [pair.ratio for pair in timed if pair.ratio]
    if counts["faster"] + counts["slower"] and ratios:
        (curve,) = curves({"b / a": [ratios]})
        alone = curve._replace(role="use")  # compared with none
        charts.append(Cumulative("time in b over time in a", "number", [alone]))
    return charts


def _of_both(label: str, pairs: Sequence[Pair], of: str) -> Cumulative:
    """The chart of a number of tasks, by its name, in both runs."""
    values = {run: [[getattr(getattr(pair, run), of) for pair in pairs]] for run in "ab"}
    return Cumulative(label, "time", curves(values))


@picture
def comparison_figure(comparison: Comparison) -> Figure:
    """Times of tasks that ended in both runs, or how long jobs wait, cumulative."""
    charts = changes_of(comparison)
    if not charts:
        raise PTaskModelError(f"no {comparison.a.what} ended in both runs; nothing to draw")
    names = (elided(one.directory.name, MOST_LETTERS) for one in (comparison.a, comparison.b))
    runs = ", ".join(f"{run}: {name}" for run, name in zip("ab", names, strict=True))
    figure = cumulative_figure(charts, comparison.said(), runs)
    figure.set_label(f"{runs}: {comparison.said()}. {figure.get_label()}")
    return figure
