"""A calibration as text and as a figure: parameters with uncertainty, predictions, measurements.

Notebooks show the same numbers. Colours are those of Okabe and Ito (2008), which colour-blind
readers can distinguish.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ptaskmodel.calibration.results import (
    Calibration,
    ErrorSummary,
    GroupCalibration,
    Prediction,
    summarise,
)

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, RED, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#8A8A8A"
STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "font.size": 9,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.dpi": 100,
    "savefig.dpi": 150,
}


def parameter_table(calibration: Calibration) -> pandas.DataFrame:
    """One row a group and parameter: labels, value, stderr, low and high ends of 95 %, unit."""
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
    """One row a measurement: labels, pattern, measured, predicted, residual (s), error, use."""
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
    """The whole report. left_out: predictions by fits that did not see the row's pattern."""
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


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """A drawing function that runs in the style of calibrations."""

    @functools.wraps(draw)
    def in_style(*arguments: Any, **options: Any) -> Figure:
        import matplotlib as mpl

        with mpl.rc_context(STYLE):
            return draw(*arguments, **options)

    return in_style


def subplots(*shape: int, size: tuple[float, float], **options: Any) -> tuple[Figure, Any]:
    """A figure and its axes (always a two-dimensional array) in the style of calibrations."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        return figure, figure.subplots(*shape, squeeze=False, **options)
