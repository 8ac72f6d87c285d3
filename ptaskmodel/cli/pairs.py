"""KEY=VALUE arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptaskmodel.errors import SimulationError
from ptaskmodel.units import UnitError, parse_time, split_float


def pairs(given: tuple[str, ...], option: str, convert: Callable[[str], Any]) -> dict[str, Any]:
    """KEY=VALUE arguments of an option as a dictionary; SimulationError for others."""
    found = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not key or not value:
            raise SimulationError(f"{option}: '{text}' is not KEY=VALUE")
        try:
            found[key] = convert(value)
        except UnitError as error:
            raise SimulationError(f"{option}: {key}: {error}") from None
    return found


def number_or_text(text: str) -> int | float | str:
    """A value as what it looks like."""
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def number_time_or_text(text: str) -> int | float | str:
    """The same; a number with a unit of time (``1h``) is that in seconds. Raises UnitError."""
    value = number_or_text(text)
    if isinstance(value, str):
        try:
            split_float(value)
        except UnitError:
            return value
        return parse_time(value)
    return value
