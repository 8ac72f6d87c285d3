"""Results of a calibration: parameters and predictions by group."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ptaskmodel.apps.interference import OnOff
from ptaskmodel.calibration.least_squares import Parameter
from ptaskmodel.calibration.measurements import MeasuredGroup, Measurement, MeasurementError

MODELS = ("rates", "ptask")


@dataclass(frozen=True, slots=True)
class Prediction:
    """A measurement and what the calibrated model says of it (None where it cannot say)."""

    measurement: Measurement
    predicted_s: float | None
    used_in_fit: bool

    @property
    def residual_s(self) -> float | None:
        """predicted - measured, s."""
        if self.predicted_s is None or self.measurement.runtime_s is None:
            return None
        return self.predicted_s - self.measurement.runtime_s

    @property
    def relative_error(self) -> float | None:
        """(predicted - measured) / measured."""
        if self.predicted_s is None or self.measurement.runtime_s is None:
            return None
        return self.predicted_s / self.measurement.runtime_s - 1.0


@dataclass(frozen=True, slots=True)
class GroupCalibration:
    """The parameters of one group, and its measurements beside the predictions.

    ``parameters`` is empty, and ``note`` says why, if the group could not be fitted.
    """

    labels: Mapping[str, str]
    parameters: Mapping[str, Parameter]
    predictions: tuple[Prediction, ...]
    chi_square: float | None = None
    degrees_of_freedom: int | None = None
    note: str | None = None

    @property
    def name(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self.labels.items()) or "all rows"

    def value(self, parameter: str) -> float:
        return self.parameters[parameter].value


Fitter = Callable[[MeasuredGroup, Sequence[bool]], GroupCalibration]


@dataclass(frozen=True, slots=True)
class ErrorSummary:
    """Mean and largest absolute relative error over ``count`` predictions."""

    count: int
    mean: float
    largest: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """A model fitted to groups of measurements."""

    model: str
    fit_on: str
    source: str
    groups: tuple[GroupCalibration, ...]

    @property
    def predictions(self) -> list[Prediction]:
        return [row for group in self.groups for row in group.predictions]

    def group(self, **labels: str) -> GroupCalibration:
        """The one group with these labels. Raises MeasurementError if none or several match."""
        found = [
            group
            for group in self.groups
            if all(group.labels.get(key) == value for key, value in labels.items())
        ]
        if len(found) != 1:
            asked = ",".join(f"{key}={value}" for key, value in labels.items()) or "(none named)"
            names = "; ".join(group.name for group in self.groups)
            raise MeasurementError(
                f"calibration group {asked}: {len(found)} groups match; name one of: {names}"
            )
        return found[0]


def summarise(predictions: Iterable[Prediction], used_in_fit: bool | None = None) -> ErrorSummary:
    """Errors of the predictions that can be compared: all, or those (not) used in the fit."""
    errors = [
        abs(row.relative_error)
        for row in predictions
        if row.relative_error is not None and used_in_fit in (None, row.used_in_fit)
    ]
    if not errors:
        return ErrorSummary(0, math.nan, math.nan)
    return ErrorSummary(len(errors), sum(errors) / len(errors), max(errors))


def is_endpoint(pattern: OnOff) -> bool:
    """Whether a pattern is one of the two ends: no interference, or constant interference."""
    return pattern.none or pattern.constant


def calibrate(
    groups: Sequence[MeasuredGroup], fitter: Fitter, model: str, fit_on: str, source: str = ""
) -> Calibration:
    """Fit each group on its ``endpoints`` (no and constant interference) or on ``all`` rows.

    Raises MeasurementError for another ``fit_on``, or if no group can be fitted.
    """
    if fit_on not in ("endpoints", "all"):
        raise MeasurementError(f"unknown fit-on {fit_on!r}; use endpoints or all")
    fitted = []
    for group in groups:
        rows = group.measurements
        used = [fit_on == "all" or is_endpoint(row.pattern) for row in rows]
        fitted.append(fitter(group, used))
    if not any(group.parameters for group in fitted):
        raise MeasurementError(
            f"{source or 'measurements'}: nothing can be fitted; {fitted[0].name}: {fitted[0].note}"
        )
    return Calibration(model, fit_on, source, tuple(fitted))


def leave_one_pattern_out(groups: Sequence[MeasuredGroup], fitter: Fitter) -> list[Prediction]:
    """Every measurement predicted by a fit that saw no run of its pattern.

    Left out where the other patterns do not determine the model.
    """
    predictions = []
    for group in groups:
        for held in dict.fromkeys(row.pattern for row in group.measured):
            used = [row.pattern != held for row in group.measurements]
            fitted = fitter(group, used)
            predictions += [
                row
                for row in fitted.predictions
                if row.measurement.pattern == held and row.relative_error is not None
            ]
    return predictions


def not_fitted(group: MeasuredGroup, why: str) -> GroupCalibration:
    """A group without parameters, and the reason."""
    rows = tuple(Prediction(row, None, False) for row in group.measurements)
    return GroupCalibration(group.labels, {}, rows, note=why)


def parse_labels(text: str) -> dict[str, str]:
    """Labels from ``name=value,name=value``; none from an empty text. Raises MeasurementError."""
    labels = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not (name and equals):
            raise MeasurementError(f"labels {text!r}; give LABEL=VALUE,LABEL=VALUE")
        labels[name.strip()] = value.strip()
    return labels
