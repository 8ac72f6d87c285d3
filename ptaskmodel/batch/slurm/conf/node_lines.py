"""NodeName, PartitionName and SwitchName lines as facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptaskmodel.batch.slurm import values
from ptaskmodel.batch.slurm.conf.facts import (
    EXCLUSIVE,
    FORCE,
    NO,
    PARTITION_UNITS,
    YES,
    NodeLine,
    Partition,
    Switch,
)
from ptaskmodel.batch.slurm.conf.keys import Table, memory, over_time, preempt_modes

DEFAULT_SHARE = 4
TIER_MOST = 65533
STATES = ("UNKNOWN", "DOWN", "DRAIN", "FAIL", "FAILING", "FUTURE", "CLOUD", "IDLE", "UP")

Given = Mapping[str, Any]  # values by the names of fields, those of DEFAULT lines included


def _tier(text: str) -> int:
    return values.whole(text, 0, TIER_MOST)


def _count(text: str) -> int:
    return values.whole(text, 1, 65535)


def node_state(text: str) -> str:
    """The state of a node, in upper case: a word, or several with + between."""
    if not set(text.upper().split("+")) <= set(STATES):
        raise ValueError(f"give {', '.join(STATES[:-1])} or {STATES[-1]}")
    return text.upper()


def _sharing(text: str) -> tuple[str, int]:
    word, colon, count = text.upper().partition(":")
    if word in (NO, EXCLUSIVE) and not colon:
        return word, 1
    if word not in (YES, FORCE):
        raise ValueError("give NO, EXCLUSIVE, YES[:jobs] or FORCE[:jobs]")
    return word, values.whole(count, 1, 65535) if colon else DEFAULT_SHARE


def _some(text: str) -> frozenset[str] | None:
    return None if text.upper() == "ALL" else frozenset(values.names(text))


def _unit(text: str) -> str | None:
    found: str = values.one_of(*PARTITION_UNITS, "NONE")(text)
    return None if found == "NONE" else found


def _partition_state(text: str) -> str:
    found: str = values.one_of("UP", "DOWN", "DRAIN", "INACTIVE")(text)
    return found


NODE: Table = {
    "cpus": ("cpus", _count),
    "procs": ("cpus", _count),
    "boards": ("boards", _count),
    "sockets": ("sockets", _count),
    "socketsperboard": ("sockets_per_board", _count),
    "corespersocket": ("cores_per_socket", _count),
    "threadspercore": ("threads_per_core", _count),
    "realmemory": ("memory_MiB", values.mebibytes),
    "memspeclimit": ("mem_spec_limit_MiB", values.mebibytes),
    "corespeccount": ("core_spec_count", lambda text: values.whole(text, 0, 65535)),
    "gres": ("gres", values.gres),
    "weight": ("weight", lambda text: values.whole(text, 0, 2**32 - 2)),
    "feature": ("features", values.names),
    "features": ("features", values.names),
    "state": ("state", node_state),
}

PARTITION: Table = {
    "nodes": ("nodes", str),
    "default": ("default", values.yes_no),
    "maxtime": ("max_time_min", values.minutes),
    "defaulttime": ("default_time_min", values.minutes),
    "minnodes": ("min_nodes", lambda text: values.whole(text)),
    "maxnodes": ("max_nodes", values.whole_or_none),
    "maxcpuspernode": ("max_cpus_per_node", values.whole_or_none),
    "maxmempercpu": ("max_mem_per_cpu_MiB", memory),
    "maxmempernode": ("max_mem_per_node_MiB", memory),
    "defmempercpu": ("def_mem_per_cpu_MiB", memory),
    "defmempernode": ("def_mem_per_node_MiB", memory),
    "prioritytier": ("tier", _tier),
    "priorityjobfactor": ("job_factor", _tier),
    "priority": ("priority", _tier),
    "oversubscribe": ("sharing", _sharing),
    "shared": ("sharing", _sharing),
    "preemptmode": ("preempt_mode", preempt_modes),
    "gracetime": ("grace_time_s", lambda text: values.whole(text)),
    "overtimelimit": ("over_time_limit_min", over_time),
    "qos": ("qos", str),
    "lln": ("lln", values.yes_no),
    "selecttypeparameters": ("select_unit", _unit),
    "state": ("state", _partition_state),
    "exclusiveuser": ("exclusive_user", values.yes_no),
    "allowaccounts": ("allow_accounts", _some),
    "allowgroups": ("allow_groups", _some),
    "allowqos": ("allow_qos", _some),
    "denyaccounts": ("deny_accounts", lambda text: frozenset(values.names(text))),
    "denyqos": ("deny_qos", lambda text: frozenset(values.names(text))),
    "tresbillingweights": ("billing_weights", values.weights),
}


def node_line(names: tuple[str, ...], given: Given, where: str) -> tuple[NodeLine, str | None]:
    """Nodes of a NodeName line, and what Slurm changes of it, if anything.

    What is missing of sockets and CPUs follows from the rest; CPUs that do not match the shape
    become those of all threads. Raises ValueError with the remedy.
    """
    fields = dict(given)
    per_board = fields.pop("sockets_per_board", None)
    boards = fields.get("boards", 1)
    sockets = fields.get("sockets") if per_board is None else boards * per_board
    cores, threads = fields.get("cores_per_socket", 1), fields.get("threads_per_core", 1)
    cpus = fields.get("cpus")
    if sockets is None:
        sockets = boards if cpus is None else max(1, cpus // (cores * threads))
    every = sockets * cores * threads
    note = None
    if cpus is None:
        cpus = every
    elif cpus not in (sockets, sockets * cores, every):
        note = f"{where}: CPUs={cpus} do not match the sockets, cores and threads: they are {every}"
        cpus = every
    fields.update(cpus=cpus, boards=boards, sockets=sockets, where=where)
    line = NodeLine(names, **fields)
    if line.core_spec_count >= line.cores:
        raise ValueError("CoreSpecCount: leave a core to jobs")
    return line, note


def partition(name: str, given: Given, nodes: tuple[str, ...], where: str) -> Partition:
    """A partition of a PartitionName line."""
    fields = dict(given)
    fields.pop("nodes", None)
    if "priority" in fields:
        value = fields.pop("priority")
        fields = {"tier": value, "job_factor": value} | fields
    if "sharing" in fields:
        fields["over_subscribe"], fields["max_share"] = fields.pop("sharing")
    return Partition(name, nodes=nodes, where=where, **fields)


def switch(name: str, given: Mapping[str, str], where: str) -> Switch:
    """A switch of a SwitchName line. Raises ValueError with the remedy."""
    if ("nodes" in given) == ("switches" in given):
        raise ValueError("give either Nodes or Switches")
    nodes = values.hosts(given["nodes"]) if "nodes" in given else ()
    below = values.hosts(given["switches"]) if "switches" in given else ()
    return Switch(name, nodes, below, where)
