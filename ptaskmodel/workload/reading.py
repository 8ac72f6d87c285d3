"""Read and write workloads of any known format, gzipped or not; make one of a table in memory.

What is legal in a tasks file but surely wrong is found here too. The command ``check`` calls
`check_document`; `simulation.checks` adds what depends on the platform. `warn_if_long` warns of a
work whose simulation takes very long.
"""

from __future__ import annotations

import codecs
import importlib
import logging
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.files import UTF8_MARK, AnyPath, read_bytes, shown_path
from ptaskmodel.remarks import TAKEN, WARNING, Account, Remark, reader, warn
from ptaskmodel.workload.formats import FORMATS, JOBS, Cleaning, Writing, formats_of, refuse_parquet
from ptaskmodel.workload.formats.json import token
from ptaskmodel.workload.jobs import (
    FRAME_COLUMNS,
    NUMBERS,
    PRECEDING,
    TEXTS,
    WHOLE_NUMBERS,
    Job,
    JobTable,
    Workload,
    checked_job,
    job_arrays,
    listed,
    sorted_jobs,
)
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import DelayWork, Work

if TYPE_CHECKING:
    import pandas

# Stages that take the simulator minutes; one takes it some microseconds.
LONG_STAGES = 10_000_000
STAGE_S = 5e-6


# Dates from here on (2001) are taken for Unix seconds; the year 9999, which has a text, ends there.
UNIX_DATES_S, LATEST_DATE_S = 1e9, 253_402_300_800.0


def tell_unix_dates(first_s: float, account: Account, field: str) -> bool:
    """Tell the account if the first date of its file, `first_s`, is a Unix date; whether it is.

    It is time 0 then. field: the one that has dates.
    """
    if not UNIX_DATES_S <= first_s < math.inf:
        return False
    text = f"dates are Unix seconds: time 0 of the simulation is the first, {first_s:.12g}"
    if first_s < LATEST_DATE_S:
        text += f" ({datetime.fromtimestamp(first_s, UTC):%Y-%m-%d %H:%M:%S} UTC)"
    account.tell(TAKEN, text, None, field, WARNING)
    return True


class Finding(NamedTuple):
    """What is odd, where: a JSON pointer, a short kind, a sentence."""

    pointer: str
    kind: str
    text: str


Found = tuple[Finding, str | None]  # with the profile that the task is of


def check_document(document: Mapping[str, Any], tasks: Sequence[Task]) -> Iterator[Found]:
    """Findings about the JSON document of a tasks file and the tasks that were read from it."""
    yield from _unused_profiles(document)
    yield from _idle_ranks(tasks)


def told_once(findings: Iterable[Found]) -> list[Finding]:
    """The findings; of those of a kind that tasks of a profile have in common, the first."""
    told: dict[tuple[str, str], Finding] = {}
    for finding, profile in findings:
        told.setdefault((finding.kind, profile or finding.pointer), finding)
    return list(told.values())


def _unused_profiles(document: Mapping[str, Any]) -> Iterator[Found]:
    profiles = document.get("profiles", {})
    used: set[str] = set()
    waiting = [task["profile"] for task in document["tasks"] if "profile" in task]
    while waiting:
        name = waiting.pop()
        if name not in used:
            used.add(name)
            waiting += profiles[name].get("seq", ())
    for name in profiles:
        if name not in used:
            text = "no task uses this profile; remove it"
            yield Finding(f"/profiles/{token(name)}", "unused profile", text), None


def _idle_ranks(tasks: Sequence[Task]) -> Iterator[Found]:
    """Ranks that exchange bytes but compute nothing while others do, and ranks that do nothing."""
    checked: set[int] = set()
    for k, task in enumerate(tasks):
        if id(task.work) in checked:
            continue
        checked.add(id(task.work))
        works = [work for work in task.work.parts() if work.duration_s is None]
        if not works or any(work.ranks is None for work in works):
            continue  # works for any number of ranks use every rank
        demands = [work.demand(len(task.hosts)) for work in works]
        computes = np.zeros(len(task.hosts), bool)
        moved = computes.copy()
        for demand in demands:
            computes |= np.asarray(demand.flops) > 0
            moved[demand.flow_from] = moved[demand.flow_to] = True
            moved |= demand.pair_bytes > 0
        if (idle := np.flatnonzero(moved & ~computes)).size and computes.any():
            text = f"{_ranks(idle)} bytes but no flop, while other ranks compute; is cpu complete?"
            yield Finding(_place(k, task), "traffic to an idle host", text), task.profile
        if (idle := np.flatnonzero(~moved & ~computes)).size and (moved | computes).any():
            text = f"{_ranks(idle)} neither flop nor bytes; remove such hosts"
            yield Finding(_place(k, task), "idle host", text), task.profile


def _place(k: int, task: Task) -> str:
    return f"/tasks/{k}" if task.profile is None else f"/profiles/{token(task.profile)}"


def _ranks(numbers: np.ndarray) -> str:
    shown = ", ".join(map(str, numbers[:3].tolist()))
    more = f", ... ({numbers.size} in all)" if numbers.size > 3 else ""
    return f"rank {shown} has" if numbers.size == 1 else f"ranks {shown}{more} have"


def warn_if_long(work: Work, where: str) -> None:
    """Warn, with the place in a file, of a work of more than LONG_STAGES stages, repeated ones."""
    stages = work.summed(lambda part: 1.0)
    if stages > LONG_STAGES:
        warn(
            f"{where}: makes {stages:,.0f} consecutive stages, which take about "
            f"{stages * STAGE_S / 60:,.0f} minutes to simulate for each task; make fewer, "
            "larger stages"
        )


START = 4096

_log = logging.getLogger(__name__)


def format_of(path: str | os.PathLike[str]) -> str:
    """Return the format of the file of jobs at `path`, by its name, else by its beginning.

    Raises WorkloadError if it has none of the known formats.
    """
    found = _named(path)
    if found is not None:
        return found
    start = read_bytes(path, error=WorkloadError).removeprefix(UTF8_MARK).lstrip()[:START]
    if not start:
        raise WorkloadError(f"{shown_path(path)}: is empty; give a workload")
    for name in formats_of(JOBS):
        if _module(name).looks_like(start):
            return name
    if start.startswith(b"<"):
        raise WorkloadError(
            f"{shown_path(path)}: is XML, the format of platforms; give the platform first, "
            "then the "
            "workload"
        )
    refuse_parquet(start, path)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise WorkloadError(f"{shown_path(path)}: is UTF-16; save it as UTF-8")
    formats = ", ".join(formats_of(JOBS))
    formats += "; `ptaskmodel slurm` also reads tables of sacct, jobs.csv and events of sbatch"
    raise WorkloadError(
        f"{shown_path(path)}:1: begins with {shown(start[:20].decode('utf-8', 'replace'))}, like "
        f"no known format of workloads; give one of {formats}"
    )


@reader(WorkloadError)
def read_workload(path: AnyPath, account: Account, cleaning: Cleaning | None = None) -> Workload:
    """Return the workload of the file at `path` (``-``: standard input). `cleaning` is of logs.

    account: of the file.

    Its remarks say what was left out, changed or assumed. Unix dates are counted from the first.
    Raises WorkloadError.
    """
    format_ = format_of(path)
    made: Workload = _module(format_).read(path, cleaning or Cleaning(), account)
    made = _counted_from_first(made, account)
    _log.info("read %s (%s): %d jobs", shown_path(path), format_, len(made.jobs))
    return made


def _counted_from_first(workload: Workload, account: Account) -> Workload:
    """The workload with dates from its first on, if they are Unix dates; the account says so."""
    arrays = job_arrays(workload.jobs)
    first_s = float(arrays.submit_s.min(initial=math.inf))
    if not tell_unix_dates(first_s, account, "submit"):
        return workload
    jobs: Sequence[Job]
    if isinstance(workload.jobs, JobTable):
        jobs = workload.jobs.later(-first_s)
    else:
        jobs = tuple(
            replace(job, submit_time_s=job.submit_time_s - first_s) for job in workload.jobs
        )
    return replace(workload, jobs=jobs)


def write_workload(
    workload: Workload,
    path: str | os.PathLike[str],
    format_: str | None = None,
    writing: Writing | None = None,
) -> None:
    """Write a `workload` to `path` atomically.

    format_: name of the format; None: that of the file's name. writing: options of formats. Raises
    WorkloadError if the name tells no format, or if the format cannot hold the workload.
    """
    name = format_ or _named(path)
    if name not in formats_of(JOBS):
        suffixes = " or ".join(FORMATS[name].suffixes[0] for name in formats_of(JOBS))
        raise WorkloadError(
            f"{path}: the name tells no format; end it in {suffixes}, or give --format"
        )
    _module(name).write(workload, path, writing or Writing())


def _named(path: str | os.PathLike[str]) -> str | None:
    """The format of jobs that the name of a file tells."""
    name = os.fspath(path).removesuffix(".gz")
    return next((f for f in formats_of(JOBS) if name.endswith(FORMATS[f].suffixes)), None)


def _module(name: str) -> Any:
    return importlib.import_module(FORMATS[name].module)


def workload_from_frame(
    frame: pandas.DataFrame | Sequence[Mapping[str, Any]],
    profiles: Mapping[str, Work] | None = None,
    name: str = "frame",
) -> Workload:
    """A workload from a table of jobs, ``frame``.

    Columns: ``job_id``, ``submit_time_s``, ``num_hosts``, optionally ``walltime_s`` (missing: no
    limit), and either ``profile`` (a name in ``profiles``) or ``delay_s`` (the job lasts so long);
    optionally also ``user``, ``group``, ``queue``, ``partition``, ``executable``, ``cores``,
    ``memory_B``, ``return_code``, ``preceding_job``, ``think_time_s`` and ``competitors`` (see
    `Job`); a note names the others, which are not read. Rows as dicts are a table, too.

    Raises WorkloadError for what is no table, and with the row at fault.
    """
    frame = _table(frame, name)
    missing = [c for c in ("job_id", "submit_time_s", "num_hosts") if c not in frame.columns]
    if missing:
        raise WorkloadError(f"{name}: the table has no column '{missing[0]}'; add it")
    known: dict[str, Work] = dict(profiles or {})
    jobs: list[Job] = []
    seen: set[str] = set()
    for row, record in enumerate(frame.to_dict("records")):
        where = f"{name}: row {row}"
        job_id = str(record["job_id"])
        if job_id in seen:
            raise WorkloadError(f"{where}: job '{job_id}' is there twice; give each its own id")
        seen.add(job_id)
        profile, work = _row_profile(record, known, where)
        known[profile] = work
        submit_s = _number(record, "submit_time_s", where)
        num_hosts = _number(record, "num_hosts", where)
        if submit_s is None or num_hosts is None or not num_hosts.is_integer():
            given = f"submit_time_s {record['submit_time_s']!r}, num_hosts {record['num_hosts']!r}"
            raise WorkloadError(f"{where}: {given}; give a date in s and a whole number of hosts")
        walltime_s = _number(record, "walltime_s", where)
        said = _said_besides(record, where)
        made = Job(job_id, submit_s, int(num_hosts), profile, work, walltime_s, **said)
        jobs.append(checked_job(made, where))
    remarks = _unread(list(map(str, frame.columns)))
    return Workload(sorted_jobs(jobs), known, name=name, origin=name, remarks=remarks)


def _table(given: Any, name: str) -> pandas.DataFrame:
    import pandas as pd

    if isinstance(given, pd.DataFrame):
        return given
    if isinstance(given, Sequence) and given and all(isinstance(row, Mapping) for row in given):
        return pd.DataFrame(given)
    kind = type(given).__name__
    raise WorkloadError(
        f"{name}: a {kind} is neither a pandas.DataFrame nor a list of dicts; give one"
    )


def _unread(names: list[str]) -> tuple[Remark, ...]:
    said = []
    for name in names:
        if name not in FRAME_COLUMNS:
            import difflib

            near = difflib.get_close_matches(name, FRAME_COLUMNS, 1)
            said.append(f"{name} (did you mean {near[0]}?)" if near else name)
    return (Remark(f"columns that are not used: {', '.join(said)}"),) if said else ()


def _said_besides(record: dict, where: str) -> dict[str, Any]:
    """The fields of a job that a row need not have, as far as it has them."""
    said: dict[str, Any] = {}
    for name in (*TEXTS, PRECEDING):
        value: Any = record.get(name)
        if name == PRECEDING and isinstance(value, list | tuple):
            said[name] = listed(map(_text, value))
        elif not _is_missing(value):
            said[name] = _text(value)
    for name in (*WHOLE_NUMBERS, *NUMBERS):
        if (number := _number(record, name, where)) is not None:
            if name in WHOLE_NUMBERS and not number.is_integer():
                raise WorkloadError(f"{where}: {name} is {number:g}; give a whole number")
            said[name] = int(number) if name in WHOLE_NUMBERS else number
    return said


def _text(value: Any) -> str:
    # A column of whole numbers some of which are missing is one of floats.
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if is_whole else value)


def _is_missing(value: object) -> bool:
    return value is None or str(value) in ("nan", "<NA>", "NaT")


def _number(record: dict, name: str, where: str) -> float | None:
    """A number of a row; None where it is missing (None, nan, NA). WorkloadError for a date, ..."""
    value: Any = record.get(name)
    if _is_missing(value):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        unit = "" if name == "num_hosts" else " of seconds"
        what = f"{name} is {shown(str(value))}; give a number{unit}"
        raise WorkloadError(f"{where}: {what}") from None


def _row_profile(record: dict, known: Mapping[str, Work], where: str) -> tuple[str, Work]:
    """Name and work of the profile that a row of a table asks for."""
    profile = record.get("profile")
    delay = _number(record, "delay_s", where)
    if isinstance(profile, str) and profile in known:
        work = known[profile]
        if delay is not None and work.duration_s not in (None, delay):
            raise WorkloadError(
                f"{where}: profile {profile!r} lasts {work.duration_s:g} s in an earlier row, here "
                f"{delay:g} s; give each its own name, or leave profile out"
            )
        return profile, work
    if delay is None:
        raise WorkloadError(
            f"{where}: profile {profile!r} is unknown and there is no delay_s; give either"
        )
    if delay < 0:
        raise WorkloadError(f"{where}: delay_s is {delay}; give 0 or more")
    if not isinstance(profile, str):
        profile = f"delay_{repr(delay).removesuffix('.0')}"
    return profile, DelayWork(delay)
