"""Redirection: counters of the running jobs, and the group set apart; as in `policies.redirection`.

The principal group is what the rest of the state is about; of the other, who runs there is enough.
"""

from __future__ import annotations

from ptaskmodel.batch.compiled.ends import drop_end, expect_no_more, extend, push_end
from ptaskmodel.batch.compiled.policies import backfill
from ptaskmodel.batch.compiled.queue import LARGEST
from ptaskmodel.batch.compiled.state import BLOCK_ENTRIES, BY_COUNTER, BY_ESTIMATE, BY_HOSTS
from ptaskmodel.kernels.decorators import jit


@jit
def end_apart(s, j):
    """A job ends in the group set apart."""
    clock, apart, k = s.clock[0], s.apart, 0
    while apart[k] != j:
        k += 1
    clock.n_apart -= 1
    apart[k] = apart[clock.n_apart]
    clock.free_apart += s.jobs[j].hosts


@jit
def extend_apart(s):
    """Double the estimates of the jobs set apart that outlived them."""
    now = s.clock[0].now
    for k in range(s.clock[0].n_apart):
        job = s.jobs[s.apart[k]]
        if job.expected <= now and job.start < now:
            extend(job, now)


@jit
def redirect(s, first):
    """Count for the jobs submitted now, from ``first`` on, that wait, and move who qualifies."""
    clock = s.clock[0]
    for j in range(first, clock.position):
        if s.queue[clock.leaves + s.jobs[j].rank].hosts == LARGEST:
            continue
        chosen = _count(s, s.jobs[j].estimate)
        if chosen >= 0:
            _forget_counts(s)
            _set_apart(s, chosen)
            backfill(s, True)


@jit
def _count(s, estimate):
    """Raise the counters of those that are not shorter; who is to be redirected, or -1."""
    clock, chosen, least = s.clock[0], -1, 0.0
    for place in range(clock.n_blocks):
        b = s.places[place]
        for k in range(b * BLOCK_ENTRIES, b * BLOCK_ENTRIES + s.blocks[b].count):
            j = s.expected[k].job
            job = s.jobs[j]
            if job.estimate < estimate:
                continue
            job.counter += 1
            if job.counter > clock.theta and job.hosts <= clock.free_apart:
                key = clock.sign * _compared(clock, job)
                if (
                    chosen < 0
                    or key < least
                    or (key == least and job.number < s.jobs[chosen].number)
                ):
                    chosen, least = j, key
    return chosen


@jit
def _compared(clock, job):
    """What the rule of conflict looks at."""
    if clock.rule == BY_COUNTER:
        return float(job.counter)
    if clock.rule == BY_ESTIMATE:
        return job.estimate
    if clock.rule == BY_HOSTS:
        return float(job.hosts)
    return float(job.number)


@jit
def _forget_counts(s):
    for place in range(s.clock[0].n_blocks):
        b = s.places[place]
        for k in range(b * BLOCK_ENTRIES, b * BLOCK_ENTRIES + s.blocks[b].count):
            s.jobs[s.expected[k].job].counter = 0


@jit
def _set_apart(s, j):
    """Stop a job and begin it anew in the group set apart."""
    clock, job, lost = s.clock[0], s.jobs[j], s.lost[s.clock[0].n_lost]
    lost.job, lost.number, lost.began = j, job.number, job.began
    lost.start, lost.expected = job.start, job.expected
    clock.n_lost += 1
    expect_no_more(s, j)
    drop_end(s, j)
    clock.free += job.hosts
    job.apart = 1
    job.start, job.expected = clock.now, clock.now + job.estimate
    job.number, job.began = clock.started, clock.decisions
    s.order[clock.started] = j
    clock.started += 1
    push_end(s, clock.now + job.duration, j)
    clock.free_apart -= job.hosts
    s.apart[clock.n_apart] = j
    clock.n_apart += 1
