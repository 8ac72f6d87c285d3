"""The sharing problem: who uses how much of what, and what limits it. Arrays in, rates out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

BOUND_LIMIT = -1
FREE_LIMIT = -2


@dataclass(frozen=True, slots=True, eq=False)
class SharingProblem:
    """n tasks that progress at rates x >= 0 on m resources (compressed rows, one per task).

    Row i is ``resource[start[i]:start[i + 1]]`` with ``usage`` (a: units of the resource for one
    unit of progress) and ``share`` (m: what fairness compares; the usage by default). A row may
    name a resource twice. ``capacity`` > or = 0; ``fatpipe`` resources limit each use alone, the
    others the sum. ``bound`` is the largest rate of a task (inf: none), ``weight`` > 0 its
    priority. Tasks are in order of arrival, oldest first.
    """

    start: IntArray
    resource: IntArray
    usage: FloatArray
    share: FloatArray
    capacity: FloatArray
    fatpipe: BoolArray
    bound: FloatArray
    weight: FloatArray
