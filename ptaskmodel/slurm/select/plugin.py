"""The select plugin of a configuration: one interface for whole nodes and for shared ones.

A job gets its nodes in these steps. A scheduler asks `controller.allocations`, which asks the
plugin, `Linear` or `Consumable`. `linear` takes whole nodes, which `choice` finds. `consumable`
takes parts of nodes: `offers` says what each available node offers, `fitting` chooses nodes and
distributes CPUs and memory, and `cores` chooses the cores. With topology/tree, `switches` restricts
the choice. The plugin caches its answers until a job takes or returns nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from math import inf
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.machine.host_sets import Mask, of_hosts
from ptaskmodel.slurm.conf.facts import CONS_RES, LINEAR, NEVER, TREE, Conf, Gres, Nodes
from ptaskmodel.slurm.jobs.gpus import GPU, amount_of
from ptaskmodel.slurm.jobs.needs import YEAR_S, Need
from ptaskmodel.slurm.jobs.record import Allocation, End, Ends, JobRecord, over_time_s
from ptaskmodel.slurm.select.cons_res import ConsRes
from ptaskmodel.slurm.select.consumable import Consumable
from ptaskmodel.slurm.select.linear import Linear
from ptaskmodel.slurm.select.offers import asks_gpus
from ptaskmodel.slurm.select.switches import Dragonfly, Leaves, Tree

# So many answers are kept at most.
MOST = 20_000
# Jobs of a kind (see `Need`), on some nodes, weighed by the GPUs noted of each.
Question = tuple[Hashable, Mask, bytes | None]
# What a job notes of the nodes by asking, 0: nothing; None: of none.
Noted = NDArray[np.uint8] | None
# Where a job fits, and which others stand there; None: nowhere.
Hit = tuple[Allocation, list[JobRecord]] | None
_GPU = Gres(GPU, None, 1)


class Select(Protocol):
    """What is used, and where a job could run."""

    nodes: Nodes
    tree: Tree | None
    favours: bytearray | None

    def follow_favours(self, favours: bytearray) -> None:
        """Let the GPUs that jobs find make nodes lighter, as noted there."""

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
        leaves: Leaves | None = None,
    ) -> Allocation | None:
        """Where a job can run now, within some nodes.

        leaves: how few leaf switches it waits for.
        """
        ...

    def start(
        self,
        need: Need,
        within: Mask,
        *,
        leaves: Leaves | None = None,
        counted: Mask = 0,
        seen: Mask = -1,
    ) -> Allocation | None:
        """The same, as a start looks for nodes. counted: nodes that a limit counts already.

        seen: the nodes that it weighs anew, as far as weights are kept.
        """
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
        return Linear(nodes, tree, preempts=conf.preempt_type != NEVER)
    return (ConsRes if conf.select_type == CONS_RES else Consumable)(conf, nodes, tree)


def expected_end(
    select: Select,
    conf: Conf,
    need: Need,
    within: Mask,
    ends: Ends,
    leaves: Leaves | None = None,
) -> tuple[End, Allocation] | None:
    """After whose end a job fits within some nodes if those that run end as planned, and where.

    The date of its limit may be past. leaves: how few leaf switches it waits for.
    """
    if isinstance(select, Consumable):
        grows_s = conf.scheduler.bf_window_linear_s
        return select.predict(need, within, ends, grows_s=grows_s, leaves=leaves)
    assert isinstance(select, Linear)
    return select.predict(need, within, ends, leaves)


def place_without(
    select: Consumable, need: Need, within: Mask, order: Sequence[JobRecord]
) -> tuple[Allocation | None, int]:
    """Where a job fits when the first jobs of an `order` are gone, and how many of them.

    select, need, within: as of `Select.place`.
    """
    plain = select.plain_for(need)
    if plain is not None:
        choice, gone = plain.place_without(need, within, order)
        if choice is not None:
            return select.of_choice(need, choice, order[:gone]), gone
        return None, len(order)
    trial = select.copy()
    for gone, job in enumerate(order, 1):
        trial.remove(job)
        found = trial.place(need, within)
        if found is not None:
            return found, gone
    return None, len(order)


def date_of(end: End, select: Select, conf: Conf, now: int) -> float:
    """When a job is expected to be over, by the `end` of its limit."""
    end_s, _, job = end
    if end_s > now:
        return end_s
    if not isinstance(select, Consumable):
        return now + 1
    over_s = over_time_s(conf, job.partition)
    if over_s == inf:
        return now + min(job.limit_s, YEAR_S)
    return max(now + 1, end_s + conf.kill_wait_s + over_s)


Answer = TypeVar("Answer")
Kept = dict[Question, tuple[Answer, Noted]]


class Answers:
    """Asks a select plugin where jobs fit; the same again only after `forget`.

    Cycles and passes ask the same of the same nodes over and over, until something changes. A job
    that asks for GPUs leaves notes of them (see `Consumable.favours`), whether asked again or not.
    """

    def __init__(self, select: Select, conf: Conf) -> None:
        self._select, self._conf = select, conf
        # The nodes that notes of GPUs may weigh.
        lines = enumerate(select.nodes.lines)
        self._with_gpus = of_hosts(k for k, line in lines if amount_of(_GPU, line.gres))
        # How often it was to forget.
        self.version = 0
        self._places: Kept[Allocation | None] = {}
        self._starts: Kept[Allocation | None] = {}
        self._ends: Kept[tuple[End, Allocation] | None] = {}
        self._victims: dict[int, tuple[Sequence[JobRecord], Kept[Hit]]] = {}

    def forget(self) -> None:
        """Forget the answers: the running jobs, or their ends, have changed."""
        self.version += 1
        self._places.clear()
        self._starts.clear()
        self._ends.clear()
        self._victims.clear()

    def victims(
        self, need: Need, within: Mask, candidates: Sequence[JobRecord], ask: Callable[[], Hit]
    ) -> Hit:
        """Where a job fits without some of the `candidates`, a list that is kept, as `ask` says.

        need: of the job. within: the nodes to look at.
        """
        kept = self._victims.setdefault(id(candidates), (candidates, {}))[1]
        return self._known(kept, need, within, ask)

    def place(self, need: Need, within: Mask, leaves: Leaves | None) -> Allocation | None:
        """Where a job fits now; leaves: how few leaf switches it waits for."""
        ask = partial(self._select.place, need, within, leaves=leaves)
        return ask() if leaves is not None else self._known(self._places, need, within, ask)

    def start(self, need: Need, within: Mask, leaves: Leaves | None) -> Allocation | None:
        """Where a job can start now; see `place`."""
        ask = partial(self._select.start, need, within, leaves=leaves)
        return ask() if leaves is not None else self._known(self._starts, need, within, ask)

    def end(
        self, need: Need, within: Mask, ends: Ends, leaves: Leaves | None
    ) -> tuple[End, Allocation] | None:
        """The end of the job after which another fits, and where, if the others end as planned."""
        ask = partial(expected_end, self._select, self._conf, need, within, ends, leaves)
        return ask() if leaves is not None else self._known(self._ends, need, within, ask)

    def _known(
        self, kept: Kept[Answer], need: Need, within: Mask, ask: Callable[[], Answer]
    ) -> Answer:
        """What is kept, with what is noted then, or the answer to a question."""
        favours = self._select.favours
        # Nodes weigh what a job that asks for GPUs notes of them itself, always more than 0.
        notes = favours is not None and asks_gpus(need)
        weighed = favours is not None and not notes and need.nodes & within & self._with_gpus
        key = need.kind, within, bytes(favours) if favours and weighed else None
        if key not in kept:
            if len(kept) >= MOST:
                kept.clear()
            kept[key] = self._with_notes(ask) if notes else (ask(), None)
        answer, noted = kept[key]
        if favours is not None and noted is not None:
            np.copyto(np.frombuffer(favours, np.uint8), noted, where=noted != 0)
        return answer

    def _with_notes(self, ask: Callable[[], Answer]) -> tuple[Answer, Noted]:
        """The answer to a question, and what is noted by it alone."""
        favours = self._select.favours
        assert favours is not None
        before = bytes(favours)
        favours[:] = bytes(len(favours))
        answer = ask()
        noted = np.array(favours)
        favours[:] = before
        return answer, noted
