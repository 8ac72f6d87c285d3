"""Say why requests fit no nodes: what a job asks for, and the most that its partition has of it.

Slurm says no more than BadConstraints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from ptaskmodel import remarks
from ptaskmodel.batch.machine.host_sets import members
from ptaskmodel.errors import shown
from ptaskmodel.remarks import Remark
from ptaskmodel.results.tables.slurm import Simulated
from ptaskmodel.slurm.conf.facts import Conf, Gres, Nodes
from ptaskmodel.slurm.controller.queue import BAD_CONSTRAINTS
from ptaskmodel.slurm.jobs.gpus import GPU, amount_of
from ptaskmodel.slurm.jobs.needs import Need, nodes_fitting
from ptaskmodel.slurm.jobs.record import REFUSED, JobRecord
from ptaskmodel.slurm.jobs.request import constraint_of, has_all
from ptaskmodel.slurm.select.offers import memory_on_each
from ptaskmodel.style.text import several

# So many requests are said.
SHOWN = 3


def unfit_remarks(found: Sequence[Simulated]) -> list[Remark]:
    """Say which jobs of some runs, those `found`, ask for what no nodes have, and what that is."""
    jobs: dict[str, list[JobRecord]] = {}
    for each in found:
        known: dict[object, str] = {}
        for job in each.run.jobs:
            if job.reason == BAD_CONSTRAINTS and job.state in (REFUSED, "PENDING"):
                kind = job.needs[0].kind
                if kind not in known:
                    known[kind] = _why(job, each.run.loop.controller.conf, each.run.nodes)
                jobs.setdefault(known[kind], []).append(job)
    often = sorted(jobs.items(), key=lambda item: -len(item[1]))
    texts = []
    for text, some in often[:SHOWN]:
        more = len(some) - 1
        who = f"job {shown(some[0].id)} " + (f"and {more} more ask" if more else "asks")
        texts.append(f"{who} for {text} ({BAD_CONSTRAINTS})")
    left = sum(len(some) for _, some in often[SHOWN:])
    if left:
        texts.append(f"... and {several(left, 'job')} with other requests that fit no nodes")
    return [Remark(text, effect=remarks.REFUSED) for text in texts]


def _why(job: JobRecord, conf: Conf, nodes: Nodes) -> str:
    """What a job asks for that its first partition has not."""
    need, name = job.needs[0], job.partitions[0].name
    inside = nodes.partitions[name] & nodes.usable
    outside = nodes.names_of(need.required & ~inside)
    if outside:
        return f"node {outside[0]}; it is not in partition {name}, or takes no jobs"
    there = members(inside & ~nodes.mask(job.request.exclude))
    for asked, text, has in _of_each(job, need, nodes):
        most = max(map(has, there), default=0)
        if most < asked:
            return f"{text}; the most that any node of {name} has is {most}"
    features = constraint_of(job.request).of_all
    if not any(has_all(features, nodes.lines[k].features) for k in there):
        return f"{shown(job.request.constraint or '')}; no node of {name} has these features"
    fitting = members(nodes_fitting(job.request, job.partitions[0], nodes, conf))
    if len(fitting) < need.least:
        asked_of = several(need.least, "node")
        return f"{asked_of} that have all that it asks of each; {name} has {len(fitting)}"
    return _in_all(need, nodes, fitting) or f"what no nodes of {name} have together"


def _amount_on(one: Gres, nodes: Nodes, k: int) -> int:
    return amount_of(one, nodes.lines[k].gres)


def _of_each(
    job: JobRecord, need: Need, nodes: Nodes
) -> Iterator[tuple[int, str, Callable[[int], int]]]:
    """What it asks of each node: how much, in words, and how much a node has."""
    for one in need.gres:
        text = f"{_units(one.count, one.name, one.type)} a node"
        yield one.count, text, partial(_amount_on, one, nodes)
    least = max(need.cpus_per_task * (need.tasks_per_node or 1), need.cpus_per_node)
    least = max(least, need.cpus_for_gpus_of_node)
    yield least, f"{several(least, 'CPU')} a node", lambda k: nodes.cpus[k]
    least_MiB = memory_on_each(need) or 0
    yield least_MiB, f"{least_MiB} MiB a node", lambda k: nodes.memory_MiB[k]
    sockets, cores = job.request.sockets_per_node or 0, job.request.cores_per_socket or 0
    yield sockets, f"{several(sockets, 'socket')} a node", lambda k: nodes.lines[k].sockets
    text = f"{several(cores, 'core')} a socket"
    yield cores, text, lambda k: nodes.lines[k].cores_per_socket


def _in_all(need: Need, nodes: Nodes, fitting: Sequence[int]) -> str | None:
    """What it asks for in all that the nodes which are `fitting` have not; None: they have it."""
    most, name = min(need.most, len(fitting)), need.partition.name
    on = f"on {several(most, 'node')}"
    has = sum(sorted(nodes.cpus[k] for k in fitting)[-most:])
    if has < need.cpus:
        return f"{several(need.cpus, 'CPU')} {on}; the most that {name} has there is {has}"
    for ask in need.asks:
        one = Gres(ask.name, ask.type, 1)
        has = sum(sorted(amount_of(one, nodes.lines[k].gres) for k in fitting)[-most:])
        if has < ask.per_job:
            text = f"{_units(ask.per_job, ask.name, ask.type)} in all {on}"
            return f"{text}; the most that {name} has there is {has}"
    return None


def _units(count: int, name: str, kind: str | None) -> str:
    """So many units of a generic resource, in words."""
    what = several(count, "GPU") if name == GPU else f"{count} {name}"
    return what if kind is None else f"{what} of type {kind}"
