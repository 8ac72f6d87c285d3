"""What the parts of the study share: configurations, workloads, and the measures of a run."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ptaskmodel.slurm.conf.facts import Conf
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.run import SlurmRun
from ptaskmodel.workload.formats import Cleaning
from ptaskmodel.workload.jobs import Workload
from ptaskmodel.workload.models import lublin
from ptaskmodel.workload.reading import read_workload
from ptaskmodel.workload.scaling import loaded, offered_load

Row = dict[str, Any]
MODEL = "model"
NODE_CLASSES = (("1", 1, 1), ("2-63", 2, 63), ("64-511", 64, 511), ("512", 512, np.inf))


def configuration(*lines: str) -> Conf:
    """The configuration of a slurm.conf of these lines."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "slurm.conf"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return read_conf(path)


def evenly(log: str | Path, count: int, target: float, hosts: int = 64, seed: int = 7) -> Workload:
    """The first jobs of a log, or of the model on ``hosts``, evenly spaced, at an offered load."""
    whole = lublin(count, hosts, seed, walltime_factor=2.0) if log == MODEL else _read(log)
    return evenly_spaced(whole.with_jobs(whole.jobs[:count]), target)


def evenly_spaced(log: Workload, target: float) -> Workload:
    """All jobs of a log, evenly spaced, at an offered load."""
    jobs = log.jobs
    dates = np.linspace(0.0, jobs[-1].submit_time_s, len(jobs)).tolist()
    even = log.with_jobs(
        tuple(replace(job, submit_time_s=date) for job, date in zip(jobs, dates, strict=True))
    )
    return loaded(even, target / offered_load(even))


def _read(path: str | Path) -> Workload:
    return read_workload(path, Cleaning())


def ended(run: SlurmRun) -> list[JobRecord]:
    """The jobs that ran and are over."""
    return [job for job in run.jobs if job.attempt is not None and job.attempt.end_s is not None]


def measures(runs: Sequence[SlurmRun], cpus_each: int = 1) -> Row:
    """The thesis' measures over jobs, their sizes in nodes; utilisation of all nodes in %."""
    jobs = [job for run in runs for job in ended(run)]
    wait = np.array([job.start_s - job.submit_s for job in jobs], dtype=float)
    response = np.array([job.end_s - job.submit_s for job in jobs], dtype=float)
    stopped = np.array([sum(to - since for since, to in job.suspensions) for job in jobs])
    ran = np.maximum(response - wait - stopped, 1.0)
    size = np.array([job.allocation.size for job in jobs], dtype=float)
    span = max(job.end_s for job in jobs) - min(job.submit_s for job in jobs)
    nodes = sum(len(run.nodes) for run in runs)
    return {
        "jobs": len(jobs),
        "waiting_s": wait.mean(),
        "response_s": response.mean(),
        "slowdown": (response / ran).mean(),
        "weighted_slowdown": (response / ran * size).mean(),
        "suspended_s": stopped.mean(),
        "utilisation": 100 * (size * ran).sum() / (nodes * span),
    }


def by_scheduler(jobs: Sequence[JobRecord]) -> Row:
    """Which part of the jobs backfill started, %."""
    started = [job.by for job in jobs]
    return {"backfilled_%": 100 * started.count("backfill") / len(started)}


def waits_by_nodes(jobs: Sequence[JobRecord]) -> Row:
    """Mean waits, h, by classes of nodes of Simakov et al. 2018; 0 where there is no job."""
    nodes = np.array([job.allocation.size for job in jobs])
    waits = np.array([job.start_s - job.submit_s for job in jobs], dtype=float) / 3600
    found = {}
    for name, low, high in NODE_CLASSES:
        own = waits[(nodes >= low) & (nodes <= high)]
        found[f"waiting_{name}_h"] = float(own.mean()) if len(own) else 0.0
    return found


def write(place: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a table, and print it."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with (place / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    texts = [columns, *([shown(row.get(key, "")) for key in columns] for row in rows)]
    widths = [max(len(line[k]) for line in texts) for k in range(len(columns))]
    print(f"\n{name}")
    for line in texts:
        print("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)))


def shown(value: object) -> str:
    """A value for a reader: numbers to four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def mean_rows(rows: Iterable[Row], by: Sequence[str]) -> list[Row]:
    """Means of the numbers of rows that agree in some columns, in order of their coming."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in by), []).append(row)
    return [
        {**dict(zip(by, key, strict=True)), "runs": len(mine)}
        | {
            name: float(np.mean([row[name] for row in mine]))
            for name, value in mine[0].items()
            if name not in by and isinstance(value, int | float)
        }
        for key, mine in groups.items()
    ]
