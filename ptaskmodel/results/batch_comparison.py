"""Compare batch runs: whether they did the same work, then metrics of users and of the machine.

A run that was stopped, or ran other jobs, is shown but not compared: its means are of other work.
No value is marked as best, because less waiting may mean that more jobs were killed.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import whole_file
from ptaskmodel.results.compared_metrics import (
    COUNT,
    NUMBER,
    SAME,
    SHARE,
    TIME,
    USERS,
    Group,
    Metric,
    change_text,
    chosen,
    ended,
    inputs_of,
    metrics_of,
    number_of,
    repetitions,
    short_names,
)
from ptaskmodel.results.loading import Results, ShownTask, results_of
from ptaskmodel.results.pictures.charts import Cumulative, Curve, Dot, DotPanel, curves, draw_dots
from ptaskmodel.style.figures import (
    WIDE,
    check_picture,
    finished,
    new_figure,
    picture,
    run_role,
    run_sign,
    save,
)
from ptaskmodel.style.text import UNKNOWN, count, duration, elided, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINE = 0.27  # inches of a metric
SLOWED = "mean contention slowdown"
# Runs that the sentence at the head names.
MOST_NAMED = 5


@dataclass(frozen=True, slots=True, eq=False)
class Standings:
    """Runs by name, and their metrics in groups.

    apart: why a run is not compared with the others, for those that are not. common: the tasks that
    ended in all runs that are compared. first: the name of the run that others are compared with.
    """

    runs: dict[str, Results]
    groups: list[Group]
    apart: dict[str, str]
    common: set[str]
    first: str

    @property
    def what(self) -> str:
        return self.runs[self.first].what

    def text(
        self, metric: Metric, values: Sequence[float | None], k: int, change: bool = True
    ) -> str:
        """The value of a `metric` of run `k`, and its `change` against the first run in words.

        values: of all runs. Of what became of tasks, also which part of the submitted ones it is.
        """
        value = values[k]
        if value is None:
            return ""
        shown = metric.column(values).text(value)
        name = list(self.runs)[k]
        if metric.kind == COUNT and metric.better and (whole := self.runs[name].submitted):
            shown += f" ({number(value / whole, SHARE)})"
        base = values[list(self.runs).index(self.first)]
        if not change or name == self.first or name in self.apart or base is None:
            return shown
        return f"{shown}, {change_text(metric.kind, base, value)}"

    def lines(self, change: bool = True) -> list[tuple[str, ...]]:
        """Lines of a table of all metrics; with or without the `change` against the first run."""
        rows: list[tuple[str, ...]] = []
        columns = len(self.runs)
        if self.apart:
            rows.append(("comparable", *(self.apart.get(name, "yes") for name in self.runs), ""))
        for group in self.groups:
            rows.append((group.title, *[""] * (columns + 1)))
            rows += [
                (
                    f"  {metric.label(values)}",
                    *(self.text(metric, values, k, change) for k in range(columns)),
                    metric.better,
                )
                for metric, values in group.rows
            ]
        return rows

    def head(self) -> str:
        """How much of the work each run did, and what filled a full machine, in sentences."""
        return " ".join(self.sentences())

    def sentences(self) -> list[str]:
        """Return the sentences of `head`, that of the work of comparable runs first."""
        return list(_head(self))

    def choices(self) -> list[tuple[str, ...]]:
        """(name, its value in each run) of the inputs and choices that differ."""
        summaries = [results.summary for results in self.runs.values()]
        made = [chosen(summary) for summary in summaries]
        names = dict.fromkeys(name for one in made for name in one)
        if not all("parameters" in summary for summary in summaries):
            names = {name: None for name in names if all(name in one for one in made)}
        rows = [(name, *(_told(one.get(name)) for one in made)) for name in names]
        inputs = [inputs_of(summary) for summary in summaries]
        common = set.intersection(*({digest for _, digest in listed} for listed in inputs))
        others = ([one for one in listed if one[1] not in common] for listed in inputs)
        for each in itertools.zip_longest(*others, fillvalue=(UNKNOWN, "")):
            rows.append(
                ("input", *(f"{Path(path).name} {digest[:8]}".strip() for path, digest in each))
            )
        return [row for row in rows if len(set(row[1:])) > 1]

    def inputs_text(self) -> str:
        """Whether all runs read the same."""
        inputs = [inputs_of(results.summary) for results in self.runs.values()]
        digests = [[digest for _, digest in listed] for listed in inputs]
        if not digests[0] or any(each != digests[0] for each in digests):
            return "Inputs differ." if any(digests) else "Inputs are not known."
        names = ", ".join(Path(path).name for path, _ in inputs[0])
        same = "" if self.choices() else ", and all choices that are told are equal"
        return f"All runs have equal inputs ({names}){same}."

    def write(self, path: str | Path) -> None:
        """Write a CSV file: a line for each metric with its group, a column for each run, in SI."""
        with whole_file(path) as stream:
            writer = csv.writer(stream, lineterminator="\n")
            whole = (results.directory.name for results in self.runs.values())
            writer.writerow(("group", "metric", *whole))
            for group in self.groups:
                for metric, values in group.rows:
                    texts = ("" if v is None else v for v in values)
                    writer.writerow((group.title, metric.name, *texts))


def standings(
    runs: Sequence[Results | str | Path],
    *,
    table: str | Path | None = None,
    picture: str | Path | None = None,
) -> Standings:
    """Runs side by side, or those in directories, each by the name of its directory.

    table: also write a CSV file; picture: also draw metrics and queues (.png, .svg or .pdf). Raises
    PTaskModelError if results cannot be read or are of different kinds, or a file cannot be
    written.
    """
    if picture is not None:
        check_picture(picture)
    every = [results_of(each) for each in runs]
    names = [results.directory.name for results in every]
    if len(set(names)) < len(names):
        names = [str(results.directory) for results in every]
    found = dict(zip(short_names(names), every, strict=True))
    kinds = {results.what for results in found.values()}
    if len(kinds) > 1:
        listed = ", ".join(f"{r.directory}: {r.what}s" for r in found.values())
        raise PTaskModelError(f"results of different kinds ({listed}); compare runs of one kind")
    apart = _apart(found)
    first = next((name for name in found if name not in apart), next(iter(found)))
    alike = [name for name in found if name not in apart] or [first]
    common = set.intersection(*(ended(found[name]) for name in alike))
    groups = [Group(title, _rows(each, found)) for title, each in metrics_of(found, common, alike)]
    groups = [group for group in groups if group.rows]
    made = Standings(found, groups, apart, common, first)
    if table is not None:
        made.write(table)
    if picture is not None:
        save(standings_figure(made), picture)
    return made


def _rows(
    metrics: Iterable[Metric], runs: Mapping[str, Results]
) -> list[tuple[Metric, list[float | None]]]:
    """Each metric with its values; one that no run has is left out."""
    found = [(metric, [metric.of(results) for results in runs.values()]) for metric in metrics]
    return [row for row in found if any(value is not None for value in row[1])]


def _told(value: object) -> str:
    return UNKNOWN if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _apart(runs: Mapping[str, Results]) -> dict[str, str]:
    """Why runs are not comparable: they were stopped, or ran other tasks than the first one."""
    found = {}
    ids: set[str] | None = None
    for name, results in runs.items():
        mine = {task.task_id for task in results.tasks}
        if results.stopped is not None:
            found[name] = f"stopped at {duration(results.stopped.at_s)}"
        elif ids is None:
            ids = mine
        elif mine != ids:
            found[name] = f"other {results.what}s"
    return found


def _head(found: Standings) -> Iterable[str]:
    what = found.what
    counts = {
        name: (len(ended(results)), results.submitted)
        for name, results in found.runs.items()
        if name not in found.apart
    }
    order = sorted(counts, key=lambda name: -counts[name][0])
    if len(order) > 1 and len(set(counts.values())) == 1:
        done, whole = counts[order[0]]
        who = "Both runs end" if len(order) == len(found.runs) == 2 else "The runs each end"
        yield f"{who} {count(done)} of {count(whole, what)}{_which_differ(found)}."
        yield from _first_difference(found, order)
    elif order:
        done, whole = counts[order[0]]
        texts = [f"{_run(order[0])} ends {count(done)} of {count(whole, what)}"]
        texts += [f"{_run(name)} {count(counts[name][0])}" for name in order[1:MOST_NAMED]]
        if rest := [counts[name][0] for name in reversed(order[MOST_NAMED:])]:
            texts.append(f"{count(len(rest), 'other')} {_reach(rest, NUMBER)}")
        yield ", ".join(texts) + _wasted(found, order) + "."
        yield from _slowed(found, order)
    for name, why in found.apart.items():
        results = found.runs[name]
        yield (
            f"{_run(name)} is not comparable ({why}): it ends {count(len(ended(results)))} of "
            f"{count(results.submitted, what)}."
        )


def _run(name: str) -> str:
    """The name of a run in a sentence: one that is a number is no word."""
    return f"run {name}" if name[:1].isdigit() else name


def _slowed(found: Standings, order: Sequence[str]) -> Iterable[str]:
    """By how much contention slows each run, the least first; killed tasks are in it."""
    rows = (row for group in found.groups for row in group.rows)
    values = next((its for metric, its in rows if metric.name.startswith(SLOWED)), ())
    slow = {name: its for name, its in zip(found.runs, values, strict=False)
            if its is not None and name in order}  # fmt: skip
    if len(slow) == len(order):
        told = dict(sorted(slow.items(), key=lambda item: item[1]))
        yield from _each(found, SLOWED, NUMBER, told)


def _each(found: Standings, name: str, kind: str, values: Mapping[str, float]) -> Iterable[str]:
    """The values of a metric in the first runs; nothing where all are the same.

    Of more than these, runs that differ by their seed are told together.
    """
    if values and max(values.values()) > min(values.values()) * (1 + SAME):
        its = {run: [value] for run, value in values.items()}
        if len(its) > MOST_NAMED:
            of = {id(found.runs[run]): value for run, value in values.items()}
            alike = repetitions({run: found.runs[run] for run in values})
            its = {run: sorted(of[id(each)] for each in runs) for run, runs in alike.items()}
        shown = [f"{_run(run)} {_reach(each, kind)}" for run, each in its.items()]
        if rest := sorted(itertools.chain(*[*its.values()][MOST_NAMED:])):
            shown[MOST_NAMED:] = [f"{count(len(rest), 'other')} {_reach(rest, kind)}"]
        yield f"{name[0].upper()}{name[1:]}: {', '.join(shown)}."


def _reach(values: Sequence[float], kind: str) -> str:
    """From the least to the largest of ascending values, or the one there is."""
    return " to ".join(dict.fromkeys(number(values[k], kind) for k in (0, -1)))


def _first_difference(found: Standings, order: Sequence[str]) -> Iterable[str]:
    """Of runs that did the same work: the first metric of users in which they differ."""
    names = list(found.runs)
    for group in found.groups:
        for metric, values in group.rows if group.title == USERS else ():
            mine = {
                name: value for name in order if (value := values[names.index(name)]) is not None
            }
            if len(mine) == len(order) and (
                said := list(_each(found, metric.name, metric.kind, mine))
            ):
                yield from said
                return


def _which_differ(found: Standings) -> str:
    """Where runs end as many tasks: whether they are the same ones."""
    alike = [results for name, results in found.runs.items() if name not in found.apart]
    return "" if len({frozenset(ended(results)) for results in alike}) == 1 else ", not the same"


def _wasted(found: Standings, order: Sequence[str]) -> str:
    """That the machine which is fullest is full of work that was thrown away, if it is."""
    used = {name: number_of(found.runs[name].summary, "utilisation") for name in order}
    useful = {name: number_of(found.runs[name].summary, "useful_utilisation") for name in order}
    known = {name: value for name, value in used.items() if value is not None}
    if len(known) < len(order) or not known:
        return ""
    fullest = max(known, key=lambda name: known[name])
    mine = useful[fullest]
    if fullest == order[0] or mine is None:
        return ""
    full = f"; {_run(fullest)}'s machine is fullest ({number(known[fullest], SHARE)})"
    return f"{full}, with work that was thrown away ({number(mine, SHARE)} useful)"


def curves_of(found: Standings) -> list[Cumulative]:
    """Return cumulative charts of the runs `found`, a curve of those that differ by their seed.

    Waiting of all jobs that started; slowdowns of all tasks of which they are known; of jobs also
    the waiting of those that ended in all runs, if others did not.
    """
    alike = {name: run for name, run in found.runs.items() if name not in found.apart}
    groups, common = repetitions(alike or found.runs), found.common

    def of(value: Callable[[ShownTask], float | None], ids: set[str] | None = None) -> list[Curve]:
        return curves(
            {
                name: [
                    [x for task in run.tasks if (ids is None or task.task_id in ids)
                     and (x := value(task)) is not None]
                    for run in its
                ]
                for name, its in groups.items()
            }
        )  # fmt: skip

    made = [
        Cumulative(f"waiting of all {found.what}s that started", TIME, of(lambda t: t.waiting_s)),
        Cumulative(f"contention slowdown of all {found.what}s", NUMBER, of(lambda t: t.slowdown)),
    ]
    if common and any(ended(run) != common for run in alike.values()):
        title = f"waiting of the {count(len(common), found.what)} that ended in all runs"
        made.insert(1, Cumulative(title, TIME, of(lambda task: task.waiting_s, common)))
    return [one for one in made if any(curve.middle.max() > 0.0 for curve in one.curves)]


def placed(values: Sequence[float | None]) -> list[Dot]:
    """Return a dot of each run whose value is known, as a part of the largest; [] if that is 0.

    values: of all runs.
    """
    most = max((value for value in values if value is not None), default=0.0)
    return [
        Dot(max(value, 0.0) / most, role=run_role(k), sign=run_sign(k))
        for k, value in enumerate(values)
        if value is not None and most > 0.0
    ]


@picture
def standings_figure(found: Standings) -> Figure:
    """Each metric of each run as a part of the largest, and cumulative waits and slowdowns."""
    names, rows = [], []
    for group in found.groups:
        for metric, values in group.rows:
            if dots := placed(values):
                unit, most = metric.column(values), max(value or 0.0 for value in values)
                names.append(f"{metric.name} (largest {unit.text(most)} {unit.unit}".rstrip() + ")")
                rows.append(dots)
    below = curves_of(found)
    high = LINE * len(rows) + 1.2
    figure = new_figure(WIDE, high + 3.0 * len(below))
    panels = figure.subplots(1 + len(below), 1, height_ratios=(high, *(3.0 for _ in below)))
    first, *others = np.atleast_1d(panels)
    draw_dots(first, DotPanel("part of the largest", SHARE, rows), spread=0.0)
    first.set_yticks(range(len(names)), names)
    first.set_ylim(len(names) - 0.5, -0.5)
    runs = [
        f"{run_sign(k)} {elided(name, 40)}" + ", not comparable" * (name in found.apart)
        for k, name in enumerate(found.runs)
    ]
    for axes, chart in zip(others, below, strict=True):
        chart.draw(axes)
    return finished(figure, found.sentences()[0], "  ".join(runs), found.head())
