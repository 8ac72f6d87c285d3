"""slurm.conf read into facts (see `facts.Conf`); what is not known is kept and listed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ptaskmodel.batch.slurm import values
from ptaskmodel.batch.slurm.conf_changes import Changes, changed
from ptaskmodel.batch.slurm.conf_keys import OPTIONS, PRIORITY, SCALARS, SWITCHES, Reader, Table
from ptaskmodel.batch.slurm.conf_lines import Pair, read_lines
from ptaskmodel.batch.slurm.conf_nodes import NODE, PARTITION, node_line, partition, switch
from ptaskmodel.batch.slurm.facts import (
    TREE,
    Conf,
    NodeLine,
    Partition,
    PriorityParameters,
    SchedulerParameters,
    Switch,
    Unread,
)
from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, shown_path

DEFAULT = "DEFAULT"
ALL = "ALL"
TOPOLOGY = "topology.conf"


def read_conf(path: AnyPath, changes: Changes = MappingProxyType({})) -> Conf:
    """The facts of a slurm.conf, and of the topology.conf beside it if its plugin needs one.

    changes: other values of its keys, or of options of its SchedulerParameters (``bf_interval``).
    Raises SlurmError, one line with file and line, for a value that makes no sense.
    """
    origin = shown_path(path)
    lines = changed(read_lines(path), changes, origin) if changes else read_lines(path)
    return _Builder(origin).built(lines, Path(path).parent)


class _Builder:
    """What the lines read so far have said."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.scalars: dict[str, Any] = {}
        self.priority: dict[str, Any] = {}
        self.scheduler = SchedulerParameters()
        self.lines: list[NodeLine] = []
        self.groups: list[
            tuple[str, dict[str, Any], Pair]
        ] = []  # partitions, until nodes are known
        self.sets: dict[str, dict[str, str]] = {}
        self.down: dict[str, str] = {}
        self.others: list[Unread] = []
        self.notes: list[str] = []
        self.seen: dict[str, str] = {}
        self.node_defaults: dict[str, Any] = {}
        self.partition_defaults: dict[str, Any] = {}

    def built(self, lines: Iterable[list[Pair]], folder: Path) -> Conf:
        known: dict[str, Callable[[list[Pair]], None]] = {
            "nodename": self._nodes,
            "partitionname": self._partition,
            "nodeset": self._set,
            "downnodes": self._down,
        }
        for pairs in lines:
            first = pairs[0].key.lower()
            if first in known:
                known[first](pairs)
            else:
                for pair in pairs:
                    self._scalar(pair)
        if not self.lines:
            raise SlurmError(f"{self.origin}: has no NodeName line; give the nodes")
        home = {name: None for line in self.lines for name in line.names}
        if not self.groups:
            raise SlurmError(f"{self.origin}: has no PartitionName line; give a partition")
        stray = next((name for name in self.down if name not in home), None)
        if stray is not None:
            raise SlurmError(f"{self.origin}: DownNodes={stray}: there is no such node; correct it")
        switches: tuple[Switch, ...] = ()
        if self.scalars.get("topology_plugin") == TREE:
            switches = read_topology(folder / TOPOLOGY, home)
        return Conf(
            tuple(self.lines),
            tuple(self._made(*group, home) for group in self.groups),
            switches,
            scheduler=self.scheduler,
            priority=PriorityParameters(**self.priority),
            down_nodes=MappingProxyType(self.down),
            others=tuple(self.others),
            notes=tuple(self.notes),
            origin=self.origin,
            **self.scalars,
        )

    def _scalar(self, pair: Pair) -> None:
        key = pair.key.lower()
        if key == "schedulerparameters":
            self.scheduler = self._options(pair)
        elif key in SCALARS:
            self._set_once(self.scalars, SCALARS[key], pair)
        elif key in PRIORITY:
            self._set_once(self.priority, PRIORITY[key], pair)
        else:
            self.others.append(Unread(*pair))

    def _set_once(self, fields: dict[str, Any], entry: tuple[str, Reader], pair: Pair) -> None:
        name, read = entry
        if name in fields:
            self.notes.append(f"{pair.where}: {pair.key} is given again: the last value holds")
        fields[name] = value_of(pair, read)

    def _options(self, pair: Pair) -> SchedulerParameters:
        """SchedulerParameters, found as Slurm finds them: by what the text contains."""
        text = pair.value.lower()
        fields: dict[str, Any] = {}
        if "max_job_bf=" in text:
            raise SlurmError(f"{pair.where}: max_job_bf is gone: write bf_max_job_test")
        for name, option in OPTIONS.items():
            _, found, rest = text.partition(f"{name}=")
            if found:
                given = Pair(name, rest.split(",")[0].strip(), pair.where)
                if option.off and given.value == "-1":
                    fields[option.field] = -1
                    continue
                fields[option.field] = value_of(given, option.read)
        fields |= {name: True for name in SWITCHES if name in text}
        for item in values.names(text):
            name = item.partition("=")[0]
            if not any(known in name for known in (*OPTIONS, *SWITCHES)):
                self.others.append(Unread(f"SchedulerParameters {name}", item, pair.where))
        return SchedulerParameters(**fields)

    def _table(self, table: Table, pairs: list[Pair], defaults: Mapping[str, Any]) -> dict:
        """The fields that pairs after the first give, over the defaults."""
        fields = dict(defaults)
        for pair in pairs[1:]:
            entry = table.get(pair.key.lower())
            if entry is None:
                self.others.append(Unread(*pair))
            else:
                fields[entry[0]] = value_of(pair, entry[1])
        return fields

    def _nodes(self, pairs: list[Pair]) -> None:
        head = pairs[0]
        fields = self._table(NODE, pairs, self.node_defaults)
        if head.value.upper() == DEFAULT:
            self.node_defaults = fields
            return
        names = value_of(head, values.hosts)
        for name in names:
            self._once("NodeName", name, head.where)
        try:
            line, note = node_line(names, fields, head.where)
        except ValueError as fault:
            raise SlurmError(f"{head.where}: NodeName={shown(head.value)}: {fault}") from None
        self.lines.append(line)
        self.notes += [note] if note else []

    def _partition(self, pairs: list[Pair]) -> None:
        head = pairs[0]
        fields = self._table(PARTITION, pairs, self.partition_defaults)
        if head.value.upper() == DEFAULT:
            self.partition_defaults = fields
            return
        if not head.value.isprintable() or "," in head.value:
            raise SlurmError(f"{head.where}: PartitionName={shown(head.value)}: give one name")
        self._once("PartitionName", head.value, head.where)
        self.groups.append((head.value, fields, head))

    def _made(
        self, name: str, fields: dict[str, Any], head: Pair, home: Mapping[str, None]
    ) -> Partition:
        text = fields.get("nodes", "")
        found: dict[str, None] = {}
        for item in values.split_outside(text) if text else []:
            if item.upper() == ALL:
                found |= home
            elif item in self.sets:
                found |= dict.fromkeys(self._of_set(item, head))
            else:
                found |= dict.fromkeys(value_of(Pair("Nodes", item, head.where), values.hosts))
        stray = next((node for node in found if node not in home), None)
        if stray is not None:
            raise SlurmError(
                f"{head.where}: PartitionName={name}: Nodes has {shown(stray)}, which no NodeName "
                "line gives; add or correct it"
            )
        return partition(name, fields, tuple(found), head.where)

    def _set(self, pairs: list[Pair]) -> None:
        self.sets[pairs[0].value] = {pair.key.lower(): pair.value for pair in pairs[1:]}

    def _of_set(self, name: str, head: Pair) -> list[str]:
        """The nodes of a NodeSet: those named and those with one of its features."""
        given = self.sets[name]
        nodes = value_of(Pair("Nodes", given.get("nodes", ""), head.where), _hosts_or_none)
        wanted = set(values.names(given.get("feature", "")))
        return [
            *nodes,
            *(node for line in self.lines if wanted & set(line.features) for node in line.names),
        ]

    def _down(self, pairs: list[Pair]) -> None:
        given = {pair.key.lower(): pair.value for pair in pairs}
        for name in value_of(pairs[0], values.hosts):
            self.down[name] = given.get("state", "DOWN").upper()

    def _once(self, kind: str, name: str, where: str) -> None:
        if (before := self.seen.setdefault(f"{kind}={name}", where)) is not where:
            raise SlurmError(f"{where}: {kind}={name} is there already ({before}); take one out")


def read_topology(path: AnyPath, nodes: Mapping[str, None]) -> tuple[Switch, ...]:
    """The switches of a topology.conf over some nodes. Raises SlurmError with file and line."""
    found: dict[str, Switch] = {}
    for pairs in read_lines(path):
        given = {pair.key.lower(): pair.value for pair in pairs}
        head = pairs[0]
        if head.key.lower() != "switchname":
            raise SlurmError(f"{head.where}: {shown(head.key)}: begin the line with SwitchName=")
        if head.value in found:
            raise SlurmError(f"{head.where}: SwitchName={head.value} is there already")
        try:
            found[head.value] = switch(head.value, given)
        except ValueError as fault:
            raise SlurmError(f"{head.where}: SwitchName={shown(head.value)}: {fault}") from None
        stray = next((name for name in found[head.value].nodes if name not in nodes), None)
        if stray is not None:
            raise SlurmError(f"{head.where}: slurm.conf has no node {shown(stray)}; correct it")
    _check_tree(found, shown_path(path))
    return tuple(found.values())


def _check_tree(switches: Mapping[str, Switch], where: str) -> None:
    """SlurmError unless every switch is below at most one other, and none below itself."""
    above: dict[str, str] = {}
    for one in switches.values():
        for name in one.switches:
            if name not in switches:
                raise SlurmError(f"{where}: SwitchName={one.name}: there is no switch {name}")
            if above.setdefault(name, one.name) != one.name:
                raise SlurmError(f"{where}: {name} is below {above[name]} and {one.name}")
    for name in switches:
        place, steps = name, 0
        while place in above and steps <= len(above):
            place, steps = above[place], steps + 1
        if steps > len(above):
            raise SlurmError(f"{where}: the switch {name} is below itself; correct the Switches")


def _hosts_or_none(text: str) -> tuple[str, ...]:
    return values.hosts(text) if text else ()


def value_of(pair: Pair, read: Reader) -> Any:
    """What a value means. Raises SlurmError with its place and the remedy."""
    try:
        return read(pair.value)
    except ValueError as fault:
        raise SlurmError(f"{pair.where}: {pair.key}={shown(pair.value)}: {fault}") from None


def with_options(conf: Conf, **changes: Any) -> Conf:
    """The same configuration with some SchedulerParameters changed, by the names of the facts."""
    return dataclasses.replace(conf, scheduler=dataclasses.replace(conf.scheduler, **changes))
