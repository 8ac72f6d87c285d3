"""Run a whole calibration from a file of measurements; the command line calls it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ptaskmodel.calibration.fits import (
    DEFAULT_FIXED,
    bundle_of_labels,
    ptask_fitter,
    rates_fitter,
    setting_from_files,
)
from ptaskmodel.calibration.measurements import MeasuredGroup, MeasurementError, read_measurements
from ptaskmodel.calibration.results import (
    Calibration,
    Fitter,
    GroupCalibration,
    Prediction,
    calibrate,
    leave_one_pattern_out,
    prediction_table,
)

if TYPE_CHECKING:
    import pandas


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
