"""Reads the jobs of a Slurm run back, for whoever shows or compares them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptaskmodel.batch.slurm import values
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.csv_reading import finite, number, rows
from ptaskmodel.results.slurm.tables import CYCLE_COLUMNS, REASON_COLUMNS

COMMANDS = ("slurm", "slurm-live")
JOBS, REASONS, CYCLES = "jobs.csv", "reasons.csv", "cycles.csv"
NO_REASON = "None"  # as Slurm writes that a job does not wait
# What is read of jobs.csv; account, reason and contention_slowdown may be missing.
NEEDED = (
    *("job_id", "user", "partition", "submission_time", "starting_time", "finish_time"),
    *("nodes", "cpus", "final_state", "scheduler"),
)


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job of a Slurm run. Dates in s from date 0; None for what did not happen.

    nodes: as Slurm writes them. slowdown: by contention on the platform. reason: why it is refused
    or waits; "": neither.
    """

    job_id: str
    user: str
    account: str
    partition: str
    submit_s: float
    start_s: float | None
    end_s: float | None
    limit_s: float | None
    nodes: str
    cpus: int
    state: str
    scheduler: str
    suspended_s: float
    slowdown: float | None
    reason: str

    @property
    def wait_s(self) -> float | None:
        """How long it waited, s; None: it never started."""
        return None if self.start_s is None else self.start_s - self.submit_s

    @property
    def run_s(self) -> float | None:
        """How long it ran, what it was suspended not counted, s."""
        if self.start_s is None or self.end_s is None:
            return None
        return self.end_s - self.start_s - self.suspended_s


def is_slurm(summary: Mapping[str, Any]) -> bool:
    """Whether a summary is that of Slurm, simulated or real."""
    return summary.get("command") in COMMANDS


def read_jobs(directory: Path) -> list[SlurmJob]:
    """The jobs of a directory of results. Raises PTaskModelError if they cannot be read."""
    place = directory / JOBS
    try:
        return list(jobs_of(directory))
    except FileNotFoundError:
        raise PTaskModelError(f"{place}: is missing; simulate again") from None
    except (OSError, ValueError, csv.Error) as error:
        raise PTaskModelError(f"{place}: cannot be read ({error})") from None


def jobs_of(directory: Path) -> Iterator[SlurmJob]:
    """The jobs one by one. Raises OSError, ValueError or csv.Error."""
    for row in rows(directory / JOBS, *NEEDED):
        yield SlurmJob(
            row["job_id"],
            row["user"],
            row.get("account", ""),
            row["partition"],
            finite(row["submission_time"]),
            number(row["starting_time"]),
            number(row["finish_time"]),
            number(row.get("requested_time")),
            row["nodes"],
            int(row["cpus"] or 0),
            row["final_state"],
            row["scheduler"],
            number(row.get("suspended_time")) or 0.0,
            number(row.get("contention_slowdown")),
            "" if row.get("reason") in (None, NO_REASON) else row["reason"],
        )


def node_names(nodes: str) -> tuple[str, ...]:
    """The names in a list of nodes as Slurm writes it. Raises ValueError."""
    return values.hosts(nodes) if nodes else ()


def read_reasons(directory: Path) -> dict[str, list[tuple[float, int]]]:
    """(date, jobs) of each reason to wait, from reasons.csv, dates ascending."""
    found: dict[str, list[tuple[float, int]]] = {}
    for row in _table(directory / REASONS, REASON_COLUMNS):
        found.setdefault(row["reason"], []).append((finite(row["time"]), int(row["jobs"])))
    return found


def read_cycles(directory: Path) -> list[tuple[float, int, int, float, str]]:
    """(date, queue, tested, how long it took in s, why it was over) of each backfill cycle."""
    return [
        (
            finite(row["time"]),
            int(row["queue"]),
            int(row["tested"]),
            finite(row["lasted"]),
            row["end"],
        )
        for row in _table(directory / CYCLES, CYCLE_COLUMNS)
    ]


def _table(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    try:
        return list(rows(path, *columns))
    except FileNotFoundError:
        raise PTaskModelError(f"{path}: is missing; simulate again") from None
    except (OSError, ValueError, csv.Error) as error:
        raise PTaskModelError(f"{path}: cannot be read ({error})") from None
