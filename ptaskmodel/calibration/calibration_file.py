"""The file of a calibration: JSON, checked when it is read."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec

from ptaskmodel.apps.interference import OnOff
from ptaskmodel.calibration.leastsquares import Parameter
from ptaskmodel.calibration.measurements import Measurement, MeasurementError
from ptaskmodel.calibration.results import Calibration, GroupCalibration, Prediction
from ptaskmodel.files import read_bytes, write_json

FORMAT_VERSION = 1

Positive = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]


class _Parameter(TypedDict):
    value: Positive
    stderr: float | None
    unit: str
    interval95: tuple[float, float] | None


class _Prediction(TypedDict):
    interference_on_s: NotNegative | Literal["inf"] | None
    interference_off_s: NotNegative
    competitors: Positive
    runs: Annotated[int, msgspec.Meta(ge=1)]
    measured_s: Positive | None
    stddev_s: NotNegative | None
    predicted_s: float | None
    relative_error: float | None
    used_in_fit: bool


class _Group(TypedDict):
    labels: dict[str, str]
    note: str | None
    chi_square: float | None
    degrees_of_freedom: int | None
    parameters: dict[str, _Parameter]
    predictions: list[_Prediction]


class _File(TypedDict):
    version: int
    model: str
    fit_on: str
    source: str
    groups: Annotated[list[_Group], msgspec.Meta(min_length=1)]


def to_json(calibration: Calibration) -> dict[str, Any]:
    """A calibration as plain data; None: a duration that never ends."""
    return {
        "version": FORMAT_VERSION,
        "model": calibration.model,
        "fit_on": calibration.fit_on,
        "source": calibration.source,
        "groups": [_group_json(group) for group in calibration.groups],
    }


def write_calibration(calibration: Calibration, path: str | Path) -> None:
    """Write a calibration as JSON; the file appears whole or not at all."""
    write_json(path, to_json(calibration), error=MeasurementError)


def read_calibration(path: str | Path) -> Calibration:
    """A calibration from its JSON file. Raises MeasurementError (file, what is wrong, where)."""
    content = read_bytes(path, error=MeasurementError)
    try:
        version = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise MeasurementError(f"{path}: cannot be read as a calibration: {error}") from None
    if not isinstance(version, dict) or version.get("version") != FORMAT_VERSION:
        raise MeasurementError(
            f"{path}: /version must be {FORMAT_VERSION}; write it by `calibrate`"
        )
    try:
        return from_json(version)
    except (msgspec.ValidationError, ValueError) as error:
        raise MeasurementError(
            f"{path}: not a calibration: {error}; write it by `calibrate`"
        ) from None


def from_json(document: Any) -> Calibration:
    """A calibration from what `to_json` made. Raises msgspec.ValidationError, ValueError."""
    data = msgspec.convert(document, _File)
    groups = tuple(_group_from_json(group) for group in data["groups"])
    return Calibration(data["model"], data["fit_on"], data["source"], groups)


def _group_json(group: GroupCalibration) -> dict[str, Any]:
    return {
        "labels": dict(group.labels),
        "note": group.note,
        "chi_square": group.chi_square,
        "degrees_of_freedom": group.degrees_of_freedom,
        "parameters": {
            name: {
                "value": parameter.value,
                "stderr": parameter.stderr,
                "unit": parameter.unit,
                "interval95": parameter.interval95,
            }
            for name, parameter in group.parameters.items()
        },
        "predictions": [
            {
                "interference_on_s": _finite(row.measurement.pattern.on_s),
                "interference_off_s": row.measurement.pattern.off_s,
                "competitors": row.measurement.competitors,
                "runs": row.measurement.runs,
                "measured_s": row.measurement.runtime_s,
                "stddev_s": row.measurement.stddev_s,
                "predicted_s": row.predicted_s,
                "relative_error": row.relative_error,
                "used_in_fit": row.used_in_fit,
            }
            for row in group.predictions
        ],
    }


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else value


def _duration_s(value: float | str | None) -> float:
    """Of a file; earlier ones say "inf" of what never ends."""
    return math.inf if value is None or isinstance(value, str) else value


def _group_from_json(data: _Group) -> GroupCalibration:
    parameters = {
        name: Parameter(item["value"], item["unit"], item["stderr"], item["interval95"])
        for name, item in data["parameters"].items()
    }
    predictions = tuple(
        Prediction(
            Measurement(
                OnOff(_duration_s(row["interference_on_s"]), row["interference_off_s"]),
                row["measured_s"],
                row["stddev_s"],
                row["runs"],
                row["competitors"],
            ),
            row["predicted_s"],
            row["used_in_fit"],
        )
        for row in data["predictions"]
    )
    return GroupCalibration(
        data["labels"],
        parameters,
        predictions,
        data["chi_square"],
        data["degrees_of_freedom"],
        data["note"],
    )
