"""MaxMemPerCPU and MaxMemPerNode: CPUs that they add to a request, and jobs that they hold back.

`Admission` asks when a job is submitted and whenever it is looked at. Source: `_valid_pn_min_mem`
of Slurm 22.05.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import NamedTuple

from ptaskmodel.batch.machine.host_sets import members
from ptaskmodel.slurm.conf.facts import EXCLUSIVE, LINEAR, Conf, Nodes, Partition
from ptaskmodel.slurm.jobs.needs import ALL, PER_CPU, memory_asked
from ptaskmodel.slurm.jobs.request import WHOLE_NODES, JobRequest


class FirstNode(NamedTuple):
    """CPUs and memory (MiB) of a partition's first node."""

    cpus: int
    memory_MiB: int


def first_nodes_of(nodes: Nodes) -> dict[str, FirstNode]:
    """The first node of each partition that has some, by its name; `nodes` are the cluster's."""
    firsts = {name: members(mask)[0] for name, mask in nodes.partitions.items() if mask}
    return {name: FirstNode(nodes.cpus[k], nodes.memory_MiB[k]) for name, k in firsts.items()}


def with_cpus_for_memory(
    request: JobRequest, partition: Partition, conf: Conf, first: FirstNode
) -> JobRequest:
    """The request with as many CPUs as MaxMemPerCPU wants for its memory.

    Memory for each CPU: its tasks get more CPUs, with less each. Memory of each node: more CPUs on
    each node.
    """
    most = _limits(partition, conf)[0]
    if not most:
        return request
    kind, amount = memory_asked(request, partition, conf, by_gpu=False)
    if kind == PER_CPU:
        factor = ceil(amount / most)
        if factor <= 1:
            return request
        each = ceil(amount / factor)
        return replace(
            request,
            cpus_per_task=request.cpus_per_task * factor,
            memory_per_cpu_MiB=each,
            cpus_raised=factor,
        )
    cpus = ceil((first.memory_MiB if kind == ALL else amount) / most)
    return replace(request, least_cpus_per_node=max(request.least_cpus_per_node, cpus))


def over_memory(request: JobRequest, partition: Partition, conf: Conf, first: FirstNode) -> bool:
    """Whether MaxMemPerNode keeps a job from starting."""
    per_cpu, most = _limits(partition, conf)
    if per_cpu or not most:
        return False
    kind, amount = memory_asked(request, partition, conf, by_gpu=False)
    if kind == ALL:
        return first.memory_MiB > most
    if kind == PER_CPU:
        amount *= _cpus_on_one(request, partition, conf, first)
    return amount > most


def _limits(partition: Partition, conf: Conf) -> tuple[int | None, int | None]:
    """The limit for each CPU, and the one for each node."""
    own = partition.max_mem_per_cpu_MiB, partition.max_mem_per_node_MiB
    return own if any(own) else (conf.max_mem_per_cpu_MiB, conf.max_mem_per_node_MiB)


def _cpus_on_one(request: JobRequest, partition: Partition, conf: Conf, first: FirstNode) -> int:
    """The CPUs that a job is taken to have on a node."""
    whole = conf.select_type == LINEAR or partition.over_subscribe == EXCLUSIVE
    if whole or request.exclusive == WHOLE_NODES:
        return first.cpus
    tasks = request.tasks_per_node or 1
    if request.tasks_per_node is None and request.tasks is not None and request.max_nodes:
        tasks = ceil(request.tasks / request.max_nodes)
    return max(tasks * request.cpus_per_task, request.least_cpus_per_node)
