"""Traces of resource use over time, in the formats of other programs.

It lists the traces of a directory of results: file name and writer of each format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results import TRACE_FORMATS
from ptaskmodel.results.traces.paje import PajeTrace
from ptaskmodel.results.traces.tables import CsvTrace, ParquetTrace, Trace
from ptaskmodel.results.traces.timelines import PerfettoTrace

FILES: Mapping[str, tuple[str, Callable[[Path], Trace]]] = {
    "csv": ("trace.csv", CsvTrace),
    "parquet": ("trace.parquet", ParquetTrace),
    "paje": ("trace.paje", PajeTrace),
    "perfetto": ("trace.perfetto.json", PerfettoTrace),
}


def trace_file(format_: str, directory: Path) -> tuple[str, Trace]:
    """(name, writer) of the trace of a format in a directory of results.

    Raises PTaskModelError for an unknown format or one that needs a missing library.
    """
    if format_ not in FILES:
        raise PTaskModelError(
            f"trace {format_!r} is not known; choose one of {', '.join(TRACE_FORMATS)}"
        )
    name, writer = FILES[format_]
    return name, writer(directory / name)
