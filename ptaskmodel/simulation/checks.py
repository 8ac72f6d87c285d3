"""What a caller of `Simulation` gives, checked: one line on what is wrong, and what to give."""

from __future__ import annotations

import math
from typing import Any

from ptaskmodel.errors import SimulationError, shown
from ptaskmodel.platform import Platform


def checked_platform(platform: Any) -> Platform:
    """A platform; SimulationError for anything else, such as the name of its file."""
    if not isinstance(platform, Platform):
        what = shown(platform) if isinstance(platform, str) else type(platform).__name__
        raise SimulationError(f"{what} is not a Platform: load_platform(FILE) gives one")
    return platform


def checked_amount(name: str, value: Any) -> float:
    """A finite number >= 0; SimulationError for anything else."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0.0 <= number < math.inf:
        raise SimulationError(f"{name} {value!r} is not a finite number >= 0")
    return number
