"""Numbers and arrays of amounts, dates and rates: checked, in range, read-only."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptaskmodel.errors import SHOWN, WorkloadError, cut, shown

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

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
    """``value`` as a float that is 0 (unless ``positive``) or in [SMALLEST, LARGEST]."""
    if type(value) is not float:
        if isinstance(value, bool | str | bytes | complex):
            raise FieldError(field, f"{cut(repr(value), SHOWN)} is not a number")
        try:
            value = float(value)
        except OverflowError:
            raise FieldError(field, f"is larger than {LARGEST:g}") from None
        except (TypeError, ValueError):
            raise FieldError(field, f"{cut(repr(value), SHOWN)} is not a number") from None
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


def array_of(field: str, values: ArrayLike) -> FloatArray:
    """``values`` as a fresh float64 array."""
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
    (used,) = np.nonzero(flat)
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
    if values.size == 0:
        return NO_INTS, NO_INTS, NO_FLOATS
    if values.ndim != 2 or values.shape[1] != 3:
        raise FieldError("flows", "is not a list of triples; give [from, to, bytes] for each flow")
    ends, amounts = values[:, :2], values[:, 2].copy()
    numbers = _ranks_of(ranks, ends)
    smallest = amounts.min()
    if numbers is None or not SMALLEST <= smallest <= amounts.max() <= LARGEST:
        check_amounts("flows", values)
    if numbers is None:
        wrong = (ends != np.floor(ends)) | (ends >= ranks)
        row, column = (int(k) for k in np.argwhere(wrong)[0])
        problem = f"{ends[row, column]:g} is not one of the {plural_hosts(ranks)}, numbered from 0"
        raise FieldError("flows", problem, (row, column))
    sender, receiver = numbers
    pairs = sender * ranks + receiver
    if not (pairs[1:] > pairs[:-1]).all():
        order = np.argsort(pairs, kind="stable")
        pairs = pairs[order]
        (twice,) = np.nonzero(pairs[1:] == pairs[:-1])
        if len(twice):
            row = int(order[twice[0] + 1])
            problem = f"from {ends[row, 0]:g} to {ends[row, 1]:g} again; give each pair once"
            raise FieldError("flows", problem, (row,))
        sender, receiver, amounts = sender[order], receiver[order], amounts[order]
    if smallest == 0:
        used = amounts > 0
        sender, receiver, amounts = sender[used], receiver[used], amounts[used]
    return own(sender), own(receiver), own(amounts)


def _ranks_of(ranks: int, ends: FloatArray) -> IntArray | None:
    """The ends of flows, shape (flows, 2), as numbers of ranks, shape (2, flows); None: not all."""
    if not 0 <= ends.min() <= ends.max() < ranks:
        return None
    numbers: IntArray = np.array(ends.T, dtype=np.int64, order="C")
    return numbers if (numbers == ends.T).all() else None
