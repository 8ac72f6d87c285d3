"""Jobs as arrays: what is asked of them where there are many."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.memory import collector_at_rest
from ptaskmodel.on_demand import OnDemand
from ptaskmodel.workload.jobs import Job, default_of, jobs_of_columns

FloatArray = NDArray[np.float64]
# More hosts than any machine has: what a job asks for beyond it is as good as this.
MOST_HOSTS = 2**62


class JobArrays(NamedTuple):
    """One entry a job, in their order.

    duration_s: how long it lasts whatever the platform, its walltime aside; nan: that depends on
    the platform. walltime_s: nan: no limit. fails: whether it fails at its end. plain: whether all
    jobs ask for whole hosts and nothing else.
    """

    submit_s: FloatArray
    num_hosts: NDArray[np.int64]
    duration_s: FloatArray
    walltime_s: FloatArray
    fails: NDArray[np.bool_]
    plain: bool

    @property
    def limit_s(self) -> FloatArray:
        """After what time each job is killed if walltimes are enforced, s; inf: never."""
        return np.where(np.isnan(self.walltime_s), np.inf, self.walltime_s)


class JobTable(OnDemand[Job]):
    """Jobs of which the columns are there; the jobs are made when the first of them is asked for.

    arrays, ids, profiles, users: of all of them. columns: makes the values of fields of the jobs
    (of others, all have the default).
    """

    __slots__ = ("arrays", "columns", "ids", "profiles", "users")

    def __init__(
        self,
        arrays: JobArrays,
        ids: Sequence[str],
        profiles: Sequence[str],
        users: Sequence[str | None],
        columns: Callable[[], Mapping[str, Sequence[Any]]],
    ) -> None:
        super().__init__(len(ids), self._jobs)
        self.arrays, self.ids, self.profiles, self.users = arrays, ids, profiles, users
        self.columns = functools.cache(columns)

    def _jobs(self) -> tuple[Job, ...]:
        with collector_at_rest():
            return jobs_of_columns(self.columns())


def job_arrays(jobs: Sequence[Job]) -> JobArrays:
    """The arrays of some jobs; numbers of hosts up to MOST_HOSTS."""
    if isinstance(jobs, JobTable):
        return jobs.arrays
    plain = not any(
        job.cores is not None or job.memory_B is not None or job.resources or job.licences
        for job in jobs
    )
    return JobArrays(
        np.array([job.submit_time_s for job in jobs], dtype=np.float64),
        sizes_of(jobs),
        np.array([job.work.duration_s for job in jobs], dtype=np.float64),
        np.array([job.walltime_s for job in jobs], dtype=np.float64),
        np.array([bool(job.return_code) for job in jobs], dtype=bool),
        plain,
    )


def sizes_of(jobs: Sequence[Job]) -> NDArray[np.int64]:
    """How many hosts each of some jobs asks for, up to MOST_HOSTS."""
    if isinstance(jobs, JobTable):
        return jobs.arrays.num_hosts
    return np.array([min(job.num_hosts, MOST_HOSTS) for job in jobs], dtype=np.int64)


def column_of(jobs: Sequence[Job], name: str) -> Sequence[Any]:
    """A field of each of some jobs."""
    if not isinstance(jobs, JobTable):
        return [getattr(job, name) for job in jobs]
    default = next(default_of(each) for each in fields(Job) if each.name == name)
    return jobs.columns().get(name) or [default] * len(jobs)


def names_of(jobs: Sequence[Job]) -> tuple[Sequence[str], Sequence[str]]:
    """The ids of some jobs, and the names of their profiles."""
    if isinstance(jobs, JobTable):
        return jobs.ids, jobs.profiles
    return [job.id for job in jobs], [job.profile for job in jobs]


def users_of(jobs: Sequence[Job]) -> Sequence[str | None]:
    """The users of some jobs."""
    return jobs.users if isinstance(jobs, JobTable) else [job.user for job in jobs]
