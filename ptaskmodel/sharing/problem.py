"""The sharing problem: which task uses how much of which resource, and the bounds of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptaskmodel.errors import SharingError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


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
