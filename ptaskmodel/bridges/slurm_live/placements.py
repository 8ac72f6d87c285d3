"""Which cores Slurm gives a job, from what it tells of each choice with DebugFlags=CPU_Bind."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ptaskmodel.batch.slurm.nodes import Nodes
from ptaskmodel.batch.slurm.record import Allocation
from ptaskmodel.batch.slurm.values import hosts

_LINE = re.compile(
    r"\[\S+\] (?:"
    r"JobId=(?P<array>\d+)(?:_(?P<index>\d+)\(\d+\))? nhosts:"
    r"|(?P<node>Node\[\d+\]:)"
    r"|\s+Mem\(MB\):(?P<memory>\d+):\d+ .*CPUs:(?P<cpus>\d+):"
    r"|\s+Socket\[(?P<socket>\d+)\] Core\[(?P<core>\d+)\] is allocated"
    r")"
)


@dataclass(slots=True)
class _Choice:
    """Of each node of a job, in order: CPUs, MiB, and (socket, core) of its cores."""

    cpus: list[int] = field(default_factory=list)
    memory_MiB: list[int] = field(default_factory=list)
    cores: list[list[tuple[int, int]]] = field(default_factory=list)


class Placements:
    """The last choice of each job that has not started, from the lines of a log."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._choices: dict[tuple[int, int | None], _Choice] = {}
        self._choice = _Choice()

    def take(self, line: str) -> None:
        """Hear a line of slurmctld's log."""
        found = _LINE.match(line)
        if found is None:
            return
        if found["array"] is not None:
            self._choice = _Choice()
            index = None if found["index"] is None else int(found["index"])
            self._choices[int(found["array"]), index] = self._choice
        elif found["node"] is not None:
            self._choice.cores.append([])
        elif found["cpus"] is not None:
            self._choice.cpus.append(int(found["cpus"]))
            self._choice.memory_MiB.append(int(found["memory"]))
        elif self._choice.cores:
            self._choice.cores[-1].append((int(found["socket"]), int(found["core"])))

    def allocation(self, number: int, task: tuple[int, int] | None, nodes_text: str) -> Allocation:
        """What a job that starts on these nodes holds; whole nodes if no choice was told."""
        names = hosts(nodes_text)
        mask = self._nodes.mask(names)
        choice = self._choices.pop((number, None) if task is None else task, None)
        if choice is None or len(choice.cpus) != len(names):
            return Allocation(mask, len(names))
        cores = []
        for name, taken in zip(names, choice.cores, strict=True):
            per_socket = self._nodes.lines[self._nodes.index[name]].cores_per_socket
            cores.append(sum(1 << socket * per_socket + core for socket, core in taken))
        memory = tuple(choice.memory_MiB) if any(choice.memory_MiB) else ()
        return Allocation(mask, len(names), tuple(cores), tuple(choice.cpus), memory)
