"""Random sharing systems of all shapes, each allocation checked by its certificate.

Example: ``python benchmarks/sharing_stress.py --systems 100000``. Prints, for each shape of system,
how many were solved, how many by the slow rungs, how many failed the certificate, and the largest
residual; exits with 1 if any failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable

import numpy as np

from ptaskmodel.sharing import bmf, fairbottleneck_corrected, maxmin
from ptaskmodel.sharing.arrays import Answer, Settings, System, new_scratch
from ptaskmodel.sharing.bottleneck_max_fairness.solver import solve_bmf
from ptaskmodel.sharing.problem import SharingProblem
from ptaskmodel.sharing.rules import RULES

Random = np.random.Generator


def sparse(random: Random, n: int, m: int, values: Callable[[int], np.ndarray]) -> tuple:
    """Each task on a few resources."""
    degree = random.integers(1, min(m, 6) + 1, n)
    task = np.repeat(np.arange(n), degree)
    resource = np.concatenate([random.choice(m, k, replace=False) for k in degree])
    return resource, task, values(task.size)


def ordinary(random: Random) -> dict:
    """Uses and capacities of one scale."""
    n, m = random.integers(1, 13), random.integers(1, 10)
    resource, task, usage = sparse(random, n, m, random.random)
    return {
        "n": n,
        "resource": resource,
        "task": task,
        "usage": usage,
        "capacity": random.random(m) + 0.1,
    }


def ties(random: Random) -> dict:
    """Small integers: everything happens at once."""
    n, m = random.integers(1, 10), random.integers(1, 8)
    resource, task, usage = sparse(random, n, m, lambda k: random.integers(1, 4, k).astype(float))
    return {
        "n": n,
        "resource": resource,
        "task": task,
        "usage": usage,
        "capacity": random.integers(1, 4, m),
    }


def scales(random: Random) -> dict:
    """Uses, capacities and bounds from 1e-3 to 1e15."""
    n, m = random.integers(1, 10), random.integers(1, 8)
    resource, task, usage = sparse(random, n, m, lambda k: 10.0 ** random.uniform(-3, 15, k))
    system = {"n": n, "resource": resource, "task": task, "usage": usage}
    system["capacity"] = 10.0 ** random.uniform(-3, 15, m)
    system["bound"] = np.where(random.random(n) < 0.3, 10.0 ** random.uniform(-15, 15, n), np.inf)
    return system


def degenerate(random: Random) -> dict:
    """Empty rows, uses of 0, capacities of 0, bounds of 0, resources named twice, FATPIPEs."""
    n, m = random.integers(1, 9), random.integers(1, 7)
    size = random.integers(0, 4 * n + 1)
    system = {
        "n": n,
        "resource": random.integers(m, size=size),
        "task": random.integers(n, size=size),
    }
    system["usage"] = random.choice([0.0, 1.0, 1.0, 2.0, 0.3], size)
    system["capacity"] = random.choice([0.0, 1.0, 1.0, 2.0, 5.0], m)
    system["fatpipe"] = random.random(m) < 0.3
    system["bound"] = random.choice([0.0, 0.5, 1.0, np.inf, np.inf], n)
    return system


def parallel_tasks(random: Random) -> dict:
    """All-to-all tasks on a crossbar: host, up link and down link of each host, one backbone."""
    hosts, n = random.integers(2, 12), random.integers(1, 14)
    resource, task, usage = [], [], []
    for i in range(n):
        k = random.integers(1, hosts + 1)
        chosen = random.choice(hosts, k, replace=False)
        flops, size = 10.0 ** random.uniform(8, 11), 10.0 ** random.uniform(5, 9)
        resource += [*chosen, *(hosts + chosen), *(2 * hosts + chosen), 3 * hosts]
        usage += [flops] * k + [size * (k - 1)] * (2 * k) + [size * k * (k - 1)]
        task += [i] * (3 * k + 1)
    capacity = np.repeat([1e9, 1.25e8, 1.25e8, 1.25e9], [hosts, hosts, hosts, 1])
    bound = np.where(random.random(n) < 0.5, random.random(n), np.inf)
    return {
        "n": n,
        "resource": resource,
        "task": task,
        "usage": usage,
        "capacity": capacity,
        "bound": bound,
    }


def dense(random: Random) -> dict:
    """Every task on every resource."""
    n, m = random.integers(2, 20), random.integers(2, 12)
    task, resource = np.divmod(np.arange(n * m), m)
    return {
        "n": n,
        "resource": resource,
        "task": task,
        "usage": random.random(n * m),
        "capacity": np.ones(m),
    }


def circulant(random: Random) -> dict:
    """Square and (nearly) cyclic: several solutions, Newton's method may cycle, long paths."""
    n = random.integers(3, 24)
    line = random.random(n) * (random.random(n) < 0.5)
    line[random.integers(n)] = 1.0
    matrix = np.array([np.roll(line, i) for i in range(n)])
    matrix *= 1.0 + random.choice([0.0, 1e-9, 1e-3]) * random.random((n, n))
    resource, task = np.nonzero(matrix)
    usage = matrix[resource, task]
    return {"n": n, "resource": resource, "task": task, "usage": usage, "capacity": np.ones(n)}


def near_equal(random: Random) -> dict:
    """Three or so tasks whose uses differ little: continua of solutions."""
    n, m = random.integers(2, 7), random.integers(2, 7)
    matrix = random.choice([0.5, 0.75, 1.0, 1.0], (m, n)) * (random.random((m, n)) < 0.85)
    resource, task = np.nonzero(matrix)
    usage = matrix[resource, task]
    return {"n": n, "resource": resource, "task": task, "usage": usage, "capacity": np.ones(m)}


def large(random: Random) -> dict:
    """Up to 300 tasks and 400 resources."""
    n, m = random.integers(20, 301), random.integers(20, 401)
    resource, task, usage = sparse(random, n, m, random.random)
    return {
        "n": n,
        "resource": resource,
        "task": task,
        "usage": usage,
        "capacity": random.random(m) + 0.1,
    }


# The part of the systems that each shape makes up.
SHAPES = {
    ordinary: 0.16,
    ties: 0.12,
    scales: 0.16,
    degenerate: 0.14,
    parallel_tasks: 0.14,
    dense: 0.08,
    circulant: 0.08,
    near_equal: 0.1,
    large: 0.02,
}


def random_system(random: Random) -> tuple[str, SharingProblem]:
    """A system of a random shape, half of them with weights, a third with share coefficients."""
    shapes = list(SHAPES)
    make = shapes[random.choice(len(shapes), p=list(SHAPES.values()))]
    system = make(random)
    usage = np.asarray(system["usage"], np.float64)
    name = make.__name__
    if random.random() < 0.3:
        system.setdefault("fatpipe", random.random(len(system["capacity"])) < 0.2)
    if random.random() < 0.3:
        system.setdefault(
            "bound", np.where(random.random(system["n"]) < 0.5, random.random(system["n"]), np.inf)
        )
    if random.random() < 0.5:
        system["weight"] = random.choice(
            [0.25, 1.0, 2.0, random.random() + 0.01, 100.0], system["n"]
        )
    kind = random.random()
    if kind < 0.15:
        system["share"] = usage / random.integers(1, 9, usage.size)
        name += ", connections"
    elif kind < 0.3:
        system["share"] = usage * 10.0 ** random.uniform(-2, 2, usage.size)
        name += ", any shares"
    return name, SharingProblem.from_triplets(**system)


def is_hard(problem: SharingProblem) -> bool:
    """Whether the quick kernel leaves the system to the slow rungs."""
    scratch = new_scratch(problem, RULES["bmf"])
    return solve_bmf(System.of(problem), Settings(), Answer.room(problem), *scratch) != 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", type=int, default=100_000, help="how many (100000)")
    parser.add_argument("--seed", type=int, default=1, help="of the random numbers (1)")
    parser.add_argument("--all-rules", action="store_true", help="check the other rules too")
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    solvers = [bmf, maxmin, fairbottleneck_corrected] if options.all_rules else [bmf]
    count, hard, failed = defaultdict(int), defaultdict(int), defaultdict(int)
    worst, slowest = defaultdict(float), defaultdict(float)
    for number in range(options.systems):
        name, problem = random_system(random)
        count[name] += 1
        hard[name] += is_hard(problem)
        for solver in solvers:
            begin = time.perf_counter()
            certificate = solver(problem).certificate
            slowest[name] = max(slowest[name], time.perf_counter() - begin)
            worst[name] = max(worst[name], certificate.residual)
            if not certificate.ok:
                failed[name] += 1
                print(f"system {number}, {name}: {certificate}", flush=True)
    print(f"{'shape':28}{'systems':>9}{'hard':>7}{'failed':>8}{'residual':>11}{'slowest':>10}")
    for name in sorted(count):
        print(
            f"{name:28}{count[name]:9d}{hard[name]:7d}{failed[name]:8d}{worst[name]:11.1e}"
            f"{slowest[name]:9.3f}s"
        )
    print(
        f"{'all':28}{options.systems:9d}{sum(hard.values()):7d}{sum(failed.values()):8d}"
        f"{max(worst.values()):11.1e}{max(slowest.values()):9.3f}s"
    )
    return 1 if sum(failed.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
