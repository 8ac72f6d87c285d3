"""The benchmark scenarios: a platform and its load, made from a seed, told to both simulators."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ptaskmodel import Delay, HomogeneousWork, ParallelTask, Task

HEADER = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<zone id="world" routing="Full">
"""
SPEED_FLOPS = 1e9
BANDWIDTH_BPS = 1.25e9


@dataclass(frozen=True, slots=True)
class Job:
    """One job: ``pattern`` is all (to all), ring, or delay (``flops`` are then seconds)."""

    start_s: float
    hosts: tuple[str, ...]
    pattern: str
    flops: float
    bytes: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """A platform as XML and the jobs on it, in order of start."""

    platform_xml: str
    jobs: tuple[Job, ...]


def simgrid_lines(scenario: Scenario) -> Iterator[str]:
    """The load in the language of tests/simgrid/ptasks.cpp."""
    for k, job in enumerate(scenario.jobs):
        hosts = " ".join(job.hosts)
        if job.pattern == "delay":
            yield f"sleep j{k} {job.start_s!r} {hosts} {job.flops!r}"
        else:
            amounts = f"{job.flops!r} {job.bytes!r}"
            yield f"{job.pattern} j{k} {job.start_s!r} {len(job.hosts)} {hosts} {amounts}"


def tasks(scenario: Scenario) -> list[Task]:
    """The load as tasks; jobs with equal amounts share their work."""
    works: dict[tuple[float, float], HomogeneousWork] = {}
    found: list[Task] = []
    for k, job in enumerate(scenario.jobs):
        if job.pattern == "delay":
            found.append(Delay(job.flops, job.hosts, id=f"j{k}", start_s=job.start_s))
        elif job.pattern == "all":
            amounts = (job.flops, job.bytes)
            if amounts not in works:
                works[amounts] = HomogeneousWork(*amounts)
            found.append(Task(job.hosts, works[amounts], id=f"j{k}", start_s=job.start_s))
        else:
            n = len(job.hosts)
            flows = [(i, (i + 1) % n, job.bytes) for i in range(n)]
            common = {"id": f"j{k}", "start_s": job.start_s}
            found.append(ParallelTask(job.hosts, flops=job.flops, flows=flows, **common))
    return found


# --- platforms -----------------------------------------------------------------------------------


def cluster(size: int, extra: str = "") -> str:
    """A flat cluster of ``size`` hosts h0, h1 ... with split-duplex links."""
    return (
        f'{HEADER}<cluster id="c" prefix="h" suffix="" radical="0-{size - 1}" '
        f'speed="{SPEED_FLOPS!r}f" bw="{BANDWIDTH_BPS!r}Bps" lat="1us" '
        f'sharing_policy="SPLITDUPLEX"{extra}/>\n</zone></platform>\n'
    )


def fat_tree(leaves: int, uplinks: int) -> str:
    """A fat tree of leaves of 32 hosts, each with ``uplinks`` links to as many top switches."""
    parameters = f"2;32,{leaves};1,{uplinks};1,1"
    return cluster(32 * leaves, f' topology="FAT_TREE" topo_parameters="{parameters}"')


# --- loads ---------------------------------------------------------------------------------------


def open_load(
    rng: random.Random, size: int, count: int, between_s: float, least: int, most: int
) -> tuple[Job, ...]:
    """Jobs that arrive at random on random hosts, whoever is there already."""
    jobs, date = [], 0.0
    for _ in range(count):
        date += rng.expovariate(1.0 / between_s)
        n = rng.randint(least, most)
        hosts = tuple(f"h{i}" for i in rng.sample(range(size), n))
        flops = SPEED_FLOPS * rng.uniform(10.0, 50.0)
        jobs.append(Job(date, hosts, "all", flops, BANDWIDTH_BPS * rng.uniform(10, 50) / n))
    return tuple(jobs)


def exclusive_load(
    rng: random.Random, size: int, count: int, pattern: str, least: int = 4, most: int = 64
) -> tuple[Job, ...]:
    """Jobs that have their hosts to themselves, first come, first served, and share the network.

    A job reserves its hosts, the lowest that are free, for twice what it would take alone. Amounts
    come from 500 kinds.
    """
    kinds = []
    for _ in range(500):
        seconds = round(rng.uniform(1.0, 60.0), 3)
        kinds.append((seconds, rng.uniform(0.05, 0.4)))
    names = [f"h{i}" for i in range(size)]
    free = list(range(size))
    busy: list[tuple[float, int]] = []
    jobs, now = [], 0.0
    for _ in range(count):
        n = rng.randint(least, most)
        while len(free) < n:
            now, host = heapq.heappop(busy)
            heapq.heappush(free, host)
        hosts = [heapq.heappop(free) for _ in range(n)]
        seconds, talk = rng.choice(kinds)
        for host in hosts:
            heapq.heappush(busy, (now + 2.0 * seconds, host))
        messages = n - 1 if pattern == "all" else 1
        amount = BANDWIDTH_BPS * seconds * talk / messages
        taken = tuple(names[i] for i in hosts)
        jobs.append(Job(now, taken, pattern, SPEED_FLOPS * seconds, amount))
    return tuple(jobs)


def crossbar() -> Scenario:
    rng = random.Random("crossbar")
    return Scenario(cluster(1024), open_load(rng, 1024, 1200, 0.8, 2, 30))


def backbone() -> Scenario:
    rng = random.Random("backbone")
    extra = f' bb_bw="{128 * BANDWIDTH_BPS!r}Bps" bb_lat="1us"'
    return Scenario(cluster(512, extra), open_load(rng, 512, 3000, 2.2, 2, 16))


def fat_tree_all() -> Scenario:
    rng = random.Random("fat tree all")
    return Scenario(fat_tree(32, 8), exclusive_load(rng, 1024, 1000, "all"))


def fat_tree_ring() -> Scenario:
    rng = random.Random("fat tree ring")
    return Scenario(fat_tree(32, 8), exclusive_load(rng, 1024, 4000, "ring"))


def all_to_all_256() -> Scenario:
    rng = random.Random("all to all")
    return Scenario(cluster(256), open_load(rng, 256, 60, 40.0, 256, 256))


def delays() -> Scenario:
    rng = random.Random("delays")
    jobs = [
        Job(rng.uniform(0, 1e5), (f"h{k % 256}",), "delay", rng.uniform(1, 1e3), 0.0)
        for k in range(8_000)
    ]
    return Scenario(cluster(256), tuple(sorted(jobs, key=lambda job: job.start_s)))


def batch_day(count: int = 1_000_000) -> Scenario:
    rng = random.Random("batch day")
    return Scenario(fat_tree(32, 8), exclusive_load(rng, 1024, count, "all"))


def growing_platform(size: int) -> Scenario:
    """The same load on clusters of any size from 1,000 on, spread evenly over the hosts."""
    rng = random.Random("growing platform")
    jobs = open_load(rng, 1000, 10_000, 2.0, 2, 16)
    step = size // 1000
    spread = tuple(
        Job(j.start_s, tuple(f"h{int(h[1:]) * step}" for h in j.hosts), j.pattern, j.flops, j.bytes)
        for j in jobs
    )
    return Scenario(cluster(size), spread)


def growing_load(per_minute: int) -> Scenario:
    """Ever more jobs at a time on the same cluster."""
    rng = random.Random("growing load")
    return Scenario(cluster(1024), open_load(rng, 1024, 2000, 60.0 / per_minute, 2, 16))


SCENARIOS: dict[str, Callable[[], Scenario]] = {
    "crossbar": crossbar,
    "backbone": backbone,
    "fat-tree-all-to-all": fat_tree_all,
    "fat-tree-ring": fat_tree_ring,
    "all-to-all-256": all_to_all_256,
    "delays": delays,
    "batch-day-subset": lambda: batch_day(3000),
    "batch-day": batch_day,
}
SCENARIOS |= {f"platform-{n}": (lambda n=n: growing_platform(n)) for n in (1000, 10_000, 100_000)}
SCENARIOS |= {f"load-{n}": (lambda n=n: growing_load(n)) for n in (15, 30, 60, 120)}
