"""Read topology.conf; say what gres.conf says otherwise, and which files beside are not read.

`reading.read_conf` calls it. `Gres` of slurm.conf says what a node has, as in Slurm; gres.conf only
adds files, types and cores. Source: Slurm's manuals of gres.conf and slurm.conf, version 22.05.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, shown_path
from ptaskmodel.remarks import LEFT_OUT, NOT_USED, WARNING, Account, Remark, reader
from ptaskmodel.slurm.conf import values
from ptaskmodel.slurm.conf.facts import FLAT, NodeLine, Switch
from ptaskmodel.slurm.conf.lines import Pair, read_lines, value_of
from ptaskmodel.style.text import several

GRES = "gres.conf"
TOPOLOGY = "topology.conf"
# Names of nodes in one remark.
SHOWN = 10
AUTO = "autodetect"
# Other files of Slurm's that are never read, and what they are about.
OTHERS: Mapping[str, str] = {
    "cgroup.conf": "what confines processes, not when jobs start",
    "job_submit.lua": "may change or refuse jobs at their submission",
    "cli_filter.lua": "may change or refuse jobs at their submission",
    "burst_buffer.conf": "burst buffers are not simulated",
    "helpers.conf": "features that change are not simulated",
    "knl_generic.conf": "features that change are not simulated",
    "mps.conf": "shares of GPUs are not simulated",
    "topology.yaml": "write topology.conf instead",
}
_KEYS = frozenset(
    {"name", "type", "count", "file", "nodename", "cores", "cpus", AUTO, "multiplefiles"}
    | {"flags", "links"}
)


_Kind = tuple[str, str | None]  # name and type


class Beside(NamedTuple):
    """What is told of the files beside a slurm.conf."""

    remarks: tuple[Remark, ...] = ()


class _Gres(NamedTuple):
    """A line of gres.conf: so many `units` on each of some nodes; None: on all."""

    nodes: tuple[str, ...] | None
    name: str
    type: str | None
    units: int


def files_beside(folder: Path, nodes: Sequence[NodeLine], topology: str) -> Iterator[Remark]:
    """What is told of the files in a `folder`, beside a slurm.conf with these `nodes`.

    topology: its TopologyPlugin.
    """
    if (folder / GRES).is_file():
        yield from read_gres(folder / GRES, nodes).remarks
    found = [f"{name} ({why})" for name, why in OTHERS.items() if (folder / name).exists()]
    if topology == FLAT and (folder / TOPOLOGY).exists():
        found.append(f"{TOPOLOGY} (TopologyPlugin is {FLAT})")
    if found:
        yield Remark(f"beside slurm.conf, and not read: {', '.join(found)}", kind=NOT_USED)


@reader(SlurmError)
def read_gres(path: AnyPath, account: Account, nodes: Sequence[NodeLine]) -> Beside:
    """Compare the gres.conf at `path` with the `nodes` of slurm.conf; only its remarks count.

    account: of the file; lines that cannot be read are left out.
    """
    found: list[_Gres] = []
    detects = False
    for pairs in read_lines(path, account):
        line = int(pairs[0].where.rpartition(":")[2])
        with account.row(line):
            found += _of_line(pairs, line, account)
        detects |= any(pair.key.lower() == AUTO and pair.value.lower() != "off" for pair in pairs)
    _compare(found, nodes, detects, account)
    return Beside()


def _of_line(pairs: Sequence[Pair], line: int, account: Account) -> Iterator[_Gres]:
    given = {pair.key.lower(): pair for pair in pairs}
    for key, pair in given.items():
        if key in ("cores", "cpus"):
            what = f"{pair.key} binds no units to cores: those of all sockets may use them"
            account.unused(what, line, "Cores")
        elif key == AUTO and pair.value.lower() != "off":
            text = f"{pair.key}={shown(pair.value)}: Gres of slurm.conf says what nodes have"
            account.assumed(text, line, pair.key)
        elif key not in _KEYS:
            account.unused(f"{pair.key} changes nothing here", line, pair.key)
    if "name" not in given:
        return
    count = 1
    if "count" in given:
        count = value_of(given["count"], values.counted)
    elif "file" in given:
        count = len(value_of(given["file"], values.hosts))
    of_nodes = value_of(given["nodename"], values.hosts) if "nodename" in given else None
    kind = given["type"].value if "type" in given else None
    yield _Gres(of_nodes, given["name"].value, kind, count)


def _compare(
    found: Sequence[_Gres], nodes: Sequence[NodeLine], detects: bool, account: Account
) -> None:
    """Tell the account where lines of gres.conf and nodes of slurm.conf differ.

    detects: whether slurmd looks for units, of which gres.conf need not list all.
    """
    having: dict[str, Counter[_Kind]] = {}
    for line in nodes:
        has: Counter[_Kind] = Counter()
        for each in line.gres:
            has[each.name, each.type] += each.count
        having |= dict.fromkeys(line.names, has)
    listed: dict[str, Counter[_Kind]] = {name: Counter() for name in having}
    strange = set[str]()
    for one in found:
        for name in having if one.nodes is None else one.nodes:
            if name in listed:
                listed[name][one.name, one.type] += one.units
            else:
                strange.add(name)
    if strange:
        text = f"slurm.conf does not have {several(len(strange), 'node')}, such as {min(strange)}"
        account.unused(f"{account.file}: {text}", None, "NodeName")
    differing: dict[str, list[str]] = {}
    for name, has in having.items():
        for text in _differences(has, listed[name], detects):
            differing.setdefault(text, []).append(name)
    for text, names in differing.items():
        some = names[0] if len(names) == 1 else f"{len(names)} nodes, such as {names[0]}"
        account.tell(NOT_USED, f"{account.file}: {text} ({some})", None, "Gres", WARNING)


def _differences(has: Counter[_Kind], listed: Counter[_Kind], detects: bool) -> Iterator[str]:
    """What gres.conf gives a node otherwise than slurm.conf, of each kind of unit that it lists."""
    for kind in dict.fromkeys(name for name, _ in listed):
        ours = {of: count for (name, of), count in has.items() if name == kind}
        theirs = {of: count for (name, of), count in listed.items() if name == kind}
        most, number = sum(ours.values()), sum(theirs.values())
        types = sorted(of for of in theirs if of is not None)
        if not ours:
            yield f"{kind} counts for nothing without Gres={kind}:{number} in slurm.conf"
        elif number < most and not detects:
            yield (
                f"lists {number} of the {most} {kind} in slurm.conf: Slurm would drain the node, "
                f"here it has {most}"
            )
        elif None in ours and types:
            yield (
                f"{kind} has types ({', '.join(types)}) that Gres in slurm.conf does not name: "
                "jobs that ask for a type are refused"
            )


def switch(name: str, given: Mapping[str, str], where: str) -> Switch:
    """A switch of a SwitchName line. Raises ValueError with the remedy."""
    if ("nodes" in given) == ("switches" in given):
        raise ValueError("give either Nodes or Switches")
    nodes = values.hosts(given["nodes"]) if "nodes" in given else ()
    below = values.hosts(given["switches"]) if "switches" in given else ()
    return Switch(name, nodes, below, where)


SWITCH_KEYS = ("switchname", "nodes", "switches", "linkspeed")


class Topology(NamedTuple):
    """The switches of a topology.conf, and what is told of it."""

    switches: tuple[Switch, ...]
    remarks: tuple[Remark, ...] = ()


@reader(SlurmError)
def read_topology(path: AnyPath, account: Account, nodes: Mapping[str, None]) -> Topology:
    """The switches of the topology.conf at `path` over those of its `nodes` that there are.

    account: of the file. Raises SlurmError with all lines that cannot be read.
    """
    found: dict[str, Switch] = {}
    for pairs in read_lines(path, account):
        with account.problems():
            _switch_line(pairs, nodes, found, account)
    if not account.has_problems:
        if not found:
            raise SlurmError(f"{shown_path(path)}:1: has no SwitchName line; give the switches")
        _check_tree(found, account)
    account.check()
    return Topology(_with_nodes(found, path))


def _switch_line(
    pairs: list[Pair], nodes: Mapping[str, None], found: dict[str, Switch], account: Account
) -> None:
    """Add the switch of a line to those `found`."""
    given = {pair.key.lower(): pair.value for pair in pairs}
    head = pairs[0]
    if head.key.lower() != "switchname":
        raise SlurmError(f"{head.where}: {shown(head.key)}: begin the line with SwitchName=")
    if head.value in found:
        raise SlurmError(
            f"{head.where}: SwitchName={shown(head.value)} is there already "
            f"({found[head.value].where}); take one out"
        )
    try:
        made = switch(head.value, given, head.where)
    except ValueError as fault:
        raise SlurmError(f"{head.where}: SwitchName={shown(head.value)}: {fault}") from None
    stray = [name for name in made.nodes if name not in nodes]
    if stray:
        some = ", ".join(map(shown, stray[:SHOWN]))
        more = f" and {len(stray) - SHOWN} more" if len(stray) > SHOWN else ""
        text = f"SwitchName={made.name}: slurm.conf has no nodes {some}{more}: they are left out"
        line = int(head.where.rpartition(":")[2])
        account.tell(LEFT_OUT, text, line, level=WARNING)
        made = replace(made, nodes=tuple(name for name in made.nodes if name in nodes))
    for pair in pairs:
        if pair.key.lower() not in SWITCH_KEYS:
            line = int(head.where.rpartition(":")[2])
            account.unused(f"{pair.key} changes nothing here", line, pair.key)
    found[head.value] = made


def _with_nodes(switches: Mapping[str, Switch], path: AnyPath) -> tuple[Switch, ...]:
    """The switches that reach nodes. Raises SlurmError if none does."""
    reaching = {name for name, one in switches.items() if one.nodes}
    if not reaching:
        raise SlurmError(f"{shown_path(path)}: slurm.conf has none of its nodes; correct them")
    above = {name: one.name for one in switches.values() for name in one.switches}
    for name in tuple(reaching):
        while name in above and above[name] not in reaching:
            name = above[name]
            reaching.add(name)
    return tuple(
        replace(one, switches=tuple(name for name in one.switches if name in reaching))
        for name, one in switches.items()
        if name in reaching
    )


def _check_tree(switches: Mapping[str, Switch], account: Account) -> None:
    """Tell which switches are below two others, below themselves, or not there."""
    above: dict[str, str] = {}
    for one in switches.values():
        for name in one.switches:
            with account.problems():
                if name not in switches:
                    raise SlurmError(
                        f"{one.where}: SwitchName={one.name}: there is no switch {shown(name)}; "
                        "give it a line"
                    )
                if above.setdefault(name, one.name) != one.name:
                    raise SlurmError(
                        f"{one.where}: {name} is below {above[name]} and {one.name}; "
                        "take it from one"
                    )
    told = set[str]()
    for name in switches:
        walked: dict[str, None] = {}
        place: str | None = name
        while place is not None and place not in walked:
            walked[place] = None
            place = above.get(place)
        if place is not None and told.isdisjoint(walked):
            what = f"the switch {place} is below itself; correct Switches"
            account.refused(SlurmError(f"{switches[place].where}: {what}"))
            told.update(walked)
