# mypy: allow-untyped-defs, allow-incomplete-defs
"""Which shared nodes will do for a job, and what is selected of them, for `fit_kernel`.

Cores are numbers here, not sets. Results equal those of `offers` and `gpus`.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.slurm.select.bitsets import ones, trailing_zeros
from ptaskmodel.slurm.select.offer_kernel import (
    ALONE,
    ANY_TYPE,
    BY_CPUS,
    CPUS,
    CPUS_DEFAULT,
    CPUS_EACH,
    CPUS_PER_NODE,
    CPUS_PER_TASK,
    GPU_TYPE,
    GPUS,
    LEAST,
    LEAST_MIB,
    LEAST_TASKS,
    LIGHTEST,
    MEMORY_EACH,
    MEMORY_KIND,
    MEMORY_MIB,
    NO_LIMIT,
    NO_MEMORY,
    NOTES_GPUS,
    OF_ALL,
    OF_CPU,
    ONE_CPU,
    ONE_TASK,
    ONE_THREAD,
    PER_JOB,
    PER_NODE,
    PER_TASK,
    READS_NOTES,
    T_UNITS,
    TASKS_EACH,
    TASKS_LEAST,
    TASKS_MOST,
    TASKS_PER_NODE,
    WHOLE,
    WHOLE_TASKS,
)

# GPUs of a node without any that a job may have: fewer than all that may come back.
NONE_EVER = -(1 << 40)


@jit
def lets_in(s, need, k, spare, present):
    """Whether node `k` of `s` has the memory, in `spare`, for a `need`, beside those `present`."""
    if need[MEMORY_KIND] == OF_ALL:
        if spare[k] != s.memory[k]:
            return False
    elif spare[k] < need[LEAST_MIB]:
        return False
    return not (need[ALONE] and present[k] > 0)


@jit
def enough_let_in(s, need, among, required, spare, present):
    """Whether enough nodes `among` some of `s`, and all that are `required`, let a `need` in.

    spare, present: their memory and jobs, as of `lets_in`.
    """
    found, left = np.int64(0), np.int64(0)
    for w in range(len(among)):
        if required[w] & ~among[w] != np.uint64(0):
            return False
        left += ones(required[w])
    for w in range(len(among)):
        word = among[w]
        while word != np.uint64(0):
            bit = trailing_zeros(word)
            word &= word - np.uint64(1)
            must = np.int64(required[w] >> np.uint64(bit) & np.uint64(1))
            if lets_in(s, need, w * 64 + bit, spare, present):
                found, left = found + 1, left - must
                if found >= need[LEAST] and left == 0:
                    return True
            elif must:
                return False
    return False


@jit
def gpus_after(s, need, among, running):
    """After how many ends of jobs of `s` some nodes, `among`, can have the GPUs of a `need`.

    More than `running`: after all of these they have fewer. What `deal` gives is overwritten.
    """
    nodes, units, left = need[LEAST], need[PER_JOB], s.given
    for w in range(len(among)):
        word = among[w]
        while word != np.uint64(0):
            k = w * 64 + trailing_zeros(word)
            word &= word - np.uint64(1)
            left[k] = s.spare_gpus[k]
            if need[GPU_TYPE] != ANY_TYPE and need[GPU_TYPE] != s.gpu_type[k]:
                left[k] = NONE_EVER
            if left[k] >= need[GPUS]:
                nodes, units = nodes - 1, units - left[k]
    ended = np.int64(0)
    while nodes > 0 or units > 0:
        if ended >= running:
            return running + 1
        for h in range(s.first[ended], s.last[ended]):
            k, more = s.held[0, h], s.held[3, h]
            if more and among[k >> 6] >> np.uint64(k & 63) & np.uint64(1):
                before = left[k]
                left[k] += more
                if before >= need[GPUS]:
                    units -= more
                elif left[k] >= need[GPUS]:
                    nodes, units = nodes - 1, units - left[k]
        ended += 1
    return ended


@jit
def list_rooms(s, need, among, has_free, required, free, spare, present, spare_gpus, notes, lists):
    """List the nodes of some that will do; how many, 0: they cannot suffice.

    s, need, among, required: of `enough_let_in`. has_free, free, spare, present: their free cores
    and memory, and jobs. notes: whether their GPUs, of `spare_gpus`, are noted. lists: whether to
    do more than that.
    """
    none = np.int64(0)
    count, found, cpus = none, none, none
    own = need[GPUS] and s.facts[NOTES_GPUS]
    alone = own and need[WHOLE]
    for w in range(len(among)):
        word = among[w] & has_free[w]
        while word != np.uint64(0):
            bit = trailing_zeros(word)
            k = w * 64 + bit
            word &= word - np.uint64(1)
            if not lets_in(s, need, k, spare, present) or (alone and present[k] > 0):
                continue
            must = np.int64(required[w] >> np.uint64(bit) & np.uint64(1))
            cpus += free[k] * s.threads[k]
            offer = _offer(s, need, k, free[k], spare[k])
            if offer > 0:
                all_cpus, gpus, limit, near = offer, none, none, none
                if need[GPUS]:
                    gpus, limit = _usable_gpus(s, need, k, offer, free[k], spare[k], spare_gpus[k])
                    if gpus == 0:
                        continue
                    near = min(gpus, limit) if limit else gpus
                    all_cpus = free[k] * _cpus_of_core(s, need, k)
                    offer -= offer % need[CPUS_PER_TASK] if need[WHOLE_TASKS] else none
                favour = min(near, LIGHTEST) if own else np.int64(s.favours[k])
                if notes:
                    s.favours[k] = s.noted[k] = favour
                elif s.all_gpus[k] > 0 and not own:
                    s.facts[READS_NOTES] = 1
                if not lists:
                    continue
                s.node[count], s.cpus[count], s.resources[count] = k, offer, offer + gpus
                s.avail[count], s.whole_cpus[count], s.there[count] = offer, all_cpus, free[k]
                s.gpus[count], s.units[count], s.limit[count] = gpus, gpus, limit
                s.selected[count], s.gpus_left[count] = free[k], spare_gpus[k]
                s.weight[count] = (s.weights[k] << 8) + LIGHTEST - favour
                s.required[count], s.kept[count] = must, 1
                found += must
                count += 1
    asked = np.int64(0)
    for w in range(len(required)):
        asked += ones(required[w])
    return np.int64(0) if cpus < need[CPUS] or found < asked else count


@jit
def _usable_gpus(s, need, k, cpus, free, spare, left):
    """How many GPUs of a node count for a job, and how many it may use (0: no limit).

    0 of them: it will not do. See `gpus_left` and `gpus.offer_of`.
    """
    none = np.int64(0)
    other = need[GPU_TYPE] != ANY_TYPE and need[GPU_TYPE] != s.gpu_type[k]
    if other or left < need[GPUS]:
        return none, none
    fewest, with_cpus = max(need[PER_NODE], np.int64(1)), _cpus_with(need)
    if with_cpus and max(fewest, need[PER_TASK]) > cpus // with_cpus:
        return none, none
    fewest = left if need[WHOLE] else fewest
    fewest = max(fewest, need[PER_TASK] * need[TASKS_PER_NODE])
    units, limit = left, none
    if need[MEMORY_EACH] and need[MEMORY_KIND] != NO_MEMORY:
        limit = spare // need[MEMORY_EACH]
        units = min(units, limit)
        if limit == 0:
            return none, none
    asked = need[PER_NODE] if need[PER_NODE] else need[PER_JOB]
    if need[PER_NODE] and need[PER_JOB] and limit != 0 and limit <= need[PER_NODE]:
        asked = need[PER_JOB]
    if asked and (limit == 0 or limit > asked) and not need[WHOLE]:
        limit = asked
    if with_cpus and not (need[TASKS_EACH] and need[WHOLE]):
        most = free * s.threads[k] // with_cpus
        if most == 0:
            return none, none
        limit = min(limit if limit else most, most)
    return (none, none) if units < fewest or 0 < limit < fewest else (units, limit)


@jit
def _cpus_with(need):
    """The CPUs that come with each GPU. See `gpus._cpus_with`."""
    if need[CPUS_EACH]:
        return need[CPUS_EACH]
    return need[TASKS_EACH] * need[CPUS_PER_TASK] if need[TASKS_EACH] else need[CPUS_DEFAULT]


@jit
def _cpus_of_core(s, need, k):
    return np.int64(1) if need[ONE_THREAD] else s.threads[k]


@jit
def select(s, need, i):
    """Select cores of available node `i` of `s` for a `need` with GPUs. See `GpuOffer.select`."""
    k, each, cpus, free = s.node[i], need[CPUS_PER_TASK], s.avail[i], s.there[i]
    threads, per_node, limit = s.threads[k], need[PER_NODE], s.limit[i]
    s.cpus[i] = 0
    with_cpus, per_task = _cpus_with(need), need[PER_TASK]
    least, lacking = need[TASKS_LEAST], s.taking[T_UNITS]
    if limit and 0 < lacking < limit:
        limit = lacking
    tasks = need[TASKS_MOST] if need[TASKS_MOST] != NO_LIMIT else s.line_cpus[k]
    tasks = min(tasks, cpus // each) if cpus // each >= least else np.int64(0)
    if tasks == 0 or 0 < limit < per_node:
        return
    if per_node and per_task:
        if not least <= per_node // per_task <= tasks:
            return
        if tasks > per_node // per_task:
            tasks = limit
    usable = s.gpus_left[i]
    if with_cpus:
        usable = min(usable, cpus // with_cpus, limit if limit else cpus)
    if usable == 0 or max(per_node, per_task) > usable:
        return
    if per_task:
        tasks = min(tasks, usable // per_task)
    tasks = tasks // least * least
    if tasks == 0:
        return
    of_core = np.int64(1) if need[ONE_CPU] else threads
    step = (each + of_core - 1) // of_core * of_core if need[ONE_TASK] else each
    wanted = (tasks * step + of_core - 1) // of_core
    while wanted > free and tasks >= least:
        tasks -= 1
        wanted = (tasks * step + of_core - 1) // of_core if tasks >= least else tasks * step
    if with_cpus:
        count = per_node if per_node else per_task * tasks if per_task * tasks else usable
        wanted = max(wanted, (count * with_cpus + threads - 1) // threads)
    if wanted > free or tasks == 0:
        return
    if wanted < free:
        cpus -= max(np.int64(0), (cpus + threads - 1) // threads - wanted) * threads
    if with_cpus:
        if max(per_node, per_task) > min(s.units[i], cpus // with_cpus):
            return
        s.units[i] = min(s.units[i], cpus // with_cpus)
    explicit = with_cpus and (need[CPUS_EACH] or not need[TASKS_EACH])
    if not explicit and not (need[ONE_TASK] and each == 1):
        cpus = min(cpus, tasks * each)
    s.cpus[i], s.selected[i] = cpus, wanted
    if not need[WHOLE]:
        s.whole_cpus[i] = wanted * threads


@jit
def _offer(s, need, k, free, spare):
    """How many CPUs a node offers; 0: it will not do. See `cpus_offered`."""
    if need[WHOLE] and free != s.cores[k]:
        return np.int64(0)
    each = _cpus_of_core(s, need, k)
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
