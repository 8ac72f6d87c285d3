"""The plan of a batch, made before the run: works of jobs, expected run times, execution."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.jobs.checkpoints import Checkpointing
from ptaskmodel.batch.jobs.execution import (
    Attempt,
    DelayExecution,
    Estimate,
    Execution,
    Scaled,
    actual_duration_s,
    delay_of,
    walltime_or_inf,
)
from ptaskmodel.batch.machine.machine import Machine, machine_of
from ptaskmodel.batch.names import DELAY_POWERS, LOOPS, PROFILES, WALLTIMES
from ptaskmodel.batch.options import BatchOptions
from ptaskmodel.errors import PTaskModelError, SimulationError
from ptaskmodel.remarks import KILLED, OVERLOAD, WARNING, Remark, warn
from ptaskmodel.style.text import duration, several
from ptaskmodel.workload.jobs import Job, Workload, job_arrays, num_linked, sizes_of
from ptaskmodel.workload.works import DelayWork, TraceWork, Work

if TYPE_CHECKING:
    from ptaskmodel.batch.jobs.isolated import AloneTimes
    from ptaskmodel.batch.jobs.parallel_tasks import PtaskExecution
    from ptaskmodel.platform.platform import Platform
    from ptaskmodel.simulation.simulation import Simulation

# An extended walltime is a little longer than what the job needs: no rounding kills it.
EXTENDED = 1.000001
# What is believed of jobs without walltimes that neighbours may slow down: with times alone they
# outlive their estimates, others overtake them, and slow allocations look fast.
CONTENDED = "factor:2"
# Of fewer jobs than these, which may all be submitted at once, a load says nothing.
FEW_JOBS = 1000
FloatArray = NDArray[np.float64]
# What conservative takes for each waiting job at each decision, in both loops, s; what is worth a
# warning, s.
LOOK_S, OPEN_LOOK_S = 5e-7, 1e-5
LONG_S = 60.0


def check_sizes(workload: Workload, num_hosts: int) -> None:
    """Raise SimulationError if a job of a `workload` requests more than `num_hosts` hosts."""
    too_large = np.flatnonzero(sizes_of(workload.jobs) > num_hosts)
    if len(too_large):
        job = workload.jobs[int(too_large[0])]
        raise SimulationError(
            f"{workload.origin or workload.name}: job '{job.id}' asks for {job.num_hosts} hosts "
            f"and the platform has {num_hosts}; use a larger platform or leave the job out "
            "(--leave-out-larger)"
        )


def machine_with(options: BatchOptions, platform: Platform) -> Machine:
    """The machine that a platform is with these options (see `machine_of`)."""
    return machine_of(
        platform,
        options.storages,
        roles=options.roles,
        order=options.host_order,
        most=options.most_hosts,
    )


def _conservative_s(submit_s: FloatArray, work_host_s: FloatArray, hosts: int, loop: str) -> float:
    """Estimate how long conservative backfilling may take, s.

    It looks at each waiting job at two decisions per job. The number of waiting jobs is estimated
    from the submitted work that the hosts, if always busy, have not done yet.
    """
    left = np.cumsum(work_host_s) - hosts * (submit_s - submit_s[0])
    left -= np.minimum.accumulate(np.minimum(left - work_host_s, 0.0))
    looks = 2.0 * float(left.sum() / work_host_s.mean())
    return looks * (OPEN_LOOK_S if loop == "open" else LOOK_S)


def only_delays(workload: Workload) -> bool:
    """Return whether no job of a `workload` depends on the platform."""
    others = (work for work in workload.profiles.values() if type(work) is not DelayWork)
    return all(work.duration_s is not None for work in others)


def replays(work: Work) -> bool:
    """Whether some part of a work is a trace to be replayed."""
    return any(isinstance(part, TraceWork) for part in work.parts())


class Plan:
    """Works, walltimes, estimates, execution and times alone of one batch.

    machine: the hosts on which the batch runs. workload: with the works and walltimes that the
    options ask for. estimate: what the policy believes of durations. execution: how the jobs will
    run; ``ptasks`` is the same if some are parallel tasks, or may come to be (if ``ptasks`` says
    so), else None. remarks: on what was changed, and belief: on what the policy believes. Raises
    SimulationError, WorkloadError.
    """

    def __init__(
        self, machine: Machine, workload: Workload, options: BatchOptions, ptasks: bool = False
    ) -> None:
        self.machine = machine
        self.options = options
        self._alone: AloneTimes | None = None
        if options.delay_power not in DELAY_POWERS:
            raise SimulationError(
                f"delay_power '{options.delay_power}'; use one of {', '.join(DELAY_POWERS)}"
            )
        if options.walltimes not in WALLTIMES:
            raise SimulationError(
                f"walltimes '{options.walltimes}'; use one of {', '.join(WALLTIMES)}"
            )
        if options.loop not in LOOPS:
            raise SimulationError(f"loop '{options.loop}'; use one of {', '.join(LOOPS)}")
        self.limited = options.walltimes != "ignore"
        workload = self._with_profiles(workload)
        self.only_delays = only_delays(workload)
        if options.energy and any(map(replays, workload.profiles.values())):
            raise SimulationError(
                "energy: what the ranks of traces draw is not metered; leave --energy out, or make "
                "the traces parallel tasks (--profiles ptask)"
            )
        workload = self._with_walltimes(workload)
        self.estimate, belief = self._estimate_of(workload)
        self.belief = Remark(belief)
        self.workload = workload
        lasts_s = self._lasts_s(workload)
        self.remarks = (
            *workload.remarks,
            *self._past_walltimes(workload, lasts_s),
            *self._dependencies(workload),
            *self._overload(workload, lasts_s),
        )
        self.ptasks = self._ptask_execution() if ptasks or not self.only_delays else None
        self.execution: Execution = self.ptasks or DelayExecution(self.limited, self._checkpoints())

    def _checkpoints(self) -> Checkpointing | None:
        """What checkpoints cost; None: jobs write none."""
        options = self.options
        if not options.checkpoint:
            return None
        return Checkpointing.of(options.checkpoint, options.failure_law.get("mtbf"))

    def alone_s(self, attempts: Sequence[Attempt]) -> tuple[float, ...]:
        """Return the seconds that each of `attempts` would have taken alone on the platform."""
        return tuple(self._alone_times().of_attempts(attempts))

    def note_parts_done(self, attempts: Iterable[Attempt]) -> None:
        """Note which part of their work attempts that are over did, where it is known."""
        if self.ptasks is not None:
            self._alone_times().note_parts_done(attempts, self.ptasks)

    def new_simulation(self) -> Simulation:
        """A simulation without tasks, as the options ask for."""
        from ptaskmodel.simulation.simulation import Simulation

        return Simulation(
            self.machine.platform,
            solver=self.options.solver,
            network_model=self.options.network_model,
            count=self.options.count,
        )

    def _ptask_execution(self) -> PtaskExecution:
        from ptaskmodel.batch.jobs.parallel_tasks import PtaskExecution

        return PtaskExecution(
            self.machine, self.new_simulation(), self.limited, self._checkpoints()
        )

    def _alone_times(self) -> AloneTimes:
        if self._alone is None:
            from ptaskmodel.batch.jobs.isolated import AloneTimes

            self._alone = AloneTimes(self.machine, self.new_simulation)
        return self._alone

    # --- works ------------------------------------------------------------------------------

    def _with_profiles(self, workload: Workload) -> Workload:
        """The workload with the kind of profiles that the options ask for."""
        kind = self.options.profiles
        if kind not in PROFILES:
            raise SimulationError(f"profiles '{kind}'; use one of {', '.join(PROFILES)}")
        if kind == "ptask":
            from ptaskmodel.batch.jobs.parallel_tasks import bundled_profiles
            from ptaskmodel.workload.ptask_rule import ptask_profiles

            platform = self.machine.platform
            host = platform.host(self.machine.names[0])
            return ptask_profiles(
                bundled_profiles(workload, platform.config),
                speed_flops=host.speed_flops,
                bandwidth_Bps=self.machine.card_Bps(),
                ratio=self.options.ratio,
                pattern=self.options.pattern,
            )
        if kind == "delay" and not only_delays(workload):
            return self._as_delays(workload)
        if kind == "smpi":
            from ptaskmodel.workload.ptask_rule import trace_profiles

            return trace_profiles(workload)
        return workload

    def _as_delays(self, workload: Workload) -> Workload:
        """Each job lasts as long as it takes alone on the first hosts of the machine."""
        check_sizes(workload, self.machine.num_hosts)
        alone = self._alone_times()
        works: dict[float, DelayWork] = {}
        jobs = []
        for job in workload.jobs:
            time_s = alone.on_first_hosts(job)
            work = works.setdefault(time_s, DelayWork(time_s))
            name = f"{job.profile}@{job.num_hosts}"
            jobs.append(replace(job, work=work, profile=name))
        note = "every job lasts as long as it takes alone on the first hosts of the platform"
        return workload.with_jobs(tuple(jobs), note)

    # --- walltimes --------------------------------------------------------------------------

    def _with_walltimes(self, workload: Workload) -> Workload:
        """The workload with walltimes extended, if the options say so."""
        if self.options.walltimes != "extend":
            return workload
        jobs = tuple(map(self._extended, workload.jobs))
        changed = sum(a is not b for a, b in zip(jobs, workload.jobs, strict=True))
        note = f"{changed} walltimes extended to the time that the job needs"
        return workload.with_jobs(jobs, note) if changed else workload

    def _lasts_s(self, workload: Workload) -> FloatArray:
        """How long each job lasts alone, with its checkpoints, s; nan: only a simulation says."""
        arrays = job_arrays(workload.jobs)
        lasts_s = arrays.duration_s
        asked = len(workload.jobs) >= FEW_JOBS or not np.isnan(arrays.walltime_s).all()
        fits = arrays.num_hosts.max(initial=0) <= self.machine.num_hosts
        if asked and fits and not self.only_delays:
            # What is wrong with a job is told when it starts.
            with contextlib.suppress(PTaskModelError):
                lasts_s = np.array(self._alone_times().of_first_hosts(workload.jobs))
        checkpoints = self._checkpoints()
        if checkpoints is None:
            return lasts_s
        both = zip(workload.jobs, lasts_s.tolist(), strict=True)
        return np.array(
            [checkpoints.lasts_s(job, alone, 0.0) if alone < inf else alone for job, alone in both],
            dtype=np.float64,
        )

    def _past_walltimes(self, workload: Workload, lasts_s: FloatArray) -> tuple[Remark, ...]:
        """What to say of jobs that need more than their walltime, even alone."""
        over = int((lasts_s > job_arrays(workload.jobs).walltime_s).sum())
        if over == 0:
            return ()
        text = several(over, "job runs past its walltime", "jobs run past their walltime")
        if not self.limited:
            return (Remark(f"{text}, which is not enforced"),)
        text += f", and {'is' if over == 1 else 'are'} killed then "
        text += f"(--walltimes ignore or extend lets {'it' if over == 1 else 'them'} run)"
        return (Remark(text, effect=KILLED),)

    def _dependencies(self, workload: Workload) -> tuple[Remark, ...]:
        """What to say of jobs that are submitted in answer to others, or might be."""
        if not self.options.dependencies:
            count = num_linked(workload.jobs)
            named = several(count, "job names a preceding job", "jobs name a preceding job")
            text = f"{named}; --dependencies makes {'it' if count == 1 else 'them'} wait for it"
            return (Remark(text),) if count else ()
        known = {job.id for job in workload.jobs}
        found = [known.intersection(job.preceding_jobs) for job in workload.jobs]
        count = sum(map(bool, found))
        text = several(
            count,
            "job is submitted after its preceding jobs have ended, and after its think time",
            "jobs are submitted after their preceding jobs have ended, and after their think times",
        )
        pairs = zip(workload.jobs, found, strict=True)
        lost = sum(len(job.preceding_jobs) > len(there) for job, there in pairs)
        if not lost:
            return (Remark(text),)
        named = several(lost, "job names preceding jobs", "jobs name preceding jobs")
        unknown = f"{named} that are not in the workload: not waited for"
        return (Remark(text), Remark(unknown))

    def _overload(self, workload: Workload, lasts_s: FloatArray) -> tuple[Remark, ...]:
        """What to say if more work is submitted than the machine can do meanwhile, all alone."""
        if len(workload.jobs) < FEW_JOBS:
            return ()
        arrays = job_arrays(workload.jobs)
        span = float(np.ptp(arrays.submit_s))
        lasts = np.nan_to_num(lasts_s, posinf=inf)
        if self.limited:
            lasts = np.minimum(lasts, arrays.limit_s)
        work = float((arrays.num_hosts * lasts).sum())
        load = work / (span * self.machine.num_hosts) if span > 0 else 0.0
        if load <= 1:
            return ()
        found = [f"the offered load is {load:.3g}: the queue grows as long as jobs come"]
        options = self.options
        if options.policy == "conservative" and "depth" not in options.policy_options:
            takes_s = _conservative_s(
                arrays.submit_s, arrays.num_hosts * lasts, self.machine.num_hosts, options.loop
            )
            if takes_s > LONG_S:
                found.append(
                    f"conservative may take about {duration(takes_s)} with such a queue: "
                    "--policy-option depth=100 lets the first 100 jobs of it hold reservations"
                )
        for what in found:
            warn(what, OVERLOAD)
        return tuple(Remark(what, WARNING, OVERLOAD) for what in found)

    def _extended(self, job: Job) -> Job:
        """The job with a walltime longer than what it needs; alone, if it is a parallel task."""
        if job.walltime_s is None:
            return job
        needed = job.work.duration_s
        if needed is None:
            needed = self._alone_times().on_first_hosts(job)
        if needed < job.walltime_s:
            return job
        return replace(job, walltime_s=needed * EXTENDED)

    # --- estimates --------------------------------------------------------------------------

    def _estimate_of(self, workload: Workload) -> tuple[Estimate, str]:
        """What the policy believes of durations, and a sentence that says so."""
        kind = self.options.estimates
        if kind is None:
            limited = not np.isnan(job_arrays(workload.jobs).walltime_s).any()
            kind = "walltime" if limited else "exact" if self.only_delays else CONTENDED
        if kind == "walltime":
            missing = int(np.isnan(job_arrays(workload.jobs).walltime_s).sum())
            if missing == 0:
                return walltime_or_inf, "estimates: the walltimes"
            return (
                walltime_or_inf,
                f"estimates: the walltimes ({several(missing, 'job has', 'jobs have')} none)",
            )
        exact = self._exact(workload)
        if kind == "exact":
            return exact, "estimates: exact" + ("" if only_delays(workload) else " (time alone)")
        name, _, number = kind.partition(":")
        try:
            factor = float(number)
        except ValueError:
            factor = 0.0
        if name != "factor" or not 0 < factor < float("inf"):
            raise SimulationError(f"estimates '{kind}'; use exact, walltime or factor:NUMBER")
        estimate = Scaled(factor, exact, self.limited)
        note = f"estimates: {factor:g} times the duration, at most the walltime"
        if self.options.estimates is None:
            note = (
                f"estimates: {factor:g} times the time alone, as not all jobs have walltimes and "
                "contention makes jobs outlive exact estimates (--estimates exact)"
            )
        return estimate, note

    def _exact(self, workload: Workload) -> Estimate:
        if only_delays(workload):
            return actual_duration_s if self.limited else delay_of
        check_sizes(workload, self.machine.num_hosts)
        alone = self._alone_times()
        return lambda job: min(alone.on_first_hosts(job), self._limit_s(job))

    def _limit_s(self, job: Job) -> float:
        """The time after which a job is killed, s; inf if it is not."""
        return walltime_or_inf(job) if self.limited else inf
