"""select/cons_tres and cons_res: cores, sockets or CPUs, memory and GRES of shared nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ptaskmodel.batch.hostset import Mask, first_hosts, members
from ptaskmodel.batch.slurm import cores
from ptaskmodel.batch.slurm.choice import Chosen, Offer, Picking, choose
from ptaskmodel.batch.slurm.core_rows import Rows, Used
from ptaskmodel.batch.slurm.facts import OFF, Conf, Partition
from ptaskmodel.batch.slurm.needs import ALL, PER_NODE, Need, amount_of
from ptaskmodel.batch.slurm.nodes import Nodes
from ptaskmodel.batch.slurm.record import Allocation, JobRecord
from ptaskmodel.batch.slurm.spreading import dealt, memory_of, spread
from ptaskmodel.batch.slurm.tree import Tree


class Consumable:
    """What runs where, and where a job could."""

    def __init__(self, conf: Conf, nodes: Nodes, tree: Tree | None = None) -> None:
        self.nodes = nodes
        self.tree = tree
        words = conf.select_parameters
        self._sockets = any(word.startswith("CR_SOCKET") for word in words)
        self._of_cpus = any(word in words for word in ("CR_CPU", "CR_CPU_MEMORY"))
        self._lln = "CR_LLN" in words
        self._serial_at_end = conf.scheduler.pack_serial_at_end
        self._busy_first = conf.scheduler.bf_busy_nodes
        self._cluster_off = OFF in conf.preempt_mode
        self._full = tuple(first_hosts(count) for count in nodes.cores)
        self.rows = {p.name: Rows(len(nodes)) for p in conf.partitions}
        self._partitions = conf.partitions
        self.memory = [0] * len(nodes)
        self.gres: list[dict[tuple[str, str | None], int]] = [{} for _ in range(len(nodes))]
        self.jobs: dict[JobRecord, None] = {}
        self._present = [0] * len(nodes)

    def copy(self) -> Consumable:
        """One on which jobs can be removed for a trial."""
        other = object.__new__(Consumable)
        other.__dict__.update(self.__dict__)
        other.rows = {name: rows.copy() for name, rows in self.rows.items()}
        other.memory = self.memory[:]
        other.gres = [each.copy() for each in self.gres]
        other.jobs = self.jobs.copy()
        other._present = self._present[:]
        return other

    # --- what is taken ----------------------------------------------------------------------

    def add(self, job: JobRecord) -> None:
        """A job takes its allocation."""
        self._count(job, 1)
        self.jobs[job] = None
        self.rows[job.partition.name].add(job)

    def remove(self, job: JobRecord, running: bool = True) -> None:
        """A job gives its allocation back."""
        del self.jobs[job]
        self.rows[job.partition.name].remove(job)
        self._count(job, -1)

    def pause(self, job: JobRecord) -> None:
        """A job that is suspended keeps what it has."""

    resume = pause

    def _count(self, job: JobRecord, sign: int) -> None:
        allocation = job.allocation
        assert allocation is not None
        held = members(allocation.nodes)
        for node in held:
            self._present[node] += sign
            for one in job.request.gres:
                key = one.name, one.type
                self.gres[node][key] = self.gres[node].get(key, 0) + sign * one.count
        for node, amount in zip(held, allocation.memory_MiB, strict=False):
            self.memory[node] += sign * amount

    @property
    def idle(self) -> Mask:
        """The nodes without any job."""
        return self.nodes.usable & ~sum(1 << k for k, count in enumerate(self._present) if count)

    # --- where a job could run --------------------------------------------------------------

    def place(
        self, need: Need, within: Mask, *, over: bool = False, predicted: Used | None = None
    ) -> Allocation | None:
        """Where a job can run now, within some nodes; over: on cores of lower tiers, if it must.

        predicted: how many jobs each node has today, where this is a prediction.
        """
        among = members(need.nodes & within)
        if len(among) < need.least:
            return None

        def attempt(used: Used, row: int = 0) -> Allocation | None:
            return self._attempt(need, among, used, row, predicted)

        every = [used for rows in self.rows.values() for used in rows.used]
        found = attempt(self._union(every, among))
        if found is not None or not (need.force or need.share > 1 or over):
            return found
        return self._shared(need, among, attempt)

    start = place

    def _shared(
        self, need: Need, among: Sequence[int], attempt: Callable[..., Allocation | None]
    ) -> Allocation | None:
        """Where a job can run on cores that others hold: of lower tiers, or row by row."""
        own = need.partition
        higher = [p for p in self._partitions if p.tier > own.tier or self._never_shares(p, own)]
        equal = [p for p in self._partitions if p.tier == own.tier and p not in higher]
        lower = [p for p in self._partitions if p.tier < own.tier and p not in higher]
        used = self._union(self._used_by(higher), among)
        if attempt(used) is None:
            return None
        others = self._union(
            [used, *self._used_by([p for p in equal if p.name != own.name])], among
        )
        mine = self.rows[own.name].used
        taken = self._union([others, *mine], among)
        found = attempt(taken)
        if found is not None:
            for partition in sorted(lower, key=lambda p: -p.tier):
                fewer = self._union([taken, *self._used_by([partition])], among)
                better = attempt(fewer)
                if better is None:
                    break
                found, taken = better, fewer
            return found
        for row in range(need.share):
            row_used = mine[row] if row < len(mine) else [0] * len(self.nodes)
            found = attempt(self._union([others, row_used], among), row)
            if found is not None:
                return found
        return None

    def _never_shares(self, partition: Partition, own: Partition) -> bool:
        """Whether jobs of a partition keep their cores to themselves."""
        if partition.name == own.name:
            return False
        mode = partition.preempt_mode
        return OFF in mode if mode is not None else self._cluster_off

    def _used_by(self, partitions: Iterable[Partition]) -> Iterator[Used]:
        for partition in partitions:
            yield from self.rows[partition.name].used

    def _union(self, every: Iterable[Used], among: Sequence[int]) -> list[int]:
        union = [0] * len(self.nodes)
        for used in every:
            for node in among:
                union[node] |= used[node]
        return union

    def _attempt(
        self, need: Need, among: Sequence[int], used: Used, row: int, predicted: Used | None
    ) -> Allocation | None:
        offers = []
        for node in among:
            count = self._offers(need, node, used[node])
            if count > 0:
                must = bool(need.required >> node & 1)
                offers.append(Offer(node, count, self.nodes.weights[node], must))
        if need.required.bit_count() > sum(offer.required for offer in offers):
            return None
        chosen = self._choose(need, offers, used, predicted)
        return None if chosen is None else self._allocation(need, chosen, used, row)

    def _offers(self, need: Need, node: int, used: int) -> int:
        """How many CPUs a node offers a job; 0: it will not do."""
        line, free = self.nodes.lines[node], self._full[node] & ~used
        if need.whole and free != self._full[node]:
            return 0
        if self._sockets and used:
            free &= ~cores.whole_sockets(line, used)
        threads = 1 if need.one_thread else line.threads
        cpus = free.bit_count() * threads
        if need.partition.max_cpus_per_node is not None:
            cpus = min(cpus, need.partition.max_cpus_per_node)
        if need.cpus_per_task > 1:
            fits = cpus // need.cpus_per_task
            if not self._of_cpus:
                wide = cores.cores_for(need.cpus_per_task, threads)
                fits = min(fits, cores.tasks_that_fit(cores.of_sockets(line, free), wide))
            cpus = fits * need.cpus_per_task
        if need.tasks_per_node and not need.whole:
            cpus = min(cpus, need.tasks_per_node * need.cpus_per_task)
        if need.memory is not None:
            cpus = self._within_memory(need, node, cpus)
        for one in need.gres:
            there = amount_of(one, line.gres) - self._gres_used(node, one.name, one.type)
            if there < one.count:
                return 0
        return cpus if cpus >= need.cpus_per_task * (need.tasks_per_node or 1) else 0

    def _gres_used(self, node: int, name: str, kind: str | None) -> int:
        return sum(
            count
            for (other, other_kind), count in self.gres[node].items()
            if other == name and (kind is None or other_kind in (None, kind))
        )

    def _within_memory(self, need: Need, node: int, cpus: int) -> int:
        """The CPUs for which the free memory of a node suffices."""
        assert need.memory is not None
        kind, amount = need.memory
        free = self.nodes.memory_MiB[node] - self.memory[node]
        if kind == ALL:
            return cpus if free == self.nodes.memory_MiB[node] else 0
        if kind == PER_NODE:
            return cpus if amount <= free else 0
        if need.whole:
            return cpus if amount * cpus <= free else 0
        return min(cpus, free // amount) // need.cpus_per_task * need.cpus_per_task

    # --- which nodes ------------------------------------------------------------------------

    def _choose(
        self, need: Need, offers: list[Offer], used: Used, predicted: Used | None
    ) -> Chosen | None:
        """The nodes; if that fails, it is tried again without those with the fewest CPUs."""
        wanted = need.count()
        for least in (0, *sorted({offer.cpus for offer in offers})):
            left = [offer for offer in offers if offer.cpus > least or offer.required]
            if len(left) < need.least or sum(offer.cpus for offer in left) < need.cpus:
                return None
            found = self._by_rule(need, left, used, predicted, Picking(wanted))
            if found is not None:
                return found
        return None

    def _by_rule(
        self, need: Need, offers: list[Offer], used: Used, predicted: Used | None, picking: Picking
    ) -> Chosen | None:
        take = Picking.take if need.whole else Picking.share
        order: list[Offer] | None = None
        if need.spread:
            order = offers
        elif predicted is not None and self._busy_first:
            order = sorted(offers, key=lambda o: (o.weight, predicted[o.node] == 0, o.node))
        elif self._lln or need.partition.lln:
            order = sorted(offers, key=lambda o: (o.weight, -self._looseness(o, used), o.node))
        elif self._serial_at_end and need.cpus == 1 and need.most == 1:
            order = offers[::-1]
        elif self.tree is not None:
            return self.tree.choose_consumable(need, offers, picking, take)
        if order is None:
            return choose(offers, picking.wanted, pack=True, take=take)
        if need.spread:
            return spread(order, picking.wanted)
        for offer in sorted(order, key=lambda offer: not offer.required):
            if picking.done or picking.full:
                break
            take(picking, offer)
        return picking.chosen if picking.done or picking.enough else None

    def _looseness(self, offer: Offer, used: Used) -> float:
        """The part of its CPUs that a node has free."""
        free = self._full[offer.node] & ~used[offer.node]
        return free.bit_count() / max(1, self.nodes.cores[offer.node])

    def _allocation(self, need: Need, chosen: Chosen, used: Used, row: int) -> Allocation:
        given = sorted(chosen)
        counts = [count for _, count in given] if need.whole else dealt(need, chosen)
        held, cpus, memory = [], [], []
        for (node, _), count in zip(given, counts, strict=True):
            line = self.nodes.lines[node]
            taken = self._cores(need, node, count, self._full[node] & ~used[node])
            held.append(taken)
            cpus.append(taken.bit_count() * line.threads)
            if need.memory is not None:
                memory.append(memory_of(need, self.nodes.memory_MiB[node], cpus[-1]))
        nodes = sum(1 << node for node, _ in given)
        return Allocation(nodes, len(given), tuple(held), tuple(cpus), tuple(memory), row)

    def _cores(self, need: Need, node: int, cpus: int, free: Mask) -> Mask:
        """The cores of one node for so many CPUs."""
        line = self.nodes.lines[node]
        if need.whole:
            return self._full[node]
        threads = 1 if need.one_thread else line.threads
        sockets = cores.of_sockets(line, free)
        count = cores.cores_for(cpus, threads)
        if need.block:
            taken = cores.block(sockets, count, line.boards)
        elif need.cpus_per_task > threads:
            wide = cores.cores_for(need.cpus_per_task, threads)
            taken = cores.packed(sockets, cpus // need.cpus_per_task, wide)
        else:
            taken = cores.cyclic(sockets, count)
        return cores.whole_sockets(line, taken) if self._sockets else taken

    # --- when a job could run ---------------------------------------------------------------

    def predict(
        self,
        need: Need,
        within: Mask,
        now: int,
        ends: Sequence[tuple[float, int, JobRecord]],
        grows_s: int = 0,
        overdue_s: float = 0.0,
    ) -> tuple[float, Allocation] | None:
        """When a job fits within some nodes if the others end as planned, and where.

        ends: of those that run or are suspended, earliest first; they are removed in groups, which
        grow by grows_s or else double. overdue_s: how long after its end one is expected that is
        late.
        """
        trial = self.copy()
        today = tuple(self._present)
        position, window = 0, 30
        horizon: float | None = None
        while position < len(ends):
            removed = False
            last: float = now
            while position < len(ends):
                end, _, job = ends[position]
                assert job.allocation is not None
                if not job.allocation.nodes & within & need.nodes:
                    position += 1
                    continue
                if horizon is None:
                    horizon = end + 30 - end % 30
                if removed and end > horizon + window:
                    break
                trial.remove(job)
                removed, last = True, end
                position += 1
            if not removed:
                return None
            found = trial.place(need, within, predicted=today)
            if found is not None:
                return (last if last > now else max(now + 1, last + overdue_s)), found
            if position < len(ends) and horizon is not None:
                following = ends[position][0]
                while True:
                    window += grows_s or window
                    if following <= horizon + window:
                        break
        return None
