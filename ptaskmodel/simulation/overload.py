"""Tasks that come faster than something they share can serve them: they pile up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ptaskmodel.errors import RouteError
from ptaskmodel.platform import Platform
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import Demand

# Of fewer nobody waits long; of more the first tell.
FEW_TASKS, MOST_TASKS = 1_000, 50_000
# Routes looked at: those of the pairs of hosts that exchange most.
MOST_PAIRS = 10_000
# Stages and flows that are looked at, before it is given up.
MOST_FLOWS = 4_000_000
NOT_SUMMED = "FATPIPE"


class Load(NamedTuple):
    """What tasks ask of a resource, over what it gives from the first start to the last."""

    value: float
    kind: str
    name: str


def offered_load(platform: Platform, tasks: Sequence[Task]) -> Load | None:
    """The largest load that tasks offer to a host or a link of the platform.

    Tasks that wait for others do not count. None if no time passes between starts, or nothing is
    asked for, or there is too much to look at.
    """
    chosen = [task for task in tasks[:MOST_TASKS] if not task.after]
    starts = [task.start_s for task in chosen]
    span_s = max(starts, default=0.0) - min(starts, default=0.0)
    if span_s <= 0.0:
        return None
    flops = np.zeros(len(platform.hosts))
    looked_at = 0
    keys, amounts = [], []
    for task in chosen:
        if task.work.duration_s is not None:
            continue
        hosts = np.array([platform.host(name).index for name in task.hosts], dtype=np.int64)
        for part in task.work.one_round():
            demand = part.demand(len(hosts))
            sources, targets, sizes = _flows(demand, len(hosts))
            looked_at += 1 + len(sizes)
            if looked_at > MOST_FLOWS:
                return None
            np.add.at(flops, hosts, task.work.rounds * np.broadcast_to(demand.flops, len(hosts)))
            keys.append(hosts[sources] * len(flops) + hosts[targets])
            amounts.append(task.work.rounds * sizes)
    bytes_of = _bytes_of_links(platform, keys, amounts)
    loads = [
        Load(float(amount) / (span_s * host.speed_flops * host.cores), "host", host.name)
        for host, amount in zip(platform.hosts, flops, strict=True)
        if amount > 0.0 and host.speed_flops > 0.0
    ]
    for index, amount in bytes_of.items():
        link = platform.all_links[index]
        if link.bandwidth_Bps > 0.0 and link.policy != NOT_SUMMED:
            loads.append(Load(amount / (span_s * link.bandwidth_Bps), "link", link.name))
    return max(loads, key=lambda load: load.value, default=None)


def overload_text(platform: Platform, tasks: Sequence[Task]) -> str | None:
    """A sentence if many tasks offer more than a resource can do meanwhile, else None."""
    load = offered_load(platform, tasks) if len(tasks) >= FEW_TASKS else None
    if load is None or load.value <= 1.0:
        return None
    return (
        f"the offered load of {load.kind} '{load.name}' is {load.value:.3g}: tasks come faster "
        "than it serves them and pile up"
    )


def _flows(demand: Demand, ranks: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(from, to, bytes) between different ranks."""
    if demand.pair_bytes > 0.0:
        sources, targets = np.nonzero(~np.eye(ranks, dtype=bool))
        return sources, targets, np.full(len(sources), demand.pair_bytes)
    apart = demand.flow_from != demand.flow_to
    return demand.flow_from[apart], demand.flow_to[apart], demand.flow_bytes[apart]


def _bytes_of_links(
    platform: Platform, keys: list[np.ndarray], amounts: list[np.ndarray]
) -> dict[int, float]:
    """Bytes over each link, of those that hosts exchange: source * hosts + target, bytes."""
    found: dict[int, float] = {}
    if not keys:
        return found
    pairs, place = np.unique(np.concatenate(keys), return_inverse=True)
    sizes = np.bincount(place, np.concatenate(amounts), len(pairs))
    most = np.argsort(-sizes, kind="stable")[:MOST_PAIRS]
    for pair, size in zip(pairs[most].tolist(), sizes[most].tolist(), strict=True):
        try:
            parts = platform.route_parts(*divmod(pair, len(platform.hosts)))
        except RouteError:
            continue  # told by the simulation, if it comes to that
        for link in set(parts.links):
            found[link] = found.get(link, 0.0) + size
    return found
