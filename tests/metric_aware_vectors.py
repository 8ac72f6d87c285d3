"""Small workloads for metric-aware scheduling, whose schedules are known by hand."""

from __future__ import annotations

from ptaskmodel.workload.jobs import Job
from ptaskmodel.workload.works import DelayWork


def jobs_of(*rows):
    """Jobs a, b, ... of (submit, hosts, walltime[, run time])."""
    return [
        Job("abcdefgh"[k], float(row[0]), row[1], "d", DelayWork(float(row[-1])), float(row[2]))
        for k, row in enumerate(rows)
    ]


V2 = jobs_of((0, 4, 20), (1, 8, 10), (1, 6, 20), (1, 4, 30))
V3 = jobs_of(
    (0, 6, 100, 80), (10, 8, 60, 40), (20, 4, 100, 100),
    (30, 4, 20, 20), (40, 2, 200, 150), (50, 6, 30, 30),
)  # fmt: skip
V4 = jobs_of(
    (0, 1, 100), (0, 1, 10), (0, 2, 10), (0, 2, 50), (0, 1, 20), (0, 1, 70), (5, 4, 30), (6, 3, 40)
)
V5 = jobs_of((0, 4, 6000), (600, 4, 7200), (1200, 4, 1800), (5000, 4, 600), (6100, 4, 1200))
V6 = jobs_of(
    (0, 10, 72000), (108000, 4, 36000), (109000, 8, 3600), (109000, 6, 36000), (109000, 6, 18000)
)
