"""Who slowed whom: the seconds that each job lost, divided among its neighbours.

A job lost its execution time minus the time alone, on the same hosts, of the part that it did. The
charges against its neighbours (see `recording.neighbours`) are scaled so that their sum is what it
lost. (If the same resource limits the job alone too, no scaling is needed: its rate is the part of
the capacity that the others leave.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ptaskmodel.batch.schedule import Schedule


def lost_seconds(
    schedule: Schedule,
    alone_s: Sequence[float],
    charges: Mapping[tuple[int, int], float],
    attempt_of_task: Mapping[int, int],
) -> list[tuple[str, str, float]]:
    """(job, neighbour, seconds that the neighbour cost the job), by job, the worst first.

    attempt_of_task: number of the attempt that each task of the simulation belongs to. Jobs that
    were cut off are left out where it is not known how far they were: so is what they lost.
    """
    by_attempt: dict[int, dict[int, float]] = {}
    for (task, other), charge in charges.items():
        victim, culprit = attempt_of_task[task], attempt_of_task[other]
        if victim != culprit:
            part = by_attempt.setdefault(victim, {})
            part[culprit] = part.get(culprit, 0.0) + charge
    ids = {attempt.number: attempt.job.id for attempt in schedule.attempts}
    found = []
    for attempt, alone in zip(schedule.ended(), alone_s, strict=True):
        assert attempt.end_s is not None
        assert attempt.start_s is not None
        ran = attempt.end_s - attempt.start_s - attempt.suspended_s(attempt.end_s)
        lost = ran - attempt.overhead_s - attempt.part_done * alone
        part = by_attempt.get(attempt.number, {})
        total = sum(part.values())
        if total <= 0 or not lost > 0:
            continue
        seconds = [(ids[other], lost * charge / total) for other, charge in part.items()]
        seconds.sort(key=lambda entry: -entry[1])
        found += [(attempt.job.id, other, cost) for other, cost in seconds]
    return found
