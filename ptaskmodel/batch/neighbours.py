"""Who slowed whom: the seconds that each job lost, divided among its neighbours.

A job lost its execution time minus its time alone on the same hosts. While a resource limits the
job, the others that use that resource are charged by their use of it, second by second; the charges
of a job are then scaled so that their sum is what it lost. (If the same resource limits the job
alone too, no scaling is needed: its rate is the part of the capacity that the others leave.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ptaskmodel.batch.attempt import KILLED, WALLTIME
from ptaskmodel.batch.schedule import Schedule
from ptaskmodel.core.state import RATE
from ptaskmodel.platform.model import FATPIPE

if TYPE_CHECKING:
    from ptaskmodel.simulation.simulation import Simulation


class _Phase:
    """A task in progress at a constant rate, since a date."""

    __slots__ = ("limit", "rate", "row", "since")

    def __init__(self, row: Mapping[int, float], rate: float, limit: int, since: float) -> None:
        self.row = row
        self.rate = rate
        self.limit = limit
        self.since = since


class Neighbours:
    """Watches a simulation: charges[i, k] are seconds during which task k stood in the way of i.

    A second counts by the part of the limiting resource's use that is k's. Links of policy FATPIPE
    limit nobody but the task itself.
    """

    def __init__(self, simulation: Simulation) -> None:
        self.charges: dict[tuple[int, int], float] = {}
        self._simulation = simulation
        self._rows: dict[int, dict[int, float]] = {}
        self._running: dict[int, _Phase] = {}
        hosts = len(simulation.platform.hosts)
        links = simulation.platform.links
        self._private = {hosts + link.index for link in links if link.policy == FATPIPE}
        simulation.listen(self)

    def take(self, events: np.ndarray) -> None:
        """Changes of rates in order of date; those of one date happen together."""
        rates = events[events["kind"] == RATE]
        if not len(rates):
            return
        cuts = np.flatnonzero(np.diff(rates["date"])) + 1
        for group in np.split(rates, cuts):
            fields = (group[name].tolist() for name in ("subject", "pattern", "value", "limit"))
            self._change(float(group["date"][0]), list(zip(*fields, strict=True)))

    def forget(self, patterns: list[int]) -> None:
        """These numbers will be given to other patterns."""
        for pattern in patterns:
            self._rows.pop(pattern, None)

    def _change(self, date: float, records: Sequence[tuple]) -> None:
        rows = [self._row(pattern, rate) for _, pattern, rate, _ in records]
        changed = {record[0] for record in records}
        touched = [self._running[task].row for task in changed if task in self._running] + rows
        limits = {phase.limit for phase in self._running.values()}
        affected = {limit for limit in limits if any(limit in row for row in touched)}
        for task, phase in self._running.items():
            if task in changed or phase.limit in affected:
                self._charge(task, phase, date)
        for (task, _, rate, limit), row in zip(records, rows, strict=True):
            if rate > 0:
                self._running[task] = _Phase(row, rate, limit, date)
            else:
                self._running.pop(task, None)

    def _charge(self, task: int, phase: _Phase, date: float) -> None:
        """Charge the time since the last change to those who use what limits the task."""
        passed, limit = date - phase.since, phase.limit
        phase.since = date
        if passed <= 0 or limit < 0 or limit in self._private:
            return
        uses = {
            other: neighbour.rate * neighbour.row[limit]
            for other, neighbour in self._running.items()
            if limit in neighbour.row
        }
        total = sum(uses.values())
        for other, use in uses.items():
            if other != task:
                key = task, other
                self.charges[key] = self.charges.get(key, 0.0) + passed * use / total

    def _row(self, pattern: int, rate: float) -> dict[int, float]:
        """What a pattern asks of each resource."""
        if rate <= 0:
            return {}
        if pattern not in self._rows:
            _, resources, usages = self._simulation.core.uses(np.array([pattern]))
            merged: dict[int, float] = {}
            for resource, usage in zip(resources.tolist(), usages.tolist(), strict=True):
                if usage > 0:
                    merged[resource] = merged.get(resource, 0.0) + usage
            self._rows[pattern] = merged
        return self._rows[pattern]


def lost_seconds(
    schedule: Schedule,
    alone_s: Sequence[float],
    charges: Mapping[tuple[int, int], float],
    attempt_of_task: Mapping[int, int],
) -> list[tuple[str, str, float]]:
    """(job, neighbour, seconds that the neighbour cost the job), by job, the worst first.

    attempt_of_task: number of the attempt that each task of the simulation belongs to. Jobs killed
    at their walltime are left out: what they lost is unknown.
    """
    by_attempt: dict[int, dict[int, float]] = {}
    for (task, other), charge in charges.items():
        victim, culprit = attempt_of_task[task], attempt_of_task[other]
        if victim != culprit:
            part = by_attempt.setdefault(victim, {})
            part[culprit] = part.get(culprit, 0.0) + charge
    ids = {attempt.number: attempt.job.id for attempt in schedule.attempts}
    found = []
    for attempt, alone in zip(schedule.ended(), alone_s, strict=True):
        assert attempt.end_s is not None
        assert attempt.start_s is not None
        lost = attempt.end_s - attempt.start_s - attempt.suspended_s(attempt.end_s) - alone
        part = by_attempt.get(attempt.number, {})
        total = sum(part.values())
        if total <= 0 or not lost > 0 or attempt.state in (WALLTIME, KILLED):
            continue
        seconds = [(ids[other], lost * charge / total) for other, charge in part.items()]
        seconds.sort(key=lambda entry: -entry[1])
        found += [(attempt.job.id, other, cost) for other, cost in seconds]
    return found
