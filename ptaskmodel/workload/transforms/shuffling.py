"""Shuffled orders of submission: what of a result is owed to the order in which jobs came?

Studies that rest on one log rest on one order of its jobs. Simulating several permutations of it
tells which metrics are stable (of a loaded machine, the utilisation is) and which are not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.jobs import Workload
from ptaskmodel.workload.transforms.whole import dates_s

SPACINGS = ("even", "kept")


def shuffled(workload: Workload, seed: int, spacing: str = "even") -> Workload:
    """The jobs in a random order of submission, over the same time.

    spacing: ``even``, all gaps between two submissions alike; ``kept``, the dates of the workload,
    each given to another job, so that hours of the day and bursts stay where they are. Which job
    waited for which has no meaning any more and is dropped. Raises WorkloadError for an unknown
    spacing.
    """
    if spacing not in SPACINGS:
        raise WorkloadError(f"spacing '{spacing}' is unknown: use one of {', '.join(SPACINGS)}")
    dates = dates_s(workload)
    if spacing == "even" and len(dates):
        dates = np.linspace(dates[0], dates[-1], len(dates))
    order = np.random.default_rng(seed).permutation(len(dates))
    jobs = tuple(
        replace(workload.jobs[k], submit_time_s=date, preceding_job=None, think_time_s=0.0)
        for k, date in zip(order.tolist(), dates.tolist(), strict=True)
    )
    return workload.with_jobs(jobs, f"order of submission shuffled, seed {seed}, dates {spacing}")
