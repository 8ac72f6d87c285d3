"""Write directories of results atomically (see `directories`), and read their tables."""

from __future__ import annotations

import csv
import json
import math
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from ptaskmodel import __version__, directories
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import digest
from ptaskmodel.kernels.module import made_by
from ptaskmodel.named_files import named_by

FORMAT = "ptaskmodel results 1"
SUMMARY = "summary.json"
POWER, POWER_COLUMNS = "power.csv", ("time", "hosts_W", "links_W")

# Every file that we may write in a directory of results: nothing else is ever replaced.
NAMES = frozenset(
    {
        SUMMARY,
        "actions.csv",
        "attribution.csv",
        "bottlenecks.csv",
        "classes.csv",
        "comparison.csv",
        "comparison.png",
        "consumed_energy.csv",
        "critical_links.csv",
        "critical_path.csv",
        "cycles.csv",
        "energy.csv",
        "events.csv",
        "explanation.txt",
        "failures.csv",
        "fair_starts.csv",
        "gantt.png",
        "interference.csv",
        "jobs.csv",
        "load.csv",
        "load.png",
        "machine_states.csv",
        "machines.csv",
        "matrix.csv",
        "meta.json",
        "messages.csv",
        "neighbours.csv",
        "over_time.csv",
        POWER,
        "power.png",
        "priorities.csv",
        "draws.csv",
        "pauses.csv",
        "pstate_changes.csv",
        "queues.csv",
        "ranks.csv",
        "reasons.csv",
        "routes.csv",
        "runs.csv",
        "sacct.txt",
        "schedule.json",
        "spans.csv",
        "tasks.csv",
        "trace.csv",
        "trace.paje",
        "trace.parquet",
        "trace.perfetto.json",
        "timeline.paje",
        "timeline.perfetto.json",
        "tuning.csv",
        "utilisation.csv",
        "link_users.csv",
    }
)


def check_output_directory(path: str | Path) -> None:
    """Results may be written in this directory: it is absent, empty, or holds only earlier ones.

    Raises PTaskModelError with the reason.
    """
    directories.check_directory_to_write(path, _earlier_files)


def whole_directory(path: str | Path) -> AbstractContextManager[Path]:
    """A directory to write results in, that appears as ``path`` once all is written.

    An earlier directory of results is replaced. On an error nothing appears and the earlier one
    stays.

    Raises PTaskModelError if ``path`` holds anything else or cannot be written.
    """
    return directories.whole_directory(path, _earlier_files)


def _earlier_files(path: Path) -> frozenset[str]:
    """The files that the summary in a directory says to be results; none if there is no summary."""
    try:
        summary = json.loads((path / SUMMARY).read_text(encoding="utf-8"))
        if summary["format"] == FORMAT:
            return NAMES & {str(name) for name in summary["files"]}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        pass
    return frozenset()


@contextmanager
def readable(path: Path, remedy: str = "") -> Iterator[None]:
    """What is wrong with a table is said as a PTaskModelError, with what to do about it."""
    try:
        yield
    except (OSError, ValueError, csv.Error) as error:
        what = f"{path}: cannot be read ({error})"
        raise PTaskModelError(f"{what}; {remedy}" if remedy else what) from None


def rows(path: Path, *columns: str, optional: bool = False) -> Iterator[dict[str, str]]:
    """The lines of a table, which must have these columns. Raises ValueError with the line."""
    if optional and not path.exists():
        return
    with path.open(encoding="utf-8", newline="") as stream:
        reader = csv.reader(stream, strict=True)
        names = next(reader, [])
        if missing := sorted(set(columns) - set(names)):
            raise ValueError(f"{path.name}:1: no column {missing[0]!r}")
        for row in filter(None, reader):
            if len(row) != len(names):
                raise ValueError(f"{path.name}:{reader.line_num}: not {len(names)} fields")
            yield dict(zip(names, row, strict=True))


def read_table(
    path: Path, remedy: str = "", /, **columns: Callable[[str], Any]
) -> list[tuple[Any, ...]]:
    """Return the values of these columns of a table, a tuple a line.

    path, remedy: as of `readable`. columns: what reads the texts of each, such as `finite`. Raises
    PTaskModelError if the table is damaged.
    """
    with readable(path, remedy):
        found = rows(path, *columns)
        return [tuple(read(row[name]) for name, read in columns.items()) for row in found]


def read_optional(
    path: Path, remedy: str = "", /, **columns: Callable[[str], Any]
) -> list[tuple[Any, ...]]:
    """Return what `read_table` does, and of a file that is not there no line.

    path, remedy, columns: as of `read_table`.
    """
    return read_table(path, remedy, **columns) if path.exists() else []


def finite(text: str) -> float:
    """A finite number. Raises ValueError for anything else."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not a finite number")
    return value


def number(text: str | None) -> float | None:
    """A finite number, or None where nothing stands."""
    return finite(text) if text else None


def provenance(
    inputs: Iterable[str | Path], parameters: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What a summary says of where results come from: parameters, versions, digests of the inputs.

    parameters: values of options by name; None: not known. After the inputs that are given come the
    files that they name: traces, arrays, includes.
    """

    import numpy

    return {
        **({"parameters": dict(parameters)} if parameters else {}),
        "versions": {
            "ptaskmodel": __version__,
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "kernels": made_by(),
        },
        "inputs": [{"path": path, "sha256": digest(path)} for path in _with_named(inputs)],
    }


def _with_named(inputs: Iterable[str | Path]) -> list[str]:
    """The inputs, then the files that they name."""
    given = list(map(Path, inputs))
    named = {other.resolve(): other for path in given for other in named_by(path)[1:]}
    for path in given:
        named.pop(path.resolve(), None)
    return list(map(str, (*given, *named.values())))
