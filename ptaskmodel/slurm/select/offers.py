"""What each available node offers a job that shares it: cores, CPUs, memory and GRES.

Limits of partitions apply. Source: `_allocate_sc` and `can_job_run_on_node` of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from ptaskmodel.batch.machine.host_sets import Mask, lowest, members
from ptaskmodel.slurm.conf.facts import Gres, NodeLine
from ptaskmodel.slurm.jobs.gpus import GPU, GresAsk, amount_of
from ptaskmodel.slurm.jobs.needs import ALL, PER_CPU, Need
from ptaskmodel.slurm.select import cores

# Units in use of a node, by name and type.
InUse = Mapping[tuple[str, str | None], int]
# As many GPUs at most make a node lighter.
LIGHTEST = 255


class Selected(NamedTuple):
    """What is selected of a node for a job with generic resources; no CPUs: it will not do.

    units: of each kind of `Need.asks`. counts: cores of each socket. least_cpus: of the cores that
    it must take.
    """

    cpus: int
    units: tuple[int, ...]
    counts: tuple[int, ...]
    least_cpus: int


class Offer(Protocol):
    """What a node offers such a job; see `gpus.GpuOffer`."""

    counts: tuple[int, ...]
    cpus: int
    line: NodeLine
    near: int
    units: tuple[int, ...]
    whole_cpus: int

    def select(self, room: Room, left: Sequence[int], first: bool) -> Selected: ...


class Room:
    """A node that will do.

    cpus: what it offers; less once the job needs no more of it. free: CPUs of its free cores, of
    ``total``. resources: CPUs and GPUs, by which poor nodes are dropped. piece: CPUs that are kept
    for each further node. required: whether the job must have it.

    Of a job with generic resources, offer: what it offers, of which cores are selected: units,
    counts, least_cpus as `Selected` has them. avail: CPUs that tasks may use; whole_cpus: those of
    the selected cores, or of all if it takes the whole node. near: GPUs that make it lighter.
    """

    __slots__ = (
        "avail",
        "counts",
        "cpus",
        "free",
        "gpus",
        "least_cpus",
        "near",
        "node",
        "offer",
        "piece",
        "required",
        "resources",
        "total",
        "units",
        "weight",
        "whole_cpus",
    )

    def __init__(
        self,
        node: int,
        cpus: int,
        *,
        free: int = 0,
        total: int = 1,
        weight: int = 0,
        required: bool = False,
        piece: int = 1,
        gpus: int = 0,
    ) -> None:
        self.node = node
        self.cpus = cpus
        self.free = free
        self.total = total
        self.weight = weight
        self.required = required
        self.piece = piece
        self.gpus = gpus
        self.resources = cpus + gpus
        self.units: tuple[int, ...] = ()
        self.counts: tuple[int, ...] = ()
        self.offer: Offer | None = None
        self.near = self.avail = self.whole_cpus = self.least_cpus = 0

    def offer_units(self, offer: Offer) -> None:
        """Set what is offered to a job with generic resources, its `offer`."""
        self.offer, self.units, self.near = offer, offer.units, offer.near
        self.avail, self.whole_cpus = offer.cpus, offer.whole_cpus

    def keep(self, counts: tuple[int, ...]) -> None:
        """Select so many cores of each socket, the `counts`."""
        self.counts = counts

    def begin(self) -> None:
        """Offer all free cores again."""
        if self.offer is not None:
            self.counts = self.offer.counts

    def select(self, left: Sequence[int], first: bool, whole: bool) -> None:
        """Select cores for a job that lacks so many units of each kind, `left`.

        first: whether nodes are chosen for the first time. whole: whether it takes whole nodes.
        """
        if self.offer is None:
            return
        found = self.offer.select(self, left, first)
        self.cpus = found.cpus
        if self.cpus:
            self.units, self.counts, self.least_cpus = found[1:]
            if not whole:
                self.whole_cpus = sum(self.counts) * self.offer.line.threads

    def of(self, node: int, required: bool) -> Room:
        """What another node like this one offers; it can be taken in part."""
        other = object.__new__(Room)
        other.node, other.required = node, required
        other.cpus, other.free, other.total = self.cpus, self.free, self.total
        other.weight, other.piece = self.weight, self.piece
        other.gpus, other.resources = self.gpus, self.resources
        other.units, other.near = self.units, self.near
        other.whole_cpus, other.least_cpus = self.whole_cpus, self.least_cpus
        other.avail, other.counts, other.offer = self.avail, self.counts, self.offer
        return other

    def weigh(self, noted: int) -> None:
        """Put nodes of one weight in order by a byte that is `noted` of each, lowest first."""
        self.weight = (self.weight << 8) + noted


class Taking:
    """What is still wanted while nodes are taken.

    cpus: as many as must be had; most_cpus: as many as are taken. nodes: as many as are wanted;
    least: as many as there must be; room: as many as may be. fewest: the CPUs that the tasks on any
    node need. units: of `Need.asks`, those that the job asks for in all. first: whether nodes are
    chosen for the first time.
    """

    __slots__ = (
        *("chosen", "cpus", "fewest", "first", "least", "most_cpus", "need", "nodes", "room"),
        *("spare", "units"),
    )

    def __init__(
        self, need: Need, least: int, most: int, fewest: int | None = None, first: bool = True
    ) -> None:
        self.need = need
        self.first = first
        self.cpus = need.cpus
        tasks = need.tasks_per_node or _tasks_of_parts(need) or need.tasks_on_one or 1
        self.fewest = need.cpus_per_task * tasks if fewest is None else fewest
        self.least = least
        self.nodes = max(least, need.wanted)
        self.spare = self.nodes - least
        self.room = most
        self.chosen: dict[int, Room] = {}
        self.units = [ask.per_job for ask in need.asks]
        if any(self.units):
            self.nodes = least
        self.most_cpus = need.cpus
        if need.asks:
            self.fewest = 1
            of_nodes = need.cpus_for_gpus_of_node * self.nodes
            self.most_cpus = max(need.cpus, need.cpus_for_gpus, of_nodes)

    def limit(self) -> None:
        """Let there be no more nodes than tasks that were asked for."""
        if self.need.tasks_asked:
            self.room = min(self.room, self.need.tasks_asked)

    def offers(self, room: Room) -> int:
        """What a node offers, if its tasks fit: CPUs."""
        if self.units:
            room.select(self.units, self.first, self.need.whole)
        return room.cpus if room.cpus >= self.fewest else 0

    def cap(self, room: Room) -> int:
        """What would be used of a node: pieces are kept for the nodes that must follow."""
        need = self.need
        if not need.whole:
            left = self.most_cpus - max(self.least - 1, 0) * room.piece
            if room.cpus > left:
                room.cpus = room.avail = max(left, need.cpus_per_node, need.cpus_for_gpus_of_node)
                room.resources = room.cpus + room.gpus
            room.whole_cpus = min(room.avail, room.whole_cpus)
        return room.cpus

    def take(self, room: Room) -> None:
        """Take what is needed of a node."""
        self.cap(room)
        self.take_whole(room)

    def take_whole(self, room: Room) -> None:
        """Take all that a node, its `room`, offers."""
        cpus = self._take_units(room) if self.units else room.cpus
        self.cpus -= cpus
        self.most_cpus -= cpus
        self.nodes -= 1
        self.least -= 1
        self.room -= 1
        self.chosen[room.node] = room

    def _take_units(self, room: Room) -> int:
        """Take the GPUs of a node; the CPUs that count with them."""
        with_gpus = 0
        for k, ask in enumerate(self.need.asks):
            if not ask.per_job:
                continue
            units = room.units[k]
            if ask.cpus_each:
                units = min(units, room.cpus // ask.cpus_each)
                with_gpus = max(with_gpus, units * ask.cpus_each)
            self.units[k] -= units
        return with_gpus or room.cpus

    @property
    def done(self) -> bool:
        return self.nodes <= 0 and self.fed

    @property
    def fed(self) -> bool:
        """Whether there are CPUs and GPUs enough, if not nodes."""
        return self.cpus <= 0 and all(left <= 0 for left in self.units)

    def would_feed(self, cpus: int, units: Sequence[int]) -> bool:
        """Whether so many more `cpus`, and `units` of GPUs, suffice."""
        pairs = zip(self.units, units, strict=False)
        return cpus >= self.cpus and all(left <= more for left, more in pairs)

    def fed_by(self, rooms: Collection[Room]) -> bool:
        """Whether the CPUs and GPUs of some nodes, `rooms`, suffice."""
        columns = zip(*(room.units for room in rooms), strict=True)
        return self.would_feed(sum(room.cpus for room in rooms), [*map(sum, columns)])

    def enough(self, nodes: int) -> bool:
        """Whether so many more nodes are what there must be."""
        return nodes >= self.nodes - self.spare


def free_units(ask: GresAsk, line: NodeLine, used: InUse) -> int:
    """How many units that an `ask` may have are free on a node of a `line`; used: in use there."""
    taken = sum(
        count
        for (name, kind), count in used.items()
        if name == ask.name and (ask.type is None or kind in (None, ask.type))
    )
    return amount_of(Gres(ask.name, ask.type, 1), line.gres) - taken


def asks_gpus(need: Need) -> bool:
    """Whether a job asks for GPUs."""
    return any(one.name == GPU for one in need.gres)


def favour(need: Need, rooms: Sequence[Room], favours: bytearray) -> None:
    """Note the GPUs that a `need` has found in `rooms`, and weigh these by what `favours` notes."""
    asked = sum(one.count for one in need.gres if one.name == GPU)
    for room in rooms:
        if asked or room.near:
            near = room.near or (room.gpus if need.whole else asked)
            favours[room.node] = min(near, LIGHTEST)
        room.weigh(LIGHTEST - favours[room.node])


def beside(nodes: Mask, counted: Mask, lines: Sequence[NodeLine]) -> Mask:
    """Those of some `nodes` that are not `counted`, but stand on `lines` of some that are."""
    found: dict[int, Mask] = {}
    for node in members(nodes if counted else 0):
        found[id(lines[node])] = found.get(id(lines[node]), 0) | 1 << node
    return sum(mask & ~counted for mask in found.values() if mask & counted)


def mask_of(rooms: Sequence[Room]) -> Mask:
    """The nodes of some rooms."""
    return sum(1 << room.node for room in rooms)


def cpus_of_core(need: Need, line: NodeLine) -> int:
    """How many CPUs of a core a job uses."""
    if need.one_thread or need.tasks_per_core is None:
        return 1 if need.one_thread else line.threads
    return min(line.threads, need.tasks_per_core * need.cpus_per_task)


def piece_of(need: Need, line: NodeLine, by_sockets: bool) -> int:
    """The least that a job is given of a node, in CPUs."""
    return cpus_of_core(need, line) * (line.cores_per_socket if by_sockets else 1)


def unit_of(need: Need, line: NodeLine, by_sockets: bool) -> int:
    """Return in steps of how many CPUs a node of a `line` offers less where memory lacks.

    need: of the job; by those of a core if it says how many it uses. by_sockets: whether whole
    sockets are taken.
    """
    bounded = need.one_thread or need.tasks_per_core is not None
    return cpus_of_core(need, line) if bounded else piece_of(need, line, by_sockets)


def free_sockets(line: NodeLine, free: Mask, own: Mask | None, by_sockets: bool) -> list[Mask]:
    """The free cores of each socket.

    own: cores that jobs of the same partition use; None: it never had any job. by_sockets: no
    socket is shared, as far as the partition's own jobs go.
    """
    found = cores.of_sockets(line, free)
    if not by_sockets:
        return found
    if own is None:
        return [each if each.bit_count() == line.cores_per_socket else 0 for each in found]
    used = cores.of_sockets(line, own & ~free)
    return [0 if there else each for each, there in zip(found, used, strict=True)]


def as_asked(need: Need, sockets: list[Mask]) -> list[Mask]:
    """Of free cores of the `sockets` of a node, those that a job of a `need` may take."""
    if need.cores_per_socket > 1:
        sockets = [each if each.bit_count() >= need.cores_per_socket else 0 for each in sockets]
    if need.sockets > 1 and sum(map(bool, sockets)) < need.sockets:
        return [0] * len(sockets)
    return sockets


def _tasks_of_parts(need: Need) -> int:
    """The least tasks on a node of a job that says how many each socket or core has; else 0."""
    return need.tasks_per_socket or need.tasks_per_core or 0


def _for_tasks(need: Need, line: NodeLine, sockets: list[Mask]) -> list[Mask]:
    """Of free cores of the `sockets` of a node, those for the tasks that each may have."""
    if need.tasks_per_socket is None:
        return sockets
    most = need.tasks_per_socket * need.cpus_per_task
    count = cores.cores_for(most, cpus_of_core(need, line))
    return [lowest(each, min(count, each.bit_count())) for each in sockets]


def _without_spare(need: Need, sockets: list[Mask], cpus: int, each: int) -> list[Mask]:
    """The `sockets` that cores for so many `cpus` are taken of: not the first that may be spared.

    each: CPUs of a core.
    """
    assert need.tasks_per_socket is not None
    most = need.tasks_per_socket * need.cpus_per_task
    counts = [socket.bit_count() * each for socket in sockets]
    for k, count in enumerate(counts):
        if sum(counts) > cpus:
            counts[k] = min(count, most)
    total, left = sum(counts), list(sockets)
    for k, count in enumerate(counts):
        if total > cpus and count <= most and total - count >= cpus:
            total, left[k] = total - count, 0
    return left


def cores_taken(
    need: Need,
    line: NodeLine,
    sockets: list[Mask],
    cpus: int,
    by_sockets: bool,
    counts: Sequence[int] = (),
) -> Mask:
    """The cores of a node for so many `cpus` of a `need`, of those that are free on its `sockets`.

    line: of the node. by_sockets: whether whole sockets are taken. counts: how many cores of each
    socket are selected, if not all. Without CPUs, a node whose cores are taken socket after socket
    keeps them all.
    """
    each, there = cpus_of_core(need, line), sum(sockets)
    if counts:
        sockets = [lowest(each, count) for each, count in zip(sockets, counts, strict=True)]
    if need.block and not cpus:
        return sum(sockets)
    sockets = _for_tasks(need, line, sockets)
    if need.block:
        taken = cores.block(sockets, cores.cores_for(cpus, each), line.boards)
    elif need.tasks_per_socket is not None:
        left = _without_spare(need, sockets, cpus, each)
        taken = cores.cyclic(left, cores.cores_for(cpus, each))
    elif need.cpus_per_task > 1:
        taken = cores.packed(sockets, cpus, need.cpus_per_task, each)
    else:
        taken = cores.cyclic(sockets, cores.cores_for(cpus, each))
    return cores.whole_sockets(line, taken) & there if by_sockets else taken


def _holds_tasks(need: Need, line: NodeLine, sockets: list[Mask]) -> bool:
    """Whether a node has sockets for as many tasks as a job wants on each, and on each node."""
    most, each = need.tasks_per_socket, cpus_of_core(need, line)
    if most is None:
        return True
    tasks = sum(min(socket.bit_count() * each, most) for socket in sockets)
    return most <= line.threads * line.cores_per_socket and tasks >= (need.tasks_per_node or 0)


def _by_cores(need: Need) -> bool:
    """Whether a job has one task on a core, not just one CPU of it."""
    return need.one_thread and (need.tasks_per_core == 1 or not need.memory_by_core)


def cpus_offered(
    need: Need,
    line: NodeLine,
    sockets: list[Mask],
    own: Mask,
    unit: int | None,
    free_MiB: int,
    tasks: int,
) -> int:
    """How many CPUs a node offers a job; 0: it will not do.

    sockets: free cores. own: cores that jobs of the partition keep from it. unit: in how many CPUs
    they are given; None: CPUs are given one by one. free_MiB: its memory. tasks: the least on it.
    """
    count, each = sum(map(int.bit_count, sockets)), cpus_of_core(need, line)
    taken_of = _for_tasks(need, line, sockets)
    cpus = sum(map(int.bit_count, taken_of)) * each
    most = need.partition.max_cpus_per_node
    if most is not None:
        used = own.bit_count() * line.threads
        if count * line.threads + used > most:
            if need.whole or need.of_user or used >= most:
                return 0
            cpus = min(cpus, most - used)
    if count * each < need.cpus_per_node or not _holds_tasks(need, line, sockets):
        return 0
    if cpus < tasks * need.cpus_per_task or cpus < (need.tasks_per_node or 0):
        return 0
    if need.memory is None or need.memory[0] != PER_CPU:
        return cpus
    amount, fewer = need.memory[1], unit or 1
    if need.whole:
        cpus = cpus if amount * cpus <= free_MiB else 0
    elif unit is not None and _by_cores(need) and need.cpus_per_task == 1:
        # Tasks are counted by cores, whose threads all need memory, whatever more is given later.
        amount, fewer = amount * line.threads, 1
    while amount * cpus > free_MiB:
        cpus = max(0, cpus - fewer)
    cpus -= cpus % need.cpus_per_task
    return 0 if cpus < (need.tasks_per_node or 0) else cpus


def memory_on_each(need: Need) -> int | None:
    """The least memory that a job asks of any of its nodes; None: all that a node has."""
    if need.memory is None:
        return 0
    kind, amount = need.memory
    if kind == ALL:
        return None
    if kind == PER_CPU:
        amount *= max(need.tasks_per_node or 0, need.cpus_per_node, need.cpus_per_task)
    return amount


def has_memory(need: Need, free_MiB: int, all_MiB: int) -> bool:
    """Whether a node has the memory that a job asks of any of its nodes."""
    if need.memory is None:
        return True
    least_MiB = memory_on_each(need)
    return free_MiB == all_MiB if least_MiB is None else least_MiB <= free_MiB


def gpus_left(need: Need, line: NodeLine, used: dict[tuple[str, str | None], int]) -> int | None:
    """How many GPUs a node has for a job; None: it has not the GRES that the job asks for."""
    gpus = 0
    for one in need.gres:
        taken = sum(
            count
            for (name, kind), count in used.items()
            if name == one.name and (one.type is None or kind in (None, one.type))
        )
        left = amount_of(one, line.gres) - taken
        if left < one.count:
            return None
        gpus += left if one.name == GPU else 0
    return gpus
