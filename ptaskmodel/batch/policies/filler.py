"""A filler: whatever fits."""

from __future__ import annotations

from collections.abc import Iterator

from ptaskmodel.batch.decisions import Decision, Start
from ptaskmodel.batch.policies.orders import Order
from ptaskmodel.batch.view import View


class Filler:
    """Every job that fits starts, in the order of the queue. Large jobs may wait for ever."""

    def __init__(self, order: Order | None = None) -> None:
        self.order = order

    def decide(self, view: View) -> Iterator[Decision]:
        job = view.next_fitting()
        while job is not None:
            yield Start(job, within=view.within)
            job = view.next_fitting(job)
