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
        # Where only whole hosts are counted, their number says at once that a job does not fit.
        free = view.num_hosts if view.counted else view.free
        for job in view.queue:
            if free == 0:
                return
            if job.num_hosts <= free and view.fits(job):
                yield Start(job, within=view.within)
                if not view.counted:
                    free -= job.num_hosts
