"""Refuse files in Parquet, which no reader of tasks, jobs or traces reads, with the way to convert.

The readers of workloads, traces and JSON call it. Source: the format's description of its magic
number.
"""

from ptaskmodel.errors import WorkloadError
from ptaskmodel.files import AnyPath, shown_path

_MAGIC = b"PAR1"


def refuse_parquet(content: bytes, path: AnyPath) -> None:
    """Raise WorkloadError if the `content` of the file at `path` begins as Parquet does."""
    if content.startswith(_MAGIC):
        raise WorkloadError(
            f"{shown_path(path)}: is Parquet, as the Workflow Trace Archive has; it is not read: "
            "convert it with pandas.read_parquet and ptaskmodel.workload_from_frame, as the guide "
            "on workloads shows"
        )
