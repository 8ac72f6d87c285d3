"""Simulate flows as packets: what `simulate` does otherwise for ``--network-level packets``."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.packets.tasks import PacketSimulation
from ptaskmodel.units import format_duration

if TYPE_CHECKING:
    from ptaskmodel.simulation.simulation import Simulation

_log = logging.getLogger(__name__)
# Runs that take longer are announced without -v.
LONG_S = 30.0
# Fields of the options that only the fluid level has, and their values that ask nothing.
FLUID_ONLY = {
    "solver": None,
    "count": "task",
    "traces": (),
    "attribution": False,
    "energy": False,
    "neighbours": False,
    "checkpoint_every_s": None,
    "resume": False,
}


def packet_simulation(simulation: Simulation, options: Any, recorded: bool) -> PacketSimulation:
    """The tasks of ``simulation`` as packets; says how long they will take if that is long.

    options: as `simulate_into` takes them. recorded: keep queues over time. Raises PTaskModelError
    for options that packets do not have, and as `PacketSimulation`.
    """
    for name, nothing in FLUID_ONLY.items():
        if getattr(options, name) != nothing:
            flag = {"traces": "trace"}.get(name, name).replace("_", "-")
            raise PTaskModelError(
                f"--{flag}: --network-level packets has none; leave it out, or simulate fluid"
            )
    made = PacketSimulation(simulation, recorded=recorded)
    _log.log(
        logging.WARNING if made.expected_s > LONG_S else logging.INFO,
        "packets cross %s links in all, which takes about %s",
        f"{made.expected_hops:,.0f}",
        format_duration(made.expected_s),
    )
    return made
