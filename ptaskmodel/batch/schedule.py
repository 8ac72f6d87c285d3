"""What came of a batch: its attempts, and what became of each job."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ptaskmodel.batch.attempt import Attempt
from ptaskmodel.batch.figures import Figures, running_intervals
from ptaskmodel.batch.hostset import HostSet
from ptaskmodel.batch.plain_schedule import STATES, Places, PlainSchedule
from ptaskmodel.batch.pstates import Switch
from ptaskmodel.on_demand import OnDemand
from ptaskmodel.workload.job_arrays import job_arrays
from ptaskmodel.workload.jobs import Job

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True)
class HostChange:
    """From ``date_s`` on these hosts are "down" or "up", "off" or "on", or in this pstate.

    Or "maintenance" begins there, or is over ("maintenance over"); or they are "drained": nothing
    starts there and nothing runs there any more; or "drained no more".
    """

    date_s: float
    hosts: HostSet
    state: str | int


@dataclass(frozen=True, slots=True)
class LinkChange:
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
