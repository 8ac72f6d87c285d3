"""Write numbers, tables and facts as text for readers.

The scripts of pages do the same; both are tested on tests/numbers.json.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from decimal import Decimal

ELLIPSIS = "…"
LEAST_WIDTH = 12  # of a column of names that is elided
GAP = 2
OF_NAMES: Final = ("s", "us", "J", "W", "B")  # units at the ends of names
NO_TERMINAL = 80  # characters of a line of sentences where there is no terminal


def terminal_width() -> int | None:
    """Return how many characters a line of the terminal has; None: the output goes elsewhere."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    import shutil

    return shutil.get_terminal_size().columns


def several(count: int, one: str, many: str | None = None) -> str:
    """Return a `count` of things: "1 job runs", "2 jobs run".

    one, many: the rest of the text for 1, and for other numbers; None: the first word gets an s.
    """
    if count == 1:
        return f"1 {one}"
    word, blank, rest = one.partition(" ")
    return f"{count} {many or f'{word}s{blank}{rest}'}"


def words_of_name(name: str) -> str:
    """Return the `name` of a value for a reader: until_s is "until (s)"."""
    words, _, unit = name.rpartition("_")
    return (
        f"{words} ({unit})".replace("_", " ")
        if words and unit in OF_NAMES
        else name.replace("_", " ")
    )


def elided(text: str, most: int) -> str:
    """Return ``text``, without its middle if it has more than ``most`` characters."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return text[: most - 1 - end] + ELLIPSIS + text[len(text) - end :]


# A richer library for tables would double the start-up time.
def text_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[int] = (),
    width: int | None = None,
    least: Sequence[int] = (),
    whole: bool = False,
) -> str:
    """Return rows below a header, columns as wide as their widest cell, without empty columns.

    Where a terminal is narrower, the widest columns of names are elided in the middle, as long as
    cells that differ still do. Then columns are left out from the right; a last line says which.

    right: the columns that are set flush right, such as those of numbers. width: of a line; None:
    `terminal_width`. least: the least widths of the first columns; others have LEAST_WIDTH. whole:
    no column is left out; those without room follow in a table below, behind the first column.
    """
    width = terminal_width() if width is None else width
    every = list(zip(header, *rows, strict=True))
    told = [k for k, column in enumerate(every) if not rows or any(column[1:]) or not k]
    columns, right = [every[k] for k in told], {n for n, k in enumerate(told) if k in right}
    header, *rows = zip(*columns, strict=True)
    widths = [max(map(len, column)) for column in columns]
    if width is not None:
        _narrow(widths, columns, right, width, least)
    kept = len(widths)
    while width is not None and kept > 1 and _whole(widths[:kept]) > width:
        kept -= 1
    lines = []
    for cells in (header, ["-" * each for each in widths], *rows):
        padded = (
            elided(cell, each).rjust(each) if k in right else elided(cell, each).ljust(each)
            for k, (cell, each) in enumerate(zip(cells[:kept], widths, strict=False))
        )
        lines.append((" " * GAP).join(padded).rstrip()[:width])
    if whole and 1 < kept < len(widths):
        others = [[row[0], *row[kept:]] for row in (header, *rows)]
        lines += ["", text_table(others[0], others[1:], (), width, least, whole)]
    elif kept < len(widths):
        left_out = f"left out, as the terminal is narrow: {', '.join(header[kept:])}"
        lines.append(wrapped(left_out, width))
    return "\n".join(lines)


def fits(header: Sequence[str], rows: Sequence[Sequence[str]], first: int) -> bool:
    """Return whether the terminal has room for a table of `header` and `rows`.

    first: the least width of the first column; others are whole.
    """
    width = terminal_width()
    _, *widths = (max(map(len, column)) for column in zip(header, *rows, strict=True))
    return width is None or _whole([first, *widths]) <= width


def _whole(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _narrow(
    widths: list[int],
    columns: Sequence[Sequence[str]],
    right: Collection[int],
    width: int,
    least: Sequence[int],
) -> None:
    """Take from the widest columns of names what is too much, as far as they can be elided."""
    names = [k for k in range(len(widths)) if k not in right]
    while _whole(widths) > width and names:
        k = max(names, key=lambda k: widths[k])
        told = {elided(cell, widths[k] - 1) for cell in columns[k]}
        narrowest = least[k] if k < len(least) else LEAST_WIDTH
        if widths[k] <= narrowest or len(told) < len(set(columns[k])):
            names.remove(k)
        else:
            widths[k] -= 1


def wrapped(text: str, width: int | None = None) -> str:
    """Return the sentences of ``text``, each of its lines broken between words.

    width: of a line; None: that of the terminal, or NO_TERMINAL.
    """
    import textwrap

    width = width or terminal_width() or NO_TERMINAL
    return "\n".join(
        textwrap.fill(line, width, break_on_hyphens=False) for line in text.splitlines()
    )


def fact_lines(facts: Iterable[tuple[str, str]], indent: int, width: int | None = None) -> str:
    """Return facts (name, value) a line each; what is longer goes on below its value.

    indent: of the values. width: as of `text_table`.
    """
    width = terminal_width() if width is None else width
    lines = []
    for name, value in facts:
        line = f"{name:<{indent}}{value}"
        if width is None or len(line) <= width:
            lines.append(line)
        else:
            import textwrap

            lines += textwrap.wrap(
                value, width, initial_indent=f"{name:<{indent}}", subsequent_indent=" " * indent
            )
    return "\n".join(lines)


UNKNOWN: Final = "–"
MINUS: Final = "−"
# Thousands are set apart by a thin space at which no line breaks.
THIN: Final = "\u202f"
DIGITS: Final = 3
LONG: Final = 10_000  # seconds, minutes or hours that no column shows
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0
Units = tuple[tuple[float, float, str], ...]


def _prefixed(unit: str, scale: float = 1.0, prefixes: str = " kMGTP") -> Units:
    return tuple(
        (scale * 1000.0**k, scale * 1000.0**k, prefix.strip() + unit)
        for k, prefix in enumerate(prefixes)
    )


# By kind of quantity: (the least value that is told in a unit, the unit, its name), in the unit in
# which values are given: parts of 1, s, bytes, bytes/s, flop/s, J, W.
UNITS: Final[dict[str, Units]] = {
    "number": ((0.0, 1.0, ""),),
    "share": ((0.0, 0.01, "%"),),
    "time": (
        *((1e-9, 1e-9, "ns"), (1e-6, 1e-6, "µs"), (1e-3, 1e-3, "ms"), (1.0, 1.0, "s")),
        *((120.0, _MINUTE, "min"), (120 * _MINUTE, _HOUR, "h"), (48 * _HOUR, _DAY, "d")),
    ),
    "bytes": _prefixed("B"),
    "rate": _prefixed("bit/s", 0.125),
    "work": _prefixed("flop/s"),
    "energy": _prefixed("Wh", _HOUR, " kM"),
    "power": _prefixed("W", prefixes=" kMG"),
}
# The unit of nothing at all.
_OF_ZERO: Final = {"time": (1.0, "s"), "energy": (1000.0 * _HOUR, "kWh")}
# Round lengths of time, as steps of an axis or cells of a picture have.
_STEPS: Final = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *(60.0, 120.0, 300.0, 600.0, 900.0, 1800.0),
    *(_HOUR, 2 * _HOUR, 6 * _HOUR, 12 * _HOUR, _DAY),
)


def number(value: float | None, kind: str = "number") -> str:
    """Return a value with three digits and its unit: "13.3", "1 235", "66.7 %", "44.8 TB".

    Digits before the point are all kept. value: None and nan are unknown, "–". kind: a key of
    UNITS; a time is told as by `duration`.
    """
    if kind == "time":
        return duration(value)
    if value is None or math.isnan(value):
        return UNKNOWN
    scale, unit = unit_of(value, kind)
    return _signed(value, lambda amount: f"{_digits(amount / scale)} {unit}".rstrip())


def duration(seconds: float | None) -> str:
    """Return a length of time as one says it: 131 ms, 33.5 s, 43 min, 15 h 54 min, 7 d 20 h.

    seconds: None and nan are unknown, "–".
    """
    if seconds is None or math.isnan(seconds):
        return UNKNOWN
    return _signed(seconds, _duration)


def _duration(seconds: float) -> str:
    if math.isinf(seconds):
        return "∞"
    if _rounded(seconds) < 2 * _MINUTE:
        scale, unit = unit_of(seconds, "time")
        return f"{_digits(seconds / scale)} {unit}"
    minutes = math.floor(seconds / _MINUTE + 0.5)
    if minutes < 120:
        return f"{minutes} min"
    large, small, name, part = minutes, 60, "h", "min"
    if minutes >= 48 * 60:
        large, small, name, part = math.floor(seconds / _HOUR + 0.5), 24, "d", "h"
    whole, rest = divmod(large, small)
    return f"{_grouped(str(whole))} {name}" + (f" {rest} {part}" if rest else "")


def change(value: float | None, kind: str = "number") -> str:
    """Return a change with its sign: "+43 min", "−2.5 %"; none has no sign.

    value, kind: as of `number`.
    """
    text = number(value, kind)
    return f"+{text}" if value is not None and value > 0 else text


def count(how_many: int, what: str = "") -> str:
    """Return a number of things, ``how_many`` of ``what``: "1 job", "10 000 jobs", "12"."""
    text = _grouped(str(how_many))
    return f"{text} {what}{'s' * (how_many != 1)}" if what else text


def p_value(p: float) -> str:
    """Return a probability of a test: "p = 0.002", "p < 0.001"; of nan ""."""
    if math.isnan(p):
        return ""
    return "p < 0.001" if p < 0.001 else f"p = {_plain(_fixed(p, 3))}"


def date(seconds: float | None, span_s: float, begin_unix_s: float | None = None) -> str:
    """Return a date of a run: "Mon 4 Mar 08:10" (UTC), "day 5, 14:20", "1:30" or "33.5 s".

    seconds: since the run's begin. span_s: its length. begin_unix_s: when it began, s since
    1970; None: not known.
    """
    if seconds is None or math.isnan(seconds):
        return UNKNOWN
    if begin_unix_s is not None:
        from datetime import UTC, datetime

        at = datetime.fromtimestamp(begin_unix_s + seconds, UTC)
        return f"{at:%a} {at.day} {at:%b} {at:%H:%M}"
    if span_s < 120 * _MINUTE:
        return duration(seconds)
    minutes = math.floor(seconds / _MINUTE + 0.5)
    days, rest = divmod(minutes, 24 * 60) if span_s >= 48 * _HOUR else (None, minutes)
    clock = f"{rest // 60}:{rest % 60:02}"
    return clock if days is None else f"day {days + 1}, {clock}"


@dataclass(frozen=True, slots=True)
class Column:
    """Values in one unit, as a column of a table shows them.

    scale, unit: the unit, and its name for the head. decimals: of all values.
    """

    scale: float
    unit: str
    decimals: int

    def text(self, value: float | None) -> str:
        """Return ``value`` without its unit; trailing zeros are kept."""
        if value is None or math.isnan(value):
            return UNKNOWN
        return _signed(value, lambda amount: _grouped(_fixed(amount / self.scale, self.decimals)))

    def head(self, name: str) -> str:
        """Return the head of a column: its ``name``, and the unit."""
        return f"{name} ({self.unit})" if self.unit else name


def column(
    values: Iterable[float | None], kind: str = "number", like: Column | None = None
) -> Column:
    """Return the unit of a column from the median of its values that are not 0.

    The median has three digits, but the largest value at most four where it has decimals. From
    seconds on, the unit of times is so long that the largest has four before the point.

    values, kind: as of `number`. like: a column that has the unit already; None: none has.
    """
    known = sorted(abs(v) for v in values if v is not None and math.isfinite(v) and v)
    median = (known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2 if known else 0.0
    scale, unit = unit_of(median, kind) if like is None else (like.scale, like.unit)
    is_long = kind == "time" and scale >= 1.0 and bool(known) and known[-1] >= LONG * scale
    if is_long and like is None:
        scale, unit = next((s, u) for _, s, u in UNITS[kind] if s >= _DAY or known[-1] < LONG * s)
    if all(abs(value / scale - round(value / scale)) < 1e-9 for value in known):
        return Column(scale, unit, 0)
    middle, largest = (math.floor(math.log10(x / scale)) for x in (median, known[-1]))
    least = int(is_long and like is None)  # what a longer unit hides is told to a tenth
    return Column(scale, unit, min(max(min(DIGITS - 1 - middle, DIGITS - largest), least), DIGITS))


def unit_of(value: float, kind: str) -> tuple[float, str]:
    """Return (scale, name) of the unit in which a value reads well.

    value, kind: as of `number`.
    """
    units = UNITS[kind]
    if not value:
        return _OF_ZERO.get(kind, units[0][1:])
    shown = _rounded(abs(value)) * (1 + 1e-9) if math.isfinite(value) else math.inf
    return next(((s, name) for least, s, name in reversed(units) if shown >= least), units[0][1:])


def round_number(at_least: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is ``at_least`` so large."""
    power = 10.0 ** math.floor(math.log10(at_least))
    return next(k * power for k in (1, 2, 5, 10) if k * power >= at_least * (1 - 1e-9))


def round_time(at_least_s: float) -> float:
    """Return the shortest round length of time of ``at_least_s``, s: 30 s, 15 min, 6 h, 2 d."""
    if at_least_s < 1.0:
        return round_number(at_least_s)
    if at_least_s > _DAY:
        return _DAY * round_number(at_least_s / _DAY)
    return next(step for step in _STEPS if step >= at_least_s * (1 - 1e-9))


def ticks(begin_s: float, end_s: float, most: float) -> tuple[str, list[float], float]:
    """Return round dates for an axis of time: the name of its unit, the dates in it, the unit in s.

    begin_s, end_s: the range of the axis. most: about how many dates there may be.
    """
    step = round_time((end_s - begin_s) / most)
    units = UNITS["time"]
    # Half seconds are told as parts of 1 s, unless three digits do not tell them apart.
    told = step if step >= 1.0 or end_s > 100.0 * step else max(step, min(10.0 * step, end_s))
    told *= 1 + 1e-9
    scale, name = next(((s, n) for _, s, n in reversed(units) if told >= s), units[0][1:])
    first, last = (k / step for k in (begin_s, end_s))
    marks = range(math.ceil(first - 1e-9), math.floor(last * (1 + 1e-9)) + 1)
    return name, [float(f"{k * step / scale:.12g}") for k in marks], scale


def _signed(value: float, write: Callable[[float], str]) -> str:
    text = write(abs(value))
    return MINUS + text if value < 0 and any(c in "123456789∞" for c in text) else text


def _rounded(value: float) -> float:
    """As three digits tell it."""
    return float(_three(value))


def _three(value: float) -> Decimal:
    """The first three digits of the double itself, the half away from zero."""
    from decimal import ROUND_HALF_UP, Context

    return Context(DIGITS, ROUND_HALF_UP).create_decimal_from_float(value)


def _digits(value: float) -> str:
    """Three digits, and all of those before the point; no trailing zeros."""
    if 10.0 ** (DIGITS - 1) <= value < 1e15 or math.isinf(value):
        return _grouped(_fixed(value, 0))
    shown = _three(value)
    exponent = shown.adjusted() if value and not 1e-3 <= value < 1e15 else 0
    text = _plain(f"{shown.scaleb(-exponent):f}")
    return f"{text}e{exponent}" if exponent else text


def _fixed(value: float, decimals: int) -> str:
    from decimal import ROUND_HALF_UP, Context, Decimal

    if math.isinf(value):
        return "∞"
    exact = Context(prec=400, rounding=ROUND_HALF_UP)
    return f"{exact.quantize(Decimal(value), Decimal((0, (1,), -decimals))):f}"


def _plain(text: str) -> str:
    """A decimal without trailing zeros."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def _grouped(text: str) -> str:
    """Digits before the point in groups of three."""
    whole, point, rest = text.partition(".")
    return f"{int(whole):,}".replace(",", THIN) + point + rest if whole.isdigit() else text
