"""Read the Grid Workload Format, for logs of grids; its first 16 columns are those of SWF.

A log of workflows has other columns, whose names stand in its first line: see `WORKFLOW`.
Source: the Grid Workloads Archive's description of its format, 29 columns.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence

import numpy as np

from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.files import UTF8_MARK, read_bytes, text_of
from ptaskmodel.remarks import Account
from ptaskmodel.workload.formats import Cleaning, Writing, swf
from ptaskmodel.workload.formats.log_lines import (
    LARGEST,
    UNKNOWN,
    UNKNOWN_WORDS,
    Layout,
    read_lines,
)
from ptaskmodel.workload.jobs import Workload

SHARED = 16
FIELDS = (
    *swf.FIELDS[:SHARED],
    *("OrigSiteID", "LastRunSiteID", "JobStructure", "JobStructureParams", "UsedNetwork"),
    *("UsedLocalDiskSpace", "UsedResources", "ReqPlatform", "ReqNetwork", "ReqLocalDiskSpace"),
    *("ReqResources", "VOID", "ProjectID"),
)
# Columns in which logs have names.
NAMED = swf.NAMED | set(FIELDS[SHARED:])
# Archives leave out the last columns, of which nothing is used.
LAYOUT = Layout("GWF", FIELDS, "#", NAMED, least=SHARED)
# Columns of a log of workflows, by their names in lower case: the column of SWF with such numbers.
WORKFLOW = {
    "jobid": "job_number",
    "submittime": "submit_time_s",
    "waittime": "wait_time_s",
    "runtime": "run_time_s",
    "nprocs": "allocated_processors",
    "reqnprocs": "requested_processors",
    "reqtime": "requested_time_s",
}
_OF_WORKFLOW, _BEFORE = "workflowid", "dependencies"
_NEEDED = ("jobid", "submittime", "runtime")
_IS_WORKFLOW = re.compile(rb"\s*\"?workflowid\"?\s*[,;\t]", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s,;&]+")


def looks_like(start: bytes) -> bool:
    """Whether a file that begins so (``start``) may be a log."""
    return start[:1] == b"#" or _IS_WORKFLOW.match(start) is not None


def read(path: str | os.PathLike[str], cleaning: Cleaning, account: Account) -> Workload:
    """The workload of the log at a `path`, with a `cleaning`; account: what is told of it."""
    content = read_bytes(path, error=WorkloadError).removeprefix(UTF8_MARK)
    if _IS_WORKFLOW.match(re.sub(rb"(?m)\A(?:#.*\n|\s*\n)+", b"", content[: 1 << 16])):
        return swf.workload_of(_workflows(content, account), cleaning)
    lines = read_lines(content, LAYOUT, account)
    unread = [
        name
        for name, column in zip(FIELDS[SHARED:], lines.rows[:, SHARED:].T, strict=True)
        if (column != UNKNOWN).any()
    ]
    if unread:
        account.unused(f"columns that are not used: {', '.join(unread)}")
    rows = np.full((len(lines.rows), len(swf.FIELDS)), UNKNOWN)
    rows[:, :SHARED] = lines.rows[:, :SHARED]
    log = swf.SwfLog(swf.header_of(lines), rows, account.file, names=lines.names)
    return swf.workload_of(log, cleaning)


def _workflows(content: bytes, account: Account) -> swf.SwfLog:
    """The log of workflows with this ``content``: a table of jobs, with those that come before."""
    header, lines = account.table(
        text_of(content, account.file, error=WorkloadError, told=account.taken)
    )
    names = [name.lower().replace("_", "") for name in header]
    lost = [name for name in _NEEDED if name not in names]
    if lost:
        raise WorkloadError(
            f"{account.file}:1: a log of workflows without the column {lost[0]}; name the columns "
            "WorkflowID, JobID, SubmitTime, RunTime, NProcs, ReqNProcs, Dependencies"
        )
    known = (*WORKFLOW, _OF_WORKFLOW, _BEFORE)
    unread = [given for given, name in zip(header, names, strict=True) if name not in known]
    if unread:
        account.unused(f"columns that are not used: {', '.join(unread)}")
    rows: list[list[float]] = []
    keys: list[tuple[str, str]] = []
    before: list[list[str]] = []
    at: list[int] = []
    for line, cells in lines:
        with account.row(line):
            cell = dict(zip(names, map(str.strip, cells), strict=True))
            row = [UNKNOWN] * len(swf.FIELDS)
            for name, column in WORKFLOW.items():
                row[swf.COLUMN[column]] = _number(name, cell.get(name, ""))
            rows.append(row)
            keys.append((cell[_OF_WORKFLOW], cell["jobid"]))
            before.append([one for one in _BETWEEN.split(cell.get(_BEFORE, "")) if one])
            at.append(line)
    account.check_rows()
    if not rows:
        raise WorkloadError(f"{account.file}: has no jobs; give a log")
    table = np.array(rows)
    if not {"nprocs", "reqnprocs"} & set(names):
        table[:, swf.COLUMN["requested_processors"]] = 1
        account.assumed("no column NProcs: each job has one processor")
    if len({job for _, job in keys}) < len(keys):
        table[:, 0] = np.arange(1, len(keys) + 1)
        account.taken("jobs are numbered from 1, as workflows have the same JobIDs", None, "JobID")
    elif table[:, 0].min() < 1:
        table[:, 0] += 1 - table[:, 0].min()
        account.taken("JobIDs are counted from 1, as SWF does", None, "JobID")
    several = _preceding(table, keys, before, at, account)
    return swf.SwfLog((), table, account.file, several)


def _number(name: str, text: str) -> float:
    """The number of a cell of the column ``name``; unknown (-1) where there is none."""
    if text in UNKNOWN_WORDS and name not in _NEEDED:
        return UNKNOWN
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST:
        raise WorkloadError(f"{name} is {shown(text)}; give a number")
    return value


def _preceding(
    table: np.ndarray,
    keys: Sequence[tuple[str, str]],
    before: Sequence[Sequence[str]],
    at: Sequence[int],
    account: Account,
) -> Mapping[float, tuple[float, ...]]:
    """Enter preceding jobs in a ``table``; those of jobs with several, by job number.

    keys: workflow and JobID of each job; before: JobIDs; at: lines. A job of its own workflow is
    meant, else of another.
    """
    numbers = table[:, 0].tolist()
    own = dict(zip(keys, numbers, strict=True))
    any_of = {job: number for (_, job), number in zip(keys, numbers, strict=True)}
    several: dict[float, tuple[float, ...]] = {}
    for k, ((workflow, _), jobs) in enumerate(zip(keys, before, strict=True)):
        found = []
        for job in jobs:
            number = own.get((workflow, job), any_of.get(job))
            if number is not None and number != numbers[k]:
                found.append(number)
            elif job not in UNKNOWN_WORDS and job != "-1":
                account.left_out(f"depends on job {shown(job)}, which the log lacks", at[k])
        if found:
            table[k, swf.COLUMN["preceding_job"]] = found[0]
        if len(found) > 1:
            several[numbers[k]] = tuple(dict.fromkeys(found))
    return several


def write(workload: Workload, path: str | os.PathLike[str], options: Writing) -> None:
    """Refused: `path` can be written in another format, whatever the `workload` and `options`."""
    raise WorkloadError(f"{path}: GWF can be read but not written; end the name in .swf or .json")
