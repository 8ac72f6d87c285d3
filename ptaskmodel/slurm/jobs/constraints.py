"""Apply a job's constraint (nodes of one kind, or numbers of each kind) to any selection of nodes.

Source: `_get_req_features` and `_pick_best_nodes` (starts), `_try_sched` (plans) of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.slurm.jobs.needs import Need
from ptaskmodel.slurm.jobs.record import Allocation

Dated = tuple[float, Allocation]


def by_constraint(
    need: Need, within: Mask, ask: Callable[[Need, Mask], Allocation | None]
) -> Allocation | None:
    """What a job gets, where `ask` says so of a need without such a constraint.

    need: of the job. within: the nodes to look at.

    Nodes of one kind: the first kind that will do.
    """
    if not need.ways and not need.portions:
        return ask(need, within)
    if need.ways:
        return next(filter(None, (ask(way, within) for way in need.ways)), None)
    required = _of_portions(need, within, ask)
    if required is None:
        return None
    count = required.bit_count()
    least = max(need.least, count)
    if least > need.most:
        return None
    whole = replace(
        need,
        required=required,
        least=least,
        wanted=max(least, need.portions[-1][1]),  # no more, even if it gave a range
        cpus=max(need.cpus, count),
        kind=(need.kind, required),
        portions=(),
    )
    return ask(whole, within)


def exceeds(need: Need, within: Mask, ask: Callable[[Need, Mask], Allocation | None]) -> bool:
    """Return whether named nodes and those of all portions are more than the job may have.

    need, within, ask: see `by_constraint`.
    """
    required = _of_portions(need, within, ask)
    return required is not None and required.bit_count() > need.most


def _of_portions(
    need: Need, within: Mask, ask: Callable[[Need, Mask], Allocation | None]
) -> Mask | None:
    """Return named nodes and those of all portions; None: there are too few of one kind.

    Named nodes are the job's, but no portion need have them; behind one in brackets, none may.
    """
    required, taken, is_apart = 0, need.required, False
    for place, portion in enumerate(need.portions):
        found = ask(_part(need, place, required, taken if is_apart else 0), within)
        if found is None:
            return None
        is_apart |= portion[2]
        if not is_apart:
            required |= found.nodes
        taken |= found.nodes
    return taken


def _part(need: Need, place: int, required: Mask, apart: Mask) -> Need:
    """What a job needs of one portion: as many CPUs as nodes, on other nodes than ``apart``."""
    nodes, count, _ = need.portions[place]
    return replace(
        need,
        nodes=need.nodes & nodes & ~apart,
        required=required,
        least=max(count, required.bit_count()),
        wanted=max(count, required.bit_count()),
        cpus=count,
        kind=(need.kind, place, required, apart),
        joined=True,
        portions=(),
    )


def first_by_constraint(
    need: Need, within: Mask, ask: Callable[[Need, Mask], Dated | None]
) -> Dated | None:
    """When a job gets nodes, and which, where `ask` says so of a need without such a constraint.

    need: of the job. within: the nodes to look at.

    Nodes of one kind: the earliest. So many of each kind: when the last of them can be had.
    """
    if not need.ways and not need.portions:
        return ask(need, within)
    if need.ways:
        found = filter(None, (ask(way, within) for way in need.ways))
        return min(found, key=lambda dated: dated[0], default=None)
    taken, date = 0, 0.0
    for place in range(len(need.portions)):
        part = _part(need, place, need.required & ~taken, taken)
        part = replace(part, cpus=need.cpus, kind=(part.kind, "planned"))
        dated = ask(part, within & ~taken)
        if dated is None:
            return None
        date, taken = max(date, dated[0]), taken | dated[1].nodes
    if taken.bit_count() < max(need.least, need.wanted):
        count = taken.bit_count()
        rest = replace(
            need,
            required=need.required & ~taken,
            least=max(need.least - count, 0),
            wanted=max(need.wanted - count, 0),
            most=need.most - count,
            kind=(need.kind, "rest", taken),
            portions=(),
        )
        dated = ask(rest, within & ~taken)
        if dated is None:
            return None
        taken |= dated[1].nodes
    return date, Allocation(taken, taken.bit_count())
