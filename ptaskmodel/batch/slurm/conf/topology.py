"""topology.conf: the switches over the nodes, a tree."""

from __future__ import annotations

from collections.abc import Mapping

from ptaskmodel.batch.slurm.conf.facts import Switch
from ptaskmodel.batch.slurm.conf.lines import read_lines
from ptaskmodel.batch.slurm.conf.node_lines import switch
from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, shown_path

TOPOLOGY = "topology.conf"


def read_topology(path: AnyPath, nodes: Mapping[str, None]) -> tuple[Switch, ...]:
    """The switches of a topology.conf over some nodes. Raises SlurmError with file and line."""
    found: dict[str, Switch] = {}
    for pairs in read_lines(path):
        given = {pair.key.lower(): pair.value for pair in pairs}
        head = pairs[0]
        if head.key.lower() != "switchname":
            raise SlurmError(f"{head.where}: {shown(head.key)}: begin the line with SwitchName=")
        if head.value in found:
            raise SlurmError(
                f"{head.where}: SwitchName={shown(head.value)} is there already "
                f"({found[head.value].where}); take one out"
            )
        try:
            found[head.value] = switch(head.value, given, head.where)
        except ValueError as fault:
            raise SlurmError(f"{head.where}: SwitchName={shown(head.value)}: {fault}") from None
        stray = next((name for name in found[head.value].nodes if name not in nodes), None)
        if stray is not None:
            raise SlurmError(f"{head.where}: slurm.conf has no node {shown(stray)}; correct it")
    if not found:
        raise SlurmError(f"{shown_path(path)}:1: has no SwitchName line; give the switches")
    _check_tree(found)
    return tuple(found.values())


def _check_tree(switches: Mapping[str, Switch]) -> None:
    """SlurmError unless every switch is below at most one other, and none below itself."""
    above: dict[str, str] = {}
    for one in switches.values():
        for name in one.switches:
            if name not in switches:
                raise SlurmError(
                    f"{one.where}: SwitchName={one.name}: there is no switch {shown(name)}; "
                    "give it a line"
                )
            if above.setdefault(name, one.name) != one.name:
                raise SlurmError(
                    f"{one.where}: {name} is below {above[name]} and {one.name}; take it from one"
                )
    for name in switches:
        place, steps = name, 0
        while place in above and steps <= len(above):
            place, steps = above[place], steps + 1
        if steps > len(above):
            raise SlurmError(
                f"{switches[place].where}: the switch {place} is below itself; correct Switches"
            )
