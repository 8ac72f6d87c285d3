"""The metrics that comparisons of runs show, in the order of the questions that they answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptaskmodel.results.loading import Results, ShownTask
from ptaskmodel.results.states import ENDED, KILLED, NOT_SUBMITTED, WORDS, counted, outcome_of
from ptaskmodel.results.tables.idle import idle_while_waiting
from ptaskmodel.results.tables.slurm_reading import idle_of, is_slurm, read_jobs
from ptaskmodel.style.quantities import Column, column, count, number

# Relative difference up to which values are called the same.
SAME = 1e-9
# Kinds of metrics: of things counted, and those of `style.quantities`.
COUNT, NUMBER, SHARE, TIME, ENERGY, POWER = "count", "number", "share", "time", "energy", "power"
LESS, MORE = "less", "more"
WORK, USERS, MACHINE = (
    "Did they do the same work?",
    "What did users get?",
    "What did the machine do?",
)


# What makes one number of those that are known.
Fold = Callable[[Iterable[float | None]], float | None]


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of each run.

    of: the number in SI units, shares as parts of 1; None where a run has none. better: LESS, MORE
    or "" for neither. kind: COUNT or a kind of quantity: how values and changes are told.
    """

    name: str
    of: Callable[[Results], float | None]
    better: str = LESS
    kind: str = NUMBER

    def column(self, values: Iterable[float | None]) -> Column:
        """The unit and the digits in which `values` of several runs are told."""
        return column(values, NUMBER if self.kind == COUNT else self.kind)


@dataclass(frozen=True, slots=True)
class Group:
    """Metrics that answer one question: each with a value for each run."""

    title: str
    rows: list[tuple[Metric, list[float | None]]]


def metrics_of(
    runs: Mapping[str, Results], common: set[str], alike: Sequence[str]
) -> list[tuple[str, list[Metric]]]:
    """The questions, and the metrics that answer each."""
    first = next(iter(runs.values()))
    what, slurm = first.what, is_slurm(first.summary)
    hours, started = "CPU h" if slurm else "host h", ("backfill", "started")
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
        _at("median waiting", "waiting_s", "p50", kind=TIME),
        _at("95 % wait at most", "waiting_s", "p95", kind=TIME),
        _at("longest waiting", "waiting_s", "max", kind=TIME),
        _at("mean waiting", "waiting_s", "mean", kind=TIME),
        _at("median bounded slowdown", "bounded_slowdown", "p50"),
        _at("mean bounded slowdown", "bounded_slowdown", "mean"),
        *([] if what == "job" else _times(what)),
        *_contention(what),
        _at("unfair jobs, by runtimes", "unfair_jobs", "runtimes", kind=COUNT),
        _at("unfair jobs, by estimates", "unfair_jobs", "estimates", kind=COUNT),
        Metric(f"thrown away with killed jobs ({hours})", _thrown_away_h),
    ]
    machine = [
        _at("utilisation", "utilisation", better=MORE, kind=SHARE),
        _at("useful utilisation", "useful_utilisation", better=MORE, kind=SHARE),
        _at("loss of capacity", "loss_of_capacity", kind=SHARE),
        Metric(f"idle while {what}s waited ({hours})", idle_while_waiting_h),
        *([_at("started by backfill", *started, better="", kind=COUNT)] if slurm else []),
        _at("jobs per hour", "throughput_jobs_per_hour", better=MORE),
        _at("mean queue depth", "queue_depth_s", "mean", kind=TIME),
        _at("largest queue depth", "queue_depth_s", "max", kind=TIME),
        _at("energy", "energy", "total_J", kind=ENERGY),
        _at("peak power", "energy", "peak_W", kind=POWER),
        _makespan(what),
    ]
    found = [(WORK, work), (USERS, users), (MACHINE, machine)]
    if common and any(ended(runs[name]) != common for name in alike):
        found.append((f"Of the {count(len(common), what)} that ended in all runs", _of(common)))
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


def _at(name: str, *path: str, better: str = LESS, kind: str = NUMBER) -> Metric:
    """A number in the summary."""
    return Metric(name, lambda results: number_of(results.summary, *path), better, kind)


def _makespan(what: str) -> Metric:
    if what == "job":
        return _at("makespan", "makespan_s", kind=TIME)
    return Metric("makespan", lambda results: results.end_s, kind=TIME)


def _times(what: str) -> list[Metric]:
    def times(results: Results) -> list[float]:
        return [task.duration_s for task in results.tasks if task.duration_s is not None]

    return [
        Metric(f"median time of a {what}", lambda r: _median(times(r)), kind=TIME),
        Metric(f"mean time of a {what}", lambda r: _mean(times(r)), kind=TIME),
        Metric(f"longest time of a {what}", lambda r: max(times(r), default=None), kind=TIME),
    ]


def _contention(what: str) -> list[Metric]:
    """Of all tasks whose slowdown is known, killed ones included."""

    def of(fold: Fold) -> Callable[[Results], float | None]:
        return lambda results: fold(task.slowdown for task in results.tasks)

    name = f"contention slowdown of all {what}s"
    return [Metric(f"median {name}", of(_median)), Metric(f"mean {name}", of(_mean))]


def _thrown_away_h(results: Results) -> float | None:
    """Host hours, or CPU hours of Slurm, that killed jobs took; None of tasks."""
    if results.what != "job":
        return None
    if is_slurm(results.summary):
        killed = (j for j in read_jobs(results.directory) if outcome_of(j.state) == KILLED)
        return sum(job.cpus * (job.run_s or 0.0) for job in killed) / 3600
    return (
        sum(
            (task.duration_s or 0.0) * len(task.hosts)
            for task in results.tasks
            if outcome_of(task.state) == KILLED
        )
        / 3600
    )


def idle_while_waiting_h(results: Results) -> float | None:
    """Host hours, or CPU hours of Slurm, that stood idle while a job waited.

    None if `results` know of no waiting.
    """
    if is_slurm(results.summary):
        cpus = number_of(results.summary, "cpus")
        return None if cpus is None else idle_of(read_jobs(results.directory), cpus).idle / 3600
    hosts = number_of(results.summary, "hosts")
    known = [task for task in results.tasks if task.start_s is not None]
    if results.what != "job" or hosts is None or all(task.waiting_s is None for task in known):
        return None
    starts = np.array([task.start_s for task in known], dtype=float)
    ends = np.array([results.end_s if task.end_s is None else task.end_s for task in known])
    waits = np.array([task.waiting_s or 0.0 for task in known])
    sizes = np.array([float(len(task.hosts)) for task in known])
    return idle_while_waiting(starts - waits, starts, ends, sizes, hosts).idle / 3600


def _of(ids: set[str]) -> list[Metric]:
    """Metrics over these tasks, in runs in which all of them ended."""

    def metric(name: str, of: Callable[[ShownTask], float | None], kind: str = TIME) -> Metric:
        def value(results: Results) -> float | None:
            if not ids <= ended(results):
                return None
            return _mean(of(task) for task in results.tasks if task.task_id in ids)

        return Metric(name, value, kind=kind)

    return [
        metric("mean waiting of these", lambda task: task.waiting_s),
        metric("mean time of these", lambda task: task.duration_s),
        metric("mean contention slowdown of these", lambda task: task.slowdown, NUMBER),
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


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def change_text(kind: str, before: float, after: float) -> str:
    """How a value changed, in words."""
    change = after - before
    if abs(change) <= SAME * max(abs(before), abs(after)):
        return "the same"
    if kind == COUNT:
        return f"{count(round(abs(change)))} {'more' if change > 0 else 'fewer'}"
    more = "more" if change > 0 else "less"
    if kind == SHARE:
        return f"{abs(100 * change):.2g} points {more}"
    if before <= 0.0:
        return f"{number(abs(change), kind)} {more}"
    if after >= 2.0 * before:
        return f"{number(after / before)} times"
    return f"{100 * abs(change) / before:.2g} % {more}"
