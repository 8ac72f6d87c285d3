"""Collective communications as messages in steps: broadcasts, reductions, exchanges.

`Communication` has the messages as flat arrays: sender, receiver, size and step. The algorithms are
the textbook ones (Thakur, Rabenseifner and Gropp, "Optimization of collective communication
operations in MPICH", 2005); ``bytes`` is always what one rank holds at the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.amounts import FloatArray, IntArray
from ptaskmodel.workload.works import ParallelWork, SequenceWork

BROADCAST_TREES = ("flat", "binary", "binomial", "chain")
EXCHANGES = ("ring", "recursive_doubling")


@dataclass(frozen=True, slots=True, eq=False)
class Communication:
    """Messages between ``ranks`` ranks; the m-th one is sent in step ``step[m]`` (from 0).

    ``source``, ``destination`` (rank numbers) and ``bytes`` have shape (messages,). Messages of
    one step progress together; a step starts when the one before it has ended.
    """

    ranks: int
    step: IntArray
    source: IntArray
    destination: IntArray
    bytes: FloatArray

    @property
    def steps(self) -> int:
        """Number of steps."""
        return int(self.step.max()) + 1 if len(self.step) else 0

    @property
    def total_bytes(self) -> float:
        return float(self.bytes.sum())

    @property
    def sent_bytes(self) -> FloatArray:
        """Bytes sent by each rank, shape (ranks,)."""
        return _sums(self.source, self.bytes, self.ranks)

    @property
    def received_bytes(self) -> FloatArray:
        """Bytes received by each rank, shape (ranks,)."""
        return _sums(self.destination, self.bytes, self.ranks)

    def matrix(self) -> FloatArray:
        """The dense communication matrix in bytes, shape (ranks, ranks), row = sender."""
        dense = np.zeros((self.ranks, self.ranks))
        np.add.at(dense, (self.source, self.destination), self.bytes)
        return dense

    def work(self, flops: ArrayLike = 0.0) -> ParallelWork:
        """All messages bundled into one parallel work.

        flops: flop of each rank, a number for all or shape (ranks,).
        """
        return parallel_work(self.ranks, self.source, self.destination, self.bytes, flops)

    def phases(self) -> SequenceWork:
        """One parallel work for each step, in order."""
        stages = []
        for step in range(self.steps):
            now = self.step == step
            stages.append(
                parallel_work(
                    self.ranks, self.source[now], self.destination[now], self.bytes[now], 0.0
                )
            )
        return SequenceWork(tuple(stages))

    def among(self, members: Sequence[int], ranks: int) -> Communication:
        """The same messages between the ``members`` of a larger set of ``ranks`` ranks."""
        names = np.asarray(members, np.int64)
        if len(names) != self.ranks:
            raise WorkloadError(
                f"communication among {self.ranks} ranks: {len(names)} members given; "
                "name one member for each rank"
            )
        return Communication(
            ranks, self.step, names[self.source], names[self.destination], self.bytes
        )


def join(parts: Iterable[Communication]) -> Communication:
    """Return communications that happen side by side: step k of all `parts` is step k.

    Raises WorkloadError if the parts are among different numbers of ranks.
    """
    given = list(parts)
    if len({part.ranks for part in given}) != 1:
        raise WorkloadError("communications to join: all must be among the same number of ranks")
    return Communication(
        given[0].ranks,
        np.concatenate([part.step for part in given]),
        np.concatenate([part.source for part in given]),
        np.concatenate([part.destination for part in given]),
        np.concatenate([part.bytes for part in given]),
    )


def parallel_work(
    ranks: int,
    source: IntArray,
    destination: IntArray,
    bytes: FloatArray,
    flops: ArrayLike,
) -> ParallelWork:
    """A parallel work from messages: those of one pair of ranks are merged, empty ones dropped."""
    pairs, place = np.unique(source * ranks + destination, return_inverse=True)
    merged = _sums(place, bytes, len(pairs))
    kept = merged > 0.0
    return ParallelWork(
        np.broadcast_to(np.asarray(flops, np.float64), (ranks,)).copy(),
        pairs[kept] // ranks,
        pairs[kept] % ranks,
        merged[kept],
    )


def bytes_between(work: ParallelWork, group: ArrayLike) -> FloatArray:
    """Bytes that a work sends from each group of ranks to each other one.

    group: the group (a number from 0) of each rank, shape (ranks,). Returns shape (groups, groups),
    row = sending group.
    """
    of_rank = np.asarray(group, np.int64)
    groups = int(of_rank.max()) + 1
    pair = of_rank[work.flow_from] * groups + of_rank[work.flow_to]
    return _sums(pair, work.flow_bytes, groups * groups).reshape(groups, groups)


def _sums(place: IntArray, amounts: FloatArray, places: int) -> FloatArray:
    """The sum of the amounts of each place, shape (places,)."""
    return np.bincount(place, amounts, places).astype(np.float64)


def broadcast(ranks: int, bytes: float, root: int = 0, tree: str = "binary") -> Communication:
    """``root`` sends ``bytes`` to every other rank, through a tree of virtual ranks.

    Virtual rank v is rank (v + root) mod ranks and receives from: 0 in a ``flat`` tree (one step);
    (v - 1) // 2 in a ``binary`` one (step = depth); v without its highest bit in a ``binomial`` one
    (step = number of that bit); v - 1 in a ``chain`` (step v - 1).
    """
    _check(ranks, bytes)
    if not 0 <= root < ranks:
        raise WorkloadError(f"broadcast among {ranks} ranks: root {root} is not one of them")
    receiver = np.arange(1, ranks, dtype=np.int64)
    parent, step = _parents(receiver, tree)
    return _messages(ranks, step, (parent + root) % ranks, (receiver + root) % ranks, bytes)


def reduce(ranks: int, bytes: float, root: int = 0, tree: str = "binary") -> Communication:
    """Combine ``bytes`` of each of the ``ranks`` towards rank ``root``: a broadcast run backwards.

    tree: flat, binary, binomial or chain, as of `broadcast`.
    """
    forward = broadcast(ranks, bytes, root, tree)
    return Communication(
        ranks,
        forward.steps - 1 - forward.step,
        forward.destination,
        forward.source,
        forward.bytes,
    )


def allreduce(ranks: int, bytes: float, algorithm: str = "ring") -> Communication:
    """Combine ``bytes`` of each of the ``ranks``; every rank gets the result.

    algorithm: ``ring`` or ``recursive_doubling``.
    ``ring``: 2 (ranks - 1) steps, in each of which every rank sends bytes / ranks to the next.
    ``recursive_doubling``: log2 steps in which ranks whose numbers differ in one bit exchange
    ``bytes``; with ranks not a power of two the surplus ranks first hand their data to a
    neighbour and get the result from it at the end.
    """
    _check(ranks, bytes)
    if algorithm == "ring":
        return _ring(ranks, bytes / ranks, 2 * (ranks - 1))
    if algorithm == "recursive_doubling":
        return _doubling_allreduce(ranks, bytes)
    raise _unknown("allreduce algorithm", algorithm, EXCHANGES)


def allgather(ranks: int, bytes: float, algorithm: str = "ring") -> Communication:
    """Send ``bytes`` of each of the ``ranks`` to all others.

    algorithm: ``ring`` or ``recursive_doubling``.
    ``ring``: ranks - 1 steps, in each of which every rank passes one contribution to the next.
    ``recursive_doubling`` (ranks a power of two): in step k, ranks whose numbers differ in bit k
    exchange all that they hold, 2^k contributions.
    """
    _check(ranks, bytes)
    if algorithm == "ring":
        return _ring(ranks, bytes, ranks - 1)
    if algorithm != "recursive_doubling":
        raise _unknown("allgather algorithm", algorithm, EXCHANGES)
    if ranks & (ranks - 1):
        raise WorkloadError(
            f"allgather by recursive_doubling: {ranks} ranks are not a power of two; use ring"
        )
    rounds = np.arange(ranks.bit_length() - 1, dtype=np.int64)
    step, source = (part.ravel() for part in np.meshgrid(rounds, np.arange(ranks), indexing="ij"))
    held = bytes * (1 << step)
    return Communication(ranks, step, source, source ^ (1 << step), held.astype(np.float64))


def all_to_all(ranks: int, bytes: float) -> Communication:
    """Send ``bytes`` from each of the ``ranks`` to every other: in step s, from r to r + s + 1."""
    _check(ranks, bytes)
    step, source = _every_rank_in(ranks, ranks - 1)
    return _messages(ranks, step, source, (source + step + 1) % ranks, bytes)


def _parents(receiver: IntArray, tree: str) -> tuple[IntArray, IntArray]:
    """(virtual rank that sends to each receiver, step of the message)."""
    if tree == "flat":
        return np.zeros_like(receiver), np.zeros_like(receiver)
    if tree == "binary":
        return (receiver - 1) // 2, _bit_length(receiver + 1) - 2
    if tree == "binomial":
        highest = _bit_length(receiver) - 1
        return receiver - (1 << highest), highest
    if tree == "chain":
        return receiver - 1, receiver - 1
    raise _unknown("broadcast tree", tree, BROADCAST_TREES)


def _bit_length(values: IntArray) -> IntArray:
    return np.array([int(value).bit_length() for value in values], np.int64)


def _ring(ranks: int, bytes: float, steps: int) -> Communication:
    step, source = _every_rank_in(ranks, steps)
    return _messages(ranks, step, source, (source + 1) % ranks, bytes)


def _doubling_allreduce(ranks: int, bytes: float) -> Communication:
    core = 1 << (ranks.bit_length() - 1)
    surplus = np.arange(2 * (ranks - core), dtype=np.int64)
    odd, even = surplus[1::2], surplus[::2]
    members = np.concatenate([even, np.arange(2 * (ranks - core), ranks, dtype=np.int64)])
    first = 1 if len(odd) else 0
    rounds = core.bit_length() - 1
    steps = [np.zeros_like(odd)]
    sources = [odd]
    destinations = [even]
    for k in range(rounds):
        steps.append(np.full(core, first + k, np.int64))
        sources.append(members)
        destinations.append(members[np.arange(core) ^ (1 << k)])
    steps.append(np.full(len(odd), first + rounds, np.int64))
    sources.append(even)
    destinations.append(odd)
    return _messages(
        ranks, np.concatenate(steps), np.concatenate(sources), np.concatenate(destinations), bytes
    )


def _every_rank_in(ranks: int, steps: int) -> tuple[IntArray, IntArray]:
    """(step, source) of one message a rank and step, in order of steps."""
    step = np.repeat(np.arange(steps, dtype=np.int64), ranks)
    return step, np.tile(np.arange(ranks, dtype=np.int64), steps)


def _messages(
    ranks: int, step: IntArray, source: IntArray, destination: IntArray, bytes: float
) -> Communication:
    return Communication(ranks, step, source, destination, np.full(len(step), float(bytes)))


def _check(ranks: int, bytes: float) -> None:
    if ranks < 1:
        raise WorkloadError(f"collective among {ranks} ranks; give at least one")
    if not 0.0 <= bytes < float("inf"):
        raise WorkloadError(f"collective of {bytes} bytes; give a finite number >= 0")


def _unknown(what: str, given: str, known: tuple[str, ...]) -> WorkloadError:
    return WorkloadError(f"unknown {what} {given!r}; use one of {', '.join(known)}")
