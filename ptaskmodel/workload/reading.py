"""Read and write workloads of any known format (see `formats.table`), gzipped or not."""

from __future__ import annotations

import codecs
import importlib
import logging
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.files import UTF8_MARK, read_bytes, shown_path
from ptaskmodel.remarks import TAKEN, WARNING, Account, Remark
from ptaskmodel.workload.formats.table import FORMATS, JOBS, Cleaning, Writing, formats_of
from ptaskmodel.workload.jobs import Job, JobTable, Workload, job_arrays

START = 4096
# Dates from here on (2001) are taken for Unix seconds; the year 9999, which has a text, ends there.
UNIX_DATES_S, LATEST_DATE_S = 1e9, 253_402_300_800.0


_log = logging.getLogger(__name__)


def format_of(path: str | os.PathLike[str]) -> str:
    """The name of the format of a file of jobs: by its name, else by how it begins.

    Raises WorkloadError if it is none of them.
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
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise WorkloadError(f"{shown_path(path)}: is UTF-16; save it as UTF-8")
    formats = ", ".join(formats_of(JOBS))
    if start.split(b"\n")[0].count(b"|") > 1:
        formats += "; `ptaskmodel slurm` also reads tables of sacct"
    raise WorkloadError(
        f"{shown_path(path)}: begins with {shown(start[:20].decode('utf-8', 'replace'))}, like "
        f"no known format of workloads; give one of {formats}"
    )


def read_workload(path: str | os.PathLike[str], cleaning: Cleaning | None = None) -> Workload:
    """The workload of a file (``-``: standard input). ``cleaning`` applies to logs.

    Its remarks say what was left out, changed or assumed. Unix dates are counted from the first.
    Raises WorkloadError.
    """
    format_ = format_of(path)
    account = Account(path, WorkloadError)
    made: Workload = _module(format_).read(path, cleaning or Cleaning(), account).told(account)
    made = counted_from_first(made)
    _log.info("read %s (%s): %d jobs", shown_path(path), format_, len(made.jobs))
    return made


def counted_from_first(workload: Workload) -> Workload:
    """The workload with dates from its first on, if they are Unix dates; a remark says so."""
    arrays = job_arrays(workload.jobs)
    first_s = float(arrays.submit_s.min(initial=math.inf))
    if not UNIX_DATES_S <= first_s < math.inf:
        return workload
    jobs: Sequence[Job]
    if isinstance(workload.jobs, JobTable):
        jobs = workload.jobs.later(-first_s)
    else:
        jobs = tuple(
            replace(job, submit_time_s=job.submit_time_s - first_s) for job in workload.jobs
        )
    text = f"dates are Unix seconds: time 0 of the simulation is the first, {first_s:.9g}"
    if first_s < LATEST_DATE_S:
        text += f" ({datetime.fromtimestamp(first_s, UTC):%Y-%m-%d %H:%M:%S} UTC)"
    remark = Remark(text, WARNING, None, TAKEN, workload.origin or None, None, "submit")
    return replace(workload, jobs=jobs, remarks=(*workload.remarks, remark))


def write_workload(
    workload: Workload,
    path: str | os.PathLike[str],
    format_: str | None = None,
    writing: Writing | None = None,
) -> None:
    """Write a workload, whole or not at all, in a format (by default that of the name).

    Raises WorkloadError if the name tells none, or if the format cannot say what is in it.
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
