"""With fixed bottlenecks, the equations of a core give the levels that fill every resource."""

from __future__ import annotations

import numpy as np

from ptaskmodel.sharing.bottleneck_max_fairness.active_set import (
    carve_equations,
    equations_sizes,
    find_bottlenecks,
    list_equations,
)
from ptaskmodel.sharing.bottleneck_max_fairness.presolve import carve_core, core_sizes, list_users

TASKS, RESOURCES = 40, 12


def test_equations_are_the_loads_of_the_bottlenecks() -> None:
    rng = np.random.default_rng(7)
    rows = [np.sort(rng.choice(RESOURCES, rng.integers(1, 6), replace=False)) for _ in range(TASKS)]
    used = np.concatenate(rows)
    z = used.size
    sizes = zip(core_sizes(TASKS, RESOURCES, z), equations_sizes(RESOURCES, z), strict=True)
    reals, integers = (sum(parts) for parts in sizes)
    c, rest, others = carve_core(
        TASKS, RESOURCES, z, np.zeros(reals), np.zeros(integers, dtype=np.int64)
    )
    equations = carve_equations(RESOURCES, z, rest, others)
    c.row[: TASKS + 1] = np.cumsum([0, *map(len, rows)])
    c.used[:z] = used
    c.a[:z] = rng.uniform(0.1, 1.0, z)
    c.t[:z] = rng.uniform(0.5, 2.0, z)
    list_users(TASKS, RESOURCES, c)
    c.levels[:RESOURCES] = rng.uniform(0.3, 1.0, RESOURCES)
    find_bottlenecks(TASKS, RESOURCES, 1e-11, c)
    load, levels = c.load[:RESOURCES].copy(), c.levels[:RESOURCES].copy()
    assert c.n_limited[RESOURCES] == np.sum(c.bottleneck[:TASKS] == -1)
    k = list_equations(TASKS, RESOURCES, c, equations)
    assert k == np.sum(np.isfinite(levels))
    for p in range(k):
        r = equations.where[p]
        assert c.n_limited[r] == p
        terms = slice(equations.first[p], equations.last[p])
        taken = equations.w[terms] @ levels[equations.source[terms]] + levels[r] * c.slope[r]
        np.testing.assert_allclose(taken + 1.0 - equations.left[r], load[r], rtol=1e-12)
