"""Writes what studies of schedulers look at: the queue over time, classes of jobs, the tuning."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ptaskmodel.batch.classes import ClassRow
from ptaskmodel.batch.fairness import BASES, FairStart
from ptaskmodel.batch.policies.tuning import Measures, Tuning
from ptaskmodel.batch.queue_measures import OverTime
from ptaskmodel.csv_columns import write_columns

OVER_TIME, CLASSES, TUNING = "over_time.csv", "classes.csv", "tuning.csv"
FAIR_STARTS = "fair_starts.csv"
OVER_TIME_COLUMNS = (
    "time",
    "queue_depth",
    "waiting_jobs",
    "used_hosts",
    "utilisation_1h",
    "utilisation_10h",
    "utilisation_24h",
    "lost_capacity",
)
CLASS_COLUMNS = (
    "kind",
    "class",
    "jobs",
    "killed",
    "host_seconds",
    "mean_waiting",
    "max_waiting",
    "mean_execution",
    "mean_bounded_slowdown",
    "unfair_jobs",
)
FAIR_COLUMNS = (
    "job_id",
    "submission_time",
    "starting_time",
    *(f"fair_start_by_{basis}" for basis in BASES),
    *(f"unfair_by_{basis}" for basis in BASES),
)
CHECK_COLUMNS = ("time", "queue_depth", *Measures._fields[2:])


def write_over_time(directory: Path, found: OverTime) -> str:
    """Write over_time.csv: a line for each sample; its name."""
    columns: list[Any] = [found.date_s, found.queue_depth_s, found.waiting_jobs, found.used_hosts]
    columns += [*found.utilisation.values(), found.lost]
    write_columns(directory / OVER_TIME, OVER_TIME_COLUMNS, columns)
    return OVER_TIME


def write_classes(directory: Path, found: Sequence[ClassRow]) -> str:
    """Write classes.csv: a line for each class of jobs; its name."""
    return _write(directory / CLASSES, CLASS_COLUMNS, found)


def write_tuning(directory: Path, tuning: Tuning) -> str:
    """Write tuning.csv: a line for each check, its measures and the values after it; its name."""
    names = [rule.parameter for rule in tuning.rules]
    rows = ((*check.measures, *check.values) for check in tuning.log)
    return _write(directory / TUNING, (*CHECK_COLUMNS, *names), rows)


def write_fair_starts(directory: Path, found: Iterable[FairStart]) -> str:
    """Write fair_starts.csv: a line for each job that started; its name."""
    rows = (
        (
            fair.job.id,
            fair.job.submit_time_s,
            fair.start_s,
            *("" if date is None or date != date else date for date in fair[2:]),
            *(int(fair.is_unfair(basis)) for basis in BASES),
        )
        for fair in found
    )
    return _write(directory / FAIR_STARTS, FAIR_COLUMNS, rows)


def _write(path: Path, columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    return path.name
