"""What is legal in a tasks file but surely not meant: findings with their JSON pointers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ptaskmodel.errors import RouteError
from ptaskmodel.platform import Platform
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.validate import Finding, Found, check_document, told_once
from ptaskmodel.workload.works import ParallelWork, Work

LONG_S = 10 * 365 * 24 * 3600.0
SHORT_S = 1e-6
# Flows of a work that are tried on their routes; the others are surely of the same kind.
MAX_FLOWS = 2000
INFINITY = float("inf")


def check_tasks(
    document: Mapping[str, Any], tasks: Sequence[Task], platform: Platform | None = None
) -> list[Finding]:
    """Findings about a tasks file that was read without a mistake, in the order of the file.

    document: the JSON document; tasks: what was read from it; platform: has all their hosts. What
    several tasks of a profile have in common is told once.
    """
    on_platform = () if platform is None else _on_platform(tasks, platform)
    return told_once((*check_document(document, tasks), *on_platform))


def _on_platform(tasks: Sequence[Task], platform: Platform) -> Iterator[Found]:
    """What the hosts and routes say: never ending, impossible, absurdly long or short."""
    known: dict[tuple[int, tuple[str, ...]], tuple[float, list[tuple[str, str]]]] = {}
    for k, task in enumerate(tasks):
        key = (id(task.work), task.hosts)
        if key not in known:
            known[key] = _alone(task, platform)
        seconds, problems = known[key]
        where = f"/tasks/{k}"
        for kind, text in problems:
            yield Finding(where, kind, text), task.profile
        if problems:
            continue
        if seconds > LONG_S:
            text = f"it takes at least {seconds / 31536000:.3g} years; are its units right?"
            yield Finding(where, "long", text), task.profile
        elif 0 < seconds < SHORT_S:
            text = f"it takes about {seconds:.1g} s; are its units (flop, bytes) right?"
            yield Finding(where, "short", text), task.profile
        elif task.walltime_s is not None and seconds > task.walltime_s:
            text = f"it needs at least {seconds:.6g} s but is stopped after {task.walltime_s:g} s"
            yield Finding(f"{where}/walltime", "walltime", text), task.profile


def _alone(task: Task, platform: Platform) -> tuple[float, list[tuple[str, str]]]:
    """A lower bound of a task's duration (s), and what keeps it from ending: (kind, text)."""
    hosts = [platform.host(name) for name in task.hosts]
    problems: list[tuple[str, str]] = []

    def seconds(work: Work) -> float:
        if work.duration_s is not None:
            return work.duration_s
        flops, flows = _amounts(work, len(hosts))
        return max(computing(flops), sending(flows))

    def computing(flops: list[float]) -> float:
        longest = 0.0
        for host, amount in zip(hosts, flops, strict=True):
            if host.speed_flops > 0:
                longest = max(longest, amount / host.speed_flops)
            elif amount > 0:
                problems.append(("speed 0", f"flop on host {host.name!r}, whose speed is 0"))
        return longest

    def sending(flows: list[tuple[int, int, float]]) -> float:
        longest = 0.0
        for i, j, amount in flows[:MAX_FLOWS]:
            slowest = _slowest_link_Bps(platform, hosts[i].index, hosts[j].index)
            if slowest is None:
                pair = f"{hosts[i].name!r} to {hosts[j].name!r}"
                problems.append(("no route", f"bytes from {pair}, which have no route"))
                break
            longest = max(longest, amount / slowest if slowest > 0 else 0.0)
        return longest

    return task.work.summed(seconds), problems[:1]


def _slowest_link_Bps(platform: Platform, source: int, destination: int) -> float | None:
    """Of a route between two hosts; None where there is none."""
    try:
        parts = platform.route_parts(source, destination)
    except RouteError:
        return None
    if not parts.links and source != destination and parts.extra_latency_s == 0.0:
        return None
    return min((platform.all_links[link].bandwidth_Bps for link in parts.links), default=INFINITY)


def _amounts(work: Work, ranks: int) -> tuple[list[float], list[tuple[int, int, float]]]:
    """Flop of each rank, and flows; of a homogeneous work those of its first rank stand for all."""
    if isinstance(work, ParallelWork):
        ends = work.flow_from.tolist(), work.flow_to.tolist()
        return work.flops.tolist(), list(zip(*ends, work.flow_bytes.tolist(), strict=True))
    demand = work.demand(ranks)
    others = range(1, ranks if demand.pair_bytes > 0 else 1)
    flows = [(0, rank, demand.pair_bytes) for rank in others]
    return np.broadcast_to(demand.flops, ranks).tolist(), flows
