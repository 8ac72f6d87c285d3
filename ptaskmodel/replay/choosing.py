"""Which algorithm a collective operation takes, where that depends on ranks and sizes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.replay.selectors import (
    AUTOMATIC,
    BASIC,
    BLOCKS,
    BRUCK,
    CHUNKS,
    DOUBLING,
    MPICH,
    MVAPICH2,
    PAIRWISE,
    RING,
    TABLES,
)
from ptaskmodel.replay.steps import counted
from ptaskmodel.workload.ti_actions import (
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    BARRIER,
    GATHER,
    REDUCE,
    REDUCESCATTER,
    SCATTER,
)


class Chosen(NamedTuple):
    """Algorithms by kind of action (see `selectors`), and the rows of the tables among them."""

    of_kind: np.ndarray
    choices: np.ndarray


@jit
def picked(choices, algorithm, n, size):
    """The algorithm itself, where ``algorithm`` is a table: for n ranks and so many bytes."""
    if algorithm < TABLES:
        return algorithm
    i = algorithm - TABLES
    while n >= choices[i, 0] or size >= choices[i, 1]:
        i += 1
    return choices[i, 2]


@jit
def chosen(values, at, last, n, kind, types, own, c):
    """The algorithm of an action, where it depends on ranks and sizes."""
    algorithm = c.of_kind[kind]
    if algorithm < TABLES and algorithm not in (AUTOMATIC, MPICH, MVAPICH2):
        return algorithm
    if algorithm == AUTOMATIC and kind != REDUCESCATTER:
        return algorithm
    size = deciding(values, at, last, n, kind, types, own)
    if kind == ALLTOALL:
        return of_all_to_all(c, n, size)
    algorithm = picked(c.choices, algorithm, n, size)
    if kind == ALLGATHERV and algorithm == MVAPICH2:
        unit = sized_each(values, at, last, n, types, own)
        if counted(values, at + 1, 0, n) * unit > n * (512.0 if n < 33 else 256.0):
            return CHUNKS
        return DOUBLING if n & (n - 1) == 0 else BRUCK
    if kind == ALLGATHERV and algorithm == MPICH:
        total = counted(values, at + 1, 0, n)
        if n & (n - 1) == 0 and total < 524288:
            return DOUBLING
        return BRUCK if 0 < total <= 81920 else CHUNKS  # by which nothing is not sent
    if kind == REDUCESCATTER and algorithm in (AUTOMATIC, MPICH):
        equal = algorithm == AUTOMATIC
        for j in range(n):
            equal = equal and values[at + j] == values[at]
        if equal:
            return BASIC
        return PAIRWISE if counted(values, at, 0, n) > 524288 else DOUBLING
    return algorithm


@jit
def of_all_to_all(c, n, size):
    """The algorithm of an all-to-all of so many bytes from each rank to each."""
    algorithm = picked(c.choices, c.of_kind[ALLTOALL], n, size)
    if algorithm != MPICH:
        return algorithm
    if size < 256 and n >= 8:
        return BRUCK
    return BLOCKS if size < 32768 else RING


@jit
def deciding(values, at, last, n, kind, types, own):
    """The bytes by which an algorithm is chosen (see `selectors`)."""
    if kind in (BARRIER, ALLTOALLV):
        return 0.0
    if kind == REDUCESCATTER:
        return counted(values, at, 0, n) * sized(values, at, n + 1, last, types, own)
    if kind == ALLGATHERV:
        unit = sized_each(values, at, last, n, types, own)
        return np.floor(counted(values, at + 1, 0, n) * unit / n)
    field = 2
    if kind in (REDUCE, GATHER, SCATTER):
        field = 3
    return np.floor(values[at]) * sized(values, at, field, last, types, own)


@jit
def sized(values, first, at, last, types, own):
    """The bytes of an element: by the datatype in field ``at``, if it is there."""
    if first + at < last:
        number = int(values[first + at])
        return 0.0 if number < 0 else types[number]
    return own


@jit
def rooted(values, first, at, last):
    """The root in field ``at``; 0 if it is not there."""
    return int(values[first + at]) if first + at < last else 0


@jit
def sized_each(values, at, last, n, types, own):
    """The bytes of an element of an allgatherv."""
    typed = not has_displacements_alone(n, last - at)
    return sized(values, at, n + 1, last if typed else at, types, own)


@jit
def has_displacements_alone(n, fields):
    """Whether an allgatherv names displacements but no datatypes: as many fields as ranks."""
    return 2 < fields - 1 - n <= n
