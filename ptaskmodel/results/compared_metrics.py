"""Metrics of runs for comparison, by kind of run, and which runs repeat others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, takewhile
from typing import Any

import numpy as np

from ptaskmodel.results.loading import Results, ShownTask
from ptaskmodel.results.states import ENDED, KILLED, NOT_SUBMITTED, WORDS, counted, outcome_of
from ptaskmodel.results.tables.slurm_reading import idle_of, idle_while_waiting, is_slurm
from ptaskmodel.style.text import Column, column, count, number

# Relative difference up to which values are called the same.
SAME = 1e-9
# Smaller parts are shown as 0.00 %.
NEARLY = 5e-5
# Kinds of metrics: of things counted, and those of `style.text`.
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

    def label(self, values: Iterable[float | None]) -> str:
        """The name, and the unit of `values` of several runs."""
        return self.column(values).head(self.name)


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
        *map(_counting, words),
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
        _at("makespan", "makespan_s", kind=TIME)
        if what == "job"
        else Metric("makespan", lambda r: r.end_s, kind=TIME),
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
        killed = (j for j in results.jobs if outcome_of(j.state) == KILLED)
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
        return None if cpus is None else idle_of(results.jobs, cpus).idle / 3600
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
    if kind not in (COUNT, SHARE) and abs(change) < NEARLY * before:
        return "nearly the same"
    if kind == COUNT:
        return f"{count(round(abs(change)))} {'more' if change > 0 else 'fewer'}"
    more = "more" if change > 0 else "less"
    if kind == SHARE:
        return f"{number(float(f'{abs(100 * change):.2g}'))} points {more}"
    if before <= 0.0:
        return f"{number(abs(change), kind)} {more}"
    if after >= 2.0 * before:
        return f"{number(after / before)} times"
    part = min(float(f"{abs(change) / before:.2g}"), 1.0)
    return f"{number(part, SHARE)} {more}"


# What says how a run was made, where its options are not recorded.
CHOICES = ("policy", "allocation", "solver", "network_model", "count")
SEED = "seed"
# Names up to this length, in characters, are kept as they are.
SHORT = 16
NO_WORDS = " _-=,."
PARTS_OF_NAMES = re.compile(r"[^\W_]+|[\W_]+")


def short_names(names: Sequence[str]) -> list[str]:
    """Return names without what all of them share, if some name is long.

    That is parts between commas, then the words that all begin or end with.

    names: of runs, each once.
    """
    if len(names) < 2 or max(map(len, names)) <= SHORT:
        return list(names)
    parts = [name.split(", ") for name in names]
    if len({*map(len, parts)}) == 1:
        differ = [len({*column}) > 1 for column in zip(*parts, strict=True)]
        names = [", ".join(compress(each, differ)) for each in parts]
    words = [PARTS_OF_NAMES.findall(name) for name in names]
    least = min(map(len, words)) - 1
    begin = min(_alike(words), least)
    end = min(_alike([one[::-1] for one in words]), least - begin)
    return ["".join(one[begin : len(one) - end]).strip(NO_WORDS) or name
            for name, one in zip(names, words, strict=True)]  # fmt: skip


def _alike(words: Sequence[Sequence[str]]) -> int:
    """How many words all begin with."""
    rows = zip(*words, strict=False)
    return len(list(takewhile(lambda row: len(set(row)) == 1, rows)))


def chosen(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of options and settings by name.

    summary: of a run. What a run found out for itself, such as its network model, is known, too.
    """
    effective = {name: summary[name] for name in CHOICES if isinstance(summary.get(name), str)}
    return {**(summary.get("parameters") or {}), **effective, **(summary.get("settings") or {})}


def inputs_of(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (path, digest) of each file that a run read, as its `summary` says."""
    listed = summary.get("inputs") or []
    return [(str(one.get("path", "")), str(one.get("sha256", ""))) for one in listed]


def repetitions(runs: Mapping[str, Results]) -> dict[str, list[Results]]:
    """Return `runs` by name, those that differ only by their seed together.

    Of a run that does not say how it was made nothing is known to be a repetition.
    """
    found: dict[Any, list[str]] = {}
    for name, results in runs.items():
        key: Any = name
        if "parameters" in results.summary:
            made = {**chosen(results.summary), SEED: None}
            key = str(sorted(made.items())), str(inputs_of(results.summary))
        found.setdefault(key, []).append(name)
    return {_of_all(names, runs): [runs[name] for name in names] for names in found.values()}


def _of_all(names: Sequence[str], runs: Mapping[str, Results]) -> str:
    if len(names) == 1:
        return names[0]
    seeds = {str(chosen(runs[name].summary).get(SEED)) for name in names}
    words = [PARTS_OF_NAMES.findall(name) for name in names]
    shared = "".join(words[0][: _alike(words)]).strip(NO_WORDS)
    shared = shared.removesuffix(SEED).rstrip(NO_WORDS)
    which = f"{len(names)} seeds" if len(seeds) == len(names) else f"{len(names)} runs alike"
    return f"{shared or names[0]} ({which})"
