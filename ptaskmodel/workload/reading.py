"""A workload from a file of any known format: Batsim JSON or SWF, gzipped or not."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ptaskmodel.errors import WorkloadError
from ptaskmodel.files import read_bytes
from ptaskmodel.workload.formats.batsim import read_batsim
from ptaskmodel.workload.formats.swf import read_swf, workload_from_swf
from ptaskmodel.workload.jobs import Workload


@dataclass(frozen=True, slots=True)
class Cleaning:
    """How a log becomes a workload; see `workload_from_swf`."""

    processors_per_host: int = 1
    zero_run_time_s: float | None = 1.0
    max_hosts: int | None = None
    walltimes: bool = True


def is_swf(path: str | os.PathLike[str]) -> bool:
    """Whether a file is an SWF log rather than JSON: by its name, else by its first character."""
    name = str(path).removesuffix(".gz")
    if name.endswith((".swf", ".json")):
        return name.endswith(".swf")
    return read_bytes(path, error=WorkloadError).lstrip()[:1] not in (b"{", b"[")


def read_workload(path: str | os.PathLike[str], cleaning: Cleaning | None = None) -> Workload:
    """The workload of a file. ``cleaning`` applies to logs; a Batsim workload is read as it is.

    Raises WorkloadError.
    """
    if not is_swf(path):
        return read_batsim(path)
    options = cleaning or Cleaning()
    return workload_from_swf(
        read_swf(path),
        processors_per_host=options.processors_per_host,
        zero_run_time_s=options.zero_run_time_s,
        max_hosts=options.max_hosts,
        walltimes=options.walltimes,
    )
