"""The select plugin of a configuration: one face for whole nodes and for shared ones."""

from __future__ import annotations

from typing import Any, Protocol

from ptaskmodel.batch.hostset import Mask
from ptaskmodel.batch.slurm.conf.facts import LINEAR, TREE, Conf, Partition
from ptaskmodel.batch.slurm.needs import Need
from ptaskmodel.batch.slurm.nodes import Nodes
from ptaskmodel.batch.slurm.over_time import over_time_s
from ptaskmodel.batch.slurm.record import Allocation, Ends, JobRecord
from ptaskmodel.batch.slurm.select.consumable import Consumable, Refuses
from ptaskmodel.batch.slurm.select.dragonfly import Dragonfly
from ptaskmodel.batch.slurm.select.linear import Linear
from ptaskmodel.batch.slurm.select.tree import Tree


class Select(Protocol):
    """What is used, and where a job could run."""

    nodes: Nodes
    tree: Tree | None
    favours: bytearray | None

    def follow_favours(self, favours: bytearray | None) -> None:
        """Let the GPUs that jobs find make nodes lighter, as noted there; None: not any more."""

    def forget_favours(self, within: Mask) -> None:
        """Nodes have their own weight again: a job looks for one to start on."""

    def copy(self) -> Any:
        """One on which jobs can be removed for a trial."""
        ...

    def add(self, job: JobRecord) -> None:
        """A job takes its allocation."""

    def remove(self, job: JobRecord, running: bool = True) -> None:
        """A job gives its allocation back; running: whether it was counted as running."""

    def pause(self, job: JobRecord) -> None:
        """A job is suspended."""

    def lift(self, job: JobRecord) -> None:
        """On a trial: a job is suspended for another, which takes what it computed with."""

    def resume(self, job: JobRecord) -> None:
        """A suspended job runs again."""

    @property
    def idle(self) -> Mask:
        """The nodes without any job."""
        ...

    def place(
        self,
        need: Need,
        within: Mask,
        *,
        refuses: Refuses | None = None,
    ) -> Allocation | None:
        """Where a job can run now, within some nodes.

        refuses: nodes that fit, but are not to be taken.
        """
        ...

    def start(
        self,
        need: Need,
        within: Mask,
        *,
        refuses: Refuses | None = None,
        counted: Mask = 0,
    ) -> Allocation | None:
        """The same, as a start looks for nodes. counted: nodes that a limit counts already."""
        ...


def select_of(conf: Conf, nodes: Nodes) -> Select:
    """The plugin of a configuration."""
    tree: Tree | None = None
    if conf.topology_plugin == TREE:
        words, linear = conf.topology_parameters, conf.select_type == LINEAR
        optional = "TOPOOPTIONAL" in words
        if "DRAGONFLY" in words:
            tree = Dragonfly(conf.switches, nodes, optional=optional, counts_nodes=linear)
        else:
            tree = Tree(conf.switches, nodes, optional=optional)
    if conf.select_type == LINEAR:
        return Linear(nodes, tree)
    return Consumable(conf, nodes, tree)


def expected_end(
    select: Select,
    conf: Conf,
    need: Need,
    within: Mask,
    ends: Ends,
    refuses: Refuses | None = None,
) -> tuple[float, Allocation] | None:
    """After whose end a job fits within some nodes if those that run end as planned, and where.

    That is a date of their limits, which may be past. refuses: nodes that fit, but are not to be
    taken.
    """
    if isinstance(select, Consumable):
        grows_s = conf.scheduler.bf_window_linear_s
        return select.predict(need, within, ends, grows_s=grows_s, refuses=refuses)
    assert isinstance(select, Linear)
    found = select.predict(need, within, ends)
    return None if found is None or (refuses and refuses(found[1].nodes)) else found


def date_of(end: float, select: Select, conf: Conf, partition: Partition, now: int) -> float:
    """When a job is expected to be over whose limit ends at a date."""
    if end > now:
        return end
    late_s = 0.0
    if isinstance(select, Consumable):
        late_s = conf.kill_wait_s + over_time_s(conf, partition)
    return max(now + 1, end + late_s)
