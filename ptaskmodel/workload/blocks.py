"""Make many parallel tasks at once, from arrays that hold all of them one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ptaskmodel.memory import collector_at_rest
from ptaskmodel.workload.amounts import (
    FieldError,
    FloatArray,
    IntArray,
    array_of,
    check_amounts,
    check_number,
)
from ptaskmodel.workload.jobs import objects_of_columns
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import ParallelWork

MOST_RANKS = 2**31


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TaskBlock:
    """n parallel tasks as arrays that hold all of them, one after the other.

    hosts: positions in `Platform.hosts`, of the ranks of all tasks, shape (r,). ranks: how many of
    these each task has, shape (n,). flops: flop of each rank, shape (r,), or one number for all.
    flows: (from, to, bytes) of the flows of all tasks, shape (m, 3); ranks count from 0 in each
    task. flow_counts: how many of these each task has, shape (n,); None: there are no flows.
    ids: names of the tasks; None: the simulation numbers them. start_s: dates of arrival, s.
    walltime_s: longest durations once started, s; inf, or None for all: no limit. weight:
    priorities in sharing. The last three are one number for all, or of shape (n,).
    """

    hosts: ArrayLike
    ranks: ArrayLike
    flops: ArrayLike = 0.0
    flows: ArrayLike = ()
    flow_counts: ArrayLike | None = None
    ids: Sequence[str] | None = None
    start_s: ArrayLike = 0.0
    walltime_s: ArrayLike | None = None
    weight: ArrayLike = 1.0

    def tasks(self, names: Sequence[str]) -> tuple[list[Task], list[bytes]]:
        """The tasks, and the hosts of each (see `places_of`).

        names: of all hosts. Raises FieldError.
        """
        counts = _whole("ranks", self.ranks, 1, MOST_RANKS)
        used = _whole("hosts", self.hosts, 0, len(names) - 1)
        if len(used) != counts.sum():
            problem = f"has {len(used)} numbers for {counts.sum()} ranks; give one for each"
            raise FieldError("hosts", problem)
        with collector_at_rest():
            columns: dict[str, Sequence[Any]] = {
                "id": _ids(self.ids, len(counts)),
                "start_s": _numbers("start_s", self.start_s, len(counts)),
                "walltime_s": _numbers("walltime_s", self.walltime_s, len(counts)),
                "weight": _numbers("weight", self.weight, len(counts)),
            }
            parts, flops = _parts(counts), _flops(self.flops, len(used))
            columns["work"] = ParallelWork.each(
                counts.tolist(), [flops[part] for part in parts], self._flows(len(counts))
            )
            named = [names[k] for k in used.tolist()]
            columns["hosts"] = [tuple(named[part]) for part in parts]
            return objects_of_columns(Task, columns), [used[part].tobytes() for part in parts]

    def _flows(self, n: int) -> list[FloatArray]:
        """The flows of each task."""
        triples = array_of("flows", self.flows)
        if self.flow_counts is None:
            counts = np.zeros(n, dtype=np.int64)
        else:
            counts = _whole("flow_counts", self.flow_counts, 0, len(triples))
        if len(counts) != n or counts.sum() != len(triples):
            problem = f"has {len(counts)} counts, {counts.sum()} flows in all"
            raise FieldError("flow_counts", f"{problem}; give {n}, {len(triples)} in all")
        return [triples[part] for part in _parts(counts)]


def _parts(counts: IntArray) -> list[slice]:
    """Where each part is, if they stand one after the other."""
    ends = np.cumsum(counts).tolist()
    return list(map(slice, [0, *ends[:-1]], ends))


def _whole(field: str, values: ArrayLike, least: int, most: int) -> IntArray:
    found = np.asarray(values)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise FieldError(field, "is not a list of whole numbers")
    wrong = np.flatnonzero((found < least) | (found > most))
    if len(wrong):
        place = int(wrong[0])
        problem = f"{found[place]} is outside {least}..{most}; correct it"
        raise FieldError(field, problem, (place,))
    return found.astype(np.int64)


def _flops(flops: ArrayLike, ranks: int) -> FloatArray:
    """The flop of each rank."""
    values = array_of("flops", flops)
    if values.ndim == 0:
        return np.full(ranks, check_number("flops", float(values)))
    if values.shape != (ranks,):
        raise FieldError("flops", f"is not of shape ({ranks},); give one per rank or one number")
    return values


def _ids(ids: Sequence[str] | None, count: int) -> list[str | None]:
    if ids is None:
        return [None] * count
    found = list(ids)
    wrong = [k for k, each in enumerate(found) if type(each) is not str or not each]
    if wrong:
        problem = f"{found[wrong[0]]!r} is not a non-empty string"
        raise FieldError("ids", problem, (wrong[0],))
    if len(found) != count:
        raise FieldError("ids", f"has {len(found)} texts for {count} tasks; give one for each")
    return list(found)


def _numbers(field: str, given: ArrayLike | None, count: int) -> Sequence[float | None]:
    """The numbers of a field, one for each task; None: no limit."""
    if given is None:
        return [None] * count
    values = array_of(field, given)
    if values.shape not in ((), (count,)):
        raise FieldError(field, f"is not of shape ({count},); give one per task or one number")
    unlimited = (values == np.inf) & (field == "walltime_s")
    checked = np.where(unlimited, 1.0, values)
    check_amounts(field, checked)
    if field != "start_s" and (checked == 0).any():
        raise FieldError(field, "holds a 0; give numbers above 0")
    found: list[float | None] = np.broadcast_to(values, count).tolist()
    return [None if value == np.inf else value for value in found] if unlimited.any() else found
