"""Who has run for longer than its limit, or than its reservation, allows."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from ptaskmodel.batch.slurm.conf.facts import Conf, Partition
from ptaskmodel.batch.slurm.record import RUNNING, JobRecord

# Jobs and their numbers, by the ends of their limits (Unix s).
ByEnd = Sequence[tuple[float, int, JobRecord]]


def over_time_s(conf: Conf, partition: Partition) -> float:
    """How long after its limit a job is killed at the next check, s; inf: never."""
    own = partition.over_time_limit_min
    return 60 * (conf.over_time_limit_min if own is None else own)


def over_limit(conf: Conf, by_end: ByEnd, now: int) -> list[JobRecord]:
    """Those who run and whose time limit is over."""
    over = []
    for end, _, job in by_end:
        if end > now:
            break
        if job.state != RUNNING or job.limit_s == inf:
            continue
        if job.victim or now >= end + over_time_s(conf, job.partition):
            over.append(job)
    return over


def outstaying(
    conf: Conf, by_end: ByEnd, now: int, known: Sequence[JobRecord] = ()
) -> list[JobRecord]:
    """Who runs in a reservation that is over, apart from some who are known."""
    before = now - conf.resv_over_run_min * 60
    return [
        job
        for _, _, job in by_end
        if job.reservation is not None
        and job.reservation.end_s < before
        and job.state == RUNNING
        and job not in known
    ]
