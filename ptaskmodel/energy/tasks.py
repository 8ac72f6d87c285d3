"""The energy of the tasks of a simulation: each holds its hosts from its start to its end.

`TaskEnergy` is the public class. It gives the starts and ends of tasks to a `meter.Meter`, which
integrates the power of hosts and links with the kernels of `integral`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.energy.meter import Curve, Meter
from ptaskmodel.engine.state import ENDED, STARTED
from ptaskmodel.simulation.records import TaskRef

if TYPE_CHECKING:
    from ptaskmodel.simulation.simulation import Simulation

FloatArray = NDArray[np.float64]


class TaskEnergy:
    """Energy of hosts, links and tasks of a simulation, from now on, J.

    curve: receives the power curve, in parts (see `meter.Curve`). Reading counts up to the current
    date, and changes nothing.

    Raises PlatformError for wrong power properties, or if there are none.
    """

    def __init__(self, simulation: Simulation, curve: Curve | None = None) -> None:
        self.simulation = simulation
        self.meter = Meter(simulation.platform, curve=curve)
        self._host_index = simulation.platform.facts.host_index
        self.meter.follow(simulation)
        for ref in simulation.tasks():
            if ref.start_s is not None and ref.end_s is None:
                self._hold(simulation.now, ref)
        simulation.listen(self)

    def take(self, events: np.ndarray) -> None:
        """Follow the starts and ends of tasks in `events`, one chunk of the event stream."""
        lives = events[np.isin(events["kind"], (STARTED, ENDED))]
        for event in lives:
            date, task = float(event["date"]), int(event["subject"])
            if event["kind"] == STARTED:
                self._hold(date, TaskRef(self.simulation, task))
            elif TaskRef(self.simulation, task).start_s is not None:
                self.meter.release(date, task)

    def forget(self, patterns: list[int]) -> None:
        """Do nothing: no state depends on the freed usage vectors `patterns`."""

    def _hold(self, date: float, ref: TaskRef) -> None:
        hosts = dict.fromkeys(ref.task.hosts)
        self.meter.hold(date, ref.index, [(self._host_index[name], 1, 0.0) for name in hosts])

    # --- what it says -----------------------------------------------------------------------

    def _count(self) -> None:
        self.meter.count(self.simulation.now)

    @property
    def hosts_J(self) -> FloatArray:
        """Energy of each host, in the order of the platform, J."""
        self._count()
        return self.meter.hosts_J

    @property
    def links_J(self) -> FloatArray:
        """Energy of each link, in the order of the platform, J."""
        self._count()
        return self.meter.links_J

    @property
    def total_J(self) -> float:
        """Energy of all hosts and links, J."""
        self._count()
        return float(self.meter.hosts_J.sum() + self.meter.links_J.sum())

    def host_J(self, name: str) -> float:
        """Energy of a host, J. Raises PlatformError if there is none of that name."""
        return float(self.hosts_J[self.simulation.platform.host(name).index])

    def link_J(self, name: str) -> float:
        """Energy of a link, J. Raises PlatformError if there is none of that name."""
        return float(self.links_J[self.simulation.platform.link(name).index])

    def tasks_J(self) -> tuple[FloatArray, FloatArray]:
        """Return (energy, share) of each task, in the order they were added, J, shape (tasks,).

        Energy: of its hosts from its start to its end, idle power included, each counted whole (as
        Batsim counts jobs). Share: the task's part of it. Power above that without load is shared
        by use; power of hosts without load is shared equally by the tasks on them. The shares of
        all tasks add up to `charged_J`.
        """
        self._count()
        n = sum(1 for _ in self.simulation.tasks())
        whole, share = self.meter.held_J(n)
        return whole, share + self.meter.used_J(n)

    @property
    def charged_J(self) -> FloatArray:
        """The part of the energy of each resource that is in the share of some task, J."""
        self._count()
        return self.meter.charged_J
