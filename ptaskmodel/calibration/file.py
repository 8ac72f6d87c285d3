"""The JSON file of a calibration: write it, read and check it, and apply it to tasks and jobs.

Applying it divides the amounts of the calibrated application by its efficiencies.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import msgspec

from ptaskmodel.apps.interference import OnOff
from ptaskmodel.calibration.least_squares import Parameter
from ptaskmodel.calibration.measurements import Measurement, MeasurementError
from ptaskmodel.calibration.results import Calibration, GroupCalibration, Prediction
from ptaskmodel.files import AnyPath, read_bytes, write_json
from ptaskmodel.remarks import Account, reader
from ptaskmodel.workload.jobs import Workload
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import Work

if TYPE_CHECKING:
    from ptaskmodel.platform import Platform


FORMAT_VERSION = 1
# Of a parallel task.
PARAMETERS = ("network_efficiency", "compute_efficiency", "competitors")

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


@reader(MeasurementError)
def read_calibration(path: AnyPath, account: Account) -> Calibration:
    """A calibration from its JSON file, the one at a path; account: of the file.

    Raises MeasurementError (file, what is wrong, where).
    """
    content = read_bytes(path, error=MeasurementError)
    try:
        version = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise MeasurementError(f"{path}: cannot be read as a calibration: {error}") from None
    if not isinstance(version, dict) or version.get("version") != FORMAT_VERSION:
        raise MeasurementError(
            f"{path}: /version is not {FORMAT_VERSION}; write the file again by `calibrate`"
        )
    try:
        return from_json(version)
    except (msgspec.ValidationError, ValueError) as error:
        raise MeasurementError(
            f"{path}: is not a calibration: {error}; write it by `calibrate`"
        ) from None


def from_json(document: Any) -> Calibration:
    """A calibration from what `to_json` made. Raises msgspec.ValidationError, ValueError."""
    data = msgspec.convert(document, _File)
    groups = tuple(_group_from_json(group) for group in data["groups"])
    return Calibration(data["model"], data["fit_on"], data["source"], groups)


def parameter_json(parameter: Parameter) -> dict[str, Any]:
    """Return a `parameter` as a JSON object; an end of its interval that is infinite is null."""
    ends = parameter.interval95
    return {
        "value": parameter.value,
        "stderr": parameter.stderr,
        "unit": parameter.unit,
        "interval95": None if ends is None else tuple(map(_finite, ends)),
    }


def _group_json(group: GroupCalibration) -> dict[str, Any]:
    return {
        "labels": dict(group.labels),
        "note": group.note,
        "chi_square": group.chi_square,
        "degrees_of_freedom": group.degrees_of_freedom,
        "parameters": {
            name: parameter_json(parameter) for name, parameter in group.parameters.items()
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


def apply(
    calibration: Calibration | str | Path,
    platform: Platform,
    tasks: Iterable[Task],
    group: Mapping[str, str] | None = None,
) -> tuple[Platform, list[Task]]:
    """The platform and the tasks as the calibration sees them.

    Tasks without ``competitors`` are runs of the calibrated application: their flops are divided
    by its compute efficiency, their bytes by its network efficiency, and they compete as its
    number of competitors. Tasks with ``competitors`` are interference and stay as they are, and so
    does the platform: an efficiency is a fact about the application, and dividing its amounts is
    the same as multiplying what it gets.

    calibration: an object or a file written by ``ptaskmodel calibrate --model ptask``; group: the
    labels that choose one of its groups (not needed if it has one).
    Raises MeasurementError for a calibration of rates or an ambiguous group.
    """
    network, compute, competitors = _parameters(calibration, group)
    calibrated = []
    for task in tasks:
        if task.competitors is None:
            work = task.work.divided(compute, network)
            task = dataclasses.replace(task, work=work, competitors=competitors)
        calibrated.append(task)
    return platform, calibrated


def apply_to_jobs(
    calibration: Calibration | str | Path,
    workload: Workload,
    group: Mapping[str, str] | None = None,
) -> Workload:
    """The workload as the calibration sees it, with a note of how many jobs it changed.

    Jobs that are parallel tasks, without ``competitors``, are runs of the calibrated application
    (see `apply`); delays, and jobs with ``competitors``, stay as they are.

    Raises MeasurementError as `apply` does, and if no job is one; WorkloadError for traces.
    """
    network, compute, competitors = _parameters(calibration, group)
    works: dict[int, Work] = {}
    jobs, changed = [], 0
    others = {job.profile for job in workload.jobs if job.competitors is not None}
    for job in workload.jobs:
        if job.competitors is None and job.work.duration_s is None:
            work = works.get(id(job.work))
            if work is None:
                work = works[id(job.work)] = job.work.divided(compute, network)
            name = f"{job.profile}@calibrated" if job.profile in others else job.profile
            job = dataclasses.replace(job, work=work, profile=name, competitors=competitors)
            changed += 1
        jobs.append(job)
    if not changed:
        raise MeasurementError(
            "calibration: no job of the workload is a parallel task without competitors (delays "
            "stay unchanged), so it has no effect; leave it out"
        )
    note = f"calibrated {changed} jobs: each counts as {competitors:.4g} competitors"
    return workload.with_jobs(tuple(jobs), note)


def _parameters(
    calibration: Calibration | str | Path, group: Mapping[str, str] | None
) -> tuple[float, float, float]:
    """The efficiencies of network and compute, and how many competitors it counts for."""
    found = calibration if isinstance(calibration, Calibration) else read_calibration(calibration)
    chosen = found.group(**dict(group or {}))
    missing = [name for name in PARAMETERS if name not in chosen.parameters]
    if found.model != "ptask" or missing:
        raise MeasurementError(
            f"calibration of {chosen.name}: model {found.model!r} has no parameters for "
            "parallel tasks "
            f"({', '.join(missing) or 'it is another model'}); calibrate with --model ptask"
        )
    network, compute, competitors = map(chosen.value, PARAMETERS)
    return network, compute, competitors
