"""The flows of works: their numbers, by which routing knows them, and the routes that they take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.engine.usage.paths import Legs, Paths
from ptaskmodel.engine.usage.placement import FlowName
from ptaskmodel.platform.routing.choice import Routing
from ptaskmodel.platform.routing.fabric import Way
from ptaskmodel.workload.amounts import Demand
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.trace_work import TraceWork
from ptaskmodel.workload.works import Work

IntArray = NDArray[np.int64]


class FlowRoutes:
    """The routes of flows between hosts (indices).

    paths: the routes of the platform. routing: how flows choose others; None: they do not.
    """

    def __init__(self, paths: Paths, routing: Routing | None) -> None:
        self.paths = paths
        self.routing = routing

    def way(self, task: str, flow: int, source: int, target: int) -> Way:
        """The links (of the platform) that a flow takes, and those of its acknowledgements.

        task, flow: as in `FlowName`. source, target: hosts. Raises RouteError if there is none.
        """
        if self.routing is None or source == target:
            return Way(self.paths.one(source, target)[0], self.paths.one(target, source)[0])
        fabric = self.paths.platform.fabric
        return self.routing.way(fabric, task, flow, fabric.node[source], fabric.node[target])

    def named(
        self, names: Sequence[FlowName], sources: IntArray, targets: IntArray
    ) -> tuple[Legs, Legs]:
        """The routes of flows there and back, as `way` finds them.

        names: of each flow. sources, targets: its hosts. Raises RouteError for the first flow that
        has none.
        """
        ends = zip(names, sources.tolist(), targets.tolist(), strict=True)
        ways = [self.way(*name, source, target) for name, source, target in ends]
        there, back = [way.there for way in ways], [way.back for way in ways]
        return self.paths.legs(there), self.paths.legs(back)

    def groups(
        self,
        sources: IntArray,
        targets: IntArray,
        names: Sequence[FlowName] | None,
        both: bool,
    ) -> Iterator[tuple[IntArray, Legs, Legs]]:
        """The numbers of flows, some at a time, with their routes there and back.

        sources, targets: their hosts. names: of each flow; None: they take the platform's routes.
        both: the ways back are wanted; else they are those there. Raises as `named`.
        """
        if names is not None:
            yield np.arange(len(names)), *self.named(names, sources, targets)
            return
        for group in self.paths.groups(sources, targets):
            there = self.paths.many(sources[group], targets[group])
            back = self.paths.many(targets[group], sources[group]) if both else there
            yield group, there, back


def each_pair(size: float, ranks: int) -> Demand:
    """What an all-to-all asks, as flows: ``size`` bytes from each of ``ranks`` to each other."""
    sources, targets = np.divmod(np.arange(ranks**2), ranks)
    others = sources != targets
    amount = np.full(ranks * (ranks - 1), size)
    return Demand(0.0, 0.0, sources[others], targets[others], amount)


def has_flows(work: Work) -> bool:
    """Whether the ``work`` of a stage may have flows: it is no delay, and no trace."""
    return work.duration_s is None and not isinstance(work, TraceWork)


def number_of_flows(work: Work, ranks: int) -> int:
    """How many flows the ``work`` of so many ranks has; an all-to-all: one for each two of them."""
    if not has_flows(work):
        return 0
    asked = work.demand(ranks)
    return ranks * (ranks - 1) if asked.pair_bytes > 0.0 else len(asked.flow_bytes)


def flows_of(task: Task, hosts: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """(number, sender, receiver) of the flows of a task on hosts (indices), of one round."""
    number = 0
    for work in filter(has_flows, task.work.one_round()):
        asked = work.demand(len(hosts))
        if asked.pair_bytes > 0.0:
            asked = each_pair(asked.pair_bytes, len(hosts))
        for source, target in zip(asked.flow_from.tolist(), asked.flow_to.tolist(), strict=True):
            yield number, hosts[source], hosts[target]
            number += 1
