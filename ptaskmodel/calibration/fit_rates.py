"""Fit of the slow/fast rates c1 and c2 to the measured runtimes of a group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptaskmodel.calibration.leastsquares import fit, standard_errors
from ptaskmodel.calibration.measurements import MeasuredGroup, Measurement
from ptaskmodel.calibration.rates import predicted_runtime, predicted_runtimes
from ptaskmodel.calibration.results import Fitter, GroupCalibration, Prediction, not_fitted
from ptaskmodel.workload.amounts import FloatArray


def rates_fitter(model_error: float = 0.0) -> Fitter:
    """A fitter of the rates model; each row weighs by its standard error.

    model_error: relative error of the model itself, added in quadrature (0: none), which keeps
    rows with very small standard deviations from deciding alone.
    """

    def fit_group(group: MeasuredGroup, used: Sequence[bool]) -> GroupCalibration:
        return _fit_group(group, used, model_error)

    return fit_group


def _fit_group(group: MeasuredGroup, used: Sequence[bool], model_error: float) -> GroupCalibration:
    chosen = [
        row
        for row, taken in zip(group.measurements, used, strict=True)
        if taken and row.runtime_s is not None
    ]
    if len({row.competitors for row in group.measurements if not row.pattern.none}) > 1:
        return not_fitted(
            group, "the number of competitors varies, the rates model has one; use --model ptask"
        )
    start = _start(chosen)
    if start is None:
        return not_fitted(group, "needs rows with and without (or with less) interference")
    measured = np.array([row.runtime_s for row in chosen], np.float64)

    def predict(rates: FloatArray) -> FloatArray:
        return np.array([predicted_runtimes(rates[0], rates[1], row.pattern) for row in chosen])

    best = fit(predict, start, measured, standard_errors(chosen, model_error), searched=True)
    c1, c2 = (float(value) for value in best.values)
    predictions = tuple(
        Prediction(row, predicted_runtime(c1, c2, row.pattern), taken and row.runtime_s is not None)
        for row, taken in zip(group.measurements, used, strict=True)
    )
    parameters = {"c1": best.parameter(0, "1/s"), "c2": best.parameter(1, "1/s")}
    return GroupCalibration(
        group.labels, parameters, predictions, best.chi_square, best.degrees_of_freedom
    )


def _start(rows: Sequence[Measurement]) -> tuple[float, float] | None:
    """Rates from the mean progress at the two extreme shares of time; None if there is only one.

    1 / runtime is about share c1 + (1 - share) c2: a line through the extremes gives both.
    """
    shares = [row.pattern.share for row in rows]
    if not rows or min(shares) == max(shares):
        return None
    low, high = shares.index(min(shares)), shares.index(max(shares))
    at_low, at_high = 1.0 / float(rows[low].runtime_s or 1), 1.0 / float(rows[high].runtime_s or 1)
    slope = (at_high - at_low) / (shares[high] - shares[low])
    c2 = at_low - slope * shares[low]
    c1 = c2 + slope
    return max(c1, 0.02 * c2), c2
