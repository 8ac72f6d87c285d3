"""Who stands in whose way: seconds that tasks are held back, charged to those who share the limit.

While a resource limits a task, the others that use that resource are charged by their use of it,
second by second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ptaskmodel.core.state import RATE
from ptaskmodel.platform.model import FATPIPE
from ptaskmodel.recording.intervals import Rows

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
        self._found = Rows(simulation)
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
        self._found.forget(patterns)

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
            self._found.find(np.array([pattern]))
            resources, usages = self._found.of(pattern)
            self._rows[pattern] = dict(zip(resources.tolist(), usages.tolist(), strict=True))
        return self._rows[pattern]
