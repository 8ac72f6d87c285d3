"""The arguments of every solver's kernel: system, settings, solution, scratch arrays.

If no resource limits a rate, its limit is `LIMIT_BOUND` or `LIMIT_NOTHING`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptaskmodel.kernels.decorators import views
from ptaskmodel.sharing.rules import NOTHING_LEFT

if TYPE_CHECKING:
    from ptaskmodel.sharing.problem import SharingProblem

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
