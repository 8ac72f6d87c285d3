"""Data of a platform in SI units: hosts, links and availability traces, all frozen.

`parse_trace` reads availability traces as text: a speed, bandwidth, latency or state over time.
`HostFacts` is what a work needs to know of hosts before it can be bound to them. Notes about a
platform are here too, and `short`, which shortens texts that messages quote.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ptaskmodel import units
from ptaskmodel.errors import WorkloadError
from ptaskmodel.remarks import warn

SHARED = "SHARED"
FATPIPE = "FATPIPE"
WIFI = "WIFI"
# The link that every platform has besides those declared.
LOOPBACK_NAME = "__loopback__"


class _NoProperties(Mapping[str, str]):
    """The one mapping without entries: shared by most hosts and links, pickled by its name."""

    __slots__ = ()

    def __getitem__(self, key: str) -> str:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "{}"

    def __reduce__(self) -> str:
        return "NO_PROPERTIES"


NO_PROPERTIES: Mapping[str, str] = _NoProperties()


def _no_properties() -> Mapping[str, str]:
    return NO_PROPERTIES


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk of a host, kept as a fact (no I/O is simulated)."""

    name: str
    read_bandwidth_Bps: float
    write_bandwidth_Bps: float
    properties: Mapping[str, str] = field(default_factory=_no_properties)


@dataclass(frozen=True, slots=True)
class AvailabilityTrace:
    """Values over time: ``values[k]`` holds from ``dates_s[k]`` on.

    With ``period_s`` (a float), the whole pattern is repeated: event k of repetition i is at
    ``dates_s[k] + i * period_s``. Dates do not decrease. Of a host's speed a value is a factor of
    its peak, of a bandwidth B/s, of a latency s, of a state 0 (off) or more (on).
    """

    name: str
    dates_s: tuple[float, ...]
    values: tuple[float, ...]
    period_s: float | None = None

    def events(self, since_s: float = 0.0) -> Iterator[tuple[float, float]]:
        """Return the events at or after `since_s` (s), in order, as (date in s, value); endless if
        periodic.
        """
        turn = 0
        if self.dates_s and self.period_s is not None and since_s > self.dates_s[-1]:
            # One turn early: the division may have been rounded up.
            turn = max(0, int((since_s - self.dates_s[-1]) / self.period_s) - 1)
        while self.dates_s:
            for date_s, value in zip(self.dates_s, self.values, strict=True):
                if turn and self.period_s is not None:
                    date_s += turn * self.period_s
                if date_s >= since_s:
                    yield date_s, value
            if self.period_s is None:
                return
            turn += 1


@dataclass(frozen=True, slots=True)
class Host:
    """A computing host: ``cores`` cores of ``speeds_flops[pstate]`` flop/s each."""

    index: int
    name: str
    speeds_flops: tuple[float, ...]
    cores: int = 1
    pstate: int = 0
    zone: str = ""
    coordinates: tuple[float, float, float] | None = None
    properties: Mapping[str, str] = field(default_factory=_no_properties)
    disks: tuple[Disk, ...] = ()
    speed_trace: AvailabilityTrace | None = None
    state_trace: AvailabilityTrace | None = None

    @property
    def speed_flops(self) -> float:
        """Speed of one core in the initial pstate, flop/s."""
        return self.speeds_flops[self.pstate]


@dataclass(frozen=True, slots=True)
class Link:
    """A link: one of SHARED (the sum of uses is limited), FATPIPE (each use is), WIFI.

    A SPLITDUPLEX link of a file is two SHARED links, named ``id_UP`` and ``id_DOWN``. The rates of
    a Wifi zone's link are in ``wifi_bandwidths_Bps``, the first also in ``bandwidth_Bps``.
    """

    index: int
    name: str
    bandwidth_Bps: float
    latency_s: float
    policy: str = SHARED
    zone: str = ""
    properties: Mapping[str, str] = field(default_factory=_no_properties)
    bandwidth_trace: AvailabilityTrace | None = None
    latency_trace: AvailabilityTrace | None = None
    state_trace: AvailabilityTrace | None = None
    wifi_bandwidths_Bps: tuple[float, ...] = ()


class PlatformWarning(UserWarning):
    """A platform file that is read, but holds something old, odd or surely not meant."""


class Route(NamedTuple):
    """Links from a host to another, in the order they are crossed, and their total latency."""

    links: tuple[str, ...]
    latency_s: float


class RouteParts(NamedTuple):
    """A route as link indices, cut where the zones are left and entered.

    Between hosts of two different leaf zones, ``up`` depends on the source and the zone of the
    destination, ``down`` on the destination and the zone of the source, ``across`` on the two
    zones: ``separable`` says that this holds for all hosts of the two zones. Within one zone all
    is ``across`` and nothing is separable. The latency is the sum over the links plus
    ``extra_latency_s`` (Vivaldi distances; a route with one is not separable). A route without a
    link is one that nobody declared, unless it is ``instant``: between points of a Vivaldi zone.
    """

    up: tuple[int, ...]
    across: tuple[int, ...]
    down: tuple[int, ...]
    extra_latency_s: float
    separable: bool
    instant: bool = False

    @property
    def links(self) -> tuple[int, ...]:
        return self.up + self.across + self.down


def short(text: str) -> str:
    """Quoted, on one line and never long."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


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


SHOWN = 5


class HostFacts(NamedTuple):
    """Cores by host name, and the host of each storage."""

    cores: Mapping[str, int]
    storages: Mapping[str, str]

    def storage_host(self, storage: str) -> str:
        """The host of a storage; a name that the platform lacks is that of its only one.

        Raises WorkloadError if the platform has no storage, or none of this name among several.
        """
        if storage in self.storages:
            return self.storages[storage]
        hosts = sorted(set(self.storages.values()))
        none = f"the platform has no storage '{storage}'"
        if len(hosts) == 1:
            warn(
                f"{none}; its only storage, {hosts[0]}, is used (as with --storage "
                f"{storage}={hosts[0]})"
            )
            return hosts[0]
        if hosts:
            known = ", ".join(sorted(self.storages)[:SHOWN])
            more = f" and {len(self.storages) - SHOWN} more" if len(self.storages) > SHOWN else ""
            raise WorkloadError(
                f"{none}, whose storages are {known}{more}; give --storage {storage}={hosts[0]}"
            )
        raise WorkloadError(
            f"{none}; give one host the property role=storage, or give --storage {storage}=HOST"
        )
