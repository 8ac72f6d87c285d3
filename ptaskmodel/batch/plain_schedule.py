"""A schedule of one attempt a job, on whole hosts, in arrays; objects are made when asked for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.attempt import FAILED, RUNNING, SUCCESS, WAITING, WALLTIME, Attempt
from ptaskmodel.batch.figures import Figures
from ptaskmodel.batch.hostset import Placement, Runs, flat_runs
from ptaskmodel.workload.job_arrays import JobArrays
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

    def attempts(self) -> tuple[list[Attempt], list[Attempt]]:
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
