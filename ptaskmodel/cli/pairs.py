"""KEY=VALUE arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptaskmodel.errors import SimulationError


def pairs(given: tuple[str, ...], option: str, convert: Callable[[str], Any]) -> dict[str, Any]:
    """KEY=VALUE arguments of an option as a dictionary; SimulationError for others."""
    found = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not key or not value:
            raise SimulationError(f"{option}: '{text}' is not KEY=VALUE")
        found[key] = convert(value)
    return found


def number_or_text(text: str) -> int | float | str:
    """A value as what it looks like."""
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text
