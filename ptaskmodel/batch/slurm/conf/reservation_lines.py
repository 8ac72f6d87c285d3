"""Advance reservations as scontrol is told: lines of ``create reservation Key=Value ...``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from ptaskmodel.batch.slurm import values
from ptaskmodel.batch.slurm.conf.facts import Conf
from ptaskmodel.batch.slurm.nodes import nodes_of
from ptaskmodel.batch.slurm.reservations import Reservation, Reserved
from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, read_text, shown_path

NAMES = ("reservation", "reservationname")
KNOWN = {*NAMES, "starttime", "endtime", "duration", "nodes", "users", "accounts", "flags"}
# Running jobs are never touched, and nodes are as they were named, whatever is said of that.
KNOWN_FLAGS = frozenset(("MAINT", "IGNORE_JOBS", "SPEC_NODES", "OVERLAP"))
UNITS_S = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
FOR_EVER_S = 365 * 86_400


def read_reservations(path: AnyPath, conf: Conf, t0: int) -> Reserved:
    """The reservations of a file. t0: Unix time of date 0, which ``now`` stands for.

    Dates without a zone are UTC. Raises SlurmError with file and line.
    """
    nodes = nodes_of(conf)
    found: dict[str, Reservation] = {}
    for number, line in enumerate(read_text(path, error=SlurmError).split("\n"), 1):
        text = line.split("#")[0].strip()
        if not text:
            continue
        where = f"{shown_path(path)}:{number}"
        try:
            fields = _fields(text)
            name = fields.get(NAMES[0]) or f"resv_{number}"
            if name in found:
                raise ValueError(f"{shown(name)} is there already; name it once")
            start_s = _date(fields.get("starttime", "now"), t0)
            end_s = _end(fields, start_s, t0)
            given = _needed(fields, "nodes")
            names = conf_names(conf) if given.upper() == "ALL" else values.hosts(given)
            mask = nodes.mask(names)
        except (ValueError, SlurmError) as fault:
            raise SlurmError(f"{where}: {fault}") from None
        found[name] = Reservation(
            name,
            start_s,
            end_s,
            mask,
            frozenset(values.names(fields.get("users", ""))) - {""},
            frozenset(values.names(fields.get("accounts", ""))) - {""},
            frozenset(values.words(fields.get("flags", ""))) - {""},
        )
    return Reserved(tuple(found.values()), conf.scheduler.bf_resolution_s)


def conf_names(conf: Conf) -> Sequence[str]:
    """The names of all nodes."""
    return [name for line in conf.nodes for name in line.names]


def _fields(text: str) -> Mapping[str, str]:
    words = text.split()
    if words[:1] == ["scontrol"]:
        words = words[1:]
    if [word.lower() for word in words[:2]] != ["create", "reservation"]:
        raise ValueError(f"{shown(text)}: write create reservation Key=Value ...")
    fields = {}
    for word in words[2:]:
        given, sign, value = word.partition("=")
        if not sign or given.lower() not in KNOWN:
            raise ValueError(f"{shown(word)}: give {', '.join(sorted(KNOWN))}, each with =")
        key = NAMES[0] if given.lower() in NAMES else given.lower()
        if key in fields:
            raise ValueError(f"{shown(word)}: {given} is there already; give it once")
        fields[key] = value
    unknown = values.words(fields.get("flags", "")) - KNOWN_FLAGS - {""}
    if unknown:
        raise ValueError(f"flag {min(unknown)} is not simulated; leave it out")
    return fields


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
        lasts = values.minutes(_needed(fields, "duration"))
        end_s = start_s + (FOR_EVER_S if lasts is None else lasts * 60)
    if end_s <= start_s:
        raise ValueError("it ends before it starts; give a later end")
    if end_s > t0 + values.LONGEST_S:
        zero = datetime.fromtimestamp(t0, UTC).isoformat(" ")
        raise ValueError(f"it ends more than 20 years after date 0, which is {zero}; correct it")
    return end_s
