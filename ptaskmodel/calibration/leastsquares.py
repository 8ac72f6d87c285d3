"""Weighted least squares for a few positive parameters, with standard errors and intervals."""

from __future__ import annotations

import itertools
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
                f"is known to more than {LEAST_RELATIVE_ERROR:g} of itself; give a larger "
                "stddev_s, or none, or a --model-error"
            )
    return errors


def fit(
    predict: Callable[[FloatArray], FloatArray],
    start: Sequence[float],
    measured_s: FloatArray,
    error_s: FloatArray,
    spread: float = 0.05,
) -> Minimum:
    """Minimise sum(((predict(p) - measured) / error)**2) over the parameters p > 0.

    The predictions have kinks (a run may end on either side of a change of the pattern), so the
    search starts from ``start`` and from points ``spread`` (relative) around it; the best minimum
    is kept. Standard errors come from the Jacobian there; where chi square exceeds its degrees of
    freedom they are widened by the square root of the ratio, since the model is then not exact.
    With as many parameters as measurements they are the propagated measurement errors.
    """
    from scipy.optimize import least_squares
    from scipy.stats import norm, t

    def residuals(logs: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):  # the search may look far out
            return (predict(np.exp(logs)) - measured_s) / error_s

    centre = np.log(np.asarray(start, np.float64))
    exact = len(measured_s) == len(centre)
    offsets = [(0.0,) * len(centre)]
    if spread > 0.0 and not exact:
        offsets += list(itertools.product((-spread, spread), repeat=len(centre)))
    found = [
        least_squares(residuals, centre + np.array(offset), diff_step=1e-6, x_scale=0.01)
        for offset in offsets
    ]
    best = min(found, key=lambda result: result.cost)
    chi_square, freedom = 2.0 * float(best.cost), len(measured_s) - len(centre)
    inflation = max(1.0, chi_square / freedom) if freedom > 0 else 1.0
    covariance = np.linalg.pinv(best.jac.T @ best.jac) * inflation
    log_errors = np.sqrt(np.diag(covariance))
    tail = 0.5 + CONFIDENCE / 2.0
    quantile = float(t.ppf(tail, freedom)) if freedom > 0 else float(norm.ppf(tail))
    values = np.exp(best.x)
    intervals = tuple(
        (float(value * np.exp(-quantile * error)), float(value * np.exp(quantile * error)))
        for value, error in zip(values, log_errors, strict=True)
    )
    moved = np.abs(best.jac).max(axis=0)
    idle = tuple(int(number) for number in np.flatnonzero(moved < NO_CHANGE))
    tied = () if idle else _tied(best.jac)
    return Minimum(values, values * log_errors, intervals, chi_square, freedom, idle, tied)


def _tied(jacobian: FloatArray) -> tuple[int, ...]:
    """The parameters in directions along which no prediction moves, though each moves some."""
    _, lengths, directions = np.linalg.svd(jacobian, full_matrices=True)
    longest = np.zeros(len(directions))
    longest[: len(lengths)] = lengths
    still = directions[longest < max(NO_CHANGE, SAME * longest.max())]
    return tuple(int(number) for number in np.flatnonzero(np.any(np.abs(still) > 0.1, axis=0)))
