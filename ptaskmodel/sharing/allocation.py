"""The answer to a sharing problem."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ptaskmodel.sharing.certificate import Certificate, verify
from ptaskmodel.sharing.problem import FloatArray, IntArray, SharingProblem


@dataclass(frozen=True, eq=False)
class Allocation:
    """The answer to a problem by one rule.

    ``rates``: n, 1/s. ``limits``: n, the resource that limits each task, LIMIT_BOUND for its own
    bound, LIMIT_NOTHING for nothing.
    """

    problem: SharingProblem
    rule: str
    rates: FloatArray
    limits: IntArray

    @cached_property
    def certificate(self) -> Certificate:
        """What an independent check of the rates says (computed when first asked for)."""
        return verify(self.problem, self.rates, self.rule)
