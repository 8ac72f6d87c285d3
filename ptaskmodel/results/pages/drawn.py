"""Cells with marks on a line, and cumulative curves of several runs, as the scripts draw them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptaskmodel.results.comparison.metrics import NUMBER, TIME
from ptaskmodel.results.comparison.repetitions import Curve
from ptaskmodel.style.colours import SIGNS
from ptaskmodel.style.quantities import number

# Of a mark: from, to (None: a sign stands there), role, sign or thickness, how far down; 0 to 1.
Mark = tuple[float, float | None, str, str, float]
MIDDLE = 0.5


def role_of(k: int) -> str:
    """Return the role of the run of number `k`: the others are compared with that of 0."""
    return f"category-{k - 1}" if 0 < k <= len(SIGNS) else "soft"


def sign_of(k: int) -> str:
    """Return the sign of the run of number `k`; those of more runs than there are signs repeat."""
    return SIGNS[k % len(SIGNS)]


def cell(
    text: str, marks: Sequence[Mark], label: str = "", value: float | None = None
) -> dict[str, Any]:
    """Return a cell of kind "drawn".

    text: what it says, for those who hear it. marks: on its line. label: what is written above the
    line. value: by which rows are sorted.
    """
    return {"text": text, "marks": [list(mark) for mark in marks], "label": label, "value": value}


def axis(level: float = MIDDLE) -> Mark:
    """Return the line that marks stand on; level: how far down."""
    return (0.0, 1.0, "line", "axis", level)


def cumulative_chart(
    label: str, kind: str, of_runs: Sequence[Curve], joined: bool = False
) -> dict[str, Any]:
    """Return cumulative curves of runs, with the range over those that differ by their seed.

    label: what of. kind: of its values, `TIME` or `NUMBER`. of_runs: one or more; the others are
    compared with the first. joined: by straight lines, as there are few points; else by steps.
    """
    series: list[dict[str, Any]] = []
    for k, curve in enumerate(of_runs):
        points = zip(curve.middle.tolist(), curve.parts.tolist(), strict=True)
        one = {"name": curve.name, "role": role_of(k), "dashed": not k, "sign": sign_of(k),
               "at": [[_short(value), _short(part)] for value, part in points]}  # fmt: skip
        if curve.runs > 1:
            rows = np.column_stack([curve.low, curve.high, curve.parts]).tolist()
            one["reach"] = [[_short(value) for value in row] for row in rows]
        series.append(one)
    half, high = (
        ", ".join(f"{curve.name} {number(level, kind)}" for curve, level in levels)
        for levels in ([(c, c.half) for c in of_runs], [(c, c.most) for c in of_runs])
    )
    sentence = f"{label[0].upper()}{label[1:]}. Half at most: {half}; 95 %: {high}."
    note = "Areas: the range over seeds." if any(curve.runs > 1 for curve in of_runs) else ""
    least, most = {TIME: (1.0, 86400.0), NUMBER: (1.0, 10.0)}[kind]
    return {"chart": "cumulative", "axis": kind, "label": label, "sentence": sentence, "note": note,
            "from": least, "to": most, "joined": joined, "series": series}  # fmt: skip


def _short(value: float) -> float:
    return float(f"{value:.6g}")
