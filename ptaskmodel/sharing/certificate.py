"""An independent check of an allocation: shares nothing with the solvers, plain numpy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import SharingError
from ptaskmodel.sharing.problem import Certificate, FloatArray, SharingProblem

RULES = ("bmf", "maxmin", "fairbottleneck", "fairbottleneck-corrected")
# The fair-bottleneck rules take what is left of a capacity below this for nothing.
NOTHING_LEFT = 1e-5


def verify(
    problem: SharingProblem,
    rates: FloatArray,
    rule: str,
    *,
    tolerance: float = 1e-9,
    ignore_zero_capacity: bool = False,
) -> Certificate:
    """Check rates against the definition of a rule, on the data as given.

    Every rule: no SHARED capacity is exceeded by the sum of uses, no FATPIPE by a single use, no
    bound by a rate (relative excess). Then for each task, as the smallest relative gap to a reason
    for not being faster:

    * ``bmf``: its bound; a FATPIPE that it fills; a resource of capacity 0; a SHARED resource that
      is full and on which its m x / p is the largest;
    * ``maxmin``: its bound; a resource that is full and on which its x / p is the largest (a
      FATPIPE is full when its largest use is); a resource of capacity 0, unless
      ``ignore_zero_capacity``;
    * ``fairbottleneck``: at least min(bound, C_r / (uses of r * a)), what the first round gives.
      That is all it guarantees: capacity may be wasted, and a FATPIPE may be exceeded;
    * ``fairbottleneck-corrected``: its bound; a FATPIPE that it fills; a SHARED resource that is
      full up to 1e-5 units.

    Raises SharingError for an unknown rule or rates of another length.
    """
    if rule not in RULES:
        raise SharingError(f"rule {rule!r} is unknown: choose one of {', '.join(RULES)}")
    x = np.asarray(rates, np.float64)
    if x.shape != (problem.n,):
        raise SharingError(f"rates have shape {x.shape}: give {problem.n} rates")
    impossible = np.flatnonzero(~((x >= 0) & np.isfinite(x)))
    if impossible.size:
        return Certificate(rule, np.inf, np.inf, -1, int(impossible[0]), tolerance)
    view = _View(problem, x, drop_zero=ignore_zero_capacity and rule == "maxmin")
    excess, resource = view.capacity_excess()
    if rule == "fairbottleneck":
        gap = view.equal_share_gap()
    else:
        gap = np.minimum(view.bound_gap, view.least(view.gaps(rule)))
    gap = np.where(view.uses_nothing, view.idle_gap(rule), gap)
    worst = int(np.argmax(gap)) if problem.n else -1
    deficiency = max(float(gap[worst]), 0.0) if problem.n else 0.0
    return Certificate(
        rule=rule,
        capacity_excess=excess,
        deficiency=deficiency,
        worst_resource=resource,
        worst_task=worst if deficiency > 0 else -1,
        tolerance=tolerance,
    )


class _View:
    """The elements in use, one per (task, resource), with loads at the rates under scrutiny."""

    def __init__(self, problem: SharingProblem, x: FloatArray, drop_zero: bool) -> None:
        used = problem.usage > 0
        self.dropped = np.zeros(problem.n, np.bool_)
        if drop_zero:
            empty = used & (problem.capacity[problem.resource] == 0)
            self.dropped[problem.task[empty]] = True
            used &= ~empty
        task = problem.task[used]
        share = np.where(problem.share > 0, problem.share, problem.usage)[used]
        pair, inverse = np.unique(
            task * max(problem.m, 1) + problem.resource[used], return_inverse=True
        )
        self.x = x
        self.problem = problem
        self.task = pair // max(problem.m, 1)
        self.resource = pair % max(problem.m, 1)
        self.usage = np.bincount(inverse, problem.usage[used], minlength=pair.size)
        self.share = np.bincount(inverse, share, minlength=pair.size)
        self.elements = np.bincount(problem.resource[used], minlength=problem.m)
        self.largest_element = np.zeros(pair.size)
        np.maximum.at(self.largest_element, inverse, problem.usage[used])
        self.fatpipe = problem.fatpipe[self.resource]
        self.usage[self.fatpipe] = self.largest_element[self.fatpipe]
        self.capacity = problem.capacity[self.resource]
        self.use = self.usage * x[self.task]
        self.load = np.bincount(self.resource, self.use, minlength=problem.m)
        largest = np.zeros(problem.m)
        np.maximum.at(largest, self.resource, self.use)
        self.load[problem.fatpipe] = largest[problem.fatpipe]
        self.uses_nothing = np.bincount(self.task, minlength=problem.n) == 0
        self.bound_gap = np.where(self.uses_nothing, 0.0, 1.0 - _ratio(x, problem.bound))

    def capacity_excess(self) -> tuple[float, int]:
        """The largest relative excess and the resource (-1: a bound, or none)."""
        over_bound = max(float(np.max(-self.bound_gap, initial=0.0)), 0.0)
        over = _ratio(self.load, self.problem.capacity) - 1.0
        if over.size and np.max(over) > over_bound:
            return float(np.max(over)), int(np.argmax(over))
        return over_bound, -1

    def gaps(self, rule: str) -> FloatArray:
        """Of each element, how far it is from being the reason for its task's rate."""
        room = 1.0 - _ratio(self.load, self.problem.capacity)[self.resource]
        own_room = 1.0 - _ratio(self.use, self.capacity)
        if rule == "fairbottleneck-corrected":
            left = self.problem.capacity - self.load - NOTHING_LEFT
            room = _ratio(left, self.problem.capacity)[self.resource]
            gap = np.where(self.fatpipe, own_room, np.maximum(room, 0.0))
        else:
            fair = (self.share if rule == "bmf" else 1.0) * (self.x / self.problem.weight)[
                self.task
            ]
            top = np.zeros(self.problem.m)
            np.maximum.at(top, self.resource, fair)
            behind = 1.0 - _ratio(fair, top[self.resource])
            gap = np.maximum(room, behind)
            if rule == "bmf":
                gap = np.where(self.fatpipe, own_room, gap)
        return np.where(self.capacity == 0, 0.0, gap)

    def equal_share_gap(self) -> FloatArray:
        """By how much each task misses the equal share of its resources."""
        sharers = np.where(self.fatpipe, 1, self.elements[self.resource])
        wanted = self.problem.bound.copy()
        np.minimum.at(wanted, self.task, self.capacity / (sharers * self.largest_element))
        return 1.0 - _ratio(self.x, wanted)

    def idle_gap(self, rule: str) -> FloatArray:
        """The gap of a task that uses nothing."""
        bound = self.problem.bound
        fair_bottleneck = rule.startswith("fairbottleneck")
        wanted = 1.0 if fair_bottleneck else np.where(np.isfinite(bound), bound, 1.0)
        return np.abs(self.x - np.where(self.dropped, 0.0, wanted))

    def least(self, gap: FloatArray) -> FloatArray:
        """The smallest gap of each task."""
        result = np.full(self.problem.n, np.inf)
        np.minimum.at(result, self.task, gap)
        return result


def _ratio(a: NDArray, b: NDArray) -> FloatArray:
    """a / b; 0 / 0 is 1 and a / 0 infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = a / b
    return np.where((a == 0) & (b == 0), 1.0, quotient)
