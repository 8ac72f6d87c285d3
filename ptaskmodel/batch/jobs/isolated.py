"""Isolated run times: how long jobs, and activities, take without contention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf, nan

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.jobs.execution import FAILED, Attempt, Progress, run_s
from ptaskmodel.batch.jobs.parallel_tasks import NeverEnds, PtaskExecution
from ptaskmodel.batch.machine.host_sets import Placement, first_hosts, flat_runs, members
from ptaskmodel.batch.machine.machine import Machine
from ptaskmodel.engine.driver import Core
from ptaskmodel.engine.usage.placement import Shape
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.jobs import Job
from ptaskmodel.workload.works import TraceWork, Work

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Key = tuple[Work, Placement, tuple[int, ...] | None, float | None]
Placed = tuple[Job, Work, Placement, tuple[int, ...] | None]
# So many works are routed together.
TOGETHER = 256


def times_alone(core: Core, patterns: IntArray) -> FloatArray:
    """Seconds that the amount of each pattern, routed and of parallel tasks, takes alone from now.

    Its latency, then its amount at the largest rate that one core of each host, the TCP window and
    every resource allow: to the bit what a simulation of it alone finds from date 0 on, if no
    availability trace steps in. nan where the formula does not say: nothing is asked, something is
    off or has no capacity, or a host has several entries.
    """
    counts, resource, usage = core.uses(patterns)
    resources = core.state.resources
    records = core.state.patterns[patterns]
    row = np.repeat(np.arange(len(counts)), counts)
    rate = np.full(len(counts), np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        np.fmin.at(rate, row, core.state.graph.constraints["capacity"][resource] / usage)
        np.fmin.at(rate, row, resources["one_core"][resource] / usage)
        asks_nothing = np.isinf(rate)
        if core.options.gamma > 0.0:
            rate = np.minimum(rate, core.options.gamma / (2.0 * records["latency_bytes"]))
        times = records["latency"] + records["amount"] / rate
    unclear = asks_nothing | ~np.isfinite(times)
    unclear[row[resources["on"][resource] == 0]] = True
    unclear[_repeating(row, resource)] = True
    return np.where(unclear, np.nan, times)


def _repeating(row: IntArray, resource: IntArray) -> IntArray:
    """The rows that have a resource twice."""
    order = np.lexsort((resource, row))
    row, resource = row[order], resource[order]
    return row[1:][(np.diff(row) == 0) & (np.diff(resource) == 0)]


class AloneTimes:
    """How long a job takes alone on a given placement, its walltime not counted; remembered.

    machine: has the hosts. make_simulation: returns an empty simulation of the platform. Works of
    one stage on hosts of their own take what `times_alone` says; others are simulated. Where the
    platform has availability traces, a time belongs to a start date too: then each is measured from
    its own. nan: alone the job would not end (a trace turns a host off before).
    """

    def __init__(self, machine: Machine, make_simulation: Callable[[], Simulation]) -> None:
        self._machine = machine
        self._make = make_simulation
        self._changes = machine.has_traces
        self._indices = machine.platform.facts.host_index
        self._core = make_simulation().core
        self._execution = PtaskExecution(machine, make_simulation(), limited=False)
        self._known: dict[Key, float] = {}
        self._runs = 0

    def of_attempts(self, attempts: Sequence[Attempt]) -> list[float]:
        """Return the isolated run time of each of the `attempts`, s, on its placement.

        It counts from the start of the attempt. An attempt that lasts until it is ended, and uses
        nothing, would have lasted as long as it did.
        """
        if not self._changes:
            for first in range(0, len(attempts), TOGETHER):
                some = attempts[first : first + TOGETHER]
                self._look_up([_placed(attempt) for attempt in some])
            return [_lasted(each, self._on(*_placed(each))) for each in attempts]
        times: dict[int, float] = {}
        empty = self._make()
        for attempt in sorted(attempts, key=lambda a: (a.start_s or 0.0, a.number)):
            delay = attempt.work.duration_s
            if delay is None:
                empty.advance_to(attempt.start_s or 0.0)
                delay = self._measured_in(empty.fork(), *_placed(attempt))
            times[attempt.number] = _lasted(attempt, delay)
        return [times[attempt.number] for attempt in attempts]

    def on_first_hosts(self, job: Job) -> float:
        """Seconds that the job takes alone on the first hosts of the machine, from date 0 on.

        inf where it would not end.
        """
        time_s = self._on(job, job.work, flat_runs(first_hosts(job.num_hosts)), _cores_of(job))
        return inf if time_s != time_s else time_s

    def of_first_hosts(self, jobs: Sequence[Job]) -> list[float]:
        """Return `on_first_hosts` of `jobs`, s, where a formula gives it, else nan.

        Simulate nothing.
        """
        placed = [
            (job, job.work, flat_runs(first_hosts(job.num_hosts)), _cores_of(job)) for job in jobs
        ]
        if not self._changes:
            for first in range(0, len(placed), TOGETHER):
                self._look_up(placed[first : first + TOGETHER])
        found = []
        for job, work, hosts, cores in placed:
            delay = work.duration_s
            key = (work, hosts, cores, job.competitors)
            found.append(self._known.get(key, nan) if delay is None else delay)
        return found

    def note_parts_done(self, attempts: Iterable[Attempt], execution: PtaskExecution) -> None:
        """Record which part of their work ended `attempts` did, where `execution` knows it."""
        for attempt in attempts:
            duration_s, number = attempt.work.duration_s, attempt.number
            begun = execution.begun.get(number, 0.0)
            if duration_s is not None and (attempt.was_cut or attempt.overhead_s > 0):
                ran_s = run_s(attempt, attempt.end_s or 0.0) - attempt.overhead_s
                attempt.done = ran_s / duration_s if 0 < duration_s < inf else 1.0
            elif number in execution.how_far:
                attempt.done = (1 - begun) * self._part_of(attempt, execution.how_far[number])
            elif begun:
                attempt.done = 1 - begun

    def _part_of(self, attempt: Attempt, how_far: Progress) -> float:
        """The part of its work that an attempt did, by the time that each stage takes alone.

        nan where that is not known: of traces, and within a delay.
        """
        work = attempt.work
        stages = work.one_round()
        if work.splits or any(isinstance(stage, TraceWork) for stage in stages):
            return nan
        rounds, current = divmod(how_far.behind, len(stages))
        if rounds >= work.rounds:
            return 1.0
        if len(stages) == 1:
            return (rounds + how_far.part) / work.rounds
        if stages[current].duration_s is not None:
            return nan
        job, _, placement, cores = _placed(attempt)
        known = {id(stage): self._on(job, stage, placement, cores) for stage in stages}
        times = [known[id(stage)] for stage in stages]
        whole_s = sum(times)
        done_s = rounds * whole_s + sum(times[:current]) + how_far.part * times[current]
        return done_s / (work.rounds * whole_s)

    def _on(self, job: Job, work: Work, hosts: Placement, cores: tuple[int, ...] | None) -> float:
        delay = work.duration_s
        if delay is not None:
            return delay
        key = (work, hosts, cores, job.competitors)
        if key not in self._known and not self._changes:
            self._look_up([(job, work, hosts, cores)])
        if key not in self._known:
            if self._changes:
                self._known[key] = self._measured_in(self._make(), job, work, hosts, cores)
            else:
                self._known[key] = self._measured(self._execution, job, work, hosts, cores)
        return self._known[key]

    def _look_up(self, wanted: Sequence[Placed]) -> None:
        """Remember the times of those for which the formula is enough."""
        shapes: dict[Key, Shape] = {}
        for job, work, placement, cores in wanted:
            key = (work, placement, cores, job.competitors)
            if cores is None and work.duration_s is None and key not in self._known:
                shape = self._shape(job, work, placement)
                if shape is not None:
                    shapes[key] = shape
        if not shapes:
            return
        core = self._core
        numbers = core.find(list(shapes.values()))
        core.route(numbers)
        times = times_alone(core, np.array(numbers, dtype=np.int64))
        for key, time_s in zip(shapes, times.tolist(), strict=True):
            if time_s == time_s:
                self._known[key] = time_s
        core.reclaim()

    def _shape(self, job: Job, given: Work, placement: Placement) -> Shape | None:
        """The work of a job on its hosts as a pattern; None if it is more than one stage."""
        machine = self._machine
        if not self._core.model.parallel:
            return None
        names = tuple(machine.names[k] for k in members(placement)[: job.num_hosts])
        steps = given.bound(names, machine.facts)
        if len(steps) != 1 or len(steps[0]) != 1:
            return None
        where, work = steps[0][0]
        if work.rounds != 1 or len(work.one_round()) != 1 or work.duration_s is not None:
            return None
        (work,) = work.one_round()  # that of a sequence of one stage
        if isinstance(work, TraceWork):
            return None
        indices = tuple(map(self._indices.__getitem__, where))
        return self._core.router.shape(work, indices, job.competitors)[0]

    def _measured_in(
        self,
        simulation: Simulation,
        job: Job,
        work: Work,
        hosts: Placement,
        cores: tuple[int, ...] | None,
    ) -> float:
        execution = PtaskExecution(self._machine, simulation, limited=False)
        try:
            return self._measured(execution, job, work, hosts, cores)
        except NeverEnds:
            return nan

    def _measured(
        self,
        execution: PtaskExecution,
        job: Job,
        work: Work,
        hosts: Placement,
        cores: tuple[int, ...] | None,
    ) -> float:
        began = execution.simulation.now
        self._runs += 1
        name, number = f"alone{self._runs}", job.competitors
        same = Job(name, began, job.num_hosts, job.profile, work, competitors=number)
        attempt = Attempt(same, hosts, began, inf, self._runs)
        attempt.cores = cores
        execution.start(attempt, began)
        date, ended = execution.advance(inf)
        return nan if ended[0][1] == FAILED else date - began


def _lasted(attempt: Attempt, time_s: float) -> float:
    """A time alone; of an attempt that was ended by somebody, how long it ran."""
    return time_s if time_s != inf or attempt.end_s is None else run_s(attempt, attempt.end_s)


def _cores_of(job: Job) -> tuple[int, ...] | None:
    return None if job.cores is None else (job.cores,) * job.num_hosts


def _placed(attempt: Attempt) -> Placed:
    return attempt.job, attempt.work, flat_runs(attempt.placement), attempt.cores
