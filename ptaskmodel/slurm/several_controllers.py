"""Several independent controllers: each has some of the nodes and partitions, and its own jobs.

As in a published comparison (Simakov et al. 2018) they exchange nothing: no job moves between them,
and each controller has its own queue, limits and usage. If their jobs share one platform, their
loops run in step on one execution.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, inf

from ptaskmodel.batch.jobs.execution import Execution
from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.errors import SlurmError
from ptaskmodel.memory import collector_at_rest
from ptaskmodel.slurm.conf.facts import Conf, NodeLine, Nodes, Partition, Switch, nodes_of
from ptaskmodel.slurm.jobs.request import JobRequest
from ptaskmodel.slurm.loop import Loop, Progress

# Events between two calls that say how far it is.
PROGRESS_EVERY = 256


@dataclass(frozen=True, slots=True)
class Part:
    """What one of several controllers has: a configuration, and the jobs sent to it."""

    conf: Conf
    jobs: tuple[JobRequest, ...]


def parts_of(
    conf: Conf, jobs: Sequence[JobRequest], count: int, seed: int = 0
) -> tuple[list[Part], tuple[str, ...]]:
    """The parts of a cluster with several controllers, and notes on how they were made.

    Partitions that share nodes have one controller. Where these groups are ``count`` or more, each
    controller gets some, as equal in nodes as whole groups can be, and a job goes where its
    partition is (the first that it names). Where they are fewer, each controller gets its share of
    the nodes of every group, in order, and a job is sent to one that has enough nodes for it, drawn
    by ``seed`` with the fraction of nodes.

    Raises SlurmError if there are not as many nodes as controllers.
    """
    if count == 1:
        return [Part(conf, tuple(jobs))], ()
    nodes = nodes_of(conf)
    groups = _groups(conf, nodes)
    smallest = min(mask.bit_count() for mask in groups)
    if len(groups) >= count:
        shares, how = _dealt(groups, count), "by partition"
    elif smallest >= count:
        shares, how = _cut(groups, nodes, count), "drawn with the fraction of nodes"
    else:
        raise SlurmError(
            f"--controllers {count}: partitions have {smallest} nodes and more; give at most that"
        )
    confs = [_restricted(conf, nodes, share) for share in shares]
    sent = (
        _by_partition(confs, conf, jobs)
        if len(groups) >= count
        else _drawn([share.bit_count() for share in shares], confs, jobs, seed)
    )
    sizes = ", ".join(str(share.bit_count()) for share in shares)
    note = f"{count} controllers of {sizes} nodes; jobs are sent to one each, {how}"
    parts = [Part(one, tuple(mine)) for one, mine in zip(confs, sent, strict=True)]
    return parts, (note,)


def _groups(conf: Conf, nodes: Nodes) -> list[Mask]:
    """The nodes of partitions that overlap, each group once, in order of the file."""
    groups: list[Mask] = []
    for partition in conf.partitions:
        mask = nodes.partitions[partition.name]
        for other in [group for group in groups if group & mask]:
            groups.remove(other)
            mask |= other
        if mask:
            groups.append(mask)
    return groups


def _dealt(groups: Sequence[Mask], count: int) -> list[Mask]:
    """Whole groups, the largest first, each to whoever has the fewest nodes."""
    shares = [0] * count
    for group in sorted(groups, key=lambda mask: -mask.bit_count()):
        least = min(range(count), key=lambda k: shares[k].bit_count())
        shares[least] |= group
    return shares


def _cut(groups: Sequence[Mask], nodes: Nodes, count: int) -> list[Mask]:
    """Of each group a share of consecutive nodes."""
    shares = [0] * count
    for group in groups:
        names = nodes.names_of(group)
        for k in range(count):
            begin, end = len(names) * k // count, len(names) * (k + 1) // count
            shares[k] |= nodes.mask(names[begin:end])
    return shares


def _restricted(conf: Conf, nodes: Nodes, share: Mask) -> Conf:
    """The configuration on some of its nodes."""
    kept = frozenset(nodes.names_of(share))

    def of(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in names if name in kept)

    lines: list[NodeLine] = [replace(line, names=of(line.names)) for line in conf.nodes]
    partitions: list[Partition] = [replace(p, nodes=of(p.nodes)) for p in conf.partitions]
    switches: list[Switch] = [replace(each, nodes=of(each.nodes)) for each in conf.switches]
    return replace(
        conf,
        nodes=tuple(line for line in lines if line.names),
        partitions=tuple(p for p in partitions if p.nodes),
        switches=_without_empty(switches),
    )


def _without_empty(switches: Sequence[Switch]) -> tuple[Switch, ...]:
    """Switches without those that reach no node."""
    left = list(switches)
    while True:
        full = {each.name for each in left if each.nodes or each.switches}
        kept = [
            replace(each, switches=tuple(name for name in each.switches if name in full))
            for each in left
            if each.name in full
        ]
        if kept == left:
            return tuple(kept)
        left = kept


def _by_partition(
    confs: Sequence[Conf], conf: Conf, jobs: Sequence[JobRequest]
) -> list[list[JobRequest]]:
    """Each job with the controller of its partition."""
    whose = {p.name: k for k, one in enumerate(confs) for p in one.partitions}
    default = (conf.default_partition or conf.partitions[0]).name
    sent: list[list[JobRequest]] = [[] for _ in confs]
    for job in jobs:
        first = next(iter(job.partitions), default)
        k = whose.get(first, 0)
        mine = tuple(name for name in job.partitions if whose.get(name) == k) or (first,)
        sent[k].append(replace(_on(confs[k], job), partitions=mine))
    return sent


def _on(conf: Conf, job: JobRequest) -> JobRequest:
    """A job with the nodes that it names and a controller has."""
    if not job.nodelist and not job.exclude:
        return job
    mine = {name for line in conf.nodes for name in line.names}
    asked = tuple(name for name in job.nodelist if name in mine)
    return replace(job, nodelist=asked, exclude=tuple(n for n in job.exclude if n in mine))


def _drawn(
    sizes: Sequence[int], confs: Sequence[Conf], jobs: Sequence[JobRequest], seed: int
) -> list[list[JobRequest]]:
    """Each job with one that has enough nodes for it, or those that it names.

    Tasks of an array stay together.
    """
    whose = {n: k for k, one in enumerate(confs) for line in one.nodes for n in line.names}
    draw = random.Random(seed)
    chosen: dict[str, int] = {}
    sent: list[list[JobRequest]] = [[] for _ in confs]
    most = max(line.cpus for one in confs for line in one.nodes)
    for job in jobs:
        if job.array_id not in chosen:
            least = max(job.least_nodes, ceil((job.cpus or 1) / most))
            fits = [k for k, size in enumerate(sizes) if size >= least] or [
                max(range(len(sizes)), key=sizes.__getitem__)
            ]
            named = [whose[name] for name in job.nodelist if name in whose]
            drawn = draw.choices(fits, [sizes[k] for k in fits])[0]
            chosen[job.array_id] = named[0] if named else drawn
        k = chosen[job.array_id]
        sent[k].append(_on(confs[k], job))
    return sent


def run_together(
    loops: Sequence[Loop], execution: Execution, progress: Progress | None = None
) -> None:
    """Go on until the jobs of every loop are over, or nothing will ever happen again.

    Of events at one date those of the first loop come first; jobs that end come before all. The
    numbers of attempts are unique among the loops. progress: as in `Loop.run`, of all jobs.
    """
    coming = {loop: event for loop in loops if (event := loop.next_event()) is not None}
    steps = 0
    with collector_at_rest():
        while coming:
            first = min(coming, key=lambda loop: coming[loop][0])
            date = coming[first][0]
            now, ended = execution.advance(date)
            if not ended and date == inf:
                return
            changed = [loop for loop in loops if loop.take_ends(now, ended)]
            if not ended:
                first.do(coming[first])
                changed = [first]
            for loop in changed:
                event = loop.next_event()
                if event is None:
                    coming.pop(loop, None)
                else:
                    coming[loop] = event
            steps += 1
            if progress is not None and steps % PROGRESS_EVERY == 0:
                over = sum(loop.controller.over for loop in loops)
                progress(now, over, sum(len(loop.controller.queue.jobs) for loop in loops))
