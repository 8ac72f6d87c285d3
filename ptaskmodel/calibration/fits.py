"""Fit a model to the measured run times of a group: the two-rate model, or the parallel task.

The two-rate model alternates between two rates. An application completes a part c1 of its whole
work per second while the interference is on, and c2 while it is off. The interference starts with
the application, on. The run time is exact, not an average over periods.

For the parallel task, parameters are chosen so that simulations predict the measured runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ptaskmodel.apps.interference import OnOff
from ptaskmodel.calibration.least_squares import Parameter, fit, standard_errors
from ptaskmodel.calibration.measurements import MeasuredGroup, Measurement, MeasurementError
from ptaskmodel.calibration.ptask import NOMINAL, PARAMETERS, Setting
from ptaskmodel.calibration.results import Fitter, GroupCalibration, Prediction, not_fitted
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.workload.amounts import FloatArray

DEFAULT_FIXED = {"compute_efficiency": 1.0}


def predicted_runtime(c1: float, c2: float, pattern: OnOff) -> float:
    """The date at which progress reaches 1, in s.

    c1, c2: disturbed and undisturbed progress rates, 1/s; > 0 wherever the pattern needs them.
    """
    _check(c1, c2)
    return float(predicted_runtimes(np.float64(c1), np.float64(c2), pattern))


def predicted_runtimes(
    c1: FloatArray | np.float64, c2: FloatArray | np.float64, pattern: OnOff
) -> FloatArray | np.float64:
    """The same for arrays of rates > 0 of one shape, the shape of what is returned."""
    if pattern.none or pattern.constant:
        return 1.0 / (c2 if pattern.none else c1)
    in_period = c1 * pattern.on_s + c2 * pattern.off_s
    whole = np.floor(1.0 / in_period)
    rest = 1.0 - whole * in_period
    whole, rest = np.where(rest <= 0.0, (whole - 1.0, rest + in_period), (whole, rest))
    slow = c1 * pattern.on_s
    tail_s = np.where(rest <= slow, rest / c1, pattern.on_s + (rest - slow) / c2)
    found: FloatArray = whole * pattern.period_s + tail_s
    return found


def progress(c1: float, c2: float, pattern: OnOff, dates_s: FloatArray) -> FloatArray:
    """The part of the work done at each date, at most 1; same shape as ``dates_s`` (s)."""
    _check(c1, c2)
    dates = np.asarray(dates_s, np.float64)
    if pattern.none or pattern.constant:
        return np.minimum(1.0, dates * (c2 if pattern.none else c1))
    whole = np.floor(dates / pattern.period_s)
    in_period = dates - whole * pattern.period_s
    on_s = whole * pattern.on_s + np.minimum(in_period, pattern.on_s)
    return np.minimum(1.0, c1 * on_s + c2 * (dates - on_s))


def _check(c1: float, c2: float) -> None:
    if not (0.0 < c1 < math.inf and 0.0 < c2 < math.inf):
        raise PTaskModelError(f"progress rates c1 = {c1}, c2 = {c2}; give finite numbers > 0 (1/s)")


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


def ptask_fitter(
    setting: Setting | Callable[[Mapping[str, str]], Setting],
    fixed: Mapping[str, float] = DEFAULT_FIXED,
    model_error: float = 0.0,
    spread: float = 0.0,
) -> Fitter:
    """A fitter of ``network_efficiency``, ``compute_efficiency`` and ``competitors``.

    setting: where the application runs, for all groups or as a function of a group's labels;
    fixed: values of the parameters that are not to be fitted. By default computing is taken at its
    nominal speed: a bundled task shows one of the two efficiencies only, that of its bottleneck.
    model_error: as in ``rates_fitter``; spread: as in ``leastsquares.fit`` (the search starts from
    the rates of progress, which for a bundled task are all but the answer).
    """
    strangers = sorted(set(fixed) - set(PARAMETERS))
    if strangers:
        raise MeasurementError(
            f"unknown parameter {strangers[0]!r} to fix; use one of {', '.join(PARAMETERS)}"
        )
    free = [name for name in PARAMETERS if name not in fixed]

    def fit_group(group: MeasuredGroup, used: Sequence[bool]) -> GroupCalibration:
        place = setting if isinstance(setting, Setting) else setting(group.labels)
        chosen = [
            row
            for row, taken in zip(group.measurements, used, strict=True)
            if taken and row.runtime_s is not None
        ]
        if not _determined(chosen, free):
            return not_fitted(
                group,
                f"too few rows with and without interference to fit {' and '.join(free)}",
            )
        return _fit_ptask_group(group, used, chosen, place.merged(), fixed, (model_error, spread))

    return fit_group


def _determined(rows: Sequence[Measurement], free: Sequence[str]) -> bool:
    """Whether there are as many different cases as parameters, and if needed both kinds."""
    cases = {(row.pattern, 0.0 if row.pattern.none else row.competitors) for row in rows}
    kinds = {case[0].share for case in cases}
    return bool(rows) and len(cases) >= len(free) and ("competitors" not in free or len(kinds) > 1)


def _fit_ptask_group(
    group: MeasuredGroup,
    used: Sequence[bool],
    chosen: Sequence[Measurement],
    setting: Setting,
    fixed: Mapping[str, float],
    error_and_spread: tuple[float, float],
) -> GroupCalibration:
    free = [name for name in PARAMETERS if name not in fixed]
    model_error, spread = error_and_spread

    def values(point: FloatArray) -> dict[str, float]:
        return dict(fixed) | {name: float(v) for name, v in zip(free, point, strict=True)}

    def predict(point: FloatArray) -> FloatArray:
        return setting.runtimes(values(point), chosen)

    start = _ptask_start(chosen, setting, free, fixed)
    measured = np.array([row.runtime_s for row in chosen], np.float64)
    best = fit(predict, start, measured, standard_errors(chosen, model_error), spread)
    if best.idle:
        names = " and ".join(free[number] for number in best.idle)
        kept = " ".join(f"--fix {free[number]}=VALUE" for number in best.idle)
        return not_fitted(
            group,
            f"no predicted runtime depends on {names}: does the interference meet the application "
            f"on its bottleneck? Correct --pair or amounts, or keep it: {kept}",
        )
    if best.tied:
        names = " and ".join(free[number] for number in best.tied)
        return not_fitted(
            group,
            f"the predicted runtimes depend on {names} only together; give rows that tell them "
            f"apart, or keep one: --fix {free[best.tied[0]]}=VALUE",
        )
    fitted = values(best.values)
    runtimes = setting.runtimes(fitted, group.measurements)
    predictions = tuple(
        Prediction(row, float(runtime_s), taken and row.runtime_s is not None)
        for row, runtime_s, taken in zip(group.measurements, runtimes, used, strict=True)
    )
    parameters = {
        name: best.parameter(free.index(name), unit)
        if name in free
        else Parameter(fixed[name], unit)
        for name, unit in PARAMETERS.items()
    }
    return GroupCalibration(
        group.labels, parameters, predictions, best.chi_square, best.degrees_of_freedom
    )


def _ptask_start(
    rows: Sequence[Measurement], setting: Setting, free: Sequence[str], fixed: Mapping[str, float]
) -> list[float]:
    """A first guess: the rates of progress of these rows, as the parameters of a bundled task."""
    alone = Measurement(OnOff(0.0, 0.0), None)
    (nominal_s,) = setting.runtimes({**NOMINAL, **fixed}, [alone])
    slow, fast, competitors = _disturbed_and_not(rows)
    kept = min(0.98, max(0.02, slow / fast))
    guess = {
        "network_efficiency": nominal_s * fast,
        "compute_efficiency": 1.0,
        "competitors": competitors * kept / (1.0 - kept),
    }
    return [guess[name] for name in free]


def _disturbed_and_not(rows: Sequence[Measurement]) -> tuple[float, float, float]:
    """(c1, c2, w): rates of progress in 1/s under w competitors and under none, about."""
    group = MeasuredGroup({}, tuple(rows))
    fitted = rates_fitter()(group, [True] * len(rows))
    stormy = max(rows, key=lambda row: row.pattern.share * row.competitors)
    if fitted.parameters:
        return fitted.value("c1"), fitted.value("c2"), stormy.competitors
    calm = min(rows, key=lambda row: row.pattern.share)
    return 1.0 / float(stormy.runtime_s or 1), 1.0 / float(calm.runtime_s or 1), stormy.competitors
