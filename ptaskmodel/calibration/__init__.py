"""Calibration: fit parameters of a model to measured run times, with uncertainty, and predict."""

from ptaskmodel.lazy import face

NAMES = {
    "ptaskmodel.calibration.file": (
        "apply",
        "apply_to_jobs",
        "read_calibration",
        "write_calibration",
    ),
    "ptaskmodel.calibration.fits": ("rates_fitter",),
    "ptaskmodel.calibration.least_squares": ("Parameter",),
    "ptaskmodel.calibration.measurements": (
        "MeasuredGroup",
        "Measurement",
        "MeasurementError",
        "read_measurements",
    ),
    "ptaskmodel.calibration.reporting": (
        "parameter_table",
        "prediction_table",
        "report",
    ),
    "ptaskmodel.calibration.results": (
        "Calibration",
        "GroupCalibration",
        "Prediction",
        "calibrate",
        "leave_one_pattern_out",
        "parse_labels",
        "summarise",
    ),
    "ptaskmodel.calibration.run": (
        "CalibrationOptions",
        "CalibrationRun",
        "calibrate_file",
    ),
    "ptaskmodel.calibration.wire": ("WireFit", "fit_wire"),
}

__all__, __getattr__, __dir__ = face(__name__, NAMES)
