"""select/cons_tres: cores, sockets or CPUs, memory and GRES of shared nodes.

`plugin` calls it to take and return resources, to place a job now, and to predict when it fits.
`cons_res` has what select/cons_res does in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from math import inf

from ptaskmodel.batch.machine.host_sets import Mask, first_hosts, members, of_hosts
from ptaskmodel.slurm.conf.facts import BY_TIER, NEVER, Conf, NodeLine, Nodes
from ptaskmodel.slurm.jobs.needs import OVER_OTHERS, PER_GPU, Need
from ptaskmodel.slurm.jobs.record import Allocation, End, Ends, JobRecord
from ptaskmodel.slurm.select.cores import (
    Used,
    free_cpus,
    held_cpus,
    joined,
    nodes_in,
    of_sockets,
)
from ptaskmodel.slurm.select.fitting import Style, dealt, fit, memory_of, takes_any
from ptaskmodel.slurm.select.gpus import (
    cpus_and_tasks,
    kept,
    lacks_cores,
    offer_of,
    with_units,
)
from ptaskmodel.slurm.select.occupancy import Occupancy, Trials, in_groups
from ptaskmodel.slurm.select.offers import (
    Room,
    as_asked,
    asks_gpus,
    beside,
    cores_taken,
    cpus_offered,
    favour,
    free_sockets,
    gpus_left,
    mask_of,
    piece_of,
    unit_of,
)
from ptaskmodel.slurm.select.plain_fit import Choice, PlainFit, suits
from ptaskmodel.slurm.select.switches import Leaves, Tree

# So many answers of free nodes are kept at most.
MOST_KEPT = 50_000


class Consumable(Trials):
    """What runs where, and where a job could."""

    def __init__(self, conf: Conf, nodes: Nodes, tree: Tree | None = None) -> None:
        self.nodes = nodes
        self.tree = tree
        words = conf.select_parameters
        # The partitions whose jobs get whole sockets.
        self._by_sockets = frozenset(
            p.name
            for p in conf.partitions
            if any(word.startswith("CR_SOCKET") for word in conf.unit_words(p))
        )
        # Nodes that count as heavier by one, until they are weighed anew.
        self.heavier = 0
        self._of_cpus = any(word in words for word in ("CR_CPU", "CR_CPU_MEMORY"))
        self._style = Style("CR_LLN" in words, conf.scheduler.pack_serial_at_end, tree)
        self._busy_first = conf.scheduler.bf_busy_nodes
        self._gang = conf.gang
        self._by_tier = conf.preempt_type == BY_TIER
        # Whether a start keeps away from nodes that others have for themselves.
        self._keeps = not conf.gang and conf.preempt_type == NEVER
        self._full = tuple(first_hosts(count) for count in nodes.cores)
        self._today = self._left = Occupancy(conf, nodes)
        # Whether jobs for which only CPUs count fit on some nodes that are free.
        self._if_free: dict[tuple[Hashable, Mask], bool] = {}
        # Of each node, which it is like: those offer the same where the same is used.
        facts = zip(map(id, nodes.lines), nodes.cpus, nodes.weights, nodes.cores, strict=True)
        likes: dict[tuple[int, ...], int] = {}
        self._like = [likes.setdefault(each, len(likes)) for each in facts]
        # What such a node offers a kind of job: by what is in use there, by the partition, too.
        self._rooms: dict[tuple[Hashable, ...], Room | None] = {}
        # No core of any node in use.
        self._nothing = [0] * len(nodes)
        # Numbers of free cores, for needs to which they suffice; None: on a trial, or not `suits`.
        self.plain = PlainFit(conf, nodes, self._by_sockets) if suits(conf) else None
        # How many GPUs the last job that asked for some found on each node, if that is followed:
        # of nodes of one weight those with more count as lighter.
        self.favours: bytearray | None = None

    def follow_favours(self, favours: bytearray) -> None:
        """Let the GPUs that jobs find make nodes lighter, as noted there."""
        self.favours = favours
        if self.plain is not None:
            self.plain.follow_favours(favours)

    def forget_favours(self, within: Mask) -> None:
        """Nodes have their own weight again: a job looks for one to start on."""
        if self.favours is not None and any(self.favours):
            for node in nodes_in(within):
                self.favours[node] = 0

    # --- what is taken ----------------------------------------------------------------------

    def add(self, job: JobRecord) -> None:
        """A job takes its allocation."""
        self._taken.add(job)
        if self.plain is not None:
            self.plain.add(job)

    def remove(self, job: JobRecord, running: bool = True) -> None:
        """A job gives its allocation back."""
        self._taken.remove(job)
        if self.plain is not None:
            self.plain.remove(job)

    def pause(self, job: JobRecord) -> None:
        """A job that is suspended keeps what it has."""
        self._taken.suspended.add(job)

    def resume(self, job: JobRecord) -> None:
        """A suspended job runs again."""
        self._taken.suspended.discard(job)

    def lift(self, job: JobRecord) -> None:
        """On a trial: a job is suspended for another, which takes its cores, not its memory."""
        self._taken.lift(job)

    @property
    def idle(self) -> Mask:
        """The nodes without any job."""
        return self.nodes.up & ~self._taken.nodes

    # --- where a job could run --------------------------------------------------------------

    def place(
        self,
        need: Need,
        within: Mask,
        *,
        busy: Used | None = None,
        leaves: Leaves | None = None,
    ) -> Allocation | None:
        """Where a job can run now, within some nodes.

        busy: how many jobs each node has today, where this is a prediction and such nodes come
        first. leaves: how few leaf switches it waits for.
        """
        plain = None if busy is not None or leaves is not None else self.plain_for(need)
        if plain is not None:
            choice = plain.place(need, within)
            return None if choice is None else self.of_choice(need, choice, self._gone)
        among, mask = self._taken.letting_in(need, need.nodes & within)
        if len(among) < need.least or need.required & ~mask:
            return None
        mine = self._taken.of_partition(need.partition, among)

        if self.tree is not None:
            self.tree.be_seen(leaves)
        favouring = self.favours is not None and asks_gpus(need)
        if favouring and need.whole:
            among = [node for node in among if not self._taken.present[node]]
        rooms = partial(self._chosen, need, among, busy=busy)

        def attempt(used: Used, above: Used | None = None) -> Allocation | None:
            found = rooms(used, mine, above=above)
            return None if found is None else self._allocation(need, found, used, mine)

        def fits_if_free() -> bool:
            if self.tree is None and takes_any(need):
                return True  # if it fits beside others, and that is asked as well
            if leaves is not None or busy is not None or need.memory is not None or need.gres:
                return rooms(self._nothing, None) is not None
            key = need.kind, mask
            if key not in self._if_free:
                if len(self._if_free) >= MOST_KEPT:
                    self._if_free.clear()
                self._if_free[key] = rooms(self._nothing, None) is not None
            return self._if_free[key]

        gone = favouring and rooms(self._nothing, None) is None
        if gone or (leaves is not None and not (fits_if_free() and leaves.accepts)):
            return None
        if not self._gang and need.sharing != OVER_OTHERS:
            used = self._taken.in_use
            found = rooms(used, mine)
            if found is None or not (fits_if_free() if leaves is None else leaves.accepts):
                return None
            return self._allocation(need, found, used, mine)
        if leaves is None and not fits_if_free():
            return None
        alone = attempt(self._taken.in_use)
        if alone is None or (leaves is not None and not leaves.accepts):
            alone = self._shared(need, among, attempt, lambda used: rooms(used, mine) is not None)
        return alone if leaves is None or leaves.accepts else None

    def start(
        self,
        need: Need,
        within: Mask,
        *,
        leaves: Leaves | None = None,
        counted: Mask = 0,
        seen: Mask = -1,
    ) -> Allocation | None:
        """The same, as a start looks for nodes; None, too, if one chosen lacks memory.

        So it is if they are more than the job may have: switches that are used once are used up.
        A node is chosen for the CPUs of the tasks: the rest of a core or socket may need more
        memory than it has left, and then no other node is tried. counted: nodes that a limit to
        nodes counts already: of each line of nodes some of which are among them, the others are
        heavier. seen: the nodes that are weighed so; for backfill, those of its map alone.
        """
        if self._keeps:
            within &= ~self._taken.whole
        self.weigh(need.nodes & seen, counted)
        found = self._start(need, within, leaves, counted)
        if found is None or found.size > need.most:
            return None
        if not found.memory_MiB or (need.memory is not None and need.memory[0] == PER_GPU):
            return found  # GPUs may get more memory than there is
        spare = (self._taken.spare_MiB(k) for k in members(found.nodes))
        lacks = any(more > left for more, left in zip(found.memory_MiB, spare, strict=True))
        return None if lacks else found

    def _start(
        self, need: Need, within: Mask, leaves: Leaves | None, counted: Mask
    ) -> Allocation | None:
        return self.place(need, within, leaves=leaves)

    def weigh(self, nodes: Mask, counted: Mask) -> None:
        """Weigh `nodes` anew for who looks for one to start on; all see that. See `start`."""
        self.heavier = self.heavier & ~nodes | beside(nodes, counted, self.nodes.lines)

    def _shared(
        self,
        need: Need,
        among: Sequence[int],
        attempt: Callable[[Used, Used], Allocation | None],
        fits: Callable[[Used], bool],
    ) -> Allocation | None:
        """Where a job can run on cores that others hold: of lower tiers, or row by row."""
        own = need.partition
        taken = self._taken
        base = taken.not_preempted(own, among) if self._by_tier else joined([self._nothing], among)
        if not fits(base):
            return None
        equal = [p for p in taken.partitions if p.tier == own.tier]
        used = joined([base, *taken.used_by(equal)], among)
        found = attempt(used, base)
        if found is not None:
            for partition in taken.partitions:
                if partition.tier < own.tier:
                    fewer = joined([used, *taken.used_by([partition])], among)
                    better = attempt(fewer, base)
                    if better is None:
                        break
                    found, used = better, fewer
            return found
        mine = taken.rows[own.name]
        if mine.may_share:
            mine.sort()
        for row in mine.rows:
            found = attempt(joined([base, row.used], among), base)
            if found is not None:
                return found
        return attempt(base, base) if mine.free_row else None

    def _chosen(
        self,
        need: Need,
        among: Sequence[int],
        used: Used,
        mine: Used | None,
        *,
        busy: Used | None,
        above: Used | None = None,
    ) -> Sequence[Room] | None:
        """The nodes that a job would take, of some.

        mine: cores that the partition uses; None: all nodes count as free. above: cores that jobs
        of higher tiers use; those of a node without them are a whole node.
        """
        lines, full = self.nodes.lines, self._full
        if mine is not None:
            among = [k for k in among if used[k] != full[k]]  # others have nothing to offer
        favouring = self.favours is not None and asks_gpus(need)
        if not favouring and free_cpus(lines, full, used, among) < self._least_cpus(need):
            return None
        rooms = []
        known = self._rooms
        alike, units = not self.heavier, self._taken.gres
        if len(known) > MOST_KEPT:
            known.clear()
        touched = mine is not None and self._taken.rows[need.partition.name].touched
        for node in among:
            own = mine[node] if mine is not None and touched else None
            if above is not None and need.whole and used[node] & ~above[node]:
                continue
            if not alike or above is not None:
                room = self._room(need, node, used[node], own, partly=above is not None)
            else:
                spare_MiB = 0 if need.memory is None else self._taken.spare_MiB(node)
                in_use = tuple(units[node].items()) if need.gres else ()
                key = need.kind, self._like[node], used[node], own, spare_MiB, in_use
                if key not in known:
                    known[key] = self._room(need, node, used[node], own)
                kept = known[key]
                room = None if kept is None else kept.of(node, bool(need.required >> node & 1))
            if room is not None:
                rooms.append(room)
        if self.favours is not None:
            favour(need, rooms, self.favours)
        if need.required.bit_count() > sum(room.required for room in rooms):
            return None
        return self._fit(need, rooms, busy)

    def _fit(self, need: Need, rooms: Sequence[Room], busy: Used | None) -> Sequence[Room] | None:
        """The nodes of a job among those that will do; busy: see `place`."""
        return fit(need, rooms, self._style, busy)

    def _least_cpus(self, need: Need) -> int:
        """How many CPUs must be free for a job."""
        return need.cpus

    def _least_tasks(self, need: Need) -> int:
        """How many tasks any node of a job must hold."""
        return need.tasks_per_node or need.tasks_on_one or 1

    def _weight(self, node: int) -> int:
        """What a node weighs in the choice."""
        return self.nodes.weights[node] + (self.heavier >> node & 1)

    def _deal(self, need: Need, offered: Sequence[int], threads: Sequence[int]) -> list[int]:
        """The CPUs on each node, by its offer and the threads of its cores."""
        return dealt(need, offered, threads)

    def _sockets(self, need: Need, line: NodeLine, free: Mask, own: Mask | None) -> list[Mask]:
        """The cores of each socket that a job may take of those that are free."""
        found = free_sockets(line, free, own, need.partition.name in self._by_sockets)
        return as_asked(need, found)

    def _room(
        self, need: Need, node: int, used: Mask, own: Mask | None, *, partly: bool = False
    ) -> Room | None:
        """What a node offers, where some cores are used; None: it will not do.

        partly: whether what is left of it will do for a job that takes whole nodes.
        """
        line, full = self.nodes.lines[node], self._full[node]
        free = full & ~used
        if not free or (need.whole and free != full and not partly):
            return None
        by_sockets = need.partition.name in self._by_sockets
        sockets = self._sockets(need, line, free, own)
        spare_MiB = self._taken.spare_MiB(node)
        unit = None if self._of_cpus else unit_of(need, line, by_sockets)
        held = 0 if own is None else own & ~free
        tasks = self._least_tasks(need)
        cpus = cpus_offered(need, line, sockets, held, unit, spare_MiB, tasks)
        gpus = gpus_left(need, line, self._taken.gres[node]) if cpus else None
        if gpus is None:
            return None
        offer = None
        if need.asks:
            offer = offer_of(need, line, sockets, cpus, spare_MiB, self._taken.gres[node])
            if offer is None:
                return None
            cpus, gpus = offer.cpus, offer.gpus
        room = Room(
            node,
            cpus,
            free=sum(each.bit_count() for each in sockets) * line.threads,
            total=self.nodes.cpus[node],
            weight=self._weight(node),
            required=bool(need.required >> node & 1),
            piece=piece_of(need, line, by_sockets),
            gpus=gpus,
        )
        if offer is not None:
            room.offer_units(offer)
        return room

    def plain_for(self, need: Need) -> PlainFit | None:
        """What places a job with a `need` by numbers of cores; None: they do not suffice."""
        plain = self.plain
        return None if plain is None or self.heavier or plain.vector_of(need) is None else plain

    def of_choice(self, need: Need, choice: Choice, gone: Iterable[JobRecord]) -> Allocation:
        """What a job with a `need` gets by its `choice` of nodes when others are `gone`."""
        nodes, counts, _, tasks = zip(*choice, strict=True)
        used, units = self._today.without(gone, of_hosts(nodes))
        rooms = [Room(node, cpus) for node, cpus, _, _ in choice]
        for room, (node, _, selected, _) in zip(rooms if need.gres else (), choice, strict=False):
            free = of_sockets(self.nodes.lines[node], self._full[node] & ~used[node])
            room.keep(kept([each.bit_count() for each in free], selected))
        found = self._of_nodes(need, rooms, counts, used, None)
        return with_units(need, found, tasks, self.nodes.lines, units)

    # --- which cores ------------------------------------------------------------------------

    def _allocation(
        self, need: Need, chosen: Sequence[Room], used: Used, mine: Used | None
    ) -> Allocation:
        threads = [self.nodes.lines[room.node].threads for room in chosen]
        if need.asks:
            counts, tasks = cpus_and_tasks(need, chosen, threads)
        else:
            offered = [room.cpus for room in chosen]
            counts = offered if need.whole else self._deal(need, offered, threads)
            tasks = [0] * len(chosen)
        found = self._of_nodes(need, chosen, counts, used, mine)
        return with_units(need, found, tasks, self.nodes.lines, self._taken.gres)

    def _of_nodes(
        self,
        need: Need,
        chosen: Sequence[Room],
        counts: Sequence[int],
        used: Used,
        mine: Used | None,
    ) -> Allocation:
        """What a job gets of nodes of which it is given so many CPUs each; see `lacks_cores`."""
        touched = mine is not None and self._taken.rows[need.partition.name].touched
        by_sockets = need.partition.name in self._by_sockets
        by_cpus = self._of_cpus and not need.whole
        held, cpus, memory = [], [], []
        for room, count in zip(chosen, counts, strict=True):
            node, line = room.node, self.nodes.lines[room.node]
            taken = self._full[node] & ~used[node]
            counted = self._full[node]  # of a whole node all that it has
            if not need.whole:
                own = mine[node] if mine is not None and touched else None
                sockets = self._sockets(need, line, taken, own)
                counted = taken = cores_taken(need, line, sockets, count, by_sockets, room.counts)
                if need.asks and lacks_cores(need, line, taken, count):
                    taken = 0
            held.append(taken)
            cpus.append(count if by_cpus or not count else counted.bit_count() * line.threads)
            if need.memory is not None:
                used_cpus = cpus[-1] // (line.threads if need.memory_by_core else 1)
                memory.append(memory_of(need, self.nodes.memory_MiB[node], used_cpus))
        return Allocation(mask_of(chosen), len(chosen), tuple(held), tuple(cpus), tuple(memory))

    # --- when a job could run ---------------------------------------------------------------

    def predict(
        self,
        need: Need,
        within: Mask,
        ends: Ends,
        *,
        grows_s: int = 0,
        leaves: Leaves | None = None,
    ) -> tuple[End, Allocation] | None:
        """After whose end a job fits within some nodes if the others end as planned, and where.

        ends: of those that run or are suspended, earliest first; they are removed in groups, which
        grow by grows_s or else double.
        """
        plain = None if self._busy_first or leaves is not None else self.plain_for(need)
        if plain is not None:
            ended, choice = plain.predict(need, within, ends)
            if choice is None:
                return None
            if plain.counts(need):
                return ends[ended - 1], plain.counted(need, choice)
            over = [job for _, _, job in ends[:ended]]
            return ends[ended - 1], self.of_choice(need, choice, [*self._gone, *over])
        trial = self.copy()
        busy = self._today.today if self._busy_first else None
        among = within & need.nodes
        # An upper bound; whoever may do with cores of others has none.
        lines, bounded = self.nodes.lines, not self._gang and need.sharing != OVER_OTHERS
        most = inf
        if bounded:
            most = free_cpus(lines, self._full, self._taken.in_use, nodes_in(among))
        for last, gone in in_groups(ends, among, grows_s):
            for job in gone:
                assert job.allocation is not None
                trial.remove(job)
                most += held_cpus(lines, job.allocation, among) if bounded else 0
            if most < self._least_cpus(need) and leaves is None:
                continue
            found = trial.place(need, within, busy=busy, leaves=leaves)
            if found is not None:
                return last, found
        return None
