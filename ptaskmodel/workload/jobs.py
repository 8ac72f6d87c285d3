"""A batch workload as data: jobs (requests and submission times) and the profiles that they run.

`facts_of` summarises a workload: number, sizes and lengths of jobs, and their load. `job_arrays`
returns jobs as arrays, for workloads of many jobs.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import PTaskModelError, WorkloadError, shown
from ptaskmodel.lazy import OnDemand
from ptaskmodel.memory import collector_at_rest
from ptaskmodel.remarks import Account, Remark
from ptaskmodel.workload.tasks import default_of, in_order, objects_of_columns
from ptaskmodel.workload.works import Work

if TYPE_CHECKING:
    import pandas


NOTHING: Mapping[str, Any] = MappingProxyType({})
# What a table of jobs may say of them besides, by the fields of `Job`.
TEXTS = ("user", "group", "queue", "partition", "executable")
PRECEDING = "preceding_job"
WHOLE_NUMBERS, NUMBERS = ("cores", "return_code"), ("memory_B", "think_time_s", "competitors")
FRAME_COLUMNS = (
    *("job_id", "submit_time_s", "num_hosts", "walltime_s", "profile", "delay_s"),
    *(*TEXTS, *WHOLE_NUMBERS, *NUMBERS, PRECEDING),
)

# Fields that `JobArrays` say something of.
ARRAY_FIELDS = (
    *("submit_time_s", "num_hosts", "work", "walltime_s", "return_code"),
    *("cores", "memory_B", "resources", "licences"),
)

FloatArray = NDArray[np.float64]
T = TypeVar("T")
# More hosts than any machine has: what a job asks for beyond it is as good as this.
MOST_HOSTS = 2**62
# Jobs that a message names.
MOST_NAMES = 8


def _nothing() -> Mapping[str, Any]:
    return NOTHING


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A request for ``num_hosts`` hosts, made at ``submit_time_s``, to run ``work``.

    ``profile`` is the name of the work. A job that has no end after ``walltime_s`` is killed then;
    None: it has no limit. A ``return_code`` other than 0 says that the job fails at its end.

    A job gets whole hosts, or, with ``cores``, so many cores of each of its hosts, which it shares
    with other jobs then; its work has a rank on each core. ``memory_B`` (bytes) and ``resources``
    (such as {"gpu": 2}) are asked of each host, ``licences`` of the whole machine; they are counted
    where the machine has limits to them.

    ``competitors`` is how many competitors its tasks count for on what they share, instead of what
    the simulation counts (as of a `Task`).

    ``user``, ``group``, ``queue``, ``partition`` and ``executable`` are names that logs give (None:
    unknown). ``preceding_job`` is the id of the job whose end its submission waited for, or
    the ids of several, and ``think_time_s`` what its user took from then on; dates hold unless
    dependencies are asked for.

    ``extra`` holds whatever else the workload says of the job, unread by the simulation.
    """

    id: str
    submit_time_s: float
    num_hosts: int
    profile: str
    work: Work
    walltime_s: float | None = None
    return_code: int = 0
    extra: Mapping[str, Any] = field(default_factory=_nothing)
    cores: int | None = None
    memory_B: float | None = None
    resources: Mapping[str, int] = field(default_factory=_nothing)
    licences: Mapping[str, int] = field(default_factory=_nothing)
    user: str | None = None
    group: str | None = None
    queue: str | None = None
    partition: str | None = None
    executable: str | None = None
    preceding_job: str | tuple[str, ...] | None = None
    think_time_s: float = 0.0
    competitors: float | None = None

    def __deepcopy__(self, memo: object) -> Job:
        return self  # a fact

    @property
    def preceding_jobs(self) -> tuple[str, ...]:
        """The ids of all preceding jobs."""
        return preceding_ids(self.preceding_job)


def preceding_ids(before: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """All ids of what the field ``preceding_job`` of a job holds, `before`."""
    return () if before is None else (before,) if isinstance(before, str) else before


def jobs_of_columns(columns: Mapping[str, Sequence[Any]]) -> tuple[Job, ...]:
    """Jobs by the values of their fields: what is not given has its default, as in `Job`.

    The same as to make one after the other, in a third of the time.
    """
    return tuple(objects_of_columns(Job, columns))


# So many blank jobs are made together.
TOGETHER = 256
_ASKED = ("id", "submit_time_s", "num_hosts", "profile", "work")
_give_id, _give_submit_time, _give_num_hosts, _give_profile, _give_work = (
    getattr(Job, name).__set__ for name in _ASKED
)


class JobMaker:
    """Makes jobs one after the other, in 60 % of the time of `Job`: blank ones come together."""

    def __init__(self) -> None:
        self._blank: list[Job] = []

    def make(self, id: str, submit_time_s: float, num_hosts: int, profile: str, work: Work) -> Job:
        """Return a job with an `id` for ``num_hosts`` hosts, requested at ``submit_time_s`` (s).

        It runs `work`, whose name is `profile`; its other fields have their defaults.
        """
        if not self._blank:
            self._blank = list(jobs_of_columns({"id": [""] * TOGETHER}))
        job = self._blank.pop()
        _give_id(job, id)
        _give_submit_time(job, submit_time_s)
        _give_num_hosts(job, num_hosts)
        _give_profile(job, profile)
        _give_work(job, work)
        return job


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Workload:
    """Jobs in order of submission, their profiles, and where they come from.

    ``num_hosts`` is the size of the machine that the workload was made for (None: unknown).
    ``remarks`` tell what was left out, changed or assumed when the workload was read or made.
    ``begin_unix_s`` is the Unix time of date 0 (None: unknown).
    """

    jobs: Sequence[Job]
    profiles: Mapping[str, Work]
    num_hosts: int | None = None
    name: str = "w0"
    origin: str = ""
    remarks: tuple[Remark, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    begin_unix_s: float | None = None

    def __repr__(self) -> str:
        made_for = "" if self.num_hosts is None else f" for {self.num_hosts} hosts"
        return f"<Workload {self.name}: {len(self.jobs)} jobs{made_for}>"

    @property
    def notes(self) -> tuple[str, ...]:
        """The texts of the remarks."""
        return tuple(remark.text for remark in self.remarks)

    def with_jobs(
        self, jobs: Sequence[Job], note: str | None = None, same_dates: bool = False
    ) -> Workload:
        """Return this workload with other `jobs`, their profiles only, and one more `note`.

        same_dates: whether the dates of the jobs are unchanged, so that `begin_unix_s` holds.
        """
        profiles = dict(zip(names_of(jobs)[1], column_of(jobs, "work"), strict=True))
        remarks = self.remarks if note is None else (*self.remarks, Remark(note))
        begin = self.begin_unix_s if same_dates else None
        return replace(self, jobs=jobs, profiles=profiles, remarks=remarks, begin_unix_s=begin)

    def frame(self) -> pandas.DataFrame:
        """One row a job: the columns of `workload_from_frame`, in order of submission.

        Of those that may be left out, all but ``user`` are there if they say something of a job.
        """
        import pandas as pd

        rows = [
            (j.id, j.submit_time_s, j.num_hosts, j.walltime_s, j.profile, j.work.duration_s, j.user)
            for j in self.jobs
        ]
        names = ["job_id", "submit_time_s", "num_hosts", "walltime_s", "profile", "delay_s", "user"]
        frame = pd.DataFrame(rows, columns=names)
        for name in (*TEXTS, *WHOLE_NUMBERS, *NUMBERS, PRECEDING):
            values = [getattr(job, name) for job in self.jobs]
            if name not in names and any(value not in (None, 0) for value in values):
                frame[name] = values
        return frame


def sorted_jobs(jobs: list[Job]) -> tuple[Job, ...]:
    """The jobs by date of submission; jobs of one date keep their order."""
    return tuple(sorted(jobs, key=lambda job: job.submit_time_s))


def listed(ids: Iterable[str]) -> str | tuple[str, ...] | None:
    """The ids of preceding jobs as a job has them: each once; one by itself; None if none is."""
    found = tuple(dict.fromkeys(ids))
    return found if len(found) > 1 else next(iter(found), None)


def checked_job(job: Job, where: str) -> Job:
    """The job itself, or WorkloadError if a quantity of it makes no sense."""
    if not (0 <= job.submit_time_s < float("inf")):
        raise WorkloadError(
            f"{where}: job '{job.id}' is submitted at {job.submit_time_s:g} s; give a time that is "
            "finite and 0 or more"
        )
    if job.num_hosts < 0:
        raise WorkloadError(
            f"{where}: job '{job.id}' requests {job.num_hosts} hosts; request 1 or more"
        )
    if job.walltime_s is not None and not job.walltime_s > 0:
        raise WorkloadError(
            f"{where}: job '{job.id}' has a walltime of {job.walltime_s:g} s; give a positive one "
            "(leave it out for no limit)"
        )
    if not 0 <= job.think_time_s < float("inf"):
        raise WorkloadError(
            f"{where}: job '{job.id}' has a think time of {job.think_time_s:g} s; give one that is "
            "finite and 0 or more"
        )
    if job.competitors is not None and not 0 < job.competitors < float("inf"):
        raise WorkloadError(
            f"{where}: job '{job.id}' counts as {job.competitors:g} competitors; give a "
            "number that is "
            "finite and above 0"
        )
    _check_demands(job, where)
    return job


def _check_demands(job: Job, where: str) -> None:
    """WorkloadError if what a job asks for beside hosts makes no sense."""
    demands = {"cores": job.cores, "memory": job.memory_B, **job.resources, **job.licences}
    for name, amount in demands.items():
        least = 1 if name == "cores" else 0
        if amount is not None and not least <= amount < float("inf"):
            raise WorkloadError(
                f"{where}: job '{job.id}' requests {amount} of '{name}'; request {least} or more"
            )


def facts_of(workload: Workload) -> dict[str, Any]:
    """What ``workload info`` says, ready for JSON; a statistic is mean, median and max.

    The run times are those of jobs that last as long on every platform; the offered load, of the
    machine over the time in which jobs are submitted, is there if these are all jobs.
    """
    jobs = workload.jobs
    arrays = job_arrays(jobs)
    sizes, dates = arrays.num_hosts, arrays.submit_s
    known = arrays.duration_s[~np.isnan(arrays.duration_s)]
    span = float(dates.max() - dates.min()) if len(jobs) else 0.0
    works = Counter(map(type, column_of(jobs, "work")))
    kinds = {work.__name__.removesuffix("Work").lower(): count for work, count in works.items()}
    facts: dict[str, Any] = {
        "origin": workload.origin,
        "jobs": len(jobs),
        "machine_hosts": workload.num_hosts,
        "profiles": len(workload.profiles),
        "kinds": dict(sorted(kinds.items())),
        "submitted_over_s": span,
        "with_walltime": int((~np.isnan(arrays.walltime_s)).sum()),
    }
    if len(jobs):
        facts["hosts_per_job"] = _statistics(sizes)
    if len(known):
        facts["run_time_s"] = _statistics(known)
    if len(known) == len(jobs) and workload.num_hosts and span > 0:
        facts["offered_load"] = float((known * sizes).sum() / (workload.num_hosts * span))
    return facts | {"notes": list(workload.notes)}


def _statistics(values: np.ndarray) -> dict[str, float]:
    return {
        "mean": float(values.mean()),
        "median": float(np.median(values)),
        "max": values.max().item(),
    }


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


class NumberIds(OnDemand[str]):
    """Ids that are whole numbers as texts. numbers: these, shape (jobs,)."""

    __slots__ = ("numbers",)

    def __init__(self, numbers: NDArray[np.int64]) -> None:
        super().__init__(len(numbers), lambda: list(map(str, numbers.tolist())))
        self.numbers = numbers


class JobTable(OnDemand[Job]):
    """Jobs of which the columns are there; the jobs are made when the first of them is asked for.

    arrays, ids, profiles, users: of all of them. columns: makes the values of fields of the jobs
    (of others, all have the default). linked: how many name preceding jobs.
    """

    __slots__ = ("arrays", "columns", "ids", "linked", "profiles", "users")

    def __init__(
        self,
        arrays: JobArrays,
        ids: Sequence[str],
        profiles: Sequence[str],
        users: Sequence[str | None],
        columns: Callable[[], Mapping[str, Sequence[Any]]],
        linked: int,
    ) -> None:
        super().__init__(len(ids), self._jobs)
        self.arrays, self.ids, self.profiles, self.users = arrays, ids, profiles, users
        self.columns = functools.cache(columns)
        self.linked = linked

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[Any]]) -> JobTable:
        """Jobs by the values of fields (`columns`): what is not given has its default."""
        ids = columns["id"]
        linked = sum(before is not None for before in columns.get(PRECEDING, ()))
        users = columns.get("user", [None] * len(ids))
        return cls(_arrays_of(columns), ids, columns["profile"], users, lambda: columns, linked)

    def later(self, by_s: float) -> JobTable:
        """The same jobs, submitted ``by_s`` later."""
        arrays = self.arrays._replace(submit_s=self.arrays.submit_s + by_s)

        def columns() -> Mapping[str, Sequence[Any]]:
            return {**self.columns(), "submit_time_s": arrays.submit_s.tolist()}

        return JobTable(arrays, self.ids, self.profiles, self.users, columns, self.linked)

    def _jobs(self) -> tuple[Job, ...]:
        with collector_at_rest():
            return jobs_of_columns(self.columns())


def job_arrays(jobs: Sequence[Job]) -> JobArrays:
    """The arrays of some jobs; numbers of hosts up to MOST_HOSTS."""
    if isinstance(jobs, JobTable):
        return jobs.arrays
    return _arrays_of({name: list(map(attrgetter(name), jobs)) for name in ARRAY_FIELDS})


def _arrays_of(columns: Mapping[str, Sequence[Any]]) -> JobArrays:
    """The arrays of jobs by the values of their fields; what is not given has its default."""
    none = [None] * len(columns["work"])
    demands = (*columns.get("cores", ()), *columns.get("memory_B", ()))
    named = (*columns.get("resources", ()), *columns.get("licences", ()))
    return JobArrays(
        np.array(columns["submit_time_s"], dtype=np.float64),
        np.array([min(size, MOST_HOSTS) for size in columns["num_hosts"]], dtype=np.int64),
        np.array([work.duration_s for work in columns["work"]], dtype=np.float64),
        np.array(columns.get("walltime_s", none), dtype=np.float64),
        np.array(list(map(bool, columns.get("return_code", none))), dtype=bool),
        not any(named) and all(demand is None for demand in demands),
    )


def columns_of(jobs: Sequence[Job]) -> dict[str, Sequence[Any]]:
    """The values of the fields of `jobs`; a field that is not there has its default."""
    if isinstance(jobs, JobTable):
        return dict(jobs.columns())
    return {each.name: list(map(attrgetter(each.name), jobs)) for each in fields(Job)}


def rows_of(columns: Mapping[str, Sequence[Any]], places: Sequence[int]) -> dict[str, list[Any]]:
    """The values at some `places` of `columns`, by field."""
    lists = ((name, list(values)) for name, values in columns.items())
    return {name: [values[k] for k in places] for name, values in lists}


def in_turn(jobs: Sequence[Job], origin: str, error: type[PTaskModelError]) -> list[int]:
    """The places of `jobs`, each after the preceding jobs that are among them.

    origin: of the jobs. Raises `error` with the jobs of each circle, which wait for each other.
    """
    places = {job.id: k for k, job in enumerate(jobs)}
    before = {
        k: [places[each] for each in job.preceding_jobs if each in places]
        for k, job in enumerate(jobs)
    }
    order, circles = in_order(before)
    account = Account(origin, error)
    for circle in circles:
        names = [shown(jobs[k].id) for k in sorted(circle)[:MOST_NAMES]]
        more = ["..."] if len(circle) > MOST_NAMES else []
        account.problem(
            f"jobs {', '.join([*names, *more])} wait for each other; correct their preceding jobs"
            if len(circle) > 1
            else f"job {names[0]} waits for itself; correct its preceding job"
        )
    account.check()
    return order


def num_linked(jobs: Sequence[Job]) -> int:
    """How many of some jobs name preceding jobs."""
    if isinstance(jobs, JobTable):
        return jobs.linked
    return sum(job.preceding_job is not None for job in jobs)


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
