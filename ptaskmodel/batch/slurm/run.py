"""One simulation of Slurm: a configuration, jobs, phases; and what became of the jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ptaskmodel.batch.execution import DelayExecution, Execution
from ptaskmodel.batch.slurm.accounts.facts import Accounts
from ptaskmodel.batch.slurm.conf.facts import Conf
from ptaskmodel.batch.slurm.controller import Controller
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
    nodes = nodes_of(conf)
    phases = phases or Phases()
    boot_s = second_of(phases, phases.main_boot_s)
    rules = Rules(conf, nodes, boot_s, accounts, reserved)
    rules.array_sizes = Counter(each.array.job for each in requests if each.array is not None)
    execution = execution or DelayExecution(limited=False)
    told = None if recorded is None else recorded.ended
    running = Running(execution, nodes.cpus, phases.end_s, told)
    note, turned = (None, None) if watch is None else (watch.note, watch.turned)
    controller = Controller(conf, nodes, phases, running, rules, note)
    failing = None
    if failures:
        tell = None if watch is None else watch.of_node
        failing = NodeFailures(controller, failures, tell)
    loop = Loop(controller, execution, requests, phases, recorded, turned, compiled, costs, failing)
    controller.keeps_plans = watch is not None
    loop.run(progress)
    return SlurmRun(conf, nodes, phases, tuple(controller.jobs), loop)
