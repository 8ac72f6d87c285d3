"""What the core costs: activities that come and go, observers, hosts with availability traces.

    python benchmarks/core_costs.py activities [--count 10000000]
    python benchmarks/core_costs.py observers
    python benchmarks/core_costs.py traces

Prints JSON. `activities` is a front end of its own, compiled: 1,000 ranks on as many hosts of a
cluster, each with one activity in flight: a computation, then a message to one of eight neighbours,
of random sizes.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import numpy as np

import ptaskmodel as pm
from ptaskmodel.engine.activity import missing, share, start, stop
from ptaskmodel.engine.driver import Core
from ptaskmodel.engine.loop import due, finished, go_to_next_date, renew_rates
from ptaskmodel.engine.state import DONE, EVENTS_FULL, OK
from ptaskmodel.engine.usage.network_models import network_model
from ptaskmodel.kernels.decorators import entry
from ptaskmodel.kernels.records import NOTHING

RANKS = 1000
NEIGHBOURS = 8


@entry
def churn(s, job, idle, patterns, o):
    """Start the next activity of each rank that has none; why it came back.

    job: how many were started, how many to start, the state of a random generator, how many ranks
    are idle; idle: these ranks. patterns: of each rank its computation, then its messages.
    """
    while True:
        while job[3] > 0 and job[0] < job[1]:
            rank = idle[job[3] - 1]
            drawn = job[2] * 6364136223846793005 + 1442695040888963407
            message = 1 + ((drawn >> 33) & (NEIGHBOURS - 1))
            pattern = patterns[rank, message if (drawn >> 40) & 1 else 0]
            status = missing(s, pattern)
            if status != OK:
                return status
            job[0] += 1
            job[2] = drawn
            job[3] -= 1
            amount = 1e6 + float((drawn >> 20) & 0xFFFFF)
            start(s, pattern, amount, 1.0, np.inf, np.nan, rank, o)
        status = renew_rates(s, o)
        if status != OK:
            return status
        status = go_to_next_date(s, o)
        if status != OK:
            return status
        while due(s, o.time_precision) != NOTHING:
            slot = s.clock[0].argument
            share(s, slot, o.gamma)
            if s.activities[slot].state == DONE:
                idle[job[3]] = s.activities[slot].owner
                job[3] += 1
                stop(s, slot)
        slot = finished(s, o)
        while slot >= 0:
            idle[job[3]] = s.activities[slot].owner
            job[3] += 1
            stop(s, slot)
            slot = finished(s, o)


def cluster(hosts: int) -> pm.Platform:
    """Hosts with a link each, without a backbone."""
    build = pm.Platform.build("cluster")
    build.cluster("c", hosts, speed="1Gf", bandwidth="1GBps", latency="1us")
    return build.finish()


def lone_hosts(hosts: int, in_use: int, traces: bool) -> pm.Platform:
    """Hosts without links; with traces, the speed of those in use changes now and then, that of the
    others every half minute.
    """
    now_and_then = pm.AvailabilityTrace("every day", (0.0, 43200.0), (1.0, 0.5), 86400.0)
    often = pm.AvailabilityTrace("every minute", (0.0, 30.0), (1.0, 0.5), 60.0)
    build = pm.Platform.build("cluster")
    for k in range(hosts):
        trace = now_and_then if k < in_use else often
        build.host(f"c-{k}", speed="1Gf", speed_trace=trace if traces else None)
    return build.finish()


def activities(count: int) -> dict[str, float]:
    platform = cluster(RANKS)
    core = Core(platform, network_model("L07", {}), "bmf")
    byte, flop = pm.ParallelWork.of(2, 0.0, [[0.0, 1.0], [0.0, 0.0]]), pm.ParallelWork.of(1, 1.0)
    shapes = []
    for rank in range(RANKS):
        shapes.append(core.router.shape(flop, (rank,), None)[0])
        others = [(rank + k) % RANKS for k in range(1, NEIGHBOURS + 1)]
        shapes += [core.router.shape(byte, (rank, other), None)[0] for other in others]
    patterns = core.find(shapes)
    core.hold(patterns)
    core.route(patterns)
    options, table = core.options, np.array(patterns).reshape(RANKS, 1 + NEIGHBOURS)

    def run(total: int) -> None:
        job, idle = np.array([0, total, 1, RANKS], dtype=np.int64), np.arange(RANKS)
        while True:
            status = int(churn(core.state, job, idle, table, options))
            if status == EVENTS_FULL:
                core.hand_over()
            if not core.serve(status):
                return

    run(2000)
    began = time.perf_counter()
    run(count)
    took_s = time.perf_counter() - began
    return {
        "activities": count,
        "us_per_activity": 1e6 * took_s / count,
        "places": len(core.state.activities),
        "rss_MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def observers() -> dict[str, float]:
    """Cost of an event with an observer, with 1,000 and with 100,000 tasks to come."""

    class Counting(pm.Observer):
        dates = 0

        def stepped(self, simulation: pm.Simulation) -> None:
            self.dates += 1

    platform = cluster(64)
    found = {}
    for tasks in (1000, 100_000, 1000, 100_000):
        simulation = pm.Simulation(platform)
        works = [pm.Execution(f"c-{k % 64}", 1e9, start_s=float(k)) for k in range(tasks)]
        simulation.add_all(works)
        simulation.observe(counting := Counting())
        simulation.run(1.0)
        began = time.perf_counter()
        simulation.run(900.0)
        found[f"us_per_event_{tasks}_tasks"] = (
            1e6 * (time.perf_counter() - began) / max(counting.dates, 1)
        )
    return found


def traces() -> dict[str, float]:
    """Cost of an event on 100,000 hosts, with and without a trace on each; 1,000 are in use."""
    platforms = {
        "without": lone_hosts(100_000, 1000, False),
        "with": lone_hosts(100_000, 1000, True),
    }
    found: dict[str, list[float]] = {name: [] for name in platforms}
    for _ in range(4):
        for name, platform in platforms.items():
            simulation = pm.Simulation(platform)
            tasks = [
                pm.Execution(f"c-{k % 1000}", 1e9 * (1 + k % 7), start_s=k / 100)
                for k in range(50_000)
            ]
            simulation.add_all(tasks)
            simulation.run(0.001)
            began = time.perf_counter()
            simulation.run()
            found[name].append(1e6 * (time.perf_counter() - began) / simulation.events)
    return {f"us_per_event_{name}": min(times) for name, times in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("activities", "observers", "traces"))
    parser.add_argument("--count", type=int, default=10_000_000)
    options = parser.parse_args()
    found = {
        "activities": lambda: activities(options.count),
        "observers": observers,
        "traces": traces,
    }[options.what]()
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
