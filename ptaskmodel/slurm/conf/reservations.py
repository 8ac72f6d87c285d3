"""Advance reservations: nodes that are reserved for some users, or for maintenance, for a time.

They are read from lines ``create reservation Key=Value ...``, as scontrol takes them, or from what
``scontrol show reservation`` prints.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil, inf
from typing import NamedTuple

from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, read_text
from ptaskmodel.remarks import Account, Remark, reader
from ptaskmodel.slurm.conf import values
from ptaskmodel.slurm.conf.facts import Conf, nodes_of

MAINT, OVERLAP = "MAINT", "OVERLAP"
# The controller looks for reservations that begin or end at every so manieth second.
LOOK_S = 5
# How often a job's date is moved to the end of a reservation until it is given up.
MOVES = 10
# A second after all others.
NEVER_S = 1 << 62
NAMES = ("reservation", "reservationname")
KNOWN = {*NAMES, "starttime", "endtime", "duration", "nodes", "users", "accounts", "flags"}
# Options, and the fewest letters that stand for each.
_LEAST = {"accounts": 1, "duration": 1, "endtime": 1, "flags": 2, "nodes": 5, "starttime": 2}
_LEAST |= {"users": 1, NAMES[1]: 3}
# Running jobs are never touched, and nodes are as they were named, whatever is said of that.
KNOWN_FLAGS = frozenset(("MAINT", "IGNORE_JOBS", "SPEC_NODES", "OVERLAP"))
# Of reservations as they are printed: values that are none, flags that say what stands there
# besides, and keys of what changes nothing.
NOTHING = ("(null)", "n/a", "")
PRINTED_FLAGS = frozenset(("ALL_NODES",))
PRINTED = {"nodecnt", "corecnt", "features", "partitionname", "tres", "state", "comment"}
# Names in one remark.
SHOWN = 10
UNITS_S = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
FOR_EVER_S = 365 * 86_400


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes in [start_s, end_s), whole Unix seconds, for some users or accounts, or nobody.

    flags: in upper case; MAINT and OVERLAP matter.
    """

    name: str
    start_s: int
    end_s: int
    nodes: Mask
    users: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()

    def admits(self, user: str | None, accounts: Collection[str]) -> bool:
        """Whether jobs of a user in an account may use it. accounts: that and those above it."""
        if not self.users and not self.accounts:
            return False
        if self.users and user not in self.users:
            return False
        return not self.accounts or not self.accounts.isdisjoint(accounts)

    def is_open(self, now: int) -> bool:
        """Whether its jobs may start."""
        return self.start_s <= now <= self.end_s

    def goes_before(self, other: Reservation) -> bool:
        """Whether nodes that both have are this one's."""
        return MAINT in self.flags or (OVERLAP in self.flags and MAINT not in other.flags)


class Asker(NamedTuple):
    """A request for nodes: in which reservation, the nodes of its partition, the required nodes."""

    reservation: Reservation | None
    partition: Mask
    required: Mask


class Free(NamedTuple):
    """Nodes that no reservation keeps from a job. overlaps: whether some are kept from it.

    until_s: None; or the end of a reservation that keeps all from it, nodes being none.
    """

    nodes: Mask
    overlaps: bool = False
    until_s: int | None = None


class Reserved:
    """The advance reservations of a run.

    step_s: what dates of backfill are rounded to. remarks: what was not used of their file.
    """

    def __init__(
        self,
        reservations: Sequence[Reservation] = (),
        step_s: int = 60,
        remarks: tuple[Remark, ...] = (),
    ) -> None:
        self.remarks = remarks
        self._all = sorted(reservations, key=lambda reservation: reservation.start_s)
        self._step = step_s
        self._left = {reservation.name: reservation for reservation in self._all}
        self._to_begin = [reservation.start_s for reservation in self._all]

    def copy(self) -> Reserved:
        """The same before anything has begun."""
        return Reserved(self._all, self._step, self.remarks)

    @property
    def over_s(self) -> float:
        """When the last of them ends, Unix seconds; 0: there are none."""
        return max((one.end_s for one in self._all), default=0)

    @property
    def empty(self) -> bool:
        """Whether there are none."""
        return not self._all

    def quiet_until_s(self, now: float, after_s: float) -> float:
        """Return when the next of them begins after `now`, Unix seconds; inf: none does.

        It is `now` while one lasts, and for ``after_s`` behind its end.
        """
        if any(one.start_s <= now < one.end_s + after_s for one in self._all):
            return now
        return min((one.start_s for one in self._all if one.start_s > now), default=inf)

    def named(self, name: str, now: int) -> Reservation | None:
        """Return the reservation called `name`, unless it has ended by `now` (Unix s)."""
        found = self._left.get(name)
        return None if found is None or found.end_s < now else found

    def allowed(self, asker: Asker, begin: float, lasts: float, nodes: Mask) -> Free:
        """Return which of the `nodes` the job of `asker` may hold in [begin, begin + lasts), s."""
        if not self._all:
            return Free(nodes)
        end, mine = begin + lasts, asker.reservation
        meets = [one for one in self._all if one.start_s < end and one.end_s > begin]
        if mine is not None:
            if not mine.start_s <= begin <= mine.end_s:
                return Free(0)
            left = nodes & mine.nodes
            for one in meets:
                if one is not mine and not mine.goes_before(one):
                    left &= ~one.nodes
            return Free(left, left != nodes & mine.nodes)
        left, overlaps = nodes, False
        for one in meets:
            covered = MAINT in one.flags and not asker.partition & ~one.nodes
            if covered or asker.required & one.nodes:
                return Free(0, overlaps, one.end_s)
            left &= ~one.nodes
            overlaps |= bool(asker.partition & one.nodes)
        return Free(left, overlaps)

    def from_date(
        self, asker: Asker, date: float, lasts: float, nodes: Mask
    ) -> tuple[float, Mask, int | None] | None:
        """Return the earliest start of a job of `asker` from `date` on that `lasts` so long, s.

        Also the `nodes` that it may hold then, and when a reservation ends (None: none matters).
        None: the job cannot be planned.
        """
        free = self.allowed(asker, date, lasts, nodes)
        for _ in range(MOVES):
            if free.until_s is None:
                break
            date = free.until_s
            free = self.allowed(asker, date, lasts, nodes)
        if free.until_s is not None or (asker.reservation is not None and not free.nodes):
            return None
        over = None
        if free.overlaps:
            first = min(one.end_s for one in self._all if one.end_s >= date)
            over = ceil(first / self._step) * self._step + 1
        return date, free.nodes, over

    # --- what the controller does -----------------------------------------------------------

    def next_begin_s(self, boot: int) -> int:
        """When it is seen next that some of them have begun. boot: when it was looked at first."""
        return _look(self._to_begin[0], boot) if self._to_begin else NEVER_S

    def begin(self, now: int) -> bool:
        """Whether some have begun of which nobody has been told; so they have now."""
        count = len(self._to_begin)
        self._to_begin = [date for date in self._to_begin if date > now]
        return len(self._to_begin) < count

    def change_s(self, since: int, boot: int) -> float:
        """Return the next change of node availability at or after `since` (Unix s).

        While reservations last, each check of the controller counts. boot: its first check, Unix s.
        """
        found = inf
        for one in self._all:
            look = _look(max(since, one.start_s), boot)
            if look >= one.end_s:
                look = _look(one.end_s, boot)
                if look < since or MAINT not in one.flags:
                    continue
            found = min(found, look)
        return found

    def purge(self, now: int, used: Collection[Reservation]) -> list[Reservation]:
        """Remove and return the reservations that have ended by `now` (Unix s).

        used: those in which jobs still run, which stay.
        """
        gone = [one for one in self._left.values() if one.end_s < now and one not in used]
        for one in gone:
            del self._left[one.name]
        return gone


def _look(second: int, boot: int) -> int:
    """The first look at or after a second."""
    return boot + ceil((second - boot) / LOOK_S) * LOOK_S


@reader(SlurmError)
def read_reservations(path: AnyPath, account: Account, conf: Conf, t0: int) -> Reserved:
    """The reservations of the file at `path`, of the nodes of `conf`.

    It has lines ``create reservation ...``, or what ``scontrol show reservation`` prints. t0: Unix
    time of date 0, which ``now`` stands for. Dates without a zone are UTC. account: of the file.
    Raises SlurmError with all lines that make no sense.
    """
    found: dict[str, Reservation] = {}
    for number, text in _entries(read_text(path, error=SlurmError, told=account.taken)):
        entry = _Entry(account, number, text.lower().startswith(f"{NAMES[1]}="))
        fields = entry.printed_fields(text) if entry.printed else entry.fields(text)
        if fields is None:
            continue
        name = fields.get(NAMES[0]) or f"resv_{number}"
        if entry.printed and "nodes" not in fields:
            account.left_out(f"{name} reserves no nodes", number)
            continue
        with entry.part():
            if name in found:
                raise ValueError(f"{shown(name)} occurs twice; name it once")
        found[name] = entry.reservation(name, fields, conf, t0)
    if not found:
        account.unused(f"{account.file}: has no reservation")
    return Reserved(tuple(found.values()), conf.scheduler.bf_resolution_s)


def _entries(text: str) -> Iterator[tuple[int, str]]:
    """Commands and printed reservations, each on one line, with the number of its first."""
    begun, entry = 0, ""
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.split("#")[0].rstrip()
        if not line.strip() or line.startswith("No reservations"):
            continue
        if entry and line[0].isspace() and entry.lower().startswith(f"{NAMES[1]}="):
            entry += f" {line.strip()}"
            continue
        if entry:
            yield begun, entry
        begun, entry = number, line.strip()
    if entry:
        yield begun, entry


class _Entry:
    """A reservation of a file, at a line; whether it is `printed`. The account has its problems."""

    def __init__(self, account: Account, number: int, printed: bool) -> None:
        self.account, self.number, self.printed = account, number, printed

    @contextlib.contextmanager
    def part(self) -> Iterator[None]:
        """What is refused inside is a problem; what follows is looked at too."""
        try:
            yield
        except SlurmError as fault:
            self.account.refused(fault, self.number)
        except ValueError as fault:
            self.account.problem(str(fault), self.number)

    def reservation(self, name: str, fields: Mapping[str, str], conf: Conf, t0: int) -> Reservation:
        """The reservation of some `fields`; as far as they make sense."""
        nodes, start_s, end_s, mask = nodes_of(conf), 0, 0, 0
        with self.part():
            start_s = _date(fields.get("starttime", "now"), t0)
            end_s = _end(fields, start_s, t0)
        with self.part():
            given = _needed(fields, "nodes")
            names = conf_names(conf) if given.upper() == "ALL" else values.hosts(given)
            stray = [each for each in names if each not in nodes.index] if self.printed else []
            if stray:
                what = f"{name}: slurm.conf has no nodes {', '.join(stray[:SHOWN])}"
                what += " ..." if len(stray) > SHOWN else ""
                self.account.left_out(what, self.number, "Nodes")
                names = [each for each in names if each in nodes.index]
            mask = nodes.mask(names)
        who = [frozenset(values.names(fields.get(key, ""))) for key in ("users", "accounts")]
        with self.part():
            if any(each.startswith("-") for each in (*who[0], *who[1])):
                raise ValueError(
                    "users and accounts that are kept out are not simulated; name the others"
                )
        flags = values.words(fields.get("flags", "")) - {""}
        return Reservation(name, start_s, end_s, mask, who[0], who[1], flags)

    def printed_fields(self, text: str) -> Mapping[str, str]:
        """The fields of a reservation as it is printed; what is not simulated of it is told."""
        pairs = [word.partition("=") for word in text.split()]
        given = {key.lower(): value for key, _, value in pairs if value not in NOTHING}
        fields = {key: value for key, value in given.items() if key in KNOWN and key not in NAMES}
        fields[NAMES[0]] = given.get(NAMES[1], "")
        flags = values.words(fields.get("flags", ""))
        strange = [f"flag {flag}" for flag in sorted(flags - KNOWN_FLAGS - PRINTED_FLAGS)]
        strange += [
            key
            for key, mark, _ in pairs
            if mark and key.lower() in given and key.lower() not in KNOWN | PRINTED
        ]
        if strange:
            what = f"is not simulated: {', '.join(dict.fromkeys(strange))}"
            self.account.unused(f"{fields[NAMES[0]]}: {what}", self.number)
        return fields

    def fields(self, text: str) -> Mapping[str, str] | None:
        """The options of a command; None: it makes no reservation."""
        words = text.split()
        if words[:1] == ["scontrol"]:
            words = words[1:]
        tags = [_option(word) for word in words[1:]]
        if [word.lower() for word in words[:1]] != ["create"] or NAMES[0] not in tags:
            self.account.problem(
                f"{shown(text)} is not a reservation; write create reservation Key=Value ..., or "
                "give what scontrol show reservation prints", self.number,
            )  # fmt: skip
            return None
        fields: dict[str, str] = {}
        for key, word in zip(tags, words[1:], strict=True):
            given, sign, value = word.partition("=")
            if not sign and key == NAMES[0]:
                continue
            with self.part():
                if not sign or key is None:
                    known = ", ".join(sorted(KNOWN))
                    raise ValueError(f"{shown(word)} is not an option; give {known}, each with =")
                if key in fields:
                    raise ValueError(f"{shown(word)}: {given} is there already; give it once")
                fields[key] = value
        for flag in sorted(values.words(fields.get("flags", "")) - KNOWN_FLAGS - {""}):
            self.account.problem(f"flag {flag} is not simulated; leave it out", self.number)
        return fields


def _option(word: str) -> str | None:
    """The option that a word of a command gives, perhaps cut, as scontrol takes it."""
    tag = word.partition("=")[0].lower()
    for option, least in _LEAST.items():
        if option.startswith(tag) and len(tag) >= least:
            return NAMES[0] if option in NAMES else option
    return None


def conf_names(conf: Conf) -> Sequence[str]:
    """The names of all nodes of `conf`."""
    return [name for line in conf.nodes for name in line.names]


def _needed(fields: Mapping[str, str], key: str) -> str:
    if not fields.get(key):
        raise ValueError(f"{key} is missing; give it")
    return fields[key]


def _date(text: str, t0: int) -> int:
    """A date: ``now``, ``now+N`` and a unit, or as in ISO 8601; Unix seconds."""
    plus = re.fullmatch(r"now(?:\+(\d{1,9})([a-z]*))?", text.lower())
    try:
        if plus is None:
            return values.date(text)
        unit = (plus[2] or "second").removesuffix("s")
        if unit not in UNITS_S:
            raise ValueError(f"the unit is one of {', '.join(UNITS_S)}")
        return values.unix(t0 + int(plus[1] or 0) * UNITS_S[unit])
    except ValueError as fault:
        raise ValueError(f"{shown(text)}: {fault}") from None


def _end(fields: Mapping[str, str], start_s: int, t0: int) -> int:
    if "endtime" in fields:
        end_s = _date(fields["endtime"], t0)
    else:
        if not (given := fields.get("duration", "")):
            raise ValueError("duration is missing; give it, or endtime")
        try:
            lasts = values.minutes(given)
        except ValueError as fault:
            raise ValueError(f"duration is {shown(given)}: {fault}") from None
        end_s = start_s + (FOR_EVER_S if lasts is None else lasts * 60)
    if end_s <= start_s:
        raise ValueError("it ends before it starts; give a later end")
    if end_s > t0 + values.LONGEST_S:
        zero = datetime.fromtimestamp(t0, UTC).isoformat(" ")
        raise ValueError(
            f"it ends more than 20 years after date 0, which is {zero}; correct it, give the date "
            "of second 0 (--begin), or begin it at now+3600, such seconds after date 0"
        )
    return end_s
