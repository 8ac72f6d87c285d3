"""A slurm.conf with other values: of its keys, and of single options of SchedulerParameters."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping

from ptaskmodel.batch.slurm.conf.keys import OPTIONS, PRIORITY, SCALARS, SWITCHES, spelled
from ptaskmodel.batch.slurm.conf.lines import Pair
from ptaskmodel.errors import SlurmError, shown

SCHEDULER = "SchedulerParameters"
Value = bool | int | float | str
Changes = Mapping[str, Value]


def check_names(names: Iterable[str]) -> None:
    """Raises SlurmError for what is neither a key of a whole file nor an option."""
    known = (*SCALARS, *PRIORITY, SCHEDULER.lower())
    options = (*OPTIONS, *SWITCHES)
    for name in names:
        if name.lower() not in known and name not in options:
            near = difflib.get_close_matches(name.lower(), (*known, *options), 1)
            hint = f"; did you mean {spelled(near[0])}?" if near else ""
            raise SlurmError(
                f"{shown(name)} is no key of a whole slurm.conf that is known, and no option of "
                f"{SCHEDULER}{hint}"
            )


def changed(lines: Iterable[list[Pair]], changes: Changes, origin: str) -> Iterator[list[Pair]]:
    """The lines with other values.

    changes: by key (of the whole file, not of nodes or partitions), or by the name of an option of
    SchedulerParameters; of a switch there, true or false. Raises SlurmError for any other name.
    """
    check_names(changes)
    options = {name: value for name, value in changes.items() if name in {*OPTIONS, *SWITCHES}}
    keys = {name.lower(): (name, value) for name, value in changes.items() if name not in options}
    text = ""
    for line in lines:
        kept = []
        for pair in line:
            key = pair.key.lower()
            if line[0] is pair and key == SCHEDULER.lower():
                text = pair.value
            elif line[0] is not pair or key not in keys:
                kept.append(pair)
        if kept:
            yield kept
    if SCHEDULER.lower() in keys:
        text = str(keys.pop(SCHEDULER.lower())[1])
    for name, value in keys.values():
        yield [Pair(name, _written(value), f"{origin}, {name} changed")]
    if text or options:
        yield [Pair(SCHEDULER, _with(text, options), f"{origin}, {SCHEDULER} changed")]


def _with(text: str, options: Changes) -> str:
    """SchedulerParameters with other options."""
    items = [one for one in text.split(",") if one and one.partition("=")[0] not in options]
    for name, value in options.items():
        if name in SWITCHES:
            if not isinstance(value, bool):
                raise SlurmError(f"{SCHEDULER}, {name}: {shown(value)}: give true or false")
            items += [name] if value else []
        else:
            items.append(f"{name}={_written(value)}")
    return ",".join(items)


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return "YES" if value else "NO"
    return str(value)
