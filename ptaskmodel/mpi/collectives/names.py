"""Names of the algorithms of collective operations, as SimGrid's configuration has them.

Source: SimGrid's documentation of SMPI ("smpi/alltoall" and the like).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import SimulationError, shown
from ptaskmodel.mpi.collectives import selection as c
from ptaskmodel.mpi.collectives.alltoall import columns_of, edge_of
from ptaskmodel.workload.actions import ACTIONS, NUMBER, REDUCESCATTER
from ptaskmodel.workload.traces import Trace

DEFAULT, SELECTOR = "default", "smpi/coll-selector"
# Sets of them, by implementations of MPI. Those of mpich and mvapich2 that know of nodes (bcast,
# reduce and allreduce; of mvapich2 allgather and scatter, too) crash SimGrid's replay: refused.
SELECTORS = (DEFAULT, "ompi", "mpich", "mvapich2")

# What SimGrid has besides, and crashes with in a replay: algorithms that know of nodes or of the
# order in which ranks arrive, or use one-sided communication.
CRASHING = frozenset(
    {
        *("mpich", "mpich_smp", "mvapich2", "impi", "automatic", "rab", "pair_rma", "SMP_NTS"),
        *("arrival_pattern_aware", "arrival_pattern_aware_wait", "arrival_scatter", "smp_simple"),
        *("SMP_binary", "SMP_binomial", "SMP_linear", "mvapich2_inter_node", "loosely_lr"),
        *("mvapich2_intra_node", "mvapich2_two_level", "smp_binomial", "smp_binomial_pipeline"),
        *("smp_rdb", "smp_rsag", "smp_rsag_lr", "smp_rsag_rab", "mvapich2_smp"),
        *("mvapich2_two_level_binomial", "mvapich2_two_level_direct"),
    }
)

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
            "mvapich2": c.DOUBLING,
            "mvapich2_pair": c.DOUBLING,
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
            "flattree_pipeline": c.FLAT_IN_SEGMENTS,
            "scatter_LR_allgather": c.PIECES_RING,
            "scatter_rdb_allgather": c.PIECES_DOUBLING,
            "NTSB": c.BINARY,
            "NTSL": c.LINE,
            "NTSL_Isend": c.LINE,
            "mvapich2_knomial_intra_node": c.K_NOMIAL,
            "ompi": c.TABLE_OF["bcast"],
            "ompi_pipeline": c.PIPELINE,
            "ompi_split_bintree": c.HALVES,
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
            "NTSL": c.LINE,
            "mvapich2_knomial": c.K_NOMIAL,
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
            "rab2": c.TO_ALL,
            "rab_rdb": c.HALVING,
            "rdb": c.DOUBLING,
            "redbcast": c.COMPOSED,
            "mvapich2_rs": c.HALVING_LONG,
            "ompi": c.TABLE_OF["allreduce"],
            "ompi_ring_segmented": c.SEGMENTS,
        },
    ),
    "reduce_scatter": (
        "reducescatter",
        {
            "default": c.AUTOMATIC,
            "mpich": c.MPICH,
            "mpich_noncomm": c.HALVING_EQUAL,
            "mpich_pair": c.PAIRWISE,
            "mvapich2": c.MVAPICH_TABLE_OF["reducescatter"],
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
            "2dmesh": c.MESH_2D,
            "3dmesh": c.MESH_3D,
            "basic_linear": c.BASIC,
            "bruck": c.BRUCK,
            "mvapich2": c.MVAPICH_TABLE_OF["alltoall"],
            "mvapich2_scatter_dest": c.BLOCKS,
            "pair": c.PAIRWISE,
            "pair_light_barrier": c.PAIRS_LIGHT,
            "pair_mpi_barrier": c.PAIRS_EACH,
            "pair_one_barrier": c.PAIRS_ONE,
            "rdb": c.DOUBLING,
            "ring": c.RING,
            "ring_light_barrier": c.RING_LIGHT,
            "ring_mpi_barrier": c.RING_EACH,
            "ring_one_barrier": c.RING_ONE,
            "ompi": c.TABLE_OF["alltoall"],
        },
    ),
    "alltoallv": (
        "alltoallv",
        {
            "default": c.AUTOMATIC,
            "mvapich2": c.RING,
            "mpich": c.BLOCKS,
            "bruck": c.BLOCKS,
            "ompi_basic_linear": c.AUTOMATIC,
            "pair": c.RING,
            "pair_light_barrier": c.PAIRS_LIGHT,
            "pair_mpi_barrier": c.PAIRS_EACH,
            "pair_one_barrier": c.PAIRS_ONE,
            "ring": c.RING,
            "ring_light_barrier": c.RING_LIGHT,
            "ring_mpi_barrier": c.RING_EACH,
            "ring_one_barrier": c.RING_ONE,
            "ompi": c.TABLE_OF["alltoallv"],
        },
    ),
    "gather": (
        "gather",
        {
            "default": c.AUTOMATIC,
            "mvapich2": c.TREE,
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
            "2dmesh": c.MESH_2D,
            "3dmesh": c.MESH_3D,
            "GB": c.COMPOSED,
            "NTSLR": c.TO_THE_RIGHT,
            "NTSLR_NB": c.AHEAD,
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
            "mvapich2": c.MVAPICH2,
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


def is_power_of_two(ranks: int) -> bool:
    return ranks & (ranks - 1) == 0


# Those that work for some numbers of ranks only: by names, or the name for any collective. The test
# of a number, and which numbers these are.
NEEDS: Mapping[str, tuple[Callable[[int], bool], str]] = {
    **dict.fromkeys(
        (
            *("alltoall=pair", "alltoallv=pair", "allgather=pair", "allgatherv=pair"),
            *("allgather=rhv", "allreduce=rab1", "reduce_scatter=mpich_noncomm"),
            *("pair_light_barrier", "pair_mpi_barrier", "pair_one_barrier"),
        ),
        (is_power_of_two, "is a power of two"),
    ),
    "barrier=ompi_two_procs": (lambda ranks: ranks == 2, "is 2"),
    "2dmesh": (lambda ranks: columns_of(ranks) > 0, "is 2, 3 or no prime"),
    "3dmesh": (lambda ranks: edge_of(ranks) > 0, "makes planes that are square"),
}


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
    there = trace.counts()
    for collective, (action, known) in ALGORITHMS.items():
        name = asked.get(collective, config.get(f"smpi/{collective}", selector))
        if name in known:
            algorithms[NUMBER[action]] = known[name]
        elif action in there or name != selector:
            raise SimulationError(
                f"{collective}: the algorithm {shown(name)} is not simulated{_crashes(name)}; "
                f"choose one of {', '.join(known)}, by --collective {collective}=NAME"
            )
        need = _need(collective, name)
        if action in there and need is not None and not need[0](trace.ranks):
            raise SimulationError(
                f"{collective}: {name} needs a number of ranks that {need[1]}, and there are "
                f"{trace.ranks}: choose another algorithm"
            )
    _refuse_unequal(trace, algorithms)
    return algorithms


def default_algorithms() -> NDArray[np.int64]:
    """The number of SMPI's default algorithm for each kind of action."""
    numbers = np.full(len(ACTIONS), c.AUTOMATIC, dtype=np.int64)
    for action, known in ALGORITHMS.values():
        numbers[NUMBER[action]] = known[DEFAULT]
    return numbers


def _refuse_unequal(trace: Trace, algorithms: NDArray[np.int64]) -> None:
    """Raise SimulationError for a reduce-scatter of unequal parts by an algorithm of equal ones."""
    if algorithms[REDUCESCATTER] != c.HALVING_EQUAL:
        return
    for row in np.flatnonzero(trace.actions == REDUCESCATTER):
        counts = trace.values[trace.start[row] :][: trace.ranks]
        if (counts != counts[0]).any():
            raise SimulationError(
                "reduce_scatter: mpich_noncomm needs the same count for each rank, and there are "
                f"{counts.min():g} and {counts.max():g}: choose another algorithm"
            )


def _crashes(name: str) -> str:
    """What is to be said of an algorithm that SimGrid has, too."""
    return " (SimGrid's own replay crashes with it)" if name in CRASHING else ""


def _need(collective: str, name: str) -> tuple[Callable[[int], bool], str] | None:
    return NEEDS.get(f"{collective}={name}") or NEEDS.get(name)


def fits(collective: str, name: str, ranks: int) -> bool:
    """Whether an algorithm works for a number of ranks."""
    need = _need(collective, name)
    return need is None or need[0](ranks)
