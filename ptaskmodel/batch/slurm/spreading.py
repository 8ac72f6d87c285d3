"""How the CPUs and the memory of a job are dealt among its nodes."""

from __future__ import annotations

from collections.abc import Sequence

from ptaskmodel.batch.slurm.choice import Chosen, Offer, Picking, Wanted
from ptaskmodel.batch.slurm.needs import ALL, PER_CPU, Need


def dealt(need: Need, chosen: Chosen) -> list[int]:
    """CPUs on each node, in order of index: a task on each, then round after round."""
    step = need.cpus_per_task
    limits = dict(chosen)
    order = sorted(limits)
    left = need.cpus
    counts = dict.fromkeys(order, 0)
    while left > 0:
        before = left
        for node in order:
            if left > 0 and counts[node] + step <= limits[node]:
                counts[node] += step
                left -= step
        if left == before:
            break
    return [max(counts[node], step if limits[node] >= step else 1) for node in order]


def spread(offers: Sequence[Offer], wanted: Wanted) -> Chosen | None:
    """As many nodes as may be, each with a piece at least."""
    nodes = min(wanted.most, len(offers), max(1, wanted.cpus // wanted.core))
    picking = Picking(wanted._replace(least=max(wanted.least, nodes), nodes=nodes))
    for offer in offers[:nodes]:
        picking.share(offer)
    return picking.chosen if picking.done else None


def memory_of(need: Need, real: int, cpus: int) -> int:
    """MiB that a job takes of a node on which it has so many CPUs."""
    assert need.memory is not None
    kind, amount = need.memory
    if kind == ALL:
        return real
    return amount * cpus if kind == PER_CPU else amount
