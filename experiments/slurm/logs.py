"""What a log says of its users: estimates, sizes, work, submissions, as Barberato 2018 has it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from common import MODEL, Row

from ptaskmodel.workload.formats import Cleaning
from ptaskmodel.workload.models import lublin
from ptaskmodel.workload.reading import read_workload

DAY_s, WEEK_s = 86_400, 7 * 86_400
# Published shares, %: of jobs that use such parts of their estimates; of jobs, and of core seconds,
# by cores; and how many jobs of some sizes come a day.
ESTIMATES = {(0.0, 0.1): 58.0, (0.9, 1.0): 0.7}
JOBS = {1: 49.0, 2: 11.0, 4: 5.0, 8: 7.0, 16: 8.0, 48: 4.0, 64: 6.0}
WORK = {1: 1.6, 8: 4.3, 16: 5.2, 32: 3.0, 64: 16.0, 128: 11.2, 256: 6.2, 512: 4.4, 1024: 1.8}
DAILY = {1: 10028.0, 2: 2220.0, 8: 1423.0, 16: 1715.0}


def described(log: str | Path, nodes: int, count: int) -> list[Row]:
    """A row for each published share, and one for each week; of the model, so many jobs."""
    if log == MODEL:
        name, whole = MODEL, lublin(count, nodes, 7, walltime_factor=2.0)
    else:
        name, whole = Path(log).name.split("-")[0], read_workload(log, Cleaning())
    jobs = whole.jobs
    submit = np.array([job.submit_time_s for job in jobs])
    size = np.array([job.num_hosts for job in jobs])
    ran = np.array([job.work.duration_s or 0.0 for job in jobs])
    limit = np.array([job.walltime_s or np.nan for job in jobs])
    work = size * ran
    days = max(1.0, (submit[-1] - submit[0]) / DAY_s)
    with np.errstate(invalid="ignore"):
        used = ran / limit
    known = used[~np.isnan(used)]
    rows: list[Row] = []

    def tell(table: str, what: str, here: float, published: float | None = None) -> None:
        rows.append(
            {"log": name, "table": table, "what": what, "here": float(here), "published": published}
        )

    for (low, high), share in ESTIMATES.items():
        if len(known):
            part = 100 * np.mean((known > low) & (known <= high))
            tell("jobs by run time over estimate, %", f"({low:g}, {high:g}]", part, share)
    for cores, share in JOBS.items():
        tell("jobs by cores, %", str(cores), 100 * np.mean(size == cores), share)
    tell("jobs by cores, %", "above 1,000", 100 * np.mean(size > 1000), 1.2)
    for cores, share in WORK.items():
        tell(
            "core seconds by cores, %",
            str(cores),
            100 * work[size == cores].sum() / work.sum(),
            share,
        )
    for cores, number in DAILY.items():
        tell("submissions a day by cores", str(cores), (size == cores).sum() / days, number)
    hours = np.bincount((submit % DAY_s // 3600).astype(int), minlength=24)
    tell("submissions a day", "busiest hour over the mean", hours.max() / hours.mean(), 1.0)
    week = ((submit - submit[0]) // WEEK_s).astype(int)
    for k, (number, done) in enumerate(
        zip(np.bincount(week), np.bincount(week, weights=work), strict=True)
    ):
        tell("jobs a week", str(k + 1), number)
        if whole.num_hosts:
            tell("offered load by week", str(k + 1), done / (whole.num_hosts * WEEK_s))
    return rows
