"""One run of the PDGEMM study: a placement of the plain task, a fit, what time scales or more
competitors do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pdgemm_study.follow_up import follow_up
from pdgemm_study.tables import fitted, placement_rows, time_scale_table, with_competitors

from ptaskmodel.calibration.measurements import MeasuredGroup, read_measurements
from ptaskmodel.calibration.results import is_endpoint
from ptaskmodel.calibration.run import to_json

RUNTIMES, CONNECTIONS = "pdgemm_runtimes.csv", "pdgemm_tcp_connections.csv"
Found = tuple[Iterable[float], Any]


def placement(parameters: Mapping[str, Any], groups: list[MeasuredGroup]) -> Found:
    """The plain task, against a third of the rate while disturbed."""
    rows = placement_rows(parameters["placement"])
    return [row["simulated_s"] / row["closed_form_s"] - 1 for row in rows], rows


def fit(parameters: Mapping[str, Any], groups: list[MeasuredGroup]) -> Found:
    """A model of the first experiment, against what was measured between the endpoints."""
    found = fitted(groups, parameters["model"], parameters["fit_on"])
    between = [row for row in found.predictions if not is_endpoint(row.measurement.pattern)]
    errors = [row.relative_error for row in between if row.relative_error is not None]
    return errors, to_json(found)


def time_scales(parameters: Mapping[str, Any], groups: list[MeasuredGroup]) -> Found:
    """From one bundled task to one phase an iteration."""
    rows = time_scale_table(groups).to_dict("records")
    return [row["mean_error"] for row in rows], rows


def more_competitors(parameters: Mapping[str, Any], groups: list[MeasuredGroup]) -> Found:
    """The follow-up, predicted from the first experiment, and each half of it from the other."""
    first = fitted(groups, "ptask", "endpoints")
    found = follow_up(first, Path(parameters["measurements"]) / CONNECTIONS)
    told = [
        {
            "cluster": one.cluster,
            "runs": one.runs.to_dict("list"),
            "first_only_error": one.first_only_error,
            "half_errors": one.half_errors,
        }
        for one in found
    ]
    return [one.first_only_error for one in found], told


PARTS: dict[str, Callable[[Mapping[str, Any], list[MeasuredGroup]], Found]] = {
    "placement": placement,
    "fit": fit,
    "time scales": time_scales,
    "follow-up": more_competitors,
}


def one_run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The mean and the largest size of the errors of a part, and its rows.

    parameters: part; measurements, the directory of the measured tables; for a placement, its
    number; for a fit, the model and what it is fitted on.
    """
    groups = with_competitors(read_measurements(Path(parameters["measurements"]) / RUNTIMES))
    errors, series = PARTS[parameters["part"]](parameters, groups)
    sizes = [abs(error) for error in errors if not math.isnan(error)]
    return {
        "mean_error": math.fsum(sizes) / len(sizes),
        "largest_error": max(sizes),
        "series": series,
    }
