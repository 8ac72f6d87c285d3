"""Whole runs of logs whose results are known, and how those logs were read."""

from __future__ import annotations

from pathlib import Path

from ptaskmodel.workload.formats.swf import read_swf
from ptaskmodel.workload.jobs import Job
from ptaskmodel.workload.works import DelayWork

LOGS = Path(__file__).resolve().parents[2] / "shared" / "data" / "swf"


def usable_jobs(name, count):
    """The first jobs of a log that have a size and a run time, as the published table has them."""
    log = read_swf(LOGS / name)
    jobs = []
    for row in log.rows.tolist():
        size = row[7] if row[7] > 0 else row[4]
        if size > 0 and row[3] >= 0 and len(jobs) < count:
            run = max(row[3], 1.0)
            wall = row[8] if row[8] > 0 else run
            jobs.append(Job(f"{row[0]:g}", row[1], int(size), "d", DelayWork(run), wall))
    return sorted(jobs, key=lambda job: job.submit_time_s)


SETTINGS = (
    {},
    {"window": 4},
    {"balance": 0.5},
    {"balance": 0.5, "window": 4},
    {"adaptive": "balance"},
    {"adaptive": "window"},
    {"adaptive": "both"},
)
# For each setting: mean wait in minutes and lost capacity in per cent, of a naive simulator.
PUBLISHED = {
    ("HPC2N-part.swf.gz", 800, 240, 157.256484): (
        (39.5533, 0.06886),
        (38.6104, 0.06390),
        (31.8684, 0.02471),
        (32.7460, 0.10406),
        (31.8193, 0.02471),
        (36.2485, 0.01989),
        (30.3568, 0.02551),
    ),
    ("lublin_256.swf.gz", 250, 256, 1108.939338): (
        (102.4747, 10.45465),
        (68.4905, 1.50618),
        (88.6033, 11.73430),
        (75.5245, 4.50894),
        (97.8919, 10.95896),
        (98.4142, 9.71716),
        (63.4317, 9.73544),
    ),
}
