"""Jobs as parallel tasks: an execution in which run times depend on contention.

With ``--profiles ptask``, a job that replays a trace becomes a parallel task too: one bundle on the
hosts of its ranks.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf, nan

from ptaskmodel.batch.jobs.checkpoints import Checkpointing
from ptaskmodel.batch.jobs.execution import (
    FAILED,
    INTERRUPTED,
    LEFT,
    SUCCESS,
    WALLTIME,
    Attempt,
    DelayExecution,
    Ended,
    Progress,
)
from ptaskmodel.batch.jobs.parallel_task_checkpoints import (
    READS,
    WORKS,
    Checkpoints,
    Done,
    Writer,
    left_of,
)
from ptaskmodel.batch.machine.machine import Machine
from ptaskmodel.errors import SimulationError
from ptaskmodel.mpi.collectives.names import algorithms_of
from ptaskmodel.mpi.traffic import bundle
from ptaskmodel.platform.facts import HostFacts
from ptaskmodel.simulation.records import TaskRef
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.jobs import Workload
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import Bound, Steps, TraceWork, Work

NEARLY_ALL = 1 - 1e-12
# States of tasks in which it is not known any more how far they were.
NO_PROGRESS = ("failed", "cancelled")


class NeverEnds(SimulationError):
    """Something that a job uses has no capacity left, for ever."""


class _Live:
    """An attempt in progress: the steps still to come and the tasks of this one not yet ended.

    left_s: of its walltime, while it is suspended; None: it runs, or has no walltime. done: how far
    it was when it began, until the first step is begun; behind: steps behind it; parts: which part
    of each task of this step was done when the step was begun, and place: which of them a task is.
    """

    __slots__ = (
        "attempt",
        "behind",
        "done",
        "left_s",
        "parts",
        "place",
        "refs",
        "steps",
        "suspended",
        "tasks",
    )

    def __init__(self, attempt: Attempt, steps: list[list[Bound]]) -> None:
        self.attempt = attempt
        self.steps = steps
        self.refs: dict[int, TaskRef] = {}
        self.tasks = 0
        self.suspended = False
        self.left_s: float | None = None
        self.done = Done()
        self.behind = -1
        self.parts: tuple[float, ...] = ()
        self.place: dict[int, int] = {}


def _how_far(live: _Live) -> Progress:
    tasks = [ref for ref in live.refs.values() if ref.state != "completed"]
    if not tasks:
        return Progress(max(live.behind, 0), 0.0)
    # Of works side by side, the one that is least far.
    return min(Progress(live.behind + ref.stages_done, ref.progress) for ref in tasks)


class PtaskExecution:
    """Runs jobs in a `Simulation`, which shares the platform among them.

    A job that needs its whole walltime or more is killed at its walltime, unless jobs are not
    ``limited``. A job of which a task fails (a host or link goes down) fails as a whole. Jobs of
    delays, which share nothing, are kept out of the simulation. ``attempt_of_task``: the number of
    the attempt to which each task of the simulation belongs; ``job_of``: the job of each of these
    attempts. ``how_far``: of attempts that were cut
    off, by number, how far they were (none of those that failed). ``begun``: which part of their
    work attempts had behind them when they began, by number; nan: unknown.
    """

    def __init__(
        self,
        machine: Machine,
        simulation: Simulation,
        limited: bool = True,
        checkpoints: Checkpointing | None = None,
    ) -> None:
        self.machine = machine
        self.simulation = simulation
        # The compiled loop of batches forms no groups, and is to be equal to the bit.
        simulation.core.let_gather(False)
        self.attempt_of_task: dict[int, int] = {}
        self.job_of: dict[int, str] = {}
        self.how_far: dict[int, Progress] = {}
        self.begun: dict[int, float] = {}
        self._limited = limited
        self._delays = DelayExecution(limited, checkpoints)
        self._checkpoints = Checkpoints(checkpoints)
        self._live: dict[int, _Live] = {}
        self._active = 0
        self._by_task: dict[int, _Live] = {}
        self._deadlines: list[tuple[float, int]] = []
        self._deadline: dict[int, float] = {}

    def start(self, attempt: Attempt, now: float) -> None:
        job = attempt.job
        if attempt.work.duration_s is not None:
            self._delays.start(attempt, now)
            return
        self._go_to(now)
        self.job_of[attempt.number] = job.id
        live = _Live(attempt, attempt.work.bound(self._names(attempt), self.machine.facts))
        self._live[attempt.number] = live
        self._active += 1
        if self._limited and job.walltime_s is not None:
            self._set_deadline(attempt.number, now + job.walltime_s)
        live.done, reads = self._checkpoints.start(attempt, live.steps, now)
        live.behind += live.done.steps
        if live.done.parts:
            single = not live.done.steps and len(live.done.parts) == 1
            self.begun[attempt.number] = live.done.parts[0] if single else nan
        del live.steps[: live.done.steps]
        if not reads:
            self._next_step(live)

    def _names(self, attempt: Attempt) -> tuple[str, ...]:
        """The hosts of the ranks of an attempt."""
        names, placement = self.machine.names, attempt.placement
        if attempt.cores is None and isinstance(placement, tuple):
            ends = iter(placement)
            pieces = (names[begin:end] for begin, end in zip(ends, ends, strict=True))
            return tuple(chain.from_iterable(pieces))
        return tuple(names[k] for k in attempt.ranks)

    def stop(self, attempt: Attempt, now: float) -> None:
        live = self._live.get(attempt.number)
        if live is None:
            self._delays.stop(attempt, now)
            return
        if all(ref.state not in NO_PROGRESS for ref in live.refs.values()):
            self.how_far[attempt.number] = _how_far(live)
        self._cancel(live, now)

    def _cancel(self, live: _Live, now: float) -> None:
        """The attempt goes, with its tasks."""
        for index, ref in live.refs.items():
            del self._by_task[index]
            if ref.end_s is None:
                self.simulation.cancel(ref)
        self._leave(live, now)

    def leave(self, attempt: Attempt, now: float) -> float | None:
        live = self._live.get(attempt.number)
        if live is None:
            return self._delays.leave(attempt, now)
        writer = self._checkpoints.writer(attempt)
        if writer is None:
            return None
        self._go_to(now)
        writer.leaves = True
        self._deadline.pop(attempt.number, None)
        if writer.doing == READS:
            self._checkpoints.leave_at_once(writer, now)
        elif writer.doing == WORKS:
            self._write(live, writer, now)
        return writer.due_s

    def suspend(self, attempt: Attempt, now: float) -> None:
        live = self._live.get(attempt.number)
        if live is None:
            self._delays.suspend(attempt, now)
            return
        self._go_to(now)
        live.suspended = True
        self._active -= 1
        for ref in live.refs.values():
            self._freeze(ref)
        deadline = self._deadline.pop(attempt.number, None)
        live.left_s = None if deadline is None else deadline - now
        self._checkpoints.pause(attempt, now)

    def resume(self, attempt: Attempt, now: float) -> None:
        live = self._live.get(attempt.number)
        if live is None:
            self._delays.resume(attempt, now)
            return
        self._go_to(now)
        live.suspended = False
        self._active += 1
        if self._checkpoints.resume(attempt, now):
            self._thaw(live)
        if live.left_s is not None:
            self._set_deadline(attempt.number, now + live.left_s)

    def fail_host(self, host: int, now: float) -> None:
        self._go_to(now)
        self.simulation.fail(self.machine.names[host])

    def restore_host(self, host: int, now: float) -> None:
        self._go_to(now)
        self.simulation.restore(self.machine.names[host])

    def fail_other(self, name: str, now: float) -> list[Attempt]:
        self._go_to(now)
        self.simulation.fail(name)
        return [attempt for attempt, _ in self._ended(self.simulation.run_until_change(now), now)]

    def restore_other(self, name: str, now: float) -> None:
        self._go_to(now)
        self.simulation.restore(name)

    def set_pstate(self, host: int, pstate: int, now: float) -> None:
        self._go_to(now)
        self.simulation.set_pstate(self.machine.names[host], pstate)

    def progress(self, attempt: Attempt, now: float) -> Progress:
        live = self._live.get(attempt.number)
        if live is None:
            return self._delays.progress(attempt, now)
        self._go_to(now)
        return _how_far(live)

    def next_date(self) -> float:
        date = self._delays.next_date()
        if self._active:
            soonest = self.simulation.next_event_s()
            date = min(
                date,
                self._next_deadline(),
                self._checkpoints.next_date(),
                inf if soonest is None else soonest,
            )
        return date

    def advance(self, until: float) -> tuple[float, Ended]:
        until = min(until, self._delays.next_date())
        ended: Ended = []
        now = until
        while self._active and not ended:
            now, ended = self._advance_tasks(until)
            if now >= until:
                break
        _, delays_ended = self._delays.advance(now)
        if ended and delays_ended:
            return now, sorted(ended + delays_ended, key=lambda entry: entry[0].number)
        return now, ended or delays_ended

    def _advance_tasks(self, until: float) -> tuple[float, Ended]:
        """Go to the next end of a task or walltime, or to ``until``; what ended there."""
        limit = min(until, self._next_deadline(), self._checkpoints.next_date())
        refs = self.simulation.run_until_change(None if limit == inf else limit)
        now = self.simulation.now
        if not refs and now < limit:
            self._give_up()
        ended = self._ended(refs, now)
        while self._checkpoints.next_date() <= now:
            ended += self._change_phase(self._checkpoints.take(), now)
        while self._next_deadline() <= now:
            _, number = heapq.heappop(self._deadlines)
            attempt = self._live[number].attempt
            self.stop(attempt, now)
            ended.append((attempt, WALLTIME))
        ended.sort(key=lambda entry: entry[0].number)
        return now, ended

    # --- checkpoints ------------------------------------------------------------------------

    def _change_phase(self, writer: Writer, now: float) -> Ended:
        """Somebody begins to write, or has read or written; whether this is its end."""
        live = self._live[writer.attempt.number]
        if writer.doing == WORKS:
            self._write(live, writer, now)
            return []
        self._checkpoints.end_phase(writer, now)
        if writer.leaves:
            self.stop(writer.attempt, now)
            return [(writer.attempt, LEFT)]
        if live.refs:
            self._thaw(live)
        else:
            self._next_step(live)
        return []

    def _write(self, live: _Live, writer: Writer, now: float) -> None:
        for ref in live.refs.values():
            self._freeze(ref)
        parts = [1.0] * len(live.parts)
        for index, ref in live.refs.items():
            k = live.place[index]
            # Something is always left, so that there is a task to end.
            part = live.parts[k] + (1 - live.parts[k]) * ref.progress
            parts[k] = min(part, NEARLY_ALL)
        self._checkpoints.write(writer, Done(live.behind, tuple(parts)), now)

    def _thaw(self, live: _Live) -> None:
        for ref in live.refs.values():
            if ref.state == "suspended":
                self.simulation.resume(ref)

    def _go_to(self, now: float) -> None:
        """Let the simulation, which rests while it has no task, catch up."""
        if self.simulation.now < now:
            self.simulation.advance_to(now)

    def _freeze(self, ref: TaskRef) -> None:
        """Suspend a task, unless it ends at this very date."""
        if ref.state == "waiting":
            self.simulation.advance_to(self.simulation.now)
        if ref.state == "running":
            self.simulation.suspend(ref)

    def _set_deadline(self, number: int, date: float) -> None:
        self._deadline[number] = date
        heapq.heappush(self._deadlines, (date, number))

    def _next_deadline(self) -> float:
        deadlines, valid = self._deadlines, self._deadline
        while deadlines and valid.get(deadlines[0][1]) != deadlines[0][0]:
            heapq.heappop(deadlines)
        return deadlines[0][0] if deadlines else inf

    def _leave(self, live: _Live, now: float) -> None:
        """The attempt is over."""
        number = live.attempt.number
        del self._live[number]
        self._deadline.pop(number, None)
        self._checkpoints.forget(live.attempt, now)
        self._active -= not live.suspended

    def _next_step(self, live: _Live) -> None:
        """Add the tasks of the next step of a job."""
        job = live.attempt.job
        name = job.id if not live.attempt.ordinal else f"{job.id}#{live.attempt.ordinal}"
        step, done = live.steps.pop(0), live.done
        live.done = Done()
        live.behind += 1
        live.parts = done.parts or (0.0,) * len(step)
        places = [k for k, part in enumerate(live.parts) if part < 1]
        for k, (hosts, work) in zip(places, left_of(step, done), strict=True):
            single = live.tasks == 0 and len(step) == 1
            task_id = name if single else f"{name}:{live.tasks}"
            live.tasks += 1
            task = Task(hosts, work, id=task_id, profile=job.profile, competitors=job.competitors)
            ref = self.simulation.add(task)
            live.refs[ref.index] = ref
            live.place[ref.index] = k
            self._by_task[ref.index] = live
            self.attempt_of_task[ref.index] = live.attempt.number
            if live.suspended:
                self._freeze(ref)

    def _ended(self, refs: Sequence[TaskRef], now: float) -> Ended:
        """The attempts that end with these tasks; steps that follow are started."""
        ended: Ended = []
        for ref in refs:
            live = self._by_task.pop(ref.index, None)
            if live is None:
                continue
            del live.refs[ref.index]
            attempt = live.attempt
            if ref.state != "completed":
                self._cancel(live, now)
                ended.append((attempt, INTERRUPTED))
            elif not live.refs and live.steps:
                self._next_step(live)
            elif not live.refs:
                self._leave(live, now)
                ended.append((attempt, self._final_state(attempt, now)))
        return ended

    def _final_state(self, attempt: Attempt, now: float) -> str:
        walltime, start = attempt.job.walltime_s, attempt.start_s
        assert start is not None
        if self._limited and walltime is not None:
            start += attempt.suspended_s(now)
            if now >= start + walltime:
                attempt.done = 1.0
                return WALLTIME
        return FAILED if attempt.job.return_code else SUCCESS

    def _give_up(self) -> None:
        job = next(live for live in self._live.values() if not live.suspended).attempt.job
        why = self.simulation.deadlock() or "something that it uses has no capacity left for ever"
        raise NeverEnds(f"job '{job.id}' can never end at {self.simulation.now:g} s: {why}")


@dataclass(frozen=True, slots=True)
class OverAgainWork(Work):
    """A work of ``count`` ranks on any number of hosts: rank k on host k, over again beyond them.

    In a sequence it is a step of its own.
    """

    is_plain = False
    splits = True

    work: Work
    count: int

    def divided(self, flops: float, bytes: float) -> OverAgainWork:
        return OverAgainWork(self.work.divided(flops, bytes), self.count)

    def bound(self, hosts: tuple[str, ...], facts: HostFacts) -> Steps:
        return [[(tuple(hosts[k % len(hosts)] for k in range(self.count)), self.work)]]


def bundled_profiles(workload: Workload, config: Mapping[str, str]) -> Workload:
    """The workload with all traces, stages of sequences too, as bundles (see `mpi.traffic`).

    config: of the platform, which may name algorithms of collectives. Raises SimulationError if
    these are not simulated.
    """
    made: dict[Work, Work] = {}
    jobs = []
    for job in workload.jobs:
        work = job.work
        if any(isinstance(part, TraceWork) for part in work.parts()):
            if work not in made:
                made[work] = work.mapped(lambda part: _bundled(part, config))
            job = replace(job, profile=f"{job.profile}@bundle", work=made[work])
        jobs.append(job)
    if not made:
        return workload
    return workload.with_jobs(tuple(jobs), "traces became parallel tasks: the bundle of each")


def _bundled(work: Work, config: Mapping[str, str]) -> Work:
    if not isinstance(work, TraceWork):
        return work
    trace = work.trace
    return OverAgainWork(bundle(trace, algorithms_of({}, config, trace)), trace.ranks)
