"""Choose among available nodes: runs of consecutive nodes, the tightest sufficient run first.

`linear` calls it; `fitting` has the counterpart for shared nodes.
Source: `_eval_nodes` of select/linear and select/cons_tres in Slurm 22.05 (see the guide).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ptaskmodel.slurm.jobs.needs import Wanted

# (index, CPUs that it offers) of each node chosen.
Chosen = list[tuple[int, int]]


class Offer(NamedTuple):
    """A node that will do: its index, the CPUs that it offers, its weight, whether it must be."""

    node: int
    cpus: int
    weight: int = 0
    required: bool = False


class _Run:
    """Consecutive offers of equal weight, without those that must be.

    anchor: where the first of those stands among the others; None if there is none.
    """

    __slots__ = ("anchor", "cpus", "offers", "weight")

    def __init__(self, weight: int) -> None:
        self.offers: list[Offer] = []
        self.cpus = 0
        self.weight = weight
        self.anchor: int | None = None

    def add(self, offer: Offer) -> None:
        if offer.required:
            self.anchor = len(self.offers) if self.anchor is None else self.anchor
            return
        self.offers.append(offer)
        self.cpus += offer.cpus


def runs_of(offers: Sequence[Offer]) -> list[_Run]:
    """Runs of consecutive offers, cut where the weight changes; offers in order of their index."""
    found: list[_Run] = []
    last = -2
    for offer in offers:
        if offer.node != last + 1 or offer.weight != found[-1].weight:
            found.append(_Run(offer.weight))
        found[-1].add(offer)
        last = offer.node
    return [run for run in found if run.offers]


class Picking:
    """What is still wanted while nodes are taken."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.cpus = wanted.cpus
        self.nodes = max(wanted.least, wanted.nodes)
        self.room = wanted.most
        self.chosen: Chosen = []

    @property
    def done(self) -> bool:
        return self.cpus <= 0 and self.nodes <= 0

    @property
    def full(self) -> bool:
        return self.room <= 0

    @property
    def enough(self) -> bool:
        """Whether the least is reached, if not what was wanted."""
        return self.cpus <= 0 and len(self.chosen) >= self.wanted.least

    @property
    def least_left(self) -> int:
        return self.nodes - (max(self.wanted.least, self.wanted.nodes) - self.wanted.least)

    def take(self, offer: Offer) -> None:
        """Take a node whole."""
        self.give(offer.node, offer.cpus)

    def share(self, offer: Offer) -> None:
        """Take what is needed of a node, leaving a piece for each node still wanted."""
        others = max(0, self.wanted.least - len(self.chosen) - 1)
        left = self.cpus - others * self.wanted.core
        self.give(offer.node, min(offer.cpus, max(left, self.wanted.core)))

    def give(self, node: int, cpus: int) -> None:
        self.chosen.append((node, cpus))
        self.cpus -= cpus
        self.nodes -= 1
        self.room -= 1


def choose(
    offers: Sequence[Offer], wanted: Wanted, *, pack: bool, take: Callable[[Picking, Offer], None]
) -> Chosen | None:
    """The nodes of the best runs, in order of their choice; None if they do not suffice.

    pack: whether one node that has all that is missing is taken before others, the one with the
    fewest CPUs. take: how a node is taken.
    """
    picking = Picking(wanted)
    for offer in offers:
        if offer.required:
            take(picking, offer)
    if picking.done:
        return picking.chosen
    runs = runs_of(offers)
    while runs and not picking.full:
        best = _best(runs, picking)
        if wanted.contiguous and not _sufficient(best, picking):
            break
        _take_run(best, picking, pack, take)
        if picking.done:
            return picking.chosen
        runs.remove(best)
    return picking.chosen if picking.enough else None


def _sufficient(run: _Run, picking: Picking) -> bool:
    return run.cpus >= picking.cpus and len(run.offers) >= picking.least_left


def _best(runs: list[_Run], picking: Picking) -> _Run:
    """The run to take from: with required nodes, then of least weight, then the tightest."""

    def key(run: _Run) -> tuple[bool, int, bool, int]:
        suffices = _sufficient(run, picking)
        return (run.anchor is None, run.weight, not suffices, run.cpus if suffices else -run.cpus)

    return min(runs, key=key)


def _take_run(
    run: _Run, picking: Picking, pack: bool, take: Callable[[Picking, Offer], None]
) -> None:
    offers = run.offers
    if run.anchor is not None:
        offers = offers[run.anchor :] + offers[: run.anchor][::-1]
    elif pack and picking.nodes <= 1:
        fitting = [offer for offer in offers if offer.cpus >= picking.cpus]
        if fitting:
            take(picking, min(fitting, key=lambda offer: offer.cpus))
            return
    for offer in offers:
        if picking.done or picking.full:
            return
        if picking.room == 1 and offer.cpus < picking.cpus:
            continue
        take(picking, offer)
