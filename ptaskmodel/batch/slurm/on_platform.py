"""The nodes of a configuration as hosts of a platform, which jobs share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ptaskmodel.batch.machine import machine_of
from ptaskmodel.batch.ptasks import PtaskExecution
from ptaskmodel.batch.slurm.conf.facts import Conf
from ptaskmodel.batch.slurm.nodes import nodes_of
from ptaskmodel.errors import SlurmError

if TYPE_CHECKING:
    from ptaskmodel.batch.attempt import Attempt
    from ptaskmodel.batch.machine import Machine
    from ptaskmodel.platform.platform import Platform


def machine_for(platform: Platform, conf: Conf) -> Machine:
    """The hosts of a platform that are the nodes: of the same name, or of the same place.

    Raises SlurmError if some nodes have no host.
    """
    machine, nodes = machine_of(platform), nodes_of(conf)
    hosts = set(machine.names)
    missing = [name for name in nodes.names if name not in hosts]
    if len(missing) == len(nodes) and len(nodes) <= machine.num_hosts:
        names = machine.names[: len(nodes)]
    elif missing:
        raise SlurmError(
            f"{platform.path}: {len(missing)} of {len(nodes)} nodes are no hosts, such as "
            f"'{missing[0]}': name the hosts as the nodes of the slurm.conf"
        )
    else:
        names = nodes.names
    return replace(machine, names=names)


def execution_on(platform: Platform, conf: Conf) -> PtaskExecution:
    """What runs jobs on a platform. Raises SlurmError if some nodes have no host."""
    from ptaskmodel.simulation.simulation import Simulation

    return PtaskExecution(machine_for(platform, conf), Simulation(platform), limited=False)


def alone_s(execution: PtaskExecution, attempts: Sequence[Attempt]) -> list[float]:
    """How long each attempt would have taken with the platform to itself, s.

    Which part of their work those did that were cut off is noted where it is known.
    """
    from ptaskmodel.batch.alone import AloneTimes
    from ptaskmodel.simulation.simulation import Simulation

    platform = execution.machine.platform
    alone = AloneTimes(execution.machine, lambda: Simulation(platform))
    alone.note_parts_done(attempts, execution)
    return alone.of_attempts(attempts)
