"""Windows: in which order a few jobs are best placed, all orders tried.

Source: W. Tang, D. Ren, Z. Lan, N. Desai, "Toward balanced and sustainable job scheduling for
production supercomputers", Parallel Computing 39(12), 2013.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from ptaskmodel.batch.forecasts import Forecast
from ptaskmodel.workload.jobs import Job


class Placed(NamedTuple):
    """A job with its place in a forecast."""

    job: Job
    date_s: float
    duration_s: float
    place: int


def best_order(
    jobs: Sequence[Job], durations_s: Sequence[float], plan: Forecast, *, alike: bool
) -> list[Placed]:
    """The jobs in the order that, each placed as early as possible in turn, ends first.

    Of equal orders the first in lexicographic order of positions. plan: left as it is. alike: jobs
    of equal sizes and durations can take each other's places.

    The orders are walked as a tree, which shares the places of their beginnings. What is cut cannot
    change the answer: branches in which some job, placed now, would end no earlier than the best
    order found; the rest, once an order ends as early as the job that ends last alone; orders that
    exchange jobs that are alike.
    """
    alone = [plan.place(job, duration) for job, duration in zip(jobs, durations_s, strict=True)]
    if len(jobs) == 1:
        return [Placed(jobs[0], alone[0][0], durations_s[0], alone[0][1])]
    bound = max(date + duration for (date, _), duration in zip(alone, durations_s, strict=True))
    best_end = inf
    best: list[tuple[int, float, int]] = []
    kinds = [
        (job.num_hosts, duration) if alike else k
        for k, (job, duration) in enumerate(zip(jobs, durations_s, strict=True))
    ]

    def walk(plan: Forecast, left: list[int], places: list[tuple[float, int]], end: float) -> bool:
        """Try the orders of those that are left, with their places if each is next.

        True: no better order can come.
        """
        nonlocal best_end, best
        ends = [date + durations_s[k] for k, (date, _) in zip(left, places, strict=True)]
        reached = max(end, *ends)
        if best and reached >= best_end:
            return False
        if len(left) == 1:
            best_end = reached
            best = [*chosen, (left[0], *places[0])]
            return best_end <= bound
        seen = set()
        for position, k in enumerate(left):
            if kinds[k] in seen:
                continue
            seen.add(kinds[k])
            date, place = places[position]
            following = plan.copy()
            following.put(jobs[k], date, durations_s[k], place)
            rest = left[:position] + left[position + 1 :]
            then = [following.place(jobs[other], durations_s[other]) for other in rest]
            chosen.append((k, date, place))
            over = walk(following, rest, then, max(end, ends[position]))
            chosen.pop()
            if over:
                return True
        return False

    chosen: list[tuple[int, float, int]] = []
    walk(plan, list(range(len(jobs))), alone, 0.0)
    return [Placed(jobs[k], date, durations_s[k], place) for k, date, place in best]
