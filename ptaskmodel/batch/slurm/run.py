"""One simulation of Slurm: a configuration, jobs, phases; and what became of the jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from ptaskmodel.batch.execution import DelayExecution, Execution
from ptaskmodel.batch.slurm.accounts.facts import Accounts
from ptaskmodel.batch.slurm.arrays import Arrays
from ptaskmodel.batch.slurm.conf.facts import Conf
from ptaskmodel.batch.slurm.controller import Controller
from ptaskmodel.batch.slurm.controllers import Part
from ptaskmodel.batch.slurm.costs import FREE, Costs
from ptaskmodel.batch.slurm.loop import Loop, Progress
from ptaskmodel.batch.slurm.node_failures import Changes, NodeFailures
from ptaskmodel.batch.slurm.nodes import Nodes, nodes_of
from ptaskmodel.batch.slurm.phases import Phases, Recorded, second_of
from ptaskmodel.batch.slurm.record import JobRecord
from ptaskmodel.batch.slurm.requests.request import JobRequest
from ptaskmodel.batch.slurm.reservations import Reserved
from ptaskmodel.batch.slurm.rules import Rules
from ptaskmodel.batch.slurm.running import Running
from ptaskmodel.batch.slurm.together import run_together
from ptaskmodel.batch.slurm.watching import Watch


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


def simulate(
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

    accounts: QOSs and associations. phases: when the controller's threads wake. recorded: dates of
    a recorded run, which replace theirs. execution: how long jobs run (what their work says, by
    default). watch: notes what happens. compiled: whether a kernel makes backfill cycles where it
    can; the same comes out. costs: how long backfill's tests take. failures: see
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
    each has a watch. The rest is as in `simulate`.
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
    rules = Rules(conf, nodes, boot_s, accounts, reserved)
    rules.arrays = Arrays(conf, requests)
    told = None if recorded is None else recorded.ended
    running = Running(execution, nodes.cpus, phases.end_s, told, numbers, hosts)
    note, turned = (None, None) if watch is None else (watch.note, watch.turned)
    controller = Controller(conf, nodes, phases, running, rules, note)
    failing = None
    if failures:
        tell = None if watch is None else watch.of_node
        failing = NodeFailures(controller, failures, tell)
    loop = Loop(controller, execution, requests, phases, recorded, turned, compiled, costs, failing)
    controller.keeps_plans = watch is not None
    return loop


def _outcome(loop: Loop) -> SlurmRun:
    controller = loop.controller
    return SlurmRun(
        controller.conf, controller.nodes, controller.phases, tuple(controller.jobs), loop
    )
