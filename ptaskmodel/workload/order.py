"""What waits for what: an order in which nothing waits for itself, or the circle."""

from __future__ import annotations

import graphlib
from collections.abc import Hashable, Iterable, Mapping
from collections.abc import Sequence as Seq
from typing import TypeVar

from ptaskmodel.errors import WorkloadError

Node = TypeVar("Node", bound=Hashable)


def in_order(before: Mapping[Node, Iterable[Node]]) -> tuple[list[Node], list[Node]]:
    """Everything after what comes before it, and no circle; or nothing and a circle.

    before: what comes directly before each thing. A circle is given without repetition, each of
    its things directly before the next, the last before the first; equal inputs give the same one.
    """
    sorter = graphlib.TopologicalSorter(before)
    try:
        return list(sorter.static_order()), []
    except graphlib.CycleError as error:
        return [], error.args[1][:-1]


def check_acyclic(waits: Iterable[tuple[int, Iterable[int]]], ids: Seq[str]) -> None:
    """Tasks do not wait for each other in a circle.

    waits: numbers of tasks, each with those that it waits for. ids: the names of all tasks.
    Raises WorkloadError.
    """
    _, circle = in_order(dict(waits))
    if circle:
        name = ids[min(circle)]
        raise WorkloadError(f"task {name!r}: waits for itself through its `after` list")
