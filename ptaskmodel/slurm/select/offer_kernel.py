# mypy: allow-untyped-defs, allow-incomplete-defs
"""What shared nodes have, offer a job and give it, for the kernels of `fit_kernel`.

Cores are numbers here, not sets. Results equal those of `offers` and of `fitting.dealt`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.slurm.select.bitsets import ones, trailing_zeros

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

# What ``need`` holds, by place; 0 for None.
CPUS, LEAST, WANTED, MOST, CPUS_PER_TASK, LEAST_TASKS, TASKS_ASKED = range(7)
TASKS_PER_NODE, CPUS_PER_NODE, WHOLE, ALONE, MEMORY_KIND, MEMORY_MIB, LEAST_MIB = range(7, 14)
ONE_THREAD, FITS_IF_FREE, SIZE = range(14, 17)
NEEDS = 17
NO_MEMORY, OF_NODE, OF_CPU, OF_ALL = range(4)
# SIZE of a job that takes more or fewer CPUs, by where it runs.
VARIES = -1
# What ``taking`` holds, by place.
T_CPUS, T_LEAST, T_NODES, T_SPARE, T_ROOM, T_FEWEST, T_CHOSEN = range(7)
TAKING = 7
# What ``facts`` holds: whether CPUs are given one by one, and whether it is select/cons_res; by how
# much predictions grow (0: they double); the most threads of a core.
BY_CPUS, IS_CONS_RES, GROWS_S, THREADS = range(4)
FACTS = 4
LIGHTEST = 255
# After each so many ends, what is free then is kept.
STRIDE = 4


class SharedNodes(NamedTuple):
    """facts: see above. cores, threads, weights, memory: of each node; favours: see `Consumable`.

    free, spare, present: its free cores, its free memory (MiB), its jobs; trial_*: the same in a
    prediction. has_free, trial_has_free: the nodes that have free cores. ends: of the jobs that
    run, by end; first, last: of each, its nodes among held: the node, the cores and the memory.
    ahead: the free cores of each node after each STRIDE ends, in binary: the last digits of all
    nodes as words, then the digits before these, and so on. holders: the jobs of each node; among:
    those that hold some of the nodes in question.

    The available nodes: node, cpus, resources (see `Room`), weight, whether it must be; kept:
    whether it is not dropped; is_open: whether runs hold it; taken: whether the job takes it. run:
    of each run of these its anchor, CPUs, nodes, first, last, weight. given, tasks: of each, what
    `deal` gives.
    """

    facts: Ints
    cores: Ints
    threads: Ints
    weights: Ints
    memory: Ints
    favours: NDArray[np.uint8]
    free: Ints
    spare: Ints
    present: Ints
    trial_free: Ints
    trial_spare: Ints
    trial_present: Ints
    has_free: Words
    trial_has_free: Words
    ends: Ints
    first: Ints
    last: Ints
    held: Ints
    ahead: Words
    holders: Words
    among: Words
    node: Ints
    cpus: Ints
    resources: Ints
    weight: Ints
    required: Ints
    kept: Ints
    is_open: Ints
    taken: Ints
    run: Ints
    given: Ints
    tasks: Ints
    taking: Ints


ANCHOR, RUN_CPUS, RUN_NODES, FIRST, LAST, RUN_WEIGHT = range(6)
RUN = 6


@jit
def note_free(s):
    """Note which nodes have free cores."""
    for w in range(len(s.has_free)):
        s.has_free[w] = np.uint64(0)
    for k in range(len(s.free)):
        if s.free[k] > 0:
            s.has_free[k >> 6] |= np.uint64(1) << np.uint64(k & 63)


@entry
def look_ahead(s, running):
    """Note what is free now, and after each STRIDE ends of so many jobs that run."""
    note_free(s)
    for i in range(s.ahead.shape[1]):
        s.ahead[0, i] = np.uint64(0)
    for k in range(len(s.free)):
        for w in range(running + 63 >> 6):
            s.holders[k, w] = np.uint64(0)
    for j in range(running):
        for h in range(s.first[j], s.last[j]):
            s.holders[s.held[0, h], j >> 6] |= np.uint64(1) << np.uint64(j & 63)
    for k in range(len(s.free)):
        _add_cores(s, 0, k, s.free[k])
    for c in range(running // STRIDE):
        for i in range(s.ahead.shape[1]):
            s.ahead[c + 1, i] = s.ahead[c, i]
        for j in range(c * STRIDE, (c + 1) * STRIDE):
            for h in range(s.first[j], s.last[j]):
                _add_cores(s, c + 1, s.held[0, h], s.held[1, h])


@jit
def _add_cores(s, c, node, cores):
    """Add free cores of a node to a row of ahead."""
    i, bit = node >> 6, np.uint64(1) << np.uint64(node & 63)
    carry = np.int64(0)
    while (cores > 0 or carry > 0) and i < s.ahead.shape[1]:
        digit = np.int64(s.ahead[c, i] & bit != np.uint64(0))
        total = digit + (cores & 1) + carry
        if total & 1 != digit:
            s.ahead[c, i] ^= bit
        carry, cores = total >> 1, cores >> 1
        i += len(s.has_free)


@jit
def ended_by(ends, running, date):
    """How many of those that run end at a date at the latest."""
    low, high = np.int64(0), running
    while low < high:
        middle = (low + high) // 2
        if ends[middle] <= date:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def cpus_after(s, some, ended):
    """The most CPUs that some nodes can have on free cores after so many ends."""
    c = ended // STRIDE
    cores = _cores_kept(s, some, c)
    for j in range(c * STRIDE, ended):
        cores += _cores_back(s, some, j)
    return cores * s.facts[THREADS]


@jit
def _cores_kept(s, some, c):
    """The free cores of some nodes after c times STRIDE ends."""
    cores = np.int64(0)
    for b in range(s.ahead.shape[1] // len(some)):
        found = np.int64(0)
        for w in range(len(some)):
            found += ones(some[w] & s.ahead[c, b * len(some) + w])
        cores += found << b
    return cores


@jit
def _cores_back(s, some, j):
    """The cores of some nodes that a job that runs gives back."""
    cores = np.int64(0)
    for h in range(s.first[j], s.last[j]):
        k = s.held[0, h]
        if some[k >> 6] >> np.uint64(k & 63) & np.uint64(1):
            cores += s.held[1, h]
    return cores


@jit
def enough_after(s, some, cpus, most):
    """After how many ends of jobs of `s`, at most `most`, `some` nodes can have free `cpus`.

    More than `most`: after all of these they have fewer.
    """
    if cpus_after(s, some, most) < cpus:
        return most + 1
    low, high = np.int64(-1), most // STRIDE + 1
    while high - low > 1:
        middle = (low + high) // 2
        if _cores_kept(s, some, middle) * s.facts[THREADS] >= cpus:
            high = middle
        else:
            low = middle
    if low < 0:
        return np.int64(0)
    cores, ended = _cores_kept(s, some, low), low * STRIDE
    while cores * s.facts[THREADS] < cpus:
        cores += _cores_back(s, some, ended)
        ended += 1
    return ended


@jit
def look_at(s, need, some, ended):
    """Let trials of a `need` on `some` nodes of `s` find what is free after `ended` jobs."""
    c, words = ended // STRIDE, len(some)
    for w in range(words):
        s.trial_has_free[w] = np.uint64(0)
        if some[w] == np.uint64(0):
            continue
        for k in range(64):
            s.trial_free[w * 64 + k] = 0
        for b in range(s.ahead.shape[1] // words):
            word = s.ahead[c, b * words + w]
            s.trial_has_free[w] |= word
            for k in range(64):
                s.trial_free[w * 64 + k] += np.int64(word >> np.uint64(k) & np.uint64(1)) << b
    for j in range(c * STRIDE, ended):
        for h in range(s.first[j], s.last[j]):
            k = s.held[0, h]
            s.trial_free[k] += s.held[1, h]
            s.trial_has_free[k >> 6] |= np.uint64(1) << np.uint64(k & 63)
    if need[MEMORY_KIND] != NO_MEMORY or need[ALONE]:
        for k in range(len(s.free)):
            s.trial_spare[k], s.trial_present[k] = s.spare[k], s.present[k]
        for j in range(ended):
            for h in range(s.first[j], s.last[j]):
                k = s.held[0, h]
                s.trial_spare[k] += s.held[2, h]
                s.trial_present[k] -= 1


@jit
def list_rooms(s, need, among, has_free, required, free, spare, present):
    """List the nodes of some that will do; how many, 0: they cannot suffice."""
    count, found, cpus = np.int64(0), np.int64(0), np.int64(0)
    for w in range(len(among)):
        word = among[w] & has_free[w]
        while word != np.uint64(0):
            bit = trailing_zeros(word)
            k = w * 64 + bit
            word &= word - np.uint64(1)
            if need[MEMORY_KIND] == OF_ALL:
                if spare[k] != s.memory[k]:
                    continue
            elif spare[k] < need[LEAST_MIB]:
                continue
            if need[ALONE] and present[k] > 0:
                continue
            must = np.int64(required[w] >> np.uint64(bit) & np.uint64(1))
            cpus += free[k] * s.threads[k]
            offer = _offer(s, need, k, free[k], spare[k])
            if offer > 0:
                s.node[count], s.cpus[count], s.resources[count] = k, offer, offer
                s.weight[count] = (s.weights[k] << 8) + LIGHTEST - np.int64(s.favours[k])
                s.required[count], s.kept[count] = must, 1
                found += must
                count += 1
    asked = np.int64(0)
    for w in range(len(required)):
        asked += ones(required[w])
    return np.int64(0) if cpus < need[CPUS] or found < asked else count


@jit
def _offer(s, need, k, free, spare):
    """How many CPUs a node offers; 0: it will not do. See `cpus_offered`."""
    if need[WHOLE] and free != s.cores[k]:
        return np.int64(0)
    each = np.int64(1) if need[ONE_THREAD] else s.threads[k]
    cpus, step = free * each, need[CPUS_PER_TASK]
    if cpus < need[CPUS_PER_NODE] or cpus < need[LEAST_TASKS] * step:
        return np.int64(0)
    if cpus < need[TASKS_PER_NODE]:
        return np.int64(0)
    if need[MEMORY_KIND] != OF_CPU:
        return cpus
    amount, fewer = need[MEMORY_MIB], np.int64(1) if s.facts[BY_CPUS] else each
    if need[WHOLE]:
        if amount * cpus > spare:
            cpus = np.int64(0)
    elif not s.facts[BY_CPUS] and need[ONE_THREAD] and step == 1:
        amount, fewer = amount * s.threads[k], np.int64(1)
    if amount * cpus > spare:
        # As many steps as it takes.
        over = cpus - spare // amount
        cpus = max(np.int64(0), cpus - (over + fewer - 1) // fewer * fewer)
    cpus -= cpus % step
    return np.int64(0) if cpus < need[TASKS_PER_NODE] else cpus


@jit
def size_of(s, need, count):
    """How many CPUs a job has on the nodes that it takes, of those that are available."""
    if need[SIZE] != VARIES:
        return need[SIZE]
    deal(s, need, count)
    cpus = np.int64(0)
    for i in range(count):
        if not s.taken[i]:
            continue
        k = s.node[i]
        if need[WHOLE]:
            cpus += s.cores[k] * s.threads[k]
        elif s.facts[BY_CPUS]:
            cpus += s.given[i]
        else:
            each = np.int64(1) if need[ONE_THREAD] else s.threads[k]
            cpus += (s.given[i] + each - 1) // each * s.threads[k]
    return cpus


@jit
def _turns(s, i):
    return np.int64(1) if s.facts[IS_CONS_RES] else s.threads[s.node[i]]


@jit
def _has_room(s, need, i):
    """Whether a node has room for another task."""
    if s.cpus[i] - s.given[i] < need[CPUS_PER_TASK]:
        return False
    return need[TASKS_PER_NODE] == 0 or s.tasks[i] < need[TASKS_PER_NODE]


@jit
def _give(s, need, i):
    """Give a node another task."""
    s.tasks[i] += 1
    s.given[i] = min(s.given[i] + need[CPUS_PER_TASK], s.cpus[i])


@jit
def deal(s, need, count):
    """Distribute the tasks over the nodes: given, which is all where it has the whole node.

    See `fitting.dealt`.
    """
    if need[WHOLE]:
        for i in range(count):
            s.given[i] = s.cpus[i]
        return
    step, per_node, nodes = need[CPUS_PER_TASK], need[TASKS_PER_NODE], s.taking[T_CHOSEN]
    cpus = max(nodes * max(per_node, np.int64(1)), need[CPUS], nodes * need[CPUS_PER_NODE])
    left = cpus
    if step > 1:
        left = per_node * nodes if per_node else cpus // step
    left = max(left, np.int64(1))
    room = False
    for i in range(count):
        s.given[i] = s.tasks[i] = 0
        if s.taken[i] and left > 0 and s.cpus[i] > 0:
            _give(s, need, i)
            left -= 1
            room = room or s.given[i] < s.cpus[i]
    for i in range(count):
        if s.taken[i]:
            for _ in range(s.given[i] % _turns(s, i) // step):
                if left > 0 and _has_room(s, need, i):
                    _give(s, need, i)
                    left -= 1
    crowded = not room
    while left > 0:
        room = False
        for i in range(count):
            if not s.taken[i]:
                continue
            for _ in range(max(_turns(s, i) // step, np.int64(1))):
                if left <= 0 or not (crowded or _has_room(s, need, i)):
                    break
                _give(s, need, i)
                left -= 1
                room = room or s.cpus[i] - s.given[i] >= step
        crowded = crowded or not room
