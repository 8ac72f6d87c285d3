"""Read, clean and write the Standard Workload Format: logs of real machines.

`log_lines` reads the lines.
Source: Feitelson, "The Standard Workload Format", Parallel Workloads Archive, version 2.2.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel import csv_tables
from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.files import UTF8_MARK, AnyPath, read_bytes, write_bytes
from ptaskmodel.lazy import OnDemand
from ptaskmodel.remarks import LEFT_OUT, WARNING, Account, Remark, reader
from ptaskmodel.style.text import several
from ptaskmodel.workload.amounts import FieldError
from ptaskmodel.workload.formats import Cleaning, Writing
from ptaskmodel.workload.formats.log_lines import AND, LARGEST, Layout, LogLines, read_lines
from ptaskmodel.workload.jobs import (
    JobArrays,
    JobTable,
    NumberIds,
    Workload,
    column_of,
    job_arrays,
    names_of,
)
from ptaskmodel.workload.works import DelayWork

FIELDS = (
    "job_number",
    "submit_time_s",
    "wait_time_s",
    "run_time_s",
    "allocated_processors",
    "average_cpu_time_s",
    "used_memory_kB",
    "requested_processors",
    "requested_time_s",
    "requested_memory_kB",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding_job",
    "think_time_s",
)
COLUMN = {name: k for k, name in enumerate(FIELDS)}
# Names that a job carries, and the least number that is one (queue 0 is the interactive one).
ORIGINS = (("user", 0), ("group", 0), ("queue", 0), ("partition", 0), ("executable", 0))
# The header with the Unix time of date 0, s.
BEGIN = "UnixStartTime"
# Those with the size of the machine, the first that has one counts.
SIZES = ("MaxProcs", "MaxNodes")
_WHOLE = re.compile(r"-?\d{1,15}", re.ASCII)
CANCELLED = 5
PARTIAL = (2, 3, 4)
LINES_AT_ONCE = 50_000
NAMED = frozenset(name for name, _ in ORIGINS)
LAYOUT = Layout("SWF", FIELDS, ";", NAMED, "preceding_job")


@dataclass(frozen=True, slots=True, eq=False)
class SwfLog:
    """A log: its header lines ("; Key: value") in order, and one row of 18 values per job.

    rows: float64, shape (jobs, 18), columns as in FIELDS; -1 is the format's own "unknown".
    several: the numbers of preceding jobs where a job has more than one, by its number. names: of
    columns that hold names, what those numbers stand for that do.
    """

    header: tuple[tuple[str, str], ...]
    rows: NDArray[np.float64]
    origin: str = ""
    several: Mapping[float, tuple[float, ...]] = field(default_factory=dict)
    names: Mapping[str, Mapping[float, str]] = field(default_factory=dict)

    def column(self, name: str) -> NDArray[np.float64]:
        return self.rows[:, COLUMN[name]]

    def header_number(self, key: str) -> int | None:
        """The whole number that the first header line ``key`` gives; None if there is none."""
        for name, value in self.header:
            number = _leading(value)
            if name == key and number is not None and number > 0:
                return number
        return None

    @property
    def num_processors(self) -> int | None:
        """Size of the machine: MaxProcs, else MaxNodes."""
        return next(filter(None, map(self.header_number, SIZES)), None)


def _leading(value: str) -> int | None:
    """The whole number that a value of the header begins with."""
    words = value.split()
    return int(words[0]) if words and _WHOLE.fullmatch(words[0]) else None


def looks_like(start: bytes) -> bool:
    """Whether a file that begins so may be a log: a comment or a number, or names before one."""
    first, _, second = start.replace(b'"', b"").partition(b"\n")
    start = start.lstrip(b'"')
    is_row = second[:1].isdigit() and len(re.split(rb"[\s,;]", first.strip())) >= len(FIELDS)
    return start[:1] in (b";", b"-") or start[:1].isdigit() or is_row


def read(path: str | os.PathLike[str], cleaning: Cleaning, account: Account) -> Workload:
    """As every format of jobs (see `formats`); account: what is told of the file."""
    return workload_of(_log(path, account), cleaning)


def workload_of(log: SwfLog, cleaning: Cleaning) -> Workload:
    """The workload of a `log`, with a `cleaning`."""
    return workload_from_swf(
        log,
        processors_per_host=cleaning.processors_per_host,
        zero_run_time_s=cleaning.zero_run_time_s,
        max_hosts=cleaning.max_hosts,
        walltimes=cleaning.walltimes,
    )


def write(workload: Workload, path: str | os.PathLike[str], options: Writing) -> None:
    """As every format of jobs (see `formats`)."""
    write_swf(swf_from_workload(workload), path)


@reader(WorkloadError)
def read_swf(path: AnyPath, account: Account) -> SwfLog:
    """Read an SWF log (also gzipped): every header line and all 18 fields of every job.

    Fields may be separated by blanks, commas or semicolons, and several preceding jobs by ``&``.
    account: of the file; each remark is a Python warning. A line that has not 18 numbers is left
    out, and told; WorkloadError is raised if most lines are such, with each.
    """
    return _log(path, account)


def _log(path: AnyPath, account: Account) -> SwfLog:
    content = read_bytes(path, error=WorkloadError).removeprefix(UTF8_MARK)
    lines = read_lines(content, LAYOUT, account)
    header = header_of(lines)
    for key, value in header:
        if key in SIZES and _leading(value) is None:
            account.unused(f"{key} of the header is {shown(value)}, no number", None, key)
    return SwfLog(header, lines.rows, account.file, several_of(lines), lines.names)


def header_of(lines: LogLines) -> tuple[tuple[str, str], ...]:
    """The keys and values that the comments among `lines` give."""
    parts = (comment.partition(":") for comment in lines.comments)
    return tuple((key.strip(), value.strip()) for key, _, value in parts)


def several_of(lines: LogLines) -> dict[float, tuple[float, ...]]:
    """The preceding jobs of those that have several, by job number, among `lines`."""
    return {float(lines.rows[k, 0]): numbers for k, numbers in lines.several.items()}


def clean(
    log: SwfLog, *, zero_run_time_s: float | None = 1.0, max_processors: int | None = None
) -> tuple[SwfLog, tuple[str, ...]]:
    """The jobs of a log that can be replayed, and one sentence for each thing left out or changed.

    Left out: parts of checkpointed jobs (status 2, 3, 4), jobs cancelled before they ran, jobs of
    unknown run time or size, jobs submitted at a negative time, jobs of more than
    ``max_processors``. Jobs of 0 s (rounded down by the logger) last ``zero_run_time_s``; None
    leaves them out.
    """
    size, run_time = sizes(log), log.column("run_time_s")
    status = log.column("status")
    tests = [
        (np.isin(status, PARTIAL), "part of checkpointed jobs (status 2, 3 or 4)"),
        ((status == CANCELLED) & (run_time <= 0), "job cancelled before a run"),
        (run_time < 0, "job of unknown run time"),
        (size <= 0, "job of unknown size"),
        (log.column("submit_time_s") < 0, "job submitted at a negative time"),
    ]
    if zero_run_time_s is None:
        tests.append((run_time == 0, "job that ran for 0 s"))
    if max_processors is not None:
        tests.append((size > max_processors, f"job of more than {max_processors} processors"))
    keep = np.ones(len(log.rows), dtype=bool)
    notes = []
    for out, what in tests:
        if count := int((out & keep).sum()):
            notes.append(f"left out {several(count, what)}")
        keep &= ~out
    rows = log.rows[keep]
    zero = rows[:, COLUMN["run_time_s"]] == 0
    if zero.any() and zero_run_time_s is not None:
        rows[zero, COLUMN["run_time_s"]] = zero_run_time_s
        changed = several(int(zero.sum()), "job")
        notes.append(f"set the run time of {changed} from 0 s to {zero_run_time_s:g} s")
    return replace(log, rows=rows), tuple(notes)


def sizes(log: SwfLog) -> NDArray[np.float64]:
    """Processors of each job: those requested, where unknown those allocated."""
    requested = log.column("requested_processors")
    return np.where(requested > 0, requested, log.column("allocated_processors"))


def starts_s(log: SwfLog) -> NDArray[np.float64]:
    """When each job started on the real machine; an unknown wait counts as none."""
    return log.column("submit_time_s") + np.maximum(log.column("wait_time_s"), 0)


def workload_from_swf(
    log: SwfLog,
    *,
    processors_per_host: int = 1,
    zero_run_time_s: float | None = 1.0,
    max_hosts: int | None = None,
    walltimes: bool = True,
) -> Workload:
    """A workload of delays: each job lasts as long as on the real machine.

    A job asks for its processors, ``processors_per_host`` to a host, rounded up. Its walltime is
    the requested time, if the log has it and ``walltimes`` is on. Jobs larger than ``max_hosts``
    are left out. What `clean` left out or changed is in the notes. Users, groups, queues,
    partitions and executables are the log's numbers as text; preceding jobs and think times are
    kept too.
    """
    limit = None if max_hosts is None else max_hosts * processors_per_host
    log, notes = clean(log, zero_run_time_s=zero_run_time_s, max_processors=limit)
    log, twice = _without_doubles(log)
    numbers, run_times = log.column("job_number"), log.column("run_time_s")
    names, works, work_of = _delays(run_times, numbers, log.origin)
    order = np.argsort(log.column("submit_time_s"), kind="stable")
    requested = log.column("requested_time_s")
    has_walltime = (requested > 0) & walltimes
    arrays = JobArrays(
        log.column("submit_time_s")[order],
        np.ceil(sizes(log) / processors_per_host).astype(np.int64)[order],
        run_times[order],
        np.where(has_walltime, requested, math.nan)[order],
        np.zeros(len(order), dtype=bool),
        True,
    )
    which = work_of[order]
    ids = _ids(numbers[order])
    profiles = OnDemand(len(order), lambda: _each(names, which))
    users = OnDemand(len(order), lambda: _named(log, "user", 0, order))

    def columns() -> dict[str, Sequence[Any]]:
        rows = log.rows[order]
        return {
            "id": ids,
            "submit_time_s": arrays.submit_s.tolist(),
            "num_hosts": arrays.num_hosts.tolist(),
            "profile": profiles,
            "work": _each(works, which),
            "walltime_s": [None if w != w else w for w in arrays.walltime_s.tolist()],
            "think_time_s": np.maximum(rows[:, COLUMN["think_time_s"]], 0).tolist(),
            **{name: _named(log, name, least, order) for name, least in ORIGINS},
            "preceding_job": _preceding(log, order),
        }

    machine = log.num_processors
    linked = int((log.column("preceding_job") >= 1).sum())
    return Workload(
        JobTable(arrays, ids, profiles, users, columns, linked),
        dict(zip(names, works, strict=True)),
        None if machine is None else math.ceil(machine / processors_per_host),
        name=Path(log.origin or "swf").name.split(".")[0],
        origin=log.origin,
        remarks=(
            *twice,
            *(Remark(note, kind=LEFT_OUT, file=log.origin or None) for note in notes),
        ),
        begin_unix_s=log.header_number(BEGIN),
    )


def _without_doubles(log: SwfLog) -> tuple[SwfLog, tuple[Remark, ...]]:
    """The log without jobs whose number an earlier one has; WorkloadError if these are most."""
    numbers = log.column("job_number")
    if (np.diff(numbers) > 0).all():
        return log, ()
    _, first = np.unique(numbers, return_index=True)
    if len(first) == len(numbers):
        return log, ()
    again = np.ones(len(numbers), dtype=bool)
    again[first] = False
    count, number = int(again.sum()), numbers[np.flatnonzero(again)[0]]
    if 2 * count >= len(numbers):
        raise WorkloadError(f"{log.origin}: job {number:g} occurs twice; renumber the jobs")
    text = several(
        count, "job with the number of an earlier job", "jobs with the numbers of others"
    )
    text = f"left out {text} (first: {number:g})"
    remark = Remark(text, WARNING, None, LEFT_OUT, log.origin or None, None, "job_number")
    return replace(log, rows=log.rows[~again]), (remark,)


def _delays(
    run_times: NDArray[np.float64], numbers: NDArray[np.float64], origin: str
) -> tuple[list[str], list[DelayWork], NDArray[np.int64]]:
    """Names and works of all run times, in order of appearance, and which is that of each job."""
    values, first, place = np.unique(run_times, return_index=True, return_inverse=True)
    appearance = np.argsort(first)
    rank = np.empty(len(values), dtype=np.int64)
    rank[appearance] = np.arange(len(values))
    lasting = values[appearance]
    try:
        works = DelayWork.each(lasting)
    except FieldError as error:
        number = numbers[first[appearance[error.place[0]]]]
        raise WorkloadError(f"{origin}: job {number:g}: run time: {error.problem}") from None
    return [f"delay_{time_s:.12g}" for time_s in lasting.tolist()], works, rank[place]


def _each(values: Sequence[Any], which: NDArray[np.int64]) -> list[Any]:
    """The values at many places."""
    table = np.empty(len(values), dtype=object)
    table[:] = values
    found: list[Any] = table[which].tolist()
    return found


def _named(log: SwfLog, name: str, least: int, order: NDArray[np.int64]) -> list[str | None]:
    """A column of numbers as text, one object for each; below ``least`` means unknown."""
    values, which = np.unique(log.column(name)[order], return_inverse=True)
    known = log.names.get(name, {})
    texts = [
        None if value < least else known.get(value) or _number(value) for value in values.tolist()
    ]
    return _each(texts, which)


def _preceding(log: SwfLog, order: NDArray[np.int64]) -> list[str | tuple[str, ...] | None]:
    """The preceding job of each job, or all of them if there are several."""
    found: list[str | tuple[str, ...] | None] = [*_named(log, "preceding_job", 1, order)]
    if log.several:
        for k, number in enumerate(log.column("job_number")[order].tolist()):
            if number in log.several:
                found[k] = tuple(map(_number, log.several[number]))
    return found


def swf_from_workload(workload: Workload) -> SwfLog:
    """A log of the workload: dates, sizes and requested times; run times where they are known.

    Jobs are renumbered from 1 when their ids are not all distinct whole numbers above 0, and so
    are users, groups and the like (a header line says so). Run times of jobs that depend on the
    platform are unknown (-1).
    """
    rows = np.full((len(workload.jobs), len(FIELDS)), -1.0)
    arrays, (ids, _) = job_arrays(workload.jobs), names_of(workload.jobs)
    numbers = list(map(int, ids)) if all(map(str.isdecimal, ids)) else []
    numbered = len(set(numbers)) == len(ids) and min(numbers, default=1) > 0
    thinks = [
        think_s if preceding else -1
        for think_s, preceding in zip(
            *(column_of(workload.jobs, name) for name in ("think_time_s", "preceding_job")),
            strict=True,
        )
    ]
    for column, values in (
        ("job_number", numbers if numbered else np.arange(1, len(ids) + 1)),
        ("submit_time_s", arrays.submit_s),
        ("run_time_s", np.where(np.isnan(arrays.duration_s), -1, arrays.duration_s)),
        ("allocated_processors", arrays.num_hosts),
        ("requested_processors", arrays.num_hosts),
        ("requested_time_s", np.where(np.isnan(arrays.walltime_s), -1, arrays.walltime_s)),
        ("status", ~arrays.fails),
        ("think_time_s", thinks),
    ):
        rows[:, COLUMN[column]] = values
    renumbered = [] if numbered else ["jobs renumbered in order of submission"]
    job_numbers = dict(zip(ids, rows[:, COLUMN["job_number"]].tolist(), strict=True))
    for name, _ in ORIGINS:
        names = column_of(workload.jobs, name)
        number = _numbers_of(names)
        if any(n != _number(k) for n, k in number.items()):
            renumbered.append(f"{name}s renumbered")
        rows[:, COLUMN[name]] = [-1.0 if n is None else number[n] for n in names]
    several = _link(rows, column_of(workload.jobs, "preceding_job"), job_numbers)
    header = [("Version", "2.2"), ("Computer", workload.name)]
    header += [("MaxJobs", str(len(ids))), ("MaxRecords", str(len(ids)))]
    if workload.num_hosts is not None:
        header += [("MaxNodes", str(workload.num_hosts)), ("MaxProcs", str(workload.num_hosts))]
    if workload.begin_unix_s is not None:
        header.append((BEGIN, f"{workload.begin_unix_s:.0f}"))
    header += [("Note", note) for note in workload.notes]
    header += [("Note", note) for note in renumbered]
    return SwfLog(tuple(header), rows, workload.origin, several)


def _link(
    rows: NDArray[np.float64],
    preceding: Sequence[str | tuple[str, ...] | None],
    number: Mapping[str, float],
) -> dict[float, tuple[float, ...]]:
    """Write the numbers of preceding jobs into rows; those of which a job has several."""
    several: dict[float, tuple[float, ...]] = {}
    for row, names in zip(rows, preceding, strict=True):
        if names is not None:
            each = (names,) if isinstance(names, str) else names
            found = tuple(number[name] for name in each if name in number)
            if found:
                row[COLUMN["preceding_job"]] = found[0]
            if len(found) > 1:
                several[float(row[0])] = found
    return several


def _numbers_of(names: Sequence[str | None]) -> dict[str, float]:
    """A number for each name: its own if all are whole numbers, else by order of appearance."""
    known = [name for name in dict.fromkeys(names) if name is not None]
    if all(name.isascii() and name.isdigit() and name == str(int(name)) for name in known):
        return {name: float(name) for name in known}
    return {name: float(k) for k, name in enumerate(known, start=1)}


def write_swf(log: SwfLog, path: str | os.PathLike[str]) -> None:
    """Write a log, whole or not at all; gzipped if the name ends in .gz."""
    lines = [f"; {key}: {value}" if value else f"; {key}".rstrip() for key, value in log.header]
    head = "".join(f"{line}\n" for line in lines)
    pieces = [head.encode()]
    for begin in range(0, len(log.rows), LINES_AT_ONCE):
        rows = log.rows[begin : begin + LINES_AT_ONCE]
        columns = list(map(_column, rows.T))
        if log.several:
            columns[COLUMN["preceding_job"]] = csv_tables.words(
                [
                    AND.join(map(_number, log.several.get(number, (one,))))
                    for number, one in rows[:, (0, COLUMN["preceding_job"])].tolist()
                ]
            )
        pieces.append(csv_tables.lines(*columns, mark=b" "))
    write_bytes(path, b"".join(pieces), error=WorkloadError)


def _column(column: NDArray[np.float64]) -> NDArray[Any]:
    """The numbers of a column as integers if they are whole, else as texts."""
    if ((np.trunc(column) == column) & (np.abs(column) < LARGEST)).all():
        return column.astype(np.int64)
    different, which = np.unique(column, return_inverse=True)
    return csv_tables.words(list(map(_number, different.tolist())))[which]


def _ids(numbers: NDArray[np.float64]) -> Sequence[str]:
    """The text of each of many numbers."""
    if (np.trunc(numbers) == numbers).all() and (np.abs(numbers) < LARGEST).all():
        return NumberIds(numbers.astype(np.int64))
    return list(map(_number, numbers.tolist()))


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
