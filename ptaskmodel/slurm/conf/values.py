"""Read values in Slurm's notation: dates, durations, amounts of memory, lists of hosts, flags.

Every reader raises ValueError with the remedy, an imperative such as "give a number".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType

from ptaskmodel.errors import shown
from ptaskmodel.slurm.conf.facts import Gres
from ptaskmodel.workload.formats.host_names import MAX_NAMES, expand

MOST = 2**53
UNLIMITED = ("INFINITE", "UNLIMITED", "-1")
# Limits of accounting that are none.
NONE = ("", "-1", "UNLIMITED", "INFINITE", "NONE")
# The TRES of Slurm; some have a name behind a /.
TRES = (
    "cpu",
    "mem",
    "node",
    "billing",
    "energy",
    "gres",
    "license",
    "bb",
    "fs",
    "ic",
    "vmem",
    "pages",
)
# Of simulations: longer than any log, and short enough to get to the end of it.
LONGEST_S = 20 * 366 * 86_400
_LATEST_S = 2**33  # the year 2242

_TIME = re.compile(
    r"(?:(?P<d>\d{1,9})-(?P<h>\d{1,9})(?::(?P<m>\d{1,9})(?::(?P<s>\d{1,9}))?)?"
    r"|(?P<hours>\d{1,9}):(?P<minutes>\d{1,9}):(?P<seconds>\d{1,9})"
    r"|(?P<mm>\d{1,12})(?::(?P<ss>\d{1,9}))?)",
    re.ASCII,
)
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)([KMGTP]?)B?", re.IGNORECASE | re.ASCII)
_UNITS = {"K": 1 / 1024, "": 1.0, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{0,15})?|\.[0-9]{1,15}")
_COUNTED = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
# As many hosts does Slurm take in a range.
MAX_RANGE = 65_536


def whole(text: str, least: int = 0, most: int = MOST) -> int:
    """Return a `text` as a whole number from `least` to `most`.

    Raises ValueError, as all readers here.
    """
    value = int(text) if _WHOLE.fullmatch(text) else None
    if value is None or not least <= value <= most:
        above = f"{least} or more" if most == MOST else f"from {least} to {most}"
        raise ValueError(f"give a whole number, {above}")
    return value


def number(text: str) -> float:
    """Return a `text` as a finite number, 0 or more."""
    if not _NUMBER.fullmatch(text):
        raise ValueError("give a number, 0 or more")
    return float(text)


def whole_or_none(text: str, least: int = 0) -> int | None:
    """Return a `text` as a whole number from `least` on; None for UNLIMITED."""
    return None if text.upper() in UNLIMITED else whole(text, least)


def yes_no(text: str) -> bool:
    """Return whether a `text` is YES or what else Slurm takes for it, such as 1 and TRUE."""
    if text.upper() in ("YES", "UP", "TRUE", "1"):
        return True
    if text.upper() in ("NO", "DOWN", "FALSE", "0"):
        return False
    raise ValueError("give YES or NO")


def seconds(text: str) -> int | None:
    """Return a `text` as a duration, s; None for UNLIMITED. A number alone counts minutes."""
    if text.upper() in UNLIMITED:
        return None
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError("give minutes, minutes:seconds, [days-]hours:minutes:seconds or UNLIMITED")
    part = {name: int(value or 0) for name, value in found.groupdict().items()}
    days, hours = part["d"], part["h"] + part["hours"]
    minutes_ = part["m"] + part["minutes"] + part["mm"]
    value = ((days * 24 + hours) * 60 + minutes_) * 60 + part["s"] + part["seconds"] + part["ss"]
    if value > MOST:
        raise ValueError("give less, or UNLIMITED")
    return value


def minutes(text: str) -> int | None:
    """Return a `text` as a duration in minutes, seconds rounded up; None for UNLIMITED."""
    value = seconds(text)
    return None if value is None else -(-value // 60)


def finite_minutes(text: str) -> int:
    """Return a `text` as a duration in minutes, seconds rounded up."""
    value = minutes(text)
    if value is None:
        raise ValueError("give a time that ends")
    return value


def mebibytes(text: str) -> int:
    """Return a `text` as memory, MiB. A number alone counts MiB; K, M, G or T may follow it."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError("give MiB, or a number with K, M, G or T")
    exact = float(found[1]) * _UNITS[found[2].upper()]
    if exact > MOST:
        raise ValueError("give less")
    return -int(-exact // 1)


def counted(text: str) -> int:
    """Return a `text` as a count; each of K, M and G after it is a power of 1024."""
    factor = _COUNTED.get(text[-1:].upper()) if text[-1:].isalpha() else 1
    if factor is None:
        raise ValueError("give a whole number")
    return whole(text[:-1] if text[-1:].isalpha() else text) * factor


def date(text: str) -> int:
    """Return an ISO 8601 `text` as Unix seconds; without a zone it is UTC."""
    try:
        found = datetime.fromisoformat(text)
        exact = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise ValueError("give a date such as 2024-01-31T12:00:00") from None
    return unix(int(exact))


def unix(seconds_: int) -> int:
    """Return `seconds_` if a clock may show them as Unix seconds."""
    if not 0 <= seconds_ <= _LATEST_S:
        raise ValueError("give a date from 1970 to 2242")
    return seconds_


def words(text: str) -> frozenset[str]:
    """Return the words between commas in a `text`, in upper case."""
    return frozenset(word.strip().upper() for word in text.split(",") if word.strip())


def names(text: str) -> tuple[str, ...]:
    """Return the names between commas in a `text`, as written."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def one_of(*choices: str) -> Callable[[str], str]:
    """Return a reader of one of these `choices`, in upper or lower case."""
    known = {choice.lower(): choice for choice in choices}

    def read(text: str) -> str:
        if text.lower() not in known:
            raise ValueError(f"give {', '.join(choices[:-1])} or {choices[-1]}")
        return known[text.lower()]

    return read


def split_outside(text: str, mark: str = ",") -> list[str]:
    """Split a `text` at each `mark` that stands outside brackets."""
    parts, depth, begin = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign == "[") - (sign == "]")
        if sign == mark and depth <= 0:
            parts.append(text[begin:place])
            begin = place + 1
    return [*parts, text[begin:]]


def hosts(text: str) -> tuple[str, ...]:
    """Return the hosts of a `text` of names and ranges, ``n[1-4,7],login``, in their order."""
    found: list[str] = []
    for item in split_outside(text):
        if not item.strip():
            raise ValueError("leave no name empty; write n[1-4],m1")
        try:
            more = expand(item.strip())
        except ValueError as fault:
            raise ValueError(f"correct '{item.strip()[:40]}': it {fault}") from None
        if len(more) > MAX_RANGE:
            raise ValueError(
                f"'{item.strip()[:40]}' stands for {len(more)} hosts; give at most {MAX_RANGE} in "
                "one range, as Slurm does"
            )
        found += more
        if len(found) > MAX_NAMES:
            raise ValueError(f"give at most {MAX_NAMES} hosts")
    return tuple(found)


def gres(text: str) -> tuple[Gres, ...]:
    """Return the generic resources in a `text`: name, name:count, name:type or name:type:count."""
    found = []
    for item in split_outside(text.replace("(", "[").replace(")", "]")):
        parts = [part for part in item.split("[")[0].strip().split(":") if part != "no_consume"]
        if parts[0] == "gres":
            parts = parts[1:]
        if not all(parts) or not 1 <= len(parts) <= 3:
            raise ValueError("give name:count or name:type:count")
        has_count = len(parts) > 1 and parts[-1][:1].isdigit()
        count = counted(parts[-1]) if has_count else 1
        kind = parts[1] if len(parts) == 3 or (len(parts) == 2 and not has_count) else None
        if len(parts) == 3 and not has_count:
            raise ValueError("give name:type:count, the count a number")
        found.append(Gres(parts[0], kind, count))
    return tuple(found)


def licenses(text: str) -> Mapping[str, int]:
    """Return the licences in a `text`, name or name:count between commas, by name."""
    if "|" in text:
        raise ValueError(
            "give licences between commas: a choice, as of Slurm 25.05, is not simulated"
        )
    found: dict[str, int] = {}
    for item in names(text):
        name, _, count = item.replace("*", ":").partition(":")
        found[name] = found.get(name, 0) + (whole(count) if count else 1)
    return MappingProxyType(found)


def weights(text: str) -> Mapping[str, float]:
    """Return the weights of TRES in a `text`, ``CPU=1.0,Mem=0.25G,GRES/gpu=-2``.

    Of memory per MiB.
    """
    found = {}
    for item in names(text):
        name, mark, value = item.partition("=")
        unit = value[-1:].upper() if value[-1:].isalpha() else ""
        if not (name and mark) or unit not in _UNITS:
            raise ValueError("give weights such as CPU=1.0,Mem=0.25G")
        text = value.removesuffix(value[-1:]) if unit else value
        exact = number(text.lstrip("+-")) * (-1 if text[:1] == "-" else 1)
        found[tres_name(name)] = exact / _UNITS[unit]
    return MappingProxyType(found)


def tres_name(text: str) -> str:
    """Return the name of a TRES in a `text`: the type in lower case, what follows a / as given."""
    kind, slash, rest = text.partition("/")
    return kind.lower() + slash + rest


def tres(text: str) -> Mapping[str, int | None]:
    """Return the amounts of TRES in a `text`: ``cpu=100,mem=4G,gres/gpu=2``.

    Memory is in MiB; -1 means no limit (None).
    """
    found: dict[str, int | None] = {}
    for item in names(text):
        name, mark, value = item.partition("=")
        if not mark:
            raise ValueError("give amounts such as cpu=100,gres/gpu=2")
        key = tres_name(name.strip())
        if key.partition("/")[0] not in TRES:
            raise ValueError(f"{shown(name)} is no TRES; give {', '.join(TRES[:4])}, gres/gpu, ...")
        read = mebibytes if key == "mem" else counted
        found[key] = None if value in NONE else read(value)
    return found
