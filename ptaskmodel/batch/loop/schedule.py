"""The schedule, which is the result of a batch: its attempts and the outcome of each job.

`Schedule` holds objects; metrics use its arrays. If each job has one attempt on whole hosts, only
arrays are stored, and objects are made on demand.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.jobs.execution import FAILED, RUNNING, SUCCESS, WAITING, WALLTIME, Attempt
from ptaskmodel.batch.machine.host_sets import HostSet, Placement, Runs, flat_runs
from ptaskmodel.lazy import OnDemand
from ptaskmodel.workload.jobs import Job, JobArrays, job_arrays

if TYPE_CHECKING:
    import pandas

    from ptaskmodel.batch.loop.power_states import Switch


FloatArray = NDArray[np.float64]
Ints = NDArray[np.int64]
# States of jobs, by the codes below.
STATES = (SUCCESS, FAILED, WALLTIME, RUNNING, WAITING)


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """The numbers of a schedule; dates in s, nan: not yet or never.

    One entry for each submitted job, in order of submission: what it asked for (``walltime_s`` nan:
    none), when it started
    first, and of its last attempt its dates, of how many whole hosts its placement is worth
    (``held_hosts``), for how long it was suspended and read or wrote checkpoints, its state (see
    `attempt`), whether it was cut off, and which part of its work it did (``done``; nan: unknown).

    One entry for each stretch during which some attempt ran, up to now, in order of the starts:
    ``stretch_from_s``, ``stretch_to_s``, ``stretch_hosts`` (whole numbers unless jobs share hosts).

    attempts: how many there were.
    """

    submit_s: FloatArray
    num_hosts: NDArray[np.int64]
    walltime_s: FloatArray
    first_start_s: FloatArray
    start_s: FloatArray
    end_s: FloatArray
    held_hosts: FloatArray
    suspended_s: FloatArray
    overhead_s: FloatArray
    states: list[str]
    cut: NDArray[np.bool_]
    done: FloatArray
    stretch_from_s: FloatArray
    stretch_to_s: FloatArray
    stretch_hosts: NDArray[np.int64] | FloatArray
    attempts: int

    @property
    def ended(self) -> NDArray[np.bool_]:
        """Which jobs ran and ended."""
        return ~np.isnan(self.start_s) & ~np.isnan(self.end_s)

    @property
    def waiting(self) -> NDArray[np.bool_]:
        """Which jobs never started and wait still."""
        never = np.isnan(self.first_start_s)
        return never & np.array([state == WAITING for state in self.states], dtype=bool)


def running_intervals(attempt: Attempt, now: float) -> Iterator[tuple[float, float]]:
    """(from, to) of the stretches during which an attempt ran, up to now."""
    begin = attempt.start_s or 0.0
    for since, to in attempt.suspensions:
        yield begin, since or 0.0
        begin = now if to is None else to
    yield begin, now if attempt.end_s is None else attempt.end_s


SUCCEEDED, FAILS, CUT, STILL_RUNS, WAITS = range(len(STATES))


class HostRuns(NamedTuple):
    """The hosts of attempts: those of attempt k are the runs ``begins[k]`` to ``begins[k + 1]``.

    first, length: of each run of consecutive hosts, lowest first within an attempt.
    """

    begins: Ints
    first: NDArray[np.int32]
    length: NDArray[np.int32]

    @classmethod
    def of(cls, placements: Sequence[Placement]) -> HostRuns:
        """Of these placements."""
        borders = [flat_runs(placement) for placement in placements]
        begins = np.zeros(len(borders) + 1, dtype=np.int64)
        np.cumsum([len(each) // 2 for each in borders], out=begins[1:])
        flat = np.fromiter(itertools.chain.from_iterable(borders), np.int32, 2 * int(begins[-1]))
        return cls(begins, flat[0::2], flat[1::2] - flat[0::2])

    def runs(self, number: int) -> Runs:
        """Return the hosts of the attempt with this `number`."""
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
    places: HostRuns
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


class HostChange(NamedTuple):
    """From ``date_s`` on these hosts are "down" or "up", "off" or "on", or in this pstate.

    Or "maintenance" begins there, or is over ("maintenance over"); or they are "drained": nothing
    starts there and nothing runs there any more; or "drained no more".
    """

    date_s: float
    hosts: HostSet
    state: str | int


class LinkChange(NamedTuple):
    """From ``date_s`` on a link, or a host that runs no jobs, is "down" or "up"."""

    date_s: float
    name: str
    state: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Schedule:
    """What has happened up to ``now_s``.

    final: for each job submitted so far, in order of submission, its last attempt; one that has
    none (rejected, still waiting) has a placeholder without dates. attempts: all, in order of their
    starts. events: at how many dates the policy was asked. host_changes, link_changes: in order of
    date. switches: changes of pstates, in the order in which they were asked for. plain: the same
    as final and attempts in arrays, where they can say it all (of the compiled loop: attempts are
    made when asked for).
    """

    final: Sequence[Attempt]
    attempts: Sequence[Attempt]
    num_hosts: int
    events: int
    now_s: float
    host_changes: tuple[HostChange, ...] = ()
    link_changes: tuple[LinkChange, ...] = ()
    switches: tuple[Switch, ...] = ()
    plain: PlainSchedule | None = None
    # What `figures_of` has found of it, once it was asked.
    known: list[Figures] = field(default_factory=list, init=False, repr=False)

    def __repr__(self) -> str:
        jobs, ended = len(self.final), sum(1 for _ in self.ended())
        return f"<Schedule at {self.now_s:g} s: {jobs} jobs, {ended} of them ended>"

    def frame(self) -> pandas.DataFrame:
        """One row a job, in order of submission: its last attempt.

        Columns ``job_id``, ``profile``, ``submit_s``, ``num_hosts``, ``walltime_s``, ``start_s``,
        ``end_s`` (nan where there is none), ``state``, and ``hosts`` as in "0-3 7".
        """
        import pandas

        names = ("job_id", "profile", "submit_s", "num_hosts", "walltime_s", "start_s", "end_s")
        rows = [
            (
                *(a.job.id, a.job.profile, a.job.submit_time_s, a.job.num_hosts, a.job.walltime_s),
                *(a.start_s, a.end_s, a.state, str(a.hosts)),
            )
            for a in self.final
        ]
        numbers = dict.fromkeys(("walltime_s", "start_s", "end_s"), "float64")
        return pandas.DataFrame(rows, columns=[*names, "state", "hosts"]).astype(numbers)

    def ended(self) -> Iterator[Attempt]:
        """The last attempts of the jobs that ran and ended, in order of submission."""
        return (attempt for attempt in self.final if has_ended(attempt))


def has_ended(attempt: Attempt) -> bool:
    """Whether an attempt ran and is over."""
    return attempt.start_s is not None and attempt.end_s is not None


def schedule_of(plain: PlainSchedule) -> Schedule:
    """The schedule of ``plain``; its attempts are made when the first of them is asked for."""
    made = functools.cache(plain.attempts)
    started = len(plain.places.begins) - 1
    return Schedule(
        OnDemand(len(plain.codes), lambda: made()[0]),
        OnDemand(started, lambda: made()[1]),
        plain.num_hosts,
        plain.events,
        plain.now_s,
        plain=plain,
    )


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
        HostRuns.of([attempt.placement for attempt in attempts]),
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


def figures_of(schedule: Schedule) -> Figures:
    """The numbers of a ``schedule``, found once."""
    if not schedule.known:
        plain = schedule.plain
        schedule.known.append(_figures(schedule) if plain is None else plain.figures())
    return schedule.known[0]


def _figures(schedule: Schedule) -> Figures:
    first: dict[int, float] = {}
    stretches: list[tuple[float, float]] = []
    hosts: list[float] = []
    now = schedule.now_s
    for attempt in schedule.attempts:
        first.setdefault(id(attempt.job), attempt.start_s or 0.0)
        for stretch in running_intervals(attempt, now):
            stretches.append(stretch)
            hosts.append(attempt.use)
    final = schedule.final
    dates = np.array(stretches, dtype=np.float64).reshape(len(stretches), 2)
    whole = all(isinstance(count, int) for count in hosts)
    return Figures(
        np.array([a.job.submit_time_s for a in final], dtype=np.float64),
        np.array([a.job.num_hosts for a in final], dtype=np.int64),
        np.array([a.job.walltime_s for a in final], dtype=np.float64),
        np.array([first.get(id(a.job), math.nan) for a in final], dtype=np.float64),
        np.array([a.start_s for a in final], dtype=np.float64),
        np.array([a.end_s for a in final], dtype=np.float64),
        np.array([a.use for a in final], dtype=np.float64),
        np.array([a.suspended_s(now) for a in final], dtype=np.float64),
        np.array([a.overhead_s for a in final], dtype=np.float64),
        [a.state for a in final],
        np.array([a.was_cut for a in final], dtype=bool),
        np.array([a.part_done for a in final], dtype=np.float64),
        dates[:, 0],
        dates[:, 1],
        np.array(hosts, dtype=np.int64) if whole else np.array(hosts, dtype=np.float64),
        len(schedule.attempts),
    )
