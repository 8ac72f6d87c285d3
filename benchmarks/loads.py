"""The benchmark scenarios: a platform and its load, made from a seed, told to both simulators.

    python benchmarks/loads.py SCENARIO DIR

writes platform.xml, load.txt (for tests/simgrid/ptasks.cpp) and tasks.json.
"""

from __future__ import annotations

import heapq
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ptaskmodel import Delay, Flow, HomogeneousWork, ParallelTask, Platform, Task, load_platform

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
    """A platform as XML and the jobs on it, in order of start.

    Jobs whose flows are ``explicit`` are told to both simulators as lists of flows.
    """

    platform_xml: str
    jobs: tuple[Job, ...]
    explicit: bool = False


def flows(job: Job) -> list[tuple[int, int, float]]:
    """The flows of a job: from rank, to rank, bytes."""
    n = len(job.hosts)
    if job.pattern == "all":
        return [(i, j, job.bytes) for i in range(n) for j in range(n) if i != j]
    return [(i, (i + 1) % n, job.bytes) for i in range(n)]


def simgrid_lines(scenario: Scenario) -> Iterator[str]:
    """The load in the language of tests/simgrid/ptasks.cpp."""
    for k, job in enumerate(scenario.jobs):
        hosts = " ".join(job.hosts)
        if job.pattern == "delay":
            yield f"sleep j{k} {job.start_s!r} {hosts} {job.flops!r}"
        elif scenario.explicit:
            n, found = len(job.hosts), flows(job)
            amounts = " ".join([repr(job.flops)] * n)
            listed = " ".join(f"{i} {j} {amount!r}" for i, j, amount in found)
            yield f"ptask j{k} {job.start_s!r} {n} {hosts} {amounts} {len(found)} {listed}"
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
            common = {"id": f"j{k}", "start_s": job.start_s}
            found.append(ParallelTask(job.hosts, flops=job.flops, flows=flows(job), **common))
    return found


def tasks_file(scenario: Scenario) -> dict[str, Any]:
    """The load as a tasks file; explicit flows are listed."""
    entries, works = [], {}
    for k, job in enumerate(scenario.jobs):
        entry: dict[str, Any] = {"id": f"j{k}", "start": job.start_s, "hosts": job.hosts}
        if job.pattern == "delay":
            entry["delay"] = job.flops
        elif scenario.explicit:
            entry |= {"cpu": job.flops, "flows": flows(job)}
        else:
            entry["profile"] = works.setdefault((job.flops, job.bytes), f"w{len(works)}")
        entries.append(entry)
    profiles = {
        name: {"type": "parallel_homogeneous", "cpu": flops, "com": amount}
        for (flops, amount), name in works.items()
    }
    return {"profiles": profiles, "tasks": entries}


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


# Sizes of flows of a web search, B, at these parts of all flows: M. Alizadeh et al., "Data center
# TCP (DCTCP)", 2010, rounded.
SEARCH = (
    (0.0, 1e3), (0.15, 6e3), (0.2, 13e3), (0.3, 19e3), (0.4, 33e3), (0.53, 53e3), (0.6, 133e3),
    (0.7, 667e3), (0.8, 1.333e6), (0.9, 3.333e6), (0.97, 6.667e6), (1.0, 20e6),
)  # fmt: skip


def wire_flows(count: int, load: float) -> tuple[Platform, list[Flow]]:
    """A fat tree of 1,024 hosts (k = 16), and flows between random hosts of it.

    count: of flows. load: the part of what hosts can send that they offer together.
    """
    topology = ' topology="FAT_TREE" topo_parameters="3;8,8,16;1,8,8;1,1,1"'
    with tempfile.TemporaryDirectory() as there:
        path = Path(there) / "platform.xml"
        path.write_text(cluster(1024, topology))
        platform = load_platform(path)
    rng = np.random.default_rng(1)
    parts, sizes = zip(*SEARCH, strict=True)
    size_B = np.exp(np.interp(rng.random(count), parts, np.log(sizes)))
    between_s = size_B.mean() / (load * 1024 * BANDWIDTH_BPS)
    starts = np.cumsum(rng.exponential(between_s, count))
    source = rng.integers(1024, size=count)
    target = (source + 1 + rng.integers(1023, size=count)) % 1024
    ends = zip(source.tolist(), target.tolist(), size_B.tolist(), starts.tolist(), strict=True)
    return platform, [Flow(f"h{a}", f"h{b}", size, start_s=date) for a, b, size, date in ends]


# --- loads ---------------------------------------------------------------------------------------


def open_load(
    rng: random.Random,
    size: int,
    count: int,
    between_s: float,
    least: int,
    most: int,
    pattern: str = "all",
) -> tuple[Job, ...]:
    """Jobs that arrive at random on random hosts, whoever is there already.

    Alone, a job computes for 10 to 50 s and each of its hosts sends for as long.
    """
    jobs, date = [], 0.0
    for _ in range(count):
        date += rng.expovariate(1.0 / between_s)
        n = rng.randint(least, most)
        hosts = tuple(f"h{i}" for i in rng.sample(range(size), n))
        flops = SPEED_FLOPS * rng.uniform(10.0, 50.0)
        messages = n if pattern == "all" else 1
        amount = BANDWIDTH_BPS * rng.uniform(10, 50) / messages
        jobs.append(Job(date, hosts, pattern, flops, amount))
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
    busy: list[tuple[float, list[int]]] = []  # until when, which hosts, the lowest first
    jobs, now = [], 0.0
    for _ in range(count):
        n = rng.randint(least, most)
        while len(free) < n:
            now, hosts = heapq.heappop(busy)
            while busy and busy[0][0] == now:
                hosts = sorted(hosts + heapq.heappop(busy)[1])
            missing = n - len(free)
            free += hosts[:missing]
            if hosts[missing:]:
                heapq.heappush(busy, (now, hosts[missing:]))
        free.sort()
        hosts = free[:n]
        del free[:n]
        seconds, talk = rng.choice(kinds)
        heapq.heappush(busy, (now + 2.0 * seconds, hosts))
        messages = n - 1 if pattern == "all" else 1
        amount = BANDWIDTH_BPS * seconds * talk / messages
        taken = tuple([names[i] for i in hosts])
        jobs.append(Job(now, taken, pattern, SPEED_FLOPS * seconds, amount))
    return tuple(jobs)


def crossbar_all() -> Scenario:
    rng = random.Random("crossbar all")
    return Scenario(cluster(1024), open_load(rng, 1024, 600, 0.6, 16, 16), explicit=True)


def crossbar_ring() -> Scenario:
    rng = random.Random("crossbar ring")
    jobs = open_load(rng, 1024, 1500, 0.9, 4, 32, "ring")
    return Scenario(cluster(1024), jobs, explicit=True)


def backbone_all() -> Scenario:
    rng = random.Random("backbone all")
    extra = f' bb_bw="{128 * BANDWIDTH_BPS!r}Bps" bb_lat="1us"'
    return Scenario(cluster(1024, extra), open_load(rng, 1024, 300, 1.0, 16, 16), explicit=True)


def fat_tree_all() -> Scenario:
    rng = random.Random("fat tree all")
    return Scenario(fat_tree(32, 8), exclusive_load(rng, 1024, 1500, "all"), explicit=True)


def fat_tree_ring() -> Scenario:
    rng = random.Random("fat tree ring")
    return Scenario(fat_tree(32, 8), exclusive_load(rng, 1024, 4000, "ring"), explicit=True)


def all_to_all_256() -> Scenario:
    rng = random.Random("all to all")
    return Scenario(cluster(256), open_load(rng, 256, 16, 40.0, 256, 256), explicit=True)


def delays() -> Scenario:
    rng = random.Random("delays")
    jobs = [
        Job(rng.uniform(0, 1e5), (f"h{k % 256}",), "delay", rng.uniform(1, 1e3), 0.0)
        for k in range(8_000)
    ]
    return Scenario(cluster(256), tuple(sorted(jobs, key=lambda job: job.start_s)))


def batch_day(count: int) -> Scenario:
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
    "crossbar-all-to-all": crossbar_all,
    "crossbar-ring": crossbar_ring,
    "backbone-all-to-all": backbone_all,
    "fat-tree-all-to-all": fat_tree_all,
    "fat-tree-ring": fat_tree_ring,
    "all-to-all-256": all_to_all_256,
    "delays": delays,
    "batch-day-subset": lambda: batch_day(3000),
}
SCENARIOS |= {f"platform-{n}": (lambda n=n: growing_platform(n)) for n in (1000, 10_000, 100_000)}
SCENARIOS |= {f"load-{n}": (lambda n=n: growing_load(n)) for n in (15, 30, 60, 120)}
SCENARIOS |= {f"batch-day-{n}": (lambda n=n: batch_day(n)) for n in (1000, 10_000, 100_000, 10**6)}


def write(name: str, place: Path) -> None:
    """Write the files of a scenario."""
    scenario = SCENARIOS[name]()
    (place / "platform.xml").write_text(scenario.platform_xml)
    (place / "load.txt").write_text("\n".join(simgrid_lines(scenario)) + "\n")
    (place / "tasks.json").write_text(json.dumps(tasks_file(scenario)))


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))
