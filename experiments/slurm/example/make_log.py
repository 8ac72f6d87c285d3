"""Makes march.txt: a day of a small cluster as `sacct -P` would print them, from a seed.

    python experiments/slurm/example/make_log.py

Users have habits (sizes, lengths, partitions), the day has a rhythm; dates of starts and ends are
those of a simulation with slurm.conf and accounts.txt beside this file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.conf.phases import Phases
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.jobs.request import JobRequest
from ptaskmodel.slurm.run import simulate_slurm
from ptaskmodel.workload.works import DelayWork

HERE = Path(__file__).resolve().parent
T0 = int(datetime(2024, 3, 4, tzinfo=UTC).timestamp())
DAYS, JOBS, SEED = 1, 150, 4
COLUMNS = "JobID|JobName|User|Account|Partition|QOS|Submit|Eligible|Start|End|Elapsed|Timelimit"
COLUMNS += "|ReqNodes|NNodes|ReqCPUS|State"


@dataclass(frozen=True)
class Habit:
    """What a user runs: how often, on how many cores, for about how long, in s."""

    user: str
    account: str
    weight: float
    cores: tuple[int, ...]
    about_s: float


HABITS = (
    Habit("anna", "physics", 3, (16, 32, 64), 2400),
    Habit("bert", "physics", 2, (8, 16), 7200),
    Habit("carla", "biology", 5, (1, 4, 8), 900),
    Habit("dora", "biology", 2, (8, 16), 3600),
    Habit("emil", "teaching", 4, (1, 2, 4), 400),
    Habit("fritz", "teaching", 1, (64, 128), 1800),
)


def requests() -> list[JobRequest]:
    """The jobs, in order of submission."""
    draw = np.random.default_rng(SEED)
    hours = 1.2 - np.cos((np.arange(24) - 3) * math.tau / 24)
    weights = np.array([habit.weight for habit in HABITS])
    found = []
    for _ in range(JOBS):
        habit = HABITS[draw.choice(len(HABITS), p=weights / weights.sum())]
        day, hour = draw.integers(DAYS), draw.choice(24, p=hours / hours.sum())
        date = int(86_400 * day + 3600 * hour + draw.integers(3600))
        run = int(min(max(20, habit.about_s * draw.lognormal(0, 0.8)), 80_000))
        limit = min(math.ceil(run * draw.uniform(1.1, 4) / 900) * 15, 1440)
        found.append((date, habit, int(draw.choice(habit.cores)), run, limit))
    found.sort(key=lambda each: each[0])
    return [
        JobRequest(
            f"{1000 + k}",
            date + 0.5,
            DelayWork(float(run)),
            user=habit.user,
            account=habit.account,
            name=f"{habit.user}{k % 7}",
            partitions=("short" if limit <= 60 else "batch",),
            min_nodes=math.ceil(cores / 16),
            max_nodes=math.ceil(cores / 16),
            tasks=cores,
            limit_min=limit,
        )
        for k, (date, habit, cores, run, limit) in enumerate(found)
    ]


def line(job: JobRecord) -> str:
    """A line of sacct."""
    request, end = job.request, int(job.end_s)
    span = end - job.start_s
    days, rest = divmod(span, 86_400)
    elapsed = f"{days}-" * (days > 0) + clock(rest)
    limit = f"{(request.limit_min or 0) // 60:02d}:{(request.limit_min or 0) % 60:02d}:00"
    texts = (request.id, request.name, request.user, request.account, job.partition.name, "normal")
    dates = map(date, (job.submit_s, job.submit_s, job.start_s, end))
    size = (request.min_nodes, request.max_nodes, request.tasks, job.state)
    return "|".join(map(str, (*texts, *dates, elapsed, limit, *size)))


def date(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def clock(seconds: int) -> str:
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def table() -> str:
    """The text of march.txt."""
    run = simulate_slurm(
        read_conf(HERE / "slurm.conf"),
        requests(),
        accounts=read_accounts(HERE / "accounts.txt"),
        phases=Phases(T0, boot_s=-77.3),
    )
    return "\n".join([COLUMNS, *map(line, run.jobs)]) + "\n"


if __name__ == "__main__":
    (HERE / "march.txt").write_text(table(), encoding="utf-8")
