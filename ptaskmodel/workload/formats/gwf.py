"""Read the Grid Workload Format, for logs of grids; its first 16 columns are those of SWF.

Source: the Grid Workloads Archive's description of its format, 29 columns.
"""

from __future__ import annotations

import os

import numpy as np

from ptaskmodel.errors import WorkloadError
from ptaskmodel.files import UTF8_MARK, read_bytes
from ptaskmodel.remarks import Account
from ptaskmodel.workload.formats import Cleaning, Writing, swf
from ptaskmodel.workload.formats.log_lines import UNKNOWN, Layout, read_lines
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


def looks_like(start: bytes) -> bool:
    """Whether a file that begins so (``start``) may be a log."""
    return start[:1] == b"#"


def read(path: str | os.PathLike[str], cleaning: Cleaning, account: Account) -> Workload:
    """The workload of the log at a `path`, with a `cleaning`; account: what is told of it."""
    content = read_bytes(path, error=WorkloadError).removeprefix(UTF8_MARK)
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


def write(workload: Workload, path: str | os.PathLike[str], options: Writing) -> None:
    """Refused: `path` can be written in another format, whatever the `workload` and `options`."""
    raise WorkloadError(f"{path}: GWF can be read but not written; end the name in .swf or .json")
