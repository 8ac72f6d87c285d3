"""Parse the lines of Slurm's configuration files: comments, continuations, includes, Key=Value.

It also reads NodeName and PartitionName lines into the records of `conf.facts`, and replaces values
in lines: of keys, and of single options of SchedulerParameters.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, read_text, shown_path
from ptaskmodel.remarks import Account
from ptaskmodel.slurm.conf import values
from ptaskmodel.slurm.conf.facts import (
    EXCLUSIVE,
    FORCE,
    NO,
    PARTITION_UNITS,
    YES,
    NodeLine,
    Partition,
)
from ptaskmodel.slurm.conf.keys import (
    OPTIONS,
    PRIORITY,
    SCALARS,
    SWITCHES,
    Table,
    memory,
    over_time,
    preempt_modes,
    spelled,
)

SCHEDULER = "SchedulerParameters"
Value = bool | int | float | str
Changes = Mapping[str, Value]
MAX_BYTES = 2**26
MAX_DEPTH = 16
MAX_LINES = 1_000_000

_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)#.*", re.DOTALL)
_INCLUDE = re.compile(r"include\s+(.*)", re.IGNORECASE)
_PAIR = re.compile(r"""\s*([A-Za-z0-9_.]+)\s*([-+*/]?)=\s*(?:"([^"]*)"|([^\s"]\S*))(?=\s|$)""")
DEFAULT_SHARE = 4
TIER_MOST = 65533
STATES = ("UNKNOWN", "DOWN", "DRAIN", "FAIL", "FAILING", "FUTURE", "CLOUD", "IDLE", "UP")
Given = Mapping[str, Any]  # values by the names of fields, those of DEFAULT lines included


class Pair(NamedTuple):
    """``key=value``, the value without its quotes. where: file and line."""

    key: str
    value: str
    where: str


def value_of(pair: Pair, read: Callable[[str], Any]) -> Any:
    """What a value means. Raises SlurmError with its place and the remedy."""
    try:
        return read(pair.value)
    except ValueError as fault:
        raise SlurmError(f"{pair.where}: {pair.key}={shown(pair.value)}: {fault}") from None


class _Reading(NamedTuple):
    """Where includes are looked for, what has been read, and the account of the first file."""

    folder: Path
    open_files: tuple[Path, ...]
    lines: list[int]
    account: Account


def read_lines(path: AnyPath, account: Account) -> Iterator[list[Pair]]:
    """The pairs of each line of a file that has any, lines of included files in their place.

    A backslash at the end of a line continues it; # begins a comment unless a backslash is before
    it; included files are looked for beside the first one. Lines that cannot be read are problems
    of the `account`. Raises SlurmError for a file that cannot be.
    """
    folder = Path(path).parent
    yield from _lines_of(path, _Reading(folder, (Path(path).resolve(),), [0], account))


def _lines_of(path: AnyPath, reading: _Reading) -> Iterator[list[Pair]]:
    name = shown_path(path)
    problems = reading.account.problems()

    def told(what: str, number: int) -> None:
        is_first = name == reading.account.file
        reading.account.taken(
            what if is_first else f"{name}:{number}: {what}", number if is_first else None
        )

    for number, line in _joined(read_text(path, most=MAX_BYTES, error=SlurmError, told=told)):
        reading.lines[0] += 1
        where = f"{name}:{number}"
        if reading.lines[0] > MAX_LINES:
            raise SlurmError(f"{where}: there are more than {MAX_LINES:,} lines; give fewer")
        if reading.lines[0] == 1 and "=" not in line and ("," in line or "|" in line):
            raise SlurmError(f"{where}: is a table of jobs; slurm.conf comes first, then the jobs")
        include = _INCLUDE.fullmatch(line)
        with problems:
            if include is not None:
                yield from _included(include[1].strip().strip('"'), where, reading)
            elif line:
                yield _pairs(line, where)


def _included(name: str, where: str, reading: _Reading) -> Iterator[list[Pair]]:
    if not name.isprintable() or "%" in name:
        raise SlurmError(f"{where}: Include {shown(name)}; give the path of a file")
    path = reading.folder / name
    if not path.exists() and (beside := reading.folder / Path(name).name).exists():
        reading.account.taken(f"{where}: Include {name}: is not there; {beside} is read")
        path = beside
    real = path.resolve()
    if real in reading.open_files:
        raise SlurmError(f"{where}: Include {name}: the file includes itself; take the line out")
    if len(reading.open_files) > MAX_DEPTH:
        raise SlurmError(f"{where}: Include {name}: more than {MAX_DEPTH} files deep")
    if not path.exists():
        raise SlurmError(
            f"{where}: Include {name}: there is no such file; copy it beside the file, or take the "
            "line out"
        )
    try:
        yield from _lines_of(path, reading._replace(open_files=(*reading.open_files, real)))
    except SlurmError as error:
        if str(error).startswith(f"{path}: "):  # not one of its lines: say who asked for it
            raise SlurmError(f"{where}: Include {name}: {error}") from None
        raise


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, with what continues them, and the numbers of their first lines."""
    begun, parts = 0, []
    for number, raw in enumerate(text.split("\n"), start=1):
        if "#" in raw:
            raw = _COMMENT.sub(r"\1", raw).replace("\\#", "#")
        line = raw.rstrip()
        begun = begun or number
        if line.endswith("\\"):
            parts.append(line[:-1])
            continue
        yield begun, "".join([*parts, line]).strip()
        begun, parts = 0, []
    if parts:
        yield begun, "".join(parts).strip()


def _pairs(line: str, where: str) -> list[Pair]:
    pairs, place = [], 0
    while place < len(line):
        found = _PAIR.match(line, place)
        if found is None and any(mark in line for mark in ("{{", "{%")):
            raise SlurmError(
                f"{where}: belongs to a template ({{{{ or {{%); give what is made of it"
            )
        if found is None:
            rest = shown(line[place:].strip())
            raise SlurmError(f"{where}: {rest}; write Key=Value, a value with blanks quoted")
        key, sign, quoted, plain = found.groups()
        if sign:
            raise SlurmError(f"{where}: {key}{sign}=: only = is known here; write it so")
        pairs.append(Pair(key, plain if quoted is None else quoted, where))
        place = found.end()
    return pairs


def _tier(text: str) -> int:
    return values.whole(text, 0, TIER_MOST)


def _count(text: str) -> int:
    return values.whole(text, 1, 65535)


def node_state(text: str) -> str:
    """The state of a node, in upper case: a word, or several with + between."""
    if not set(text.upper().split("+")) <= set(STATES):
        raise ValueError(f"give {', '.join(STATES[:-1])} or {STATES[-1]}")
    return text.upper()


def _sharing(text: str) -> tuple[str, int]:
    word, colon, count = text.upper().partition(":")
    if word in (NO, EXCLUSIVE) and not colon:
        return word, 1
    if word not in (YES, FORCE):
        raise ValueError("give NO, EXCLUSIVE, YES[:jobs] or FORCE[:jobs]")
    return word, values.whole(count, 1, 65535) if colon else DEFAULT_SHARE


def _some(text: str) -> frozenset[str] | None:
    return None if text.upper() == "ALL" else frozenset(values.names(text))


def _unit(text: str) -> str | None:
    found: str = values.one_of(*PARTITION_UNITS, "NONE")(text)
    return None if found == "NONE" else found


def _partition_state(text: str) -> str:
    found: str = values.one_of("UP", "DOWN", "DRAIN", "INACTIVE")(text)
    return found


NODE: Table = {
    "cpus": ("cpus", _count),
    "procs": ("procs", _count),
    "boards": ("boards", _count),
    "sockets": ("sockets", _count),
    "socketsperboard": ("sockets_per_board", _count),
    "corespersocket": ("cores_per_socket", _count),
    "threadspercore": ("threads_per_core", _count),
    "realmemory": ("memory_MiB", values.mebibytes),
    "memspeclimit": ("mem_spec_limit_MiB", values.mebibytes),
    "corespeccount": ("core_spec_count", lambda text: values.whole(text, 0, 65535)),
    "gres": ("gres", values.gres),
    "weight": ("weight", lambda text: values.whole(text, 0, 2**32 - 2)),
    "feature": ("features", values.names),
    "features": ("features", values.names),
    "state": ("state", node_state),
}

PARTITION: Table = {
    "nodes": ("nodes", str),
    "default": ("default", values.yes_no),
    "maxtime": ("max_time_min", values.minutes),
    "defaulttime": ("default_time_min", values.minutes),
    "minnodes": ("min_nodes", lambda text: values.whole(text)),
    "maxnodes": ("max_nodes", values.whole_or_none),
    "maxcpuspernode": ("max_cpus_per_node", values.whole_or_none),
    "maxmempercpu": ("max_mem_per_cpu_MiB", memory),
    "maxmempernode": ("max_mem_per_node_MiB", memory),
    "defmempercpu": ("def_mem_per_cpu_MiB", memory),
    "defmempernode": ("def_mem_per_node_MiB", memory),
    "defcpupergpu": ("def_cpus_per_gpu", lambda text: values.whole(text)),
    "defmempergpu": ("def_mem_per_gpu_MiB", memory),
    "prioritytier": ("tier", _tier),
    "priorityjobfactor": ("job_factor", _tier),
    "priority": ("priority", _tier),
    "oversubscribe": ("sharing", _sharing),
    "shared": ("sharing", _sharing),
    "preemptmode": ("preempt_mode", preempt_modes),
    "gracetime": ("grace_time_s", lambda text: values.whole(text)),
    "overtimelimit": ("over_time_limit_min", over_time),
    "qos": ("qos", str),
    "lln": ("lln", values.yes_no),
    "selecttypeparameters": ("select_unit", _unit),
    "state": ("state", _partition_state),
    "exclusiveuser": ("exclusive_user", values.yes_no),
    "allowaccounts": ("allow_accounts", _some),
    "allowgroups": ("allow_groups", _some),
    "allowqos": ("allow_qos", _some),
    "denyaccounts": ("deny_accounts", lambda text: frozenset(values.names(text))),
    "denyqos": ("deny_qos", lambda text: frozenset(values.names(text))),
    "tresbillingweights": ("billing_weights", values.weights),
}


def node_line(names: tuple[str, ...], given: Given, where: str) -> tuple[NodeLine, str | None]:
    """Nodes of a NodeName line, and what Slurm changes of it, if anything.

    What is missing of sockets and CPUs follows from the rest; CPUs that do not match the shape
    become those of all threads. Raises ValueError with the remedy.
    """
    fields = dict(given)
    per_board = fields.pop("sockets_per_board", None)
    boards = fields.get("boards", 1)
    sockets = fields.get("sockets") if per_board is None else boards * per_board
    cores, threads = fields.get("cores_per_socket", 1), fields.get("threads_per_core", 1)
    cpus = fields.get("cpus")
    if sockets is None:
        sockets = boards if cpus is None else max(1, cpus // (cores * threads))
    every = sockets * cores * threads
    note = None
    if cpus is None:
        cpus = every
    elif cpus not in (sockets, sockets * cores, every):
        note = f"{where}: CPUs={cpus} do not match the sockets, cores and threads: they are {every}"
        cpus = every
    fields.update(cpus=cpus, boards=boards, sockets=sockets, where=where)
    line = NodeLine(names, **fields)
    if line.core_spec_count >= line.cores:
        raise ValueError("CoreSpecCount: leave a core to jobs")
    return line, note


def partition(name: str, given: Given, nodes: tuple[str, ...], where: str) -> Partition:
    """A partition of a PartitionName line."""
    fields = dict(given)
    fields.pop("nodes", None)
    if "priority" in fields:
        value = fields.pop("priority")
        fields = {"tier": value, "job_factor": value} | fields
    if "sharing" in fields:
        fields["over_subscribe"], fields["max_share"] = fields.pop("sharing")
    return Partition(name, nodes=nodes, where=where, **fields)


def check_names(names: Iterable[str]) -> None:
    """Raise SlurmError if one of the `names` is neither a key of slurm.conf nor an option."""
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
                raise SlurmError(f"{SCHEDULER}, {name}: {shown(value)}; give true or false")
            items += [name] if value else []
        else:
            items.append(f"{name}={_written(value)}")
    return ",".join(items)


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return "YES" if value else "NO"
    return str(value)
