"""One batch simulation from a platform, a workload and options: what the command line runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from ptaskmodel.batch.allocations import allocation_by_name
from ptaskmodel.batch.allocations.partitions import Partitions
from ptaskmodel.batch.failures import Changes, FailureLaw, failures_of
from ptaskmodel.batch.kit import Verifier
from ptaskmodel.batch.machine import Machine, machine_of
from ptaskmodel.batch.maintenance import read_maintenance
from ptaskmodel.batch.plan import BatchOptions, Plan
from ptaskmodel.batch.policies import policy_by_name
from ptaskmodel.batch.policies.tuning import Tuning
from ptaskmodel.batch.schedule import Schedule
from ptaskmodel.batch.simulator import BatchSimulation, Progress
from ptaskmodel.platform.model import AvailabilityTrace
from ptaskmodel.platform.platform import Platform
from ptaskmodel.workload.jobs import Workload


@dataclass(frozen=True, slots=True, eq=False)
class BatchResult:
    """The schedule of a workload on a machine, and what was said on the way.

    alone_s: for each job that ran, its time with the platform to itself on the same hosts; None if
    all jobs are delays or this was not asked for. simulation_s: wall time of the simulation.
    simulation: the `Simulation`, whose tasks have the ids of the jobs; None if all jobs
    are delays. neighbours: who slowed whom by how many seconds, if that was asked for. tuning: that
    of the policy, if it has one.
    """

    schedule: Schedule
    workload: Workload
    machine: Machine
    alone_s: tuple[float, ...] | None
    notes: tuple[str, ...]
    simulation_s: float
    simulation: Any = None
    neighbours: tuple[tuple[str, str, float], ...] | None = None
    tuning: Tuning | None = None


def new_simulation(
    plan: Plan, machine: Machine, progress: Progress | None = None
) -> BatchSimulation:
    """The batch simulation of a plan, at date 0."""
    options = plan.options
    switches = machine.switches() if options.allocation == "topology" else None
    allocation = allocation_by_name(
        options.allocation, num_hosts=machine.num_hosts, seed=options.seed, switches=switches
    )
    if isinstance(allocation, Partitions):
        allocation.check(plan.workload.jobs)
    traces, failures = _outages_of(plan, machine)
    windows = (
        () if options.maintenance is None else read_maintenance(options.maintenance, machine.names)
    )
    return BatchSimulation(
        plan.workload.jobs,
        machine.capacities,
        policy_by_name(
            options.policy,
            plan.estimate,
            order=options.order,
            backfill_order=options.backfill_order,
            options=options.policy_options,
        ),
        allocation=allocation,
        execution=plan.execution,
        estimate=plan.estimate,
        limited=plan.limited,
        traces=traces,
        failures=failures,
        maintenance=windows,
        on_failure=options.on_failure,
        licences=options.licences,
        observe=None if options.verify is None else Verifier(options.verify),
        progress=progress,
    )


def _outages_of(
    plan: Plan, machine: Machine
) -> tuple[dict[int | str, AvailabilityTrace], dict[int | str, Changes]]:
    """What goes down: by the platform's traces, and as the options say.

    Links stop nobody where every job is a delay: they are left out then.
    """
    options = plan.options
    traces: dict[int | str, AvailabilityTrace] = machine.state_traces()
    failures: dict[int | str, Changes] = {}
    if options.failures is not None or options.failure_law:
        law = FailureLaw.of(options.failure_law) if options.failure_law else None
        failures = failures_of(machine, file=options.failures, law=law)
    if plan.only_delays:
        traces = {key: trace for key, trace in traces.items() if isinstance(key, int)}
        failures = {key: changes for key, changes in failures.items() if isinstance(key, int)}
    return traces, failures


def run_batch(
    platform: Platform,
    workload: Workload,
    options: BatchOptions | None = None,
    progress: Progress | None = None,
    observation: Callable[[Any], AbstractContextManager[Any]] | None = None,
) -> BatchResult:
    """Simulate a workload on a platform.

    observation: makes, of the `Simulation`, a context to run in (see
    `results.observing.Observation`); not called if all jobs are delays.

    Raises SimulationError, WorkloadError, PlatformError.
    """
    options = options or BatchOptions()
    machine = machine_of(platform, options.storages)
    plan = Plan(machine, workload, options)
    shared = None if plan.ptasks is None else plan.ptasks.simulation
    watch = None
    if options.neighbours and shared is not None:
        from ptaskmodel.recording.neighbours import Neighbours

        watch = Neighbours(shared)
    simulation = new_simulation(plan, machine, progress)
    began = time.perf_counter()
    with nullcontext() if observation is None or shared is None else observation(shared):
        schedule = _run_to_its_end(simulation, options.until_s)
    took = time.perf_counter() - began
    wanted = (options.contention or options.neighbours) and not plan.only_delays
    alone = plan.alone_s(list(schedule.ended())) if wanted else None
    neighbours = None
    if watch is not None and plan.ptasks is not None and alone is not None:
        from ptaskmodel.batch.neighbours import lost_seconds

        neighbours = tuple(
            lost_seconds(schedule, alone, watch.charges, plan.ptasks.attempt_of_task)
        )
    notes = plan.notes
    if options.until_s is not None:
        notes = (*notes, _how_far(schedule, len(plan.workload.jobs)))
    tuning = getattr(simulation.policy, "tuning", None)
    return BatchResult(
        schedule,
        plan.workload,
        machine,
        alone,
        notes,
        took,
        shared,
        neighbours,
        tuning=tuning if isinstance(tuning, Tuning) else None,
    )


def _run_to_its_end(simulation: BatchSimulation, until_s: float | None) -> Schedule:
    if until_s is None:
        return simulation.run()
    simulation.advance_to(until_s)
    return simulation.schedule()


def _how_far(schedule: Schedule, jobs: int) -> str:
    """What is left undone at the date at which a run was stopped."""
    left = [attempt for attempt in schedule.final if attempt.end_s is None]
    running = sum(attempt.start_s is not None for attempt in left)
    return (
        f"stopped at {schedule.now_s:g} s: {running} jobs run, {len(left) - running} wait, "
        f"{jobs - len(schedule.final)} are still to be submitted"
    )
