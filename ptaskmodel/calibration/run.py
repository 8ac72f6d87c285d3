"""Run a whole calibration from a file of measurements; write, read and apply its JSON file.

Applying it divides the amounts of the calibrated application by its efficiencies.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import msgspec

from ptaskmodel.apps.interference import OnOff
from ptaskmodel.calibration.fits import (
    DEFAULT_FIXED,
    bundle_of_labels,
    ptask_fitter,
    rates_fitter,
    setting_from_files,
)
from ptaskmodel.calibration.measurements import (
    MeasuredGroup,
    Measurement,
    MeasurementError,
    Parameter,
    read_measurements,
)
from ptaskmodel.calibration.results import (
    Calibration,
    Fitter,
    GroupCalibration,
    Prediction,
    calibrate,
    leave_one_pattern_out,
    prediction_table,
)
from ptaskmodel.files import AnyPath, read_text, write_json
from ptaskmodel.remarks import Account, reader
from ptaskmodel.workload.jobs import Workload
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import Work

if TYPE_CHECKING:
    import pandas

    from ptaskmodel.platform import Platform


@dataclass(frozen=True, slots=True)
class CalibrationOptions:
    """How to calibrate; the names are those of the options of ``ptaskmodel calibrate``.

    fix: parameters of a ptask that stay at a value. platform, tasks, pair: files, and the two hosts
    between which the interference ran; without them the application is PDGEMM on two groups of
    nodes, or the ``part`` of it that was run.
    """

    model: str = "rates"
    fit_on: str = "all"
    competitors: str | None = None
    model_error: float = 0.0
    fix: Mapping[str, float] | None = None
    platform: Path | None = None
    tasks: Path | None = None
    pair: tuple[str, ...] | None = None
    part: float = 1.0


@dataclass(frozen=True, slots=True)
class CalibrationRun:
    """A calibration; left_out: each row predicted by a fit that saw no run of its pattern."""

    calibration: Calibration
    left_out: tuple[Prediction, ...]

    def __repr__(self) -> str:
        groups, rows = len(self.calibration.groups), len(self.calibration.predictions)
        return f"<CalibrationRun by {self.calibration.model}: {groups} groups, {rows} rows>"

    def frame(self) -> pandas.DataFrame:
        """One row a measurement, beside what the fit says of it (see `prediction_table`)."""
        return prediction_table(self.calibration)


def calibrate_file(
    measurements: str | Path,
    options: CalibrationOptions | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> CalibrationRun:
    """Fit a model of interference to measured runtimes.

    measurements: path of a CSV file (see `read_measurements`). options: None: the default ones.
    progress: called after each fit with the number of fits done and the total.

    Raises MeasurementError for a wrong file or option, or if no group can be fitted.
    """
    options = options or CalibrationOptions()
    if not 0.0 <= options.model_error < math.inf:
        raise MeasurementError(f"model error {options.model_error!r}; give a number from 0 to 1")
    groups = read_measurements(measurements, options.competitors)
    if options.model == "rates":
        fitter = _rates(options)
    else:
        fitter = _ptask(options)
    if progress is not None:
        patterns = [len({row.pattern for row in group.measured}) for group in groups]
        total = len(groups) + (sum(patterns) if options.fit_on == "all" else 0)
        fitter = _told(fitter, total, progress)
    found = calibrate(groups, fitter, options.model, options.fit_on, str(measurements))
    left_out = leave_one_pattern_out(groups, fitter) if options.fit_on == "all" else ()
    return CalibrationRun(found, tuple(left_out))


def _told(fitter: Fitter, total: int, progress: Callable[[int, int], object]) -> Fitter:
    done = itertools.count(1)

    def fit(group: MeasuredGroup, used: Sequence[bool]) -> GroupCalibration:
        found = fitter(group, used)
        progress(next(done), total)
        return found

    return fit


def _rates(options: CalibrationOptions) -> Fitter:
    if options.fix or options.platform or options.tasks or options.pair:
        raise MeasurementError("--fix, --platform, --tasks and --pair need --model ptask; give it")
    return rates_fitter(options.model_error)


def _ptask(options: CalibrationOptions) -> Fitter:
    fixed = DEFAULT_FIXED if not options.fix else options.fix
    platform, tasks, pair = options.platform, options.tasks, options.pair
    part, error = options.part, options.model_error
    if platform is None and tasks is None and pair is None:
        return ptask_fitter(lambda labels: bundle_of_labels(labels, part), fixed, error)
    if platform is None or tasks is None or pair is None:
        raise MeasurementError("--platform, --tasks and --pair go together; give all three")
    if part != 1.0:
        raise MeasurementError(
            "--part applies only to PDGEMM; leave it out with --platform and --tasks"
        )
    return ptask_fitter(setting_from_files(platform, tasks, pair), fixed, error)


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
    """Write a calibration to ``path`` as JSON; the file appears whole or not at all."""
    write_json(path, to_json(calibration), error=MeasurementError)


@reader(MeasurementError)
def read_calibration(path: AnyPath, account: Account) -> Calibration:
    """A calibration from its JSON file, the one at a path; account: of the file.

    Raises MeasurementError (file, what is wrong, where).
    """
    content = read_text(path, error=MeasurementError)
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
    (see `apply`); delays, and jobs with ``competitors``, stay as they are. group: labels of the
    group of the calibration whose parameters hold (None: it has one group).

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
