"""Many tasks as arrays that hold all of them one after the other; objects are made when asked for.

`TaskBlock` is what users give, `TaskTable` what a simulation takes; `TableMaker` makes one of tasks
that come one by one, as the reader of tasks.json does.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from ptaskmodel.workload.amounts import (
    NO_FLOATS,
    FieldError,
    FloatArray,
    IntArray,
    array_of,
    check_amounts,
    check_number,
    check_triples,
    own,
)
from ptaskmodel.workload.tasks import Task, objects_of_columns
from ptaskmodel.workload.work_tables import ParallelWorks, WorkTable, firsts_of
from ptaskmodel.workload.works import Work

MOST_RANKS = 2**31
# Objects of tasks made together.
TASKS_AT_ONCE = 1 << 12


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TaskTable(Sequence[Task]):
    """Tasks as arrays of shape (tasks,); a `Task` is made each time that one is asked for.

    Hosts of list k are ``first_host[k]:first_host[k + 1]`` of ``hosts``, which are places in
    ``names``; ``host_list`` says which a task has. work: number in ``works``. The other fields are
    as in `Task`, with inf for no limit. competitors: 0: as the simulation counts. ids: None: no
    task has one. after: of tasks that wait for others. connections: of tasks that have one. No work
    is the trace of a program.
    """

    names: Sequence[str]
    hosts: IntArray
    first_host: IntArray
    host_list: IntArray
    works: WorkTable
    work: IntArray
    ids: Sequence[str] | None
    start_s: FloatArray
    walltime_s: FloatArray
    weight: FloatArray
    rate_bound: FloatArray
    competitors: FloatArray
    after: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    profiles: Sequence[str | None] | None = None
    connections: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.work)

    @overload
    def __getitem__(self, k: int) -> Task: ...
    @overload
    def __getitem__(self, k: slice) -> list[Task]: ...
    def __getitem__(self, k: int | slice) -> Task | list[Task]:
        chosen = range(len(self))[k]
        if isinstance(chosen, int):
            return self._made(slice(chosen, chosen + 1), {})[0]
        return self._made(slice(chosen.start, chosen.stop, chosen.step), {})

    def __iter__(self) -> Iterator[Task]:
        lists: dict[int, tuple[str, ...]] = {}
        for first in range(0, len(self), TASKS_AT_ONCE):
            yield from self._made(slice(first, first + TASKS_AT_ONCE), lists)

    def _made(self, part: slice, lists: dict[int, tuple[str, ...]]) -> list[Task]:
        """Make some tasks. lists: of hosts that were made before."""
        return objects_of_columns(Task, self.columns(part, lists))

    def columns(
        self, part: slice = slice(None), lists: dict[int, tuple[str, ...]] | None = None
    ) -> dict[str, Sequence[Any]]:
        """The values of the fields of tasks; a field that is not there has its default.

        part: of the tasks. lists: those of hosts that were made before, by number.
        """
        lists = {} if lists is None else lists
        numbers = range(len(self))[part]
        chosen = self.host_list[part].tolist()
        for k in chosen:
            if k not in lists:
                lists[k] = self._names_of(k)
        columns: dict[str, Sequence[Any]] = {
            "hosts": [lists[k] for k in chosen],
            "work": self.works.take(self.work[part]),
            "id": [None] * len(numbers) if self.ids is None else self.ids[part],
            "start_s": self.start_s[part].tolist(),
            "weight": self.weight[part].tolist(),
            "walltime_s": _none_for(np.inf, self.walltime_s[part]),
            "rate_bound": _none_for(np.inf, self.rate_bound[part]),
            "competitors": _none_for(0.0, self.competitors[part]),
        }
        if self.after:
            columns["after"] = [self.after.get(k, ()) for k in numbers]
        if self.connections:
            columns["connection"] = [self.connections.get(k) for k in numbers]
        if self.profiles is not None:
            columns["profile"] = self.profiles[part]
        return columns

    def hosts_of(self, k: int) -> tuple[str, ...]:
        """The names of the hosts of task ``k``."""
        return self._names_of(self.host_list[k])

    def profile_of(self, k: int) -> str | None:
        """The profile of task ``k``."""
        return None if self.profiles is None else self.profiles[k]

    def _names_of(self, k: int) -> tuple[str, ...]:
        hosts = self.hosts[self.first_host[k] : self.first_host[k + 1]]
        return tuple([self.names[host] for host in hosts.tolist()])

    def alike(self) -> tuple[IntArray, IntArray]:
        """Group tasks with the same work, hosts and competitors.

        Returns the first task of each group, in increasing order, and the group of each task.
        """
        keys = self.work * len(self.first_host) + self.host_list
        if self.competitors.any():
            _, which = np.unique(self.competitors, return_inverse=True)
            keys = keys * (which.max() + 1) + which
        if (keys[1:] > keys[:-1]).all():
            return np.arange(len(keys)), np.arange(len(keys))
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return first[order], place[group]


def _none_for(nothing: float, values: FloatArray) -> list[float | None]:
    """The values, None for those that are ``nothing``."""
    found: list[float | None] = values.tolist()
    return [None if value == nothing else value for value in found]


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

    def table(self, names: Sequence[str]) -> TaskTable:
        """The tasks on hosts of these ``names`` (all of a platform). Raises FieldError."""
        counts = _whole("ranks", self.ranks, 1, MOST_RANKS)
        used = _whole("hosts", self.hosts, 0, len(names) - 1)
        if len(used) != counts.sum():
            problem = f"has {len(used)} numbers for {counts.sum()} ranks; give one for each"
            raise FieldError("hosts", problem)
        n = len(counts)
        ids = _ids(self.ids, n)
        start_s = _numbers("start_s", self.start_s, n)
        walltime_s = _numbers("walltime_s", self.walltime_s, n)
        weight = _numbers("weight", self.weight, n)
        works = ParallelWorks.of(counts, _flops(self.flops, len(used)), *self._flows(n))
        return TaskTable(
            names, used, works.first_rank, np.arange(n), WorkTable((), NO_FLOATS, works),
            np.arange(n), ids, start_s, walltime_s, weight, np.broadcast_to(np.inf, n),
            np.broadcast_to(0.0, n),
        )  # fmt: skip

    def _flows(self, n: int) -> tuple[IntArray, FloatArray]:
        """How many flows each task has, and those of all."""
        triples = array_of("flows", self.flows)
        check_triples(triples)
        if self.flow_counts is None:
            counts = np.zeros(n, dtype=np.int64)
        else:
            counts = _whole("flow_counts", self.flow_counts, 0, len(triples))
        if len(counts) != n or counts.sum() != len(triples):
            problem = f"has {len(counts)} counts, {counts.sum()} flows in all"
            raise FieldError("flow_counts", f"{problem}; give {n}, {len(triples)} in all")
        return counts, triples.reshape(-1, 3)


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


def _ids(ids: Sequence[str] | None, count: int) -> list[str] | None:
    if ids is None:
        return None
    found = list(ids)
    wrong = [k for k, each in enumerate(found) if type(each) is not str or not each]
    if wrong:
        problem = f"{found[wrong[0]]!r} is not a non-empty string"
        raise FieldError("ids", problem, (wrong[0],))
    if len(found) != count:
        raise FieldError("ids", f"has {len(found)} texts for {count} tasks; give one for each")
    return found


def _numbers(field: str, given: ArrayLike | None, count: int) -> FloatArray:
    """The numbers of a field, one for each task; inf: no limit."""
    values = array_of(field, np.inf if given is None else given)
    if values.shape not in ((), (count,)):
        raise FieldError(field, f"is not of shape ({count},); give one per task or one number")
    _check_numbers(field, values)
    return np.broadcast_to(values, count)


def _check_numbers(field: str, values: FloatArray) -> None:
    """Raise FieldError unless these can be numbers of a field of tasks; inf: no limit."""
    unlimited = (values == np.inf) & (field in ("walltime_s", "rate_bound"))
    checked = np.where(unlimited, 1.0, values)
    check_amounts(field, checked)
    if field != "start_s" and (checked == 0).any():
        raise FieldError(field, "holds a 0; give numbers above 0")


# What each number of a task is if nothing is said of it, in the order of a table.
NUMBERS = {
    "start_s": 0.0,
    "walltime_s": np.inf,
    "weight": 1.0,
    "rate_bound": np.inf,
    "competitors": 0.0,
}
_NO_FLOPS: FloatArray = own(np.zeros(()))
# Kinds of works, in the order of a table. A number that stands for a work is 3 * place + kind.
_OBJECT, _DELAY, _PARALLEL = range(3)


class TableMaker:
    """Makes a table of tasks that are added one by one. Raises FieldError, of any of them."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._numbers = {name: array("d") for name in NUMBERS}
        self._after: dict[int, tuple[str, ...]] = {}
        self._profiles: list[str | None] = []
        self._connections: dict[int, str] = {}
        self._places: dict[int, int] = {}  # of lists of hosts, by the identity of each
        self._lists: list[tuple[str, ...]] = []
        self._host_list, self._work = array("q"), array("q")
        self._objects: dict[int, tuple[int, Work]] = {}
        self._delays = array("d")
        self._ranks, self._counts = array("q"), array("q")
        self._flops: list[FloatArray] = []
        self._flows: list[FloatArray] = []

    def add(self, hosts: tuple[str, ...], work: int, others: Mapping[str, Any]) -> None:
        """Add a task on ``hosts``. work: what stands for its work. others: its other fields."""
        if "after" in others:
            self._after[len(self._ids)] = others["after"]
        if others.get("connection") is not None:
            self._connections[len(self._ids)] = others["connection"]
        self._ids.append(others["id"])
        self._profiles.append(others.get("profile"))
        for name, default in NUMBERS.items():
            value = default
            if name in others:
                value = check_number(name, others[name], positive=name != "start_s")
            self._numbers[name].append(value)
        place = self._places.setdefault(id(hosts), len(self._lists))
        if place == len(self._lists):
            self._lists.append(hosts)
        self._host_list.append(place)
        self._work.append(work)

    def shared(self, work: Work, ranks: int) -> int:
        """Return what stands for a ``work`` that tasks share, on so many ``ranks``."""
        if work.ranks not in (None, ranks) or (not ranks and work.duration_s is None):
            raise FieldError("hosts", f"are {ranks} for another work; give one per rank")
        place, _ = self._objects.setdefault(id(work), (len(self._objects), work))
        return 3 * place + _OBJECT

    def delay(self, seconds: float) -> int:
        """Return what stands for a delay of so many ``seconds``, which a task has alone."""
        self._delays.append(seconds)
        return 3 * len(self._delays) - 3 + _DELAY

    def parallel(self, ranks: int, flops: FloatArray | None, flows: FloatArray | None) -> int:
        """Return what stands for the parallel work of a task: flops, shape () or (ranks,), and
        flows, shape (flows, 3) or empty; None: there are none.
        """
        flops = _NO_FLOPS if flops is None else flops
        flows = NO_FLOATS if flows is None else flows
        if ranks < 1 or flops.shape not in ((), (ranks,)):
            raise FieldError("flops", "are for another number of hosts; give one per host")
        check_triples(flows)
        self._ranks.append(ranks)
        self._flops.append(flops)
        self._counts.append(len(flows) if flows.size else 0)
        if flows.size:
            self._flows.append(flows)
        return 3 * len(self._ranks) - 3 + _PARALLEL

    def table(self) -> TaskTable:
        """Return the tasks that were added."""
        places: dict[str, int] = {}
        used = [places.setdefault(name, len(places)) for name in chain.from_iterable(self._lists)]
        objects = [work for _, work in self._objects.values()]
        delays_s = _array(self._delays)
        works = WorkTable(objects, delays_s, self._parallel())
        place, kind = np.divmod(_array(self._work), 3)
        before = np.array([0, len(objects), len(objects) + len(delays_s)])
        start_s, walltime_s, weight, rate_bound, competitors = map(_array, self._numbers.values())
        return TaskTable(
            list(places), np.array(used, dtype=np.int64), firsts_of(_sizes(self._lists)),
            _array(self._host_list), works, before[kind] + place, self._ids, start_s, walltime_s,
            weight, rate_bound, competitors, self._after, self._profiles, self._connections,
        )  # fmt: skip

    def _parallel(self) -> ParallelWorks:
        ranks, counts = _array(self._ranks), _array(self._counts)
        if all(flops.ndim == 0 for flops in self._flops):
            flops = np.repeat(np.array(self._flops, dtype=np.float64), ranks)
        else:
            each = zip(self._flops, ranks.tolist(), strict=True)
            flops = np.concatenate([np.broadcast_to(one, count) for one, count in each])
        flows, self._flops, self._flows = self._flows, [], []
        return ParallelWorks.of(ranks, flops, counts, flows)


def _array(values: array) -> np.ndarray:
    return np.array(values, dtype=np.float64 if values.typecode == "d" else np.int64)


def _sizes(lists: Sequence[Sequence[Any]]) -> IntArray:
    return np.fromiter(map(len, lists), np.int64, len(lists))
