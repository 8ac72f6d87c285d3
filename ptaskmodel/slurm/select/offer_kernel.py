# mypy: allow-untyped-defs, allow-incomplete-defs
"""What shared nodes have, offer a job and give it, for the kernels of `fit_kernel`.

Cores are numbers here, not sets. Results equal those of `offers` and of `fitting.dealt`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.slurm.select.bitsets import add_number, meet, sum_of

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

# What ``need`` holds, by place; 0 for None.
CPUS, LEAST, WANTED, MOST, CPUS_PER_TASK, LEAST_TASKS, TASKS_ASKED = range(7)
TASKS_PER_NODE, CPUS_PER_NODE, WHOLE, ALONE, MEMORY_KIND, MEMORY_MIB, LEAST_MIB = range(7, 14)
ONE_THREAD, FITS_IF_FREE, SIZE = range(14, 17)
# Of GPUs: the least on each node, 0: none; their type; the facts of its `GresAsk`;
# `Need.cpus_for_gpus` and the same of each node; how many tasks a node must hold, and may; whether
# nodes offer CPUs for whole tasks, tasks share no core, and use one CPU of each as they ask.
GPUS, GPU_TYPE, PER_JOB, PER_NODE, CPUS_EACH, CPUS_DEFAULT, MEMORY_EACH = range(17, 24)
GPU_CPUS, GPU_CPUS_OF_NODE, TASKS_LEAST, TASKS_MOST = range(24, 28)
PER_TASK, TASKS_EACH, WHOLE_TASKS, ONE_TASK, ONE_CPU = range(28, 33)
NEEDS = 33
NO_MEMORY, OF_NODE, OF_CPU, OF_ALL, OF_GPU = range(5)
# GPU_TYPE of a job that takes any, and of a node without types; TASKS_MOST without a limit.
ANY_TYPE, NO_LIMIT = -1, 0
# SIZE of a job that takes more or fewer CPUs, by where it runs.
VARIES = -1
# What ``taking`` holds, by place.
T_CPUS, T_LEAST, T_NODES, T_SPARE, T_ROOM, T_FEWEST, T_CHOSEN, T_MOST_CPUS, T_UNITS = range(9)
TAKING = 9
# What ``facts`` holds: whether CPUs are given one by one, and it is select/cons_res; by how much
# predictions grow (0: they double); the most threads of a core; whether GPUs are noted, and other
# jobs may have looked at these notes; after how many ends trials are, and whether of all that nodes
# have, not of cores alone.
BY_CPUS, IS_CONS_RES, GROWS_S, THREADS, NOTES_GPUS, READS_NOTES, TRIAL, TRIES_ALL = range(8)
FACTS = 8
LIGHTEST = 255
# After each so many ends, what is free then is kept; of each so many jobs that run, the nodes.
STRIDE, SPAN = 4, 8
# So many jobs of a group that goes on make one of their own.
MOST_REMOVED = 202


class SharedNodes(NamedTuple):
    """facts: see above. cores, threads, weights, memory: of each node; favours: see `Consumable`.

    line_cpus, all_gpus, gpu_type: of each node, `NodeLine.cpus`, its GPUs and their type. noted:
    as favours, what was noted in this backfill cycle, 0: nothing. free, spare, present,
    spare_gpus: its free cores, its free memory (MiB), its jobs, its free GPUs; trial_*: the same
    in a prediction. has_free, trial_has_free: the nodes that have free cores. ends: of the jobs
    that run, by end; first, last: of each, its nodes among held: the node, the cores, the memory
    and the GPUs. ahead: the free cores of each node after each STRIDE ends, in binary: the last
    digits of all nodes as words, then the digits before these, and so on. spans: of SPAN jobs.

    The available nodes: node, cpus, avail, whole_cpus, gpus, units, resources (see `Room`),
    weight, whether it must be; selected: how many of its free cores, there, are selected; gpus_left
    and limit: its free GPUs, and how many a job may use, 0: all; kept: whether it is not dropped;
    is_open: whether runs hold it; taken: whether the job takes it. run: of each run of these its
    anchor, CPUs, nodes, first, last, weight, GPUs. given, tasks: of each, what `deal` gives.
    """

    facts: Ints
    cores: Ints
    threads: Ints
    weights: Ints
    memory: Ints
    line_cpus: Ints
    all_gpus: Ints
    gpu_type: Ints
    favours: NDArray[np.uint8]
    noted: NDArray[np.uint8]
    free: Ints
    spare: Ints
    present: Ints
    spare_gpus: Ints
    trial_free: Ints
    trial_spare: Ints
    trial_present: Ints
    trial_gpus: Ints
    has_free: Words
    trial_has_free: Words
    ends: Ints
    first: Ints
    last: Ints
    held: Ints
    ahead: Words
    spans: Words
    node: Ints
    cpus: Ints
    avail: Ints
    there: Ints
    selected: Ints
    whole_cpus: Ints
    gpus: Ints
    gpus_left: Ints
    limit: Ints
    units: Ints
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


ANCHOR, RUN_CPUS, RUN_NODES, FIRST, LAST, RUN_WEIGHT, RUN_UNITS = range(7)
RUN = 7


@jit
def note_free(s):
    """Note which nodes have free cores."""
    s.has_free[:] = np.uint64(0)
    for k in range(len(s.free)):
        if s.free[k] > 0:
            s.has_free[k >> 6] |= np.uint64(1) << np.uint64(k & 63)


@jit
def give_back(s, first, last):
    """Give the nodes of `s` back what a job holds, from its `first` to its `last` among held."""
    for h in range(first, last):
        k = s.held[0, h]
        s.free[k] += s.held[1, h]
        s.spare[k] += s.held[2, h]
        s.spare_gpus[k] += s.held[3, h]
        s.present[k] -= 1
        s.has_free[k >> 6] |= np.uint64(s.free[k] > 0) << np.uint64(k & 63)


@entry
def look_ahead(s, running):
    """Note what is free now, and after each STRIDE ends of so many jobs that run; their nodes."""
    note_free(s)
    s.ahead[0, :] = np.uint64(0)
    _begin_trial(s)
    for k in range(len(s.free)):
        add_number(s.ahead[0], len(s.has_free), k, s.free[k])
    for j in range(running):
        if j % SPAN == 0:
            s.spans[j // SPAN, :] = np.uint64(0)
        for h in range(s.first[j], s.last[j]):
            k = s.held[0, h]
            s.spans[j // SPAN, k >> 6] |= np.uint64(1) << np.uint64(k & 63)
    for c in range(running // STRIDE):
        for i in range(s.ahead.shape[1]):
            s.ahead[c + 1, i] = s.ahead[c, i]
        for j in range(c * STRIDE, (c + 1) * STRIDE):
            for h in range(s.first[j], s.last[j]):
                add_number(s.ahead[c + 1], len(s.has_free), s.held[0, h], s.held[1, h])


@jit
def _begin_trial(s):
    """Let trials find what is free now."""
    s.facts[TRIAL], s.facts[TRIES_ALL] = 0, 1
    for w in range(len(s.has_free)):
        s.trial_has_free[w] = s.has_free[w]
    for k in range(len(s.free)):
        s.trial_free[k], s.trial_spare[k] = s.free[k], s.spare[k]
        s.trial_present[k], s.trial_gpus[k] = s.present[k], s.spare_gpus[k]


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
    cores = sum_of(s.ahead[c], some)
    for j in range(c * STRIDE, ended):
        cores += _cores_back(s, some, j)
    return cores * s.facts[THREADS]


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
        if sum_of(s.ahead[middle], some) * s.facts[THREADS] >= cpus:
            high = middle
        else:
            low = middle
    if low < 0:
        return np.int64(0)
    cores, ended = sum_of(s.ahead[low], some), low * STRIDE
    while cores * s.facts[THREADS] < cpus:
        cores += _cores_back(s, some, ended)
        ended += 1
    return ended


@jit
def look_at(s, need, ended):
    """Let trials of `s` find what is free after `ended` jobs: move on from the last trial.

    Only cores, if a `need` is one for cores alone.
    """
    if need[MEMORY_KIND] == NO_MEMORY and not (need[ALONE] or need[GPUS]):
        s.facts[TRIES_ALL] = 0
    elif not s.facts[TRIES_ALL]:
        _begin_trial(s)
    before = s.facts[TRIAL]
    sign = np.int64(1) if ended > before else np.int64(-1)
    for j in range(min(before, ended), max(before, ended)):
        for h in range(s.first[j], s.last[j]):
            k = s.held[0, h]
            free = s.trial_free[k] + sign * s.held[1, h]
            s.trial_free[k] = free
            if s.facts[TRIES_ALL]:
                s.trial_spare[k] += sign * s.held[2, h]
                s.trial_present[k] -= sign
                s.trial_gpus[k] += sign * s.held[3, h]
            shift = np.uint64(k & 63)
            others = s.trial_has_free[k >> 6] & ~(np.uint64(1) << shift)
            s.trial_has_free[k >> 6] = others | np.uint64(free > 0) << shift
    s.facts[TRIAL] = ended


@jit
def next_among(s, among, j, running):
    """The first job of `s` from `j` on that has some nodes of `among`; `running`: there is none."""
    while j < running:
        span = j // SPAN
        end = min((span + 1) * SPAN, running)
        if not meet(s.spans[span], among):
            j = end
        while j < end:
            for h in range(s.first[j], s.last[j]):
                k = s.held[0, h]
                if among[k >> 6] >> np.uint64(k & 63) & np.uint64(1):
                    return j
            j += 1
    return running


@jit
def last_among(s, among, position, running):
    """The last job of `s` from a `position` on that has some nodes of `among`, and ends a group.

    -1: there is none. running: how many jobs run. So many such jobs make a group of their own,
    which nobody tries.
    """
    last, found = np.int64(-1), 0
    j = next_among(s, among, position, running)
    while j < running:
        last = np.int64(j)
        found += 1
        if found == MOST_REMOVED:
            last, found = np.int64(-1), 0
        j = next_among(s, among, j + 1, running)
    return last


@jit
def size_of(s, need, count):
    """How many CPUs a job has on the nodes that it takes, of those that are available."""
    if need[SIZE] != VARIES:
        return need[SIZE]
    one_by_one = s.facts[THREADS] == need[CPUS_PER_TASK] == 1
    one_by_one = one_by_one and need[TASKS_PER_NODE] == need[PER_TASK] == 0
    cpus, there = _cpus_to_deal(s, need), np.int64(0)
    for i in range(count):
        there += s.taken[i] * s.whole_cpus[i]
    if one_by_one and not need[WHOLE] and there >= cpus:
        return cpus
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
            cpus += min((s.given[i] + each - 1) // each, s.selected[i]) * s.threads[k]
    return cpus


@jit
def _turns(s, i):
    return np.int64(1) if s.facts[IS_CONS_RES] else s.threads[s.node[i]]


@jit
def _has_room(s, need, i):
    """Whether a node has room for another task."""
    if s.whole_cpus[i] - s.given[i] < need[CPUS_PER_TASK]:
        return False
    if need[PER_TASK] and s.tasks[i] >= s.units[i] // need[PER_TASK]:
        return False
    return need[TASKS_PER_NODE] == 0 or s.tasks[i] < need[TASKS_PER_NODE]


@jit
def _give(s, need, i):
    """Give a node another task."""
    s.tasks[i] += 1
    s.given[i] = min(s.given[i] + need[CPUS_PER_TASK], s.whole_cpus[i])


@jit
def _cpus_to_deal(s, need):
    """How many CPUs a job is to have on the nodes that it takes."""
    nodes = s.taking[T_CHOSEN]
    each = max(need[TASKS_PER_NODE], need[CPUS_PER_NODE], np.int64(1))
    cpus = max(nodes * each, need[CPUS])
    if need[GPUS]:
        with_cpus = need[CPUS_EACH] if need[CPUS_EACH] else need[CPUS_DEFAULT]
        gpus = need[PER_JOB] if need[PER_JOB] else need[PER_NODE] * nodes
        cpus = max(cpus, max(with_cpus, need[TASKS_EACH]) * gpus)
    return cpus


@jit
def deal(s, need, count):
    """Distribute the tasks over the nodes: given, which is all where it has the whole node.

    See `fitting.dealt`.
    """
    if need[WHOLE]:
        for i in range(count):
            s.given[i], s.tasks[i] = s.whole_cpus[i], 0
        return
    step, per_node, nodes = need[CPUS_PER_TASK], need[TASKS_PER_NODE], s.taking[T_CHOSEN]
    cpus = left = _cpus_to_deal(s, need)
    if step > 1:
        left = per_node * nodes if per_node else cpus // step
    left = max(left, np.int64(1))
    room = False
    for i in range(count):
        s.given[i] = s.tasks[i] = 0
        if s.taken[i] and left > 0 and s.whole_cpus[i] > 0:
            _give(s, need, i)
            left -= 1
            room = room or s.given[i] < s.whole_cpus[i]
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
                room = room or s.whole_cpus[i] - s.given[i] >= step
        crowded = crowded or not room
