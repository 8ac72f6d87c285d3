"""Check numbers and arrays of amounts, times and rates, and make them read-only."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptaskmodel.errors import SHOWN, WorkloadError, cut, shown

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Amounts, dates, weights and rates are 0 or within these, so that sums and ratios of any of them
# stay finite and normal in double precision.
SMALLEST = 1e-100
LARGEST = 1e100


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
        name = "" if self.task is None else f"task {shown(self.task)}: "
        return cut(f"{name}{self.field}{''.join(f'[{k}]' for k in self.place)}: {self.problem}")


def check_number(field: str, value: Any, *, positive: bool = False) -> float:
    """Return ``value`` as a float that is 0 (unless ``positive``) or in [SMALLEST, LARGEST].

    field: its name, for the FieldError that is raised otherwise.
    """
    if type(value) is not float:
        if isinstance(value, bool | str | bytes | complex):
            raise FieldError(field, f"{cut(repr(value), SHOWN)} is not a number; give one")
        try:
            value = float(value)
        except OverflowError:
            raise FieldError(field, f"is larger than {LARGEST:g}; give a smaller number") from None
        except (TypeError, ValueError):
            raise FieldError(
                field, f"{cut(repr(value), SHOWN)} is not a number; give one"
            ) from None
    if SMALLEST <= value <= LARGEST or (value == 0 and not positive):
        return value
    raise FieldError(field, _why_bad(value, positive))


def _why_bad(value: float, positive: bool) -> str:
    if not math.isfinite(value):
        return f"{value} is not a finite number"
    if value < 0:
        return f"{value!r} is negative; give {'a number above 0' if positive else '0 or more'}"
    if value == 0:
        return "0 is too small; give a number above 0"
    if value < SMALLEST:
        return f"{value!r} is below {SMALLEST:g}; give a larger number{'' if positive else ' or 0'}"
    return f"{value!r} is larger than {LARGEST:g}; give a smaller number"


def check_amounts(field: str, values: FloatArray) -> None:
    """Every entry is 0 or in [SMALLEST, LARGEST], else a FieldError with the place of the first."""
    if values.size == 0:
        return
    # Few reductions pass nearly every array; only a suspect one pays for masks.
    least = np.minimum.reduce(values, axis=None)
    if (
        least >= SMALLEST
        or (least == 0 and np.count_nonzero(values >= SMALLEST) == np.count_nonzero(values))
    ) and np.maximum.reduce(values, axis=None) <= LARGEST:
        return
    good = ((values >= SMALLEST) & (values <= LARGEST)) | (values == 0)
    if not good.all():
        place = tuple(int(k) for k in np.argwhere(~good)[0])
        raise FieldError(field, _why_bad(float(values[place]), False), place)


def array_of(field: str, values: ArrayLike) -> FloatArray:
    """``values`` as a fresh float64 array."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values.copy()
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise FieldError(field, "is not a regular array of numbers") from None
    if array.dtype.kind not in "fiu" and array.size:
        raise FieldError(field, f"holds {array.dtype} values; give numbers")
    return np.array(array, dtype=np.float64)


def frozen(array: NDArray) -> NDArray:
    """``array``, if nobody can write into it, else a copy into which nobody can."""
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array


def own(array: NDArray) -> NDArray:
    """``array``, made read-only (ours: nobody else holds it)."""
    array.flags.writeable = False
    return array


NO_FLOATS: FloatArray = own(np.empty(0))
NO_INTS: IntArray = own(np.empty(0, dtype=np.int64))


class Demand(NamedTuple):
    """What a simple work asks of its ranks.

    flops: flop of each rank, shape (n,), or one number for all. pair_bytes: what every rank sends
    to every other. flow_from, flow_to, flow_bytes: flows besides, as in `ParallelWork`.
    """

    flops: FloatArray | float
    pair_bytes: float = 0.0
    flow_from: IntArray = NO_INTS
    flow_to: IntArray = NO_INTS
    flow_bytes: FloatArray = NO_FLOATS


def flops_of(ranks: int, flops: ArrayLike | None) -> FloatArray:
    """The flops of each rank of a ParallelWork (see `ParallelWork.of`)."""
    if ranks < 1:
        raise FieldError("hosts", "is empty; give at least one host")
    values = np.zeros(ranks) if flops is None else array_of("flops", flops)
    if values.ndim == 0:
        return own(np.full(ranks, check_number("flops", float(values))))
    if values.shape != (ranks,):
        raise FieldError(
            "flops",
            f"has {_size(values)} for {plural_hosts(ranks)}; give one per host or a single number",
        )
    check_amounts("flops", values)
    return own(values)


def plural_hosts(count: int) -> str:
    return "1 host" if count == 1 else f"{count} hosts"


def _size(values: NDArray) -> str:
    if values.ndim == 1:
        return "1 value" if values.size == 1 else f"{values.size} values"
    return f"shape {' x '.join(map(str, values.shape))}"


def flows_of_matrix(ranks: int, bytes: ArrayLike) -> tuple[IntArray, IntArray, FloatArray]:
    """The flows of a ParallelWork (from, to, bytes) from a matrix (see `ParallelWork.of`)."""
    values = array_of("bytes", bytes)
    if values.shape not in ((ranks * ranks,), (ranks, ranks)):
        raise FieldError(
            "bytes",
            f"has {_size(values) if values.ndim else 'a single number'} for {plural_hosts(ranks)}; "
            f"give {ranks} x {ranks} values, row = sender, flat or nested",
        )
    check_amounts("bytes", values)
    flat = values.reshape(-1)
    (used,) = flat.nonzero()
    sender, receiver = np.divmod(used.astype(np.int64, copy=False), ranks)
    return own(sender), own(receiver), own(flat[used])


def flows_of_list(
    ranks: int, flows: ArrayLike | Iterable[tuple[int, int, float]]
) -> tuple[IntArray, IntArray, FloatArray]:
    """The flows of a ParallelWork (from, to, bytes) from triples (see `ParallelWork.of`)."""
    if not isinstance(flows, Iterable):
        raise FieldError("flows", "is not a list of triples; give [from, to, bytes] for each")
    if isinstance(flows, np.ndarray) and flows.dtype == np.float64:
        values: FloatArray = flows
    else:
        listed: Any = flows if isinstance(flows, np.ndarray) else list(flows)
        values = array_of("flows", listed)
    check_triples(values)
    if values.size == 0:
        return NO_INTS, NO_INTS, NO_FLOATS
    return _laid(ranks, ranks, 0, np.array(values.T, order="C"))[:3]


def flows_of_lists(
    ranks: IntArray, counts: IntArray, flows: FloatArray
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """The flows of many ParallelWorks, one after the other, from their triples.

    ranks, counts: how many ranks and flows each work has. flows: of all, shape (flows, 3). Returns
    start, from, to, bytes; those of work k are ``start[k]:start[k + 1]``. The place of a FieldError
    counts the triples of all.
    """
    start = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=start[1:])
    if not len(flows):
        return start, NO_INTS, NO_INTS, NO_FLOATS
    limits, squares = np.repeat(ranks, counts), ranks * ranks
    before = np.repeat(np.cumsum(squares) - squares, counts)
    columns = np.array(flows.T, order="C")
    sender, receiver, amounts, kept = _laid(limits, int(ranks.max()), before, columns)
    if kept is not None:
        start = np.concatenate(([0], np.cumsum(kept)))[start]
    return start, sender, receiver, amounts


def check_triples(values: FloatArray) -> None:
    """Raise FieldError unless flows are triples (from, to, bytes)."""
    if values.size and (values.ndim != 2 or values.shape[1] != 3):
        raise FieldError("flows", "is not a list of triples; give [from, to, bytes] for each flow")


def _laid(
    ranks: IntArray | int, most: int, before: IntArray | int, columns: FloatArray
) -> tuple[IntArray, IntArray, FloatArray, BoolArray | None]:
    """From, to and bytes of flows, in order, and which of the ordered flows these are (None: all).

    ranks: of the work of each flow, at most ``most``; before: pairs of ranks of the works before.
    columns: the flows, shape (3, flows).
    """
    ends, amounts = columns[:2], columns[2].copy()  # a view would keep the ends, too
    numbers = _ranks_of(ranks, most, ends)
    smallest = amounts.min()
    if numbers is None or not SMALLEST <= smallest <= amounts.max() <= LARGEST:
        check_amounts("flows", columns.T)
    if numbers is None:
        wrong = (ends != np.floor(ends)) | (ends >= ranks)
        row, column = (int(k) for k in np.argwhere(wrong.T)[0])
        hosts = plural_hosts(int(np.broadcast_to(ranks, len(amounts))[row]))
        problem = f"{ends[column, row]:g} is not one of the {hosts}, numbered from 0"
        raise FieldError("flows", problem, (row, column))
    sender, receiver = numbers
    pairs = before + sender * ranks + receiver
    if not (pairs[1:] > pairs[:-1]).all():
        order = np.argsort(pairs, kind="stable")
        pairs = pairs[order]
        (twice,) = np.nonzero(pairs[1:] == pairs[:-1])
        if len(twice):
            row = int(order[twice[0] + 1])
            problem = f"from {ends[0, row]:g} to {ends[1, row]:g} again; give each pair once"
            raise FieldError("flows", problem, (row,))
        sender, receiver, amounts = sender[order], receiver[order], amounts[order]
    kept = None
    if smallest == 0:
        kept = amounts > 0
        sender, receiver, amounts = sender[kept], receiver[kept], amounts[kept]
    return own(sender), own(receiver), own(amounts), kept


def _ranks_of(ranks: IntArray | int, most: int, ends: FloatArray) -> IntArray | None:
    """The ends of flows, shape (2, flows), as numbers of ranks; None: not all are."""
    if not 0 <= ends.min() <= ends.max() < most:
        return None
    numbers: IntArray = ends.astype(np.int64)
    inside = type(ranks) is int or (numbers < ranks).all()
    return numbers if inside and (numbers == ends).all() else None
