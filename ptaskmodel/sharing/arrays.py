"""Solve a problem by a rule of `rules.RULES`: arguments of its kernel, scratch arrays, the call.

Where no resource limits a task, its `limit` is `LIMIT_BOUND` or `LIMIT_NOTHING`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptaskmodel.errors import SharingError
from ptaskmodel.kernels.decorators import views
from ptaskmodel.sharing.rules import NOTHING_LEFT, RULES, Rule

if TYPE_CHECKING:
    from ptaskmodel.sharing.problem import Allocation, SharingProblem

# Numpy integers: for each plain one passed to a kernel, numba would compile the kernel anew.
LIMIT_BOUND, LIMIT_NOTHING = np.int64(-1), np.int64(-2)


class System(NamedTuple):
    """The arrays of a `SharingProblem`; ``start`` and ``capacity`` tell n and m."""

    start: np.ndarray
    resource: np.ndarray
    usage: np.ndarray
    share: np.ndarray
    capacity: np.ndarray
    fatpipe: np.ndarray
    bound: np.ndarray
    weight: np.ndarray
    penalty: np.ndarray  # 1 / weight: to divide by it rounds differently

    @classmethod
    def of(cls, problem: SharingProblem) -> System:
        """The arrays of a problem."""
        p = problem
        return cls(
            p.start, p.resource, p.usage, p.share, p.capacity, p.fatpipe, p.bound, p.weight,
            1.0 / p.weight,
        )  # fmt: skip


class Settings(NamedTuple):
    """How to solve. Tolerances are relative but for ``nothing_left``."""

    variant: bool = False  # the second rule of a kernel that knows two
    warm: bool = False  # the levels in the answer are those of a system much like this one
    aim: float = 1e-11  # residual at which to stop
    accept: float = 1e-10  # largest residual of an answer
    nothing_left: float = NOTHING_LEFT


class Answer(NamedTuple):
    """Where a kernel writes, of each task, its rate and what limits it (a resource, LIMIT_...).

    ``level`` (of each resource) belongs to bmf: read if warm, written in any case.
    """

    rate: np.ndarray
    limit: np.ndarray
    level: np.ndarray

    @classmethod
    def room(cls, problem: SharingProblem) -> Answer:
        """New arrays for the answer to a problem."""
        return cls(np.empty(problem.n), np.empty(problem.n, np.int64), np.full(problem.m, np.inf))


@views
def carve(array: Any, size: Any) -> Any:
    """(the first ``size`` elements, what is left): how kernels divide their scratch."""
    return array[:size], array[size:]


def bmf(problem: SharingProblem) -> Allocation:
    """Return a bottleneck max fair allocation (rates in 1/s) of a problem; one is always found."""
    return solve(problem, "bmf")


def fairbottleneck(problem: SharingProblem) -> Allocation:
    """Return the rates (1/s) that SimGrid's ``fairbottleneck`` gives for a problem."""
    return solve(problem, "fairbottleneck")


def fairbottleneck_corrected(problem: SharingProblem) -> Allocation:
    """Return the rates (1/s) of fair bottleneck for a problem, mended.

    Fixed tasks are not counted twice, and no FATPIPE is exceeded.
    """
    return solve(problem, "fairbottleneck-corrected")


def maxmin(problem: SharingProblem) -> Allocation:
    """Return the weighted max-min fair rates (1/s) of a problem."""
    return solve(problem, "maxmin")


def proportional(problem: SharingProblem) -> Allocation:
    """Weighted proportional fair rates (1/s) of a problem: they maximise the sum of w log x."""
    return solve(problem, "proportional")


def flow_maxmin(problem: SharingProblem) -> Allocation:
    """Return the rates (1/s) of SimGrid's flow models for a problem.

    They are max-min fair but for FATPIPEs and capacities of 0.
    A FATPIPE stops all its users when the largest use reaches the capacity; a resource of capacity
    0 is ignored by tasks that use others too.
    """
    return solve(problem, "flow-maxmin")


def solve(problem: SharingProblem, rule: str) -> Allocation:
    """The allocation of a problem by any rule of the table; SharingError if it is unknown."""
    if rule not in RULES:
        raise SharingError(f"rule {rule!r} is unknown; choose one of {', '.join(RULES)}")
    from ptaskmodel.sharing.problem import Allocation

    entry = RULES[rule]
    answer = Answer.room(problem)
    settings = Settings(variant=entry.variant)
    # A use of 0 makes quotients that are never the smallest; without the JIT, numpy warns.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        status = kernel(entry)(System.of(problem), settings, answer, *new_scratch(problem, entry))
        if status != 0:
            return fall_back(problem, rule)
    return Allocation(problem, rule, answer.rate, answer.limit)


def fall_back(problem: SharingProblem, rule: str) -> Allocation:
    """The allocation of a problem that the kernel of a rule gave up.

    Raises SharingError if the rule has no other way.
    """
    name = RULES[rule].fallback
    if not name:
        raise SharingError(f"rule {rule!r} cannot solve this problem; choose another one")
    found: Allocation = _named(name)(problem)
    return found


def kernel(rule: Rule) -> Any:
    """The kernel of a rule (imported, and so made ready to be compiled, now)."""
    return _named(rule.kernel)


def scratch_sizes(n: int, m: int, elements: int) -> tuple[int, int]:
    """Lengths of float64 and int64 scratch arrays that are enough for every kernel."""
    modules = {_module(rule.kernel) for rule in RULES.values()}
    reals, integers = zip(*(each.scratch_sizes(n, m, elements) for each in modules), strict=True)
    return max(reals), max(integers)


def new_scratch(problem: SharingProblem, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    """Scratch arrays for the kernel of a rule."""
    sizes = _module(rule.kernel).scratch_sizes(problem.n, problem.m, problem.usage.size)
    return np.empty(sizes[0]), np.empty(sizes[1], np.int64)


def _module(name: str) -> Any:
    return importlib.import_module(f"ptaskmodel.sharing.{name.rpartition('.')[0]}")


def _named(name: str) -> Any:
    return getattr(_module(name), name.rpartition(".")[2])
