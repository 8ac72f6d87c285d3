"""select/linear: whole nodes, from runs of consecutive ones, with counts of jobs on nodes."""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Iterator
from math import ceil
from operator import itemgetter

import numpy as np

from ptaskmodel.batch.machine.host_sets import Mask, members, of_hosts
from ptaskmodel.kernels.decorators import as_compiled
from ptaskmodel.slurm.conf.facts import Nodes
from ptaskmodel.slurm.jobs.needs import ALL, PER_CPU, Need
from ptaskmodel.slurm.jobs.record import RUNNING, Allocation, End, Ends, JobRecord
from ptaskmodel.slurm.select.bitsets import choose_some, words_of
from ptaskmodel.slurm.select.choice import Offer, choose
from ptaskmodel.slurm.select.switches import Leaves, Tree

UNLIMITED = 1 << 30


class Counts:
    """How many jobs each node has: level k holds the nodes with more than k."""

    def __init__(self) -> None:
        self.levels: list[Mask] = [0]

    def copy(self) -> Counts:
        other = Counts()
        other.levels = self.levels[:]
        return other

    def add(self, nodes: Mask) -> None:
        for k, level in enumerate(self.levels):
            self.levels[k] = level | nodes
            nodes &= level
            if not nodes:
                return
        self.levels.append(nodes)

    def remove(self, nodes: Mask) -> None:
        levels = self.levels
        for k in range(len(levels) - 1, 0, -1):
            gone = levels[k] & nodes
            levels[k] ^= gone
            nodes ^= gone
        levels[0] &= ~nodes

    def above(self, most: int) -> Mask:
        """The nodes with more than so many jobs."""
        return self.levels[most] if most < len(self.levels) else 0


class Linear:
    """What runs where, and where a job could.

    ``running`` counts the jobs that run, ``present`` those suspended too. preempts: whether jobs
    may preempt others.
    """

    def __init__(self, nodes: Nodes, tree: Tree | None = None, *, preempts: bool = False) -> None:
        self.nodes = nodes
        self.tree = tree
        # Whether nodes of one weight are looked at together, whatever a job asks for.
        self._joins = preempts or tree is not None
        self.running = Counts()
        self.present = Counts()
        # Jobs that share with none: two have a node if one of them is suspended for the other.
        self.alone = Counts()
        self.memory = [0] * len(nodes)
        self.jobs: dict[JobRecord, None] = {}
        self.favours: bytearray | None = None
        # Scratch: the nodes chosen for a job, and runs of nodes.
        self._words = np.zeros((len(nodes) + 63) // 64, dtype=np.uint64)
        self._runs = np.zeros(len(self._words) * 64 + 2, dtype=np.int64)
        # What is taken after each of some ends, by how many jobs nodes may have.
        self._ends: Ends | None = None
        self._taken: dict[int, list[Mask]] = {}

    def copy(self) -> Linear:
        """One on which jobs can be removed for a trial."""
        other = copy.copy(self)
        other.running, other.present = self.running.copy(), self.present.copy()
        other.alone = self.alone.copy()
        other.memory = self.memory[:]
        other.jobs = self.jobs.copy()
        other._ends, other._taken = None, {}
        return other

    # --- what is taken ----------------------------------------------------------------------

    def follow_favours(self, favours: bytearray) -> None:
        """GPUs make no node lighter here."""

    def forget_favours(self, within: Mask) -> None:
        """Nodes have their own weights."""

    def add(self, job: JobRecord) -> None:
        """A job takes its allocation."""
        self._ends = None
        allocation = _held(job)
        nodes = allocation.nodes
        self.jobs[job] = None
        self.running.add(nodes)
        self.present.add(nodes)
        if _alone(job):
            self.alone.add(nodes)
        if allocation.memory_MiB:
            self._count_memory(allocation, 1)

    def remove(self, job: JobRecord, running: bool = True) -> None:
        """A job gives its allocation back; running: whether it was counted as running."""
        self._ends = None
        allocation = _held(job)
        nodes = allocation.nodes
        del self.jobs[job]
        if running:
            self.running.remove(nodes)
        self.present.remove(nodes)
        if _alone(job):
            self.alone.remove(nodes)
        if allocation.memory_MiB:
            self._count_memory(allocation, -1)

    def pause(self, job: JobRecord) -> None:
        """A job that is suspended stays, but does not run."""
        self._ends = None
        self.running.remove(_held(job).nodes)

    def lift(self, job: JobRecord) -> None:
        """On a trial: a job is suspended for another, if it is not yet.

        What was its alone is so no more, and all memory of its nodes counts as free.
        """
        self._ends = None
        nodes = _held(job).nodes
        self.present.remove(nodes)
        if job.state != "SUSPENDED":
            self.pause(job)
        if _alone(job):
            self.alone.remove(nodes)
        for node in members(nodes):
            self.memory[node] = max(0, self.memory[node] - self.nodes.memory_MiB[node])

    def resume(self, job: JobRecord) -> None:
        self._ends = None
        self.running.add(_held(job).nodes)

    def _count_memory(self, allocation: Allocation, sign: int) -> None:
        for node, amount in zip(members(allocation.nodes), allocation.memory_MiB, strict=True):
            self.memory[node] += sign * amount

    # --- where a job could run --------------------------------------------------------------

    @property
    def idle(self) -> Mask:
        """The nodes without any job."""
        return self.nodes.up & ~self.present.levels[0]

    def usable(self, need: Need, within: Mask, most: int) -> Mask:
        """The nodes with at most so many jobs, whether they run or not."""
        found = need.nodes & within & ~self._taken_by(most)
        if need.memory is not None:
            found = of_hosts(
                k
                for k in members(found)
                if memory_on(need, self.nodes, k) <= self.nodes.memory_MiB[k] - self.memory[k]
            )
        return found

    def place(
        self,
        need: Need,
        within: Mask,
        *,
        leaves: Leaves | None = None,
    ) -> Allocation | None:
        """Where a job would run now, within some nodes, with as much sharing as there may be."""
        usable = self.usable(need, within, need.hoped - 1)
        chosen = self._chosen(need, usable, leaves) if usable.bit_count() >= need.least else None
        if chosen is None or (leaves is not None and not leaves.accepts):
            return None
        return self._allocation(need, chosen)

    def _chosen(self, need: Need, usable: Mask, leaves: Leaves | None) -> Mask | None:
        """The nodes for a job among usable ones; `leaves` sees below which they are."""
        if self.tree is None:
            return self._choose(need, usable)
        self.tree.be_seen(leaves)
        return self._choose(need, usable)

    def _least_shared(self, need: Need, within: Mask, leaves: Leaves | None) -> Allocation | None:
        """Where a job can run now, within some nodes: with the least sharing that does."""
        seen = -1
        for most in range(need.share):
            usable = self.usable(need, within, most)
            count = usable.bit_count()
            if count == seen or count < need.least:
                continue
            seen = count
            chosen = self._mate(need, usable) if most > 0 else None
            if chosen is None:
                chosen = self._chosen(need, usable, leaves)
            if chosen is not None:
                refused = leaves is not None and not leaves.accepts
                return None if refused else self._allocation(need, chosen)
        return None

    def start(
        self,
        need: Need,
        within: Mask,
        *,
        leaves: Leaves | None = None,
        counted: Mask = 0,
        seen: Mask = -1,
    ) -> Allocation | None:
        """The same, among sets of nodes of growing weight, as a start looks at them.

        counted: nodes that a limit to nodes counts already: of each set some of which are among
        them, the others are heavier. seen: of no use, as no weights are kept.
        """
        sets = self.nodes.sets
        if counted:
            sets = split(sets, need.nodes, counted)
        if len(sets) == 1:
            return self._least_shared(need, within, leaves)
        joined = need.joined and (need.share > 1 or self._joins)
        for nodes, last in by_weight(sets, joined=joined):
            among = within & (need.required | nodes)
            free = among & need.nodes
            if need.share == 1:
                free &= ~self.present.levels[0]
            if free.bit_count() >= (need.least if last else max(need.least, need.wanted)):
                found = self._least_shared(need, among, leaves)
                if found is not None:
                    return found
        return None

    def _mate(self, need: Need, usable: Mask) -> Mask | None:
        """The nodes of one job of the same size, all usable: those are shared first."""
        for job in sorted(self.jobs, key=lambda job: job.listed):
            held = _held(job)
            if (
                held.size == need.wanted
                and sum(self.nodes.cpus[k] for k in members(held.nodes)) >= need.cpus
                and not held.nodes & ~usable
                and not need.required & ~held.nodes
                and job.request.contiguous == need.contiguous
                and job.partition is need.partition
                and job.state == RUNNING
            ):
                return held.nodes
        return None

    def _choose(self, need: Need, usable: Mask) -> Mask | None:
        if need.required & ~usable:
            return None
        if self.tree is not None and self.tree.serves(need):
            return self.tree.choose_linear(need, usable, self.nodes.cpus)
        if self.nodes.alike and not need.required and not need.contiguous:
            return self.tightest(need, usable) or None
        return self.by_offers(need, usable)

    def tightest(self, need: Need, usable: Mask) -> Mask:
        """Return what `choice.choose` finds of equal `usable` nodes for a `need`; 0: too few.

        That is the tightest run that suffices, or the largest ones.
        """
        cpus, words = self.nodes.cpus[0], self._words
        nodes = max(need.least, need.wanted, ceil(need.cpus / cpus))
        if nodes > need.most:
            return 0
        spare = max(need.least, need.wanted) - need.least
        among = words_of(usable, len(words))
        with as_compiled():
            got = choose_some(words, among, self._runs, nodes, spare, need.cpus, cpus)
        if got < nodes and (got < need.least or got * cpus < need.cpus):
            return 0
        return int.from_bytes(words.tobytes(), "little")

    def by_offers(self, need: Need, usable: Mask) -> Mask | None:
        """The nodes for a job among usable ones that may differ, or some of which it must have."""
        offers = [
            Offer(k, self.nodes.cpus[k], bool(need.required >> k & 1)) for k in members(usable)
        ]
        chosen = choose(offers, need.count())
        return None if chosen is None else of_hosts(chosen)

    def _allocation(self, need: Need, nodes: Mask) -> Allocation:
        memory: tuple[int, ...] = ()
        if need.memory is not None:
            memory = tuple(memory_on(need, self.nodes, k) for k in members(nodes))
        return Allocation(nodes, nodes.bit_count(), memory_MiB=memory)

    # --- when a job could run ---------------------------------------------------------------

    def predict(
        self, need: Need, within: Mask, ends: Ends, leaves: Leaves | None = None
    ) -> tuple[End, Allocation] | None:
        """The first end of a job after which another fits within some nodes, and where.

        ends: of those that run or are suspended, earliest first; they are removed one by one.
        leaves: see `place`. A job that would fit now, below too many, is not planned.
        """
        most = need.hoped - 1
        if leaves is not None and not leaves.accepts and self.place(need, within) is not None:
            return None
        if need.memory is None:
            steps = self._emptied(need.nodes & within, ends, most, need.least)
        else:
            steps = self._removed(need, within, ends, most)
        for end, usable in steps:
            enough = usable.bit_count() >= need.least
            chosen = self._chosen(need, usable, leaves) if enough else None
            if chosen is not None:
                refused = leaves is not None and not leaves.accepts
                return None if refused else (end, self._allocation(need, chosen))
        return None

    def _removed(
        self, need: Need, within: Mask, ends: Ends, most: int
    ) -> Iterator[tuple[End, Mask]]:
        """What is usable after each end, among some nodes."""
        trial = self.copy()
        for end in ends:
            job = end[2]
            trial.remove(job, running=job.state != "SUSPENDED")
            if _held(job).nodes & within:
                yield end, trial.usable(need, within, most)

    def _emptied(
        self, among: Mask, ends: Ends, most: int, least: int
    ) -> Iterator[tuple[End, Mask]]:
        """The same where memory is not counted, from the end on that leaves so many nodes."""
        if self._ends is not ends:
            self._ends, self._taken = ends, {}
        if most not in self._taken:
            self._taken[most] = self._taken_after(ends, most)
        taken = self._taken[most]
        first = bisect_left(taken, least, key=lambda nodes: (among & ~nodes).bit_count())
        for k in range(first, len(ends)):
            if _held(ends[k][2]).nodes & among:
                yield ends[k], among & ~taken[k]

    def _taken_after(self, ends: Ends, most: int) -> list[Mask]:
        """The nodes with more than so many jobs, or a job of its own, after each end."""
        trial, found = self.copy(), []
        for _, _, job in ends:
            trial.remove(job, running=job.state != "SUSPENDED")
            found.append(trial._taken_by(most))
        return found

    def _taken_by(self, most: int) -> Mask:
        return self.running.above(most) | self.present.above(most) | self.alone.above(0)


def memory_on(need: Need, nodes: Nodes, node: int) -> int:
    """MiB that a job takes of a node that is its alone."""
    assert need.memory is not None
    kind, amount = need.memory
    if kind == ALL:
        return nodes.memory_MiB[node]
    return amount * nodes.cpus[node] if kind == PER_CPU else amount


def _alone(job: JobRecord) -> bool:
    """Return whether no other job may join a job: it did not ask to share its nodes, or asked not
    to.

    Where sharing is forced, even --exclusive has no effect, but by one job alone (FORCE:1) only
    those that ask for it share.
    """
    asks = job.need.force and job.request.oversubscribe
    return job.need.share == 1 and not asks


def _held(job: JobRecord) -> Allocation:
    assert job.allocation is not None
    return job.allocation


def by_weight(sets: tuple[tuple[int, Mask], ...], *, joined: bool) -> Iterator[tuple[Mask, bool]]:
    """The nodes of the lightest of `sets`, then those of the next too ...; whether these are all.

    joined: whether sets of equal weight are added together.
    """
    union = 0
    for k, (weight, nodes) in enumerate(sets):
        union |= nodes
        last = k + 1 == len(sets)
        if last or not joined or sets[k + 1][0] != weight:
            yield union, last


def split(
    sets: tuple[tuple[int, Mask], ...], usable: Mask, counted: Mask
) -> tuple[tuple[int, Mask], ...]:
    """The `sets` of nodes by weight, those that are `counted` apart from the others of a set.

    usable: the nodes that matter.
    """
    found, lighter = [], []
    for weight, nodes in sets:
        mine = nodes & usable
        if mine & counted and mine & ~counted:
            found.append((weight + 1, nodes & ~counted))
            lighter.append((weight, nodes & counted))
        else:
            found.append((weight, nodes))
    return tuple(sorted(found + lighter[::-1], key=itemgetter(0)))


def prepare_kernels() -> None:
    """Use the kernel as it is used (see `kernels.building`)."""
    words = np.zeros(1, dtype=np.uint64)
    choose_some(words, words_of(1, 1), np.zeros(66, dtype=np.int64), 1, 0, 1, 1)
