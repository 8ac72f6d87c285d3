"""Generate traces of five kinds of MPI programs, without MPI: what each rank computes and sends.

The kinds are an all-to-all (as in FFTs), a stencil (exchanges with neighbours in a grid), a
pipeline, a master with its workers, and a matrix product by broadcasts along rows and columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ptaskmodel.apps.collectives import broadcast
from ptaskmodel.apps.names import PROGRAMS
from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.workload.traces import Action, Trace, trace_of_actions

Actions = list[list[Action]]

MAX_ACTIONS = 50_000_000
CHECKSUM_BYTES = 16
TAG = 0


@dataclass(frozen=True, slots=True)
class Size:
    """How large a program is.

    iterations: see the functions in `MAKERS`. flops: what a rank computes in one. bytes: of a
    message.
    imbalance: i > 0 draws each computation uniformly from (1 - i, 1 + i) times flops, by ``seed``.

    Raises WorkloadError if a number is out of range.
    """

    ranks: int
    iterations: int = 10
    flops: float = 1e9
    bytes: int = 1_000_000
    imbalance: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("ranks", "iterations"):
            if getattr(self, name) < 1:
                raise WorkloadError(f"{name} {getattr(self, name)}; give at least 1")
        if not (0 <= self.bytes <= 2**53 and 0.0 <= self.flops < math.inf):
            raise WorkloadError(
                f"flops {self.flops:g}, bytes {self.bytes}; give finite numbers that are not "
                "negative"
            )
        if not 0.0 <= self.imbalance <= 1.0:
            raise WorkloadError(f"imbalance {self.imbalance:g}; give a number from 0 to 1")

    def computations(self) -> list[list[Action]]:
        """What each rank computes in each iteration, [iteration][rank]."""
        shape = (self.iterations, self.ranks)
        spread = np.random.default_rng(self.seed).uniform(-1.0, 1.0, shape)
        flops = self.flops * (1.0 + self.imbalance * spread)
        return [[("compute", one) for one in row] for row in flops.tolist()]


def program(name: str, size: Size) -> Trace:
    """The trace of a program by its name in `PROGRAMS`.

    Raises WorkloadError for an unknown name, a size that the program cannot have, or more than
    MAX_ACTIONS actions.
    """
    if name not in PROGRAMS:
        raise WorkloadError(f"unknown program {shown(name)}; use one of {', '.join(PROGRAMS)}")
    if size.ranks * size.iterations * 10 > MAX_ACTIONS:
        raise WorkloadError(
            f"{name}: {size.ranks} ranks and {size.iterations} iterations make a trace of more "
            f"than {MAX_ACTIONS:,} actions; give less"
        )
    actions = MAKERS[name](size)
    whole = [[("init",), *own, ("finalize",)] for own in actions]
    return trace_of_actions(whole, name)


def all_to_all(size: Size) -> Actions:
    """Iterations of a computation, an all-to-all and a checksum, as NAS FT has them."""
    ranks: Actions = [[] for _ in range(size.ranks)]
    exchange: Action = ("alltoall", size.bytes, size.bytes)
    for computations in size.computations():
        for own, computation in zip(ranks, computations, strict=True):
            own += [computation, exchange, ("allreduce", CHECKSUM_BYTES, 0)]
    return ranks


def grid(ranks: int) -> tuple[int, int]:
    """(rows, columns) of the grid nearest to a square."""
    rows = math.isqrt(ranks)
    while ranks % rows:
        rows -= 1
    return rows, ranks // rows


def stencil(size: Size) -> Actions:
    """Iterations of an exchange with up to four neighbours in a grid, and a computation."""
    rows, columns = grid(size.ranks)
    neighbours: list[list[int]] = []
    for rank in range(size.ranks):
        row, column = divmod(rank, columns)
        near = [rank - columns] if row > 0 else []
        near += [rank + columns] if row + 1 < rows else []
        near += [rank - 1] if column > 0 else []
        near += [rank + 1] if column + 1 < columns else []
        neighbours.append(near)
    ranks: Actions = [[] for _ in range(size.ranks)]
    for computations in size.computations():
        for own, near, computation in zip(ranks, neighbours, computations, strict=True):
            own += [("irecv", other, TAG, size.bytes) for other in near]
            own += [("isend", other, TAG, size.bytes) for other in near]
            own += [("waitall",), computation]
    return ranks


def pipeline(size: Size) -> Actions:
    """A stage each rank: blocks (iterations) come from the rank before and go to the next."""
    last = size.ranks - 1
    ranks: Actions = [[] for _ in range(size.ranks)]
    for computations in size.computations():
        for rank, (own, computation) in enumerate(zip(ranks, computations, strict=True)):
            if rank > 0:
                own.append(("recv", rank - 1, TAG, size.bytes))
            own.append(computation)
            if rank < last:
                own.append(("send", rank + 1, TAG, size.bytes))
    return ranks


def master_worker(size: Size) -> Actions:
    """Rank 0 deals tasks (iterations to each worker) in turn, and collects as large results."""
    if size.ranks < 2:
        raise WorkloadError("master-worker: needs at least 2 ranks, a master and a worker")
    ranks: Actions = [[] for _ in range(size.ranks)]
    master = ranks[0]
    workers = range(1, size.ranks)
    master += [("send", worker, TAG, size.bytes) for worker in workers]
    for k, computations in enumerate(size.computations()):
        for worker in workers:
            ranks[worker] += [
                ("recv", 0, TAG, size.bytes), computations[worker], ("send", 0, TAG, size.bytes)
            ]  # fmt: skip
            master.append(("recv", worker, TAG, size.bytes))
            if k + 1 < size.iterations:
                master.append(("send", worker, TAG, size.bytes))
    return ranks


def matrix_product(size: Size) -> Actions:
    """Steps (iterations) of PDGEMM on a square grid: two broadcasts by binary trees, a product.

    In step k the ranks of column k send their block along their row, those of row k along their
    column (see `pdgemm`); who has received hands on before it goes on.
    """
    q = math.isqrt(size.ranks)
    if q * q != size.ranks:
        raise WorkloadError(
            f"pdgemm: {size.ranks} ranks do not make a square grid; use e.g. {q * q}"
        )
    ranks: Actions = [[] for _ in range(size.ranks)]
    trees = [_by_rank(q, size.bytes, root) for root in range(q)]
    for k, computations in enumerate(size.computations()):
        tree = trees[k % q]
        for rank, own in enumerate(ranks):
            row, column = divmod(rank, q)
            own += [(what, row * q + other, *rest) for what, other, *rest in tree[column]]
            own += [(what, other * q + column, *rest) for what, other, *rest in tree[row]]
            own.append(computations[rank])
    return ranks


def _by_rank(ranks: int, bytes: int, root: int) -> list[list[tuple[str, int, int, int]]]:
    """What each rank does in a broadcast by a binary tree: receive, then send."""
    messages = broadcast(ranks, bytes, root, "binary")
    own: list[list[tuple[str, int, int, int]]] = [[] for _ in range(ranks)]
    for source, target in zip(messages.source.tolist(), messages.destination.tolist(), strict=True):
        own[source].append(("send", target, TAG, bytes))
        own[target].insert(0, ("recv", source, TAG, bytes))
    return own


MAKERS: Mapping[str, Callable[[Size], Actions]] = dict(
    zip(PROGRAMS, (all_to_all, stencil, pipeline, master_worker, matrix_product), strict=True)
)
