"""Run one simulation of Slurm: from a configuration, jobs and phases to the records of the jobs.

It maps the nodes of the configuration to hosts of a platform that jobs share. Before a run it warns
if more work arrives than the nodes can do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from ptaskmodel.batch.jobs.execution import DelayExecution, Execution
from ptaskmodel.batch.jobs.parallel_tasks import PtaskExecution
from ptaskmodel.batch.machine.machine import machine_of
from ptaskmodel.errors import SlurmError
from ptaskmodel.remarks import OVERLOAD, warn
from ptaskmodel.slurm.accounts.facts import Accounts
from ptaskmodel.slurm.conf.facts import Conf, Nodes, nodes_of
from ptaskmodel.slurm.conf.phases import FREE, Costs, Phases, Recorded, second_of
from ptaskmodel.slurm.conf.reservations import Reserved
from ptaskmodel.slurm.controller.controller import Controller
from ptaskmodel.slurm.controller.node_failures import Changes, NodeFailures
from ptaskmodel.slurm.controller.rules import Rules
from ptaskmodel.slurm.controller.running import Running
from ptaskmodel.slurm.event_log import Watch
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.jobs.request import JobRequest
from ptaskmodel.slurm.loop import Loop, Progress
from ptaskmodel.slurm.several_controllers import Part, run_together

if TYPE_CHECKING:
    from ptaskmodel.batch.jobs.attempt import Attempt
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


def simulate_together(
    conf: Conf,
    parts: Sequence[Part],
    execution: Execution,
    watches: Sequence[Watch],
    *,
    accounts: Accounts | None = None,
    phases: Phases | None = None,
    costs: Costs = FREE,
    failures: Mapping[str, Changes] | None = None,
    progress: Progress | None = None,
) -> list[SlurmRun]:
    """Run the jobs of several controllers on one platform, where they feel each other.

    conf: of all nodes, which are the hosts of the execution in this order. parts: see `parts_of`;
    each has a watch. The rest is as in `simulate_slurm`.
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
    controller = Controller(
        conf, nodes, phases, running, rules, note, keeps_plans=watch is not None
    )
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
    """What runs jobs on a platform. Raises SlurmError if some nodes have no host."""
    from ptaskmodel.simulation.simulation import Simulation

    return PtaskExecution(machine_for(platform, conf), Simulation(platform), limited=False)


def alone_s(execution: PtaskExecution, attempts: Sequence[Attempt]) -> list[float]:
    """How long each attempt would have taken with the platform to itself, s.

    Which part of their work those did that were cut off is noted where it is known.
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
    """Warn if the offered load is above 1."""
    load = offered_load(conf, jobs) if len(jobs) >= FEW_JOBS else 0.0
    if load > 1.0:
        warn(f"the offered load is {load:.3g}: the queue grows as long as jobs come", OVERLOAD)
