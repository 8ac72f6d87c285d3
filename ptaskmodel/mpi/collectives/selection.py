# mypy: allow-untyped-defs, allow-incomplete-defs
"""Choose the algorithm of a collective: by its name, or by numbers of ranks and bytes.

Names are those of SimGrid's SMPI (``smpi/allreduce`` and the like). The file of each collective
numbers its algorithms from 0 on; a negative number is a rule in its code.

A table has a line for each range of numbers of ranks. The line gives the number below which it
applies (``-``: any), and for each algorithm the number of bytes from which on it is chosen. Bytes
are those of the whole for a broadcast, a reduction or a reduce-scatter, and otherwise those of one
rank (for an all-to-all: to one other rank).
Sources: the fixed decisions of Open MPI 4 (coll_tuned_decision_fixed.c), as SMPI's selector
``ompi`` has them, whose default all-to-all is the same; for MVAPICH2, dates of SMPI's selector
``mvapich2``, up to 130 ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from ptaskmodel.kernels.decorators import jit

# From this number on, an algorithm is a table: its first row is the difference.
TABLES = 1000
ANY = 2**62


class Need(NamedTuple):
    """The numbers of ranks for which an algorithm works: a test, and what messages say of it."""

    holds: Callable[[int], bool]
    text: str


POWER_OF_TWO = Need(lambda ranks: ranks & (ranks - 1) == 0, "is a power of two")


class Collective(NamedTuple):
    """A collective and its algorithms.

    Parameters
    ----------
    name, action : str
        Its names in SMPI's configuration and in traces.
    algorithms : mapping of str to int or str
        Number of each algorithm, by its name, or the text of a table of such names.
    needs : mapping of str to Need
        Algorithms that work for some numbers of ranks only.
    """

    name: str
    action: str
    algorithms: Mapping[str, int | str]
    needs: Mapping[str, Need] = {}


class Chosen(NamedTuple):
    """Algorithms by kind of action, and the rows of the tables among them."""

    of_kind: np.ndarray
    choices: np.ndarray


def rows_of(table: str, known: Mapping[str, int | str]) -> list[tuple[int, int, int]]:
    """Rows (below so many ranks, below so many bytes, algorithm) of the text of a table.

    known: algorithms by name.
    """
    rows = []
    for line in table.split(";"):
        below, *words = line.split()
        ranks = ANY if below == "-" else int(below)
        ends = [*map(int, words[2::2]), ANY]
        names = words[1::2]
        rows += [(ranks, end, int(known[x])) for end, x in zip(ends, names, strict=True)]
    return rows


@jit
def picked(choices, algorithm, n, size):
    """The algorithm itself, where ``algorithm`` is a table: for n ranks and so many bytes."""
    if algorithm < TABLES:
        return algorithm
    i = algorithm - TABLES
    while n >= choices[i, 0] or size >= choices[i, 1]:
        i += 1
    return choices[i, 2]
