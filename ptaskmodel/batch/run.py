"""One batch simulation from a platform, a workload and options: what the command line runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from ptaskmodel.batch.execution import actual_duration_s, walltime_or_inf
from ptaskmodel.batch.kit import Verifier
from ptaskmodel.batch.loader import allocation_by_name, policy_by_name
from ptaskmodel.batch.machine import Machine, machine_of
from ptaskmodel.batch.metrics import ran
from ptaskmodel.batch.simulator import BatchSimulation, Progress, Schedule
from ptaskmodel.errors import SimulationError
from ptaskmodel.platform.platform import Platform
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.transforms.ptask_rule import ptask_profiles
from ptaskmodel.workload.works import DelayWork

PROFILES = ("as-given", "delay", "ptask")
Estimate = Callable[[Job], float]


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """What to simulate; the names are those of the options of ``ptaskmodel batch``."""

    policy: str = "easy"
    order: str | None = None
    backfill_order: str | None = None
    policy_options: Mapping[str, Any] = field(default_factory=dict)
    allocation: str = "first-fit"
    seed: int = 0
    estimates: str | None = None
    profiles: str = "as-given"
    ratio: float = 0.5
    pattern: str = "alltoall"
    storages: Mapping[str, str] = field(default_factory=dict)
    solver: str | None = None
    network_model: str | None = None
    count: str = "task"
    verify: str | None = None
    contention: bool = True
    neighbours: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class BatchResult:
    """The schedule of a workload on a machine, and what was said on the way.

    alone_s: for each job that ran, its time with the platform to itself on the same hosts; None if
    all jobs are delays or this was not asked for. simulation_s: wall time of the simulation.
    simulation: the engine's `Simulation`, whose tasks have the ids of the jobs; None if all jobs
    are delays. neighbours: who slowed whom by how many seconds, if that was asked for.
    """

    schedule: Schedule
    workload: Workload
    machine: Machine
    alone_s: tuple[float, ...] | None
    notes: tuple[str, ...]
    simulation_s: float
    simulation: Any = None
    neighbours: tuple[tuple[str, str, float], ...] | None = None


def run_batch(
    platform: Platform,
    workload: Workload,
    options: BatchOptions | None = None,
    progress: Progress | None = None,
    observation: Callable[[Any], AbstractContextManager[Any]] | None = None,
) -> BatchResult:
    """Simulate a workload on a platform.

    observation: makes, of the engine's `Simulation`, a context to run in (see
    `results.observing.Observation`); not called if all jobs are delays.

    Raises SimulationError, WorkloadError, PlatformError.
    """
    options = options or BatchOptions()
    machine = machine_of(platform, options.storages)
    runner = _Runner(machine, options)
    workload = runner.with_profiles(workload)
    estimate, note = runner.estimate(workload)
    execution = runner.execution(workload)
    watch = None
    if options.neighbours and execution is not None:
        from ptaskmodel.batch.neighbours import Neighbours

        watch = Neighbours(execution.simulation)
    switches = machine.switches() if options.allocation == "topology" else None
    simulation = BatchSimulation(
        workload.jobs,
        machine.num_hosts,
        policy_by_name(
            options.policy,
            estimate,
            order=options.order,
            backfill_order=options.backfill_order,
            options=options.policy_options,
        ),
        allocation=allocation_by_name(options.allocation, seed=options.seed, switches=switches),
        execution=execution,
        estimate=estimate,
        observe=None if options.verify is None else Verifier(options.verify),
        progress=progress,
    )
    engine = None if execution is None else execution.simulation
    began = time.perf_counter()
    with nullcontext() if observation is None or engine is None else observation(engine):
        schedule = simulation.run()
    took = time.perf_counter() - began
    wanted = options.contention or options.neighbours
    alone = runner.alone_s(schedule) if wanted and not only_delays(workload) else None
    neighbours = None if watch is None else _neighbours(schedule, alone, watch, execution)
    notes = (*workload.notes, note)
    return BatchResult(schedule, workload, machine, alone, notes, took, engine, neighbours)


def _neighbours(
    schedule: Schedule, alone: Any, watch: Any, execution: Any
) -> tuple[tuple[str, str, float], ...]:
    from ptaskmodel.batch.neighbours import lost_seconds

    return tuple(lost_seconds(schedule, alone, watch.charges, execution.run_of_task))


def only_delays(workload: Workload) -> bool:
    """Whether no job depends on the platform."""
    return all(work.duration_s is not None for work in workload.profiles.values())


class _Runner:
    """What depends on the machine and the options: executions, estimates, times alone."""

    def __init__(self, machine: Machine, options: BatchOptions) -> None:
        self.machine = machine
        self.options = options
        self._alone: Any = None

    def new_simulation(self) -> Any:
        from ptaskmodel.simulation.simulation import Simulation

        return Simulation(
            self.machine.platform,
            solver=self.options.solver,
            network_model=self.options.network_model,
            count=self.options.count,
        )

    def execution(self, workload: Workload) -> Any:
        """None (the default: a heap of ends) if all are delays, else the parallel-task model."""
        if only_delays(workload):
            return None
        from ptaskmodel.batch.ptasks import PtaskExecution

        return PtaskExecution(self.machine, self.new_simulation())

    def alone_times(self) -> Any:
        if self._alone is None:
            from ptaskmodel.batch.ptasks import AloneTimes

            self._alone = AloneTimes(self.machine, self.new_simulation)
        return self._alone

    def alone_s(self, schedule: Schedule) -> tuple[float, ...]:
        alone = self.alone_times()
        return tuple(alone.on(run.job, run.hosts) for run in ran(schedule))

    def with_profiles(self, workload: Workload) -> Workload:
        """The workload with the kind of profiles that the options ask for."""
        kind = self.options.profiles
        if kind not in PROFILES:
            raise SimulationError(f"profiles '{kind}': use one of {', '.join(PROFILES)}")
        if kind == "ptask":
            host = self.machine.platform.host(self.machine.names[0])
            return ptask_profiles(
                workload,
                speed_flops=host.speed_flops,
                bandwidth_Bps=self._card_Bps(),
                ratio=self.options.ratio,
                pattern=self.options.pattern,
            )
        if kind == "delay" and not only_delays(workload):
            return self._as_delays(workload)
        return workload

    def _card_Bps(self) -> float:
        """Bandwidth of the first link on the way from the first host to the second."""
        if self.machine.num_hosts == 1:
            return 1.0
        first, second = self.machine.names[:2]
        links = self.machine.platform.route(first, second).links
        if not links:
            raise SimulationError(
                f"the route from {first} to {second} has no link: convert the workload with "
                "'ptaskmodel workload convert --bandwidth' instead"
            )
        return self.machine.platform.link(links[0]).bandwidth_Bps

    def _as_delays(self, workload: Workload) -> Workload:
        """Each job lasts as long as it takes alone on the first hosts of the machine."""
        self._check_sizes(workload)
        alone = self.alone_times()
        works: dict[float, DelayWork] = {}
        jobs = []
        for job in workload.jobs:
            time_s = alone.on_first_hosts(job)
            work = works.setdefault(time_s, DelayWork(time_s))
            name = f"{job.profile}@{job.num_hosts}"
            jobs.append(replace(job, work=work, profile=name))
        note = "every job lasts as long as it takes alone on the first hosts of the platform"
        return workload.with_jobs(tuple(jobs), note)

    def _check_sizes(self, workload: Workload) -> None:
        for job in workload.jobs:
            if job.num_hosts > self.machine.num_hosts:
                raise SimulationError(
                    f"job '{job.id}' asks for {job.num_hosts} hosts and the platform has "
                    f"{self.machine.num_hosts}: use a larger platform or leave the job out"
                )

    def estimate(self, workload: Workload) -> tuple[Estimate, str]:
        """What the policy believes of durations, and a sentence that says so."""
        kind = self.options.estimates
        if kind is None:
            limited = all(job.walltime_s is not None for job in workload.jobs)
            kind = "walltime" if limited else "exact"
        if kind == "walltime":
            missing = sum(job.walltime_s is None for job in workload.jobs)
            if missing == 0:
                return walltime_or_inf, "estimates: the walltimes"
            return walltime_or_inf, f"estimates: the walltimes ({missing} jobs have none)"
        exact = self._exact(workload)
        if kind == "exact":
            return exact, "estimates: exact" + ("" if only_delays(workload) else " (time alone)")
        name, _, number = kind.partition(":")
        try:
            factor = float(number)
        except ValueError:
            factor = 0.0
        if name != "factor" or not 0 < factor < float("inf"):
            raise SimulationError(f"estimates '{kind}': use exact, walltime or factor:NUMBER")

        def estimate(job: Job) -> float:
            return min(factor * exact(job), walltime_or_inf(job))

        return estimate, f"estimates: {factor:g} times the duration, at most the walltime"

    def _exact(self, workload: Workload) -> Estimate:
        if only_delays(workload):
            return actual_duration_s
        self._check_sizes(workload)
        alone = self.alone_times()
        return lambda job: min(alone.on_first_hosts(job), walltime_or_inf(job))
