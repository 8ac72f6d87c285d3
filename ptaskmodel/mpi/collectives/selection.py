# mypy: allow-untyped-defs, allow-incomplete-defs
"""Which algorithm a collective operation takes, where that depends on ranks and sizes.

Which algorithm Open MPI or MVAPICH2 takes for a collective, by number of ranks and bytes.

Source: the fixed decisions of Open MPI 4 (coll_tuned_decision_fixed.c), as SMPI's selector ``ompi``
has them; its default all-to-all is the same. Those of MVAPICH2 as the dates of SMPI's selector
``mvapich2`` show them, of up to 130 ranks.

A table is a line for each range of numbers of ranks: below which number (``-``: any), and from how
many bytes on which algorithm is taken. Bytes are those of the whole of a broadcast, a reduction or
a reduce-scatter, else those of one rank (of an all-to-all: for one other).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ptaskmodel.engine.state import numbers
from ptaskmodel.kernels.decorators import jit
from ptaskmodel.mpi.collectives.steps import counted
from ptaskmodel.workload.actions import (
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    BARRIER,
    GATHER,
    REDUCE,
    REDUCESCATTER,
    SCATTER,
)

# Algorithms. AUTOMATIC: SMPI's default; MPICH, MVAPICH2: as that chooses by ranks and size.
(
    AUTOMATIC, MPICH, MVAPICH2, BASIC, PAIRWISE, BRUCK, DOUBLING, RING, NEIGHBOURS, TO_THE_RIGHT,
    TREE, BY_TURNS, HALVING, FAR_FIRST, BLOCKS, COMPOSED, PIECES_RING, PIECES_DOUBLING, LINE,
    BINARY, PIPELINE, K_NOMIAL, CHAIN, BINOMIAL, IN_ORDER, SEGMENTS, BUTTERFLY, IN_TWO, CHUNKS,
    HALVES, FLAT_IN_SEGMENTS, MESH_2D, MESH_3D, AHEAD, TO_ALL, HALVING_EQUAL, HALVING_LONG,
    PAIRS_LIGHT, PAIRS_ONE, PAIRS_EACH, RING_LIGHT, RING_ONE, RING_EACH,
) = numbers(43)  # fmt: skip
# From this number on, an algorithm is a table: its first row is the difference.
TABLES = 1000
ANY = 2**62

LETTERS: Mapping[str, int] = {
    "auto": AUTOMATIC,
    "linear": BASIC,
    "blocks": BLOCKS,
    "pair": PAIRWISE,
    "bruck": BRUCK,
    "rdb": DOUBLING,
    "ring": RING,
    "neighbour": NEIGHBOURS,
    "tree": TREE,
    "turns": BY_TURNS,
    "halving": HALVING,
    "parts": COMPOSED,
    "pieces_ring": PIECES_RING,
    "pieces_rdb": PIECES_DOUBLING,
    "line": LINE,
    "binary": BINARY,
    "pipeline": PIPELINE,
    "knomial": K_NOMIAL,
    "chain": CHAIN,
    "binomial": BINOMIAL,
    "in_order": IN_ORDER,
    "segments": SEGMENTS,
    "butterfly": BUTTERFLY,
    "in_two": IN_TWO,
    "chunks": CHUNKS,
    "halves": HALVES,
}

OPEN_MPI: Mapping[str, str] = {
    "barrier": "4 0 rdb; 8 0 linear; 64 0 rdb; 256 0 bruck; 512 0 tree; 1024 0 bruck; 4096 0 tree; "
    "- 0 bruck",
    "bcast": """
        4 0 pipeline 32 binary 256 pipeline 512 knomial 1024 line 32768 binary 131072 pipeline
          262144 line 524288 auto 1048576 binary;
        8 0 binary 64 auto 128 binary 2048 auto 8192 line 1048576 pipeline;
        16 0 knomial 8 binary 64 knomial 4096 binary 16384 auto 32768 line;
        32 0 knomial 4096 auto 1048576 pieces_rdb;
        64 0 auto 2048 knomial;
        128 0 knomial;
        256 0 auto 2 binary 16384 line 32768 binary 65536 knomial;
        1024 0 knomial 16384 halves 32768 knomial;
        2048 0 knomial 524288 pieces_rdb;
        4096 0 knomial 262144 pieces_rdb;
        - 0 knomial 8192 binary 16384 knomial 262144 pieces_rdb""",
    "reduce": """
        4 0 turns 8 binary 16 pipeline 32 turns 262144 pipeline 524288 chain 1048576 pipeline;
        8 0 binary 4096 chain 65536 binomial 262144 turns 524288 binomial 1048576 turns;
        16 0 binary 8192 binomial;
        32 0 binary 4096 binomial;
        256 0 binomial;
        512 0 binomial 8192 in_order 16384 binomial;
        2048 0 binomial;
        4096 0 binomial 512 in_order 1024 binomial 8192 in_order 16384 binomial;
        - 0 binomial 16 in_order 32 binomial 1024 in_order 2048 binomial 8192 in_order
          16384 binomial""",
    "allreduce": """
        4 0 ring 8 rdb 4096 ring 8192 rdb 16384 ring 65536 segments 262144 halving;
        8 0 ring 16 rdb 8192 halving;
        16 0 rdb 8192 halving;
        32 0 segments 64 rdb 4096 halving;
        64 0 segments 128 halving;
        128 0 rdb 262144 halving;
        256 0 parts 131072 rdb 262144 halving;
        512 0 parts 4096 halving;
        2048 0 parts 2048 rdb 16384 halving;
        4096 0 parts 2048 segments 4096 rdb 16384 halving;
        - 0 parts 2048 segments 16384 rdb 32768 halving""",
    "reducescatter": """
        4 0 segments 65536 butterfly 131072 segments;
        8 0 auto 8 halving 262144 segments;
        32 0 halving 262144 segments;
        64 0 auto 64 halving 2048 butterfly 524288 segments;
        128 0 auto 256 halving 512 butterfly 2048 halving 4096 butterfly;
        256 0 auto 256 halving 512 butterfly;
        512 0 auto 256 halving 1024 butterfly;
        1024 0 auto 512 halving 2048 butterfly 8192 halving 16384 butterfly;
        2048 0 auto 512 halving 4096 butterfly 16384 halving 32768 butterfly;
        4096 0 auto 512 halving 4096 butterfly;
        - 0 auto 1024 halving 8192 butterfly""",
    "alltoall": """
        2 0 linear;
        3 0 pair 2 linear 4 pair 16 linear 64 pair 256 linear 4096 pair 32768 linear 1048576 pair;
        8 0 linear 524288 pair 1048576 linear;
        16 0 linear;
        32 0 linear 4 bruck 512 linear;
        64 0 bruck 512 linear;
        256 0 bruck 1024 linear 262144 pair;
        512 0 bruck 1024 linear 32768 pair;
        1024 0 bruck 512 linear 262144 pair;
        2048 0 bruck 512 linear;
        4096 0 bruck 1024 linear;
        - 0 bruck 2048 linear""",
    "alltoallv": "4 0 ring; 64 0 auto; 128 0 ring; 256 0 auto; 1024 0 ring; - 0 auto",
    "gather": """
        4 0 in_two 2 turns 4 tree 32768 turns 65536 tree 131072 in_two;
        8 0 tree 1024 turns 8192 tree 32768 turns 262144 in_two;
        256 0 tree;
        512 0 tree 2048 turns 8192 tree;
        - 0 tree""",
    "allgather": """
        2 0 rdb;
        3 0 pair;
        32 0 rdb;
        64 0 rdb 1024 neighbour 65536 ring;
        128 0 rdb 512 neighbour 65536 ring;
        256 0 rdb 512 neighbour 131072 ring 524288 neighbour 1048576 ring;
        512 0 rdb 32 bruck 128 rdb 1024 neighbour 131072 ring 524288 neighbour 1048576 ring;
        1024 0 rdb 64 bruck 256 rdb 2048 neighbour;
        2048 0 rdb 4 bruck 8 rdb 16 bruck 32 rdb 256 bruck 512 rdb 4096 neighbour;
        4096 0 bruck 32 rdb 128 bruck 512 rdb 4096 neighbour;
        - 0 rdb 2 bruck 8 rdb 16 bruck 512 rdb 4096 neighbour""",
    "allgatherv": """
        2 0 parts 256 neighbour 4096 chunks 8192 neighbour 16384 bruck 262144 neighbour;
        3 0 chunks 2048 pair 4096 chunks 8192 pair;
        8 0 parts 256 neighbour 4096 chunks 8192 neighbour 16384 bruck 262144 neighbour;
        16 0 parts 1024 bruck;
        32 0 parts 128 bruck 262144 chunks;
        64 0 parts 256 bruck 8192 chunks;
        128 0 parts 256 bruck 4096 chunks;
        256 0 bruck 1024 neighbour 65536 chunks;
        512 0 bruck 1024 chunks;
        1024 0 bruck 512 parts 1024 bruck 4096 neighbour 1048576 chunks;
        - 0 bruck 4096 neighbour""",
    "scatter": """
        4 0 auto 2 turns 131072 auto 262144 turns;
        8 0 tree 2048 turns 4096 tree 8192 turns 32768 auto 1048576 turns;
        16 0 tree 16384 auto 1048576 turns;
        32 0 tree 16384 turns 32768 auto;
        64 0 tree 512 auto 8192 tree 16384 auto;
        - 0 tree 512 auto""",
}  # fmt: skip

MVAPICH: Mapping[str, str] = {
    "alltoall": """
        3 0 pair;
        5 0 blocks 262145 pair;
        9 0 rdb 9 blocks;
        17 0 rdb 65 bruck 513 blocks;
        33 0 rdb 33 bruck 2049 blocks;
        - 0 rdb 9 bruck 1025 blocks""",
    "reducescatter": """
        17 0 auto 65 halving 65537 pair;
        33 0 auto 65 halving 131073 pair;
        65 0 auto 1025 halving 262145 pair;
        - 0 auto 129 halving""",
}  # fmt: skip


def _tables(tables: Mapping[str, str], rows: list[tuple[int, int, int]]) -> dict[str, int]:
    """Append rows (below so many ranks, below so many bytes, algorithm); numbers of tables."""
    first = {}
    for collective, table in tables.items():
        first[collective] = TABLES + len(rows)
        for line in table.split(";"):
            below, *words = line.split()
            ranks = ANY if below == "-" else int(below)
            ends = [*map(int, words[2::2]), ANY]
            rows += [
                (ranks, end, LETTERS[name]) for end, name in zip(ends, words[1::2], strict=True)
            ]
    return first


_rows: list[tuple[int, int, int]] = []
TABLE_OF = _tables(OPEN_MPI, _rows)
MVAPICH_TABLE_OF = _tables(MVAPICH, _rows)
CHOICES = np.array(_rows, dtype=np.int64)


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
