"""Choose among whole nodes: runs of consecutive nodes, the tightest sufficient run first.

`Linear` and `Tree.choose_linear` use it; select/cons_tres has its own way (`fitting`). The steps of
a choice are in `plugin`.
Source: `_job_test` of select/linear in Slurm 22.05 (see the guide).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ptaskmodel.slurm.jobs.needs import Wanted


class Offer(NamedTuple):
    """A node that will do: its index, its CPUs, whether it must be."""

    node: int
    cpus: int
    required: bool = False


class _Run:
    """Consecutive offers, without those that must be.

    anchor: where the first of those stands among the others; None if there is none.
    """

    __slots__ = ("anchor", "cpus", "offers")

    def __init__(self) -> None:
        self.offers: list[Offer] = []
        self.cpus = 0
        self.anchor: int | None = None

    def add(self, offer: Offer) -> None:
        if offer.required:
            self.anchor = len(self.offers) if self.anchor is None else self.anchor
            return
        self.offers.append(offer)
        self.cpus += offer.cpus


def _runs_of(offers: Sequence[Offer]) -> list[_Run]:
    """Runs of consecutive offers, which are given in order of their index."""
    found: list[_Run] = []
    last = -2
    for offer in offers:
        if offer.node != last + 1:
            found.append(_Run())
        found[-1].add(offer)
        last = offer.node
    return [run for run in found if run.offers]


class Picking:
    """What is still wanted while nodes are taken. chosen: their indices."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.cpus = wanted.cpus
        self.nodes = max(wanted.least, wanted.nodes)
        self.room = wanted.most
        self.chosen: list[int] = []

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
        self.chosen.append(offer.node)
        self.cpus -= offer.cpus
        self.nodes -= 1
        self.room -= 1


def choose(offers: Sequence[Offer], wanted: Wanted) -> list[int] | None:
    """The nodes of a job, those that it requires first; None if they do not suffice.

    They are those of the best runs, or the largest, where small ones might not suffice.
    """
    picking = Picking(wanted)
    for offer in offers:
        if offer.required:
            picking.take(offer)
    fewest = min((offer.cpus for offer in offers), default=0)
    differ = any(offer.cpus != fewest for offer in offers)
    if differ and picking.cpus > fewest * picking.nodes:
        _take_largest(picking, [offer for offer in offers if not offer.required])
    else:
        _take_runs(picking, _runs_of(offers), anchored=bool(picking.chosen))
    return picking.chosen if picking.done or picking.enough else None


def _take_largest(picking: Picking, offers: Sequence[Offer]) -> None:
    """Take the nodes with most CPUs; of equals those of highest index first."""
    for offer in sorted(offers, key=lambda offer: (-offer.cpus, -offer.node)):
        if picking.done or picking.full:
            return
        picking.take(offer)


def _take_runs(picking: Picking, runs: list[_Run], *, anchored: bool) -> None:
    """Take from run after run; anchored: whether some nodes are required."""
    contiguous = picking.wanted.contiguous
    while runs and not picking.done and not picking.full:
        best = _best(runs, picking, together=contiguous and anchored)
        if best is None or (contiguous and not _suffices(best, picking)):
            return
        _take_run(best, picking)
        runs.remove(best)


def _suffices(run: _Run, picking: Picking) -> bool:
    return run.cpus >= picking.cpus and len(run.offers) >= picking.least_left


def _best(runs: Sequence[_Run], picking: Picking, *, together: bool) -> _Run | None:
    """The run to take from: the first with required nodes, unless a later one is tighter.

    together: whether all nodes must be in the run of those that are required.
    """
    if together:
        runs = [run for run in runs if run.anchor is not None]
        if len(runs) != 1:
            return None
    best, fits = runs[0], _suffices(runs[0], picking)
    for run in runs[1:]:
        suffices = _suffices(run, picking)
        is_first_required = best.anchor is None and run.anchor is not None
        is_tighter = suffices and (not fits or run.cpus < best.cpus)
        if is_first_required or is_tighter or (not suffices and run.cpus > best.cpus):
            best, fits = run, suffices
    return best


def _take_run(run: _Run, picking: Picking) -> None:
    offers = run.offers
    if run.anchor is not None:
        offers = offers[run.anchor :] + offers[: run.anchor][::-1]
    for offer in offers:
        if picking.done or picking.full:
            return
        picking.take(offer)
