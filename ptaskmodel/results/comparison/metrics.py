"""The metrics that comparisons of runs show, in the order of the questions that they answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptaskmodel.results.loading import Results, ShownTask
from ptaskmodel.results.states import ENDED, KILLED, NOT_SUBMITTED, WORDS, counted, outcome_of

# Values from here on are shown to the unit.
LARGE = 1e4
# Relative difference up to which values are called the same.
SAME = 1e-9
COUNT, SHARE, AMOUNT = "count", "share", "amount"
LESS, MORE = "less", "more"
WORK, USERS, MACHINE = (
    "Did they do the same work?",
    "What did users get?",
    "What did the machine do?",
)


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of each run.

    of: the number, None where a run has none. better: LESS, MORE or "" for neither. kind: COUNT,
    SHARE (in %) or AMOUNT, which says how changes are told.
    """

    name: str
    of: Callable[[Results], float | None]
    better: str = LESS
    kind: str = AMOUNT


@dataclass(frozen=True, slots=True)
class Group:
    """Metrics that answer one question: each with a value for each run."""

    title: str
    rows: list[tuple[Metric, list[float | None]]]


def metrics_of(
    runs: Mapping[str, Results], common: set[str], alike: Sequence[str]
) -> list[tuple[str, list[Metric]]]:
    """The questions, and the metrics that answer each."""
    what = next(iter(runs.values())).what
    words = [
        word
        for word in WORDS
        if word != ENDED and any(word in outcomes(each) for each in runs.values())
    ]
    work = [
        Metric(f"{what}s submitted", lambda r: float(len(r.tasks)), "", COUNT),
        Metric("ended", lambda r: float(len(ended(r))), MORE, COUNT),
        *(_counting(word) for word in words),
        _at("killed, only because of neighbours", "killed_only_by_neighbours", kind=COUNT),
    ]
    users = [
        _at("mean waiting (min)", "waiting_s", "mean", factor=1 / 60),
        _at("median waiting (min)", "waiting_s", "p50", factor=1 / 60),
        _at("95 % wait at most (min)", "waiting_s", "p95", factor=1 / 60),
        _at("largest waiting (min)", "waiting_s", "max", factor=1 / 60),
        _at("mean bounded slowdown", "bounded_slowdown", "mean"),
        *([] if what == "job" else _times(what)),
        _contention(what),
        _at("unfair jobs, by runtimes", "unfair_jobs", "runtimes", kind=COUNT),
        _at("unfair jobs, by estimates", "unfair_jobs", "estimates", kind=COUNT),
        Metric("host hours of killed jobs", _thrown_away_h),
    ]
    machine = [
        _at("utilisation (%)", "utilisation", factor=100.0, better=MORE, kind=SHARE),
        _at("useful utilisation (%)", "useful_utilisation", factor=100.0, better=MORE, kind=SHARE),
        _at("loss of capacity (%)", "loss_of_capacity", factor=100.0, kind=SHARE),
        _at("jobs per hour", "throughput_jobs_per_hour", better=MORE),
        _at("mean queue depth (h)", "queue_depth_s", "mean", factor=1 / 3600),
        _at("largest queue depth (h)", "queue_depth_s", "max", factor=1 / 3600),
        _at("energy (kWh)", "energy", "total_J", factor=1 / 3.6e6),
        _at("peak power (kW)", "energy", "peak_W", factor=1e-3),
        _makespan(what),
    ]
    found = [(WORK, work), (USERS, users), (MACHINE, machine)]
    if common and any(ended(runs[name]) != common for name in alike):
        found.append((f"Of the {len(common):,} {what}s that ended in all runs", _of(common)))
    return found


def ended(results: Results) -> set[str]:
    """The ids of the tasks that ended by themselves."""
    return {task.task_id for task in results.tasks if outcome_of(task.state) == ENDED}


def outcomes(results: Results) -> dict[str, int]:
    """How many tasks have become what, in words, those not yet submitted included."""
    found = counted(task.state for task in results.tasks)
    missing = results.submitted - len(results.tasks)
    return found | ({NOT_SUBMITTED: missing} if missing else {})


def _counting(word: str) -> Metric:
    return Metric(word, lambda r: float(outcomes(r).get(word, 0)), LESS, COUNT)


def _at(
    name: str, *path: str, factor: float = 1.0, better: str = LESS, kind: str = AMOUNT
) -> Metric:
    """A number in the summary."""

    def of(results: Results) -> float | None:
        value = number_of(results.summary, *path)
        return None if value is None else factor * value

    return Metric(name, of, better, kind)


def _makespan(what: str) -> Metric:
    if what == "job":
        return _at("makespan (h)", "makespan_s", factor=1 / 3600)
    return Metric("makespan (s)", lambda results: results.end_s)


def _times(what: str) -> list[Metric]:
    return [
        Metric(f"mean time of a {what} (s)", lambda r: _mean(t.duration_s for t in r.tasks)),
        Metric(f"longest time of a {what} (s)", lambda r: _most(t.duration_s for t in r.tasks)),
    ]


def _contention(what: str) -> Metric:
    """Of all tasks whose slowdown is known, killed ones included."""
    name = f"mean contention slowdown of all {what}s"
    return Metric(name, lambda results: _mean(task.slowdown for task in results.tasks))


def _thrown_away_h(results: Results) -> float | None:
    """Host hours that tasks took which were killed; None where none was."""
    if results.what != "job":
        return None
    return (
        sum(
            (task.duration_s or 0.0) * len(task.hosts)
            for task in results.tasks
            if outcome_of(task.state) == KILLED
        )
        / 3600
    )


def _of(ids: set[str]) -> list[Metric]:
    """Metrics over these tasks, in runs in which all of them ended."""

    def metric(name: str, of: Callable[[ShownTask], float | None], factor: float = 1.0) -> Metric:
        def value(results: Results) -> float | None:
            if not ids <= ended(results):
                return None
            found = _mean(of(task) for task in results.tasks if task.task_id in ids)
            return None if found is None else factor * found

        return Metric(name, value)

    return [
        metric("mean waiting of these (min)", lambda task: task.waiting_s, 1 / 60),
        metric("mean time of these (min)", lambda task: task.duration_s, 1 / 60),
        metric("mean contention slowdown of these", lambda task: task.slowdown),
    ]


def number_of(summary: Mapping[str, Any], *path: str) -> float | None:
    """A number of a summary, by its keys; None if there is none."""
    value: Any = summary
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def value_text(value: float) -> str:
    """A value for a reader, to four digits."""
    return f"{value:.4g}" if abs(value) < LARGE else f"{value:,.0f}"


def change_text(kind: str, before: float, after: float) -> str:
    """How a value changed, in words."""
    change = after - before
    if abs(change) <= SAME * max(abs(before), abs(after)):
        return "the same"
    if kind == COUNT:
        return f"{abs(change):,.0f} {'more' if change > 0 else 'fewer'}"
    more = "more" if change > 0 else "less"
    if kind == SHARE:
        return f"{abs(change):.2g} points {more}"
    if before <= 0.0:
        return f"{value_text(abs(change))} {more}"
    if after >= 2.0 * before:
        return f"{after / before:.3g} times"
    return f"{100 * abs(change) / before:.2g} % {more}"
