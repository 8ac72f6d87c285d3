"""How much is to be done, as frozen facts: works, without saying where or when."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptaskmodel.errors import WorkloadError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Amounts, dates, weights and rates are 0 or within these, so that sums and ratios of any of them
# stay finite and normal in double precision.
SMALLEST = 1e-100
LARGEST = 1e100
MAX_REPEAT = 10**9
MAX_STAGES = 10**6
MAX_DEPTH = 100


class FieldError(WorkloadError):
    """A field of a work or a task is wrong: which one, where in it, what, and the remedy.

    field: name of the argument; place: indices into it; problem: the rest of the message; task: the
    id of the task, if it has one. A reader of a file turns these into a place in the file.
    """

    def __init__(
        self, field: str, problem: str, place: tuple[int, ...] = (), task: object = None
    ) -> None:
        super().__init__(field, problem, place, task)
        self.field, self.problem, self.place, self.task = field, problem, place, task

    def __str__(self) -> str:
        name = "" if self.task is None else f"task {self.task!r}: "
        return f"{name}{self.field}{''.join(f'[{k}]' for k in self.place)}: {self.problem}"


def check_number(field: str, value: Any, *, positive: bool = False) -> float:
    """``value`` as a float that is 0 (unless ``positive``) or in [SMALLEST, LARGEST]."""
    if type(value) is not float:
        if isinstance(value, bool | str | bytes | complex):
            raise FieldError(field, f"{value!r} is not a number")
        try:
            value = float(value)
        except OverflowError:
            raise FieldError(field, f"is larger than {LARGEST:g}") from None
        except (TypeError, ValueError):
            raise FieldError(field, f"{value!r} is not a number") from None
    if SMALLEST <= value <= LARGEST or (value == 0 and not positive):
        return value
    raise FieldError(field, _why_bad(value, positive))


def _why_bad(value: float, positive: bool) -> str:
    if not math.isfinite(value):
        return f"{value} is not a finite number"
    if value < 0:
        return f"{value!r} is negative; give a number {'above 0' if positive else 'that is not'}"
    if value == 0:
        return "0 is too small; give a number above 0"
    if value < SMALLEST:
        return f"{value!r} is below {SMALLEST:g}; give a larger number{'' if positive else ' or 0'}"
    return f"{value!r} is larger than {LARGEST:g}"


def check_amounts(field: str, values: FloatArray) -> None:
    """Every entry is 0 or in [SMALLEST, LARGEST], else a FieldError with the place of the first."""
    if values.size == 0:
        return
    # Two reductions pass nearly every array; only a suspect one pays for masks.
    if values.min() >= SMALLEST and values.max() <= LARGEST:
        return
    good = ((values >= SMALLEST) & (values <= LARGEST)) | (values == 0)
    if not good.all():
        place = tuple(int(k) for k in np.argwhere(~good)[0])
        raise FieldError(field, _why_bad(float(values[place]), False), place)


def _array(field: str, values: ArrayLike) -> FloatArray:
    """``values`` as a fresh float64 array."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise FieldError(field, "is not a regular array of numbers") from None
    if array.dtype.kind not in "fiu" and array.size:
        raise FieldError(field, f"holds {array.dtype} values; give numbers")
    return np.array(array, dtype=np.float64)


def _frozen(array: NDArray) -> NDArray:
    """``array``, if nobody can write into it, else a copy into which nobody can."""
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array


def _own(array: NDArray) -> NDArray:
    """``array``, made read-only (ours: nobody else holds it)."""
    array.flags.writeable = False
    return array


NO_FLOATS: FloatArray = _own(np.empty(0))
NO_INTS: IntArray = _own(np.empty(0, dtype=np.int64))
_TWO_ZEROS: FloatArray = _own(np.zeros(2))
_ZERO: IntArray = _own(np.zeros(1, dtype=np.int64))
_ONE: IntArray = _own(np.ones(1, dtype=np.int64))


class Work:
    """How much is to be done, without saying where or when; shared between tasks.

    ``ranks`` is the number of hosts that it needs, None if any number will do.
    """

    __slots__ = ()

    @property
    def ranks(self) -> int | None:
        return None


@dataclass(frozen=True, slots=True, eq=False)
class ParallelWork(Work):
    """Computations and communications that progress together.

    flops: shape (n,), flop of each rank. The k-th flow carries ``flow_bytes[k]`` > 0 bytes from
    rank ``flow_from[k]`` to rank ``flow_to[k]``, in row-major order of (from, to), each pair at
    most once; a rank may send to itself. The arrays are read-only; those given are copied if they
    can be written. Use `ParallelWork.of` to build one from matrices or lists.

    Raises WorkloadError if the arrays are not that.
    """

    flops: FloatArray
    flow_from: IntArray
    flow_to: IntArray
    flow_bytes: FloatArray

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
            object.__setattr__(self, name, _frozen(array))
        n, count = len(self.flops), len(self.flow_bytes)
        if n == 0:
            raise FieldError("flops", "is empty; a work needs at least one rank")
        check_amounts("flops", self.flops)
        if not len(self.flow_from) == len(self.flow_to) == count:
            raise FieldError("flow_bytes", "flow_from, flow_to and flow_bytes differ in length")
        if count == 0:
            return
        check_amounts("flow_bytes", self.flow_bytes)
        if self.flow_bytes.min() == 0:
            raise FieldError("flow_bytes", "holds a 0; leave that flow out")
        for name, ends in (("flow_from", self.flow_from), ("flow_to", self.flow_to)):
            if ends.min() < 0 or ends.max() >= n:
                raise FieldError(name, f"holds a rank outside 0..{n - 1}")
        pairs = self.flow_from * n + self.flow_to
        if count > 1 and (pairs[1:] <= pairs[:-1]).any():
            raise FieldError("flow_from", "the flows are not in row-major order, each pair once")

    @property
    def ranks(self) -> int:
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
            raise FieldError("flows", "is given besides bytes; give one of the two")
        flops_array = flops_of(ranks, flops)
        if flows is not None:
            return cls._trusted(flops_array, *flows_of_list(ranks, flows))
        if bytes is not None:
            return cls._trusted(flops_array, *flows_of_matrix(ranks, bytes))
        return cls._trusted(flops_array, NO_INTS, NO_INTS, NO_FLOATS)

    @classmethod
    def of_execution(cls, flops: float) -> ParallelWork:
        """``flops`` flop on one rank; the same as ``of(1, flops)``, much faster."""
        amount = _own(np.array([check_number("flops", flops)]))
        return cls._trusted(amount, NO_INTS, NO_INTS, NO_FLOATS)

    @classmethod
    def of_flow(cls, bytes: float) -> ParallelWork:
        """``bytes`` bytes from rank 0 to rank 1; the same as ``of`` on two ranks, much faster."""
        amount = check_number("bytes", bytes)
        if amount == 0:
            return cls._trusted(_TWO_ZEROS, NO_INTS, NO_INTS, NO_FLOATS)
        return cls._trusted(_TWO_ZEROS, _ZERO, _ONE, _own(np.array([amount])))

    @classmethod
    def _trusted(
        cls, flops: FloatArray, flow_from: IntArray, flow_to: IntArray, flow_bytes: FloatArray
    ) -> ParallelWork:
        """The same as the constructor, for read-only arrays known to be right."""
        work = object.__new__(cls)
        for name, array in zip(cls.__slots__, (flops, flow_from, flow_to, flow_bytes), strict=True):
            object.__setattr__(work, name, array)
        return work


def flops_of(ranks: int, flops: ArrayLike | None) -> FloatArray:
    """The flops of each rank of a ParallelWork (see `ParallelWork.of`)."""
    if ranks < 1:
        raise FieldError("hosts", "is empty; give at least one host")
    values = np.zeros(ranks) if flops is None else _array("flops", flops)
    if values.ndim == 0:
        values = np.full(ranks, check_number("flops", float(values)))
    if values.shape != (ranks,):
        raise FieldError(
            "flops",
            f"has {_size(values)} for {plural_hosts(ranks)}; give one per host or a single number",
        )
    check_amounts("flops", values)
    return _own(values)


def plural_hosts(count: int) -> str:
    return "1 host" if count == 1 else f"{count} hosts"


def _size(values: NDArray) -> str:
    if values.ndim == 1:
        return "1 value" if values.size == 1 else f"{values.size} values"
    return f"shape {' x '.join(map(str, values.shape))}"


def flows_of_matrix(ranks: int, bytes: ArrayLike) -> tuple[IntArray, IntArray, FloatArray]:
    """The flows of a ParallelWork (from, to, bytes) from a matrix (see `ParallelWork.of`)."""
    values = _array("bytes", bytes)
    if values.shape not in ((ranks * ranks,), (ranks, ranks)):
        raise FieldError(
            "bytes",
            f"has {_size(values) if values.ndim else 'a single number'} for {plural_hosts(ranks)}; "
            f"give {ranks} x {ranks} values, row = sender, flat or nested",
        )
    check_amounts("bytes", values)
    flat = values.reshape(-1)
    (used,) = np.nonzero(flat)
    sender, receiver = np.divmod(used.astype(np.int64, copy=False), ranks)
    return _own(sender), _own(receiver), _own(flat[used])


def flows_of_list(
    ranks: int, flows: ArrayLike | Iterable[tuple[int, int, float]]
) -> tuple[IntArray, IntArray, FloatArray]:
    """The flows of a ParallelWork (from, to, bytes) from triples (see `ParallelWork.of`)."""
    if not isinstance(flows, Iterable):
        raise FieldError("flows", "is not a list of triples; give [from, to, bytes] for each")
    listed: Any = flows if isinstance(flows, np.ndarray) else list(flows)
    values = _array("flows", listed)
    if values.size == 0:
        return NO_INTS, NO_INTS, NO_FLOATS
    if values.ndim != 2 or values.shape[1] != 3:
        raise FieldError("flows", "is not a list of triples; give [from, to, bytes] for each flow")
    check_amounts("flows", values)
    ends = values[:, :2]
    wrong = (ends != np.floor(ends)) | (ends >= ranks)
    if wrong.any():
        row, column = (int(k) for k in np.argwhere(wrong)[0])
        problem = f"{ends[row, column]:g} is not one of the {plural_hosts(ranks)}, numbered from 0"
        raise FieldError("flows", problem, (row, column))
    pairs = ends[:, 0].astype(np.int64) * ranks + ends[:, 1].astype(np.int64)
    order = np.argsort(pairs, kind="stable")
    pairs = pairs[order]
    (twice,) = np.nonzero(pairs[1:] == pairs[:-1])
    if len(twice):
        row = int(order[twice[0] + 1])
        problem = f"from {ends[row, 0]:g} to {ends[row, 1]:g} again; give each pair once"
        raise FieldError("flows", problem, (row,))
    amounts = values[order, 2]
    used = amounts > 0
    sender, receiver = np.divmod(pairs[used], ranks)
    return _own(sender), _own(receiver), _own(amounts[used])


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


@dataclass(frozen=True, slots=True)
class DelayWork(Work):
    """Nothing but time passes: ``delay_s`` seconds. Raises WorkloadError if not >= 0 and finite."""

    delay_s: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "delay_s", check_number("seconds", self.delay_s))


@dataclass(frozen=True, slots=True)
class SequenceWork(Work):
    """The stages one after the other, on the same hosts, ``repeat`` times over.

    ``stages_per_round`` is the number of stages of one round, those of nested sequences counted
    each time; ``depth`` how deep sequences are nested.

    Raises WorkloadError if there is no stage, if the stages need different numbers of hosts, or
    beyond MAX_STAGES stages per round, MAX_REPEAT rounds or MAX_DEPTH levels.
    """

    stages: tuple[Work, ...]
    repeat: int = 1
    ranks: int | None = field(init=False, repr=False, compare=False)
    stages_per_round: int = field(init=False, repr=False, compare=False)
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        stages = tuple(self.stages)
        if not stages:
            raise FieldError("stages", "is empty; give at least one stage")
        for k, stage in enumerate(stages):
            if not isinstance(stage, Work):
                raise FieldError("stages", f"{stage!r} is not a work", (k,))
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
            raise FieldError("stages", f"are nested more than {MAX_DEPTH} deep")
        count = len(stages) + sum(stage.repeat * stage.stages_per_round - 1 for stage in nested)
        if count > MAX_STAGES:
            raise FieldError("stages", f"make {count} stages a round, more than {MAX_STAGES}")
        object.__setattr__(self, "stages", stages)
        object.__setattr__(self, "ranks", sizes[0] if sizes else None)
        object.__setattr__(self, "stages_per_round", count)
        object.__setattr__(self, "depth", depth)


def only_delays(work: Work) -> bool:
    """True for a delay or a sequence of nothing but delays, which needs no host."""
    if isinstance(work, SequenceWork):
        return all(only_delays(stage) for stage in work.stages)
    return isinstance(work, DelayWork)
