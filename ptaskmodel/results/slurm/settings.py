"""The settings of a slurm.conf as a summary keeps them, so that two runs can be told apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from ptaskmodel.batch.slurm.conf.facts import Conf, NodeLine, Partition
from ptaskmodel.batch.slurm.watching import hostlist

# Where a setting comes from, or what is told elsewhere.
SHOWN_KEYS = 4
# Keys that change what Slurm does with jobs. Of those that are not simulated each is told.
HEEDED = frozenset(
    {
        *("DEFCPUPERGPU", "DEFMEMPERGPU", "EXCLUSIVEUSER", "GRACETIME", "JOBSUBMITPLUGINS"),
        *("PREEMPTEXEMPTTIME", "PRIORITYSITEFACTORPLUGIN", "PRIORITYSITEFACTORPARAMETERS"),
        *("RESUMETIMEOUT", "SUSPENDTIME"),
    }
)
UNTOLD = frozenset({"notes", "origin", "others", "where", "switches", "nodes", "partitions"})


def settings_of(conf: Conf) -> dict[str, str]:
    """What a configuration sets, by name: ``scheduler.bf_interval_s``, ``partition p.tier``, ..."""
    found = dict(_fields(conf, ""))
    for line in conf.nodes:
        found |= _fields(line, f"nodes {hostlist(line.names)}.")
    for partition in conf.partitions:
        found[f"partition {partition.name}.nodes"] = hostlist(partition.nodes)
        found |= _fields(partition, f"partition {partition.name}.")
    for switch in conf.switches:
        found[f"switch {switch.name}"] = hostlist((*switch.nodes, *switch.switches))
    return found


def unread_notes(conf: Conf) -> list[str]:
    """What of a configuration is not used.

    Words of known keys, misspelt keys, and those that Slurm's schedulers heed, one by one; other
    keys by number.
    """
    told = [o for o in conf.others if o.meant or " " in o.key or o.key.upper() in HEEDED]
    keys = list(dict.fromkeys(one.key for one in conf.others if one not in told))
    hints = [f"; did you mean {one.meant}?" if one.meant else "" for one in told]
    found = [
        f"{one.where}: {one.key} changes nothing here{hint}"
        for one, hint in zip(told, hints, strict=True)
    ]
    if keys:
        some = ", ".join(keys[:SHOWN_KEYS])
        found.append(f"keys of {conf.origin} that change nothing here: {len(keys)}, such as {some}")
    return found


def _fields(facts: Any, before: str) -> Iterator[tuple[str, str]]:
    for each in fields(facts):
        value = getattr(facts, each.name)
        if each.name in ("scheduler", "priority") and isinstance(facts, Conf):
            yield from _fields(value, f"{each.name}.")
        elif (
            each.name not in UNTOLD
            and not (each.name == "name" and isinstance(facts, Partition))
            and not (each.name == "names" and isinstance(facts, NodeLine))
        ):
            yield before + each.name, _text(value)


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return ",".join(f"{key}={each}" for key, each in value.items())
    if isinstance(value, frozenset):
        return ",".join(sorted(value))
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
