"""Names of the algorithms of collective operations, as SimGrid's configuration has them.

Source: SimGrid's documentation of SMPI ("smpi/alltoall" and the like).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import SimulationError, shown
from ptaskmodel.replay import selectors as c
from ptaskmodel.workload.ti_actions import ACTIONS, DATATYPE_BYTES, NUMBER
from ptaskmodel.workload.ti_traces import Trace

DEFAULT, SELECTOR = "default", "smpi/coll-selector"
# Sets of them, by implementations of MPI. Those of mpich that know of nodes (bcast, reduce and
# allreduce) crash SimGrid 3.32, and are refused.
SELECTORS = (DEFAULT, "ompi", "mpich")

# By the collective's name in the configuration: the name of its action, and its algorithms.
ALGORITHMS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "barrier": (
        "barrier",
        {
            "default": c.AUTOMATIC,
            "mpich": c.BRUCK,
            "ompi_basic_linear": c.BASIC,
            "ompi_bruck": c.BRUCK,
            "ompi_doublering": c.RING,
            "ompi_recursivedoubling": c.DOUBLING,
            "ompi_tree": c.TREE,
            "ompi_two_procs": c.PAIRWISE,
            "ompi": c.TABLE_OF["barrier"],
        },
    ),
    "bcast": (
        "bcast",
        {
            "default": c.AUTOMATIC,
            "binomial_tree": c.AUTOMATIC,
            "flattree": c.BASIC,
            "scatter_LR_allgather": c.PIECES_RING,
            "scatter_rdb_allgather": c.PIECES_DOUBLING,
            "NTSB": c.BINARY,
            "NTSL": c.LINE,
            "mvapich2_knomial_intra_node": c.K_NOMIAL,
            "ompi": c.TABLE_OF["bcast"],
            "ompi_pipeline": c.PIPELINE,
        },
    ),
    "reduce": (
        "reduce",
        {
            "default": c.AUTOMATIC,
            "binomial": c.TREE,
            "flat_tree": c.BY_TURNS,
            "ompi_basic_linear": c.BY_TURNS,
            "scatter_gather": c.HALVING,
            "ompi": c.TABLE_OF["reduce"],
            "ompi_binary": c.BINARY,
            "ompi_binomial": c.BINOMIAL,
            "ompi_chain": c.CHAIN,
            "ompi_in_order_binary": c.IN_ORDER,
            "ompi_pipeline": c.PIPELINE,
        },
    ),
    "allreduce": (
        "allreduce",
        {
            "default": c.AUTOMATIC,
            "lr": c.RING,
            "rab1": c.FAR_FIRST,
            "rab_rdb": c.HALVING,
            "rdb": c.DOUBLING,
            "redbcast": c.COMPOSED,
            "ompi": c.TABLE_OF["allreduce"],
            "ompi_ring_segmented": c.SEGMENTS,
        },
    ),
    "reduce_scatter": (
        "reducescatter",
        {
            "default": c.AUTOMATIC,
            "mpich": c.MPICH,
            "mpich_pair": c.PAIRWISE,
            "mpich_rdb": c.DOUBLING,
            "ompi_basic_recursivehalving": c.HALVING,
            "ompi": c.TABLE_OF["reducescatter"],
            "ompi_butterfly": c.BUTTERFLY,
            "ompi_ring": c.SEGMENTS,
        },
    ),
    "alltoall": (
        "alltoall",
        {
            "default": c.TABLE_OF["alltoall"],
            "mpich": c.MPICH,
            "basic_linear": c.BASIC,
            "bruck": c.BRUCK,
            "mvapich2_scatter_dest": c.BLOCKS,
            "pair": c.PAIRWISE,
            "rdb": c.DOUBLING,
            "ring": c.RING,
            "ompi": c.TABLE_OF["alltoall"],
        },
    ),
    "alltoallv": (
        "alltoallv",
        {
            "default": c.AUTOMATIC,
            "mpich": c.BLOCKS,
            "bruck": c.BLOCKS,
            "ompi_basic_linear": c.AUTOMATIC,
            "pair": c.RING,
            "ring": c.RING,
            "ompi": c.TABLE_OF["alltoallv"],
        },
    ),
    "gather": (
        "gather",
        {
            "default": c.AUTOMATIC,
            "mpich": c.TREE,
            "ompi_basic_linear": c.BY_TURNS,
            "ompi_binomial": c.TREE,
            "ompi": c.TABLE_OF["gather"],
            "ompi_linear_sync": c.IN_TWO,
        },
    ),
    "allgather": (
        "allgather",
        {
            "default": c.AUTOMATIC,
            "mpich": c.MPICH,
            "GB": c.COMPOSED,
            "NTSLR": c.TO_THE_RIGHT,
            "bruck": c.BRUCK,
            "ompi_neighborexchange": c.NEIGHBOURS,
            "pair": c.PAIRWISE,
            "rdb": c.DOUBLING,
            "rhv": c.FAR_FIRST,
            "ring": c.RING,
            "spreading_simple": c.BASIC,
            "ompi": c.TABLE_OF["allgather"],
        },
    ),
    "allgatherv": (
        "allgatherv",
        {
            "default": c.AUTOMATIC,
            "ompi_bruck": c.BRUCK,
            "pair": c.PAIRWISE,
            "ring": c.RING,
            "GB": c.COMPOSED,
            "mpich": c.MPICH,
            "mpich_rdb": c.DOUBLING,
            "mpich_ring": c.CHUNKS,
            "ompi": c.TABLE_OF["allgatherv"],
            "ompi_neighborexchange": c.NEIGHBOURS,
        },
    ),
    "scatter": (
        "scatter",
        {
            "default": c.AUTOMATIC,
            "mpich": c.TREE,
            "ompi_basic_linear": c.BY_TURNS,
            "ompi_binomial": c.TREE,
            "ompi": c.TABLE_OF["scatter"],
            "ompi_linear_nb": c.AUTOMATIC,
        },
    ),
}

# Those that work for some numbers of ranks only.
POWERS_OF_TWO = frozenset(
    {
        *(("alltoall", "pair"), ("alltoallv", "pair"), ("allgather", "pair")),
        *(("allgather", "rhv"), ("allgatherv", "pair"), ("allreduce", "rab1")),
    }
)
TWO_RANKS = frozenset({("barrier", "ompi_two_procs")})


def algorithms_named(texts: Iterable[str]) -> dict[str, str]:
    """By names of collectives those of algorithms, from texts such as ``alltoall=ring``.

    Raises SimulationError. Whether the names are known is found out by who uses them.
    """
    named: dict[str, str] = {}
    for text in texts:
        collective, equals, algorithm = text.partition("=")
        if not equals or collective in named:
            wrong = "is not NAME=ALGORITHM" if not equals else "says the same collective again"
            raise SimulationError(f"--collective: {shown(text)} {wrong}; give it as alltoall=ring")
        named[collective] = algorithm
    return named


def algorithms_of(
    asked: Mapping[str, str], config: Mapping[str, str], trace: Trace
) -> NDArray[np.int64]:
    """The number of the algorithm of each kind of action in a trace.

    asked: by the name of a collective the name of an algorithm; what it leaves out is as a
    platform's <config> says (smpi/alltoall and the like), else SMPI's default.

    Raises SimulationError for an unknown name, or one that does not fit the number of ranks.
    """
    selector = config.get(SELECTOR, DEFAULT)
    if selector not in SELECTORS:
        raise SimulationError(
            f"<config>: {SELECTOR}: {shown(selector)} is not simulated; choose one of "
            f"{', '.join(SELECTORS)}, or give an algorithm to each collective"
        )
    for collective in asked:
        if collective not in ALGORITHMS:
            raise SimulationError(
                f"{shown(collective)} is no collective; choose one of {', '.join(ALGORITHMS)}"
            )
    algorithms = default_algorithms()
    there = np.bincount(trace.actions, minlength=len(ACTIONS)) > 0
    for collective, (action, known) in ALGORITHMS.items():
        name = asked.get(collective, config.get(f"smpi/{collective}", selector))
        if name in known:
            algorithms[NUMBER[action]] = known[name]
        elif there[NUMBER[action]] or name != selector:
            raise SimulationError(
                f"{collective}: the algorithm {shown(name)} is not simulated; choose one of "
                f"{', '.join(known)}"
            )
        if there[NUMBER[action]] and not fits(collective, name, trace.ranks):
            needs = "2" if (collective, name) in TWO_RANKS else "a power of two"
            raise SimulationError(
                f"{collective}: {name} needs a number of ranks that is {needs}, and there are "
                f"{trace.ranks}: choose another algorithm"
            )
    _refuse_halves(trace, algorithms)
    return algorithms


def default_algorithms() -> NDArray[np.int64]:
    """The number of SMPI's default algorithm for each kind of action."""
    numbers = np.full(len(ACTIONS), c.AUTOMATIC, dtype=np.int64)
    for action, known in ALGORITHMS.values():
        numbers[NUMBER[action]] = known[DEFAULT]
    return numbers


def _refuse_halves(trace: Trace, algorithms: NDArray[np.int64]) -> None:
    """Raise SimulationError for broadcasts that Open MPI sends in two halves."""
    if algorithms[NUMBER["bcast"]] != c.TABLE_OF["bcast"] or not 256 <= trace.ranks < 1024:
        return
    rows = np.flatnonzero(trace.actions == NUMBER["bcast"])
    first, last = trace.start[rows], trace.start[rows + 1]
    kind = trace.values[np.minimum(first + 2, len(trace.values) - 1)].astype(np.int64)
    unit = np.where(last - first > 2, DATATYPE_BYTES[np.maximum(kind, 0)], trace.type_bytes)
    size = np.floor(trace.values[first]) * unit
    if ((size >= 16384) & (size < 32768)).any():
        raise SimulationError(
            "bcast: ompi takes ompi_split_bintree for 16 to 32 KiB and 256 to 1,023 ranks, which "
            "is not simulated; choose one of "
            f"{', '.join(name for name in ALGORITHMS['bcast'][1] if name != 'ompi')}"
        )


def fits(collective: str, name: str, ranks: int) -> bool:
    """Whether an algorithm works for a number of ranks."""
    if (collective, name) in POWERS_OF_TWO:
        return ranks & (ranks - 1) == 0
    return (collective, name) not in TWO_RANKS or ranks == 2
