"""Read slurm.conf into `conf.facts.Conf`; unknown keys are kept and listed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, shown_path
from ptaskmodel.remarks import TAKEN, Account, Remark, reader, warn
from ptaskmodel.slurm.conf import values, versions
from ptaskmodel.slurm.conf.beside import TOPOLOGY, files_beside, read_topology
from ptaskmodel.slurm.conf.facts import (
    CONS_RES,
    FLAT,
    LINEAR,
    TREE,
    Conf,
    NodeLine,
    Partition,
    PriorityParameters,
    SchedulerParameters,
    Switch,
    Unread,
)
from ptaskmodel.slurm.conf.keys import (
    OPTIONS,
    PRIORITY,
    SCALARS,
    SWITCHES,
    WORDS,
    Reader,
    Table,
    meant,
    units_refused,
)
from ptaskmodel.slurm.conf.lines import (
    NODE,
    PARTITION,
    SCHEDULER,
    Changes,
    Pair,
    changed,
    node_line,
    node_state,
    partition,
    read_lines,
    value_of,
)
from ptaskmodel.style.text import several

# Where options of preemption stand from Slurm 23.02 on, without this beginning of their names.
PREEMPTION, PREFIX = "PreemptParameters", "preempt_"
# Where Slurm 25.05 and later look for a topology first.
BLOCKS = "topology.yaml"
DEFAULT = "DEFAULT"
# Keys that begin lines of their own.
_OLD_TESTS = "max_job_bf="  # before Slurm 16.05
LINES = ("nodename", "partitionname", "nodeset", "downnodes")
DOWN = ("downnodes", "state", "reason")
ALL = "ALL"


@reader(SlurmError)
def read_conf(
    path: AnyPath,
    account: Account,
    changes: Changes = MappingProxyType({}),
    version: str = versions.REFERENCE,
) -> Conf:
    """The facts of the slurm.conf at `path`, and of topology.conf beside it if it needs one.

    changes: other values of its keys, or of options of its SchedulerParameters (``bf_interval``).
    version: of the Slurm that it is for, one of `versions.VERSIONS`: whose defaults and keys hold.
    account: of the file. Raises SlurmError with every value that makes no sense, and its line.
    """
    lines: Iterable[list[Pair]] = list(read_lines(path, account))
    if changes:
        lines = changed(lines, changes, account.file)
    conf = _Builder(account, version).built(lines, Path(path).parent)
    for one in conf.others:
        if one.meant:
            warn(f"{one.where}: {one.key} is not known; did you mean {one.meant}?")
    return conf


class _Builder:
    """What the lines read so far have said. What is refused of them is a problem of the account.

    names_lost: whether a line that may name nodes was refused, so that some may be missing.
    """

    def __init__(self, account: Account, version: str) -> None:
        self.account, self.version = account, version
        self.problems = account.problems()
        self.origin = origin = account.file
        self.names_lost = self.seen_partition = account.has_problems
        self.scalars: dict[str, Any] = {}
        self.priority: dict[str, Any] = {}
        self.options: dict[str, dict[str, Any]] = {SCHEDULER: {}, PREEMPTION: {}}
        self.lines: list[NodeLine] = []
        # Partitions, until nodes are known.
        self.groups: list[tuple[str, dict[str, Any], Pair]] = []
        self.sets: dict[str, dict[str, Pair]] = {}
        self.down: dict[str, tuple[str, str]] = {}  # the state, and where it is said
        self.last = f"{origin}:1"
        self.places: dict[str, str] = {}
        self.others: list[Unread] = []
        self.notes: list[str] = []
        self.alike: list[Remark] = []
        self.seen: dict[str, str] = {}
        self.node_defaults: dict[str, Any] = {}
        self.partition_defaults: dict[str, Any] = {}

    def built(self, lines: Iterable[list[Pair]], folder: Path) -> Conf:
        readers: tuple[Callable[[list[Pair]], None], ...]
        readers = self._nodes, self._partition, self._set, self._down
        known = dict(zip(LINES, readers, strict=True))
        for pairs in lines:
            self.last = pairs[0].where
            first = pairs[0].key.lower()
            if first in known:
                with self.problems:
                    known[first](pairs)
            else:
                for pair in pairs:
                    with self.problems:
                        self._scalar(pair)
        home = {name: None for line in self.lines for name in line.names}
        with self.problems:
            self._check_half_life()
        with self.problems:
            self._take_version(folder)
        with self.problems:
            if not home and not self.names_lost:
                raise SlurmError(self._without("NodeName", "the nodes"))
            if not self.seen_partition:
                raise SlurmError(self._without("PartitionName", "a partition"))
        self._check_down(home)
        partitions: list[Partition] = []
        for group in self.groups:
            with self.problems:
                partitions.append(self._made(*group, home))
        self.account.check()
        if why := units_refused(self.scalars):
            raise SlurmError(f"{self.places['select_parameters']}: SelectTypeParameters: {why}")
        switches, told = self._switches(folder, home)
        plugin = self.scalars.get("topology_plugin", FLAT)
        beside = files_beside(folder, self.lines, plugin)
        return Conf(
            tuple(self.lines),
            tuple(partitions),
            switches,
            version=self.version,
            scheduler=SchedulerParameters(**self.options[SCHEDULER] | self.options[PREEMPTION]),
            priority=PriorityParameters(**self.priority),
            down_nodes=MappingProxyType({name: state for name, (state, _) in self.down.items()}),
            others=tuple(self.others),
            remarks=(*told, *self.alike, *map(Remark, self.notes), *beside),
            origin=self.origin,
            **self.scalars,
        )

    def _without(self, key: str, what: str) -> str:
        """Say that no line begins with a key, or which one looks as if it were to."""
        like = next((one for one in self.others if one.meant == key), None)
        if like is not None:
            return f"{like.where}: {like.key} is not known; write {key}"
        return f"{self.last}: ends without a {key} line; give {what}"

    def _check_half_life(self) -> None:
        if not self.priority.get("decay_half_life_s", 1) and (
            self.priority.get("usage_reset_period", "NONE") == "NONE"
        ):
            raise SlurmError(
                f"{self.places['decay_half_life_s']}: PriorityDecayHalfLife=0 without "
                "PriorityUsageResetPeriod: Slurm does not start so; give one of both"
            )

    def _check_down(self, home: Mapping[str, None]) -> None:
        for name, (_, where) in self.down.items():
            with self.problems:
                if name not in home and not self.names_lost:
                    raise SlurmError(
                        f"{where}: DownNodes={shown(name)}: there is no such node; correct it"
                    )

    def _switches(
        self, folder: Path, home: Mapping[str, None]
    ) -> tuple[tuple[Switch, ...], tuple[Remark, ...]]:
        """The switches of topology.conf if there are to be any, and what is told of them."""
        if self.scalars.get("topology_plugin") != TREE:
            return (), ()
        if not (folder / TOPOLOGY).exists():
            raise SlurmError(
                f"{self.places['topology_plugin']}: TopologyPlugin={TREE}: "
                f"{folder / TOPOLOGY} is missing; copy it there, or take the line out"
            )
        switches, told = read_topology(folder / TOPOLOGY, home)
        apart = set(home).difference(*(one.nodes for one in switches))
        if apart:
            what = f"no switch reaches {several(len(apart), 'node')}, such as {min(apart)}"
            self.notes.append(f"{folder / TOPOLOGY}: {what}")
        words = self.scalars.get("topology_parameters", frozenset())
        if "DRAGONFLY" in words and self.scalars.get("select_type") == CONS_RES:
            self.notes.append("TopologyParam=Dragonfly with cons_res: taken for a tree")
        return switches, told

    def _scalar(self, pair: Pair) -> None:
        key = pair.key.lower()
        self._check_version(pair)
        if key == SCHEDULER.lower():
            self.options[SCHEDULER] = self._options(pair)
        elif key == PREEMPTION.lower() and versions.reaches(self.version, versions.SINCE[key]):
            given = ",".join(f"{PREFIX}{one}" for one in values.names(pair.value))
            self.options[PREEMPTION] = self._options(pair._replace(value=given), PREEMPTION)
        elif key in SCALARS:
            self._set_once(self.scalars, SCALARS[key], pair)
        elif key in PRIORITY:
            self._set_once(self.priority, PRIORITY[key], pair)
        else:
            self._unread(pair, (*SCALARS, *PRIORITY, "schedulerparameters", *LINES))
        for word in sorted(values.words(pair.value) - WORDS[key]) if key in WORDS else ():
            self.others.append(Unread(f"{pair.key} {word}", word, pair.where))

    def _check_version(self, pair: Pair) -> None:
        if why := versions.refusal(pair.key.lower(), pair.value.lower(), self.version):
            raise SlurmError(f"{pair.where}: {pair.key}={shown(pair.value)}: {why}")

    def _take_version(self, folder: Path) -> None:
        """Take the defaults of the version; check what only the whole of the files tells."""
        for key, value in versions.defaults_of(self.version).items():
            if SCALARS[key.lower()][0] not in self.scalars:
                self._scalar(Pair(key, value, f"{self.origin}, default of Slurm {self.version}"))
        blocks = folder / BLOCKS
        if versions.reaches(self.version, "25.05") and blocks.exists():
            raise SlurmError(
                f"{shown_path(blocks)}: it came with Slurm 25.05 and is not simulated, since only "
                f"{versions.REFERENCE} could be compared; write {TOPOLOGY} instead"
            )
        plugins = self.scalars.get("topology_plugin"), self.scalars.get("select_type", LINEAR)
        if plugins == (TREE, LINEAR) and versions.reaches(self.version, versions.NO_LINEAR_TREE):
            raise SlurmError(
                f"{self.places['topology_plugin']}: TopologyPlugin={TREE}: Slurm "
                f"{versions.NO_LINEAR_TREE} took trees out of select/linear; write "
                "SelectType=select/cons_tres"
            )
        told = max(
            ((versions.since(one.key), one) for one in self.others),
            key=lambda found: found[0],
            default=None,
        )
        if told and not versions.reaches(self.version, told[0]):
            since, one = told
            given = [
                key
                for key in versions.defaults_of(since)
                if SCALARS[key.lower()][0] not in self.scalars
            ]
            effect = (
                f"; that changes {' and '.join(given)}, which the file leaves out" if given else ""
            )
            self.notes.append(
                f"{one.where}: {one.key} came with Slurm {since}, and the file is read as of "
                f"{self.version}: give --slurm-version {since}{effect}"
            )

    def _unread(self, pair: Pair, known: Iterable[str], whose: str = "") -> None:
        """Keep what is not known, with what it may have been meant to be."""
        like = meant(pair.key, known)
        self.others.append(Unread(f"{whose}{pair.key}", pair.value, pair.where, like))

    def _set_once(self, fields: dict[str, Any], entry: tuple[str, Reader], pair: Pair) -> None:
        name, read = entry
        if name in fields:
            self.notes.append(f"{pair.where}: {pair.key} is given again: the last value holds")
        fields[name] = value_of(pair, read)
        self.places[name] = pair.where

    def _again(self, pair: Pair, what: str) -> None:
        """Tell `what` is so of a key; that of many lines is told of the first."""
        file, _, line = pair.where.rpartition(":")
        text = f"{pair.where}: {pair.key} {what}"
        self.alike.append(Remark(text, kind=TAKEN, file=file, line=int(line), field=pair.key))

    def _options(self, pair: Pair, whose: str = SCHEDULER) -> dict[str, Any]:
        """SchedulerParameters, found as Slurm finds them: by what the text contains."""
        text = pair.value.lower()
        fields: dict[str, Any] = {}
        if _OLD_TESTS in text and "bf_max_job_test=" not in text:
            text = text.replace(_OLD_TESTS, "bf_max_job_test=")
            what = f"{_OLD_TESTS} is taken for bf_max_job_test=, as which slurmctld wants it now"
            self.notes.append(f"{pair.where}: {what}")
        for name, option in OPTIONS.items():
            _, found, rest = text.partition(f"{name}=")
            if found:
                given = Pair(name, rest.split(",")[0].strip(), pair.where)
                if option.off and given.value == "-1":
                    fields[option.field] = -1
                    continue
                with self.problems:
                    fields[option.field] = value = value_of(given, option.read)
                    if option.begins and not given.value.isdigit():
                        self.notes.append(
                            f"{pair.where}: {name}={given.value} is {value} for Slurm, which reads "
                            "the digits that it begins with"
                        )
        fields |= {name: True for name in SWITCHES if name in text}
        for item in values.names(text):
            name, known = item.partition("=")[0], item.lower()
            if not any(one in known for one in (*(f"{name}=" for name in OPTIONS), *SWITCHES)):
                shorter = name.removeprefix(PREFIX) if whose == PREEMPTION else name
                given = Pair(shorter, item, pair.where)
                self._unread(given, (*OPTIONS, *SWITCHES), f"{whose} ")
        return fields

    def _table(self, table: Table, pairs: list[Pair], defaults: Mapping[str, Any]) -> dict:
        """The fields that pairs after the first give, over the defaults."""
        fields, given = dict(defaults), set()
        for pair in pairs[1:]:
            entry = table.get(pair.key.lower())
            if entry is None:
                self._check_version(pair)
                self._unread(pair, table)
                continue
            if entry[0] in given:
                self._again(pair, "is given again: the last value holds")
            given.add(entry[0])
            try:  # as `problems` does, whose calls would cost a tenth of reading
                fields[entry[0]] = value_of(pair, entry[1])
            except SlurmError as error:
                self.account.refused(error)
        return fields

    def _nodes(self, pairs: list[Pair]) -> None:
        head = pairs[0]
        fields = self._table(NODE, pairs, self.node_defaults)
        if head.value.upper() == DEFAULT:
            self.node_defaults = fields
            return
        if (procs := fields.pop("procs", None)) is not None and fields.setdefault(
            "cpus", procs
        ) != procs:
            at = next((pair for pair in pairs if pair.key.lower() == "procs"), head)
            self._again(at, "is not used beside CPUs, as in Slurm")
        before, self.names_lost = self.names_lost, True
        names = value_of(head, values.hosts)
        if not names or "=" in head.value:  # the next key
            raise SlurmError(f"{head.where}: NodeName has no names; give them")
        for name in names:
            self._once("NodeName", name, head.where)
        try:
            line, note = node_line(names, fields, head.where)
        except ValueError as fault:
            raise SlurmError(f"{head.where}: NodeName={shown(head.value)}: {fault}") from None
        self.names_lost = before
        self.lines.append(line)
        self.notes += [note] if note else []

    def _partition(self, pairs: list[Pair]) -> None:
        head = pairs[0]
        fields = self._table(PARTITION, pairs, self.partition_defaults)
        if head.value.upper() == DEFAULT:
            self.partition_defaults = fields
            return
        self.seen_partition = True
        if not head.value.isprintable() or "," in head.value:
            raise SlurmError(f"{head.where}: PartitionName={shown(head.value)}; give one name")
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
                found |= dict.fromkeys(self._of_set(item))
            else:
                found |= dict.fromkeys(value_of(Pair("Nodes", item, head.where), values.hosts))
        stray = next((node for node in found if node not in home), None)
        if stray is not None and not self.names_lost:
            raise SlurmError(
                f"{head.where}: PartitionName={name}: Nodes has {shown(stray)}, which no NodeName "
                "line gives; add or correct it"
            )
        return partition(name, fields, tuple(found), head.where)

    def _set(self, pairs: list[Pair]) -> None:
        head, given = pairs[0], {pair.key.lower(): pair for pair in pairs[1:]}
        if not {"nodes", "feature"} & set(given):
            self.names_lost = True
            raise SlurmError(f"{head.where}: NodeSet={shown(head.value)}; give Nodes or Feature")
        self._once("NodeSet", head.value, head.where)
        self.sets[head.value] = given
        for key, pair in given.items():
            if key not in ("nodes", "feature"):
                self._unread(pair, ("nodes", "feature"), "NodeSet ")

    def _of_set(self, name: str) -> list[str]:
        """The nodes of a NodeSet: those named and those with one of its features."""
        given = self.sets[name]
        nodes = value_of(given["nodes"], values.hosts) if "nodes" in given else ()
        wanted = set(values.names(given["feature"].value if "feature" in given else ""))
        return [
            *nodes,
            *(node for line in self.lines if wanted & set(line.features) for node in line.names),
        ]

    def _down(self, pairs: list[Pair]) -> None:
        given = {pair.key.lower(): pair for pair in pairs}
        for key, pair in given.items():
            if key not in DOWN:
                self._unread(pair, DOWN, "DownNodes ")
        state = value_of(given["state"], node_state) if "state" in given else "DOWN"
        for name in value_of(pairs[0], values.hosts):
            self.down[name] = state, pairs[0].where

    def _once(self, kind: str, name: str, where: str) -> None:
        if (before := self.seen.setdefault(f"{kind}={name}", where)) is not where:
            raise SlurmError(f"{where}: {kind}={name} is there already ({before}); take one out")


def without_memory(conf: Conf) -> Conf:
    """The configuration `conf` with memory that no job consumes."""
    words = conf.select_parameters
    kept = frozenset(word.removesuffix("_MEMORY") for word in words - {"CR_MEMORY"})
    if conf.select_type != LINEAR and not kept & {"CR_CPU", "CR_CORE", "CR_SOCKET"}:
        kept |= {"CR_CORE"}
    partitions = tuple(
        dataclasses.replace(
            one, select_unit=one.select_unit and one.select_unit.removesuffix("_MEMORY")
        )
        for one in conf.partitions
    )
    return dataclasses.replace(conf, select_parameters=kept, partitions=partitions)
