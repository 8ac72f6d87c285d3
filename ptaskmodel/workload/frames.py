"""Make a workload of a table of jobs: a pandas.DataFrame, or rows as dicts."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.remarks import Remark
from ptaskmodel.workload.jobs import (
    FRAME_COLUMNS,
    NUMBERS,
    PRECEDING,
    TEXTS,
    WHOLE_NUMBERS,
    Job,
    Workload,
    checked_job,
    listed,
    sorted_jobs,
)
from ptaskmodel.workload.works import DelayWork, Work

if TYPE_CHECKING:
    import pandas


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
