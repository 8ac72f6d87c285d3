"""Recorded runs of a real Slurm against the simulation: decisions, start gaps, mean times."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import Row

from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.conf.phases import read_cycles, read_phases
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.event_log import hostlist
from ptaskmodel.slurm.jobs.job_table import read_jobs
from ptaskmodel.slurm.run import simulate_slurm

MEANS = ("waiting", "response", "slowdown")


def compared(recorded: Path) -> list[Row]:
    """A row for each recorded run: fed with its dates, and free; and the real spread."""
    rows = []
    for folder in sorted(path.parent for path in recorded.glob("*/slurm.conf")):
        names = sorted(path.name.split(".")[0] for path in folder.glob("run*.meta.json"))
        real = {name: real_run(folder / f"{name}.csv") for name in names}
        for name in names:
            fed, free = (simulated(folder, name, given) for given in (True, False))
            gaps = [abs(free[job].start_s - real[name][job].start_s) for job in real[name]]
            others = [
                abs(real[other][job].start_s - real[name][job].start_s)
                for other in names
                for job in real[name]
                if other != name and job in real[other]
            ]
            mine, theirs = means(free), means(real[name])
            rows.append(
                {
                    "workload": folder.name,
                    "run": name,
                    "jobs": len(real[name]),
                    "decisions_equal": sum(
                        abs(fed[job].start_s - life.start_s) <= 1 and fed[job].nodes == life.nodes
                        for job, life in real[name].items()
                    ),
                    "largest_gap_s": max(gaps),
                    "mean_gap_s": float(np.mean(gaps)),
                    "real_largest_gap_s": max(others, default=0),
                    **{
                        f"{key}_off_%": 100 * (mine[key] / theirs[key] - 1) if theirs[key] else 0.0
                        for key in MEANS
                    },
                }
            )
    return rows


class Life(NamedTuple):
    """Dates of a job in s, and its nodes as Slurm writes them."""

    submit_s: float
    start_s: float
    end_s: float
    nodes: str


def real_run(path: Path) -> dict[str, Life]:
    """The jobs of a recorded run that started."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {
        row["id"]: Life(*(float(row[key]) for key in ("submit", "start", "end")), row["nodelist"])
        for row in rows
        if row["start"]
    }


def simulated(folder: Path, name: str, fed: bool) -> dict[str, Life]:
    """The same jobs, simulated; fed: with the dates of passes and cycles."""
    conf = read_conf(folder / "slurm.conf")
    accounts = folder / "sacctmgr.txt"
    run = simulate_slurm(
        conf,
        read_jobs(folder / "jobs.csv").jobs,
        accounts=read_accounts(accounts) if accounts.exists() else None,
        phases=read_phases(folder / f"{name}.meta.json", conf),
        recorded=read_cycles(folder / f"{name}.events.csv") if fed else None,
    )
    t0 = run.phases.t0
    return {
        job.id: Life(
            job.submit_s - t0,
            job.start_s - t0,
            job.end_s - t0,
            hostlist(run.nodes.names_of(job.allocation.nodes)),
        )
        for job in run.jobs
        if job.allocation is not None
    }


def means(run: dict[str, Life]) -> dict[str, float]:
    """Mean waiting and response, s, and mean slowdown."""
    waits = np.array([life.start_s - life.submit_s for life in run.values()])
    responses = np.array([life.end_s - life.submit_s for life in run.values()])
    slowdowns = responses / np.maximum(responses - waits, 1.0)
    found = (waits.mean(), responses.mean(), slowdowns.mean())
    return dict(zip(MEANS, map(float, found), strict=True))
