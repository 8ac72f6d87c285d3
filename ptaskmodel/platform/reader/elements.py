"""One element of a platform file, and reading its attributes with errors that say where."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ptaskmodel import units
from ptaskmodel.errors import PlatformError
from ptaskmodel.platform.notes import Note, short

# Rates of real networks in Gbit/s: the same figure in gigabytes is suspect, except near a host.
_NETWORK_GBIT = frozenset({10.0, 25.0, 40.0, 56.0, 100.0, 200.0, 400.0})
# An eighth of such figures, in Gbit/s, was surely meant in gigabytes.
_EIGHTHS_GBIT = frozenset({0.125, 1.25, 12.5})
_LOCAL_RATES = frozenset({"loopback_bw", "limiter_link", "read_bw", "write_bw"})

MAX_NOTES = 1000
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")


class Element:
    """An XML element: tag, attributes (defaults filled in), line, children that belong to it."""

    __slots__ = ("attributes", "children", "line", "tag", "text")

    def __init__(self, tag: str, attributes: dict[str, str], line: int) -> None:
        self.tag = tag
        self.attributes = attributes
        self.line = line
        self.children: list[Element] = []
        self.text = ""

    def __getitem__(self, name: str) -> str:
        return self.attributes[name]

    def __str__(self) -> str:
        attributes = self.attributes
        if attributes.get("id"):
            return f"{self.tag} {short(attributes['id'])}"
        if "src" in attributes and "dst" in attributes:
            return f"{self.tag} {short(attributes['src'])} -> {short(attributes['dst'])}"
        return self.tag

    def of(self, tag: str) -> Iterator[Element]:
        """Its children of one tag."""
        return (child for child in self.children if child.tag == tag)


class Source:
    """The file being read: makes the errors, keeps the notes, converts attribute values.

    lines: whether errors name the line (the elements of a platform built in Python have none).
    """

    def __init__(self, path: Path, lines: bool = True) -> None:
        self.path = path
        self._lines = lines
        self.notes: list[Note] = []
        self.hints: list[Note] = []
        self._kinds: Counter[str] = Counter()

    def error(self, element: Element, what: str) -> PlatformError:
        """``file:line: element: what; remedy``, to be raised."""
        return self.error_at(element.line, f"{element}: {what}")

    def error_at(self, line: int, what: str) -> PlatformError:
        place = f"{self.path}:{line}" if self._lines else f"{self.path}"
        return PlatformError(f"{place}: {what}")

    def note(self, element: Element, kind: str, what: str) -> None:
        """Remember something odd; at most MAX_NOTES of a kind."""
        self._kinds[kind] += 1
        if self._kinds[kind] <= MAX_NOTES:
            self.notes.append(Note(element.line, kind, f"{element}: {what}"))

    def hint(self, element: Element, kind: str, what: str) -> None:
        """Remember something for whoever validates the file; at most MAX_NOTES in all."""
        if len(self.hints) < MAX_NOTES:
            self.hints.append(Note(element.line, kind, f"{element}: {what}"))

    def time_s(self, element: Element, name: str) -> float:
        return self._quantity(element, name, element[name], units.TIME_UNITS, "s")

    def bandwidth_Bps(self, element: Element, name: str) -> float:
        return self._quantity(element, name, element[name], units.BANDWIDTH_UNITS, "Bps")

    def bandwidths_Bps(self, element: Element, name: str) -> tuple[float, ...]:
        items = element[name].replace(";", ",").split(",")
        return tuple(
            self._quantity(element, name, item.strip(), units.BANDWIDTH_UNITS, "Bps")
            for item in items
        )

    def speeds_flops(self, element: Element, name: str) -> tuple[float, ...]:
        """One speed per pstate."""
        return tuple(
            self._quantity(element, name, item.strip(), units.SPEED_UNITS, "f")
            for item in element[name].split(",")
        )

    def number(self, element: Element, name: str) -> float:
        """A finite number without unit."""
        try:
            value, rest = units.split_float(element[name])
        except units.UnitError as error:
            raise self.error(element, f"{name}: {error}; give a number") from None
        if rest.strip() or not abs(value) < 1e300:
            raise self.error(element, f"{name}={short(element[name])}; give a finite number")
        return value

    def integer(self, element: Element, name: str, least: int) -> int:
        try:
            value = units.parse_integer(element[name])
        except units.UnitError as error:
            raise self.error(element, f"{name}: {error}; give an integer") from None
        if value < least:
            raise self.error(element, f"{name} is {value}; it must be at least {least}")
        if not _INTEGER.fullmatch(element[name]):
            what = f"{name}={short(element[name])} is read as {value}, as by SimGrid"
            self.hint(element, "number", f"{what}; write an integer")
        return value

    def coordinates(self, element: Element) -> tuple[float, float, float] | None:
        """The three numbers of Vivaldi, or None if not given."""
        if not element["coordinates"]:
            return None
        try:
            numbers = tuple(float(word) for word in element["coordinates"].split())
        except ValueError:
            numbers = ()
        if len(numbers) != 3 or not all(abs(number) < 1e300 for number in numbers):
            what = f"coordinates {short(element['coordinates'])}; give three numbers: 'x y z'"
            raise self.error(element, what)
        return (numbers[0], numbers[1], numbers[2])

    def _quantity(
        self, element: Element, name: str, text: str, known: dict[str, float], default: str
    ) -> float:
        try:
            value, bare = units.parse_quantity(text, known, default)
        except units.UnitError as error:
            raise self.error(element, f"{name}: {error}") from None
        if bare:
            self.note(element, "unit", f"{name}={text!r} has no unit; {default} is meant, write it")
        suspect = text.endswith("GBps") and value / 1e9 in _NETWORK_GBIT
        if suspect and name not in _LOCAL_RATES:
            what = f"{name}={text!r} are bytes; if a {text[:-3]}bps network is meant, write that"
            self.hint(element, "bits or bytes", what)
        if text.endswith("bps") and value * 8 / 1e9 in _EIGHTHS_GBIT:
            what = f"{name}={text!r} are bits; if bytes are meant, write {text[:-3]}Bps"
            self.hint(element, "bits or bytes", what)
        return value
