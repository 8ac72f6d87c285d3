"""Give parallel-task profiles to jobs of which only the run time is known, by a documented rule.

A job that lasted r seconds on n hosts becomes a parallel task in which
- every host computes r * speed flop: alone, computation takes r seconds;
- the busiest network card carries ``ratio`` * r * bandwidth bytes in each direction that the
  pattern uses: alone, communication takes ratio * r seconds.
Computation and communication progress together. So with ratio <= 1 and no other bottleneck the job
takes r seconds alone (plus the latency of a route), and longer as soon as other jobs leave its
communications less than the share ``ratio`` of the card's bandwidth.

Patterns: ``alltoall`` (every host to every other, equal parts), ``ring`` (each to the next),
``stencil`` (each to its 4 neighbours on a torus as square as possible), ``master`` (the first host
to each other and back). A job on one host only computes.

Delays and parallel tasks can also become traces of MPI applications that do the same in sequence.
Every rank sleeps for a delay. In a parallel task each rank computes its flops, then sends its
bytes: an all-to-all if all pairs exchange the same amount, else all messages at once. So what
overlaps in a parallel task is sequential in its trace. Stages follow each other on each rank.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ptaskmodel.errors import WorkloadError
from ptaskmodel.style.text import number
from ptaskmodel.workload import PATTERNS
from ptaskmodel.workload import actions as ti
from ptaskmodel.workload.batch_works import SpreadWork
from ptaskmodel.workload.jobs import Job, JobTable, Workload, columns_of
from ptaskmodel.workload.traces import Trace
from ptaskmodel.workload.works import HomogeneousWork, ParallelWork, TraceWork, Work


def ptask_profiles(
    workload: Workload,
    *,
    speed_flops: float,
    bandwidth_Bps: float,
    ratio: float = 0.5,
    pattern: str = "alltoall",
) -> Workload:
    """The workload with every delay turned into a parallel task by the rule of this module.

    speed_flops: of a host, flop/s. bandwidth_Bps: of a network card, one direction. ratio:
    communication time over computation time, both alone. Other profiles stay as they are.
    Raises WorkloadError for an unknown pattern or a quantity out of range.
    """
    if pattern not in PATTERNS:
        raise WorkloadError(f"pattern '{pattern}' is unknown; use one of {', '.join(PATTERNS)}")
    for name, value in (("speed", speed_flops), ("bandwidth", bandwidth_Bps)):
        if not 0 < value < math.inf:
            raise WorkloadError(f"{name} is {value:g}; give a positive, finite number")
    if not 0 <= ratio <= 1:
        raise WorkloadError(
            f"the communication ratio is {ratio:g}; give 0 to 1 (above 1, jobs would run "
            "longer alone than in the log)"
        )
    works: dict[tuple[float, int], Work] = {}
    made = columns_of(workload.jobs)
    new, names = list(made["work"]), list(made["profile"])
    for k, (work, hosts) in enumerate(zip(made["work"], made["num_hosts"], strict=True)):
        delay = work.duration_s
        if delay is None:
            continue
        key = (delay, hosts)
        if key not in works:
            works[key] = _work(delay, hosts, speed_flops, bandwidth_Bps * ratio, pattern)
        new[k], names[k] = works[key], f"{pattern}_{delay:.12g}_{hosts}"
    if not works:
        return workload
    note = (
        f"delays became parallel tasks: pattern {pattern}, communication ratio {ratio:g}, "
        f"{number(speed_flops, 'work')} and {number(bandwidth_Bps, 'rate')} per host"
    )
    made |= {"work": new, "profile": names}
    return workload.with_jobs(JobTable.of(made), note, same_dates=True)


def _work(delay_s: float, hosts: int, speed_flops: float, used_Bps: float, pattern: str) -> Work:
    """The parallel task of a job: its busiest card carries ``used_Bps`` all the time."""
    flops, volume = delay_s * speed_flops, delay_s * used_Bps
    if hosts == 1:
        return HomogeneousWork(flops, 0.0)
    if pattern == "alltoall":
        return HomogeneousWork(flops, volume / (hosts - 1))
    pairs = _pairs(pattern, hosts)
    busiest = max(
        max(sum(1 for p in pairs if p[side] == rank) for rank in {p[side] for p in pairs})
        for side in (0, 1)
    )
    flows = [(i, j, volume / busiest) for i, j in pairs] if volume > 0 else []
    return ParallelWork.of(hosts, flops, flows=flows)


@functools.cache
def _pairs(pattern: str, hosts: int) -> tuple[tuple[int, int], ...]:
    """Which rank sends to which, on 2 hosts or more."""
    if pattern == "ring":
        return tuple((rank, (rank + 1) % hosts) for rank in range(hosts))
    if pattern == "master":
        others = range(1, hosts)
        return tuple((0, rank) for rank in others) + tuple((rank, 0) for rank in others)
    width = max(w for w in range(1, math.isqrt(hosts) + 1) if hosts % w == 0)
    height = hosts // width
    pairs = set()
    for rank in range(hosts):
        row, column = divmod(rank, width)
        for down, right in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            other = (row + down) % height * width + (column + right) % width
            if other != rank:
                pairs.add((rank, other))
    return tuple(sorted(pairs))


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
        tuple(jobs), "delays and parallel tasks became traces, which are replayed", same_dates=True
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
