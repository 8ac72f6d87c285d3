"""A schedule of one attempt a job, on whole hosts, in arrays; objects are made when asked for."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel import csv_columns
from ptaskmodel.batch.attempt import FAILED, RUNNING, SUCCESS, WAITING, WALLTIME, Attempt
from ptaskmodel.batch.figures import Figures
from ptaskmodel.batch.hostset import Placement, Runs, flat_runs
from ptaskmodel.batch.schedule import Schedule
from ptaskmodel.on_demand import OnDemand
from ptaskmodel.workload.job_arrays import JobArrays, job_arrays, names_of
from ptaskmodel.workload.jobs import Job

FloatArray = NDArray[np.float64]
Ints = NDArray[np.int64]
# States of jobs, by the codes below.
STATES = (SUCCESS, FAILED, WALLTIME, RUNNING, WAITING)
SUCCEEDED, FAILS, CUT, STILL_RUNS, WAITS = range(len(STATES))


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The hosts of attempts: those of attempt k are the runs ``begins[k]`` to ``begins[k + 1]``.

    first, length: of each run of consecutive hosts, lowest first within an attempt.
    """

    begins: Ints
    first: NDArray[np.int32]
    length: NDArray[np.int32]

    @classmethod
    def of(cls, placements: Sequence[Placement]) -> Places:
        """Of these placements."""
        borders = [flat_runs(placement) for placement in placements]
        begins = np.zeros(len(borders) + 1, dtype=np.int64)
        np.cumsum([len(each) // 2 for each in borders], out=begins[1:])
        flat = np.fromiter(itertools.chain.from_iterable(borders), np.int32, 2 * int(begins[-1]))
        return cls(begins, flat[0::2], flat[1::2] - flat[0::2])

    def runs(self, number: int) -> Runs:
        """The hosts of an attempt."""
        part = slice(self.begins[number], self.begins[number + 1])
        first = self.first[part]
        return tuple(np.column_stack((first, first + self.length[part])).ravel().tolist())

    def texts(self) -> list[str]:
        """The hosts of each attempt in Batsim's notation, such as "0-2 5"."""
        first, length = self.first.astype(np.int64), self.length
        counts = np.diff(self.begins)
        ends = np.zeros(len(first), dtype=bool)
        ends[self.begins[1:][counts > 0] - 1] = True
        dash, last = (
            csv_columns.marks(b"-", len(first)),
            csv_columns.whole_numbers(first + length - 1),
        )
        several = np.hstack((dash, last))
        several[length == 1] = 0
        between = np.where(ends, ord("\n"), ord(" ")).astype(np.uint8)[:, None]
        cells = np.hstack((csv_columns.whole_numbers(first), several, between))
        found = np.full(len(counts), "", dtype=object)
        found[counts > 0] = csv_columns.text(cells).decode().split("\n")[:-1]
        return found.tolist()


@dataclass(frozen=True, slots=True, eq=False)
class PlainSchedule:
    """What became of the jobs submitted so far, in order of submission.

    start_s, end_s, expected_s: nan where there is none yet. number: of the attempt, in order of the
    starts (-1: none). codes: states, as in STATES. done: which part of its work each job did (nan:
    unknown). places: by number of the attempt. events, now_s, num_hosts: as in `Schedule`.
    """

    jobs: Sequence[Job]
    arrays: JobArrays
    start_s: FloatArray
    end_s: FloatArray
    expected_s: FloatArray
    number: Ints
    codes: NDArray[np.int8]
    done: FloatArray
    places: Places
    num_hosts: int
    events: int
    now_s: float

    @property
    def states(self) -> list[str]:
        return [STATES[code] for code in self.codes.tolist()]

    @property
    def order(self) -> Ints:
        """The jobs that started, in order of their starts."""
        started = np.flatnonzero(self.number >= 0)
        order = np.empty(len(started), dtype=np.int64)
        order[self.number[started]] = started
        return order

    def schedule(self) -> Schedule:
        """The same as a `Schedule`; its attempts are made when the first of them is asked for."""
        made = functools.cache(self._attempts)
        started = len(self.places.begins) - 1
        return Schedule(
            OnDemand(len(self.codes), lambda: made()[0]),
            OnDemand(started, lambda: made()[1]),
            self.num_hosts,
            self.events,
            self.now_s,
            plain=self,
        )

    def _attempts(self) -> tuple[list[Attempt], list[Attempt]]:
        """The attempt of each job, and those that started by number."""
        columns = (self.start_s, self.end_s, self.expected_s, self.done, self.number)
        final: list[Attempt] = []
        by_number: list[Any] = [None] * (len(self.places.begins) - 1)
        rows = zip(self.jobs, self.states, *(column.tolist() for column in columns), strict=False)
        for job, state, start, end, expected, done, number in rows:
            attempt: Attempt
            if number < 0:
                attempt = Attempt(job, 0, None, math.inf, -1, state)
            else:
                attempt = by_number[number] = PlainAttempt(
                    job, self.places.runs, start, expected, number, state
                )
                attempt.end_s = None if end != end else end
                attempt.done = None if done != done else done
            final.append(attempt)
        return final, by_number

    def figures(self) -> Figures:
        """Its numbers."""
        stretches = self.order
        end = np.where(np.isnan(self.end_s), self.now_s, self.end_s)
        count = len(self.codes)
        hosts = self.arrays.num_hosts[:count]
        return Figures(
            self.arrays.submit_s[:count],
            hosts,
            self.arrays.walltime_s[:count],
            self.start_s,
            self.start_s,
            self.end_s,
            hosts.astype(np.float64),
            np.zeros(count),
            np.zeros(count),
            self.states,
            self.codes == CUT,
            self.done,
            self.start_s[stretches],
            end[stretches],
            hosts[stretches],
            len(stretches),
        )

    def job_lines(self, workload_name: str, *more: Sequence[float] | FloatArray) -> Iterator[str]:
        """The lines of jobs.csv, many at a time, as `output` writes them of attempts.

        more: of each job that ran and ended, the columns after them.
        """
        count = len(self.codes)
        submit, walltime = self.arrays.submit_s[:count], self.arrays.walltime_s[:count]
        execution, turnaround = self.end_s - self.start_s, self.end_s - submit
        stretch = np.divide(
            turnaround, execution, out=np.full(count, math.nan), where=execution > 0
        )
        columns = (
            submit,
            self.arrays.num_hosts[:count],
            csv_columns.floats(walltime, missing="-1"),
            self.codes == SUCCEEDED,
            csv_columns.words(STATES)[self.codes],
            self.start_s,
            execution,
            self.end_s,
            self.start_s - submit,
            turnaround,
            stretch,
        )
        (name,) = csv_columns.quoted([workload_name])
        ids, profiles = (csv_columns.quoted(names[:count]) for names in names_of(self.jobs))
        texts = [*self.places.texts(), ""]
        hosts = [texts[k] for k in self.number.tolist()]
        others = [self._column(values) for values in more]
        for begin in range(0, count, csv_columns.PIECE):
            part = slice(begin, begin + csv_columns.PIECE)
            lines = csv_columns.lines(*(column[part] for column in columns))
            numbers = lines.decode().split("\n")[:-1]
            last = (text for column in others for text in (",", column[part]))
            texts = (ids[part], f",{name},", profiles[part], ",", numbers, ",", hosts[part], ",,")
            yield csv_columns.joined((*texts, *last, "\n"), len(numbers))

    def _column(self, of_ended: Sequence[float] | FloatArray) -> list[str]:
        values = np.full(len(self.codes), math.nan)
        values[~np.isnan(self.end_s)] = of_ended
        return csv_columns.lines(csv_columns.floats(values)).decode().split("\n")[:-1]


def with_arrays(schedule: Schedule, jobs: Sequence[Job]) -> Schedule:
    """A schedule of attempts, with the same in arrays beside if it is no more than these can say.

    jobs: those of the workload. Tables of many jobs are made of arrays in a fraction of the time.
    """
    final, attempts = schedule.final, schedule.attempts
    changed = schedule.host_changes or schedule.link_changes or schedule.switches
    same = all(attempt.job is job for attempt, job in zip(final, jobs, strict=False))
    if changed or not same or len(final) > len(jobs) or not all(map(_is_plain, final)):
        return schedule
    number = np.array([attempt.number for attempt in final], dtype=np.int64)
    if np.count_nonzero(number >= 0) != len(attempts):
        return schedule
    code = {state: k for k, state in enumerate(STATES)}
    plain = PlainSchedule(
        jobs,
        job_arrays(jobs),
        np.array([attempt.start_s for attempt in final], dtype=np.float64),
        np.array([attempt.end_s for attempt in final], dtype=np.float64),
        np.where(number < 0, math.nan, [attempt.expected_end_s for attempt in final]),
        number,
        np.array([code[attempt.state] for attempt in final], dtype=np.int8),
        np.array([attempt.part_done for attempt in final], dtype=np.float64),
        Places.of([attempt.placement for attempt in attempts]),
        schedule.num_hosts,
        schedule.events,
        schedule.now_s,
    )
    return replace(schedule, plain=plain)


def _is_plain(attempt: Attempt) -> bool:
    """Whether all that there is to say of a job is in the arrays."""
    return (
        attempt.state in STATES
        and attempt.ordinal == 0
        and not attempt.suspensions
        and not attempt.reason
        and attempt.cores is None
        and attempt.overhead_s == 0
        and attempt.use == attempt.job.num_hosts
    )


class PlainAttempt(Attempt):
    """An attempt that looks its hosts up, by its number, when asked for them."""

    __slots__ = ("_runs_of",)

    def __init__(
        self,
        job: Job,
        runs_of: Callable[[int], Runs],
        start_s: float,
        expected_end_s: float,
        number: int,
        state: str,
    ) -> None:
        self._runs_of = runs_of
        super().__init__(job, 0, start_s, expected_end_s, number, state)

    @property
    def placement(self) -> Placement:
        return self._runs_of(self.number)

    @placement.setter
    def placement(self, placement: Placement) -> None:
        """The places say it."""
