"""Time-independent traces made in Python, and written as text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import numpy as np

from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.files import whole_file
from ptaskmodel.workload.ti_actions import ACTIONS, NUMBER
from ptaskmodel.workload.ti_traces import Lines, Trace, trace_of

# An action: its name, then its fields.
Action = tuple[str | float, ...]


def trace_of_actions(ranks: Sequence[Iterable[Action]], origin: str = "trace") -> Trace:
    """The trace in which rank r does ``ranks[r]``, such as ``("send", 1, 0, 1e6)``, in order.

    origin: what messages call it. Without ``("init", ...)``, or with one of no field, sizes are in
    bytes.

    Raises WorkloadError, with the number of the action, for one that is unknown or makes no sense.
    """
    whose: list[int] = []
    kinds: list[int] = []
    values: list[float] = []
    start = [0]
    for rank, actions in enumerate(ranks):
        for name, *fields in actions:
            if name not in NUMBER:
                known = ", ".join(ACTIONS)
                raise WorkloadError(f"{origin}: {shown(name)} is not an action; known are {known}")
            whose.append(rank)
            kinds.append(NUMBER[str(name)])
            values += map(float, fields)
            start.append(len(values))
    lines = Lines(
        ((origin, 0),),
        np.array(whose, dtype=np.int32),
        np.array(kinds, dtype=np.int8),
        np.arange(1, len(kinds) + 1, dtype=np.int32),
        np.array(start, dtype=np.int64),
        np.array(values),
    )
    return trace_of(lines, len(ranks), origin, ())


def write_text_trace(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write a trace as text, all ranks in one file, whole or not at all; gzipped if named ``.gz``.

    `read_trace` reads it, and ``smpirun -replay`` a list that names it. Raises WorkloadError.
    """
    with whole_file(path, error=WorkloadError) as stream:
        for rank in range(trace.ranks):
            first, last = int(trace.first[rank]), int(trace.first[rank + 1])
            begin = trace.start[first : last + 1].tolist()
            values = trace.values[begin[0] : begin[-1]].tolist()
            for k, kind in enumerate(trace.actions[first:last].tolist()):
                fields = values[begin[k] - begin[0] : begin[k + 1] - begin[0]]
                words = [str(rank), ACTIONS[kind], *map(_number, fields)]
                stream.write(" ".join(words) + "\n")


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
