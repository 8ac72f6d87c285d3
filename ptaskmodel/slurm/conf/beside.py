"""Look at the files beside a slurm.conf: what gres.conf says otherwise, and which are not read.

`reading.read_conf` calls it. `Gres` of slurm.conf says what a node has, as in Slurm; gres.conf only
adds files, types and cores. Source: Slurm's manuals of gres.conf and slurm.conf, version 22.05.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath
from ptaskmodel.remarks import NOT_USED, WARNING, Account, Remark, reader
from ptaskmodel.slurm.conf import values
from ptaskmodel.slurm.conf.facts import FLAT, NodeLine
from ptaskmodel.slurm.conf.lines import TOPOLOGY, Pair, read_lines, value_of
from ptaskmodel.style.text import several

GRES = "gres.conf"
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
        elif key == AUTO:
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
