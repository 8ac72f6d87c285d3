"""The sharing problem (which task uses how much of which resource, up to its bound), its solution.

`verify` checks a solution independently: it is plain numpy and has no code in common with the
solvers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptaskmodel.errors import SharingError
from ptaskmodel.sharing.rules import NOTHING_LEFT, RULES

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Instead of a task or a resource to blame: there is none, or it is a task's own bound.
NOBODY = -1


@dataclass(frozen=True, slots=True, eq=False)
class SharingProblem:
    """n tasks that progress at rates x >= 0 on m resources (compressed rows, one per task).

    Row i is ``resource[start[i]:start[i + 1]]`` with ``usage`` (a: units of the resource for one
    unit of progress) and ``share`` (m: what fairness compares; the usage by default). A row may
    name a resource twice. ``capacity`` > or = 0; ``fatpipe`` resources limit each use alone, the
    others the sum. ``bound`` is the largest rate of a task (inf: none), ``weight`` > 0 its
    priority. Tasks are in order of arrival, oldest first.

    A use of 0 is no use. A share coefficient of 0 beside a use > 0 stands for the usage. The rate
    of a task that uses nothing is its bound, 1 if it has none (``fairbottleneck``: always 1; its
    corrected form: as the others).

    The constructor checks nothing; ``build``, ``from_triplets`` and ``from_dense`` do.
    """

    start: IntArray
    resource: IntArray
    usage: FloatArray
    share: FloatArray
    capacity: FloatArray
    fatpipe: BoolArray
    bound: FloatArray
    weight: FloatArray

    @property
    def n(self) -> int:
        """Number of tasks."""
        return self.start.size - 1

    @property
    def m(self) -> int:
        """Number of resources."""
        return self.capacity.size

    @property
    def task(self) -> IntArray:
        """The task of each element, in step with ``resource``."""
        return np.repeat(np.arange(self.n), np.diff(self.start))

    @classmethod
    def build(
        cls,
        rows: Sequence[Sequence[tuple]],
        capacity: ArrayLike,
        *,
        fatpipe: ArrayLike | None = None,
        bound: ArrayLike | None = None,
        weight: ArrayLike | None = None,
    ) -> SharingProblem:
        """Return a checked problem; rows: of each task a list of ``(resource, usage[, share])``.

        capacity: of each resource, shape (m,). fatpipe: whether each resource is one, shape (m,);
        None: none. bound: largest rate of each task, shape (n,); None: inf. weight: of each task,
        shape (n,); None: 1. Raises SharingError naming the first wrong element.
        """
        flat = [element for row in rows for element in row]
        for element in flat:
            if len(element) not in (2, 3):
                raise SharingError(f"element {element!r}; give (resource, usage) or add a share")
        return cls.from_triplets(
            [element[0] for element in flat],
            [i for i, row in enumerate(rows) for _ in row],
            [element[1] for element in flat],
            capacity,
            n=len(rows),
            share=[element[-1] for element in flat],
            fatpipe=fatpipe,
            bound=bound,
            weight=weight,
        )

    @classmethod
    def from_triplets(
        cls,
        resource: ArrayLike,
        task: ArrayLike,
        usage: ArrayLike,
        capacity: ArrayLike,
        *,
        n: int,
        share: ArrayLike | None = None,
        fatpipe: ArrayLike | None = None,
        bound: ArrayLike | None = None,
        weight: ArrayLike | None = None,
    ) -> SharingProblem:
        """Return a checked problem of `n` tasks from elements in any order.

        Each element has its `resource`, task and usage: shape (elements,). share: likewise; None:
        the usage. capacity, fatpipe, bound, weight: as of `build`. Raises SharingError naming the
        first wrong element.
        """
        resources = _array(resource, "resource", np.int64)
        tasks = _array(task, "task", np.int64)
        capacities = _array(capacity, "capacity", np.float64)
        m = capacities.size
        z = resources.size
        usages = _sized(usage, "usage", z, np.float64)
        shares = usages if share is None else _sized(share, "share", z, np.float64)
        _require(
            capacities, "capacity", (capacities >= 0) & np.isfinite(capacities), ">= 0, finite"
        )
        _require(resources, "resource", (resources >= 0) & (resources < m), f"0..{m - 1}")
        _require(
            _sized(tasks, "task", z, np.int64), "task", (tasks >= 0) & (tasks < n), f"0..{n - 1}"
        )
        _require(usages, "usage", (usages >= 0) & np.isfinite(usages), ">= 0, finite")
        _require(shares, "share", (shares >= 0) & np.isfinite(shares), ">= 0, finite")
        bounds = _sized(np.inf if bound is None else bound, "bound", n, np.float64)
        _require(bounds, "bound", bounds >= 0, ">= 0 (inf: none)")
        weights = _sized(1.0 if weight is None else weight, "weight", n, np.float64)
        _require(weights, "weight", (weights > 0) & np.isfinite(weights), "> 0, finite")
        order = np.argsort(tasks, kind="stable")
        return cls(
            start=np.concatenate([[0], np.cumsum(np.bincount(tasks, minlength=n))]).astype(
                np.int64
            ),
            resource=resources[order],
            usage=usages[order],
            share=shares[order],
            capacity=capacities,
            fatpipe=_sized(False if fatpipe is None else fatpipe, "fatpipe", m, np.bool_),
            bound=bounds,
            weight=weights,
        )

    @classmethod
    def from_dense(
        cls,
        usage: ArrayLike,
        capacity: ArrayLike,
        *,
        share: ArrayLike | None = None,
        fatpipe: ArrayLike | None = None,
        bound: ArrayLike | None = None,
        weight: ArrayLike | None = None,
    ) -> SharingProblem:
        """Return a checked problem of ``usage[resource, task]`` and ``share`` (None: the usage).

        As for `build`: capacity, fatpipe, bound, weight.
        """
        matrix = np.asarray(usage, np.float64)
        if matrix.ndim != 2:
            raise SharingError(f"usage has {matrix.ndim} dimensions; give usage[resource, task]")
        task, resource = np.nonzero(matrix.T)
        return cls.from_triplets(
            resource,
            task,
            matrix[resource, task],
            _sized(capacity, "capacity", matrix.shape[0], np.float64),
            n=matrix.shape[1],
            share=None if share is None else np.asarray(share, np.float64)[resource, task],
            fatpipe=fatpipe,
            bound=bound,
            weight=weight,
        )


def _array(values: ArrayLike, name: str, dtype: Any) -> NDArray:
    """A fresh one-dimensional array of this type."""
    try:
        array = np.array(values, dtype=dtype, ndmin=1)
    except (TypeError, ValueError, OverflowError):
        raise SharingError(f"{name}: {values!r} is not a list of numbers; give one") from None
    if array.ndim != 1:
        raise SharingError(f"{name} has {array.ndim} dimensions; give one")
    return array


def _sized(values: ArrayLike, name: str, size: int, dtype: Any) -> NDArray:
    """The array, a single value being repeated."""
    array = _array(values, name, dtype)
    if np.ndim(values) == 0:
        array = np.full(size, array[0], dtype)
    if array.size != size:
        raise SharingError(f"{name} has {array.size} values; give {size}")
    return array


def _require(values: NDArray, name: str, good: BoolArray, wanted: str) -> None:
    bad = np.flatnonzero(~good)
    if bad.size:
        raise SharingError(f"{name}[{bad[0]}] is {values[bad[0]]}; it must be {wanted}")


@dataclass(frozen=True, slots=True)
class Certificate:
    """How far rates are from what a rule asks for; see ``verify``. Residuals are relative.

    ``capacity_excess``: the most by which a capacity or a bound is exceeded, -> ``worst_resource``
    (NOBODY: a bound). ``deficiency``: the most by which a task misses the rule's condition, ->
    ``worst_task``. Both NOBODY when there is nothing to blame.
    """

    rule: str
    capacity_excess: float
    deficiency: float
    worst_resource: int
    worst_task: int
    tolerance: float

    @property
    def residual(self) -> float:
        """The larger of the two residuals."""
        return max(self.capacity_excess, self.deficiency)

    @property
    def feasible(self) -> bool:
        """Whether no capacity and no bound is exceeded, up to the tolerance."""
        return self.capacity_excess <= self.tolerance

    @property
    def ok(self) -> bool:
        """Whether the rates are feasible and meet the condition, up to the tolerance."""
        return self.residual <= self.tolerance


def verify(
    problem: SharingProblem,
    rates: FloatArray,
    rule: str,
    *,
    tolerance: float = 1e-9,
) -> Certificate:
    """Check the rates of a problem against the definition of a rule, on the data as given.

    rates: 1/s, shape (tasks,). tolerance: the largest relative error that counts as rounding.

    Every rule: no SHARED capacity is exceeded by the sum of uses, no FATPIPE by a single use, no
    bound by a rate (relative excess). Then for each task, as the smallest relative gap to a reason
    for not being faster (of a task that uses nothing, the gap to its rate, see `SharingProblem`):

    * ``bmf``: its bound; a FATPIPE that it fills; a resource of capacity 0; a SHARED resource that
      is full and on which its m x / p is the largest;
    * ``maxmin``: its bound; a FATPIPE that it fills; a resource of capacity 0; a SHARED resource
      that is full and on which its x / p is the largest;
    * ``flow-maxmin``: the same, but a FATPIPE is full when its largest use is, and a capacity of 0
      is a reason only for those who use nothing else;
    * ``proportional``: there are prices >= 0, of SHARED resources that are full, at which it pays
      w / x for a unit of progress; at its bound, or on a FATPIPE that it fills, no more than that;
      or it uses a resource of capacity 0 and stands still. The prices are found here, by least
      squares (`prices_of`). What is left of a resource with a price counts as what it would cost,
      over the weights of its users (complementary slackness);
    * ``fairbottleneck``: at least min(bound, C_r / (uses of r * a)), what the first round gives.
      That is all it guarantees: capacity may be wasted, and a FATPIPE may be exceeded;
    * ``fairbottleneck-corrected``: its bound; a FATPIPE that it fills; a SHARED resource that is
      full up to 1e-5 units;
    * a rule without a condition in the table: nothing.

    Raises SharingError for an unknown rule or rates of another length.
    """
    if rule not in RULES:
        raise SharingError(f"rule {rule!r} is unknown; choose one of {', '.join(RULES)}")
    x = np.asarray(rates, np.float64)
    if x.shape != (problem.n,):
        raise SharingError(f"rates have shape {x.shape}; give {problem.n} rates")
    impossible = np.flatnonzero(~((x >= 0) & np.isfinite(x)))
    if impossible.size:
        return Certificate(rule, np.inf, np.inf, NOBODY, int(impossible[0]), tolerance)
    condition = RULES[rule].condition
    view = _View(problem, x, drop_zero=condition == "flow-maxmin")
    excess, resource = view.capacity_excess()
    if not condition:
        gap = np.zeros(problem.n)
    elif condition == "equal-share":
        gap = view.equal_share_gap()
    elif condition == "proportional":
        gap = view.price_gap(tolerance)
    else:
        gap = np.minimum(view.bound_gap, view.least(view.gaps(condition)))
    if condition:
        gap = np.where(view.uses_nothing, view.idle_gap(condition), gap)
    worst = int(np.argmax(gap)) if problem.n else NOBODY
    deficiency = max(float(gap[worst]), 0.0) if problem.n else 0.0
    return Certificate(
        rule=rule,
        capacity_excess=excess,
        deficiency=deficiency,
        worst_resource=resource,
        worst_task=worst if deficiency > 0 else NOBODY,
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
        """The largest relative excess and the resource (NOBODY: a bound, or none)."""
        over_bound = max(float(np.max(-self.bound_gap, initial=0.0)), 0.0)
        over = _ratio(self.load, self.problem.capacity) - 1.0
        if over.size and np.max(over) > over_bound:
            return float(np.max(over)), int(np.argmax(over))
        return over_bound, NOBODY

    def gaps(self, condition: str) -> FloatArray:
        """Of each element, how far it is from being the reason for its task's rate."""
        room = 1.0 - _ratio(self.load, self.problem.capacity)[self.resource]
        own_room = 1.0 - _ratio(self.use, self.capacity)
        if condition == "corrected":
            left = self.problem.capacity - self.load - NOTHING_LEFT
            room = _ratio(left, self.problem.capacity)[self.resource]
            gap = np.where(self.fatpipe, own_room, np.maximum(room, 0.0))
        else:
            fair = (self.share if condition == "bmf" else 1.0) * (self.x / self.problem.weight)[
                self.task
            ]
            top = np.zeros(self.problem.m)
            np.maximum.at(top, self.resource, fair)
            behind = 1.0 - _ratio(fair, top[self.resource])
            gap = np.maximum(room, behind)
            if condition != "flow-maxmin":
                gap = np.where(self.fatpipe, own_room, gap)
        return np.where(self.capacity == 0, 0.0, gap)

    def equal_share_gap(self) -> FloatArray:
        """By how much each task misses the equal share of its resources."""
        sharers = np.where(self.fatpipe, 1, self.elements[self.resource])
        wanted = self.problem.bound.copy()
        np.minimum.at(wanted, self.task, self.capacity / (sharers * self.largest_element))
        return 1.0 - _ratio(self.x, wanted)

    def price_gap(self, tolerance: float) -> FloatArray:
        """By how much what each task pays misses its weight, at the prices that fit best."""
        problem, x = self.problem, self.x
        full = self.load >= problem.capacity * (1.0 - math.sqrt(tolerance))
        sold = full[self.resource] & ~self.fatpipe & (self.capacity > 0.0)
        filled = self.fatpipe & (self.use >= self.capacity * (1.0 - tolerance))
        at_bound = self.bound_gap <= tolerance
        at_bound[self.task[filled]] = True
        stopped = np.zeros(problem.n, np.bool_)
        stopped[self.task[self.capacity == 0.0]] = True
        stopped |= problem.bound == 0.0
        gap = np.where(stopped & (x == 0.0), 0.0, 1.0)
        asked = np.flatnonzero((x > 0.0) & ~stopped & ~self.uses_nothing)
        weight = problem.weight[self.task[sold]]
        prices, paid = prices_of(
            self.task[sold], self.resource[sold], self.use[sold] / weight, asked, at_bound
        )
        gap[asked] = np.abs(paid - 1.0)
        cost = np.zeros(problem.m)
        cost[list(prices)] = list(prices.values())
        weights = np.bincount(self.resource[sold], weight, minlength=problem.m)
        unsold = cost * np.maximum(problem.capacity - self.load, 0.0)
        slack = np.divide(unsold, weights, out=unsold, where=weights > 0.0)
        np.maximum.at(gap, self.task[sold], slack[self.resource[sold]])
        return gap

    def idle_gap(self, condition: str) -> FloatArray:
        """The gap of a task that uses nothing."""
        bound = self.problem.bound
        wanted = np.where(np.isfinite(bound) & (condition != "equal-share"), bound, 1.0)
        return np.abs(_ratio(self.x, np.where(self.dropped, 0.0, wanted)) - 1.0)

    def least(self, gap: FloatArray) -> FloatArray:
        """The smallest gap of each task."""
        result = np.full(self.problem.n, np.inf)
        np.minimum.at(result, self.task, gap)
        return result


def prices_of(
    task: IntArray, resource: IntArray, part: FloatArray, asked: IntArray, at_bound: BoolArray
) -> tuple[dict[int, float], FloatArray]:
    """(prices by resource, what each task pays over its weight): the prices that fit best.

    task, resource, part: elements on full resources; part: use of the resource, over the weight of
    the task. asked: the tasks that should pay their weight; those ``at_bound`` may pay less, and
    the rest is what they pay for their bound.
    """
    from scipy.optimize import nnls

    resources, column = np.unique(resource, return_inverse=True)
    row = np.full(len(at_bound), NOBODY)
    row[asked] = np.arange(len(asked))
    bounded = np.flatnonzero(at_bound[asked])
    matrix = np.zeros((len(asked), len(resources) + len(bounded)))
    wanted = row[task] >= 0
    np.add.at(matrix, (row[task[wanted]], column[wanted]), part[wanted])
    scale = matrix[:, : len(resources)].max(axis=0, initial=0.0)
    scale[scale == 0.0] = 1.0
    matrix[:, : len(resources)] /= scale
    matrix[bounded, len(resources) + np.arange(len(bounded))] = 1.0
    if matrix.size == 0:
        return {}, np.zeros(len(asked))
    found, _ = nnls(matrix, np.ones(len(asked)))
    prices = found[: len(resources)] / scale
    return dict(zip(resources.tolist(), prices.tolist(), strict=True)), matrix @ found


def _ratio(a: NDArray, b: NDArray) -> FloatArray:
    """a / b; 0 / 0 is 1 and a / 0 infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = a / b
    return np.where((a == 0) & (b == 0), 1.0, quotient)


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
