"""Turn delays and parallel tasks into traces of MPI applications that do the same in sequence.

Every rank sleeps for a delay. In a parallel task each rank computes its flops, then sends its
bytes: an all-to-all if all pairs exchange the same amount, else all messages at once. So what
overlaps in a parallel task is sequential in its trace. Stages follow each other on each rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload import actions as ti
from ptaskmodel.workload.batch_works import SpreadWork
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.trace_work import TraceWork
from ptaskmodel.workload.traces import Trace
from ptaskmodel.workload.works import Work

Action = tuple[int, tuple[float, ...]]
TAG = 0.0
BYTE = 6.0
MOST_ACTIONS = 10_000_000


def trace_profiles(workload: Workload) -> Workload:
    """The workload with every job of a plain work turned into one that replays a trace.

    Raises WorkloadError where the work of a job needs storages, or its trace would be too long.
    """
    works: dict[tuple[int, int], Work] = {}
    jobs = []
    for job in workload.jobs:
        if isinstance(job.work, TraceWork):
            jobs.append(job)
            continue
        key = (id(job.work), job.num_hosts)
        if key not in works:
            works[key] = _replayed(job)
        jobs.append(replace(job, profile=f"{job.profile}@{job.num_hosts}", work=works[key]))
    return workload.with_jobs(
        tuple(jobs), "delays and parallel tasks became traces, which are replayed"
    )


def _replayed(job: Job) -> Work:
    """The work of a job as a trace, or, where some stages are traces already, as one a stage."""

    def plain(part: Work) -> Work:
        return part.plain(job.num_hosts) if isinstance(part, SpreadWork) else part

    def trace(part: Work) -> Work:
        if isinstance(part, TraceWork):
            return part
        return TraceWork(trace_of_work(part, job.num_hosts, job.profile))

    work = job.work.mapped(plain)
    if not work.is_plain:
        raise WorkloadError(
            f"job '{job.id}': profile '{job.profile}' cannot become a trace, as it uses storages, "
            "several cores of a host, or hosts of its own; use parallel tasks, delays or sequences "
            "of them"
        )
    some = any(isinstance(part, TraceWork) for part in work.parts())
    return work.mapped(trace) if some else trace(work)


def trace_of_work(work: Work, ranks: int, name: str) -> Trace:
    """The trace of a plain work on so many ranks. Raises WorkloadError if it would be too long."""
    stages = [
        [list(_actions(stage, rank, ranks)) for rank in range(ranks)] for stage in work.one_round()
    ]
    count = work.rounds * sum(len(own) for stage in stages for own in stage)
    if count > MOST_ACTIONS:
        raise WorkloadError(
            f"profile '{name}': its trace would have {count:,} actions, more than "
            f"{MOST_ACTIONS:,}; repeat it less"
        )
    actions: list[int] = []
    values: list[float] = []
    first, start = [0], [0]
    for rank in range(ranks):
        once = [action for stage in stages for action in stage[rank]]
        for kind, fields in once * work.rounds:
            actions.append(kind)
            values += fields
            start.append(len(values))
        first.append(len(actions))
    return Trace(
        np.array(actions, dtype=np.int8),
        np.array(first, dtype=np.int64),
        np.array(start, dtype=np.int64),
        np.array(values, dtype=np.float64),
        1.0,
        f"profile '{name}'",
    )


def _actions(work: Work, rank: int, ranks: int) -> Iterator[Action]:
    """What a rank does of a stage."""
    if work.duration_s is not None:
        yield ti.SLEEP, (work.duration_s,)
        return
    asked = work.demand(ranks)
    flops = float(np.broadcast_to(asked.flops, ranks)[rank])
    if flops > 0:
        yield ti.COMPUTE, (flops,)
    if asked.pair_bytes > 0 and ranks > 1:
        yield ti.ALLTOALL, (asked.pair_bytes, asked.pair_bytes, BYTE, BYTE)
    elif len(asked.flow_bytes):
        ends = asked.flow_from.tolist(), asked.flow_to.tolist()
        flows = zip(*ends, asked.flow_bytes.tolist(), strict=True)
        others = [flow for flow in flows if flow[0] != flow[1] and rank in flow[:2]]
        for source, target, size in others:
            if target == rank:
                yield ti.IRECV, (float(source), TAG, size, BYTE)
        for source, target, size in others:
            if source == rank:
                yield ti.ISEND, (float(target), TAG, size, BYTE)
        if others:
            yield ti.WAITALL, ()
