"""Calibration: fit parameters of a model to measured run times, with uncertainty, and predict."""

from ptaskmodel.lazy import face

NAMES = {
    "ptaskmodel.calibration.fits": ("rates_fitter",),
    "ptaskmodel.calibration.measurements": (
        "MeasuredGroup",
        "Measurement",
        "MeasurementError",
        "Parameter",
        "read_measurements",
    ),
    "ptaskmodel.calibration.results": (
        "calibrate",
        "Calibration",
        "GroupCalibration",
        "leave_one_pattern_out",
        "parameter_table",
        "parse_labels",
        "Prediction",
        "prediction_table",
        "report",
        "summarise",
    ),
    "ptaskmodel.calibration.run": (
        "apply",
        "apply_to_jobs",
        "calibrate_file",
        "CalibrationOptions",
        "CalibrationRun",
        "read_calibration",
        "write_calibration",
    ),
    "ptaskmodel.calibration.wire": (
        "fit_wire",
        "WireFit",
    ),
}

__all__, __getattr__, __dir__ = face(__name__, NAMES)
