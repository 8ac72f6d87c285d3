# mypy: allow-untyped-defs, allow-incomplete-defs
"""Compute rates of the assembled subproblem: by the rule's kernel, or in Python if that fails."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptaskmodel.kernels.decorators import jit, late
from ptaskmodel.kernels.records import numbers
from ptaskmodel.sharing.arrays import LIMIT_BOUND, Answer, Settings, System, fall_back, kernel
from ptaskmodel.sharing.rules import RULES, Rule
from ptaskmodel.sharing.state import SUB, USED, Graph, bare_graph
from ptaskmodel.sharing.subproblem import subproblem_of


def code(rule: str) -> int:
    """The number by which kernels know a rule."""
    return numbers(len(RULES))[list(RULES).index(rule)]


BMF, FLOW_MAXMIN = code("bmf"), code("flow-maxmin")
TOLERANCES = Settings()
AIM, ACCEPT, NOTHING_LEFT = TOLERANCES.aim, TOLERANCES.accept, TOLERANCES.nothing_left


def example() -> tuple[Any, ...]:
    """Arguments like those of the solvers here."""
    return bare_graph(), 0, 0, False


def _solver_of(rule: Rule) -> Any:
    """What solves the assembled subproblem by the kernel of a rule; late, as each is large."""
    solve_by = kernel(rule)
    aim, accept = rule.aim, max(rule.aim, ACCEPT)

    def solver(s, n, m, variant):
        v = subproblem_of(s)
        z = v.start[n]
        system = System(
            v.start[: n + 1], v.resource[:z], v.usage[:z], v.share[:z], v.capacity[:m],
            s.flags[:m], v.bound[:n], v.weight[:n], v.penalty[:n],
        )  # fmt: skip
        settings = Settings(variant, m > 0, aim, accept, NOTHING_LEFT)
        answer = Answer(v.rate[:n], v.limit[:n], v.level[:m])
        return solve_by(system, settings, answer, v.reals, v.integers)

    solver.__qualname__ = solver.__name__ = f"laid_{rule.kernel.rpartition('.')[2]}"
    return late(f"{__name__}:example")(solver)


# By the name of the kernel of a rule, what solves by it; they are looked up here by name.
SOLVERS = {rule.kernel: _solver_of(rule) for rule in RULES.values()}
globals().update({solver.__name__: solver for solver in SOLVERS.values()})


def _kernel_of(rule: str, otherwise: Any) -> Any:
    """Calls the solver of a rule if its code is asked for, else the function given."""
    number, solve_by, variant = code(rule), SOLVERS[RULES[rule].kernel], RULES[rule].variant

    @jit
    def choose(solver, s, n, m):
        if solver == number:
            return solve_by(s, n, m, variant)
        return otherwise(solver, s, n, m)

    return choose


@jit
def no_solver(solver, s, n, m):
    """There is no such rule."""
    return 1


# (solver, state, n, m) -> 0 or the solver's complaint, by that rule.
solve_by_rule = no_solver
for _rule in reversed(RULES):
    solve_by_rule = _kernel_of(_rule, solve_by_rule)


@jit
def solve(s, n, m, solver):
    """Rates of the assembled subproblem, by the rule asked for; 0 or the solver's complaint."""
    return solve_by_rule(solver, s, n, m)


@jit
def solve_alone(s, i, solver):
    """Rate of the i-th activity chosen, which shares with no other, and its limit.

    That is its bound or its tightest resource, by number. Nothing need have been laid out.
    """
    t = s.variables[s.worklists[SUB, i]]
    rate = t.bound
    limit = LIMIT_BOUND
    for k in range(t.nodes, t.nodes + t.n_kept):
        element = s.kept[k]
        r = s.constraints[element.resource]
        x = r.capacity / element.usage
        if x < rate and (r.capacity > 0.0 or solver != FLOW_MAXMIN):
            rate = x
            limit = element.resource
    s.reals[i] = rate
    s.integers[i] = limit


@jit
def shares_with_nobody(s, slot):
    """Whether an activity is the only one on what can limit it, with one element for each."""
    t = s.variables[slot]
    for k in range(t.nodes, t.nodes + t.n_kept):
        if s.constraints[s.kept[k].resource].enabled != 1:
            return False
    return t.n_kept > 0


@jit
def is_alone(s, n):
    """Whether the subproblem is one activity with one element for each of its resources."""
    return n == 1 and shares_with_nobody(s, s.worklists[SUB, 0])


def solve_hard(state: Graph, rule: str) -> None:
    """Write the rates of the assembled subproblem, found by the slow, sure way of its rule.

    Raises SharingError if the rule has none.
    """
    from ptaskmodel.sharing.problem import SharingProblem

    n, m = int(state.counts[0]["n_sub"]), int(state.counts[0]["m_sub"])
    v = subproblem_of(state)
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
    allocation = fall_back(problem, rule)
    v.rate[:n] = allocation.rates
    limits = allocation.limits
    v.limit[:n] = np.where(limits >= 0, state.worklists[USED][np.maximum(limits, 0)], limits)
    v.level[:m] = np.inf
