"""Parse availability traces: a speed, bandwidth, latency or state over time."""

from __future__ import annotations

import math
from collections.abc import Callable

from ptaskmodel import units
from ptaskmodel.platform.facts import AvailabilityTrace

MAX_EVENTS = 5_000_000
# Dates that are nearer, but not one, have no meaning: simulations tell no difference between them
# (`precision/timing`), and a repetition so short would never end.
LEAST_S = 1e-9
# Changes per simulated second of which one is told: each is an event.
MANY_PER_S = 1000.0


class TraceError(ValueError):
    """A trace that cannot be read: ``line`` (1-based in its text) and what is wrong there."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


def parse_trace(
    name: str,
    text: str,
    periodicity_s: float | None = None,
    tell: Callable[[str], object] = str,
) -> AvailabilityTrace:
    """A trace from SimGrid's format: lines ``date value``, comments (# or %), directives.

    ``PERIODICITY p`` repeats the pattern every p seconds, ``LOOPAFTER d`` d seconds after its last
    event; ``STOCHASTIC`` turns dates into delays (only the law DET, as other laws make a result
    depend on a generator). ``periodicity_s``: of the ``<trace>`` element, None without. ``tell``
    is told what is odd.

    Raises TraceError.
    """
    events: list[tuple[int, float, float]] = []
    stochastic = endless = False
    period: float | None = periodicity_s
    delay: float | None = None
    repeated_at = 1
    for number, raw in enumerate(text.splitlines(), 1):
        words = raw.split()
        if not words or words[0][0] in "#%":
            continue
        if words[0] == "STOCHASTIC":
            stochastic, endless = True, words[1:2] == ["LOOP"]
        elif words[0] == "PERIODICITY":
            period, repeated_at = _date(number, words[1:]), number
        elif words[0] == "LOOPAFTER":
            delay, repeated_at = _date(number, words[1:]), number
        elif len(events) >= MAX_EVENTS:
            raise TraceError(number, f"more than {MAX_EVENTS} events; remove some")
        else:
            events.append(_event(number, words, stochastic))
    if stochastic:
        if period is not None:
            raise TraceError(1, "PERIODICITY and STOCHASTIC exclude each other; use LOOPAFTER")
        if delay is None and endless:
            delay = 0.0
    looping = period is not None or delay is not None
    if events and events[0][2] < 0 and not looping:
        tell(f"its first value, {events[0][2]:g}, is negative and skipped, as SimGrid does")
        events = events[1:]
    dates, values = _ordered(events, stochastic)
    length = _period(dates, period, delay)
    if length is not None:
        _check_period(dates, length, repeated_at)
        if len(dates) / length > MANY_PER_S:
            tell(
                f"it changes {len(dates) / length:.3g} times per second, and each change is an "
                "event"
            )
    return AvailabilityTrace(name, dates, values, length)


def _event(line: int, words: list[str], stochastic: bool) -> tuple[int, float, float]:
    numbers = []
    rest = list(words)
    for what in ("date", "value"):
        if rest and rest[0].isalpha() and rest[0].upper() not in ("INF", "INFINITY", "NAN"):
            law = rest.pop(0)
            if not stochastic or law != "DET":
                raise TraceError(
                    line,
                    f"the law {law!r} is not supported; draw the events yourself and list them",
                )
        if not rest:
            raise TraceError(line, f"no {what} in {' '.join(words)[:40]!r}; write 'date value'")
        try:
            number, _ = units.split_float(rest.pop(0))
        except units.UnitError as error:
            raise TraceError(line, f"{what}: {error}") from None
        if not math.isfinite(number):
            raise TraceError(line, f"the {what} {number} is not finite; correct it")
        numbers.append(number)
    if numbers[0] < 0:
        raise TraceError(line, f"the date {numbers[0]:g} is negative; give seconds from 0")
    return line, numbers[0], numbers[1]


def _date(line: int, words: list[str]) -> float:
    try:
        value, _ = units.split_float(words[0] if words else "")
    except units.UnitError as error:
        raise TraceError(line, str(error)) from None
    if not (math.isfinite(value) and value >= 0):
        raise TraceError(line, f"{value:g} is not a duration; give seconds, 0 or more")
    return value


def _ordered(
    events: list[tuple[int, float, float]], delays: bool
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Dates and values, checked."""
    dates: list[float] = []
    for line, date, value in events:
        last = dates[-1] if dates else 0.0
        date = last + date if delays else date
        if date < last:
            raise TraceError(
                line, f"the date {date:g} is before the previous one, {last:g}; sort the lines"
            )
        if dates and 0 < date - last < LEAST_S:
            raise TraceError(
                line, f"the date {date!r} is less than {LEAST_S:g} s after {last!r}; give one date"
            )
        if value < 0:
            raise TraceError(line, f"the value {value:g} is negative; give 0 or more")
        dates.append(date)
    return tuple(dates), tuple(value for _, _, value in events)


def _check_period(dates: tuple[float, ...], period: float, line: int) -> None:
    """A repetition is long enough to be told from none."""
    if period < LEAST_S:
        raise TraceError(
            line, f"the period {period!r} s is shorter than {LEAST_S:g} s; give a longer one"
        )
    rest = period - dates[-1] + dates[0]
    if 0 < rest < LEAST_S:
        raise TraceError(
            line,
            f"it repeats {rest:.3g} s after its last event; give at least {LEAST_S:g} s",
        )


def _period(dates: tuple[float, ...], period: float | None, delay: float | None) -> float | None:
    """From PERIODICITY or LOOPAFTER to the length of one repetition; None: no repetition."""
    if not dates or (period is None and delay is None):
        return None
    if period is not None and delay is not None:
        raise TraceError(1, "PERIODICITY and LOOPAFTER exclude each other; keep one")
    if period is None or period == 0:
        period = dates[-1] + (delay or 0.0)
    if period < dates[-1]:
        raise TraceError(
            1,
            f"the period {period:g} is shorter than the last date {dates[-1]:g}; give a longer one",
        )
    if period <= 0:
        raise TraceError(1, "the pattern repeats without a delay; give it a period")
    return period
