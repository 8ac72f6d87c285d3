"""Weighted least squares for a few positive parameters, with standard errors and intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ptaskmodel.calibration.measurements import Measurement, MeasurementError
from ptaskmodel.workload.amounts import FloatArray

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
