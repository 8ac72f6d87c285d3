"""Find what is legal in a tasks file but surely wrong, on a platform, with JSON pointers.

It also finds tasks that arrive faster than a shared resource can serve them. The command ``check``
calls it after `workload.reading`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ptaskmodel.engine.usage.paths import Paths, flows_of
from ptaskmodel.engine.usage.placement import Clusters, Demands
from ptaskmodel.errors import RouteError, shown
from ptaskmodel.platform import Platform
from ptaskmodel.platform.routing import GivenRoutes
from ptaskmodel.remarks import Account
from ptaskmodel.workload.amounts import FloatArray, IntArray
from ptaskmodel.workload.reading import Finding, Found, check_document, told_once
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import ParallelWork, Work

LONG_S = 10 * 365 * 24 * 3600.0
SHORT_S = 1e-6
# Flows of a work that are tried on their routes; the others are surely of the same kind.
MAX_FLOWS = 2000
INFINITY = float("inf")

# Fewer never wait long; of more, the first are enough.
FEW_TASKS, MOST_TASKS = 1_000, 50_000
# Routes looked at: those of the pairs of hosts that exchange most.
MOST_PAIRS = 10_000
# Stages and flows that are looked at, before it is given up; sums that are kept at once.
MOST_FLOWS = 4_000_000
NOT_SUMMED = "FATPIPE"


def check_tasks(
    document: Mapping[str, Any], tasks: Sequence[Task], platform: Platform | None = None
) -> list[Finding]:
    """Findings about a tasks file that was read without a mistake, in the order of the file.

    document: the JSON document; tasks: what was read from it; platform: has all their hosts. What
    several tasks of a profile have in common is told once.
    """
    on_platform = () if platform is None else _on_platform(tasks, platform)
    return told_once((*check_document(document, tasks), *on_platform))


def check_given_routes(routes: GivenRoutes, platform: Platform, tasks: Sequence[Task]) -> None:
    """Raise RouteError unless a file gives each flow of tasks a walk, and names no other flows.

    routes: what it gives. platform: has the hosts of the tasks. All problems are in the message.
    """
    left = routes.paths.copy()
    fabric = platform.fabric
    account = Account(routes.file, RouteError)
    for k, task in enumerate(tasks):
        name = str(k) if task.id is None else task.id
        if task.connection is not None:
            name = routes.name(name, task.connection)
        hosts = [platform.host(host).index for host in task.hosts]
        for number, source, target in flows_of(task, hosts):
            left.pop((name, number), None)
            if source != target:
                with account.problems():
                    routes.way(fabric, name, number, fabric.node[source], fabric.node[target])
    for (name, number), path in left.items():
        account.problem(
            f"there is no flow {number} of task {shown(name)}; correct the line, or leave it out",
            path.line,
        )
    account.check()


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
            text = (
                f"it takes at least {seconds / 31536000:.3g} years; are its units (flop, bytes) "
                "right?"
            )
            yield Finding(where, "long", text), task.profile
        elif 0 < seconds < SHORT_S:
            text = f"it takes only about {seconds:.1g} s; are its units (flop, bytes) right?"
            yield Finding(where, "short", text), task.profile
        elif task.walltime_s is not None and seconds > task.walltime_s:
            text = (
                f"it needs at least {seconds:.6g} s, but its walltime stops it after "
                f"{task.walltime_s:g} s"
            )
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
                problems.append(("speed 0", f"it computes on host {host.name!r}, whose speed is 0"))
        return longest

    def sending(flows: list[tuple[int, int, float]]) -> float:
        longest = 0.0
        for i, j, amount in flows[:MAX_FLOWS]:
            slowest = _slowest_link_Bps(platform, hosts[i].index, hosts[j].index)
            if slowest is None:
                pair = f"{hosts[i].name!r} to {hosts[j].name!r}"
                problems.append(("no route", f"it sends bytes from {pair}, without a route"))
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


class Load(NamedTuple):
    """What tasks ask of a resource, over what it gives from the first start to the last."""

    value: float
    kind: str
    name: str


def offered_load(platform: Platform, tasks: Sequence[Task]) -> Load | None:
    """The largest load that tasks offer to a host or a link of the platform.

    Tasks that wait for others do not count. None if no time passes between starts, or nothing is
    asked for, or there is too much to look at.
    """
    chosen = [task for task in tasks[:MOST_TASKS] if not task.after]
    starts = [task.start_s for task in chosen]
    span_s = max(starts, default=0.0) - min(starts, default=0.0)
    if span_s <= 0.0:
        return None
    parts: list[Work] = []
    their: list[Task] = []
    looked_at = 0
    for task in chosen:
        if task.work.duration_s is None:
            for part in task.work.one_round():
                looked_at += 1 + _n_flows(part, len(task.hosts))
                if looked_at > MOST_FLOWS:
                    return None
                parts.append(part)
                their.append(task)
    if not parts:
        return None
    flops, pairs, sizes = _asked(platform, parts, their)
    loads = [
        Load(amount / (span_s * host.speed_flops * host.cores), "host", host.name)
        for host, amount in zip(platform.hosts, flops.tolist(), strict=True)
        if amount > 0.0 and host.speed_flops > 0.0
    ]
    for index, amount in enumerate(_bytes_of_links(platform, pairs, sizes).tolist()):
        if amount > 0.0:
            link = platform.all_links[index]
            if link.bandwidth_Bps > 0.0 and link.policy != NOT_SUMMED:
                loads.append(Load(amount / (span_s * link.bandwidth_Bps), "link", link.name))
    return max(loads, key=lambda load: load.value, default=None)


def overload_text(platform: Platform, tasks: Sequence[Task]) -> str | None:
    """Return a sentence if many `tasks` overload a resource of a `platform`, else None."""
    load = offered_load(platform, tasks) if len(tasks) >= FEW_TASKS else None
    if load is None or load.value <= 1.0:
        return None
    return (
        f"the offered load of {load.kind} '{load.name}' is {load.value:.3g}: tasks arrive faster "
        "than it serves them, so they accumulate"
    )


def _n_flows(part: Work, ranks: int) -> int:
    demand = part.demand(ranks)
    return ranks * (ranks - 1) if demand.pair_bytes > 0.0 else len(demand.flow_bytes)


def _asked(
    platform: Platform, parts: Sequence[Work], tasks: Sequence[Task]
) -> tuple[FloatArray, IntArray, FloatArray]:
    """What parts of tasks ask: flop of each host; pairs of hosts (as one number) and their bytes.

    Bytes of a host to itself by one rank are left out.
    """
    n = len(platform.hosts)
    counts = np.array([len(task.hosts) for task in tasks], dtype=np.int64)
    start = np.concatenate(([0], np.cumsum(counts)))
    names = itertools.chain.from_iterable(task.hosts for task in tasks)
    numbers = map(platform.facts.host_index.__getitem__, names)
    hosts = np.fromiter(numbers, np.int64, int(start[-1]))
    rounds = np.array([float(task.work.rounds) for task in tasks])
    asked = Demands.of(parts, [None] * len(parts), start)
    flops = np.bincount(hosts, np.repeat(rounds, counts) * asked.flops, n).astype(np.float64)
    n_flows = np.diff(asked.flow_start)
    apart = asked.flow_from != asked.flow_to
    first = np.repeat(start[:-1], n_flows)[apart]
    keys = [hosts[first + asked.flow_from[apart]] * n + hosts[first + asked.flow_to[apart]]]
    amounts = [(np.repeat(rounds, n_flows) * asked.flow_bytes)[apart]]
    to_all = asked.pair_bytes > 0.0
    for size in np.unique(counts[to_all]).tolist():
        alike = np.flatnonzero(to_all & (counts == size))
        sources, targets = np.nonzero(~np.eye(size, dtype=bool))
        ranks = hosts[start[alike][:, None] + np.arange(size)]
        keys.append((ranks[:, sources] * n + ranks[:, targets]).reshape(-1))
        amounts.append(np.repeat((rounds * asked.pair_bytes)[alike], len(sources)))
    return flops, *_sums(np.concatenate(keys), np.concatenate(amounts), n * n)


def _sums(keys: IntArray, amounts: FloatArray, n: int) -> tuple[IntArray, FloatArray]:
    """The keys below n, each once, and the sum of its amounts, which are above 0."""
    if n <= MOST_FLOWS:
        sums = np.bincount(keys, amounts, n).astype(np.float64)
        found = np.flatnonzero(sums)
        return found, sums[found]
    found, place = np.unique(keys, return_inverse=True)
    return found, np.bincount(place, amounts, len(found)).astype(np.float64)


def _bytes_of_links(platform: Platform, pairs: IntArray, sizes: FloatArray) -> FloatArray:
    """Bytes over each link, of the pairs of hosts that exchange most.

    Where there is no route, the simulation says so if it comes to that.
    """
    n_links, n = len(platform.all_links), len(platform.hosts)
    found = np.zeros(n_links)
    if len(pairs) > MOST_PAIRS:
        most = np.flatnonzero(sizes >= np.partition(sizes, -MOST_PAIRS)[-MOST_PAIRS])
        most = most[np.argsort(-sizes[most], kind="stable")][:MOST_PAIRS]
        pairs, sizes = pairs[most], sizes[most]
    sources, targets = np.divmod(pairs, n)
    paths = Paths(platform, Clusters.of(platform))
    for group in paths.groups(sources, targets) if len(pairs) else ():
        legs = paths.many(sources[group], targets[group])
        route = np.repeat(np.arange(len(group)), np.diff(legs.start))
        once = np.unique(route * n_links + legs.links - n)  # a link counts once on a route
        found += np.bincount(once % n_links, sizes[group[once // n_links]], n_links)
    return found
