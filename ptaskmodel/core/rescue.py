"""Solves in Python what the kernel of a sharing rule gave up."""

from __future__ import annotations

import numpy as np

from ptaskmodel.core.state import USED, State
from ptaskmodel.core.sub_system import sub_system
from ptaskmodel.sharing.solvers import rescue


def solve_hard(state: State, rule: str) -> None:
    """Write the rates of the sub-system laid out, found by the slow, sure way of its rule.

    Raises SharingError if the rule has none.
    """
    from ptaskmodel.sharing.problem import SharingProblem

    n, m = int(state.clock[0]["n_sub"]), int(state.clock[0]["m_sub"])
    v = sub_system(state)
    z = int(v.start[n])
    problem = SharingProblem(
        start=v.start[: n + 1].copy(),
        resource=v.resource[:z].copy(),
        usage=v.usage[:z].copy(),
        share=v.share[:z].copy(),
        capacity=v.capacity[:m].copy(),
        fatpipe=state.flags[:m].copy(),
        bound=v.bound[:n].copy(),
        weight=v.weight[:n].copy(),
    )
    allocation = rescue(problem, rule)
    v.rate[:n] = allocation.rates
    limits = allocation.limits
    v.limit[:n] = np.where(limits >= 0, state.lists[USED][np.maximum(limits, 0)], limits)
    v.level[:m] = np.inf
