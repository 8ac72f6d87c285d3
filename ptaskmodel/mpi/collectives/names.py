"""All collectives with their algorithms by name, and the choice that users and platforms make.

Source: SimGrid's documentation of SMPI ("smpi/alltoall" and the like).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import SimulationError, shown
from ptaskmodel.mpi.collectives.allgather import ALL_GATHERS, ALL_GATHERS_OF_EACH
from ptaskmodel.mpi.collectives.allreduce import ALL_REDUCES
from ptaskmodel.mpi.collectives.alltoall import ALL_TO_ALLS, ALL_TO_ALLS_OF_EACH
from ptaskmodel.mpi.collectives.barrier import BARRIERS
from ptaskmodel.mpi.collectives.bcast import BROADCASTS
from ptaskmodel.mpi.collectives.gather_scatter import GATHERS, SCATTERS
from ptaskmodel.mpi.collectives.reduce import REDUCTIONS
from ptaskmodel.mpi.collectives.reduce_scatter import HALVING_EQUAL, REDUCE_SCATTERS
from ptaskmodel.mpi.collectives.selection import TABLES, Collective, rows_of
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

# A new collective is entered here, a new algorithm in the file of its collective.
COLLECTIVES: Mapping[str, Collective] = {
    collective.name: collective
    for collective in (
        BARRIERS,
        BROADCASTS,
        REDUCTIONS,
        ALL_REDUCES,
        REDUCE_SCATTERS,
        ALL_TO_ALLS,
        ALL_TO_ALLS_OF_EACH,
        GATHERS,
        ALL_GATHERS,
        ALL_GATHERS_OF_EACH,
        SCATTERS,
    )
}


def _numbered(
    collectives: Iterable[Collective],
) -> tuple[dict[str, dict[str, int]], NDArray[np.int64]]:
    """By names of collectives the numbers of their algorithms, by name; the rows of all tables."""
    rows: list[tuple[int, int, int]] = []
    numbers: dict[str, dict[str, int]] = {}
    for collective in collectives:
        known = numbers.setdefault(collective.name, {})
        for name, algorithm in collective.algorithms.items():
            if isinstance(algorithm, str):
                known[name] = TABLES + len(rows)
                rows += rows_of(algorithm, collective.algorithms)
            else:
                known[name] = algorithm
    return numbers, np.array(rows, dtype=np.int64)


ALGORITHMS, CHOICES = _numbered(COLLECTIVES.values())


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
        if collective not in COLLECTIVES:
            raise SimulationError(
                f"{shown(collective)} is not a collective; choose one of {', '.join(COLLECTIVES)}"
            )
    algorithms = default_algorithms()
    there = trace.counts()
    for collective, known in ALGORITHMS.items():
        action = COLLECTIVES[collective].action
        name = asked.get(collective, config.get(f"smpi/{collective}", selector))
        if name in known:
            algorithms[NUMBER[action]] = known[name]
        elif action in there or name != selector:
            raise SimulationError(
                f"{collective}: the algorithm {shown(name)} is not available{_crashes(name)}; "
                f"choose one of {', '.join(known)}, by --collective {collective}=NAME"
            )
        need = COLLECTIVES[collective].needs.get(name)
        if action in there and need is not None and not need.holds(trace.ranks):
            raise SimulationError(
                f"{collective}: {name} needs a number of ranks that {need.text}, but there are "
                f"{trace.ranks}; choose another algorithm"
            )
    _refuse_unequal(trace, algorithms)
    return algorithms


def default_algorithms() -> NDArray[np.int64]:
    """The number of SMPI's default algorithm for each kind of action."""
    numbers = np.zeros(len(ACTIONS), dtype=np.int64)
    for collective, known in ALGORITHMS.items():
        numbers[NUMBER[COLLECTIVES[collective].action]] = known[DEFAULT]
    return numbers


def _refuse_unequal(trace: Trace, algorithms: NDArray[np.int64]) -> None:
    """Raise SimulationError for a reduce-scatter of unequal parts by an algorithm of equal ones."""
    if algorithms[REDUCESCATTER] != HALVING_EQUAL:
        return
    for row in np.flatnonzero(trace.actions == REDUCESCATTER):
        counts = trace.values[trace.start[row] :][: trace.ranks]
        if (counts != counts[0]).any():
            raise SimulationError(
                "reduce_scatter: mpich_noncomm needs the same count on each rank, but "
                "counts range from "
                f"{counts.min():g} to {counts.max():g}; choose another algorithm"
            )


def _crashes(name: str) -> str:
    """What is to be said of an algorithm that SimGrid has, too."""
    return " (SimGrid's own replay crashes with it)" if name in CRASHING else ""


def fits(collective: str, name: str, ranks: int) -> bool:
    """Whether an algorithm works for a number of ranks."""
    need = COLLECTIVES[collective].needs.get(name)
    return need is None or need.holds(ranks)
