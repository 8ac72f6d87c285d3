"""Energy of a batch: an execution that also reports to a meter which job runs on which hosts.

Jobs are charged as in Batsim: with the whole energy of their hosts from start to end, idle power
included. Each job also has a share (see `TaskEnergy.tasks_J`), in which the idle power of a host is
divided by cores held.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.jobs.execution import Attempt, Ended, Execution, Progress
from ptaskmodel.batch.machine.host_sets import members
from ptaskmodel.batch.machine.machine import Machine
from ptaskmodel.energy.meter import Curve, Meter, Place

if TYPE_CHECKING:
    from ptaskmodel.batch.jobs.parallel_tasks import PtaskExecution

FloatArray = NDArray[np.float64]
START, END, POWER = "s", "e", "p"


@dataclass(frozen=True, slots=True, eq=False)
class BatchEnergy:
    """The energy of a batch.

    meter: of the whole platform, without masters. job_J, share_J: of each attempt, by its number,
    J. rows: (date s, joules of the hosts up to then, event, their power at the least load W) at
    each start ("s") and end ("e") of a job, and where a change of pstates is asked for and done
    ("p"). consumed_J: of the hosts, from the first submission to the last end of a job.
    """

    meter: Meter
    job_J: FloatArray
    share_J: FloatArray
    rows: tuple[tuple[float, float, str, float], ...]
    consumed_J: float


class MeteredExecution:
    """An execution whose jobs, and the switches of its hosts, are told to a meter.

    ptasks: the execution itself if it is of parallel tasks; their use of hosts and links counts.
    busy_delays: whether a delay keeps the cores that it holds busy (in Batsim it does not).
    first_submit_s: from when on the consumed energy counts.
    """

    def __init__(
        self,
        execution: Execution,
        machine: Machine,
        ptasks: PtaskExecution | None,
        *,
        busy_delays: bool = False,
        first_submit_s: float = 0.0,
        curve: Curve | None = None,
    ) -> None:
        platform = machine.platform
        self._execution = execution
        self._ptasks = ptasks
        self._busy_delays = busy_delays
        self._index = [platform.host(name).index for name in machine.names]
        self._cores = [platform.hosts[k].cores for k in self._index]
        self._first_submit_s = first_submit_s
        self._first_sample = -1
        self._attempts = 0
        self._rows: list[tuple[str, int]] = []
        self.meter = Meter(platform, leave_out=machine.uncounted(), switching=True, curve=curve)
        if ptasks is not None:
            self.meter.follow(ptasks.simulation)

    # --- jobs -------------------------------------------------------------------------------

    def start(self, attempt: Attempt, now: float) -> None:
        self._execution.start(attempt, now)
        self._attempts = max(self._attempts, attempt.number + 1)
        self._hold(attempt, now)
        self._note(START, now)

    def stop(self, attempt: Attempt, now: float) -> None:
        self._execution.stop(attempt, now)
        self._end(attempt, now)

    def suspend(self, attempt: Attempt, now: float) -> None:
        self._execution.suspend(attempt, now)
        self.meter.release(now, attempt.number)

    def resume(self, attempt: Attempt, now: float) -> None:
        self._execution.resume(attempt, now)
        self._hold(attempt, now)

    def leave(self, attempt: Attempt, now: float) -> float | None:
        return self._execution.leave(attempt, now)

    def _hold(self, attempt: Attempt, now: float) -> None:
        hosts = members(attempt.placement)
        busy = self._busy_delays and attempt.work.duration_s is not None
        places: list[Place] = []
        held = attempt.cores or [self._cores[host] for host in hosts]
        for host, cores in zip(hosts, held, strict=True):
            load = cores / self._cores[host] if busy else 0.0
            places.append((self._index[host], cores, load))
        self.meter.hold(now, attempt.number, places)

    # --- hosts ------------------------------------------------------------------------------

    def fail_host(self, host: int, now: float) -> None:
        self._execution.fail_host(host, now)
        if self._ptasks is None:
            self.meter.turn(now, self._index[host], False)

    def restore_host(self, host: int, now: float) -> None:
        self._execution.restore_host(host, now)
        if self._ptasks is None:
            self.meter.turn(now, self._index[host], True)

    def fail_other(self, name: str, now: float) -> list[Attempt]:
        stopped = self._execution.fail_other(name, now)
        for attempt in stopped:
            self._end(attempt, now)
        return stopped

    def restore_other(self, name: str, now: float) -> None:
        self._execution.restore_other(name, now)

    def progress(self, attempt: Attempt, now: float) -> Progress:
        return self._execution.progress(attempt, now)

    def hosts_J(self, now: float) -> float:
        """The energy of the hosts up to a date, which is now, J."""
        self.meter.count(now)
        return float(self.meter.hosts_J.sum())

    def set_pstate(self, host: int, pstate: int, now: float) -> None:
        self._execution.set_pstate(host, pstate, now)
        if self._ptasks is None:
            self.meter.set_pstate(now, self._index[host], pstate)

    def told_of_switches(self, now: float) -> None:
        """Count energy up to time `now` (s), when a change of pstates begins or ends."""
        if self._ptasks is not None:
            self._ptasks.simulation.tell()
        self._note(POWER, now)

    # --- time -------------------------------------------------------------------------------

    def next_date(self) -> float:
        return self._execution.next_date()

    def advance(self, until: float) -> tuple[float, Ended]:
        now, ended = self._execution.advance(until)
        if now < inf:
            if self._first_sample < 0 and now >= self._first_submit_s:
                self._first_sample = self.meter.sample(now)
            for attempt, _ in ended:
                self._end(attempt, now)
        return now, ended

    def _end(self, attempt: Attempt, now: float) -> None:
        """The attempt is over; if it was suspended, it held no hosts any more."""
        self.meter.release(now, attempt.number)
        self._note(END, now)

    def _note(self, event: str, now: float) -> None:
        self._rows.append((event, self.meter.sample(now)))

    # --- the result -------------------------------------------------------------------------

    def energy(self, now: float) -> BatchEnergy:
        """Return the energy of the batch up to time `now` (s)."""
        self.meter.count(now)
        whole, share = self.meter.held_J(self._attempts)
        if self._ptasks is not None:
            of_task = self._ptasks.attempt_of_task
            used = self.meter.used_J(max(of_task, default=-1) + 1)
            np.add.at(share, list(of_task.values()), used[list(of_task)])
        samples = self.meter.samples
        rows = tuple(
            (float(sample["date"]), float(sample["hosts_J"]), event, float(sample["epsilon_W"]))
            for event, sample in ((event, samples[k]) for event, k in self._rows)
        )
        ends = [joules for _, joules, event, _ in rows if event == END]
        first = samples[self._first_sample]["hosts_J"] if self._first_sample >= 0 else 0.0
        consumed = float(ends[-1] - first) if ends else 0.0
        return BatchEnergy(self.meter, whole, share, rows, consumed)
