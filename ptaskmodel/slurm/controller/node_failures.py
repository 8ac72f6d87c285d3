"""Node failures: when the controller notices, what happens to jobs, and when nodes return.

A node that fails does no more work and gets no more jobs. The controller pings nodes every third of
SlurmdTimeout. It sets a node DOWN that has not answered for longer than SlurmdTimeout; the jobs on
it end as NODE_FAIL or, with JobRequeue, wait again. If a node answers again before that, the
controller finds that it has lost the jobs of which it was the first node.
Source: observed on Slurm 22.05.8.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from math import floor, inf
from pathlib import Path

from ptaskmodel.batch.machine.failures import FailureLaw, Outages, read_failures
from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.slurm.conf.facts import Conf
from ptaskmodel.slurm.controller.controller import Controller
from ptaskmodel.slurm.controller.job_list import nodes_of

Changes = Iterable[tuple[float, bool]]
# From the controller's start to the first ping; pings by SlurmdTimeout; and until a message to a
# node that does not answer is given up, s.
FIRST_PING_S = 4
PINGS = 3
UNREACHED_S = 11
DIES, DOWN, ANSWERS, RETURNS = "dies", "set down", "answers", "returns to service"
Tell = Callable[[float, str, str], None]


def failures_of_nodes(
    conf: Conf, *, file: str | Path | None = None, law: FailureLaw | None = None
) -> dict[str, Changes]:
    """Return when the nodes of `conf` fail and recover: (time in s, whether it is up), by name.

    file: as of ``ptaskmodel batch --failures``. law: draws the failures of nodes that the file does
    not name. Raises SlurmError for an unknown node and a law for links, SimulationError with file
    and line for wrong values.
    """
    names = {name for line in conf.nodes for name in line.names}
    found: dict[str, Changes] = {}
    if law is not None:
        if law.link_mtbf is not None or law.mtbf is None:
            raise SlurmError("--failure-law: only nodes fail here; give mtbf, and no link_mtbf")
        found |= {name: law.stream(name) for name in sorted(names)}
    if file is not None:
        given = read_failures(file)
        stray = next((name for name in given if name not in names), None)
        if stray is not None:
            raise SlurmError(f"{file}: the slurm.conf has no node {shown(stray)}; correct it")
        found |= given
    return found


class NodeFailures:
    """The nodes of a controller that fail and come back; the loop asks when something is due.

    died: how many times a node did; set_down: how many times the controller noticed by itself.
    """

    def __init__(
        self, controller: Controller, failures: Mapping[str, Changes], tell: Tell | None = None
    ) -> None:
        self._controller, self._tell = controller, tell
        index, conf = controller.nodes.index, controller.conf
        mine = [(index[name], changes) for name, changes in failures.items() if name in index]
        self._coming = Outages({}, mine)
        self._timeout_s = conf.slurmd_timeout_s
        self._period_s = max(1, conf.slurmd_timeout_s // PINGS)
        self._first_s = controller.phases.boot_s + FIRST_PING_S
        self._noticed: list[tuple[float, int]] = []
        self._due: dict[int, float] = {}
        self._down = self._dead = 0
        self.died = self.set_down = 0

    @property
    def next_date(self) -> float:
        """When something happens next, s; inf: never."""
        return min(self._coming.next_date, self._noticed[0][0] if self._noticed else inf)

    @property
    def stay_down(self) -> list[str]:
        """Return the nodes that answer again but stay down until an administrator resumes them."""
        return self._controller.nodes.names_of(self._down & ~self._dead)

    def act(self, date: float) -> None:
        """Whatever is due at a date happens."""
        for outage in self._coming.take(date):
            node = outage.subject
            assert isinstance(node, int)
            if outage.up:
                self._answers(node, date)
            else:
                self._dies(node, date)
        while self._noticed and self._noticed[0][0] <= date:
            due, node = heapq.heappop(self._noticed)
            if self._due.get(node) == due:
                self._is_set_down(node, date)

    def _dies(self, node: int, date: float) -> None:
        controller = self._controller
        self.died += 1
        self._say(date, DIES, node)
        self._dead |= 1 << node
        controller.nodes.fail(node)
        for job in controller.jobs.on_node(node):
            controller.runs.stop_working(job, date)
        if self._timeout_s and not self._down >> node & 1:
            self._due[node] = self._silent_too_long(date)
            heapq.heappush(self._noticed, (self._due[node], node))

    def _silent_too_long(self, date: float) -> float:
        """The ping that finds a node that dies at a date to have been silent for too long."""
        pings = floor((date - self._first_s) / self._period_s)
        answered = self._first_s + pings * self._period_s
        return answered + (self._timeout_s // self._period_s + 1) * self._period_s

    def _is_set_down(self, node: int, date: float) -> None:
        controller = self._controller
        self.set_down += 1
        self._say(date, DOWN, node)
        del self._due[node]
        self._down |= 1 << node
        for job in controller.jobs.on_node(node):
            alone = nodes_of(job).bit_count() == 1
            controller.runs.lose(job, date, 0 if alone else UNREACHED_S)
        controller.events.change(date)

    def _answers(self, node: int, date: float) -> None:
        controller = self._controller
        self._dead &= ~(1 << node)
        self._say(date, ANSWERS, node)
        if self._down >> node & 1:
            if not controller.conf.return_to_service:
                return
            self._down &= ~(1 << node)
            self._say(date, RETURNS, node)
        else:
            self._due.pop(node, None)
            for job in controller.jobs.on_node(node):
                first = not nodes_of(job) & ((1 << node) - 1)
                if first or job.limit_s == inf:
                    controller.runs.lose(job, date)
        controller.nodes.return_to_service(node)
        controller.events.ask_for_pass()
        controller.events.change(date)

    def _say(self, date: float, what: str, node: int) -> None:
        if self._tell is not None:
            self._tell(date, what, self._controller.nodes.names[node])
