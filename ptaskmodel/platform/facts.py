"""Data of a platform in SI units: hosts, links and availability traces, all frozen.

Notes about a platform are here too, and `short`, which shortens texts that messages quote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

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
