"""Fit of the parallel task's own parameters, so that the simulation predicts the measured runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ptaskmodel.apps.interference import OnOff
from ptaskmodel.calibration.fit_rates import rates_fitter
from ptaskmodel.calibration.leastsquares import Parameter, fit, standard_errors
from ptaskmodel.calibration.measurements import MeasuredGroup, Measurement, MeasurementError
from ptaskmodel.calibration.ptask import NOMINAL, PARAMETERS, Setting
from ptaskmodel.calibration.results import Fitter, GroupCalibration, Prediction, not_fitted
from ptaskmodel.workload.amounts import FloatArray

DEFAULT_FIXED = {"compute_efficiency": 1.0}


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
            f"unknown parameter {strangers[0]!r} to fix: use one of {', '.join(PARAMETERS)}"
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
        return _fit_group(group, used, chosen, place.merged(), fixed, (model_error, spread))

    return fit_group


def _determined(rows: Sequence[Measurement], free: Sequence[str]) -> bool:
    """Whether there are as many different cases as parameters, and if needed both kinds."""
    cases = {(row.pattern, 0.0 if row.pattern.none else row.competitors) for row in rows}
    kinds = {case[0].share for case in cases}
    return bool(rows) and len(cases) >= len(free) and ("competitors" not in free or len(kinds) > 1)


def _fit_group(
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

    start = _start(chosen, setting, free, fixed)
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
            f"the predicted runtimes depend on {names} only together: give rows that tell them "
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


def _start(
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
