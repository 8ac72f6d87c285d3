"""Choose how flows are routed: by the platform's routes, or flow by flow.

This module reads the option ``--routing`` and the argument of `Simulation`. A new way of routing is
a class with the two methods of `Routing` and a row in `routing_of`.
"""

from __future__ import annotations

from typing import Protocol

from ptaskmodel.errors import SimulationError, shown
from ptaskmodel.platform.routing.ecmp import Ecmp
from ptaskmodel.platform.routing.fabric import Fabric, Way
from ptaskmodel.platform.routing.given import read_routes

PLATFORM = "platform"
LARGEST_SEED = 2**63


class Routing(Protocol):
    """Chooses the way of each flow. ``str`` of it gives the option."""

    def way(self, fabric: Fabric, task: str, flow: int, source: int, target: int) -> Way:
        """The links of a flow between two nodes of a graph, and those of its acknowledgements.

        fabric: the graph. task: its id. flow: its number in the task, counted through the stages.
        source, target: nodes. Raises RouteError.
        """
        ...


def routing_of(text: str) -> Routing | None:
    """The routing that an option names; None: the routes of the platform.

    text: ``platform``, ``ecmp``, ``ecmp:SEED`` or ``file:FILE``. Raises SimulationError, and
    RouteError for what is wrong with the file.
    """
    kind, colon, rest = text.partition(":")
    if text == PLATFORM:
        return None
    if kind == "ecmp":
        seed = rest if colon else "0"
        if seed.isascii() and seed.isdigit() and len(seed) < 20 and int(seed) < LARGEST_SEED:
            return Ecmp(int(seed))
        raise SimulationError(f"--routing: the seed {shown(rest)} is not a whole number from 0")
    if kind == "file" and rest:
        return read_routes(rest)
    raise SimulationError(
        f"--routing: {shown(text)} is not known; give platform, ecmp, ecmp:SEED or file:FILE"
    )
