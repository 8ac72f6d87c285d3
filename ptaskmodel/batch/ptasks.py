"""Jobs as parallel tasks: how long they run depends on who runs beside them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from math import inf

from ptaskmodel.batch.execution import DelayExecution, Ended
from ptaskmodel.batch.hostset import HostSet, first_hosts, members
from ptaskmodel.batch.machine import Machine
from ptaskmodel.batch.state import FAILED, SUCCESS, WALLTIME, Run
from ptaskmodel.errors import SimulationError
from ptaskmodel.simulation.refs import TaskRef
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.jobs import Job
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import Bound, Work


class _Live:
    """A run in progress: the steps still to come and the tasks of this one not yet ended."""

    __slots__ = ("refs", "run", "steps", "tasks")

    def __init__(self, run: Run, steps: list[list[Bound]]) -> None:
        self.run = run
        self.steps = steps
        self.refs: dict[int, TaskRef] = {}
        self.tasks = 0


class PtaskExecution:
    """Runs jobs in a `Simulation`, which shares the platform among them.

    A job that needs its whole walltime or more is killed at its walltime. A job of which a task
    fails (a host or link goes down) fails as a whole. Jobs of delays, which share nothing, are kept
    out of the simulation. ``run_of_task``: the run to which each task of the simulation belongs.
    """

    def __init__(self, machine: Machine, simulation: Simulation) -> None:
        self.machine = machine
        self.simulation = simulation
        self._delays = DelayExecution()
        self._live: dict[int, _Live] = {}
        self._by_task: dict[int, _Live] = {}
        self.run_of_task: dict[int, int] = {}
        self._deadlines: list[tuple[float, int]] = []

    def start(self, run: Run, now: float) -> None:
        if run.job.work.duration_s is not None:
            self._delays.start(run, now)
            return
        if self.simulation.now < now:
            self.simulation.advance_to(now)
        names = self.machine.names
        hosts = tuple(names[k] for k in members(run.hosts))
        live = _Live(run, run.job.work.bound(hosts, self.machine.facts))
        self._live[run.number] = live
        if run.job.walltime_s is not None:
            heapq.heappush(self._deadlines, (now + run.job.walltime_s, run.number))
        self._next_step(live)

    def kill(self, run: Run) -> None:
        live = self._live.pop(run.number, None)
        if live is None:
            self._delays.kill(run)
            return
        for index, ref in live.refs.items():
            del self._by_task[index]
            self.simulation.cancel(ref)

    def advance(self, until: float) -> tuple[float, Ended]:
        until = min(until, self._delays.next_end())
        ended: Ended = []
        now = until
        while self._live and not ended:
            now, ended = self._advance_tasks(until)
            if now >= until:
                break
        _, delays_ended = self._delays.advance(now)
        if ended and delays_ended:
            return now, sorted(ended + delays_ended, key=lambda entry: entry[0].number)
        return now, ended or delays_ended

    def _advance_tasks(self, until: float) -> tuple[float, Ended]:
        """Go to the next end of a task or walltime, or to ``until``; what ended there."""
        deadlines, live = self._deadlines, self._live
        while deadlines and deadlines[0][1] not in live:
            heapq.heappop(deadlines)
        limit = min(until, deadlines[0][0] if deadlines else inf)
        refs = self.simulation.run_until_change(None if limit == inf else limit)
        now = self.simulation.now
        if not refs and now < limit:
            self._give_up()
        ended = self._ended(refs, now)
        while deadlines and deadlines[0][0] <= now:
            _, number = heapq.heappop(deadlines)
            if number in live:
                run = live[number].run
                self.kill(run)
                ended.append((run, WALLTIME))
        ended.sort(key=lambda entry: entry[0].number)
        return now, ended

    def _next_step(self, live: _Live) -> None:
        """Add the tasks of the next step of a job."""
        run = live.run
        name = run.job.id if not run.attempt else f"{run.job.id}#{run.attempt}"
        step = live.steps.pop(0)
        for hosts, work in step:
            single = live.tasks == 0 and len(step) == 1
            task_id = name if single else f"{name}:{live.tasks}"
            live.tasks += 1
            ref = self.simulation.add(Task(hosts, work, id=task_id, profile=run.job.profile))
            live.refs[ref.index] = ref
            self._by_task[ref.index] = live
            self.run_of_task[ref.index] = run.number

    def _ended(self, refs: Sequence[TaskRef], now: float) -> Ended:
        """The runs that end with these tasks; steps that follow are started."""
        ended: Ended = []
        for ref in refs:
            live = self._by_task.pop(ref.index, None)
            if live is None:
                continue
            del live.refs[ref.index]
            run = live.run
            if ref.state != "completed":
                self.kill(run)
                ended.append((run, FAILED))
            elif not live.refs and live.steps:
                self._next_step(live)
            elif not live.refs:
                del self._live[run.number]
                ended.append((run, _final_state(run, now)))
        return ended

    def _give_up(self) -> None:
        job = next(iter(self._live.values())).run.job
        raise SimulationError(
            f"job '{job.id}' can never end at {self.simulation.now:g} s: something that it uses "
            "has no capacity left for ever"
        )


def _final_state(run: Run, now: float) -> str:
    walltime, start = run.job.walltime_s, run.start_time_s
    assert start is not None
    if walltime is not None and now >= start + walltime:
        return WALLTIME
    return FAILED if run.job.return_code else SUCCESS


class AloneTimes:
    """How long a job takes with the whole platform to itself, on given hosts; remembered."""

    def __init__(self, machine: Machine, make_simulation: Callable[[], Simulation]) -> None:
        self._machine = machine
        self._make = make_simulation
        self._execution = PtaskExecution(machine, make_simulation())
        self._known: dict[tuple[Work, HostSet], float] = {}
        self._runs = 0

    def on(self, job: Job, hosts: HostSet) -> float:
        """Seconds that the job takes alone on ``hosts``, its walltime not counted."""
        delay = job.work.duration_s
        if delay is not None:
            return delay
        key = (job.work, hosts)
        if key not in self._known:
            self._known[key] = self._measure(job, hosts)
        return self._known[key]

    def on_first_hosts(self, job: Job) -> float:
        """Seconds that the job takes alone on the first hosts of the machine."""
        return self.on(job, first_hosts(job.num_hosts))

    def _measure(self, job: Job, hosts: HostSet) -> float:
        began = self._execution.simulation.now
        self._runs += 1
        same = Job(f"alone{self._runs}", began, job.num_hosts, job.profile, job.work)
        run = Run(same, hosts, began, inf, self._runs)
        self._execution.start(run, began)
        ended, _ = self._execution.advance(inf)
        return ended - began
