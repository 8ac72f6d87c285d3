"""Radicals of clusters and cabinets: "0-3,7" stands for 0, 1, 2, 3, 7."""

from __future__ import annotations

import re

from ptaskmodel import units
from ptaskmodel.platform.notes import short
from ptaskmodel.platform.reader.builder import MAX_HOSTS
from ptaskmodel.platform.reader.elements import Element, Source

_NUMBERS = re.compile(r"[+-]?\d+(-[+-]?\d+)?(,[+-]?\d+(-[+-]?\d+)?)*", re.ASCII)


def expand_radical(source: Source, element: Element) -> list[int]:
    """The integers of the ``radical`` attribute, in the order written.

    Raises PlatformError if it cannot be read, or holds nothing or too much.
    """
    text = element["radical"]
    radicals: list[int] = []
    for group in text.split(","):
        parts = group.split("-")
        try:
            bounds = [units.parse_integer(part) for part in parts]
        except units.UnitError as error:
            what = f"radical {short(text)}: {error}; write e.g. '0-15,20'"
            raise source.error(element, what) from None
        if len(bounds) > 2:
            what = f"radical {short(text)}: the group {short(group)} has more than two parts"
            raise source.error(element, f"{what}; write e.g. '0-15,20'")
        if bounds[-1] - bounds[0] + len(radicals) >= MAX_HOSTS:
            what = f"radical {short(text)} stands for more than {MAX_HOSTS} hosts; use fewer"
            raise source.error(element, what)
        radicals.extend(range(bounds[0], bounds[-1] + 1))
    if not radicals:
        raise source.error(element, f"radical {short(text)} stands for no host; write e.g. '0-15'")
    if not _NUMBERS.fullmatch(text):
        what = f"radical {short(text)} is read as {_read_as(text)}, as by SimGrid"
        source.hint(element, "number", f"{what}; write e.g. '0-15,20'")
    return radicals


def _read_as(text: str) -> str:
    groups = (group.split("-") for group in text.split(","))
    return short(",".join("-".join(str(units.parse_integer(each)) for each in g) for g in groups))
