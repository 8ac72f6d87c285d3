"""First come, first served."""

from __future__ import annotations

from collections.abc import Iterator

from ptaskmodel.batch.decisions import Decision, Start
from ptaskmodel.batch.policies.orders import Order
from ptaskmodel.batch.view import View


class Fcfs:
    """Jobs start in the order of the queue; one that does not fit holds up all behind it."""

    def __init__(self, order: Order | None = None) -> None:
        self.order = order

    def decide(self, view: View) -> Iterator[Decision]:
        for job in view.queue:
            if not view.fits(job):
                return
            yield Start(job, within=view.within)
