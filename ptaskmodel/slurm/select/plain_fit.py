"""Compiled choice among shared nodes, by `fit_kernel`, for jobs to which numbers of cores suffice.

`Consumable` uses it where `suits` allows it, for the needs for which `PlainFit.vector_of` finds
numbers; its answers equal those of `Consumable.place` and `Consumable.predict`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.machine.host_sets import Mask, first_hosts, of_hosts
from ptaskmodel.kernels.decorators import as_compiled
from ptaskmodel.slurm.conf.facts import CONS_RES, FORCE, YES, Conf, Nodes
from ptaskmodel.slurm.jobs.gpus import GPU
from ptaskmodel.slurm.jobs.needs import (
    ALL,
    EXCLUSIVELY,
    OVER_OTHERS,
    PER_CPU,
    PER_GPU,
    PER_NODE,
    Need,
)
from ptaskmodel.slurm.jobs.record import Allocation, Ends, JobRecord
from ptaskmodel.slurm.select import fit_kernel
from ptaskmodel.slurm.select import offer_kernel as kernel
from ptaskmodel.slurm.select.bitsets import words_of
from ptaskmodel.slurm.select.cores import cores_for, nodes_in
from ptaskmodel.slurm.select.fitting import memory_of, takes_any
from ptaskmodel.slurm.select.gpus import tasks_on, with_units
from ptaskmodel.slurm.select.offer_kernel import (
    NEEDS,
    OF_ALL,
    OF_CPU,
    OF_GPU,
    OF_NODE,
    SharedNodes,
)
from ptaskmodel.slurm.select.offers import InUse, cpus_of_core, memory_on_each

# So many needs are kept at most, and so many jobs and nodes of jobs there is room for at first.
MOST_KEPT = 50_000
FEW = 64
# So many ends are compared at once.
MANY = 64
_MEMORY = {PER_NODE: OF_NODE, PER_CPU: OF_CPU, ALL: OF_ALL, PER_GPU: OF_GPU}

# What the kernels keep from one look at ends to the next.
_OF_ENDS = (
    *("facts", "ahead", "spans"),
    *("trial_free", "trial_spare", "trial_present", "trial_gpus", "trial_has_free", "has_free"),
)
# What they know of the jobs that run, and of what these leave.
_OF_JOBS = ("ends", "first", "last", "free", "spare", "present", "spare_gpus")

# The nodes that a job takes, the CPUs that it is given of each, how many cores are selected, and
# its tasks.
Choice = list[tuple[int, int, int, int]]


def suits(conf: Conf) -> bool:
    """Whether each core has one job at most, and nodes are chosen in the usual way."""
    words = conf.select_parameters
    return not (
        conf.gang
        or conf.switches
        or "CR_LLN" in words
        or conf.scheduler.pack_serial_at_end
        or any(p.over_subscribe in (YES, FORCE) for p in conf.partitions)
    )


class PlainFit:
    """Numbers of free cores and memory of the nodes of a configuration, and where jobs fit.

    conf, nodes: the cluster. by_sockets: the partitions whose jobs get whole sockets.
    """

    def __init__(self, conf: Conf, nodes: Nodes, by_sockets: frozenset[str]) -> None:
        self.words = (len(nodes) + 63) // 64
        self._nodes = nodes
        self._by_sockets = by_sockets
        self._is_cons_res = conf.select_type == CONS_RES
        self._by_cpus = bool(conf.select_parameters & {"CR_CPU", "CR_CPU_MEMORY"})
        self._even = len(set(nodes.cpus)) == len({line.threads for line in nodes.lines}) == 1
        self._singles = all(line.threads == 1 for line in nodes.lines)
        # By kind of needs, which are placed alike.
        self._vectors: dict[Hashable, tuple[NDArray, NDArray] | None] = {}
        # Of the jobs that hold nodes, by number: from where to where in ``held``; until where that
        # is full.
        self._held: dict[int, tuple[int, int]] = {}
        self._used = 0
        # The ends that were noted last; whether what is held is as it was then.
        self._noted: Ends = []
        self._is_noted = False
        state = shared_nodes(len(nodes), max(nodes.cores, default=1))
        # The free cores, memory and GPUs of each node, in this order.
        self._left = np.zeros((3, len(nodes)), np.int64)
        free, spare, spare_gpus = self._left
        self.state = state = state._replace(free=free, spare=spare, spare_gpus=spare_gpus)
        state.facts[kernel.BY_CPUS] = self._by_cpus
        state.facts[kernel.IS_CONS_RES] = self._is_cons_res
        state.facts[kernel.GROWS_S] = conf.scheduler.bf_window_linear_s
        state.facts[kernel.THREADS] = max((line.threads for line in nodes.lines), default=1)
        state.cores[:] = state.free[:] = nodes.cores
        state.threads[:] = [line.threads for line in nodes.lines]
        state.weights[:] = 0 if self._is_cons_res else nodes.weights
        state.memory[:] = state.spare[:] = nodes.memory_MiB
        state.line_cpus[:] = [line.cpus for line in nodes.lines]
        # Nodes whose GPUs are not of one kind, and the numbers of the types of the others.
        kinds = [[one for one in line.gres if one.name == GPU] for line in nodes.lines]
        self._mixed = of_hosts(k for k, some in enumerate(kinds) if len(some) > 1)
        self._has_gpus = any(kinds)
        types = {one.type for some in kinds for one in some if one.type is not None}
        self._types = {name: k for k, name in enumerate(sorted(types))}
        for k, some in enumerate(kinds):
            state.spare_gpus[k] = state.all_gpus[k] = sum(one.count for one in some)
            state.gpu_type[k] = self._type_of(some[0].type) if some else kernel.ANY_TYPE

    def follow_favours(self, favours: bytearray) -> None:
        """Weigh nodes by what is noted there."""
        self.state = self.state._replace(favours=np.frombuffer(favours, np.uint8))
        self.state.facts[kernel.NOTES_GPUS] = 1

    def copy(self) -> PlainFit:
        """One on which jobs can be removed for a trial."""
        other = object.__new__(PlainFit)
        other.__dict__.update(self.__dict__)
        free, spare, spare_gpus = other._left = self._left.copy()
        present, has_free = self.state.present.copy(), self.state.has_free.copy()
        left: dict[str, Any] = {"free": free, "spare": spare, "spare_gpus": spare_gpus}
        other.state = self.state._replace(has_free=has_free, present=present, **left)
        other._held, other._noted = self._held.copy(), []
        return other

    def without(self, jobs: Iterable[JobRecord], ends: Ends) -> PlainFit:
        """Return a copy on which `jobs` are gone and the ends of the others are noted.

        ends: of all that run, earliest first.
        """
        count, gone = self.note_ends(ends), set(jobs)
        other = self.copy()
        held = [self.state.held[:, slice(*other._held.pop(job.number))] for job in jobs]
        nodes, cores, memory, gpus = np.concatenate(held, axis=1)
        for left, more in zip(other._left, (cores, memory, gpus), strict=True):
            np.add.at(left, nodes, more)
        np.subtract.at(other.state.present, nodes, 1)
        stays = [job not in gone for _, _, job in ends]
        own: dict[str, Any] = {name: getattr(self.state, name).copy() for name in _OF_ENDS}
        for name in ("ends", "first", "last"):
            own[name] = getattr(self.state, name)[:count][stays]
        other.state = other.state._replace(**own)
        other._noted, other._is_noted = [*compress(ends, stays)], True
        with as_compiled():
            kernel.look_ahead(other.state, len(other._noted))
        return other

    def _type_of(self, name: str | None) -> int:
        """The number of a type of GPUs; that of one that no node has is of none."""
        return kernel.ANY_TYPE if name is None else self._types.get(name, len(self._types))

    # --- what is taken ----------------------------------------------------------------------

    def add(self, job: JobRecord) -> None:
        """A `job` takes its allocation."""
        allocation = job.allocation
        assert allocation is not None
        held = self._take(allocation, job)
        first, last = self._used, self._used + held.shape[1]
        if last > self.state.held.shape[1]:
            self._make_room(held.shape[1])
            first, last = self._used, self._used + held.shape[1]
        self.state.held[:, first:last] = held
        self._held[job.number] = first, last
        self._used = last
        self._is_noted = False
        if job.restarts:
            self._noted = []

    def _take(self, allocation: Allocation, job: JobRecord) -> NDArray:
        nodes = nodes_in(allocation.nodes)
        memory = allocation.memory_MiB or (0,) * len(nodes)
        units = allocation.gres or (job.request.gres,) * len(nodes)
        gpus = [sum(one.count for one in some if one.name == GPU) for some in units]
        cores = [some.bit_count() for some in allocation.cores]
        held = np.array((nodes, cores, memory, gpus))
        self._count_in(held, 1)
        return held

    def _count_in(self, held: NDArray, sign: int) -> None:
        nodes = held[0]
        self.state.free[nodes] -= sign * held[1]
        if held[2:].any():
            self._left[1:, nodes] -= sign * held[2:]
        self.state.present[nodes] += sign

    def remove(self, job: JobRecord) -> None:
        """A `job` gives its allocation back."""
        first, last = self._held.pop(job.number)
        self._count_in(self.state.held[:, first:last], -1)
        self._is_noted = False

    def _make_room(self, more: int) -> None:
        """Move together what jobs hold, in an array with room for as much again."""
        kept = sum(last - first for first, last in self._held.values())
        held = np.zeros((4, 2 * (kept + more) + FEW), dtype=np.int64)
        end = 0
        for number, (first, last) in self._held.items():
            held[:, end : end + last - first] = self.state.held[:, first:last]
            self._held[number] = end, end + last - first
            end += last - first
        self._used = end
        self.state = self.state._replace(held=held)
        self._noted = []

    def note_ends(self, ends: Ends) -> int:
        """Note which jobs run, by their `ends`; how many."""
        old, count, state = self._noted, len(ends), self.state
        if self._is_noted and old == ends:
            return count
        self._noted, self._is_noted = list(ends), True
        if count > len(state.ends):
            old = []
            room: dict[str, Any] = {
                name: np.zeros(2 * count, np.int64) for name in ("ends", "first", "last")
            }
            room["ahead"] = _room_ahead(2 * count, state.ahead.shape[1])
            room["spans"] = _room_of_spans(2 * count, self.words)
            self.state = state = state._replace(**room)
        kept, fresh = _same(old, ends)
        for array in (state.ends, state.first, state.last):
            before = array.copy()
            for i, j, length in kept:
                array[j : j + length] = before[i : i + length]
        for j in fresh:
            end, _, job = ends[j]
            state.ends[j] = end
            state.first[j], state.last[j] = self._held[job.number]
        with as_compiled():
            kernel.look_ahead(state, count)
        return count

    # --- where a job could run --------------------------------------------------------------

    def vector_of(self, need: Need) -> tuple[NDArray, NDArray] | None:
        """The numbers of a need for the kernel and its required nodes; None: it is not plain."""
        if need.kind not in self._vectors:
            if len(self._vectors) >= MOST_KEPT:
                self._vectors.clear()
            numbers = self._numbers(need)
            required = words_of(need.required, self.words)
            self._vectors[need.kind] = None if numbers is None else (numbers, required)
        return self._vectors[need.kind]

    def _numbers(self, need: Need) -> NDArray | None:
        partition = need.partition
        if (
            need.sharing == OVER_OTHERS
            or (need.gres and not self._counts_gpus(need))
            or need.shaped
            or (need.memory_by_core and need.memory is not None and not self._singles)
            or need.contiguous
            or need.spread
            or partition.lln
            or partition.max_cpus_per_node is not None
            or partition.name in self._by_sockets
            or (self._is_cons_res and need.cpus_per_node < need.cpus_per_task)
        ):
            return None
        on_one = 0 if self._is_cons_res else need.tasks_on_one
        found = np.zeros(NEEDS, dtype=np.int64)
        found[kernel.CPUS], found[kernel.LEAST] = need.cpus, need.least
        found[kernel.WANTED], found[kernel.MOST] = need.wanted, need.most
        found[kernel.CPUS_PER_TASK] = need.cpus_per_task
        found[kernel.LEAST_TASKS] = need.tasks_per_node or on_one or 1
        found[kernel.TASKS_ASKED] = need.tasks_asked
        found[kernel.TASKS_PER_NODE] = need.tasks_per_node or 0
        found[kernel.CPUS_PER_NODE] = need.cpus_per_node
        found[kernel.WHOLE] = need.whole
        found[kernel.ALONE] = need.sharing == EXCLUSIVELY
        if need.memory is not None:
            kind, amount = need.memory
            found[kernel.MEMORY_KIND], found[kernel.MEMORY_MIB] = _MEMORY[kind], amount
            found[kernel.LEAST_MIB] = memory_on_each(need) or 0
        else:
            found[kernel.LEAST_MIB] = np.iinfo(np.int64).min
        found[kernel.ONE_THREAD] = need.one_thread
        found[kernel.FITS_IF_FREE] = takes_any(need)
        found[kernel.SIZE] = self._size(need)
        if need.gres:
            self._set_gpus(need, found)
        return found

    def _counts_gpus(self, need: Need) -> bool:
        """Whether the GPUs that a job asks for are of one kind, and only their number counts."""
        by_hand = self._is_cons_res or need.enforce_binding or len(need.asks) != 1
        if by_hand or not tasks_on(need, 1)[1]:
            return False
        (one,) = need.gres
        return (
            one.name == GPU
            and one.count > 0
            and not need.nodes & self._mixed
            and all(not ask.per_socket and bool(ask.per_job or ask.per_node) for ask in need.asks)
        )

    def _set_gpus(self, need: Need, found: NDArray) -> None:
        """Set the numbers of a need's GPUs; see `gpus.GpuOffer`."""
        (one,) = need.gres
        found[kernel.GPUS], found[kernel.GPU_TYPE] = one.count, self._type_of(one.type)
        found[kernel.TASKS_LEAST], found[kernel.TASKS_MOST] = tasks_on(need, kernel.NO_LIMIT)
        for ask in need.asks:
            found[kernel.PER_JOB], found[kernel.PER_NODE] = ask.per_job, ask.per_node
            found[kernel.CPUS_EACH], found[kernel.CPUS_DEFAULT] = ask.cpus_each, ask.cpus_default
            found[kernel.MEMORY_EACH] = ask.memory_each
            found[kernel.PER_TASK], found[kernel.TASKS_EACH] = ask.per_task, ask.tasks_each
        found[kernel.WHOLE_TASKS], found[kernel.ONE_TASK] = need.whole_tasks, need.one_task_per_core
        found[kernel.ONE_CPU] = need.one_thread and need.memory_by_core
        found[kernel.GPU_CPUS] = need.cpus_for_gpus
        found[kernel.GPU_CPUS_OF_NODE] = need.cpus_for_gpus_of_node

    def _size(self, need: Need) -> int:
        """The CPUs that a job takes wherever it runs; VARIES if that depends on where."""
        if need.whole:
            cpus = self._nodes.cpus[0]
            same = self._even and need.least == need.wanted
            same = same and not (need.one_thread or need.gres)
            same = same and need.cpus <= need.least * cpus
            return need.least * cpus if same else kernel.VARIES
        plain = need.cpus_per_task == need.cpus_per_node == 1 and not need.tasks_per_node
        few = need.wanted <= need.cpus and not (need.required or need.gres)
        counted = self._by_cpus or self._singles
        return need.cpus if plain and few and counted else kernel.VARIES

    def place(self, need: Need, within: Mask) -> Choice | None:
        """What a job with a plain `need` takes now of the nodes `within`; None: it does not fit."""
        if (
            not self._has_gpus
            and self.state.free.sum() * self.state.facts[kernel.THREADS] < need.cpus
        ):
            return None
        vector = self.vector_of(need)
        assert vector is not None
        with as_compiled():
            among = words_of(need.nodes & within, self.words)
            count = fit_kernel.place(self.state, vector[0], among, vector[1])
        return self._choice(count) if count else None

    def place_without(
        self, need: Need, within: Mask, order: Sequence[JobRecord]
    ) -> tuple[Choice | None, int]:
        """What a `need` gets `within` some nodes without the first of an `order`, and how many.

        None: it does not fit without all of them.
        """
        vector = self.vector_of(need)
        assert vector is not None
        trial = self.copy()
        held = np.array([self._held[job.number] for job in order], np.int64).reshape(-1, 2)
        with as_compiled():
            among = words_of(need.nodes & within, self.words)
            gone, count = fit_kernel.place_without(trial.state, *vector, among, held)
        return (trial._choice(count) if count else None), gone

    def predict(self, need: Need, within: Mask, ends: Ends) -> tuple[int, Choice | None]:
        """After how many ends it fits `within` some nodes, and what it takes; None: it never does.

        ends: of the jobs that run, earliest first.
        """
        vector = self.vector_of(need)
        assert vector is not None
        running = self.note_ends(ends)
        with as_compiled():
            among = words_of(need.nodes & within, self.words)
            ended, count = fit_kernel.predict(self.state, vector[0], among, vector[1], running)
        return ended, self._choice(count) if ended else None

    def _choice(self, count: int) -> Choice:
        state = self.state
        places = np.flatnonzero(state.taken[:count])
        columns = state.node, state.given, state.selected, state.tasks
        return list(zip(*(column[places].tolist() for column in columns), strict=True))

    def counts(self, need: Need) -> bool:
        """Whether a job with a `need` has as many CPUs, whichever the cores are."""
        return need.whole or need.block or need.cpus_per_task == 1 or self._singles

    def counted(self, need: Need, choice: Choice) -> Allocation:
        """What a job with such a `need` gets by its `choice` of the last prediction, but for which
        cores.
        """
        cpus, memory, cores = [], [], []
        for node, given, selected, _ in choice:
            line, free = self._nodes.lines[node], int(self.state.trial_free[node])
            held = min(cores_for(given, cpus_of_core(need, line)), selected)
            if need.whole or (need.block and not given):
                held = free if need.whole else selected
            cores.append(first_hosts(held))
            by_hand = not given or (self._by_cpus and not need.whole)
            cpus.append(given if by_hand else held * line.threads)
            if need.memory is not None:
                memory.append(memory_of(need, self._nodes.memory_MiB[node], cpus[-1]))
        nodes = of_hosts(node for node, _, _, _ in choice)
        found = Allocation(nodes, len(choice), tuple(cores), tuple(cpus), tuple(memory))
        if need.gres:
            used: list[InUse] = [{}] * len(self._nodes)
            for node, _, _, _ in choice:
                taken = self.state.all_gpus[node] - self.state.trial_gpus[node]
                kind = next(one.type for one in self._nodes.lines[node].gres if one.name == GPU)
                used[node] = {(GPU, kind): int(taken)}
            tasks = [tasks for _, _, _, tasks in choice]
            found = with_units(need, found, tasks, self._nodes.lines, used)
        return found._replace(cores=())


def _same(old: Ends, new: Ends) -> tuple[list[tuple[int, int, int]], list[int]]:
    """Which ends of two sorted lists are the same, and the places of the new ones that are not.

    Of those, runs: from where in the old list, from where in the new one, and how many.
    """
    i = j = 0
    runs, fresh = [], []
    while j < len(new):
        length = 0
        for size in (MANY, 1):
            part = old[i + length : i + length + size]
            while part and part == new[j + length : j + length + size]:
                length += len(part)
                part = old[i + length : i + length + size]
        if length:
            runs.append((i, j, length))
            i, j = i + length, j + length
        elif i < len(old) and old[i][:2] < new[j][:2]:
            i += 1
        else:
            fresh.append(j)
            j += 1
    return runs, fresh


def apart(state: SharedNodes) -> SharedNodes:
    """Return the `state` of kernels from which jobs can be removed, which hold what they held."""
    own: dict[str, Any] = {name: getattr(state, name).copy() for name in (*_OF_ENDS, *_OF_JOBS)}
    return state._replace(**own)


def _room_ahead(running: int, words: int) -> NDArray:
    """Room for the free cores of all nodes, so many `words`, after ends of so many that run."""
    return np.zeros((running // kernel.STRIDE + 1, words), np.uint64)


def _room_of_spans(running: int, words: int) -> NDArray:
    """Room for the nodes, so many `words`, of so many jobs that run."""
    return np.zeros((running // kernel.SPAN + 1, words), np.uint64)


def shared_nodes(count: int, cores: int = 1) -> SharedNodes:
    """The state of the kernels for so many nodes, idle, each of so many cores at most."""
    of_nodes = ("cores", "threads", "weights", "memory", "line_cpus", "all_gpus", "gpu_type")
    left = ("free", "spare", "present", "spare_gpus")
    trial = ("trial_free", "trial_spare", "trial_present", "trial_gpus", "given", "tasks")
    offered = (
        *("node", "cpus", "avail", "there", "selected", "whole_cpus", "gpus", "gpus_left"),
        *("limit", "units", "resources", "weight", "required"),
    )
    choice = ("kept", "is_open", "taken")
    names = (*of_nodes, *left, *trial, *offered, *choice)
    arrays: dict[str, Any] = {name: np.zeros(count, np.int64) for name in names}
    few: dict[str, Any] = {name: np.zeros(FEW, np.int64) for name in ("ends", "first", "last")}
    words = (count + 63) // 64
    return SharedNodes(
        facts=np.zeros(kernel.FACTS, np.int64),
        favours=np.zeros(count, np.uint8),
        noted=np.zeros(count, np.uint8),
        has_free=np.zeros(words, np.uint64),
        trial_has_free=np.zeros(words, np.uint64),
        held=np.zeros((4, FEW), np.int64),
        ahead=_room_ahead(FEW, words * cores.bit_length()),
        spans=_room_of_spans(FEW, words),
        run=np.zeros((count + 1, kernel.RUN), np.int64),
        taking=np.zeros(kernel.TAKING, np.int64),
        **arrays,
        **few,
    )


def prepare_kernels() -> None:
    """Use the kernels as they are used (see `kernels.building`)."""
    state, words = shared_nodes(1), words_of(0, 1)
    need = np.zeros(NEEDS, np.int64)
    kernel.look_ahead(state, 0)
    fit_kernel.place(state, need, words, words)
    fit_kernel.predict(state, need, words, words, 0)
    fit_kernel.place_without(state, need, words, words, np.zeros((1, 2), np.int64))
