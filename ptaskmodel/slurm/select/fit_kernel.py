# mypy: allow-untyped-defs, allow-incomplete-defs
"""Kernels of the choice among shared nodes: which nodes a job takes now, or after which end.

`plain_fit` calls them. Only numbers of free cores count here, not which; `Consumable` then chooses
the cores. Results equal those of `Consumable.place` and `Consumable.predict`: `fitting.by_runs` is
`_by_runs`, and so on.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.slurm.select.offer_kernel import (
    ANCHOR,
    CPUS,
    CPUS_EACH,
    CPUS_PER_NODE,
    CPUS_PER_TASK,
    FIRST,
    FITS_IF_FREE,
    GPU_CPUS,
    GPU_CPUS_OF_NODE,
    GPUS,
    GROWS_S,
    IS_CONS_RES,
    LAST,
    LEAST,
    LEAST_TASKS,
    MOST,
    NOTES_GPUS,
    ONE_THREAD,
    PER_JOB,
    RUN_CPUS,
    RUN_NODES,
    RUN_UNITS,
    RUN_WEIGHT,
    T_CHOSEN,
    T_CPUS,
    T_FEWEST,
    T_LEAST,
    T_MOST_CPUS,
    T_NODES,
    T_ROOM,
    T_SPARE,
    T_UNITS,
    TASKS_ASKED,
    WANTED,
    WHOLE,
    deal,
    ended_by,
    enough_after,
    give_back,
    last_among,
    look_at,
    next_among,
    note_free,
)
from ptaskmodel.slurm.select.room_kernel import enough_let_in, gpus_after, list_rooms, select


@entry
def place(s, need, among, required):
    """How many nodes are available, where a job fits now; 0: it does not.

    Those that it takes are marked as taken, with the CPUs that are given of each. need: of the job.
    among, required: the nodes that it may, and must have.
    """
    note_free(s)
    count = fit_now(s, need, among, required)
    if count > 0:
        deal(s, need, count)
    return count


@entry
def place_without(s, need, required, among, held):
    """After how many of some jobs of `s` are gone a job fits, and how many nodes are available.

    0: it never fits. need, among, required: as of `place`. held: where each has its nodes.
    """
    note_free(s)
    for j in range(len(held)):
        give_back(s, held[j, 0], held[j, 1])
        count = fit_now(s, need, among, required)
        if count > 0:
            deal(s, need, count)
            return j + 1, count
    return len(held), 0


@entry
def predict(s, need, among, required, running):
    """After how many ends a job fits, and how many nodes are available then; 0: never.

    Those that it takes are marked as taken, with the CPUs that are given of each. running: how many
    jobs run.
    """
    enough = enough_after(s, among, need[CPUS], running)
    gpus = gpus_after(s, need, among, running) if need[GPUS] else np.int64(0)
    ended, count = end_of(s, need, among, required, running, enough, running, gpus, np.int64(-1))
    if count > 0:
        deal(s, need, count)
    return ended, count


@jit
def fit_now(s, need, among, required):
    """As `place`, but nothing is given. s, need, among, required: as there."""
    return fit_in(s, need, among, s.has_free, required, s.free, s.spare, s.present, s.spare_gpus)


@jit
def fit_in(s, need, among, has_free, required, free, spare, present, gpus):
    """How many nodes are available, where a job fits; 0: it does not. gpus: left of each node."""
    notes = need[GPUS] and s.facts[NOTES_GPUS]
    if notes:
        # It is looked at on these nodes without other jobs first, and again when it fits.
        if not enough_let_in(s, need, among, required, spare, present):
            return np.int64(0)
        if not _fits(s, need, among, among, required, s.cores, spare, present, gpus, True):
            return np.int64(0)
    count = _fits(s, need, among, has_free, required, free, spare, present, gpus, False)
    if notes and count == 0:
        # What it finds then is noted in place of that.
        list_rooms(s, need, among, has_free, required, free, spare, present, gpus, True, False)
    elif count > 0 and not (notes or need[FITS_IF_FREE]):
        # It must fit on these nodes without other jobs, too; then again as it is.
        if not _fits(s, need, among, among, required, s.cores, spare, present, gpus, False):
            return np.int64(0)
        count = _fits(s, need, among, has_free, required, free, spare, present, gpus, False)
    return count


@jit
def _fits(s, need, among, has_free, required, free, spare, present, gpus, notes):
    """How many nodes are available; 0: a job does not fit there. notes: see `list_rooms`."""
    count = list_rooms(s, need, among, has_free, required, free, spare, present, gpus, notes, True)
    return count if count > 0 and _fit(s, need, count) else np.int64(0)


@jit
def end_of(s, need, among, required, running, enough, most, gpus, unseen):
    """After how many ends a job fits, and how many nodes are available then; 0: never.

    enough: so many jobs must end, whatever the nodes. most: after how many ends it no longer is of
    interest. gpus: so many must end for its GPUs; before, it only notes what it finds. unseen:
    after how many ends that is still to be noted; -1: none. More is found after more ends, so that
    only the last such note stays.

    Ends are taken together that a window of time holds, which grows. A group ends with a job that
    has some of the nodes in question, the first behind which the window is over.
    """
    position, window, horizon = np.int64(0), np.int64(30), np.int64(-1)
    grows_s = s.facts[GROWS_S]
    while position < running and enough <= most:
        if horizon < 0:
            first = next_among(s, among, position, running)
            if first == running:
                break
            horizon = s.ends[first] + 30 - s.ends[first] % 30
        within = ended_by(s.ends, running, horizon + window)
        last = next_among(s, among, max(position, within - 1), running)
        if last == running:
            last = last_among(s, among, position, running)
            position = running
            if last < 0:
                break
        else:
            position = last + 1
        while True:
            window += grows_s if grows_s > 0 else window
            if position >= running or s.ends[position] <= horizon + window:
                break
        if last >= most:
            break
        if enough <= last + 1 < gpus:
            unseen = last + 1
        elif last + 1 >= enough:
            unseen = np.int64(-1)
            look_at(s, need, last + 1)
            count = fit_in(
                s,
                need,
                among,
                s.trial_has_free,
                required,
                s.trial_free,
                s.trial_spare,
                s.trial_present,
                s.trial_gpus,
            )
            if count > 0:
                return last + 1, count
    if unseen >= 0 and s.facts[NOTES_GPUS]:
        look_at(s, need, unseen)
        spare, present, left = s.trial_spare, s.trial_present, s.trial_gpus
        if enough_let_in(s, need, among, required, spare, present):
            list_rooms(s, need, among, among, required, s.cores, spare, present, left, True, False)
    return np.int64(0), np.int64(0)


# --- which nodes --------------------------------------------------------------------------------


@jit
def _fit(s, need, count):
    """Mark what a job takes of the available nodes; whether they suffice. See `fitting.fit`."""
    least, most = need[LEAST], need[MOST]
    if need[TASKS_ASKED] and most > need[TASKS_ASKED]:
        most = max(need[TASKS_ASKED], least)
    cpus, units = np.int64(0), np.int64(0)
    for i in range(count):
        cpus += s.cpus[i]
        units += s.units[i]
    if count < least or cpus < need[CPUS] or units < need[PER_JOB]:
        return False
    if most < count and not _can_suffice(s, need, count, most):
        return False
    if _attempt(s, need, count, count, least, most):
        return True
    if s.facts[IS_CONS_RES]:
        return _without_those_of_few_cpus(s, need, count, least, most)
    if count <= least:
        return _attempt(s, need, count, count, least, most)
    return _without_the_poorest(s, need, count, least, most)


@jit
def _can_suffice(s, need, count, most):
    """Whether so many nodes, at most, of those that offer most have the CPUs of a job."""
    if need[GPUS]:
        return True
    left, best = need[CPUS], s.given  # the largest first
    for i in range(count):
        cpus, place = max(s.cpus[i], need[CPUS_PER_NODE]), min(np.int64(i), most)
        while place > 0 and best[place - 1] < cpus:
            best[place] = best[place - 1]
            place -= 1
        best[place] = cpus
    for i in range(most):
        left -= best[i]
    return left <= 0


@jit
def _without_the_poorest(s, need, count, least, most):
    """Try again without the poorest nodes, then without the next poorest, and so on."""
    richest, left = np.int64(0), count
    for i in range(count):
        richest = max(richest, s.resources[i])
    for poorest in range(1, richest):
        dropped = np.int64(0)
        for i in range(count):
            poor = s.kept[i] and 0 < s.resources[i] <= poorest and not s.required[i]
            if poor and left - dropped > least:
                s.kept[i] = 0
                dropped += 1
        if dropped == 0 and poorest != 1:
            continue
        left -= dropped
        if _attempt(s, need, count, left, least, most):
            return True
        if left <= least:
            return False
    return False


@jit
def _without_those_of_few_cpus(s, need, count, least, most):
    """The same of select/cons_res, as long as the others offer enough. See `cons_res.fit`."""
    richest, left, cpus = np.int64(0), count, np.int64(0)
    for i in range(count):
        richest = max(richest, s.cpus[i])
        cpus += s.cpus[i]
    for fewest in range(1, richest):
        dropped, over = 0, False
        for i in range(count):
            if over or not s.kept[i] or s.required[i] or not 0 < s.cpus[i] <= fewest:
                continue
            cpus -= s.cpus[i]
            over = cpus < need[CPUS]
            if over:
                continue
            s.kept[i] = 0
            left -= 1
            dropped += 1
            over = left <= least or cpus == need[CPUS]
        if dropped > 0:
            if _attempt(s, need, count, left, least, most):
                return True
            if over:
                return False
    return False


@jit
def _attempt(s, need, count, left, least, most):
    """Take of the nodes that are kept; whether they suffice."""
    if left < least:
        return False
    t = s.taking
    t[T_CPUS], t[T_LEAST], t[T_NODES] = need[CPUS], least, max(least, need[WANTED])
    t[T_SPARE], t[T_ROOM], t[T_CHOSEN] = t[T_NODES] - least, most, 0
    t[T_FEWEST] = 1 if s.facts[IS_CONS_RES] else need[CPUS_PER_TASK] * need[LEAST_TASKS]
    t[T_MOST_CPUS], t[T_UNITS] = need[CPUS], need[PER_JOB]
    if need[GPUS]:
        if need[PER_JOB]:
            t[T_NODES] = least
        t[T_FEWEST] = 1
        of_nodes = need[GPU_CPUS_OF_NODE] * t[T_NODES]
        t[T_MOST_CPUS] = max(need[CPUS], need[GPU_CPUS], of_nodes)
    for i in range(count):
        s.taken[i] = 0
    if _by_runs(s, need, count):
        return True
    if s.facts[IS_CONS_RES]:
        return t[T_CPUS] <= 0 and t[T_NODES] - t[T_SPARE] <= 0
    return False


@jit
def _done(t):
    return t[T_NODES] <= 0 and t[T_CPUS] <= 0 and t[T_UNITS] <= 0


@jit
def _take(s, need, i):
    """Take a node; of one that is shared what the others must have is kept. See `Taking.take`."""
    t = s.taking
    if not need[WHOLE]:
        piece = np.int64(1) if need[ONE_THREAD] else s.threads[s.node[i]]
        left = t[T_MOST_CPUS] - max(t[T_LEAST] - 1, np.int64(0)) * piece
        if s.cpus[i] > left:
            s.cpus[i] = s.avail[i] = max(left, need[CPUS_PER_NODE], need[GPU_CPUS_OF_NODE])
            s.resources[i] = s.cpus[i] + s.gpus[i]
        s.whole_cpus[i] = min(s.avail[i], s.whole_cpus[i])
    cpus = s.cpus[i]
    if need[PER_JOB]:
        units = s.units[i]
        if need[CPUS_EACH]:
            units = min(units, cpus // need[CPUS_EACH])
            if units * need[CPUS_EACH]:
                cpus = units * need[CPUS_EACH]
        t[T_UNITS] -= units
    t[T_CPUS] -= cpus
    t[T_MOST_CPUS] -= cpus
    t[T_NODES] -= 1
    t[T_LEAST] -= 1
    t[T_ROOM] -= 1
    t[T_CHOSEN] += 1
    s.taken[i] = 1


@jit
def _by_runs(s, need, count):
    """Take nodes from the run that fits best, then from the next. See `fitting.by_runs`."""
    t = s.taking
    musts = np.int64(0)
    for i in range(count):
        if s.kept[i] and s.required[i]:
            musts += 1
    if musts > t[T_ROOM]:
        return False
    if musts > 0:
        for i in range(count):
            if s.kept[i] and s.required[i]:
                if need[GPUS]:
                    select(s, need, i)
                if t[T_ROOM] <= 0 or s.cpus[i] < max(t[T_FEWEST], 1):
                    return False
                _take(s, need, i)
        if _done(t):
            return True
        if t[T_ROOM] <= 0:
            return False
    runs = _runs(s, need, count)
    while t[T_ROOM] > 0:
        best = _best(s, runs)
        if best < 0:
            break
        if s.run[best, ANCHOR] >= 0:
            _take_along(s, need, best)
        else:
            _take_tightest(s, need, best)
        if _done(t):
            return True
        s.run[best, RUN_NODES] = 0
    return t[T_CPUS] <= 0 and t[T_UNITS] <= 0 and t[T_NODES] - t[T_SPARE] <= 0


@jit
def _begin_run(s, r, weight):
    s.run[r, ANCHOR], s.run[r, RUN_CPUS], s.run[r, RUN_NODES] = -1, 0, 0
    s.run[r, FIRST] = s.run[r, LAST] = s.run[r, RUN_UNITS] = 0
    s.run[r, RUN_WEIGHT] = weight


@jit
def _runs(s, need, count):
    """List the runs of consecutive nodes of one weight; how many. Weight -1: none yet."""
    r, before = np.int64(0), np.int64(-2)
    _begin_run(s, r, -1)
    run, fewest = s.run, s.taking[T_FEWEST]
    for i in range(count):
        s.is_open[i] = 0
        if not s.kept[i]:
            continue
        if need[GPUS] and not s.required[i]:
            select(s, need, i)
        if s.cpus[i] < fewest and not s.required[i]:
            continue
        if s.node[i] != before + 1:
            r += run[r, RUN_NODES] > 0
            _begin_run(s, r, -1)
        before = s.node[i]
        if run[r, RUN_WEIGHT] >= 0 and run[r, RUN_WEIGHT] != s.weight[i]:
            if run[r, RUN_NODES] > 0:
                r += 1
                _begin_run(s, r, 0)
            else:
                run[r, ANCHOR] = -1
        if run[r, RUN_NODES] == 0:
            run[r, FIRST] = i
        run[r, LAST] = i
        if s.required[i]:
            if run[r, ANCHOR] < 0:
                run[r, ANCHOR] = i
            continue
        run[r, RUN_CPUS] += s.cpus[i]
        run[r, RUN_UNITS] += s.units[i]
        run[r, RUN_NODES] += 1
        run[r, RUN_WEIGHT] = s.weight[i]
        s.is_open[i] = 1
    return r + (run[r, RUN_NODES] > 0)


@jit
def _best(s, runs):
    """The run to take from, of those that have nodes; -1: there is none."""
    t, run = s.taking, s.run
    best, fits = np.int64(-1), False
    for r in range(runs):
        if run[r, RUN_NODES] == 0:
            continue
        suffices = run[r, RUN_CPUS] >= t[T_CPUS] and run[r, RUN_NODES] >= t[T_NODES] - t[T_SPARE]
        suffices = suffices and run[r, RUN_UNITS] >= t[T_UNITS]
        better = True
        if best >= 0:
            better = run[best, ANCHOR] < 0 and run[r, ANCHOR] >= 0
            if run[r, RUN_WEIGHT] < run[best, RUN_WEIGHT]:
                better = True
            if not better and run[r, RUN_WEIGHT] == run[best, RUN_WEIGHT]:
                if suffices:
                    better = not fits or run[r, RUN_CPUS] < run[best, RUN_CPUS]
                else:
                    better = run[r, RUN_CPUS] > run[best, RUN_CPUS]
        if better:
            best, fits = np.int64(r), suffices
    return best


@jit
def _take_along(s, need, r):
    """Take the nodes of a run from its anchor up, then from there down."""
    t = s.taking
    first, last, anchor = s.run[r, FIRST], s.run[r, LAST], s.run[r, ANCHOR]
    for i in range(anchor, last + 1):
        if t[T_ROOM] == 0 or _done(t):
            return
        if s.is_open[i]:
            _take(s, need, i)
    for i in range(anchor - 1, first - 1, -1):
        if t[T_ROOM] == 0 or _done(t):
            return
        if s.is_open[i]:
            _take(s, need, i)


@jit
def _take_tightest(s, need, r):
    """Take one node of a run that holds all that is missing, the tightest; else from the first."""
    t = s.taking
    first, last = s.run[r, FIRST], s.run[r, LAST]
    if t[T_NODES] <= 1:
        best = np.int64(-1)
        for i in range(first, last + 1):
            holds = s.is_open[i] and s.cpus[i] >= t[T_CPUS] and s.units[i] >= t[T_UNITS]
            if holds and (best < 0 or s.cpus[i] < s.cpus[best]):
                best = np.int64(i)
        if best >= 0:
            first = last = best
    for i in range(first, last + 1):
        if not s.is_open[i]:
            continue
        if t[T_ROOM] == 0 or _done(t):
            return
        if t[T_ROOM] == 1 and s.cpus[i] < t[T_CPUS]:
            continue
        _take(s, need, i)
