"""Take a sample of the jobs with the same mixture as all; shuffle the order of submission.

Both methods of sampling sort similar jobs next to each other and take one of every ``ratio``. So a
sample has few and many hosts, short and long run times in the proportions of the whole. A plain
random sample has these proportions only on average, and a few large jobs decide its load.

A study of one log depends on one order of its jobs. Simulating several permutations (`shuffled`)
shows which metrics are stable (on a loaded machine, utilisation is) and which are not.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.jobs import Workload
from ptaskmodel.workload.transforms.scaling import dates_s, run_times_s, without_lost_links

METHODS = ("systematic", "work")
WINDOW_S = 60.0

SPACINGS = ("even", "kept")


def sampled(
    workload: Workload,
    ratio: float,
    *,
    method: str = "systematic",
    offset: int = 0,
    window_s: float = WINDOW_S,
    keep_dates: bool = False,
) -> Workload:
    """One job out of every ``ratio`` (1 or more, not necessarily whole), in the order they came.

    method: ``systematic`` orders the jobs by hosts, then run time, then walltime and takes those at
    floor(ratio * k) + offset, 0 <= offset < ratio, so that there are about ``ratio``
    different samples. ``work`` orders them by hosts and walltime, those within ``window_s`` in the
    order of submission, and of each ``ratio`` takes the one nearest to their mean of hosts x run
    time, carrying what it is off to the next: the sample asks for 1 / ratio of the host seconds.

    Dates are divided by the ratio, so that the offered load stays as it is, unless ``keep_dates``.
    Raises WorkloadError for a value out of range or a job whose run time is not known.
    """
    jobs = len(workload.jobs)
    if method not in METHODS:
        raise WorkloadError(f"method '{method}' is unknown; use one of {', '.join(METHODS)}")
    if not 1 <= ratio <= max(jobs, 1):
        raise WorkloadError(
            f"a ratio of {ratio:g} leaves no sample of {jobs} jobs; use 1 to {jobs}"
        )
    if not 0 <= offset < ratio:
        raise WorkloadError(f"the offset is {offset}; give 0 or more, below {ratio:g}")
    if not 0 <= window_s < math.inf:
        raise WorkloadError(f"the window is {window_s:g} s; give a finite number, 0 or more")
    times = run_times_s(workload, "sample a log or a workload of delays")
    sizes = np.array([job.num_hosts for job in workload.jobs], dtype=np.int64)
    walls = np.array(
        [math.inf if job.walltime_s is None else job.walltime_s for job in workload.jobs]
    )
    bounds = np.floor(ratio * np.arange(math.ceil(jobs / ratio) + 1) + 1e-9).astype(np.int64)
    bounds = np.append(bounds[bounds < jobs], jobs)
    if method == "systematic":
        order = np.lexsort((walls, times, sizes))
        places = bounds[:-1] + offset
        chosen = order[places[places < jobs]]
    else:
        chosen = _by_work(_windows(sizes, walls, window_s), sizes * times, bounds)
    pace = 1.0 if keep_dates else ratio
    kept = without_lost_links(workload.jobs[k] for k in np.sort(chosen).tolist())
    first = workload.jobs[0].submit_time_s if jobs else 0.0
    made = tuple(
        replace(job, submit_time_s=first + (job.submit_time_s - first) / pace) for job in kept
    )
    dates = "times kept" if keep_dates else "times divided by it"
    note = f"sampled ({method}): 1 of every {ratio:g} of {jobs} jobs, offset {offset}, {dates}"
    return workload.with_jobs(made, note)


def _windows(
    sizes: NDArray[np.int64], walls: NDArray[np.float64], window_s: float
) -> NDArray[np.intp]:
    """The order of jobs by size and window of walltimes; within one, the order of submission."""
    order = np.lexsort((walls, sizes))
    group = np.empty(len(order), dtype=np.int64)
    number, size, end = -1, -1, -math.inf
    for k in order.tolist():
        if sizes[k] != size or walls[k] > end:
            number, size, end = number + 1, sizes[k], walls[k] + window_s
        group[k] = number
    return np.lexsort((np.arange(len(order)), group))


def _by_work(
    order: NDArray[np.intp], work: NDArray[np.float64], bounds: NDArray[np.int64]
) -> NDArray[np.intp]:
    """Of each part of the order the job nearest to what the part, and the parts before, ask for."""
    chosen = []
    owed = 0.0
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        part = order[first:last]
        target = float(work[part].mean()) + owed
        best = int(part[np.argmin(np.abs(work[part] - target))])
        owed = target - float(work[best])
        chosen.append(best)
    return np.array(chosen, dtype=np.intp)


def shuffled(workload: Workload, seed: int, spacing: str = "even") -> Workload:
    """The jobs in a random order of submission, over the same time.

    spacing: ``even``, all gaps between two submissions alike; ``kept``, the dates of the workload,
    each given to another job, so that hours of the day and bursts stay where they are. Which job
    waited for which has no meaning any more and is dropped. Raises WorkloadError for an unknown
    spacing.
    """
    if spacing not in SPACINGS:
        raise WorkloadError(f"spacing '{spacing}' is unknown; use one of {', '.join(SPACINGS)}")
    dates = dates_s(workload)
    if spacing == "even" and len(dates):
        dates = np.linspace(dates[0], dates[-1], len(dates))
    order = np.random.default_rng(seed).permutation(len(dates))
    jobs = tuple(
        replace(workload.jobs[k], submit_time_s=date, preceding_job=None, think_time_s=0.0)
        for k, date in zip(order.tolist(), dates.tolist(), strict=True)
    )
    return workload.with_jobs(jobs, f"order of submission shuffled, seed {seed}, dates {spacing}")
