"""Run one simulation of Slurm, of one controller or of several: configuration and jobs to records.

It maps the nodes of the configuration to hosts of a platform that jobs share. Before a run it warns
if more work arrives than the nodes can do.

Several controllers each have some of the nodes and partitions, and their own jobs. As in a
published comparison (Simakov et al. 2018) they exchange nothing: no job moves between them,
and each controller has its own queue, limits and usage. If their jobs share one platform, their
loops run in step on one execution.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import ceil, inf
from typing import TYPE_CHECKING

from ptaskmodel import interrupts
from ptaskmodel.batch.jobs.execution import DelayExecution, Execution
from ptaskmodel.batch.jobs.parallel_tasks import PtaskExecution
from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.batch.machine.machine import machine_of
from ptaskmodel.errors import SlurmError
from ptaskmodel.memory import collector_at_rest
from ptaskmodel.remarks import OVERLOAD, warn
from ptaskmodel.slurm.accounts.facts import Accounts
from ptaskmodel.slurm.conf.facts import Conf, NodeLine, Nodes, Partition, Switch, nodes_of
from ptaskmodel.slurm.conf.phases import FREE, Costs, Phases, Recorded, second_of
from ptaskmodel.slurm.conf.reservations import Reserved
from ptaskmodel.slurm.controller.controller import Changes, Controller, NodeFailures
from ptaskmodel.slurm.controller.job_list import Running
from ptaskmodel.slurm.controller.rules import Rules
from ptaskmodel.slurm.event_log import Watch
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.jobs.request import JobRequest
from ptaskmodel.slurm.loop import Loop, Progress

if TYPE_CHECKING:
    from ptaskmodel.batch.jobs.execution import Attempt
    from ptaskmodel.batch.machine.machine import Machine
    from ptaskmodel.platform.platform import Platform

# With fewer jobs a burst of submissions would look like a load.
FEW_JOBS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class SlurmRun:
    """What became of the jobs, in order of their numbers; dates in it are Unix seconds."""

    conf: Conf
    nodes: Nodes
    phases: Phases
    jobs: tuple[JobRecord, ...]
    loop: Loop

    def cpus_of(self, job: JobRecord) -> int:
        """How many CPUs a job has or had."""
        held = job.allocation
        return 0 if held is None else self.loop.controller.rules.cpus_of(held)


@collector_at_rest()
def simulate_slurm(
    conf: Conf,
    requests: Sequence[JobRequest],
    *,
    accounts: Accounts | None = None,
    phases: Phases | None = None,
    recorded: Recorded | None = None,
    execution: Execution | None = None,
    reserved: Reserved | None = None,
    watch: Watch | None = None,
    compiled: bool = False,
    costs: Costs = FREE,
    failures: Mapping[str, Changes] | None = None,
    progress: Progress | None = None,
) -> SlurmRun:
    """Run jobs under a configuration of Slurm, until every job is over.

    conf: what `read_conf` returns. requests: the jobs. accounts: QOSs and associations. phases:
    when the controller's threads wake. recorded: dates of a recorded run, which replace theirs.
    execution: how long jobs run (what their work says, by default). reserved: advance
    reservations. watch: notes what happens. compiled: whether a kernel makes backfill cycles where
    it can; the same comes out. costs: how long backfill's tests take. failures: see
    `failures_of_nodes`. progress: called often, with the date (s), how many jobs are over and how
    many wait.
    """
    loop = _loop(
        conf,
        requests,
        execution or DelayExecution(limited=False),
        accounts=accounts,
        phases=phases,
        recorded=recorded,
        reserved=reserved,
        watch=watch,
        compiled=compiled,
        costs=costs,
        failures=failures,
    )
    loop.run(progress)
    return _outcome(loop)


@collector_at_rest()
def simulate_together(
    conf: Conf,
    parts: Sequence[Part],
    execution: Execution,
    watches: Sequence[Watch],
    *,
    accounts: Accounts | None = None,
    phases: Phases | None = None,
    compiled: bool = False,
    costs: Costs = FREE,
    failures: Mapping[str, Changes] | None = None,
    progress: Progress | None = None,
) -> list[SlurmRun]:
    """Run the jobs of several controllers on one platform, where they affect each other.

    conf: of all nodes, which are the hosts of the execution in this order. parts: see `parts_of`.
    watches: the event log of each part. accounts, phases, compiled, costs, failures, progress: as
    of `simulate_slurm`.
    """
    numbers = count()
    places = {name: k for k, name in enumerate(nodes_of(conf).names)}
    loops = [
        _loop(
            part.conf,
            part.jobs,
            execution,
            accounts=accounts,
            phases=phases,
            watch=watch,
            compiled=compiled,
            costs=costs,
            failures=failures,
            numbers=numbers,
            hosts=[places[name] for name in nodes_of(part.conf).names],
        )
        for part, watch in zip(parts, watches, strict=True)
    ]
    run_together(loops, execution, progress)
    return [_outcome(loop) for loop in loops]


def _loop(
    conf: Conf,
    requests: Sequence[JobRequest],
    execution: Execution,
    *,
    accounts: Accounts | None,
    phases: Phases | None,
    recorded: Recorded | None = None,
    reserved: Reserved | None = None,
    watch: Watch | None,
    compiled: bool = False,
    costs: Costs,
    failures: Mapping[str, Changes] | None,
    numbers: Iterator[int] | None = None,
    hosts: Sequence[int] | None = None,
) -> Loop:
    """The loop of one controller, before anything has happened."""
    nodes = nodes_of(conf)
    phases = phases or Phases()
    boot_s = second_of(phases, phases.main_boot_s)
    rules = Rules(conf, nodes, boot_s, accounts, reserved, requests)
    told = None if recorded is None else recorded.ended
    running = Running(execution, nodes.cpus, phases.end_s, told, numbers, hosts)
    note, turned = (None, None) if watch is None else (watch.note, watch.turned)
    plans = watch is not None and watch.looks_at_plans
    controller = Controller(conf, nodes, phases, running, rules, note, keeps_plans=plans)
    failing = None
    if failures:
        tell = None if watch is None else watch.of_node
        failing = NodeFailures(controller, failures, tell)
    return Loop(controller, execution, requests, phases, recorded, turned, compiled, costs, failing)


def _outcome(loop: Loop) -> SlurmRun:
    controller = loop.controller
    return SlurmRun(
        controller.conf, controller.nodes, controller.phases, tuple(controller.jobs.all), loop
    )


def machine_for(platform: Platform, conf: Conf) -> Machine:
    """The hosts of a platform that are the nodes: of the same name, or of the same place.

    Raises SlurmError if some nodes have no host.
    """
    machine, nodes = machine_of(platform), nodes_of(conf)
    hosts = set(machine.names)
    missing = [name for name in nodes.names if name not in hosts]
    if len(missing) == len(nodes) and len(nodes) <= machine.num_hosts:
        names = machine.names[: len(nodes)]
    elif missing:
        raise SlurmError(
            f"{platform.path}: {len(missing)} of {len(nodes)} nodes are not hosts, such as "
            f"'{missing[0]}': name the hosts as the nodes of the slurm.conf"
        )
    else:
        names = nodes.names
    return replace(machine, names=names)


def execution_on(platform: Platform, conf: Conf) -> PtaskExecution:
    """Return what runs jobs on a platform, on the nodes of `conf`.

    Raises SlurmError if some nodes have no host.
    """
    from ptaskmodel.simulation.simulation import Simulation

    return PtaskExecution(machine_for(platform, conf), Simulation(platform), limited=False)


def alone_s(execution: PtaskExecution, attempts: Sequence[Attempt]) -> list[float]:
    """Return the isolated run time of each of the `attempts`, s, on the platform of `execution`.

    Also records which part of their work the killed ones did, where it is known.
    """
    from ptaskmodel.batch.jobs.isolated import AloneTimes
    from ptaskmodel.simulation.simulation import Simulation

    platform = execution.machine.platform
    alone = AloneTimes(execution.machine, lambda: Simulation(platform))
    alone.note_parts_done(attempts, execution)
    return alone.of_attempts(attempts)


def offered_load(conf: Conf, jobs: Sequence[JobRequest]) -> float:
    """CPU seconds of jobs whose run time is known, over those of all nodes while jobs come.

    A job runs for its limit at most. 0 if all come at one date.
    """
    nodes = nodes_of(conf)
    whole = sum(nodes.cpus)
    dates = [job.submit_s for job in jobs]
    span_s = max(dates, default=0.0) - min(dates, default=0.0)
    if span_s <= 0.0 or whole == 0:
        return 0.0
    of_node = whole / len(nodes)
    work = 0.0
    for job in jobs:
        if job.run_s is not None:
            limit_s = job.run_s if job.limit_min is None else 60.0 * job.limit_min
            cpus = max(job.cpus or 0, of_node * job.least_nodes if job.cpus is None else 0)
            work += min(job.run_s, limit_s) * cpus
    return work / (span_s * whole)


def warn_of_overload(conf: Conf, jobs: Sequence[JobRequest]) -> None:
    """Warn if the offered load of `jobs` on the nodes of `conf` is above 1."""
    load = offered_load(conf, jobs) if len(jobs) >= FEW_JOBS else 0.0
    if load > 1.0:
        warn(f"the offered load is {load:.3g}: the queue grows as long as jobs come", OVERLOAD)


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
    """Go on until the jobs of every loop are over, nothing will happen, or a signal has come.

    Of events at one date those of the first loop come first; jobs that end come before all. The
    numbers of attempts are unique among the loops. progress: as in `Loop.run`, of all jobs.
    """
    coming = {loop: event for loop in loops if (event := loop.next_event()) is not None}
    steps = 0
    with interrupts.held():
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
            if steps % PROGRESS_EVERY:
                continue
            if progress is not None:
                over = sum(loop.controller.over for loop in loops)
                progress(now, over, sum(len(loop.controller.queue.jobs) for loop in loops))
            if interrupts.arrived():
                return
