"""Measured run times in groups, and parameters fitted to a group by weighted least squares.

A CSV file has the run times under interference. Parameters are few and positive; they have standard
errors and intervals.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ptaskmodel.apps.interference import OnOff
from ptaskmodel.errors import PTaskModelError, WorkloadError
from ptaskmodel.files import AnyPath, read_text
from ptaskmodel.remarks import Account, reader
from ptaskmodel.workload.amounts import FloatArray

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


UNKNOWN_RELATIVE_ERROR = 0.01
LEAST_RELATIVE_ERROR = 1e-12
CONFIDENCE = 0.95
# Standard errors by which a prediction moves where a parameter grows by a factor of e: below this,
# none does.
NO_CHANGE = 1e-3
# The same against the most that any combination moves: as exact as differences are.
SAME = 1e-6
# A chi square that is smaller by less than this part is of the same minimum, as is a point that is
# nearer than this part of a standard error: of cheap predictions, and of simulations.
EXACT, ABOUT = 1e-9, 1e-3
# The derivatives promise to lessen chi square by less than this part: it has no kink there.
NO_SLOPE = 1e-3
# Lengths of the first steps of the search without derivatives, in logarithms.
STEPS = (1e-7, 0.1)
# The grid: how many standard errors to each side, of how many points a side; how many minima of it
# are followed, and how often it is laid around a better one.
GRID_ERRORS, GRID_POINTS, MOST_MINIMA, MOST_SEARCHES = 4.0, 161, 12, 12

Residuals = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A fitted (or fixed) parameter: ``stderr`` and ``interval95`` are None if it is fixed."""

    value: float
    unit: str
    stderr: float | None = None
    interval95: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Minimum:
    """The best parameters (logarithms fitted), their standard errors, chi square and freedom.

    idle: numbers of the parameters on which no prediction depends. tied: of those of which the
    predictions determine but a combination.
    """

    values: FloatArray
    stderrs: FloatArray
    intervals: tuple[tuple[float, float], ...]
    chi_square: float
    degrees_of_freedom: int
    idle: tuple[int, ...] = ()
    tied: tuple[int, ...] = ()

    def parameter(self, number: int, unit: str) -> Parameter:
        return Parameter(
            float(self.values[number]), unit, float(self.stderrs[number]), self.intervals[number]
        )


def standard_errors(rows: Sequence[Measurement], model_error: float = 0.0) -> FloatArray:
    """The standard error of each measured mean, s, shape (rows,).

    Where a file has no standard deviation it counts as 1 % of the runtime. ``model_error`` is a
    relative error of the model itself, added in quadrature.

    Raises MeasurementError if one is so small beside its runtime that a float cannot tell.
    """
    runtimes = np.array([row.runtime_s for row in rows], np.float64)
    known = [
        UNKNOWN_RELATIVE_ERROR * row.runtime_s if row.error_s is None else row.error_s  # type: ignore[operator]
        for row in rows
    ]
    errors = np.hypot(np.array(known, np.float64), model_error * runtimes)
    for row, error in zip(rows, errors.tolist(), strict=True):
        if error < LEAST_RELATIVE_ERROR * row.runtime_s:  # type: ignore[operator]
            raise MeasurementError(
                f"pattern {row.pattern}: {row.runtime_s:g} s with a standard error of {error:g} s "
                f"has a relative error below {LEAST_RELATIVE_ERROR:g}; give a larger "
                "stddev_s, or none, or a --model-error"
            )
    return errors


def fit(
    predict: Callable[[FloatArray], FloatArray],
    start: Sequence[float],
    measured_s: FloatArray,
    error_s: FloatArray,
    spread: float = 0.05,
    searched: bool = False,
) -> Minimum:
    """Minimise sum(((predict(p) - measured) / error)**2) over the parameters p > 0.

    The predictions have kinks (a run may end on either side of a change of the pattern), at which
    least squares by differences stop, and so may have several minima. The search starts from
    ``start`` and from points ``spread`` (relative) around it, and ends without derivatives at the
    best. searched: of two parameters, all minima near the best are looked for, on a grid; then
    ``predict`` takes arrays of parameters, and gives rows of predictions.

    Standard errors come from the Jacobian there; where chi square exceeds its degrees of
    freedom they are widened by the square root of the ratio, since the model is then not exact.
    With as many parameters as measurements they are the propagated measurement errors.

    Raises MeasurementError if what is measured is too far apart for any of this.
    """
    from scipy.optimize import least_squares
    from scipy.stats import norm, t

    def residuals(logs: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):  # the search may look far out
            return ((predict(np.exp(logs)).T - measured_s) / error_s).T

    centre = np.log(np.asarray(start, np.float64))
    with np.errstate(over="ignore"):
        if not np.isfinite(np.sum(residuals(centre) ** 2)):
            raise MeasurementError("the runtimes differ too much for one fit; fit fewer rows")
    exact = len(measured_s) == len(centre)
    offsets = [(0.0,) * len(centre)]
    if spread > 0.0 and not exact:
        offsets += list(itertools.product((-spread, spread), repeat=len(centre)))
    found = [
        least_squares(residuals, centre + np.array(offset), diff_step=1e-6, x_scale=0.01)
        for offset in offsets
    ]
    smooth = min(found, key=lambda result: result.cost)
    chi_square, freedom = 2.0 * float(smooth.cost), len(measured_s) - len(centre)
    logs, jacobian = smooth.x, smooth.jac
    if freedom > 0:
        logs, chi_square = _without_kinks(residuals, logs, chi_square, jacobian, searched)
    if logs is not smooth.x:
        jacobian = _jacobian(residuals, logs)
    inflation = max(1.0, chi_square / freedom) if freedom > 0 else 1.0
    covariance = np.linalg.pinv(jacobian.T @ jacobian) * inflation
    log_errors = np.sqrt(np.diag(covariance))
    tail = 0.5 + CONFIDENCE / 2.0
    quantile = float(t.ppf(tail, freedom)) if freedom > 0 else float(norm.ppf(tail))
    values = np.exp(logs)
    intervals = tuple(
        (float(value * np.exp(-quantile * error)), float(value * np.exp(quantile * error)))
        for value, error in zip(values, log_errors, strict=True)
    )
    moved = np.abs(jacobian).max(axis=0)
    idle = tuple(int(number) for number in np.flatnonzero(moved < NO_CHANGE))
    tied = () if idle else _tied(jacobian)
    return Minimum(values, values * log_errors, intervals, chi_square, freedom, idle, tied)


def _without_kinks(
    residuals: Residuals, logs: FloatArray, chi_square: float, jacobian: FloatArray, searched: bool
) -> tuple[FloatArray, float]:
    """The best minimum near one that derivatives found, and its chi square; the same if it is.

    Steps are as long as standard errors, in the directions in which these are independent.
    """
    from scipy.optimize import minimize

    def cost(point: FloatArray) -> float:
        found = float(np.sum(residuals(point) ** 2))
        return found if np.isfinite(found) else np.inf

    widening = math.sqrt(max(1.0, chi_square / max(1, len(jacobian) - len(logs))))
    for _ in range(MOST_SEARCHES):
        covariance = np.linalg.pinv(jacobian.T @ jacobian)
        slope = jacobian.T @ residuals(logs)
        if not searched and slope @ covariance @ slope < NO_SLOPE * chi_square:
            break
        variances, directions = np.linalg.eigh(covariance)
        lengths = np.clip(np.sqrt(np.maximum(variances, 0.0)) * widening, *STEPS)
        steps = directions * lengths
        begins = [logs, *(_minima_of_grid(residuals, logs, steps) if searched else ())]
        best, least = logs, chi_square
        exactness = EXACT if searched else ABOUT
        for begin in begins:
            for size in (0.3, -0.03) if searched else (0.3,):
                simplex = np.vstack([begin, begin + size * steps.T])
                ended = minimize(
                    cost, begin, method="Nelder-Mead",
                    options={"initial_simplex": simplex, "xatol": exactness * lengths.min(),
                             "fatol": exactness * least},
                )  # fmt: skip
                begin = ended.x
                if ended.fun < least:
                    best, least = ended.x, float(ended.fun)
        if least >= chi_square * (1.0 - exactness):
            break
        logs, chi_square, jacobian = best, least, _jacobian(residuals, best)
    return logs, chi_square


def _minima_of_grid(
    residuals: Residuals, centre: FloatArray, steps: FloatArray
) -> list[FloatArray]:
    """The best points of a grid around a point that are no worse than their neighbours."""
    side = np.linspace(-GRID_ERRORS, GRID_ERRORS, GRID_POINTS)
    offsets = np.stack(np.meshgrid(side, side, indexing="ij")).reshape(2, -1)
    points = centre[:, None] + steps @ offsets
    costs = np.sum(residuals(points) ** 2, axis=0).reshape(GRID_POINTS, GRID_POINTS)
    around = np.pad(costs, 1, constant_values=np.inf)
    shifts = [(i, j) for i in range(3) for j in range(3) if (i, j) != (1, 1)]
    n = GRID_POINTS
    lowest = np.minimum.reduce([around[i : i + n, j : j + n] for i, j in shifts])
    minima = np.flatnonzero(costs <= lowest)
    chosen = minima[np.argsort(costs.ravel()[minima], kind="stable")[:MOST_MINIMA]]
    return list(points[:, chosen].T)


def _jacobian(residuals: Residuals, logs: FloatArray) -> FloatArray:
    """By central differences: at a kink the mean of both sides."""
    columns = []
    for step in 1e-6 * np.eye(len(logs)):
        columns.append((residuals(logs + step) - residuals(logs - step)) / 2e-6)
    return np.stack(columns, axis=1)


def _tied(jacobian: FloatArray) -> tuple[int, ...]:
    """The parameters in directions along which no prediction moves, though each moves some."""
    _, lengths, directions = np.linalg.svd(jacobian, full_matrices=True)
    longest = np.zeros(len(directions))
    longest[: len(lengths)] = lengths
    still = directions[longest < max(NO_CHANGE, SAME * longest.max())]
    return tuple(int(number) for number in np.flatnonzero(np.any(np.abs(still) > 0.1, axis=0)))
