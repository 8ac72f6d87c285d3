"""Random sharing systems for the tests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from ptaskmodel.kernels.decorators import INTERPRETED
from ptaskmodel.sharing.problem import SharingProblem

JIT = not INTERPRETED
needs_jit = pytest.mark.skipif(not JIT, reason="too slow without the JIT")


def many(count: int) -> int:
    """As many systems when compiled, a small part of them when not."""
    return count if JIT else max(count // 50, 5)


def random_problem(
    random: np.random.Generator,
    *,
    tasks: int = 8,
    resources: int = 6,
    fatpipes: float = 0.0,
    bounds: float = 0.3,
    repeated: bool = False,
    zeros: float = 0.0,
    weights: bool = False,
    shares: bool = False,
    scale: tuple[float, float] = (0.0, 0.0),
) -> SharingProblem:
    """Up to so many tasks and resources; ``scale``: exponents of 10 of uses and capacities."""
    n, m = random.integers(1, tasks + 1), random.integers(1, resources + 1)
    unit = 10.0 ** random.uniform(*scale)
    rows = []
    for _ in range(n):
        degree = random.integers(0 if zeros else 1, m + 1)
        row = random.choice(m, degree, replace=repeated)
        usage = (random.random(degree) + 0.05) * 10.0 ** random.uniform(*scale, degree)
        usage[random.random(degree) < zeros] = 0.0
        share = usage * 10.0 ** random.uniform(-1, 1, degree) if shares else usage
        rows.append(list(zip(row.tolist(), usage.tolist(), share.tolist(), strict=True)))
    capacity = (random.random(m) + 0.1) * unit
    capacity[random.random(m) < zeros] = 0.0
    return SharingProblem.build(
        rows,
        capacity,
        fatpipe=random.random(m) < fatpipes,
        bound=np.where(random.random(n) < bounds, random.random(n), np.inf),
        weight=random.choice([0.5, 1.0, 1.0, 3.0], n) if weights else None,
    )


@st.composite
def problems(draw, **options) -> SharingProblem:
    """A random problem, by its seed."""
    return random_problem(np.random.default_rng(draw(st.integers(0, 2**32 - 1))), **options)


def changed(problem: SharingProblem, **fields) -> SharingProblem:
    """The problem with other values of some fields."""
    names = ("start", "resource", "usage", "share", "capacity", "fatpipe", "bound", "weight")
    return SharingProblem(**{name: fields.get(name, getattr(problem, name)) for name in names})


def permuted(problem: SharingProblem, order: np.ndarray) -> SharingProblem:
    """The problem with its tasks in another order."""
    elements = [range(problem.start[i], problem.start[i + 1]) for i in order]
    pick = np.array([k for row in elements for k in row], np.int64)
    return changed(
        problem,
        start=np.concatenate([[0], np.cumsum([len(row) for row in elements])]).astype(np.int64),
        resource=problem.resource[pick],
        usage=problem.usage[pick],
        share=problem.share[pick],
        bound=problem.bound[order],
        weight=problem.weight[order],
    )


def loads(problem: SharingProblem, rates: np.ndarray) -> np.ndarray:
    """What each resource carries in all."""
    return np.bincount(problem.resource, problem.usage * rates[problem.task], minlength=problem.m)
