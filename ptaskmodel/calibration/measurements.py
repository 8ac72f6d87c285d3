"""Measured run times under interference: read a CSV file into groups of measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ptaskmodel.apps.interference import OnOff
from ptaskmodel.errors import PTaskModelError, WorkloadError
from ptaskmodel.files import AnyPath, read_text
from ptaskmodel.remarks import Account, reader

RUNTIME_COLUMNS = ("mean_runtime_s", "runtime_s", "mpi_runtime_s")
ON_COLUMN = "interference_on_s"
OFF_COLUMN = "interference_off_s"
COMPETITOR_COLUMNS = ("competitors", "n_tcp_connections", "n_host_pairs")
MEASURED_COLUMNS = (
    *RUNTIME_COLUMNS,
    *COMPETITOR_COLUMNS,
    ON_COLUMN,
    OFF_COLUMN,
    "runs",
    "stddev_s",
)


class MeasurementError(PTaskModelError):
    """A file of measurements is wrong, or does not allow the fit that was asked for."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One row: the mean runtime of ``runs`` runs under a pattern of interference.

    ``runtime_s`` is None where the runs did not end; ``stddev_s`` (of single runs) None where it
    is not known. ``competitors`` is how many competing units the interference has while it is on.
    """

    pattern: OnOff
    runtime_s: float | None
    stddev_s: float | None = None
    runs: int = 1
    competitors: float = 1.0

    @property
    def error_s(self) -> float | None:
        """Standard error of the mean runtime, s."""
        return None if self.stddev_s is None else self.stddev_s / math.sqrt(self.runs)


@dataclass(frozen=True, slots=True)
class MeasuredGroup:
    """The measurements that share all descriptive columns (``labels``), in the file's order."""

    labels: Mapping[str, str]
    measurements: tuple[Measurement, ...]

    @property
    def name(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self.labels.items()) or "all rows"

    @property
    def measured(self) -> tuple[Measurement, ...]:
        """Those whose runs ended."""
        return tuple(row for row in self.measurements if row.runtime_s is not None)


@reader(MeasurementError)
def read_measurements(
    path: AnyPath, account: Account, competitors: str | None = None
) -> list[MeasuredGroup]:
    """Return the groups of the file ``path`` of measurements, in the order of their first rows.

    Columns: a runtime in s (``mean_runtime_s``, ``runtime_s`` or ``mpi_runtime_s``; empty if the
    runs did not end); the pattern ``interference_on_s`` and ``interference_off_s`` (0 and 0: none;
    inf and 0: constant); optionally ``runs``, ``stddev_s`` and numbers of competitors
    (``competitors``, ``n_tcp_connections``, ``n_host_pairs``). All other columns are descriptive.

    competitors: the column that says how many units compete (default: ``competitors`` if there is
    one, else every row has 1). With it the pattern may be left out: constant wherever it is > 0.

    account: of the file; each remark is a Python warning. A row that cannot be read is left out,
    and told; MeasurementError (file, line, column, value, remedy) is raised if most are such, with
    each.
    """
    columns, rows = account.table(read_text(path, error=MeasurementError))
    runtime = _runtime_column(path, columns)
    if competitors is None and "competitors" in columns:
        competitors = "competitors"
    _check_columns(path, columns, competitors)
    labels = [name for name in columns if name not in MEASURED_COLUMNS]
    groups: dict[tuple[str, ...], list[Measurement]] = {}
    for line, cells in rows:
        row = dict(zip(columns, map(str.strip, cells), strict=True))
        with account.row(line):
            made = _measurement(path, line, row, runtime, competitors)
            groups.setdefault(tuple(map(row.__getitem__, labels)), []).append(made)
    account.check_rows()
    if not groups:
        raise MeasurementError(f"{path}: no measurements below the header; add rows")
    return [
        MeasuredGroup(dict(zip(labels, key, strict=True)), tuple(made))
        for key, made in groups.items()
    ]


def _runtime_column(path: AnyPath, columns: list[str]) -> str:
    found = [name for name in RUNTIME_COLUMNS if name in columns]
    if len(found) != 1:
        seen = " and ".join(found) or ", ".join(columns) or "nothing"
        if len(columns) < 2:
            seen += "; separate columns by commas" if columns else ": it is empty"
        raise MeasurementError(
            f"{path}:1: a column of runtimes is missing; name one {' or '.join(RUNTIME_COLUMNS)}; "
            f"found {seen}"
        )
    return found[0]


def _check_columns(path: AnyPath, columns: list[str], competitors: str | None) -> None:
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise MeasurementError(f"{path}:1: column {twice[0]!r} occurs twice; remove one")
    if competitors is not None and competitors not in columns:
        raise MeasurementError(
            f"{path}:1: no column {competitors!r} for the number of competitors; "
            f"the columns are {', '.join(columns)}"
        )
    pattern = [name for name in (ON_COLUMN, OFF_COLUMN) if name in columns]
    if len(pattern) == 1 or (not pattern and competitors is None):
        raise MeasurementError(
            f"{path}:1: columns {ON_COLUMN} and {OFF_COLUMN} are needed"
            + ("" if pattern else ", or a column with the number of competitors (--competitors)")
        )


def _measurement(
    path: AnyPath, line: int, row: dict[str, str], runtime: str, competitors: str | None
) -> Measurement:
    where = f"{path}:{line}"
    count = 1.0 if competitors is None else _number(where, row, competitors)
    if ON_COLUMN in row:
        on_s, off_s = _number(where, row, ON_COLUMN), _number(where, row, OFF_COLUMN)
        if math.isinf(off_s):
            raise MeasurementError(f"{where}: {OFF_COLUMN} is inf; write 0, 0 for no interference")
        try:
            pattern = _pattern(on_s, off_s if on_s > 0.0 else 0.0)
        except WorkloadError as error:
            raise MeasurementError(f"{where}: {error}") from None
    else:
        pattern = OnOff(math.inf if count > 0.0 else 0.0, 0.0)
    if count <= 0.0 and not pattern.none:
        raise MeasurementError(
            f"{where}: {competitors} is {count:g} in a row with interference; give a number > 0"
        )
    runtime_s = _number(where, row, runtime) if row[runtime] else None
    if runtime_s is not None and (runtime_s <= 0.0 or math.isinf(runtime_s)):
        raise MeasurementError(
            f"{where}: {runtime} is {row[runtime]!r}; give a time > 0 s, or nothing if the "
            "run did not end"
        )
    stddev_s = _number(where, row, "stddev_s") if row.get("stddev_s") else None
    if stddev_s is not None and (stddev_s <= 0.0 or math.isinf(stddev_s)):
        raise MeasurementError(
            f"{where}: stddev_s is {row['stddev_s']!r}; give a value > 0 s, or nothing if unknown"
        )
    runs = _number(where, row, "runs") if row.get("runs") else 1.0
    if not 1 <= runs < math.inf or runs != int(runs):
        raise MeasurementError(f"{where}: runs is {row['runs']!r}; give a whole number >= 1")
    return Measurement(pattern, runtime_s, stddev_s, int(runs), count if count > 0.0 else 1.0)


# Of many rows each pattern is made, and checked, once.
_pattern = lru_cache(1000)(OnOff)


def _number(where: str, row: dict[str, str], column: str) -> float:
    try:
        value = float(row[column])
    except ValueError:
        value = math.nan
    if not value >= 0.0:
        raise MeasurementError(f"{where}: {column} is {row[column]!r}; give a number >= 0")
    return value
