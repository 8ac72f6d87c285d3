"""Works as frozen data: the amounts to be done, without hosts or times."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ptaskmodel.errors import WorkloadError
from ptaskmodel.platform.facts import HostFacts
from ptaskmodel.workload.amounts import (
    NO_FLOATS,
    NO_INTS,
    Demand,
    FieldError,
    FloatArray,
    IntArray,
    check_amounts,
    check_number,
    flops_of,
    flows_of_list,
    flows_of_matrix,
    frozen,
    own,
)

if TYPE_CHECKING:
    from ptaskmodel.workload.traces import Trace

MAX_REPEAT = 10**9
MAX_STAGES = 10**6
MAX_DEPTH = 100
# Steps of a work of which some parts go on side by side: they are listed one by one.
MAX_STEPS = 10**6

_TWO_ZEROS: FloatArray = own(np.zeros(2))
_ZERO: IntArray = own(np.zeros(1, dtype=np.int64))
_ONE: IntArray = own(np.ones(1, dtype=np.int64))


class Work:
    """The amounts to be done, without hosts or times; tasks may share a work.

    A simple work is one stage: all of it progresses together. A sequence has stages, run in
    ``rounds``. Methods are implemented here for simple works; other classes override them.

    ranks: the number of hosts that it needs, None if any number will do.
    rounds: how many times `one_round` is run.
    is_plain: it can be a task as it is; `bound` turns other works into plain ones.
    splits: its ranks progress independently, as works of their own.
    only_storages: it uses storages and none of the hosts.
    is_simple: of a class, whether its works are simple.
    """

    __slots__ = ()

    is_simple: ClassVar[bool] = True
    rounds = 1
    is_plain = True
    splits = False
    only_storages = False

    @property
    def ranks(self) -> int | None:
        """The number of hosts that it needs; None: any number."""
        return None

    @property
    def duration_s(self) -> float | None:
        """How long it lasts on any platform, s; None if that depends on the platform."""
        return None

    def parts(self) -> Iterator[Work]:
        """Yield the simple works that it consists of, in order, without repetitions."""
        yield self

    def one_round(self) -> list[Work]:
        """Return the simple works of a round, one after the other, with repetitions."""
        return [self]

    def summed(self, value: Callable[[Work], float]) -> float:
        """Return the sum of `value` over its simple works, with repetitions."""
        return value(self)

    def mapped(self, change: Callable[[Work], Work]) -> Work:
        """Return the same work with each simple work replaced by ``change(work)``."""
        return change(self)

    def demand(self, ranks: int) -> Demand:
        """Return what a simple work demands of `ranks` ranks. Raises TypeError for other works."""
        raise TypeError(f"{type(self).__name__} has no demand of its own; ask its simple works")

    def divided(self, flops: float, bytes: float) -> Work:
        """Return the same work with its flops over `flops`, its bytes over `bytes`; delays stay."""
        return self.mapped(lambda part: part.divided(flops, bytes))

    def with_merged_flows(self, rank: IntArray) -> Work:
        """Return the same work with rank k's flows moved to ``rank[k]``, those of a pair merged."""
        return self

    def storages(self) -> Iterator[str]:
        """Yield the names of the storages that it uses, with repetitions."""
        return iter(())

    def beside_storages(self, hosts: int, rank: dict[str, int]) -> Work:
        """Return the plain work on ``hosts`` ranks and the storages, whose ranks follow:
        ``rank[name]``.
        """
        return self

    def bound(self, hosts: tuple[str, ...], facts: HostFacts) -> Steps:
        """Return the steps of a job's work on its `hosts`: sequential, each a list of parallel
        works.

        facts: data about the hosts. Each (hosts, work) can be a task. There is one step, unless a
        sequence contains ranks that split. Raises WorkloadError for an unknown storage or more than
        MAX_STEPS.
        """
        if self.is_plain:
            return [[(hosts, self)]]
        names = list(dict.fromkeys(self.storages()))
        places = tuple(dict.fromkeys(map(facts.storage_host, names)))
        rank = {name: len(hosts) + places.index(facts.storage_host(name)) for name in names}
        return [[(hosts + places, self.beside_storages(len(hosts), rank))]]


def may_last(kinds: Iterable[type[Work]]) -> bool:
    """Return whether works of classes `kinds` may have a duration that no platform changes."""
    return any(kind.duration_s is not Work.duration_s for kind in kinds)


Bound = tuple[tuple[str, ...], Work]
Steps = list[list[Bound]]


@dataclass(frozen=True, slots=True, eq=False)
class ParallelWork(Work):
    """Computations and communications that progress together.

    flops: shape (n,), flop of each rank. The k-th flow carries ``flow_bytes[k]`` > 0 bytes from
    rank ``flow_from[k]`` to rank ``flow_to[k]``, in row-major order of (from, to), each pair at
    most once; a rank may send to itself. The arrays are read-only; those given are copied if they
    can be written. Use `ParallelWork.of` to build one from matrices or lists.

    pair_bytes: > 0 if the flows are one of so many bytes from every rank to every other, for which
    there are faster ways than one by one; else 0.

    Raises WorkloadError if the arrays are not that.
    """

    flops: FloatArray
    flow_from: IntArray
    flow_to: IntArray
    flow_bytes: FloatArray
    pair_bytes: float = field(init=False, repr=False)

    def __reduce__(self) -> tuple[Callable[..., ParallelWork], tuple[np.ndarray, ...]]:
        return _restored, (self.flops, self.flow_from, self.flow_to, self.flow_bytes)

    def __post_init__(self) -> None:
        for name, kind in (
            ("flops", np.float64),
            ("flow_from", np.int64),
            ("flow_to", np.int64),
            ("flow_bytes", np.float64),
        ):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != kind:
                raise FieldError(name, f"is not a one-dimensional array of {kind.__name__}")
            object.__setattr__(self, name, frozen(array))
        n, count = len(self.flops), len(self.flow_bytes)
        if n == 0:
            raise FieldError("flops", "is empty; a work needs at least one rank")
        check_amounts("flops", self.flops)
        if not len(self.flow_from) == len(self.flow_to) == count:
            raise FieldError("flow_bytes", "flow_from, flow_to and flow_bytes differ in length")
        object.__setattr__(self, "pair_bytes", 0.0)
        if count == 0:
            return
        check_amounts("flow_bytes", self.flow_bytes)
        if self.flow_bytes.min() == 0:
            raise FieldError("flow_bytes", "holds a 0; remove that flow")
        for name, ends in (("flow_from", self.flow_from), ("flow_to", self.flow_to)):
            if ends.min() < 0 or ends.max() >= n:
                raise FieldError(name, f"holds a rank outside 0..{n - 1}; correct it")
        pairs = self.flow_from * n + self.flow_to
        if count > 1 and (pairs[1:] <= pairs[:-1]).any():
            raise FieldError("flow_from", "the flows are not in row-major order, each pair once")
        self._recognise()

    def _recognise(self) -> None:
        """Set ``pair_bytes``: as each pair is there at most once, it is enough to count them."""
        n, sent = len(self.flops), self.flow_bytes
        every = len(sent) == n * (n - 1) > 0 and bool(sent[0] == sent[-1])
        every = every and bool((sent == sent[0]).all())
        every = every and bool((self.flow_from != self.flow_to).all())
        object.__setattr__(self, "pair_bytes", float(sent[0]) if every else 0.0)

    @property
    def ranks(self) -> int:
        """How many hosts it needs."""
        return len(self.flops)

    @classmethod
    def of(
        cls,
        ranks: int,
        flops: ArrayLike | None = None,
        bytes: ArrayLike | None = None,
        flows: ArrayLike | Iterable[tuple[int, int, float]] | None = None,
    ) -> ParallelWork:
        """The work of ``ranks`` ranks.

        flops: flop of each rank, shape (ranks,), or one number for all; None is 0.
        bytes: entry (i, j) goes from rank i to rank j, shape (ranks, ranks) or flat, row-major.
        flows: the same as a sparse list of (i, j, bytes), in any order, each pair once.
        Entries of 0 bytes are dropped.

        Raises WorkloadError (FieldError) on wrong sizes, numbers or ranks, or both of bytes and
        flows.
        """
        if bytes is not None and flows is not None:
            raise FieldError("flows", "is given in addition to bytes; keep one of the two")
        flops_array = flops_of(ranks, flops)
        if flows is not None:
            return cls.of_arrays(flops_array, *flows_of_list(ranks, flows))
        if bytes is not None:
            return cls.of_arrays(flops_array, *flows_of_matrix(ranks, bytes))
        return cls.of_arrays(flops_array, NO_INTS, NO_INTS, NO_FLOATS)

    @classmethod
    def of_execution(cls, flops: float | None) -> ParallelWork:
        """``flops`` flop on one rank; the same as ``of(1, flops)``, much faster."""
        amount = own(np.array([check_number("flops", flops)]))
        return cls.of_arrays(amount, NO_INTS, NO_INTS, NO_FLOATS)

    @classmethod
    def of_flow(cls, bytes: float | None) -> ParallelWork:
        """``bytes`` bytes from rank 0 to rank 1; the same as ``of`` on two ranks, much faster."""
        amount = check_number("bytes", bytes)
        if amount == 0:
            return cls.of_arrays(_TWO_ZEROS, NO_INTS, NO_INTS, NO_FLOATS)
        return cls.of_arrays(_TWO_ZEROS, _ZERO, _ONE, own(np.array([amount])))

    @classmethod
    def of_arrays(
        cls, flops: FloatArray, flow_from: IntArray, flow_to: IntArray, flow_bytes: FloatArray
    ) -> ParallelWork:
        """The same as the constructor, for read-only arrays known to be right: ``flops``,
        ``flow_from``, ``flow_to``, ``flow_bytes``.
        """
        work = object.__new__(cls)
        object.__setattr__(work, "flops", flops)
        object.__setattr__(work, "flow_from", flow_from)
        object.__setattr__(work, "flow_to", flow_to)
        object.__setattr__(work, "flow_bytes", flow_bytes)
        work._recognise()
        return work

    def demand(self, ranks: int) -> Demand:
        if self.pair_bytes > 0.0:
            return Demand(self.flops, self.pair_bytes)
        return Demand(self.flops, 0.0, self.flow_from, self.flow_to, self.flow_bytes)

    def divided(self, flops: float, bytes: float) -> ParallelWork:
        """Return it with its flops divided by `flops` and its bytes by `bytes`."""
        volumes = self.flow_bytes / bytes
        return ParallelWork(self.flops / flops, self.flow_from, self.flow_to, volumes)

    def with_merged_flows(self, rank: IntArray) -> ParallelWork:
        n = len(self.flops)
        keys = rank[self.flow_from] * n + rank[self.flow_to]
        pairs, place = np.unique(keys, return_inverse=True)
        amounts = np.bincount(place, self.flow_bytes, len(pairs)).astype(np.float64)
        return ParallelWork(self.flops, pairs // n, pairs % n, amounts)

    def beside_storages(self, hosts: int, rank: dict[str, int]) -> ParallelWork:
        flops = np.concatenate((self.flops, np.zeros(ranks_beside(hosts, rank) - hosts)))
        return ParallelWork(flops, self.flow_from, self.flow_to, self.flow_bytes)


def _restored(*arrays: np.ndarray) -> ParallelWork:
    """A parallel work from a pickle, which forgets that arrays are read-only."""
    return ParallelWork.of_arrays(*map(own, arrays))


def ranks_beside(hosts: int, rank: dict[str, int]) -> int:
    """How many ranks there are in all, the hosts' and those of storages."""
    return max(rank.values(), default=hosts - 1) + 1


@dataclass(frozen=True, slots=True)
class HomogeneousWork(Work):
    """Every rank computes ``flops`` and sends ``bytes`` to every other rank (any number of ranks).

    With ``total``, both are amounts for the whole task, spread evenly: over the n ranks, and over
    the n * (n - 1) ordered pairs of distinct ranks (the rule of Batsim 5).

    Raises WorkloadError if an amount is negative, not finite or out of range.
    """

    flops: float
    bytes: float
    total: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "flops", check_number("flops", self.flops))
        object.__setattr__(self, "bytes", check_number("bytes", self.bytes))

    def per_rank(self, ranks: int) -> tuple[float, float]:
        """(flops of each rank, bytes of each ordered pair of distinct ranks) on ``ranks`` ranks."""
        if self.total:
            return self.flops / ranks, self.bytes / max(1, ranks * (ranks - 1))
        return self.flops, self.bytes

    def demand(self, ranks: int) -> Demand:
        return Demand(*self.per_rank(ranks))

    def expanded(self, ranks: int) -> ParallelWork:
        """The same as a parallel work on so many ranks."""
        flops, size = self.per_rank(ranks)
        matrix = None
        if size > 0.0 and ranks > 1:
            matrix = np.full((ranks, ranks), size)
            np.fill_diagonal(matrix, 0.0)
        return ParallelWork.of(ranks, flops, matrix)

    def divided(self, flops: float, bytes: float) -> HomogeneousWork:
        """Return it with its flops divided by `flops` and its bytes by `bytes`."""
        return HomogeneousWork(self.flops / flops, self.bytes / bytes, self.total)

    def beside_storages(self, hosts: int, rank: dict[str, int]) -> ParallelWork:
        return self.expanded(hosts).beside_storages(hosts, rank)


@dataclass(frozen=True, slots=True)
class DelayWork(Work):
    """Nothing but time passes: ``delay_s`` seconds. Raises WorkloadError if not >= 0 and finite."""

    delay_s: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "delay_s", check_number("seconds", self.delay_s))

    @classmethod
    def each(cls, delays_s: FloatArray) -> list[DelayWork]:
        """Return a work for each of `delays_s`, s, shape (n,); raises FieldError as for a single
        one.
        """
        check_amounts("seconds", delays_s)
        works = list(map(cls.__new__, itertools.repeat(cls, len(delays_s))))
        give: Callable[[DelayWork, float], None] = vars(cls)["delay_s"].__set__
        for work, delay_s in zip(works, delays_s.tolist(), strict=True):
            give(work, delay_s)
        return works

    @property
    def duration_s(self) -> float:
        return self.delay_s

    def demand(self, ranks: int) -> Demand:
        return Demand(0.0)

    def divided(self, flops: float, bytes: float) -> DelayWork:
        """Return the delay itself: `flops` and `bytes` do not apply."""
        return self


@dataclass(frozen=True, slots=True)
class SequenceWork(Work):
    """The stages one after the other, on the same hosts, ``repeat`` times over.

    ``stages_per_round`` is the number of stages of one round, those of nested sequences counted
    each time; ``depth`` how deep sequences are nested.

    Raises WorkloadError if there is no stage, if the stages need different numbers of hosts, or
    beyond MAX_STAGES stages per round, MAX_REPEAT rounds or MAX_DEPTH levels.
    """

    is_simple: ClassVar[bool] = False

    stages: tuple[Work, ...]
    repeat: int = 1
    ranks: int | None = field(init=False, repr=False, compare=False)
    duration_s: float | None = field(init=False, repr=False, compare=False)
    stages_per_round: int = field(init=False, repr=False, compare=False)
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        stages = tuple(self.stages)
        if not stages:
            raise FieldError("stages", "is empty; give at least one stage")
        for k, stage in enumerate(stages):
            if not isinstance(stage, Work):
                raise FieldError("stages", f"{stage!r} is not a Work", (k,))
        sizes = sorted({stage.ranks for stage in stages if stage.ranks is not None})
        if len(sizes) > 1:
            problem = f"need different numbers of hosts ({', '.join(map(str, sizes))})"
            raise FieldError("stages", problem)
        if type(self.repeat) is not int or not 1 <= self.repeat <= MAX_REPEAT:
            problem = f"{self.repeat!r} is not a whole number from 1 to {MAX_REPEAT}"
            raise FieldError("repeat", problem)
        nested = [stage for stage in stages if isinstance(stage, SequenceWork)]
        depth = 1 + max((stage.depth for stage in nested), default=0)
        if depth > MAX_DEPTH:
            raise FieldError("stages", f"are nested more than {MAX_DEPTH} deep; flatten them")
        count = len(stages) + sum(stage.repeat * stage.stages_per_round - 1 for stage in nested)
        if count > MAX_STAGES:
            raise FieldError(
                "stages", f"make {count} stages a round, over {MAX_STAGES}; merge some"
            )
        object.__setattr__(self, "stages", stages)
        object.__setattr__(self, "ranks", sizes[0] if sizes else None)
        object.__setattr__(self, "duration_s", _duration_s(stages, self.repeat))
        object.__setattr__(self, "stages_per_round", count)
        object.__setattr__(self, "depth", depth)

    @property
    def rounds(self) -> int:  # type: ignore[override]
        return self.repeat

    @property
    def is_plain(self) -> bool:  # type: ignore[override]
        return all(stage.is_plain for stage in self.stages)

    @property
    def splits(self) -> bool:  # type: ignore[override]
        return any(stage.splits for stage in self.stages)

    @property
    def only_storages(self) -> bool:  # type: ignore[override]
        return all(stage.only_storages for stage in self.stages)

    def parts(self) -> Iterator[Work]:
        for stage in self.stages:
            yield from stage.parts()

    def one_round(self) -> list[Work]:
        return [part for stage in self.stages for part in stage.one_round() * stage.rounds]

    def summed(self, value: Callable[[Work], float]) -> float:
        return self.repeat * sum(stage.summed(value) for stage in self.stages)

    def mapped(self, change: Callable[[Work], Work]) -> SequenceWork:
        return SequenceWork(tuple(stage.mapped(change) for stage in self.stages), self.repeat)

    def with_merged_flows(self, rank: IntArray) -> SequenceWork:
        return self.mapped(lambda part: part.with_merged_flows(rank))

    def storages(self) -> Iterator[str]:
        for stage in self.stages:
            yield from stage.storages()

    def beside_storages(self, hosts: int, rank: dict[str, int]) -> SequenceWork:
        return self.mapped(lambda part: part.beside_storages(hosts, rank))

    def bound(self, hosts: tuple[str, ...], facts: HostFacts) -> Steps:
        if not self.splits:
            return Work.bound(self, hosts, facts)
        steps = [step for stage in self.stages for step in stage.bound(hosts, facts)]
        if len(steps) * self.repeat > MAX_STEPS:
            raise WorkloadError(
                f"a sequence of usage traces makes {len(steps) * self.repeat:,} steps, more than "
                f"{MAX_STEPS:,}; repeat it less"
            )
        return steps * self.repeat


def _duration_s(stages: Iterable[Work], repeat: int) -> float | None:
    total = 0.0
    for stage in stages:
        if stage.duration_s is None:
            return None
        total += stage.duration_s
    return total * repeat


@dataclass(frozen=True, slots=True, eq=False)
class TraceWork(Work):
    """The ranks of a trace, message by message: rank k on host k, over again if they run out."""

    trace: Trace

    def divided(self, flops: float, bytes: float) -> TraceWork:
        """Raise WorkloadError: a trace cannot be scaled by `flops` and `bytes`."""
        raise WorkloadError(
            f"{self.trace.origin}: a trace cannot be scaled; convert it to a parallel task first "
            "(ptaskmodel trace to-ptask)"
        )
