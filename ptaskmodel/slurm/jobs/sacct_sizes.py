"""How large the jobs of Slurm's accounting are: their nodes, CPUs, memory and other resources.

Slurm logs the fewest nodes that a job asked for (ReqNodes), its memory and GPUs on these (ReqTRES),
and what it got (NNodes, AllocTRES). What it asked for follows from both, and from its command line.
Source: records of a real Slurm 22.05 and its database, in tests/slurm/reference/accounting.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ptaskmodel.slurm.conf import values
from ptaskmodel.slurm.conf.facts import EXCLUSIVE, LINEAR, Conf, Gres, nodes_of
from ptaskmodel.slurm.jobs.needs import PER_CPU, memory_asked
from ptaskmodel.slurm.jobs.request import JobRequest
from ptaskmodel.slurm.jobs.sacct_rows import NEVER, Row, value
from ptaskmodel.slurm.jobs.sbatch import GPU
from ptaskmodel.workload.works import DelayWork

# What tells what a job got; what tells how large it is.
GOT = ("nnodes", "allocnodes", "alloctres")
SIZES = ("reqtres", "reqnodes", *GOT, "reqcpus", "ncpus", "alloccpus")
_OF_SIZE = (*SIZES, "reqmem")
# What a command line tells of a size, if it agrees with the columns: GPUs, memory and others.
_GPUS = ("gpus", "gpus_per_task", "gpus_per_socket", "gres")
_OF_GPUS = ("cpus_per_gpu", "memory_per_gpu_MiB", "tasks_per_gpu")
_MEMORY = ("memory_per_cpu_MiB", "memory_per_node_MiB", "memory_per_gpu_MiB")
_OF_LINE = (
    *("min_nodes", "max_nodes", "tasks", "cpus_per_task", "cpus_are_given", "tasks_per_node"),
    *("tasks_per_core", "tasks_per_socket", *_GPUS, *_OF_GPUS, *_MEMORY),
)
_AMOUNT = re.compile(r"(.*?)([nc]?)")
# Sizes that are read once, as many jobs have the same.
_KEPT = 10_000


class Site(NamedTuple):
    """What a log does not tell of the cluster that it is from.

    nodes: the CPUs of each, and the threads of a core. shared: the partitions in which jobs share
    nodes by cores or CPUs. memory: by partition, what jobs get of each CPU by default, MiB.
    """

    nodes: Mapping[str, tuple[int, int]]
    shared: frozenset[str]
    memory: Mapping[str, int]

    def is_whole(self, row: Row) -> bool:
        """Whether the job of a `row` got all CPUs of its nodes, more than it asked for."""
        if row.get("partition") not in self.shared or row.get("nodelist", "") in NEVER:
            return False
        columns = _of_columns(False, *map(row.get, _OF_SIZE))
        got = _count(row, "ncpus", "alloccpus") or columns.got_cpus
        if got <= columns.cpus:
            return False
        names = _hosts(row["nodelist"])
        found = [self.nodes[name] for name in names if name in self.nodes]
        beside = sum(threads - 1 for _, threads in found)  # of cores that it got one thread of
        is_all = len(found) == len(names) and got == sum(each for each, _ in found)
        return is_all and got > columns.cpus + beside


UNKNOWN = Site({}, frozenset(), {})


def site(conf: Conf) -> Site:
    """The cluster of a configuration, `conf`."""
    nodes = nodes_of(conf)
    threads = [line.threads for line in nodes.lines]
    by_socket = any("SOCKET" in each for each in conf.select_parameters)
    no_job = JobRequest("", 0.0, DelayWork(0.0))
    memory = {one.name: memory_asked(no_job, one, conf) for one in conf.partitions}
    return Site(
        dict(zip(nodes.names, zip(nodes.cpus, threads, strict=True), strict=True)),
        frozenset(
            one.name
            for one in conf.partitions
            if not (conf.select_type == LINEAR or by_socket or one.over_subscribe == EXCLUSIVE)
        ),
        {name: amount for name, (kind, amount) in memory.items() if kind == PER_CPU},
    )


def size(row: Row, line: Mapping[str, Any], site: Site) -> dict[str, Any]:
    """What a `row` says of a job's size, as fields of its `JobRequest`.

    line: what the options of its command line give; {}: it is not known. It counts if it asks for
    as many CPUs and GPUs as the columns say, else its script has options of its own; but for GPUs
    of which no column tells. site: where it ran; memory that it would get by default is not told.
    """
    names_none = "tasks" in line and "min_nodes" not in line
    columns = _of_columns(names_none, *map(row.get, _OF_SIZE))
    found = dict(columns.fields)
    default_MiB = site.memory.get(row.get("partition", ""))
    if default_MiB and columns.memory_MiB == default_MiB * columns.cpus:
        found = {name: each for name, each in found.items() if name not in _MEMORY}
    gpus = _gpus_of(line)
    if columns.gpus is None:
        found |= {name: line[name] for name in _GPUS if name in line}
    # MinNodes of a partition adds nodes, with a CPU each; those of GPUs are added at the start.
    cpus = {_cpus_of(line, gpus), gpus * line.get("cpus_per_gpu", 0)}
    if columns.cpus not in cpus | {max(*cpus, columns.nodes)} or columns.gpus not in (None, gpus):
        return found
    if names_none:
        found |= {"min_nodes": None, "max_nodes": None}
    for names in (_GPUS, _MEMORY):
        if any(name in line for name in names):
            found = {name: each for name, each in found.items() if name not in names}
    return found | {name: line[name] for name in _OF_LINE if name in line}


def _gpus_of(line: Mapping[str, Any]) -> int:
    """How many GPUs a command line asks for on as few nodes as it asks for."""
    each = {name: sum(one.count for one in line.get(name, ()) if one.name == GPU) for name in _GPUS}
    tasks = line.get("tasks") or line.get("min_nodes", 1) * line.get("tasks_per_node", 1)
    return (
        each["gpus"]
        or each["gpus_per_task"] * tasks
        or (each["gpus_per_socket"] * line.get("sockets_per_node", 1) or each["gres"])
        * line.get("min_nodes", 1)
    )


def _cpus_of(line: Mapping[str, Any], gpus: int) -> int:
    """How many CPUs a command line asks for on as few nodes as it asks for, with so many GPUs."""
    nodes, each = line.get("min_nodes", 1), line.get("tasks_per_node", 1)
    tasks = line.get("tasks") or gpus * line.get("tasks_per_gpu", 0) or nodes * each
    return int(tasks * line.get("cpus_per_task", 1))


def is_pinned(row: Row, fields: Mapping[str, Any]) -> bool:
    """Whether the job of a `row` may have had more nodes than the fewest that it asked for.

    fields: of its `JobRequest`.
    """
    told = row.get("submitline") or any(map(row.get, GOT))
    asked = any(map(row.get, ("reqtres", "reqnodes")))
    return asked and not told and bool(fields["max_nodes"] < fields["tasks"])


class _Columns(NamedTuple):
    """The fields that columns tell, and how much they say in all; gpus: None: nothing.

    got_cpus: those that AllocTRES tells.
    """

    fields: Mapping[str, Any]
    nodes: int
    cpus: int
    got_cpus: int
    memory_MiB: int
    gpus: int | None


@lru_cache(_KEPT)
def _of_columns(names_none: bool, *texts: str | None) -> _Columns:
    """What the columns _OF_SIZE say. names_none: whether the job gave no number of nodes."""
    row = {name: text for name, text in zip(_OF_SIZE, texts, strict=True) if text is not None}
    had = value(row, "alloctres", values.tres) or {}
    asked = value(row, "reqtres", values.tres) or had
    nodes = _count(row, "reqnodes") or asked.get("node") or _count(row, "nnodes", "allocnodes") or 1
    # Those of ReqCPUS are more where MaxMemPerCPU has raised them.
    cpus = asked.get("cpu") or _count(row, "reqcpus", "ncpus", "alloccpus") or nodes
    got = max(_count(row, "nnodes", "allocnodes") or had.get("node") or nodes, nodes)
    found: dict[str, Any] = {"min_nodes": nodes, "max_nodes": got, "tasks": max(cpus, nodes)}
    if nodes == 1 and (names_none or got > 1):
        found |= {"min_nodes": None, "max_nodes": None}
    found |= _memory(row, asked, had, nodes, cpus, names_none or got > nodes)
    of_all = [
        name
        for name, count in asked.items()
        if name.startswith("gres/gpu") and got > nodes and had.get(name) in (None, count)
    ]
    found["gpus"] = tuple(_gres({name: asked[name] for name in of_all}, 1))
    found["gres"] = tuple(_gres({name: asked[name] for name in asked if name not in of_all}, nodes))
    found["licenses"] = {
        name.removeprefix("license/"): count
        for name, count in asked.items()
        if name.startswith("license/") and count
    }
    counted = any(row.get(name) for name in ("reqtres", "alloctres"))
    gpus = sum(one.count for one in _gres(asked, 1) if one.name == GPU)
    got_cpus, memory_MiB = had.get("cpu") or 0, asked.get("mem") or 0
    told = gpus if counted else None
    return _Columns(found, nodes, max(cpus, nodes), got_cpus, memory_MiB, told)


def _memory(
    row: Row,
    asked: Mapping[str, int | None],
    had: Mapping[str, int | None],
    nodes: int,
    cpus: int,
    names_none: bool,
) -> Mapping[str, int]:
    """The memory that a job asked for on so many nodes and CPUs, of each node or CPU.

    What it asked for and what it had are in the ratio of the CPUs, or of the nodes; or it asked for
    none, and had what is the default.
    """
    total = asked.get("mem")
    if total and had and "mem" not in had:
        return {}  # it is not counted, and whole nodes are logged
    if total:
        got, got_cpus, got_nodes = (had.get(name) for name in ("mem", "cpu", "node"))
        raised = _count(row, "reqcpus") or cpus
        by_cpu = not got or not got_cpus or total * got_cpus in (got * cpus, got * raised)
        by_node = not got or not got_nodes or got * nodes == total * got_nodes
        if by_cpu and (names_none or not by_node):
            return {"memory_per_cpu_MiB": math.ceil(total / cpus)}
        return {"memory_per_node_MiB": math.ceil(total / nodes)} if by_node else {}
    if row.get("reqmem", "") in (*NEVER, "?"):
        return {}
    amount, per = value(row, "reqmem", _amount)
    name = "memory_per_cpu_MiB" if per == "c" else "memory_per_node_MiB"
    return {name: amount if per else math.ceil(amount / nodes)}


def _gres(asked: Mapping[str, int | None], nodes: int) -> Iterator[Gres]:
    """Generic resources on each of `nodes`; those of a type stand for those of any."""
    typed = {name.split(":")[0] for name in asked if ":" in name}
    for name, count in asked.items():
        if name.startswith("gres/") and count and name not in typed:
            kind, _, of_type = name.removeprefix("gres/").partition(":")
            yield Gres(kind, of_type or None, math.ceil(count / nodes))


def _count(row: Row, *names: str) -> int | None:
    for name in names:
        if row.get(name, "") not in NEVER:
            count: int = value(row, name, values.counted)
            if count:
                return count
    return None


def _amount(text: str) -> tuple[int, str]:
    """MiB, and whether of each CPU (c), each node (n) or all of the job."""
    found = _AMOUNT.fullmatch(text)
    amount, per = (found[1], found[2]) if found is not None else (text, "")
    return values.mebibytes(amount.rstrip("?")), per


@lru_cache(_KEPT)
def _hosts(text: str) -> tuple[str, ...]:
    """The names of a list of nodes; none if it cannot be read."""
    try:
        return values.hosts(text)
    except ValueError:
        return ("",)
