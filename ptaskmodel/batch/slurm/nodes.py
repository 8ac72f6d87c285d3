"""The nodes of a configuration in Slurm's order: an index each, shapes, and sets as masks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ptaskmodel.batch.hostset import Mask, members, of_hosts
from ptaskmodel.batch.slurm.conf.facts import Conf, NodeLine
from ptaskmodel.errors import SlurmError

_DIGITS = re.compile(r"(\d+)")


def natural(name: str) -> list[Any]:
    """The key of a name in Slurm's order: digits compare as numbers."""
    return [int(part) if part.isdigit() else part for part in _DIGITS.split(name)]


@dataclass(slots=True, eq=False)
class Nodes:
    """Node k is ``names[k]`` and has the shape of ``lines[k]``.

    cores: how many jobs may use (those of CoreSpecCount, the last ones, are withheld). cpus: of
    these cores, as jobs count them. memory_MiB: without MemSpecLimit. sets: of equal NodeName lines
    in order of weight, then of the file. usable: those whose state lets jobs in. alike: whether
    all have the same number of CPUs. up: the usable ones that have not failed; all else stays as it
    is.
    """

    names: tuple[str, ...]
    index: dict[str, int]
    lines: tuple[NodeLine, ...]
    cores: tuple[int, ...]
    cpus: tuple[int, ...]
    memory_MiB: tuple[int, ...]
    weights: tuple[int, ...]
    sets: tuple[tuple[int, Mask], ...]
    partitions: dict[str, Mask]
    usable: Mask
    alike: bool
    up: Mask = field(init=False)

    def __post_init__(self) -> None:
        self.up = self.usable

    def __len__(self) -> int:
        return len(self.names)

    def mask(self, names: Iterable[str]) -> Mask:
        """The set of nodes with these names; SlurmError for one that is unknown."""
        try:
            return of_hosts(self.index[name] for name in names)
        except KeyError as missing:
            raise SlurmError(f"slurm.conf has no node {missing}; correct the name") from None

    def names_of(self, nodes: Mask) -> list[str]:
        """The names of a set, in Slurm's order."""
        return [self.names[k] for k in members(nodes)]


def nodes_of(conf: Conf) -> Nodes:
    """The nodes of a configuration. Raises SlurmError if a node is there twice."""
    line_of: dict[str, NodeLine] = {}
    for line in conf.nodes:
        for name in line.names:
            if name in line_of:
                raise SlurmError(f"{line.where}: node {name} is there already; name it once")
            line_of[name] = line
    names = tuple(sorted(line_of, key=natural))
    index = {name: k for k, name in enumerate(names)}
    lines = tuple(line_of[name] for name in names)
    cores = tuple(line.cores - line.core_spec_count for line in lines)
    down = {name for name, state in conf.down_nodes.items() if "DOWN" in state or "DRAIN" in state}
    sets = [
        (line.weight, of_hosts(index[name] for name in line.names))
        for line in sorted(conf.nodes, key=lambda line: line.weight)
    ]
    return Nodes(
        names,
        index,
        lines,
        cores,
        tuple(count * line.threads for count, line in zip(cores, lines, strict=True)),
        tuple(max(1, line.memory_MiB - line.mem_spec_limit_MiB) for line in lines),
        tuple(line.weight for line in lines),
        tuple(sets),
        {p.name: of_hosts(index[name] for name in p.nodes) for p in conf.partitions},
        of_hosts(
            k
            for k, (name, line) in enumerate(zip(names, lines, strict=True))
            if line.usable and name not in down
        ),
        len({count * line.threads for count, line in zip(cores, lines, strict=True)}) <= 1,
    )
