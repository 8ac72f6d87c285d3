"""A slow and obvious simulator of parallel tasks, written from the model's description alone.

It shares nothing with the package: plain dictionaries in, plain tuples out, everything computed
anew at every event. It is the judge of the simulation on small cases, and SimGrid is its own judge.

Facts of a platform::

    {"hosts": {name: {"speeds": [flop/s of each pstate], "pstate": 0, "cores": 1}},
     "links": {name: {"bandwidth": B/s, "latency": s, "fatpipe": False}},
     "routes": {(source, destination): ([names of links], latency in s)}}

A task: ``{"id", "start", "hosts": [names], "flops": [flop of each rank], "flows": [[i, j, bytes]],
"after": [ids], "walltime": s, "seconds": s}``; only ``id``, ``start`` and ``hosts`` are needed, and
``seconds`` makes it a pure delay. A profile: ``[kind, element, [[date, value], ...], period]``,
kind one of speed, bandwidth, latency, host_state, link_state. An event: ``[date, what, target,
value]``, what one of bandwidth, latency, pstate, host_off, host_on, link_off, link_on, suspend,
resume, cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

WORK_PRECISION = 1e-5  # absolute, in the unit of the resource
LEAST_REMAINING = 1e-14
LEAST_LATENCY_S = 1e-9
MOST_ROUNDS = 200_000


class Hang(Exception):
    """The solver needs more rounds than one can wait for."""


class Running:
    """A task that has started: its elements, its latency and what remains of it."""

    def __init__(self, task: dict, now: float, simulator: Simulator) -> None:
        self.task = task
        self.start = now
        self.hosts = task["hosts"]
        self.flops = task.get("flops") or [0.0] * len(self.hosts)
        self.flows = [(i, j, b) for i, j, b in task.get("flows", ()) if b > 0]
        self.end = now + task["seconds"] if "seconds" in task else math.inf
        self.killed_at = now + task.get("walltime", math.inf)
        self.suspended = False
        self.enabled_rank = 0
        self.rate = 0.0
        self.last_increment = 0.0
        self.elements = [] if self.is_delay else self._elements(simulator)
        self.links = {name for _, _, links in self._routes(simulator) for name in links}
        self.latency = max(
            (simulator.latency(self.hosts[i], self.hosts[j]) for i, j, _ in self.flows),
            default=0.0,
        )
        works = any(weight > 0 for _, _, weight in self.elements)
        self.remaining = 1.0 if works or self.is_delay else 0.0

    @property
    def is_delay(self) -> bool:
        return "seconds" in self.task

    def _routes(self, simulator: Simulator) -> Iterator[tuple[float, tuple, list[str]]]:
        for i, j, amount in self.flows:
            pair = (self.hosts[i], self.hosts[j])
            yield amount, pair, simulator.facts["routes"][pair][0]

    def _elements(self, simulator: Simulator) -> list[tuple[str, str, float]]:
        """One element per entry of the list of hosts, one per link that the flows cross."""
        by_link: dict[str, float] = {}
        for amount, _, links in self._routes(simulator):
            for name in links:
                if simulator.facts["links"][name]["fatpipe"]:
                    by_link[name] = max(by_link.get(name, 0.0), amount)
                else:
                    by_link[name] = by_link.get(name, 0.0) + amount
        cpu = [("host", h, f) for h, f in zip(self.hosts, self.flops, strict=True)]
        return cpu + [("link", name, amount) for name, amount in by_link.items()]

    def bound(self, simulator: Simulator) -> float:
        """The TCP window and the single core, whichever is tighter; inf without either."""
        best = math.inf
        worst = max(
            (simulator.latency(self.hosts[i], self.hosts[j]) * b for i, j, b in self.flows),
            default=0.0,
        )
        if worst > 0 and simulator.gamma > 0:
            best = simulator.gamma / (2.0 * worst)
        for host, flops in zip(self.hosts, self.flops, strict=True):
            if flops > 0:
                best = min(best, simulator.core_speed(host) / flops)
        return best

    @property
    def enabled(self) -> bool:
        return self.latency <= 0 and not self.suspended and not self.is_delay


class Simulator:
    """The whole state; :func:`simulate` is the way in."""

    def __init__(self, facts: dict, gamma: float, solve: Callable) -> None:
        self.facts = facts
        self.gamma = gamma
        self.solve = solve
        self.pstate = {name: host.get("pstate", 0) for name, host in facts["hosts"].items()}
        self.factor = dict.fromkeys(facts["hosts"], 1.0)
        self.bandwidth = {name: link["bandwidth"] for name, link in facts["links"].items()}
        self.link_latency = {name: link["latency"] for name, link in facts["links"].items()}
        self.off: set[tuple[str, str]] = set()
        self.running: dict[str, Running] = {}
        self.enabled_count = 0

    def core_speed(self, host: str) -> float:
        return self.facts["hosts"][host]["speeds"][self.pstate[host]] * self.factor[host]

    def capacity(self, kind: str, name: str) -> float:
        if kind == "link":
            return self.bandwidth[name]
        return self.facts["hosts"][name].get("cores", 1) * self.core_speed(name)

    def latency(self, source: str, destination: str) -> float:
        links, declared = self.facts["routes"][source, destination]
        if all(self.link_latency[n] == self.facts["links"][n]["latency"] for n in links):
            return declared
        unmoved = sum(self.facts["links"][name]["latency"] for name in links)
        return sum(self.link_latency[name] for name in links) + (declared - unmoved)

    def change(self, what: str, target: str, value: float) -> None:
        """Apply an event or one value of a profile."""
        if what == "bandwidth":
            self.bandwidth[target] = value
        elif what == "latency":
            self.link_latency[target] = value
        elif what == "speed":
            self.factor[target] = value
        elif what == "pstate":
            self.pstate[target] = int(value)
        elif what in ("host_off", "link_off"):
            self.off.add((what.split("_")[0], target))
        elif what in ("host_on", "link_on"):
            self.off.discard((what.split("_")[0], target))
        elif what in ("host_state", "link_state"):
            self.change(what.split("_")[0] + ("_on" if value > 0 else "_off"), target, 0)
        elif target in self.running:
            self.running[target].suspended = what == "suspend"
            if what == "resume":
                self.number(self.running[target])

    def number(self, running: Running) -> None:
        self.enabled_count += 1
        running.enabled_rank = self.enabled_count

    def is_hit(self, running: Running) -> bool:
        used = {("host", h) for h in running.hosts} | {("link", n) for n in running.links}
        return bool(used & self.off)

    def share(self) -> None:
        """Set the rate of every running task."""
        for running in self.running.values():
            running.rate = 0.0
        enabled = sorted(
            (r for r in self.running.values() if r.enabled), key=lambda r: -r.enabled_rank
        )
        rows, bounds = [], []
        for running in enabled:
            rows.append([((k, n), w) for k, n, w in reversed(running.elements) if w > 0])
            bounds.append(running.bound(self))
        used = {resource for row in rows for resource, _ in row}
        capacity = {resource: self.capacity(*resource) for resource in used}
        fatpipe = {
            resource: resource[0] == "link" and self.facts["links"][resource[1]]["fatpipe"]
            for resource in used
        }
        for running, rate in zip(enabled, self.solve(rows, bounds, capacity, fatpipe), strict=True):
            running.rate = rate


def fairbottleneck(rows: list, bounds: list, capacity: dict, fatpipe: dict) -> list[float]:
    """Rates by rounds of equal shares, tasks given newest first, with SimGrid's double charge.

    ``rows[v]`` lists (resource, amount > 0), a resource as often as the task names it.
    """

    def minus(left: float, taken: float) -> float:
        rest = left - taken
        return 0.0 if rest < WORK_PRECISION else rest

    rate = [0.0 if row else 1.0 for row in rows]
    increment = [0.0] * len(rows)
    live = {v for v, row in enumerate(rows) if row}
    left = dict(capacity)
    users: dict = {r: [] for r in left}
    for v, row in enumerate(rows):
        for r, w in row:
            users[r].append((v, w))
    for _ in range(MOST_ROUNDS):
        if not live:
            return rate
        share = {}
        for r in list(left):
            n = sum(1 for v, _ in users[r] if v in live)
            if n == 0:
                del left[r]
            else:
                share[r] = left[r] / (1 if fatpipe[r] else n)
        fixed = set()
        for v in live:
            increment[v] = min(share[r] / w for r, w in rows[v] if r in share)
            if bounds[v] < math.inf:
                increment[v] = min(increment[v], bounds[v] - rate[v])
            rate[v] += increment[v]
            if rate[v] == bounds[v]:
                fixed.add(v)
        live -= fixed
        for r in list(left):
            if fatpipe[r]:
                least = min(w * increment[v] for v, w in users[r])
                left[r] = minus(left[r], min(share[r], least))
            else:
                for v, w in users[r]:
                    left[r] = minus(left[r], w * increment[v])
            if left[r] <= 0:
                del left[r]
                live -= {v for v, _ in users[r]}
    raise Hang("too many rounds")


def profile_dates(profile: list) -> Iterator[tuple[float, float]]:
    """(date, value) of every event of a profile, for ever if it has a period."""
    _, _, points, period = profile
    turn = 0
    while True:
        for date, value in points:
            yield date + turn * (period or 0.0), value
        if period is None:
            return
        turn += 1


class Agenda:
    """What happens at known dates: profiles first, then events, then starts; in order given."""

    def __init__(self, profiles: list, events: list, tasks: list) -> None:
        self.streams = [(p[0], p[1], profile_dates(p)) for p in profiles]
        self.heads = [next(stream, None) for _, _, stream in self.streams]
        self.events = sorted(events, key=lambda e: e[0])
        self.starts = sorted(tasks, key=lambda t: t["start"])

    def next_date(self, profiles_count: bool) -> float:
        dates = [e[0] for e in self.events[:1]] + [t["start"] for t in self.starts[:1]]
        if profiles_count:
            dates += [head[0] for head in self.heads if head is not None]
        return min(dates, default=math.inf)

    def take(self, now: float, simulator: Simulator) -> tuple[list[str], list[dict]]:
        """Apply what is due; the ids to cancel and the tasks whose date has come."""
        for k, (kind, element, stream) in enumerate(self.streams):
            while self.heads[k] is not None and self.heads[k][0] <= now:
                simulator.change(kind, element, self.heads[k][1])
                self.heads[k] = next(stream, None)
        cancelled = []
        while self.events and self.events[0][0] <= now:
            _, what, target, *value = self.events.pop(0)
            if what == "cancel":
                cancelled.append(target)
            else:
                simulator.change(what, target, value[0] if value else 0.0)
        due = []
        while self.starts and self.starts[0]["start"] <= now:
            due.append(self.starts.pop(0))
        return cancelled, due


def simulate(
    facts: dict,
    tasks: list[dict],
    *,
    profiles: list | None = None,
    events: list | None = None,
    gamma: float = 4194304.0,
    solve: Callable = fairbottleneck,
    most_events: int = 100_000,
) -> dict[str, tuple[float | None, float | None, str]]:
    """Run all tasks; {id: (start, finish, state)} with None for a date that never came.

    ``solve(rows, bounds, capacity, fatpipe)`` gives the rates (see :func:`fairbottleneck`).
    """
    simulator = Simulator(facts, gamma, solve)
    agenda = Agenda(profiles or [], events or [], tasks)
    results: dict = {task["id"]: (None, None, "waiting") for task in tasks}
    waiting: list[dict] = []
    now = 0.0

    def end(task_id: str, state: str) -> None:
        running = simulator.running.pop(task_id)
        results[task_id] = (running.start, now, state)

    def start_what_can() -> bool:
        started = False
        for task in list(waiting):
            states = [results[d][2] for d in task.get("after", ())]
            if any(s not in ("waiting", "running", "completed") for s in states):
                waiting.remove(task)
                results[task["id"]] = (None, None, "dependency_failed")
                started = True
            elif all(s == "completed" for s in states):
                waiting.remove(task)
                running = Running(task, now, simulator)
                simulator.number(running)
                simulator.running[task["id"]] = running
                results[task["id"]] = (now, None, "running")
                started = True
        return started

    def settle() -> None:
        """End and start whatever ends and starts at this date."""
        again = True
        while again:
            again = False
            for task_id, running in list(simulator.running.items()):
                done = running.remaining <= 0 and running.enabled
                if done or (running.is_delay and running.end <= now):
                    end(task_id, "completed")
                elif simulator.is_hit(running):
                    end(task_id, "failed")
                elif running.killed_at <= now:
                    end(task_id, "walltime")
                else:
                    continue
                again = True
            again = start_what_can() or again

    for _ in range(most_events):
        settle()  # what completes at this date precedes what breaks at it
        cancelled, due = agenda.take(now, simulator)
        for task_id in cancelled:
            if task_id in simulator.running:
                end(task_id, "cancelled")
        waiting.extend(due)
        settle()
        if not simulator.running and not agenda.starts:
            break
        simulator.share()
        date = agenda.next_date(bool(simulator.running))
        step = min(_next_change(simulator, now), date - now)
        if step == math.inf:
            break
        for running in simulator.running.values():
            _progress(running, step, simulator)
        now = date if step == date - now else now + step
    for task_id, running in simulator.running.items():
        results[task_id] = (running.start, None, "suspended" if running.suspended else "starved")
    return results


def _next_change(simulator: Simulator, now: float) -> float:
    """Seconds until a running task ends, has paid its latency or is killed."""
    best = math.inf
    for running in simulator.running.values():
        best = min(best, running.killed_at - now, running.end - now)
        if running.latency > 0:
            best = min(best, running.latency)
        elif running.rate > 0:
            best = min(best, running.remaining / running.rate)
    return best


def _progress(running: Running, step: float, simulator: Simulator) -> None:
    running.remaining -= running.rate * step
    if running.remaining < LEAST_REMAINING:
        running.remaining = 0.0
    if running.latency > 0:
        running.latency -= step
        if running.latency < LEAST_LATENCY_S:
            running.latency = 0.0
            simulator.number(running)
