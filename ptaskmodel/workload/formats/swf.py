"""Read, clean and write the Standard Workload Format: logs of real machines.

A compiled scanner parses the lines of a large log that are well formed; `parsed` calls it.
Source: Feitelson, "The Standard Workload Format", Parallel Workloads Archive, version 2.2.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel import csv_columns
from ptaskmodel.errors import WorkloadError, cut
from ptaskmodel.files import UTF8_MARK, read_bytes, shown_path, write_bytes
from ptaskmodel.lazy import OnDemand
from ptaskmodel.remarks import LEFT_OUT, Account, Remark, warn_of
from ptaskmodel.workload.amounts import FieldError
from ptaskmodel.workload.formats.table import Cleaning, Writing
from ptaskmodel.workload.jobs import JobArrays, JobTable, Workload, column_of, job_arrays, names_of
from ptaskmodel.workload.works import DelayWork

# Bytes; below, the scanner would take longer to load than it saves.
LARGE = 200_000

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
ORIGINS = (
    ("user", 0),
    ("group", 0),
    ("queue", 0),
    ("partition", 0),
    ("executable", 0),
    ("preceding_job", 1),
)
CANCELLED = 5
PARTIAL = (2, 3, 4)
LINES_AT_ONCE = 50_000
LARGEST = 2.0**53


def parsed(
    body: bytes, fields: int, largest: float, large: int = LARGE
) -> NDArray[np.float64] | None:
    """The values of lines of ``fields`` numbers each, shape (lines, fields); blank lines count not.

    None if there are less than ``large`` bytes, or if anything about them is unusual: another
    number of fields, anything but plain finite numbers up to ``largest``.
    """
    if len(body) < large:
        return None
    from ptaskmodel.workload.formats.json import POWERS
    from ptaskmodel.workload.formats.line_scanner import read_rows

    rows = np.empty((body.count(b"\n") + 1, fields))
    count = int(read_rows(np.frombuffer(body, np.uint8), rows, POWERS, largest))
    return None if count < 0 else rows[:count]


@dataclass(frozen=True, slots=True, eq=False)
class SwfLog:
    """A log: its header lines ("; Key: value") in order, and one row of 18 values per job.

    rows: float64, shape (jobs, 18), columns as in FIELDS; -1 is the format's own "unknown".
    """

    header: tuple[tuple[str, str], ...]
    rows: NDArray[np.float64]
    origin: str = ""

    def column(self, name: str) -> NDArray[np.float64]:
        return self.rows[:, COLUMN[name]]

    def header_number(self, key: str) -> int | None:
        """The whole number that the first header line ``key`` gives; None if there is none."""
        for name, value in self.header:
            words = value.split()
            if name == key and words and words[0].lstrip("-").isdigit() and int(words[0]) > 0:
                return int(words[0])
        return None

    @property
    def num_processors(self) -> int | None:
        """Size of the machine: MaxProcs, else MaxNodes."""
        return self.header_number("MaxProcs") or self.header_number("MaxNodes")


def looks_like(start: bytes) -> bool:
    """Whether a file that begins so may be a log."""
    return start[:1] in b";-0123456789"


def read(path: str | os.PathLike[str], cleaning: Cleaning, account: Account) -> Workload:
    """As every format of jobs (see `table`); account: what is told of the file."""
    return workload_from_swf(
        read_swf(path, account),
        processors_per_host=cleaning.processors_per_host,
        zero_run_time_s=cleaning.zero_run_time_s,
        max_hosts=cleaning.max_hosts,
        walltimes=cleaning.walltimes,
    )


def write(workload: Workload, path: str | os.PathLike[str], options: Writing) -> None:
    """As every format of jobs (see `table`)."""
    write_swf(swf_from_workload(workload), path)


def read_swf(path: str | os.PathLike[str], account: Account | None = None) -> SwfLog:
    """Read an SWF log (also gzipped): every header line and all 18 fields of every job.

    What follows the 18th field of a line is left unread, and told. account: what is told of the
    file; None: each remark is a Python warning. Raises WorkloadError with file and line for a line
    that has not 18 numbers.
    """
    if account is None:
        account = Account(path, WorkloadError)
        log = read_swf(path, account)
        warn_of(account.remarks)
        return log
    where = shown_path(path)
    content = read_bytes(path, error=WorkloadError).removeprefix(UTF8_MARK)
    text, quick = _split(content)
    rows = parsed(quick, len(FIELDS), LARGEST) if quick else None
    if rows is None:
        text = content.decode("utf-8", errors="surrogateescape")
    if rows is None and not text.strip():
        raise WorkloadError(f"{where}: is empty; give a log")
    header, lines, numbers = [], [], []
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped.startswith(";"):
            key, _, value = stripped.lstrip("; \t").partition(":")
            header.append((key.strip(), value.strip()))
        elif stripped:
            lines.append(stripped)
            numbers.append(number)
    if rows is not None:
        return SwfLog(tuple(header), rows, where)
    rows, longer = _parsed(lines, numbers, where)
    if longer:
        account.unused(f"left unread what follows the 18th field on {longer} lines")
    return SwfLog(tuple(header), rows, where)


def _split(content: bytes) -> tuple[str, bytes]:
    """The lines before the first job, and the rest if no header line is among it."""
    place = 0
    while content[place : place + 1] in (b";", b"\n", b"\r"):
        place = content.find(b"\n", place) + 1 or len(content)
    body = content[place:]
    if b";" in body:
        return "", b""
    return content[:place].decode("utf-8", errors="surrogateescape"), body


def _parsed(
    lines: Sequence[str], numbers: Sequence[int], where: str
) -> tuple[NDArray[np.float64], int]:
    """The first 18 values of each line, and how many lines have more.

    WorkloadError names the first line that has fewer.
    """
    rows = np.empty((len(lines), len(FIELDS)))
    longer = 0
    for first in range(0, len(lines), LINES_AT_ONCE):
        part = slice(first, first + LINES_AT_ONCE)
        rows[part], more = _parsed_part(lines[part], numbers[part], where)
        longer += more
    return rows, longer


def _parsed_part(
    lines: Sequence[str], numbers: Sequence[int], where: str
) -> tuple[NDArray[np.float64], int]:
    words = [line.split() for line in lines]
    longer = 0
    for number, row in zip(numbers, words, strict=True):
        if len(row) < len(FIELDS):
            raise WorkloadError(
                f"{where}:{number}: {len(row)} fields instead of 18: this is not an SWF job "
                "(-1 stands for what is unknown)"
            )
        longer += len(row) > len(FIELDS)
        del row[len(FIELDS) :]
        try:
            row[:] = map(float, row)  # type: ignore[arg-type]
        except ValueError as error:
            raise WorkloadError(
                f"{where}:{number}: {cut(str(error), 100)}: give a number"
            ) from None
    rows = np.array(words, dtype=np.float64).reshape(len(words), len(FIELDS))
    bad = np.flatnonzero(~(np.abs(rows) <= LARGEST).all(axis=1))
    if len(bad):
        raise WorkloadError(
            f"{where}:{numbers[bad[0]]}: a value is not finite or beyond {LARGEST:g}: correct it"
        )
    return rows, longer


def clean(
    log: SwfLog, *, zero_run_time_s: float | None = 1.0, max_processors: int | None = None
) -> tuple[SwfLog, tuple[str, ...]]:
    """The jobs of a log that can be replayed, and one sentence for each thing left out or changed.

    Left out: parts of checkpointed jobs (status 2, 3, 4), jobs cancelled before they ran, jobs of
    unknown run time or size, jobs submitted at a negative date, jobs of more than
    ``max_processors``. Jobs of 0 s (rounded down by the logger) last ``zero_run_time_s``; None
    leaves them out.
    """
    size, run_time = sizes(log), log.column("run_time_s")
    status = log.column("status")
    tests = [
        (np.isin(status, PARTIAL), "parts of checkpointed jobs (status 2, 3 or 4)"),
        ((status == CANCELLED) & (run_time <= 0), "jobs cancelled before they ran"),
        (run_time < 0, "jobs of unknown run time"),
        (size <= 0, "jobs of unknown size"),
        (log.column("submit_time_s") < 0, "jobs submitted at a negative date"),
    ]
    if zero_run_time_s is None:
        tests.append((run_time == 0, "jobs that ran for 0 s"))
    if max_processors is not None:
        tests.append((size > max_processors, f"jobs of more than {max_processors} processors"))
    keep = np.ones(len(log.rows), dtype=bool)
    notes = []
    for out, what in tests:
        if count := int((out & keep).sum()):
            notes.append(f"left out {count} {what}")
        keep &= ~out
    rows = log.rows[keep].copy()
    zero = rows[:, COLUMN["run_time_s"]] == 0
    if zero.any() and zero_run_time_s is not None:
        rows[zero, COLUMN["run_time_s"]] = zero_run_time_s
        notes.append(f"made {int(zero.sum())} jobs of 0 s last {zero_run_time_s:g} s")
    return SwfLog(log.header, rows, log.origin), tuple(notes)


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
    numbers, run_times = log.column("job_number"), log.column("run_time_s")
    _check_numbers(numbers, log.origin)
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
    ids = OnDemand(len(order), lambda: _texts(numbers[order]))
    profiles = OnDemand(len(order), lambda: _each(names, which))
    users = OnDemand(len(order), lambda: _named(log.column("user")[order], 0))

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
            **{name: _named(rows[:, COLUMN[name]], least) for name, least in ORIGINS},
        }

    machine = log.num_processors
    return Workload(
        JobTable(arrays, ids, profiles, users, columns),
        dict(zip(names, works, strict=True)),
        None if machine is None else math.ceil(machine / processors_per_host),
        name=Path(log.origin or "swf").name.split(".")[0],
        origin=log.origin,
        remarks=tuple(Remark(note, kind=LEFT_OUT, file=log.origin or None) for note in notes),
    )


def _check_numbers(numbers: NDArray[np.float64], origin: str) -> None:
    """WorkloadError if two jobs have the same number."""
    if (np.diff(numbers) > 0).all():
        return
    _, first = np.unique(numbers, return_index=True)
    if len(first) < len(numbers):
        again = np.ones(len(numbers), dtype=bool)
        again[first] = False
        number = numbers[np.flatnonzero(again)[0]]
        raise WorkloadError(f"{origin}: job {number:g} is there twice: renumber the jobs")


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


def _named(column: NDArray[np.float64], least: int) -> list[str | None]:
    """The numbers of a column as text, one object for each; below ``least`` means unknown."""
    values, which = np.unique(column, return_inverse=True)
    names = [_number(value) if value >= least else None for value in values.tolist()]
    return _each(names, which)


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
        number = job_numbers if name == "preceding_job" else _numbers_of(names)
        if number is not job_numbers and any(n != _number(k) for n, k in number.items()):
            renumbered.append(f"{name}s renumbered")
        rows[:, COLUMN[name]] = [-1.0 if n is None else number.get(n, -1.0) for n in names]
    header = [("Version", "2.2"), ("Computer", workload.name)]
    header += [("MaxJobs", str(len(ids))), ("MaxRecords", str(len(ids)))]
    if workload.num_hosts is not None:
        header += [("MaxNodes", str(workload.num_hosts)), ("MaxProcs", str(workload.num_hosts))]
    header += [("Note", note) for note in workload.notes]
    header += [("Note", note) for note in renumbered]
    return SwfLog(tuple(header), rows, workload.origin)


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
    pieces = [head.encode("utf-8", errors="surrogateescape")]
    for begin in range(0, len(log.rows), LINES_AT_ONCE):
        columns = map(_column, log.rows[begin : begin + LINES_AT_ONCE].T)
        pieces.append(csv_columns.lines(*columns, mark=b" "))
    write_bytes(path, b"".join(pieces), error=WorkloadError)


def _column(column: NDArray[np.float64]) -> NDArray[Any]:
    """The numbers of a column as integers if they are whole, else as texts."""
    if ((np.trunc(column) == column) & (np.abs(column) < LARGEST)).all():
        return column.astype(np.int64)
    different, which = np.unique(column, return_inverse=True)
    return csv_columns.words(list(map(_number, different.tolist())))[which]


def _texts(values: NDArray[np.float64]) -> list[str]:
    """The text of each of many numbers."""
    if (np.trunc(values) == values).all() and (np.abs(values) < LARGEST).all():
        return list(map(str, values.astype(np.int64).tolist()))
    return list(map(_number, values.tolist()))


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
