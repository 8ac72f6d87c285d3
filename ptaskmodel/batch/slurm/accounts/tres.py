"""Trackable resources (TRES) by name: cpu, mem (MiB), node, billing, gres/gpu, license/x."""

from __future__ import annotations

from collections.abc import Mapping

from ptaskmodel.batch.slurm.conf.facts import Conf, Partition
from ptaskmodel.batch.slurm.requests.request import JobRequest

Tres = Mapping[str, float]
OF_NODES = ("cpu", "mem", "node")


def requested(request: JobRequest, partition: Partition, conf: Conf) -> dict[str, int]:
    """What a job asked for, at least, before it is known which nodes it gets.

    Memory is that of the partition's or the cluster's default where the job asked for none.
    """
    nodes = request.least_nodes
    tasks = request.tasks
    if tasks is None:
        tasks = nodes * (request.tasks_per_node or 1)
    cpus = tasks * request.cpus_per_task
    memory = 0
    if request.memory_per_node_MiB is not None:
        memory = request.memory_per_node_MiB * nodes
    elif request.memory_per_cpu_MiB is not None:
        memory = request.memory_per_cpu_MiB * cpus
    else:
        defaults = (
            (partition.def_mem_per_cpu_MiB, cpus),
            (partition.def_mem_per_node_MiB, nodes),
            (conf.def_mem_per_cpu_MiB, cpus),
            (conf.def_mem_per_node_MiB, nodes),
        )
        memory = next((each * count for each, count in defaults if each is not None), 0)
    found = {"cpu": cpus, "mem": memory, "node": nodes}
    for gres in request.gres:
        for name in gres_names(gres.name, gres.type):
            found[name] = found.get(name, 0) + gres.count * nodes
    for name, count in request.licenses.items():
        found[f"license/{name}"] = count
    return found


def gres_names(name: str, kind: str | None) -> tuple[str, ...]:
    """The names under which generic resources are counted: gres/gpu, and gres/gpu:type."""
    return (f"gres/{name}",) if kind is None else (f"gres/{name}", f"gres/{name}:{kind}")


def billed(tres: Tres, partition: Partition, conf: Conf) -> float:
    """What a job is billed for a second in a partition: its CPUs, unless there are weights."""
    if not partition.billing_weights:
        return float(tres.get("cpu", 0))
    largest = "MAX_TRES" in conf.priority.flags
    return billing(tres, partition.billing_weights, largest)


def billing(tres: Tres, weights: Mapping[str, float], largest: bool) -> float:
    """What a job is billed for a second; ``largest``: of what nodes have, the largest counts."""
    of_nodes = everywhere = 0.0
    for name, weight in weights.items():
        value = tres.get(name, 0) * weight
        if largest and (name in OF_NODES or name.startswith("gres/")):
            of_nodes = max(of_nodes, value)
        else:
            everywhere += value
    return of_nodes + everywhere
