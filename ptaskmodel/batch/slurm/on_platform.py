"""The nodes of a configuration as hosts of a platform, which jobs share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ptaskmodel.batch.execution import Execution
from ptaskmodel.batch.machine import machine_of
from ptaskmodel.batch.slurm.facts import Conf
from ptaskmodel.batch.slurm.nodes import nodes_of
from ptaskmodel.errors import SlurmError

if TYPE_CHECKING:
    from ptaskmodel.platform.platform import Platform


def execution_on(platform: Platform, conf: Conf) -> Execution:
    """What runs jobs on a platform: its hosts are the nodes of the same name, or of the same place.

    Raises SlurmError if some nodes have no host.
    """
    from ptaskmodel.batch.ptasks import PtaskExecution
    from ptaskmodel.simulation.simulation import Simulation

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
    on_nodes = replace(machine, names=names)
    return PtaskExecution(on_nodes, Simulation(platform), limited=False)
