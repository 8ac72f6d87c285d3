"""Choose the cores of a node: cyclic over its sockets, or block after block; core sets are masks.

Cores in use are stored by partition, as rows of jobs that do not overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import ceil

from ptaskmodel.batch.machine.host_sets import Mask, first_hosts, lowest, members
from ptaskmodel.slurm.conf.facts import NodeLine
from ptaskmodel.slurm.jobs.record import Allocation, JobRecord

# Used cores of each node, as masks.
Used = Sequence[int]


def of_sockets(line: NodeLine, free: Mask) -> list[Mask]:
    """The free cores of each socket."""
    size = line.cores_per_socket
    whole = first_hosts(size)
    return [free & whole << k * size for k in range(line.sockets)]


def whole_sockets(line: NodeLine, cores: Mask) -> Mask:
    """The cores of all sockets that some cores touch."""
    size = line.cores_per_socket
    whole = first_hosts(size)
    return sum(whole << k * size for k in range(line.sockets) if cores >> k * size & whole)


def cyclic(sockets: list[Mask], count: int) -> Mask:
    """The lowest free core of each socket in turn, until there are enough."""
    return _cyclic(tuple(sockets), count)


@lru_cache(maxsize=20_000)
def _cyclic(sockets: tuple[Mask, ...], count: int) -> Mask:
    """As `cyclic`: of the same sockets as many are asked for over and over."""
    free = [each.bit_count() for each in sockets]
    taken = [0] * len(sockets)
    left = [k for k, cores in enumerate(free) if cores]
    while count > 0 and left:
        turns = min(count // len(left), *(free[k] - taken[k] for k in left))
        for k in left if turns else left[:count]:
            taken[k] += max(turns, 1)
        count -= turns * len(left) if turns else count
        left = [k for k in left if taken[k] < free[k]]
    return sum(lowest(each, cores) for each, cores in zip(sockets, taken, strict=True))


def block(sockets: list[Mask], count: int, boards: int = 1) -> Mask:
    """The fewest boards, then the tightest socket that suffices, else the fullest; lowest first."""
    if boards > 1:
        size = len(sockets) // boards
        groups = [sockets[k * size : (k + 1) * size] for k in range(boards)]
        found = 0
        left: list[list[Mask]] = groups
        while count > found.bit_count() and any(map(any, left)):
            need = count - found.bit_count()
            frees = [sum(socket.bit_count() for socket in group) for group in left]
            k = _tightest(frees, need)
            found |= block(left[k], need)
            left[k] = []
        return found
    rest, found = list(sockets), 0
    while count > 0 and any(rest):
        k = _tightest([socket.bit_count() for socket in rest], count)
        taken = lowest(rest[k], min(count, rest[k].bit_count()))
        rest[k] = 0
        found |= taken
        count -= taken.bit_count()
    return found


def packed(sockets: list[Mask], cpus: int, cpus_per_task: int, cpus_per_core: int) -> Mask:
    """The cores for so many CPUs of tasks that do not straddle sockets, the first socket first.

    What whole tasks on a socket do not cover is taken from the sockets in turn.
    """
    found = 0
    for free in sockets:
        fits = free.bit_count() * cpus_per_core
        fits -= fits % cpus_per_task
        count = min(cores_for(fits, cpus_per_core), cores_for(max(cpus, 0), cpus_per_core))
        found |= lowest(free, count)
        cpus -= count * cpus_per_core
    rest = [free & ~found for free in sockets]
    return found | cyclic(rest, cores_for(max(cpus, 0), cpus_per_core))


def cores_for(cpus: int, threads: int) -> int:
    """Whole cores that hold so many CPUs."""
    return ceil(cpus / threads)


def _tightest(frees: list[int], need: int) -> int:
    """Which has the fewest free that suffice, else the most; the lowest of equals."""
    return min(
        range(len(frees)),
        key=lambda k: (frees[k] < need, frees[k] if frees[k] >= need else -frees[k]),
    )


@lru_cache(maxsize=20_000)
def nodes_in(nodes: Mask) -> Sequence[int]:
    """The nodes of a set, ascending: the same sets are asked for over and over."""
    return tuple(members(nodes))


def joined(every: Sequence[Used], among: Sequence[int]) -> Used:
    """The cores of some nodes that any of them uses; of other nodes it may tell anything."""
    if len(every) == 1:
        return every[0]
    union = list(every[0])
    for used in every[1:]:
        for node in among:
            union[node] |= used[node]
    return union


def free_cpus(lines: Sequence[NodeLine], full: Used, used: Used, among: Sequence[int]) -> int:
    """Return how many CPUs some nodes have on unused cores. full: all cores of each node."""
    open_nodes = [k for k in among if used[k] != full[k]]
    return sum([(full[k] & ~used[k]).bit_count() * lines[k].threads for k in open_nodes])


def held_cpus(lines: Sequence[NodeLine], held: Allocation, nodes: Mask) -> int:
    """How many CPUs some nodes have on the cores that a job holds there."""
    pairs = zip(nodes_in(held.nodes), held.cores, strict=True)
    return sum(
        cores.bit_count() * lines[node].threads for node, cores in pairs if nodes >> node & 1
    )


def without(used: Used, gone: Iterable[Allocation | None]) -> Used:
    """The cores in use, but for those of some allocations, which share none with others."""
    left = list(used)
    for held in gone:
        assert held is not None
        for node, cores in zip(nodes_in(held.nodes), held.cores, strict=True):
            left[node] &= ~cores
    return left


class Row:
    """Jobs that do not overlap, and what they use.

    full: the cores of each node, all of which a job on whole nodes uses, whatever it was given.
    """

    __slots__ = ("_full", "cores", "jobs", "used")

    def __init__(self, full: Sequence[Mask]) -> None:
        self._full = full
        self.used = [0] * len(full)
        self.jobs: dict[JobRecord, None] = {}
        self.cores = 0

    def copy(self) -> Row:
        other = object.__new__(Row)
        other._full = self._full
        other.used, other.jobs, other.cores = self.used[:], self.jobs.copy(), self.cores
        return other

    def takes(self, job: JobRecord) -> bool:
        """Return whether the cores of a `job` are unused."""
        return not self.jobs or not any(self.used[node] & cores for node, cores in self._of(job))

    def add(self, job: JobRecord) -> None:
        for node, cores in self._of(job):
            self.used[node] |= cores
            self.cores += cores.bit_count()
        self.jobs[job] = None

    def remove(self, job: JobRecord) -> None:
        for node, cores in self._of(job):
            self.used[node] &= ~cores
            self.cores -= cores.bit_count()
        del self.jobs[job]

    def _of(self, job: JobRecord) -> Iterable[tuple[int, Mask]]:
        held = _held(job)
        nodes = nodes_in(held.nodes)
        if job.need.whole:
            return [(node, self._full[node]) for node in nodes]
        return zip(nodes, held.cores, strict=True)


class Rows:
    """The rows of a partition: as many as may run on one core, its `count`.

    touched: whether it has ever had a job. full: the cores of each node.
    """

    def __init__(self, full: Sequence[Mask], count: int) -> None:
        self.rows = [Row(full)]
        self.touched = False
        self._full = full
        self._count = count

    def copy(self) -> Rows:
        other = object.__new__(Rows)
        other.rows = [row.copy() for row in self.rows]
        other.touched, other._full, other._count = self.touched, self._full, self._count
        return other

    @property
    def may_share(self) -> bool:
        """Whether cores may have several jobs."""
        return self._count > 1

    @property
    def free_row(self) -> bool:
        """Whether another row may be begun."""
        return len(self.rows) < self._count

    def add(self, job: JobRecord) -> None:
        """A job takes its place in the first row with room; without one it is not counted."""
        self.touched = True
        self._put(self.rows, job)

    def _put(self, rows: list[Row], job: JobRecord) -> bool:
        for row in rows:
            if row.takes(job):
                row.add(job)
                return True
        if len(rows) >= self._count:
            return False
        rows.append(Row(self._full))
        rows[-1].add(job)
        return True

    def remove(self, job: JobRecord) -> None:
        """A job is gone; the others are put in order anew, if all find room."""
        row = next((row for row in self.rows if job in row.jobs), None)
        if row is None:
            return
        row.remove(job)
        if self._count == 1:
            return
        rest = sorted((each for row in self.rows for each in row.jobs), key=_first_core)
        rows = [Row(self._full)]
        for each in rest:
            if not self._put(rows, each):
                return
            fullest_first(rows)
        self.rows = rows

    def sort(self) -> None:
        """The fullest row first."""
        fullest_first(self.rows)


def fullest_first(rows: list[Row]) -> None:
    """Put rows in order of the cores that they use, as exchanges of pairs do it."""
    for k in range(len(rows)):
        for other in range(k + 1, len(rows)):
            if rows[other].cores > rows[k].cores:
                rows[k], rows[other] = rows[other], rows[k]


def _first_core(job: JobRecord) -> tuple[int, int, int]:
    """The first core of a job, then how many CPUs it has."""
    held = _held(job)
    node = (held.nodes & -held.nodes).bit_length()
    cores = held.cores[0]
    return node, (cores & -cores).bit_length(), sum(held.cpus)


def _held(job: JobRecord) -> Allocation:
    assert job.allocation is not None
    return job.allocation
