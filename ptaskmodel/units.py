"""Convert SimGrid quantities ("1.25GBps", "10us", "1Gf") to SI floats and back."""

from __future__ import annotations

import math
import re

_BLANKS = r"[ \t\n\v\f\r]*"
_FLOAT = re.compile(
    _BLANKS + r"([+-]?(?:0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?"
    r"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    r"|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?|[nN][aA][nN]))"
)
_INTEGER = re.compile(_BLANKS + r"([+-]?[0-9]+)")

TIME_UNITS = {
    "w": 7 * 24 * 3600.0,
    "d": 24 * 3600.0,
    "h": 3600.0,
    "m": 60.0,
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "ns": 1e-9,
    "ps": 1e-12,
}
_DECIMAL = "kMGTPEZY"
_DECIMAL_LONG = ("kilo", "mega", "giga", "tera", "peta", "exa", "zeta", "yotta")


def _scaled(unit: str, value: float, prefixes: str | tuple[str, ...], factor: float) -> dict:
    """{unit: value, prefix+unit: value * factor, ...}, by repeated products as SimGrid does."""
    units = {unit: value}
    for prefix in prefixes:
        value *= factor
        units[prefix + unit] = value
    return units


def _bytes_units(byte: str, bit: str) -> dict[str, float]:
    units: dict[str, float] = {}
    for unit, value in ((byte, 1.0), (bit, 0.125)):
        units |= _scaled(unit, value, _DECIMAL, 1000.0)
        units |= _scaled(unit, value, tuple(f"{p}i" for p in "KMGTPEZY"), 1024.0)
    return units


SPEED_UNITS = _scaled("f", 1.0, _DECIMAL, 1000.0) | _scaled("flops", 1.0, _DECIMAL_LONG, 1000.0)
BANDWIDTH_UNITS = _bytes_units("Bps", "bps")
SIZE_UNITS = _bytes_units("B", "b")


class UnitError(ValueError):
    """A quantity that cannot be read; its text says what is wrong and what would be right."""


def split_float(text: str) -> tuple[float, str]:
    """The C-style float that starts ``text``, and the rest. UnitError if there is none."""
    match = _FLOAT.match(text)
    if match is None:
        raise UnitError(f"{_shown(text)} does not start with a number")
    literal = match.group(1)
    try:
        value = float.fromhex(literal) if "x" in literal.lower() else float(literal)
    except OverflowError:
        value = math.inf
    if math.isinf(value) and "i" not in literal.lower():
        raise UnitError(f"{_shown(text)} is too large for a double")
    return value, text[match.end() :]


def parse_integer(text: str) -> int:
    """The integer that starts ``text``, as C's stoi: "2.9" is 2. UnitError if there is none."""
    match = _INTEGER.match(text)
    if match is None:
        raise UnitError(f"{_shown(text)} does not start with an integer")
    if len(match.group(1)) > 20 or abs(value := int(match.group(1))) > 2**63 - 1:
        raise UnitError(f"{_shown(text)} is too large for an integer")
    return value


def parse_quantity(text: str, units: dict[str, float], default: str) -> tuple[float, bool]:
    """Return a quantity such as "10Gbps" in SI units, and whether its unit was missing.

    text: a number and a unit, without a blank; finite and not negative. units: factors by unit
    name. default: the unit that a missing one means. Raises UnitError.
    """
    value, unit = split_float(text)
    bare = unit == ""
    scale = units.get(default if bare else unit)
    if scale is None:
        raise UnitError(_unknown_unit(text, unit, units))
    value *= scale
    if not math.isfinite(value):
        raise UnitError(f"{_shown(text)} is not a finite number")
    if value < 0:
        raise UnitError(f"{_shown(text)} is negative")
    return value, bare and value != 0


def parse_time(text: str) -> float:
    """Return a `text` such as "50us" in seconds (5e-5). Raises UnitError if it cannot be read."""
    return parse_quantity(text, TIME_UNITS, "s")[0]


def parse_speed(text: str) -> float:
    """Return a `text` such as "23.492Gf" in flop/s (2.3492e10). Raises UnitError."""
    return parse_quantity(text, SPEED_UNITS, "f")[0]


def parse_bandwidth(text: str) -> float:
    """Return a `text` such as "10Gbps" in bytes/s (1.25e9). Raises UnitError."""
    return parse_quantity(text, BANDWIDTH_UNITS, "Bps")[0]


def parse_size(text: str) -> float:
    """Return a `text` such as "64MiB" in bytes (67108864.0). Raises UnitError."""
    return parse_quantity(text, SIZE_UNITS, "B")[0]


def format_time(seconds: float, digits: int = 6) -> str:
    """Return `seconds` as a short text with at most so many `digits`: 2.5e-05 -> "25us"."""
    return _format(seconds, digits, {u: TIME_UNITS[u] for u in ("s", "ms", "us", "ns", "ps")})


def format_date(date_s: float) -> str:
    """Return the time `date_s` of a run as a text: 12.5 -> "12.5 s", 94925 -> "1 d 02:22:05"."""
    if not 60.0 <= date_s < 1e12:
        return f"{date_s:.6g} s"
    minutes, seconds = divmod(int(date_s), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    clock = f"{hours:02}:{minutes:02}:{seconds:02}"
    return f"{days:,} d {clock}" if days else clock


def format_speed(flops: float, digits: int = 6) -> str:
    """Return `flops` (flop/s) as a short text of at most so many `digits`: 2.35e10 -> "23.5Gf"."""
    return _format(flops, digits, {u: v for u, v in SPEED_UNITS.items() if u.endswith("f")})


def format_bandwidth(Bps: float, digits: int = 6) -> str:
    """Return `Bps` (bytes/s) as a short text of at most so many `digits`: 1.25e9 -> "1.25GBps"."""
    return _format(Bps, digits, {f"{p}Bps": 1000.0**k for k, p in enumerate(("", *_DECIMAL))})


def _format(value: float, digits: int, units: dict[str, float]) -> str:
    base = next(unit for unit, scale in units.items() if scale == 1.0)
    fitting = [(scale, unit) for unit, scale in units.items() if value >= scale * (1 - 1e-9)]
    scale, unit = max(fitting) if value > 0 and fitting else (1.0, base)
    return f"{value / scale:.{digits}g}{unit}"


def _unknown_unit(text: str, unit: str, units: dict[str, float]) -> str:
    import difflib

    if unit[0].isspace():
        return f"{_shown(text)} has a blank before its unit; write them together"
    close = [known for known in units if known.lower() == unit.lower()]
    begins = [known for known in units if len(known) > 1 and unit.startswith(known)]
    close = close or sorted(begins, key=len)[-1:] or difflib.get_close_matches(unit, units, 2, 0.5)
    known = close or sorted(units, key=lambda u: (len(u), u))[:8]
    return f"{_shown(text)} has the unknown unit {_shown(unit)}; known units: {', '.join(known)}"


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")
