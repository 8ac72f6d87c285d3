"""Results of a calibration, by group: as data and as text."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptaskmodel.apps.interference import OnOff
from ptaskmodel.calibration.measurements import (
    MeasuredGroup,
    Measurement,
    MeasurementError,
    Parameter,
)

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

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
                f"calibration group {asked}: {len(found)} groups match; give one of {names}"
            )
        return found[0]


def summarise(predictions: Iterable[Prediction], used_in_fit: bool | None = None) -> ErrorSummary:
    """Return the errors of the predictions that can be compared.

    used_in_fit: only those that were (True), or were not (False), used in the fit; None: all.
    """
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
    """Fit each of ``groups`` on its ``endpoints`` (no and constant interference) or ``all`` rows.

    fitter: fits one group to the rows that it is given. model: name of what it fits. fit_on: which
    rows. source: where the measurements come from, for the reader of the result. Raises
    MeasurementError for another ``fit_on``, or if no group can be fitted.
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
            f"{source or 'measurements'}: no group can be fitted; {fitted[0].name}: "
            f"{fitted[0].note}"
        )
    return Calibration(model, fit_on, source, tuple(fitted))


def leave_one_pattern_out(groups: Sequence[MeasuredGroup], fitter: Fitter) -> list[Prediction]:
    """Predict each measurement of ``groups`` by a fit that saw no run of its pattern.

    Those are left out of which the other patterns do not determine the model. fitter: as of
    `calibrate`.
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


def parameter_table(calibration: Calibration) -> pandas.DataFrame:
    """Return a table of a calibration, with a row for each group and parameter.

    Columns: the labels of the group, parameter, value, stderr, the ends of its 95 % interval, unit.
    """
    import pandas as pd

    rows = []
    for group in calibration.groups:
        for name, parameter in group.parameters.items():
            low, high = parameter.interval95 or (None, None)
            rows.append(
                {
                    **group.labels,
                    "parameter": name,
                    "value": parameter.value,
                    "stderr": parameter.stderr,
                    "low95": low,
                    "high95": high,
                    "unit": parameter.unit,
                }
            )
    return pd.DataFrame(rows)


def prediction_table(calibration: Calibration) -> pandas.DataFrame:
    """Return a table of a calibration, with a row for each measurement.

    Columns: the labels of the group, pattern, competitors, measured_s, stddev_s, predicted_s,
    residual_s, relative_error, used_in_fit.
    """
    import pandas as pd

    return pd.DataFrame(
        [
            {
                **group.labels,
                "pattern": str(row.measurement.pattern),
                "competitors": row.measurement.competitors,
                "measured_s": row.measurement.runtime_s,
                "stddev_s": row.measurement.stddev_s,
                "predicted_s": row.predicted_s,
                "residual_s": row.residual_s,
                "relative_error": row.relative_error,
                "used_in_fit": row.used_in_fit,
            }
            for group in calibration.groups
            for row in group.predictions
        ]
    )


def report(calibration: Calibration, left_out: Sequence[Prediction] = ()) -> str:
    """Return the report on a calibration, as text.

    left_out: predictions by fits that did not see the row's pattern.
    """
    lines = [
        f"Model {calibration.model}, fitted on {calibration.fit_on}"
        + (f", from {calibration.source}" if calibration.source else ""),
    ]
    for group in calibration.groups:
        lines += ["", *_group_lines(group)]
    rows = calibration.predictions
    lines += ["", "Mean and largest absolute error"]
    lines.append(f"  rows used in the fit      {_errors(summarise(rows, used_in_fit=True))}")
    lines.append(f"  rows not used in the fit  {_errors(summarise(rows, used_in_fit=False))}")
    if left_out:
        lines.append(f"  each pattern left out     {_errors(summarise(left_out))}")
    return "\n".join(lines) + "\n"


def _errors(summary: ErrorSummary) -> str:
    if not summary.count:
        return "none"
    return f"{summary.mean:7.2%} {summary.largest:8.2%}   ({summary.count} rows)"


def _group_lines(group: GroupCalibration) -> list[str]:
    lines = [group.name]
    if group.note:
        lines.append(f"  {group.note}")
    for name, parameter in group.parameters.items():
        text = f"  {name:<22} {parameter.value:<12.6g}"
        if parameter.stderr is None or parameter.interval95 is None:
            text += " fixed"
        else:
            low, high = parameter.interval95
            text += f" +- {parameter.stderr:<10.2g} 95 %: {low:.5g} .. {high:.5g}"
        lines.append(f"{text}  {parameter.unit}")
    if group.degrees_of_freedom:
        lines.append(
            f"  chi square {group.chi_square:.3g}, {group.degrees_of_freedom} degrees of freedom"
        )
    lines.append("  pattern     competitors  measured s       predicted s    error  used")
    lines += [_prediction_line(row) for row in group.predictions]
    return lines


def _prediction_line(row: Prediction) -> str:
    measured = row.measurement.runtime_s
    spread = row.measurement.stddev_s
    seen = "did not end" if measured is None else f"{measured:.2f}"
    seen += "" if spread is None else f" +- {spread:.2f}"
    said = "-" if row.predicted_s is None else f"{row.predicted_s:.2f}"
    error = "" if row.relative_error is None else f"{row.relative_error:+.2%}"
    return (
        f"  {row.measurement.pattern!s:<11} {row.measurement.competitors:>11g}  {seen:<16}"
        f" {said:>11} {error:>8}  {'yes' if row.used_in_fit else 'no'}"
    )


class Picture:
    """A figure as a notebook shows it: a PNG of moderate size."""

    def __init__(self, figure: Figure, dpi: int = 80) -> None:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
        self._png = buffer.getvalue()

    def _repr_png_(self) -> bytes:
        return self._png
