"""Run one batch from a platform, a workload and options, and return its result.

The command line, campaigns and library users call it. It chooses the open or the compiled loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import MISSING, Field, dataclass, field, fields
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ptaskmodel.batch.allocations import Allocation, allocation_by_name
from ptaskmodel.batch.allocations.rules import Partitions
from ptaskmodel.batch.class_metrics import BASES, FairStart, Replayed, fair_starts
from ptaskmodel.batch.jobs.execution import DelayExecution, Execution, estimates_of
from ptaskmodel.batch.loop.decisions import MAX_DECISIONS_AT_A_DATE
from ptaskmodel.batch.loop.schedule import Schedule, figures_of, has_ended, with_arrays
from ptaskmodel.batch.machine.machine import Machine
from ptaskmodel.batch.names import FAIRNESS
from ptaskmodel.batch.options import BatchOptions
from ptaskmodel.batch.plan import Plan, machine_with
from ptaskmodel.batch.policies import policy_by_name
from ptaskmodel.batch.schedule_metrics import ROUNDING, contention_slowdown
from ptaskmodel.errors import SimulationError
from ptaskmodel.kernels.decorators import Stopwatch
from ptaskmodel.remarks import ESTIMATES_OUTLIVED, STOPPED, Remark
from ptaskmodel.style.text import count, duration
from ptaskmodel.workload.jobs import Job, Workload, job_arrays

if TYPE_CHECKING:
    import pandas

    from ptaskmodel.batch.compiled.delays import CompiledBatch
    from ptaskmodel.batch.compiled.parallel_tasks import CompiledPtasks
    from ptaskmodel.batch.jobs.metering import BatchEnergy, MeteredExecution
    from ptaskmodel.batch.loop.loop import BatchSimulation, Progress
    from ptaskmodel.batch.loop.view import Policy
    from ptaskmodel.batch.machine.failures import Changes
    from ptaskmodel.batch.policies.tuning import Tuning
    from ptaskmodel.energy.meter import Curve
    from ptaskmodel.platform.facts import AvailabilityTrace
    from ptaskmodel.platform.platform import Platform

# With fewer jobs, loading the compiled loop takes longer than the open one.
MANY_JOBS = 5000
# What may be asked for where the compiled loop simulates: it knows what they mean, or delays do not
# care. Any other option, a new one too, must be as by default: the open loop simulates it, and a
# remark says so.
OPTIONS_COMPILED = {
    "allocation",
    "backfill_order",
    "contention",
    "count",
    "estimates",
    "fairness",
    "frozen",
    "licences",
    "loop",
    "neighbours",
    "network_model",
    "on_failure",
    "order",
    "pattern",
    "policy",
    "policy_options",
    "profiles",
    "ratio",
    "seed",
    "solver",
    "storages",
    "until_s",
    "walltimes",
}


class Driver(Protocol):
    """A driver of a batch from outside: its policy represents an external scheduler.

    The policy may start jobs on hosts that other jobs have, and has to reject jobs that are larger
    than the machine. ptasks: whether parallel tasks may come that the workload does not contain.
    """

    ptasks: bool

    @property
    def policy(self) -> Policy: ...

    def run(
        self, simulation: BatchSimulation, execution: Execution, metered: MeteredExecution | None
    ) -> Mapping[str, Any]:
        """Run a `simulation` of jobs under `execution` to its end.

        Return what else the summary says.

        metered: the execution that counts energy; None: none does.
        """
        ...

    def metadata(self) -> Mapping[str, str]:
        """What is noted of jobs, by their ids."""
        ...

    def notes(self) -> tuple[str, ...]:
        """What else is to be said of the run, once it is over."""
        ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BatchResult:
    """The schedule of a workload on a machine, and remarks on how it came about.

    alone_s: for each job that ran, its time with the platform to itself on the same hosts; None if
    all jobs are delays or this was not asked for. simulation_s: wall time of the simulation,
    without kernels. kernels_s: wall time of loading the compiled loop; None with the open one.
    loop: "open" or "compiled". simulation: the `Simulation`, whose tasks have the ids of the jobs
    (with the compiled loop it has none); None if all jobs are delays. neighbours: who slowed whom
    by how many seconds, energy: joules, if that was asked for. tuning: that of the policy, if it
    has one. fairness: when each job would have started if nobody had come after it, if that was
    asked for. driven: what the driver says, and metadata: what it notes of jobs, by their ids, if
    there is one. outlived: how many jobs ran longer than the policy believed.
    """

    schedule: Schedule
    workload: Workload
    machine: Machine
    alone_s: tuple[float, ...] | None
    remarks: tuple[Remark, ...]
    simulation_s: float
    simulation: Any = None
    neighbours: tuple[tuple[str, str, float], ...] | None = None
    tuning: Tuning | None = None
    loop: str = "open"
    kernels_s: float | None = None
    fairness: Sequence[FairStart] | None = None
    energy: BatchEnergy | None = None
    driven: Mapping[str, Any] | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    outlived: int = 0

    def __repr__(self) -> str:
        return f"<BatchResult on {self.machine.num_hosts} hosts: {self.schedule!r}>"

    @property
    def notes(self) -> tuple[str, ...]:
        """The texts of the remarks."""
        return tuple(remark.text for remark in self.remarks)

    def frame(self) -> pandas.DataFrame:
        """The jobs as a table: that of `Schedule.frame`, and what the platform did to them.

        ``time_alone_s`` (with the platform to itself, on the same hosts) and
        ``contention_slowdown`` (see `measures.contention_slowdown`): nan where ``alone_s`` is None
        and for jobs that did not run.
        """
        table = self.schedule.frame()
        ran = np.array([has_ended(attempt) for attempt in self.schedule.final], dtype=bool)
        table["time_alone_s"] = table["contention_slowdown"] = np.nan
        if self.alone_s is not None:
            table.loc[ran, "time_alone_s"] = self.alone_s
            slowdowns = contention_slowdown(self.schedule, self.alone_s)
            table.loc[ran, "contention_slowdown"] = slowdowns
        return table


def new_simulation(
    plan: Plan,
    machine: Machine,
    progress: Progress | None = None,
    execution: Execution | None = None,
    metered: MeteredExecution | None = None,
    driver: Driver | None = None,
) -> BatchSimulation:
    """Return the batch simulation of a plan, at date 0.

    machine: that of the plan. progress: called often, with the date (s), how many jobs are over and
    how many wait. execution: how the jobs run, if not as the plan says; such a simulation is not
    verified. metered: the execution of the plan with its meter, if energy counts. driver: decides
    instead of a policy of the options.
    """
    from ptaskmodel.batch.jobs.queue import ClosedLoop
    from ptaskmodel.batch.loop.loop import BatchSimulation
    from ptaskmodel.batch.machine.failures import read_maintenance
    from ptaskmodel.batch.verifier import Verifier

    options = plan.options
    verified = options.verify is not None and execution is None
    traces, failures = _outages_of(plan, machine)
    jobs: Sequence[Job] = plan.workload.jobs
    respond = None
    if options.dependencies:
        loop = ClosedLoop(jobs, plan.workload.origin)
        jobs, respond = loop.first, loop.respond
    windows = (
        () if options.maintenance is None else read_maintenance(options.maintenance, machine.names)
    )
    return BatchSimulation(
        jobs,
        machine.capacities,
        _policy_of(plan) if driver is None else driver.policy,
        allocation=_allocation_of(plan, machine),
        execution=execution or metered or plan.execution,
        estimate=plan.estimate,
        limited=plan.limited,
        traces=traces,
        failures=failures,
        maintenance=windows,
        on_failure=options.on_failure,
        licences=options.licences,
        respond=respond,
        pstates=machine.pstates(),
        told_of_switches=None if metered is None else metered.told_of_switches,
        shared=driver is not None,
        admit_larger=driver is not None,
        observe=Verifier(options.verify or "none") if verified else None,
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
        from ptaskmodel.batch.machine.failures import FailureLaw, failures_of

        law = FailureLaw.of(options.failure_law) if options.failure_law else None
        failures = failures_of(machine, file=options.failures, law=law)
    if plan.only_delays:
        traces = {key: trace for key, trace in traces.items() if isinstance(key, int)}
        failures = {key: changes for key, changes in failures.items() if isinstance(key, int)}
    return traces, failures


def _policy_of(plan: Plan) -> Policy:
    options = plan.options
    return policy_by_name(
        options.policy,
        plan.estimate,
        order=options.order,
        backfill_order=options.backfill_order,
        options=options.policy_options,
    )


def _allocation_of(plan: Plan, machine: Machine) -> Allocation:
    options = plan.options
    switches = machine.switches() if options.allocation == "topology" else None
    allocation = allocation_by_name(
        options.allocation, num_hosts=machine.num_hosts, seed=options.seed, switches=switches
    )
    if isinstance(allocation, Partitions):
        allocation.check(plan.workload.jobs)
    return allocation


def is_for_compiled_loop(options: BatchOptions, jobs: int) -> bool:
    """Whether a batch of so many jobs goes through the compiled loop, if that can run it."""
    return options.loop == "compiled" or (options.loop == "auto" and jobs >= MANY_JOBS)


def options_not_compiled(options: BatchOptions) -> list[str]:
    """Names of the options, other than by default, that only the open loop knows."""
    others = (each for each in fields(options) if each.name not in OPTIONS_COMPILED)
    return [each.name for each in others if getattr(options, each.name) != _default(each)]


def compiled_batch_of(plan: Plan, machine: Machine) -> CompiledBatch | CompiledPtasks | None:
    """The batch of a plan, ready for the compiled loop; None if it is for the open one."""
    options = plan.options
    if not is_for_compiled_loop(options, len(plan.workload.jobs)):
        return None
    if options_not_compiled(options) or _outages_of(plan, machine)[0]:
        return None
    if not plan.only_delays and options.neighbours:
        return None
    from ptaskmodel.batch.compiled.delays import compiled_batch

    batch = compiled_batch(
        plan.workload.jobs,
        machine.num_hosts,
        _policy_of(plan),
        _allocation_of(plan, machine),
        estimate=plan.estimate,
        limited=plan.limited,
        most_decisions=MAX_DECISIONS_AT_A_DATE,
        simulated=not plan.only_delays,
    )
    if batch is None or plan.only_delays:
        return batch
    from ptaskmodel.batch.compiled.parallel_tasks import compiled_ptasks

    return compiled_ptasks(batch, machine, plan.limited, plan.new_simulation)


def _default(option: Field[Any]) -> Any:
    return option.default if option.default_factory is MISSING else option.default_factory()


def run_batch(
    platform: Platform,
    workload: Workload,
    options: BatchOptions | None = None,
    progress: Progress | None = None,
    observation: Callable[[Any], AbstractContextManager[Any]] | None = None,
    power: Curve | None = None,
    driver: Driver | None = None,
) -> BatchResult:
    """Simulate the jobs of ``workload`` on ``platform``.

    options: the policy and all else (None: the defaults). progress: called now and then with the
    date (s), how many jobs are over and how many there are. observation: makes, of the
    `Simulation`, a context to run in (see `results.observing.Observation`); not called if all jobs
    are delays. power: is given the power curve, if energy counts. driver: decides, whatever policy
    the options name.

    Raises SimulationError, WorkloadError, PlatformError.
    """
    options = options or BatchOptions()
    _check_fairness(options)
    machine = machine_with(options, platform)
    plan = Plan(machine, workload, options, driver is not None and driver.ptasks)
    shared = None if plan.ptasks is None else plan.ptasks.simulation
    watch = None
    if options.neighbours and shared is not None:
        from ptaskmodel.recording.attribution import Neighbours

        watch = Neighbours(shared)
    metered = _metered(plan, power) if options.energy else None
    watched = driver is not None or (observation is not None and shared is not None)
    compiled = None if watched else compiled_batch_of(plan, machine)
    schedule, kernels_s, loop, tuning = None, None, "open", None
    driven: Mapping[str, Any] | None = None
    if compiled is not None:
        loop, stopwatch = "compiled", Stopwatch()
        schedule = compiled.run(inf if options.until_s is None else options.until_s, progress)
        kernels_s = stopwatch.kernels_s
    if schedule is None:
        kernels_s, loop = None, "open"
        simulation = new_simulation(plan, machine, progress, metered=metered, driver=driver)
        stopwatch = Stopwatch()
        with nullcontext() if observation is None or shared is None else observation(shared):
            if driver is None:
                schedule = _run_to_its_end(simulation, options.until_s)
            else:
                driven = driver.run(simulation, metered or plan.execution, metered)
                schedule = simulation.schedule()
        tuning = _tuning_of(simulation)
    took = stopwatch.rest_s
    wanted = (options.contention or options.neighbours) and shared is not None
    if wanted and schedule.plain is None:
        plan.note_parts_done(schedule.ended())
    if driver is None and metered is None and schedule.plain is None:
        schedule = with_arrays(schedule, plan.workload.jobs)
    alone = _alone_s(plan, schedule, None if loop == "open" else compiled) if wanted else None
    neighbours = None
    if watch is not None and plan.ptasks is not None and alone is not None:
        from ptaskmodel.batch.schedule_metrics import lost_seconds

        ended = schedule.ended()
        neighbours = tuple(lost_seconds(plan.ptasks, ended, alone, watch.charges))
    fairness = _fairness(plan, machine, schedule, progress)
    late = (plan.belief,) if driver is None else map(Remark, driver.notes())
    remarks = (*plan.remarks, *late)
    outlived = _outlived(plan, schedule) if driver is None else 0
    if outlived:
        under = "" if plan.only_delays else " under contention"
        text = f"{outlived:,} of {len(schedule.final):,} jobs outlived their estimates{under}"
        remarks = (*remarks, Remark(text, effect=ESTIMATES_OUTLIVED))
    slow = options_not_compiled(options)
    if slow and driver is None and is_for_compiled_loop(options, len(plan.workload.jobs)):
        names = ", ".join("--" + name.replace("_", "-") for name in slow)
        text = f"the open loop simulates: the compiled one, which is faster, has no {names}"
        remarks = (*remarks, Remark(text))
    if options.until_s is not None:
        remarks = (*remarks, _how_far(schedule, len(plan.workload.jobs)))
    return BatchResult(
        schedule,
        plan.workload,
        machine,
        alone,
        remarks,
        took,
        shared,
        neighbours,
        tuning=tuning,
        loop=loop,
        kernels_s=kernels_s,
        fairness=fairness,
        energy=None if metered is None else metered.energy(schedule.now_s),
        driven=driven,
        metadata={} if driver is None else driver.metadata(),
        outlived=outlived,
    )


def _alone_s(
    plan: Plan, schedule: Schedule, compiled: CompiledBatch | CompiledPtasks | None
) -> tuple[float, ...]:
    """The time alone of each job that ran and ended."""
    known = getattr(compiled, "alone_s", None)
    if known is None or schedule.plain is None:
        return plan.alone_s(list(schedule.ended()))
    ended = np.flatnonzero(~np.isnan(schedule.plain.end_s))
    missing = ended[np.isnan(known[ended])]
    known[missing] = plan.alone_s([schedule.final[k] for k in missing.tolist()])
    return tuple(known[ended].tolist())


def _metered(plan: Plan, power: Curve | None) -> MeteredExecution:
    """The execution of a plan, with a meter."""
    from ptaskmodel.batch.jobs.metering import MeteredExecution

    return MeteredExecution(
        plan.execution,
        plan.machine,
        plan.ptasks,
        busy_delays=plan.options.delay_power == "busy",
        first_submit_s=float(min(job_arrays(plan.workload.jobs).submit_s, default=0.0)),
        curve=power,
    )


def _fairness(
    plan: Plan, machine: Machine, schedule: Schedule, progress: Progress | None
) -> list[FairStart] | None:
    """Fair starts, if they are asked for: the run again, forked wherever a job waited.

    Parallel tasks last in it what they lasted in the run, whoever runs beside them.
    """
    options = plan.options
    if options.fairness is None:
        return None
    execution = DelayExecution(plan.limited) if plan.only_delays else Replayed(schedule)
    replay = new_simulation(plan, machine, execution=execution)
    bases = BASES if options.fairness == "both" else (options.fairness,)
    return fair_starts(replay, schedule, bases=bases, frozen=options.frozen, progress=progress)


def _check_fairness(options: BatchOptions) -> None:
    if options.fairness is not None and options.fairness not in FAIRNESS:
        raise SimulationError(
            f"fairness '{options.fairness}' is unknown; use one of {', '.join(FAIRNESS)}"
        )
    if options.fairness is not None and options.failure_law:
        raise SimulationError(
            "--fairness: failures that are drawn cannot be drawn again in forks; give them in a "
            "file (--failures)"
        )
    if options.frozen and options.fairness is None:
        raise SimulationError("--frozen says how fair starts are found; give --fairness too")


def _tuning_of(simulation: BatchSimulation) -> Tuning | None:
    from ptaskmodel.batch.policies.tuning import Tuning

    found = getattr(simulation.policy, "tuning", None)
    return found if isinstance(found, Tuning) else None


def _run_to_its_end(simulation: BatchSimulation, until_s: float | None) -> Schedule:
    if until_s is None:
        return simulation.run()
    simulation.advance_to(until_s)
    return simulation.schedule()


def _outlived(plan: Plan, schedule: Schedule) -> int:
    """How many jobs ran, or have run so far, longer than the policy believed at first."""
    figures = figures_of(schedule)
    plain = schedule.plain
    jobs = [attempt.job for attempt in schedule.final] if plain is None else plain.jobs
    arrays = job_arrays(jobs) if plain is None else plain.arrays
    believed_s = estimates_of(plan.estimate, jobs, arrays)[: len(schedule.final)]
    until_s = np.where(np.isnan(figures.end_s), schedule.now_s, figures.end_s)
    ran_s = until_s - figures.start_s - figures.suspended_s
    return int((ran_s > believed_s * (1 + ROUNDING)).sum())


def _how_far(schedule: Schedule, jobs: int) -> Remark:
    """What is left undone at the date at which a run was stopped."""
    figures = figures_of(schedule)
    left = np.isnan(figures.end_s)
    running = int((left & ~np.isnan(figures.start_s)).sum())
    waiting, to_come = int(left.sum()) - running, jobs - len(schedule.final)
    return Remark(
        f"stopped at {duration(schedule.now_s)}: {count(running, 'job')} running, {waiting} "
        f"waiting, {to_come} still to be submitted",
        effect=STOPPED if running or waiting or to_come else None,
    )
