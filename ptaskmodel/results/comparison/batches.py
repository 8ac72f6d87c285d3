"""Compare batch runs: whether they did the same work, then metrics of users and of the machine.

A run that was stopped, or ran other jobs, is shown but not compared: its means are of other work.
No value is marked as best, because less waiting may mean that more jobs were killed.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import whole_file
from ptaskmodel.results.comparison.metrics import (
    Group,
    Metric,
    change_text,
    ended,
    metrics_of,
    number_of,
    value_text,
)
from ptaskmodel.results.loading import Results, results_of
from ptaskmodel.results.pictures.drawing import (
    GREY,
    check_picture,
    clock_text,
    colour_of,
    new_figure,
    save,
    short_name,
    time_unit,
)
from ptaskmodel.results.pictures.load import OVER_TIME, columns_of
from ptaskmodel.results.tables.slurm_reading import is_slurm, last_date_s, queue_depth, read_jobs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
LINE = 0.27  # inches of a metric
CHOICES = ("policy", "allocation", "solver", "network_model", "count")


@dataclass(frozen=True, slots=True, eq=False)
class Standings:
    """Runs by name, and their metrics in groups.

    apart: why a run is not compared with the others, for those that are not. ended_in_all: how many
    tasks ended in all runs that are compared. first: the name of the run that others are compared
    with.
    """

    runs: dict[str, Results]
    groups: list[Group]
    apart: dict[str, str]
    ended_in_all: int
    first: str

    @property
    def what(self) -> str:
        return self.runs[self.first].what

    def text(self, metric: Metric, values: Sequence[float | None], k: int) -> str:
        """The value of run k for a reader, with its change against the first run in words."""
        value = values[k]
        if value is None:
            return "-"
        shown = value_text(value)
        names = list(self.runs)
        base = values[names.index(self.first)]
        if names[k] == self.first or names[k] in self.apart or base is None:
            return shown
        return f"{shown} ({change_text(metric.kind, base, value)})"

    def head(self) -> str:
        """How much of the work each run did, and what filled a full machine, in one sentence."""
        return " ".join(_head(self))

    def choices(self) -> list[tuple[str, ...]]:
        """(name, its value in each run) of the inputs and choices that differ."""
        summaries = [results.summary for results in self.runs.values()]
        chosen = [_chosen(summary) for summary in summaries]
        names = dict.fromkeys(name for one in chosen for name in one)
        if not all("parameters" in summary for summary in summaries):
            names = {name: None for name in names if all(name in one for one in chosen)}
        rows = [(name, *(str(one.get(name, "-")) for one in chosen)) for name in names]
        inputs = [_inputs(summary) for summary in summaries]
        common = set.intersection(*({digest for _, digest in listed} for listed in inputs))
        others = ([one for one in listed if one[1] not in common] for listed in inputs)
        for each in itertools.zip_longest(*others, fillvalue=("-", "")):
            rows.append(("input", *(f"{path} {digest[:8]}".strip() for path, digest in each)))
        return [row for row in rows if len(set(row[1:])) > 1]

    def inputs_text(self) -> str:
        """Whether all runs read the same."""
        inputs = [_inputs(results.summary) for results in self.runs.values()]
        digests = [[digest for _, digest in listed] for listed in inputs]
        if not digests[0] or any(each != digests[0] for each in digests):
            return "Inputs differ." if any(digests) else "Inputs are not known."
        names = ", ".join(Path(path).name for path, _ in inputs[0])
        same = "" if self.choices() else ", and all choices that are told are equal"
        return f"All runs have equal inputs ({names}){same}."

    def write(self, path: str | Path) -> None:
        """Write a CSV file: a line for each metric with its group, a column for each run."""
        with whole_file(path) as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(("group", "metric", *self.runs))
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
    found: dict[str, Results] = {}
    for each in runs:
        results = results_of(each)
        name = results.directory.name
        found[name if name not in found else str(results.directory)] = results
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
    made = Standings(found, groups, apart, len(common), first)
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


def _apart(runs: Mapping[str, Results]) -> dict[str, str]:
    """Why runs are not comparable: they were stopped, or ran other tasks than the first one."""
    found = {}
    ids: set[str] | None = None
    for name, results in runs.items():
        mine = {task.task_id for task in results.tasks}
        if results.stopped is not None:
            found[name] = f"stopped at {clock_text(results.stopped.at_s)}"
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
        yield f"{who} {done:,} of {whole:,} {what}s{_which_differ(found)}."
    elif order:
        done, whole = counts[order[0]]
        texts = [f"{order[0]} ends {done:,} of {whole:,} {what}s"]
        texts += [f"{name} {counts[name][0]:,}" for name in order[1:]]
        yield ", ".join(texts) + _wasted(found, order) + "."
    for name, why in found.apart.items():
        results = found.runs[name]
        yield (
            f"{name} is not comparable ({why}): it ends {len(ended(results)):,} of "
            f"{results.submitted:,} {what}s."
        )


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
    full = f"; {fullest}'s machine is fullest ({100 * known[fullest]:.0f} %)"
    return f"{full}, with work that was thrown away ({100 * mine:.2g} % useful)"


def _chosen(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Values of options and settings by name; what a run found out for itself is known, too."""
    effective = {name: summary[name] for name in CHOICES if isinstance(summary.get(name), str)}
    return {**(summary.get("parameters") or {}), **effective, **(summary.get("settings") or {})}


def _inputs(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(path, digest) of each."""
    listed = summary.get("inputs") or []
    return [(str(one.get("path", "")), str(one.get("sha256", ""))) for one in listed]


def standings_figure(found: Standings) -> Figure:
    """Each metric of each run as a part of the largest, and the queue of each batch over time."""
    rows = [
        (metric.name, values)
        for group in found.groups
        for metric, values in group.rows
        if max(value or 0.0 for value in values) > 0.0
    ]
    queues = {}
    if found.what == "job":
        queues = {name: _queue(results) for name, results in found.runs.items()}
    above, below = LINE * len(rows) + 1.2, 3.0 if queues else 0.0
    figure = new_figure(11.0, above + below)
    if queues:
        panels = figure.subplots(2, 1, height_ratios=(above, below))
        _queues(panels[1], queues)
        _dots(panels[0], found, rows)
    else:
        _dots(figure.subplots(), found, rows)
    return figure


def _dots(axes: Any, found: Standings, rows: list[tuple[str, list[float | None]]]) -> None:
    for place, (_, values) in enumerate(rows):
        largest = max(value or 0.0 for value in values)
        axes.axhline(place, color=GREY, linewidth=0.5, alpha=0.6)
        axes.annotate(
            value_text(largest), (1.0, place), (6, 0), xycoords=("axes fraction", "data"),
            textcoords="offset points", va="center", fontsize=8,
        )  # fmt: skip
    for k, name in enumerate(found.runs):
        points = [
            (100.0 * value / max(each or 0.0 for each in values), place)
            for place, (_, values) in enumerate(rows)
            if (value := values[k]) is not None
        ]
        apart = name in found.apart
        axes.plot(
            *zip(*points, strict=True), MARKERS[k % len(MARKERS)], linestyle="none", clip_on=False,
            color=colour_of(k), markerfacecolor="white" if apart else colour_of(k), zorder=3,
            label=short_name(name, 40) + (", not comparable" if apart else ""),
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0.0, 100.0)
    axes.set_xlabel("% of the largest, which is at the right")
    figure = axes.figure
    figure.legend(loc="outside upper left", ncols=4, frameon=False, fontsize=9)


def _queues(axes: Any, queues: dict[str, dict[str, list[float]]]) -> None:
    last = max((date for queue in queues.values() for date in queue["time"][-1:]), default=1.0)
    unit, unit_name = time_unit(last)
    for k, queue in enumerate(queues.values()):
        dates = [date / unit for date in queue["time"]]
        depths = [depth / 3600 for depth in queue["queue_depth"]]
        axes.plot(dates, depths, color=colour_of(k), linewidth=1.2)
        axes.plot(dates[-1:], depths[-1:], MARKERS[k % len(MARKERS)], color=colour_of(k))
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, last / unit)
    axes.set_ylabel("queue depth (h)")
    axes.set_xlabel(f"time ({unit_name})")
    axes.set_title("Time that the jobs in the queue have waited so far, summed", fontsize=10,
                   loc="left")  # fmt: skip
    axes.grid(alpha=0.3, axis="y")


def _queue(results: Results) -> dict[str, list[float]]:
    """Dates in s, and how long the jobs in the queue have waited then."""
    if not is_slurm(results.summary):
        return columns_of(results.directory / OVER_TIME, "time", "queue_depth")
    jobs = read_jobs(results.directory)
    dates, depths = queue_depth(jobs, last_date_s(jobs))
    return {"time": dates.tolist(), "queue_depth": depths.tolist()}
