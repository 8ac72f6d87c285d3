"""How many jobs of a Slurm run wait and run over time, and which CPUs they ask for and use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.results.slurm.reading import SlurmJob

# More points than these are no more than a picture can show.
MOST_POINTS = 3000

Array = NDArray[np.float64]


class Curve(NamedTuple):
    """A quantity from each date (s) on; the last date is the end."""

    dates_s: Array
    values: Array


def waiting(jobs: Sequence[SlurmJob], end_s: float, cpus: bool = False) -> Curve:
    """Jobs that wait, or the CPUs that they will get; those that never start wait until the end."""
    spans = [(j.submit_s, j.start_s if j.start_s is not None else j.end_s or end_s) for j in jobs]
    return _curve(spans, [float(job.cpus) if cpus else 1.0 for job in jobs], end_s)


def used(jobs: Sequence[SlurmJob], end_s: float) -> Curve:
    """CPUs that jobs have, suspended ones included."""
    ran = [job for job in jobs if job.start_s is not None]
    spans = [(job.start_s or 0.0, end_s if job.end_s is None else job.end_s) for job in ran]
    return _curve(spans, [float(job.cpus) for job in ran], end_s)


def queue_depth(jobs: Sequence[SlurmJob], end_s: float, points: int = 600) -> Curve:
    """How long the jobs that wait have waited so far, summed, s, at equally spaced dates."""
    dates = np.linspace(0.0, end_s, points)
    begins = np.array([job.submit_s for job in jobs])
    ends = np.array(
        [job.start_s if job.start_s is not None else job.end_s or end_s for job in jobs]
    )
    by_begin, by_end = np.sort(begins), np.argsort(ends, kind="stable")
    come = np.searchsorted(by_begin, dates, side="right")
    gone = np.searchsorted(ends[by_end], dates, side="right")
    sums_come = np.concatenate([[0.0], np.cumsum(by_begin)])
    sums_gone = np.concatenate([[0.0], np.cumsum(begins[by_end])])
    return Curve(dates, (come - gone) * dates - (sums_come[come] - sums_gone[gone]))


def last_date_s(jobs: Sequence[SlurmJob]) -> float:
    """The last date at which something happened to a job, s; 1 if nothing did."""
    dates = [date for job in jobs for date in (job.submit_s, job.start_s, job.end_s)]
    return max((date for date in dates if date is not None), default=0.0) or 1.0


def _curve(spans: Sequence[tuple[float, float]], weights: Sequence[float], end_s: float) -> Curve:
    """The sum of weights over the spans that a date is in."""
    begins = np.array([span[0] for span in spans], dtype=np.float64)
    ends = np.array([max(span) for span in spans], dtype=np.float64)
    weight = np.array(weights, dtype=np.float64)
    every = np.concatenate([begins, ends])
    dates, place = np.unique(every, return_inverse=True)
    change = np.bincount(place, weights=np.concatenate([weight, -weight]), minlength=len(dates))
    start = 0.0 if not len(dates) else min(0.0, float(dates[0]))
    found_dates = np.concatenate([[start], dates, [max(end_s, dates[-1] if len(dates) else 0.0)]])
    values = np.concatenate([[0.0], np.cumsum(change)])
    values = np.concatenate([values, values[-1:]])
    return thinned(Curve(found_dates, values))


def thinned(curve: Curve, most: int = MOST_POINTS) -> Curve:
    """A curve of no more than so many points: means over equal times where there are more."""
    dates, values = curve
    if len(dates) <= most:
        return curve
    area = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(dates))])
    edges = np.linspace(dates[0], dates[-1], most)
    at = np.interp(edges, dates, area)
    means = np.diff(at) / np.diff(edges)
    return Curve(edges, np.concatenate([means, means[-1:]]))
