"""The solvers by name, and what each of them gives, in a line."""

from __future__ import annotations

from collections.abc import Mapping

SOLVERS: Mapping[str, str] = {
    "bmf": "bottleneck max fairness",
    "fairbottleneck": "SimGrid's numbers, quirks included",
    "fairbottleneck-corrected": "the same without its double charging",
    "maxmin": "weighted max-min",
}
