"""Formats of files that say what runs (tasks, jobs, traces), one module each; see `FORMATS`.

A new format is a module of its own and an entry in `FORMATS`. The module of a format of jobs has
three functions:

- ``looks_like(start: bytes) -> bool``: whether a file that begins so may be one (for files whose
  name does not tell);
- ``read(path, cleaning: Cleaning, account: Account) -> Workload``; tells the account what it did
  not take as it stands (see `remarks.Account`); raises WorkloadError with file and place;
- ``write(workload, path, options: Writing) -> None``, atomically (see `files`).
"""

from __future__ import annotations

from typing import NamedTuple

from ptaskmodel.errors import WorkloadError
from ptaskmodel.files import AnyPath, shown_path

JOBS, TASKS = "jobs", "tasks"
PARQUET = b"PAR1"  # how such files begin


class Format(NamedTuple):
    """module: its dotted name. suffixes: how names of such files end (before .gz). holds: what."""

    module: str
    suffixes: tuple[str, ...]
    holds: str = JOBS


FORMATS: dict[str, Format] = {
    "batsim": Format("ptaskmodel.workload.formats.batsim", (".json",)),
    "swf": Format("ptaskmodel.workload.formats.swf", (".swf",)),
    "gwf": Format("ptaskmodel.workload.formats.gwf", (".gwf",)),
    "tasks": Format("ptaskmodel.workload.formats.tasks_json", (".json",), TASKS),
}


class Cleaning(NamedTuple):
    """How a log becomes a workload; see `swf.workload_from_swf`. Other formats say it all."""

    processors_per_host: int = 1
    zero_run_time_s: float | None = 1.0
    max_hosts: int | None = None
    walltimes: bool = True


class Writing(NamedTuple):
    """How a workload is written. batsim_version: 2 to 5, of Batsim's format."""

    batsim_version: int = 5


def formats_of(holds: str) -> tuple[str, ...]:
    """Return the names of the formats that a file of `holds` (JOBS or TASKS) may have."""
    return tuple(name for name, format_ in FORMATS.items() if format_.holds == holds)


def refuse_parquet(content: bytes, path: AnyPath) -> None:
    """Raise WorkloadError if the `content` of the file at `path` begins as Parquet does."""
    if content.startswith(PARQUET):
        raise WorkloadError(
            f"{shown_path(path)}: is Parquet, as the Workflow Trace Archive has; it is not read: "
            "convert it with pandas.read_parquet and ptaskmodel.workload_from_frame, as the guide "
            "on workloads shows"
        )
