"""Measurements become parameters with uncertainty, and parameters become predictions."""

from ptaskmodel.calibration.apply import apply
from ptaskmodel.calibration.fit_rates import rates_fitter
from ptaskmodel.calibration.leastsquares import Parameter
from ptaskmodel.calibration.measurements import (
    MeasuredGroup,
    Measurement,
    MeasurementError,
    read_measurements,
)
from ptaskmodel.calibration.report import parameter_table, prediction_table, report
from ptaskmodel.calibration.results import (
    Calibration,
    GroupCalibration,
    Prediction,
    calibrate,
    leave_one_pattern_out,
    parse_labels,
    read_calibration,
    summarise,
    write_calibration,
)

__all__ = [
    "Calibration",
    "GroupCalibration",
    "MeasuredGroup",
    "Measurement",
    "MeasurementError",
    "Parameter",
    "Prediction",
    "apply",
    "calibrate",
    "leave_one_pattern_out",
    "parameter_table",
    "parse_labels",
    "prediction_table",
    "rates_fitter",
    "read_calibration",
    "read_measurements",
    "report",
    "summarise",
    "write_calibration",
]
