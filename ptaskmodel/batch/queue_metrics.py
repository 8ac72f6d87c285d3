"""Metrics of the queue: queue depth, capacity lost while jobs wait, and both over time.

Source: W. Tang, D. Ren, Z. Lan, N. Desai, "Toward balanced and sustainable job scheduling for
production supercomputers", Parallel Computing 39(12), 2013.
"""

from __future__ import annotations

import functools
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.jobs.execution import WAITING
from ptaskmodel.batch.loop.schedule import PlainSchedule, Schedule
from ptaskmodel.batch.schedule_metrics import Load, load
from ptaskmodel.workload.jobs import Job

FloatArray = NDArray[np.float64]
HOUR_S = 3600.0
# Samples are so far apart, s, or further where there would be more than so many.
INTERVAL_S = 1800.0
MAX_SAMPLES = 100_000


class Waits(NamedTuple):
    """The stretches during which jobs waited, one entry each; a job that was requeued has several.

    from_s, to_s: dates. submit_s: of the job. hosts: how many it asked for.
    """

    from_s: FloatArray
    to_s: FloatArray
    submit_s: FloatArray
    hosts: FloatArray


def waits(schedule: Schedule) -> Waits:
    """All stretches of waiting up to now; those of 0 s are left out."""
    if schedule.plain is not None:
        return _plain_waits(schedule.plain)
    since: dict[Job, float] = {}
    rows: list[tuple[float, float, float, int]] = []
    for attempt in schedule.attempts:
        job, start = attempt.job, attempt.start_s or 0.0
        begin = since.get(job, job.submit_time_s)
        if start > begin:
            rows.append((begin, start, job.submit_time_s, job.num_hosts))
        since[job] = schedule.now_s if attempt.end_s is None else attempt.end_s
    for attempt in schedule.final:
        if attempt.state == WAITING:
            job = attempt.job
            begin = since.get(job, job.submit_time_s)
            rows.append((begin, schedule.now_s, job.submit_time_s, job.num_hosts))
    return Waits(*np.array(rows, dtype=np.float64).reshape(len(rows), 4).T)


def _plain_waits(plain: PlainSchedule) -> Waits:
    """The same of a schedule in arrays: each job waits once, in order of the starts."""
    submit, start = plain.arrays.submit_s, plain.start_s
    order = plain.order
    waited = order[start[order] > submit[order]]
    still = np.flatnonzero(plain.number < 0)
    which = np.concatenate((waited, still))
    to = np.concatenate((start[waited], np.full(len(still), plain.now_s)))
    hosts = plain.arrays.num_hosts[which].astype(np.float64)
    return Waits(submit[which], to, submit[which], hosts)


class OverTime(NamedTuple):
    """Samples of a run, ``interval_s`` apart from the first submission on, before the last end.

    queue_depth_s: the time that those in the queue have waited so far, summed, s; just before the
    events of the date, as are waiting_jobs and used_hosts. utilisation: of the last 1, 10 and 24
    hours, as if the machine had been idle before the first submission. lost: the fraction of all
    host time that was lost up to the date (see `lost_capacity`, strict).
    """

    interval_s: float
    date_s: FloatArray
    queue_depth_s: FloatArray
    waiting_jobs: NDArray[np.int64]
    used_hosts: FloatArray
    utilisation: dict[int, FloatArray]
    lost: FloatArray


def _span(schedule: Schedule) -> tuple[float, float]:
    """The dates of the first submission and of the last end."""
    if schedule.plain is not None:
        submit, ends = schedule.plain.arrays.submit_s, schedule.plain.end_s
        begin = float(submit[0]) if len(ends) else 0.0
        return begin, float(np.nanmax(ends)) if not np.isnan(ends).all() else begin
    begin = min((attempt.job.submit_time_s for attempt in schedule.final), default=0.0)
    ends_s = (attempt.end_s for attempt in schedule.attempts if attempt.end_s is not None)
    return begin, max(ends_s, default=begin)


class QueueMeasures:
    """The queue of a schedule, measured; ``summary`` and ``over_time`` say what it found.

    load: of the schedule.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._hosts = schedule.num_hosts
        self._waits = waits(schedule)
        self.load = load(schedule)
        self._begin, self._end = _span(schedule)
        self._lost = _Lost(schedule, self._waits, self.load, self._begin, self._end)

    def summary(self) -> dict[str, Any]:
        """``queue_depth_s``, ``loss_of_capacity`` and ``loss_of_capacity_inclusive``; see guide."""
        span = self._end - self._begin
        if not span > 0:
            names = ("loss_of_capacity", "loss_of_capacity_inclusive")
            depths = ("mean", "max", "sampled_mean", "interval_s")
            return {"queue_depth_s": dict.fromkeys(depths), **dict.fromkeys(names)}
        found = self._waits
        waited = found.to_s - found.submit_s
        before = found.from_s - found.submit_s
        peaks = self._depth(found.to_s)
        samples = self.over_time()
        depth = {
            "mean": float((waited**2 - before**2).sum() / 2 / span),
            "max": float(peaks.max()) if len(peaks) else 0.0,
            "sampled_mean": (
                float(samples.queue_depth_s.mean()) if len(samples.queue_depth_s) else None
            ),
            "interval_s": samples.interval_s,
        }
        total = self._hosts * span
        return {
            "queue_depth_s": depth,
            "loss_of_capacity": self._lost.strict / total,
            "loss_of_capacity_inclusive": self._lost.inclusive / total,
        }

    def over_time(self) -> OverTime:
        """Samples of the whole run."""
        return self._over_time

    @functools.cached_property
    def _over_time(self) -> OverTime:
        interval, span = INTERVAL_S, self._end - self._begin
        while span / interval > MAX_SAMPLES:
            interval *= 2
        dates: FloatArray = self._begin + interval * np.arange(1.0, span // interval + 1)
        dates = dates[dates < self._end]
        used = _Integral(self.load.date_s, np.asarray(self.load.used_hosts, dtype=np.float64))
        utilisation = {
            hours: used.between(dates - hours * HOUR_S, dates) / (hours * HOUR_S * self._hosts)
            for hours in (1, 10, 24)
        }
        lost = np.interp(dates, self._lost.date_s, self._lost.sum_s)
        return OverTime(
            interval,
            dates,
            self._depth(dates),
            self._waiting(dates),
            used.before(dates),
            utilisation,
            lost / (self._hosts * span) if span > 0 else lost,
        )

    def _waiting(self, dates: FloatArray) -> NDArray[np.int64]:
        """How many jobs wait just before the events of these dates."""
        begun, over = (np.searchsorted(moments, dates, side="left") for moments, _ in self._sums)
        return begun - over

    @functools.cached_property
    def _sums(self) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """When waits begin, and end, in order; the submissions of the first k, summed.

        From the first submission on, so that the sums stay small.
        """
        found = self._waits

        def of(moments: FloatArray) -> tuple[FloatArray, FloatArray]:
            order = np.argsort(moments, kind="stable")
            submitted = np.cumsum(found.submit_s[order] - self._begin)
            return moments[order], np.concatenate(([0.0], submitted))

        return of(found.from_s), of(found.to_s)

    def _depth(self, dates: FloatArray) -> FloatArray:
        """The queue depth, s, just before the events of these dates."""
        counts, sums = [], []
        for moments, submitted in self._sums:
            k = np.searchsorted(moments, dates, side="left")
            counts.append(k)
            sums.append(submitted[k])
        depth = (counts[0] - counts[1]) * (dates - self._begin) - (sums[0] - sums[1])
        return np.maximum(depth, 0.0)


class _Integral:
    """The integral of a step function, which is 0 before its first date."""

    def __init__(self, dates: FloatArray, values: FloatArray) -> None:
        self._dates, self._values = dates, values
        widths = np.diff(dates)
        self._sums = np.concatenate(([0.0], np.cumsum(values[:-1] * widths)))

    def before(self, dates: FloatArray) -> FloatArray:
        """The value just before these dates."""
        k = np.searchsorted(self._dates, dates, side="left") - 1
        return np.where(k >= 0, self._values[np.maximum(k, 0)], 0.0) if len(self._dates) else dates

    def between(self, begin: FloatArray, end: FloatArray) -> FloatArray:
        return self._until(end) - self._until(begin)

    def _until(self, dates: FloatArray) -> FloatArray:
        if not len(self._dates):
            return np.zeros(len(dates))
        k = np.searchsorted(self._dates, dates, side="right") - 1
        at = np.maximum(k, 0)
        sums = self._sums[at] + self._values[at] * (dates - self._dates[at])
        return np.where(k >= 0, sums, 0.0)


class _Lost:
    """Host seconds lost: idle while some job waits that asks for fewer hosts than are idle.

    strict, inclusive: the sums; inclusive also counts a job that asks for exactly the idle ones.
    date_s, sum_s: the strict sum over time. Hosts that are down or off are not idle.
    """

    def __init__(
        self, schedule: Schedule, found: Waits, used: Load, begin: float, end: float
    ) -> None:
        usable = _usable(schedule)
        parts = used.date_s, found.from_s, found.to_s, usable[0], [begin, end]
        dates = np.sort(np.concatenate(parts), kind="stable")  # most are in order
        dates = dates[(dates >= begin) & (dates <= end)]
        self.date_s = dates = dates[np.diff(dates, prepend=-inf) > 0]
        idle = _at(usable[0], usable[1], dates, float(schedule.num_hosts)) - _at(
            used.date_s, np.asarray(used.used_hosts, dtype=np.float64), dates, 0.0
        )
        least = _smallest(found, dates)
        widths = np.diff(dates, append=dates[-1:])
        lost = np.where(least < idle, idle, 0.0) * widths
        self.sum_s = np.concatenate(([0.0], np.cumsum(lost)[:-1]))
        self.strict = float(lost.sum())
        self.inclusive = float((np.where(least <= idle, idle, 0.0) * widths).sum())


def _usable(schedule: Schedule) -> tuple[FloatArray, FloatArray]:
    """From each date on how many hosts are up and on."""
    down = off = 0
    dates, counts = [], []
    for change in schedule.host_changes:
        hosts = int(change.hosts)
        if change.state in ("down", "up"):
            down = down | hosts if change.state == "down" else down & ~hosts
        elif change.state in ("off", "on"):
            off = off | hosts if change.state == "off" else off & ~hosts
        dates.append(change.date_s)
        counts.append(float(schedule.num_hosts - (down | off).bit_count()))
    return np.array(dates, dtype=np.float64), np.array(counts, dtype=np.float64)


def _at(dates: FloatArray, values: FloatArray, moments: FloatArray, first: float) -> FloatArray:
    """The value of a step function from each moment on; ``first`` before its first date."""
    k = np.searchsorted(dates, moments, side="right")
    return np.concatenate(([first], values))[k]


def _smallest(found: Waits, dates: FloatArray) -> FloatArray:
    """The fewest hosts that a waiting job asks for, from each date on; inf: nobody waits.

    By a segment tree over the dates: each wait is written where it covers a whole subtree, at most
    twice on each level, and all of a level are looked at together.
    """
    size = 1 << max(len(dates) - 1, 0).bit_length()
    least: FloatArray = np.full(2 * size, inf)
    begin = np.searchsorted(dates, found.from_s, side="left") + size
    end = np.searchsorted(dates, found.to_s, side="left") + size
    asks = (found.hosts > 0) & (begin < end)
    begin, end, hosts = begin[asks], end[asks], found.hosts[asks]
    while len(begin):
        odd = begin % 2 == 1
        np.minimum.at(least, begin[odd], hosts[odd])
        begin += odd
        odd = end % 2 == 1
        end -= odd
        np.minimum.at(least, end[odd], hosts[odd])
        left = begin < end
        begin, end, hosts = begin[left] // 2, end[left] // 2, hosts[left]
    level = 1
    while level < size:
        children = least[2 * level : 4 * level].reshape(level, 2)
        np.minimum(children, least[level : 2 * level, None], out=children)
        level *= 2
    return least[size : size + len(dates)]
