"""Load a directory of results into `Results`, for pictures, pages and comparisons."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import split_names
from ptaskmodel.lazy import with_old_names
from ptaskmodel.recording import WAITING
from ptaskmodel.results.directory import (
    POWER,
    POWER_COLUMNS,
    SUMMARY,
    finite,
    number,
    read_table,
    rows,
)
from ptaskmodel.results.tables import slurm_reading
from ptaskmodel.results.tables.mpi import RANKS
from ptaskmodel.style.text import count

if TYPE_CHECKING:
    import pandas

TASKS, JOBS, MACHINES, LOAD = "tasks.csv", "jobs.csv", "machines.csv", "load.csv"
RUNS = "runs.csv"
# The columns that are read.
TASK_COLUMNS = ("task_id", "profile", "start_time", "finish_time", "final_state", "hosts")
JOB_COLUMNS = (
    *("job_id", "profile", "starting_time", "finish_time", "execution_time"),
    *("final_state", "allocated_resources"),
)
RANK_COLUMNS = ("rank", "host", "end_s")
RUN_COLUMNS = (
    *("job_id", "starting_time", "finish_time", "final_state"),
    *("allocated_resources", "suspensions"),
)
LIMIT_COLUMNS = (
    *("task_id", "start_s", "end_s", "limited_by", "resource"),
    *("progress", "sharers", "shared_with"),
)
LOAD_COLUMNS = ("time", "waiting_jobs", "requested_hosts", "used_hosts")
USER_COLUMNS = ("link", "users", "task_id", "start_s", "end_s", "bytes")
USE_COLUMNS = ("resource", "kind", "start_s", "end_s", "share")
TABLES = {"job": JOBS, "rank": RANKS}


class _Input(TypedDict):
    path: str
    sha256: str


class _Remark(TypedDict):
    level: str
    text: str
    effect: str | None


class _Stopped(TypedDict):
    at_s: float
    not_submitted: int


class _Summary(TypedDict, total=False):
    """What is read of summary.json; the rest may be anything."""

    inputs: list[_Input]
    remarks: list[_Remark]
    makespan: float
    makespan_s: float | None
    end_date: float
    stopped_early: _Stopped
    simulation_wall_time_s: float


@with_old_names
@dataclass(frozen=True, slots=True)
class ShownTask:
    """A task, or a job, of a directory of results. Dates in s; None for what did not happen.

    waiting_s: of a job that started, since its submission.
    """

    task_id: str
    profile: str | None
    start_s: float | None
    end_s: float | None
    state: str
    hosts: tuple[str, ...]
    slowdown: float | None
    waiting_s: float | None = None

    @property
    def duration_s(self) -> float | None:
        if self.start_s is None or self.end_s is None:
            return None
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class ShownLimit:
    """A line of bottlenecks.csv."""

    task_id: str
    start_s: float
    end_s: float
    limited_by: str
    resource: str
    progress: float
    sharers: int
    shared_with: str


@dataclass(frozen=True, slots=True)
class ShownUser:
    """A line of link_users.csv without the link: who sent over it, from when to when.

    task_id: a task, a job, or of a replay a pair of ranks, 3>5.
    """

    task_id: str
    start_s: float
    end_s: float
    bytes: float


@dataclass(frozen=True, slots=True)
class Stopped:
    """A run was stopped before its end: at which date, s, and how many jobs were to come then."""

    at_s: float
    not_submitted: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Results:
    """What a directory of results holds.

    what: "task", "job" or "rank". limits and utilisation ((resource, kind): list of (start_s,
    end_s, share) in order of time) are empty where the run was made without ``--attribution``, as
    are link_users (link: how many tasks used it, and those that sent most; of a replay pairs of
    ranks). jobs: of Slurm, with all that its table says.
    """

    directory: Path
    what: str
    summary: dict[str, Any]
    tasks: list[ShownTask]
    limits: list[ShownLimit] = field(default_factory=list)
    utilisation: dict[tuple[str, str], list[tuple[float, float, float]]] = field(
        default_factory=dict
    )
    link_users: dict[str, tuple[int, list[ShownUser]]] = field(default_factory=dict)
    jobs: list[slurm_reading.SlurmJob] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<Results in {self.directory}: {len(self.tasks)} {self.what}s>"

    def frame(self) -> pandas.DataFrame:
        """The tasks as a table, one row each: dates in s (nan for what did not happen)."""
        import pandas

        table = [astuple(task) for task in self.tasks]
        names = ["finish_s" if each.name == "end_s" else each.name for each in fields(ShownTask)]
        dates = dict.fromkeys(("start_s", "finish_s", "slowdown", "waiting_s"), "float64")
        return pandas.DataFrame(table, columns=names).astype(dates)

    @property
    def stopped(self) -> Stopped | None:
        """Where the run was stopped; None: it came to its end."""
        found = self.summary.get("stopped_early")
        if not isinstance(found, dict):
            return None
        return Stopped(float(found["at_s"]), int(found["not_submitted"]))

    @property
    def submitted(self) -> int:
        """How many tasks there are, those that were still to come where it was stopped included."""
        return len(self.tasks) + (0 if self.stopped is None else self.stopped.not_submitted)

    @property
    def end_s(self) -> float:
        """The last date that is known, s."""
        dates = [t.end_s for t in self.tasks if t.end_s is not None]
        dates += [t.start_s for t in self.tasks if t.start_s is not None]
        dates += [float(self.summary[key]) for key in ("end_date",) if key in self.summary]
        dates += [] if self.stopped is None else [self.stopped.at_s]
        return max(dates, default=0.0)


def results_of(results: Results | str | Path) -> Results:
    """Results, or those in a directory. Raises PTaskModelError as `load_results` does."""
    return results if isinstance(results, Results) else load_results(results)


def load_results(directory: str | Path) -> Results:
    """The results in a directory.

    Raises PTaskModelError if there are none or they cannot be read.
    """
    place = Path(directory)
    try:
        summary = _summary((place / SUMMARY).read_bytes())
        what = next((name for name, table in TABLES.items() if (place / table).exists()), "task")
        is_slurm = slurm_reading.is_slurm(summary)
        jobs = list(slurm_reading.jobs_of(place)) if is_slurm else []
        tasks = list(map(_of_slurm, jobs) if is_slurm else READERS[what](place))
        lines = rows(place / "bottlenecks.csv", *LIMIT_COLUMNS, optional=True)
        limits = [_limit(row) for row in lines]
        utilisation: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
        for row in rows(place / "utilisation.csv", *USE_COLUMNS, optional=True):
            span = finite(row["start_s"]), finite(row["end_s"]), finite(row["share"])
            utilisation.setdefault((row["resource"], row["kind"]), []).append(span)
        users = _link_users(place)
    except FileNotFoundError as error:
        raise PTaskModelError(
            f"{place}: holds no results ({Path(error.filename).name} is missing); give the "
            "--output directory of a run"
        ) from None
    except NotADirectoryError:
        raise PTaskModelError(
            f"{place}: is a file; give a directory, the --output of a run"
        ) from None
    except msgspec.DecodeError as error:
        raise PTaskModelError(f"{place / SUMMARY}: not the summary of a run: {error}") from None
    except (OSError, ValueError, csv.Error) as error:
        raise PTaskModelError(f"{place}: results that cannot be read ({error})") from None
    return Results(place, what, summary, tasks, limits, utilisation, users, jobs)


def main_limits(limits: list[ShownLimit]) -> dict[str, tuple[str, float, str]]:
    """From `limits`, of each task that began: what limited it longest, how long, who shared it.

    Of many only how many others shared it: names by id do not say which cost most.
    """
    times: dict[str, dict[str, float]] = {}
    longest: dict[tuple[str, str], ShownLimit] = {}
    for interval in limits:
        if interval.limited_by == WAITING:
            continue
        limit = f"{interval.limited_by} {interval.resource}".strip()
        lasted = interval.end_s - interval.start_s
        mine = times.setdefault(interval.task_id, {})
        mine[limit] = mine.get(limit, 0.0) + lasted
        best = longest.get((interval.task_id, limit))
        if best is None or best.end_s - best.start_s < lasted:
            longest[interval.task_id, limit] = interval
    found = {}
    for task_id, mine in times.items():
        limit = max(mine, key=lambda name: mine[name])
        best = longest[task_id, limit]
        shared = best.shared_with.replace(";", ", ")
        if best.sharers > 1 + best.shared_with.count(";"):
            shared = count(best.sharers, "other")
        found[task_id] = limit, mine[limit], shared
    return found


def running_stretches(results: Results) -> list[tuple[ShownTask, float, float]]:
    """(job, start, end) of each stretch during which an attempt of a job ran, in order of starts.

    The job has the hosts and the state of that attempt. Empty where each job ran once and through.
    Raises PTaskModelError if the file cannot be read.
    """
    place = results.directory
    try:
        names = _machine_names(place)
        known = {task.task_id: task for task in results.tasks}
        found = []
        for row in rows(place / RUNS, *RUN_COLUMNS, optional=True):
            hosts = tuple(names.get(k, k) for k in _host_numbers(row["allocated_resources"]))
            task = replace(known[row["job_id"]], state=row["final_state"], hosts=hosts)
            end = number(row["finish_time"])
            begin, last = finite(row["starting_time"]), results.end_s if end is None else end
            for stretch in row["suspensions"].split():
                since, _, to = stretch.partition(":")
                found.append((task, begin, finite(since)))
                begin = finite(to) if to else last
            found.append((task, begin, last))
        return [stretch for stretch in found if stretch[2] > stretch[1]]
    except (OSError, ValueError, KeyError, csv.Error) as error:
        raise PTaskModelError(f"{place / RUNS}: cannot be read ({error})") from None


def load_over_time(results: Results) -> list[tuple[float, ...]]:
    """(date in s, jobs that wait, hosts that they ask for, hosts in use), from each date on.

    Raises PTaskModelError if the results are not those of a batch, or cannot be read.
    """
    if results.what != "job":
        raise PTaskModelError(f"{results.directory}: not the results of a batch; it has no queue")
    return read_table(results.directory / LOAD, **dict.fromkeys(LOAD_COLUMNS, finite))


def power_curve(results: Results) -> list[tuple[float, ...]]:
    """(date in s, W of the hosts, W of the links), from each date on; the last date is the end.

    Raises PTaskModelError if energy was not counted, or the file cannot be read.
    """
    place = results.directory / POWER
    if not place.exists():
        raise PTaskModelError(f"{place}: is not there; this picture needs a run with --energy")
    found = read_table(place, **dict.fromkeys(POWER_COLUMNS, finite))
    if any(later[0] < sooner[0] for sooner, later in itertools.pairwise(found)):
        raise PTaskModelError(f"{place}: its dates go back; simulate again")
    return found


def _summary(content: bytes) -> dict[str, Any]:
    """The object in summary.json. Raises msgspec.DecodeError, with the place of what is wrong."""
    try:
        summary = msgspec.json.decode(content, type=dict[str, Any])
    except RecursionError:
        raise msgspec.DecodeError("it is nested too deep") from None
    msgspec.convert(summary, _Summary)
    return summary


def _tasks(place: Path) -> Iterator[ShownTask]:
    for row in rows(place / TASKS, *TASK_COLUMNS):
        yield ShownTask(
            row["task_id"],
            row["profile"] or None,
            number(row["start_time"]),
            number(row["finish_time"]),
            row["final_state"],
            split_names(row["hosts"]),
            number(row.get("slowdown")),
        )


def _machine_names(place: Path) -> dict[str, str]:
    return {row["id"]: row["name"] for row in rows(place / MACHINES, "id", "name", optional=True)}


def _jobs(place: Path) -> Iterator[ShownTask]:
    names = _machine_names(place)
    for row in rows(place / JOBS, *JOB_COLUMNS):
        numbers = _host_numbers(row["allocated_resources"])
        yield ShownTask(
            row["job_id"],
            row["profile"] or None,
            number(row["starting_time"]),
            number(row["finish_time"]),
            row["final_state"],
            tuple(names.get(k, k) for k in numbers),
            number(row.get("contention_slowdown")),
            number(row.get("waiting_time")),
        )


def _of_slurm(job: slurm_reading.SlurmJob) -> ShownTask:
    hosts = slurm_reading.node_names(job.nodes)
    return ShownTask(job.job_id, None, job.start_s, job.end_s, job.state, hosts, job.slowdown)


def _host_numbers(text: str) -> list[str]:
    """Numbers of hosts in a text such as "0-3 7" or "0-3,7"."""
    found: list[str] = []
    for part in text.replace(",", " ").split():
        first, _, last = part.partition("-")
        found += [str(k) for k in range(int(first), int(last or first) + 1)]
    return found


def _ranks(place: Path) -> Iterator[ShownTask]:
    for row in rows(place / RANKS, *RANK_COLUMNS):
        hosts = (row["host"],)
        end = number(row["end_s"])
        yield ShownTask(f"rank {row['rank']}", None, 0.0, end, "completed", hosts, None)


def _link_users(place: Path) -> dict[str, tuple[int, list[ShownUser]]]:
    found: dict[str, tuple[int, list[ShownUser]]] = {}
    for row in rows(place / "link_users.csv", *USER_COLUMNS, optional=True):
        dates = finite(row["start_s"]), finite(row["end_s"])
        user = ShownUser(row["task_id"], *dates, finite(row["bytes"]))
        found.setdefault(row["link"], (int(row["users"]), []))[1].append(user)
    return found


READERS = {"job": _jobs, "rank": _ranks, "task": _tasks}


def _limit(row: dict[str, str]) -> ShownLimit:
    return ShownLimit(
        row["task_id"],
        finite(row["start_s"]),
        finite(row["end_s"]),
        row["limited_by"],
        row["resource"],
        finite(row["progress"]),
        int(row["sharers"]),
        row["shared_with"],
    )
