"""Fit of the parallel task's own parameters, so that the simulation predicts the measured runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ptaskmodel.apps.interference import OnOff
from ptaskmodel.calibration.leastsquares import Parameter, fit, standard_errors
from ptaskmodel.calibration.measurements import MeasuredGroup, Measurement, MeasurementError
from ptaskmodel.calibration.ptask import NOMINAL, PARAMETERS, Setting
from ptaskmodel.calibration.results import Fitter, GroupCalibration, Prediction, not_fitted
from ptaskmodel.workload.tasks import FloatArray

DEFAULT_FIXED = {"compute_efficiency": 1.0}


def ptask_fitter(
    setting: Setting | Callable[[Mapping[str, str]], Setting],
    fixed: Mapping[str, float] = DEFAULT_FIXED,
    model_error: float = 0.0,
) -> Fitter:
    """A fitter of ``network_efficiency``, ``compute_efficiency`` and ``competitors``.

    setting: where the application runs, for all groups or as a function of a group's labels;
    fixed: values of the parameters that are not to be fitted. By default computing is taken at its
    nominal speed: a bundled task shows one of the two efficiencies only, that of its bottleneck.
    model_error: as in ``rates_fitter``.
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
        return _fit_group(group, used, chosen, place.merged(), free, fixed, model_error)

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
    free: Sequence[str],
    fixed: Mapping[str, float],
    model_error: float,
) -> GroupCalibration:
    def values(point: FloatArray) -> dict[str, float]:
        return dict(fixed) | {name: float(v) for name, v in zip(free, point, strict=True)}

    def predict(point: FloatArray) -> FloatArray:
        return setting.runtimes(values(point), chosen)

    start = _start(chosen, setting, free, fixed)
    measured = np.array([row.runtime_s for row in chosen], np.float64)
    best = fit(predict, start, measured, standard_errors(chosen, model_error))
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
    """A first guess: the nominal run against the least disturbed one, and the slowdown's share."""
    calm = min(rows, key=lambda row: row.pattern.share)
    stormy = max(rows, key=lambda row: row.pattern.share * row.competitors)
    (nominal_s,) = setting.runtimes({**NOMINAL, **fixed}, [Measurement(OnOff(0.0, 0.0), None)])
    calm_s, stormy_s = float(calm.runtime_s or 0.0), float(stormy.runtime_s or 0.0)
    kept = min(0.98, max(0.02, calm_s / stormy_s))
    share = max(stormy.pattern.share, 0.1)
    kept_while_on = min(0.98, max(0.02, (kept - (1.0 - share)) / share))
    guess = {
        "network_efficiency": nominal_s / calm_s,
        "compute_efficiency": 1.0,
        "competitors": stormy.competitors * kept_while_on / (1.0 - kept_while_on),
    }
    return [guess[name] for name in free]
