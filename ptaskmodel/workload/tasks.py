"""Tasks as frozen data: each is a work on hosts, from a start time on; and closed loops of them.

`in_order` sorts tasks that wait for each other, or returns the cycle. `closed_loop` makes the
requests of a client that asks, waits until it is served, thinks, and asks again: tasks, each after
the one before and a pause. A tasks file has them as ``loops``.

Source: closed systems as of Schroeder, Wierman and Harchol-Balter, "Open versus closed: a
cautionary tale", NSDI 2006.
"""

from __future__ import annotations

import graphlib
import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from collections.abc import Sequence as Seq
from dataclasses import MISSING, Field, dataclass, fields
from itertools import cycle, islice, repeat
from typing import Any, NoReturn, TypedDict, TypeVar, Unpack

from numpy.typing import ArrayLike

from ptaskmodel.errors import MOST_PROBLEMS, WorkloadError
from ptaskmodel.lazy import with_old_names
from ptaskmodel.workload.amounts import FieldError, check_number, plural_hosts
from ptaskmodel.workload.works import DelayWork, ParallelWork, SequenceWork, Work

Node = TypeVar("Node", bound=Hashable)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A work on hosts, from a date. Compared by identity.

    Its subclasses are other ways to write one: by their own arguments, or by the fields ``hosts``
    and ``work``, so that `dataclasses.replace` works on them.

    hosts: names; one may appear several times (several ranks on one host). Any number, even none,
    for a delay.
    work: the work, which tasks may share.
    id: name of the task, unique in a simulation; the simulation numbers those that have none.
    start_s: date of arrival, s. after: ids of the tasks that must have completed before it starts.
    walltime_s: longest duration once started, s; the task is stopped then.
    weight: priority in sharing; 2 gets twice the share of 1 on the resource that limits it.
    rate_bound: largest rate, in stages per second (1 / shortest duration of each stage).
    profile: name of the profile that the work comes from, for the records.
    competitors: how many competitors the task counts for on every resource it shares, instead of
    what the simulation counts.
    connection: name of the connection (queue pair) that carries its flows, by which they choose
    routes: flows of one connection between the same hosts take one path. None: one of its own.

    Raises WorkloadError if a value is out of range or the work does not fit the number of hosts.
    """

    hosts: tuple[str, ...]
    work: Work
    id: str | None = None
    start_s: float = 0.0
    after: tuple[str, ...] = ()
    walltime_s: float | None = None
    weight: float = 1.0
    rate_bound: float | None = None
    profile: str | None = None
    competitors: float | None = None
    connection: str | None = None

    def __post_init__(self) -> None:
        try:
            self._check()
        except FieldError as error:
            _raise_named(self.id, error)

    def _check(self) -> None:
        if type(self.hosts) is not tuple:
            object.__setattr__(self, "hosts", _names("hosts", self.hosts))
        if type(self.after) is not tuple:
            object.__setattr__(self, "after", _names("after", self.after))
        if not isinstance(self.work, Work):
            raise FieldError("work", f"{self.work!r} is not a Work; give one, such as ParallelWork")
        if not self.work.is_plain:
            problem = (
                f"a {type(self.work).__name__} describes a job; bind it to the hosts of the job"
            )
            raise FieldError("work", problem)
        ranks = self.work.ranks
        if ranks is not None and ranks != len(self.hosts):
            problem = (
                f"{plural_hosts(len(self.hosts))} for a work of {ranks} ranks; give one per rank"
            )
            raise FieldError("hosts", problem)
        if not self.hosts and self.work.duration_s is None:
            raise FieldError("hosts", "is empty; give at least one host")
        for name in ("id", "connection"):
            value = getattr(self, name)
            if value is not None and (type(value) is not str or not value):
                raise FieldError(name, f"{value!r} is not a non-empty string")
        self._check_numbers()

    def _check_numbers(self) -> None:
        if self.start_s != 0 or type(self.start_s) is not float:
            object.__setattr__(self, "start_s", check_number("start_s", self.start_s))
        if self.weight != 1 or type(self.weight) is not float:
            object.__setattr__(self, "weight", check_number("weight", self.weight, positive=True))
        for name in ("walltime_s", "rate_bound", "competitors"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, check_number(name, value, positive=True))


def _raise_named(name: Any, error: FieldError) -> NoReturn:
    """Raise ``error`` again, with the task's name in it."""
    raise FieldError(error.field, error.problem, error.place, name) from None


def _names(field: str, names: Iterable[str]) -> tuple[str, ...]:
    """``names`` as a tuple of non-empty strings."""
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise FieldError(field, f"{names!r} is not a list of names; write [{names!r}]")
    names = tuple(names)
    for k, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise FieldError(field, f"{_shown(name)} is not a non-empty string", (k,))
    return names


def _name(field: str, name: str | None) -> str:
    if not isinstance(name, str) or not name:
        raise FieldError(field, f"{_shown(name)} is not a non-empty string")
    return name


def _shown(given: object) -> str:
    """What was given for a name; of an object that has one, how to give it."""
    named = isinstance(getattr(given, "name", None), str)
    return f"a {type(given).__name__} (give its .name)" if named else repr(given)


class Common(TypedDict, total=False):
    """The arguments that every task takes besides its hosts and work (see `Task`)."""

    id: str | None
    start_s: float
    after: Iterable[str]
    walltime_s: float | None
    weight: float
    rate_bound: float | None
    profile: str | None
    competitors: float | None
    connection: str | None


def _check_alone(work: Work | None, **others: Any) -> None:
    """A work is given instead of the arguments that it would be made of."""
    besides = next((name for name, value in others.items() if value is not None), None)
    if besides is not None:
        given = "is given without a work" if work is None else "is given in addition to a work"
        raise FieldError(besides, f"{given}; give both hosts and work, or neither")


class ParallelTask(Task):
    """Computations on hosts and communications between them that progress together.

    hosts: names, one for each rank. flops: flop of each rank, shape (n,), or one number for all.
    bytes: entry (i, j) is what rank i sends to rank j, shape (n, n) or flat row-major; flows: the
    same as triples (i, j, bytes). work: instead of these, a `ParallelWork`; tasks with equal
    amounts that share one take less memory. common: see `Task`.
    """

    __slots__ = ()

    def __init__(
        self,
        hosts: Iterable[str],
        flops: ArrayLike | None = None,
        bytes: ArrayLike | None = None,
        flows: ArrayLike | Iterable[tuple[int, int, float]] | None = None,
        *,
        work: Work | None = None,
        **common: Unpack[Common],
    ) -> None:
        try:
            hosts = _names("hosts", hosts)
            if work is None:
                work = ParallelWork.of(len(hosts), flops, bytes, flows)
            else:
                _check_alone(work, flops=flops, bytes=bytes, flows=flows)
        except FieldError as error:
            _raise_named(common.get("id"), error)
        super().__init__(hosts, work, **common)  # type: ignore[arg-type]


class Execution(Task):
    """An execution of ``flops`` flop on one core of one host.

    host: its name. hosts, work: the same as for any task, instead of host and flops. common: see
    `Task`.
    """

    __slots__ = ()

    def __init__(
        self,
        host: str | None = None,
        flops: float | None = None,
        *,
        hosts: Iterable[str] | None = None,
        work: Work | None = None,
        **common: Unpack[Common],
    ) -> None:
        try:
            if work is None:
                _check_alone(work, hosts=hosts)
                hosts = (_name("host", host),)
                work = ParallelWork.of_execution(flops)
            else:
                _check_alone(work, host=host, flops=flops)
        except FieldError as error:
            _raise_named(common.get("id"), error)
        super().__init__(hosts, work, **common)  # type: ignore[arg-type]


class Flow(Task):
    """A flow of ``bytes`` bytes from host ``src`` to host ``dst``.

    hosts, work: the same as for any task, instead of these. common: see `Task`.
    """

    __slots__ = ()

    def __init__(
        self,
        src: str | None = None,
        dst: str | None = None,
        bytes: float | None = None,
        *,
        hosts: Iterable[str] | None = None,
        work: Work | None = None,
        **common: Unpack[Common],
    ) -> None:
        try:
            if work is None:
                _check_alone(work, hosts=hosts)
                hosts = (_name("src", src), _name("dst", dst))
                work = ParallelWork.of_flow(bytes)
            else:
                _check_alone(work, src=src, dst=dst, bytes=bytes)
        except FieldError as error:
            _raise_named(common.get("id"), error)
        super().__init__(hosts, work, **common)  # type: ignore[arg-type]


@with_old_names
class Delay(Task):
    """A task of ``duration_s`` seconds that uses nothing, on any ``hosts`` or none.

    work: a delay, instead of ``duration_s``. common: see `Task`.
    """

    __slots__ = ()

    def __init__(
        self,
        duration_s: float | None = None,
        hosts: Iterable[str] = (),
        *,
        work: Work | None = None,
        **common: Unpack[Common],
    ) -> None:
        try:
            if work is None:
                work = DelayWork(duration_s)  # type: ignore[arg-type]
            else:
                _check_alone(work, duration_s=duration_s)
        except FieldError as error:
            _raise_named(common.get("id"), error)
        super().__init__(hosts, work, **common)  # type: ignore[arg-type]


class Sequence(Task):
    """Stages (works) that run one after the other on the same ``hosts``, ``repeat`` times over.

    work: a sequence, instead of ``stages`` and ``repeat``. common: see `Task`.
    """

    __slots__ = ()

    def __init__(
        self,
        hosts: Iterable[str],
        stages: Seq[Work] = (),
        repeat: int = 1,
        *,
        work: Work | None = None,
        **common: Unpack[Common],
    ) -> None:
        try:
            if work is None:
                work = SequenceWork(tuple(stages), repeat)
            else:
                _check_alone(work, stages=stages or None)
        except FieldError as error:
            _raise_named(common.get("id"), error)
        super().__init__(hosts, work, **common)  # type: ignore[arg-type]


def in_order(before: Mapping[Node, Iterable[Node]]) -> tuple[list[Node], list[list[Node]]]:
    """Everything after what comes before it, without the circles; and the circles.

    before: what comes directly before each thing. A circle is given without repetition, each of
    its things directly before the next, the last before the first; equal inputs give the same.
    Circles have no thing in common, and are MOST_PROBLEMS at most; if there are more, nothing is
    in order.
    """
    circles: list[list[Node]] = []
    while len(circles) < MOST_PROBLEMS:
        try:
            return list(graphlib.TopologicalSorter(before).static_order()), circles
        except graphlib.CycleError as error:
            circle = error.args[1][:-1]
        circles.append(circle)
        gone = set(circle)
        before = {
            node: [one for one in others if one not in gone]
            for node, others in before.items()
            if node not in gone
        }
    return [], circles


def check_acyclic(waits: Iterable[tuple[int, Iterable[int]]], ids: Seq[str]) -> None:
    """Tasks do not wait for each other in a circle.

    waits: numbers of tasks, each with those that it waits for. ids: the names of all tasks.
    Raises WorkloadError.
    """
    _, circles = in_order(dict(waits))
    if circles:
        name = ids[min(circles[0])]
        raise WorkloadError(
            f"task {name!r}: waits for itself through its `after` list; remove one of these"
        )


def objects_of_columns(kind: type[T], columns: Mapping[str, Seq[Any]]) -> list[T]:
    """Make objects of a dataclass with slots (`kind`); `columns`: right values, by field."""
    made = [kind.__new__(kind) for _ in columns["id"]]
    for each in fields(kind):  # type: ignore[arg-type]
        values = columns.get(each.name, repeat(default_of(each), len(made)))
        deque(map(getattr(kind, each.name).__set__, made, values), maxlen=0)
    return made


def default_of(each: Field[Any]) -> Any:
    """The value of a field (`each`) if nothing is said of it."""
    return each.default if each.default_factory is MISSING else each.default_factory()


# Between the name of a loop and the number of a request; what the pause after one adds.
NUMBER, PAUSE = "#", " think"
MOST_REQUESTS = 1_000_000


def closed_loop(
    id: str,
    hosts: Seq[str],
    work: Work,
    count: int,
    think_s: Iterable[float] = (0.0,),
    at_once: int = 1,
    **options: Any,
) -> list[Task]:
    """The requests of a client, in the order of their numbers, and its pauses.

    id: of the client; its requests are called ``id#1``, ``id#2``, ..., and have it as their
    profile. hosts, work: of each request. count: requests in all. think_s: the pauses after
    requests, s; they begin anew where they end. at_once: how many requests wait to be served at a
    time; each of them is followed by a pause and the next one that is free. options: as of `Task`;
    ``start_s`` is the date of the first requests, and all requests are of one connection, called
    ``id``, unless ``connection`` says otherwise (None: each of its own).

    Raises WorkloadError if a number is out of range.
    """
    if not 1 <= count <= MOST_REQUESTS:
        raise WorkloadError(f"loop {id!r}: count is {count!r}; give 1 to {MOST_REQUESTS:,}")
    if not 1 <= at_once <= count:
        raise WorkloadError(f"loop {id!r}: at_once is {at_once!r}; give 1 to its count, {count}")
    options.setdefault("connection", id)
    pauses = cycle(tuple(islice(think_s, count)) or (0.0,))
    tasks: list[Task] = []
    for number in range(1, count + 1):
        before = number - at_once
        after: tuple[str, ...] = ()
        if before >= 1:
            after, seconds = (f"{id}{NUMBER}{before}",), next(pauses)
            if seconds > 0.0:
                pause = after[0] + PAUSE
                tasks.append(
                    Task((), DelayWork(seconds), id=pause, after=after, profile=id + PAUSE)
                )
                after = (pause,)
        name = f"{id}{NUMBER}{number}"
        tasks.append(Task(tuple(hosts), work, id=name, after=after, profile=id, **options))
    return tasks


def exponential(mean_s: float, seed: str) -> Iterator[float]:
    """Pauses drawn from an exponential distribution with the mean ``mean_s``; a ``seed`` each."""
    draw = _draws(seed)
    while True:
        yield -mean_s * math.log1p(-draw())


def uniform(low_s: float, high_s: float, seed: str) -> Iterator[float]:
    """Pauses drawn evenly between ``low_s`` and ``high_s``; a ``seed`` each."""
    draw = _draws(seed)
    while True:
        yield low_s + (high_s - low_s) * draw()


def _draws(seed: str) -> Callable[[], float]:
    """Numbers from 0 to 1, the same ones for a seed on every machine."""
    import random

    return random.Random(seed).random
