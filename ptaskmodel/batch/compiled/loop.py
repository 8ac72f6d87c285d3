# mypy: allow-untyped-defs, allow-incomplete-defs
"""Kernels of the compiled batch loop: they advance a batch from event to event.

At each time, ends come first, then submissions; then the policy decides once, as in the open loop
(`batch.loop.loop`). Sort keys of the queue depend only on the job, so ranks are known in advance.
`delays` calls the loop for jobs of known run time; `task_loop` has what jobs need whose ends the
engine computes.
"""

from __future__ import annotations

from ptaskmodel.batch.compiled.ends import expect_no_more, extend_outlived, pop_end
from ptaskmodel.batch.compiled.policies import (
    backfill,
    end_apart,
    enter_ranks,
    extend_apart,
    fill,
    keep_promises,
    redirect,
    start_apart,
    start_in_order,
)
from ptaskmodel.batch.compiled.queue import add_free, enter, forget_past, give_hosts
from ptaskmodel.batch.compiled.state import (
    CIRCLES,
    CONSERVATIVE,
    DONE,
    EASY,
    FCFS,
    FULL,
    NO_DATE,
    PAUSED,
    REDIRECTION,
)
from ptaskmodel.kernels.decorators import entry, jit

INFINITY = float("inf")


@entry
def advance(s):
    """Take so many decisions, at most, and say why it came back."""
    clock = s.clock[0]
    for _ in range(clock.pause):
        date = _next_date(s)
        if date == INFINITY or date > clock.until:
            return DONE
        if clock.picks and (
            clock.n_pieces + len(s.jobs) - clock.started + len(s.runs) > len(s.pieces)
        ):
            return FULL
        clock.at_date = 0 if date > clock.now else clock.at_date + 1
        if clock.at_date > clock.most:
            return CIRCLES
        clock.now = date
        _one_date(s)
    return PAUSED


@jit
def _next_date(s):
    clock, date = s.clock[0], INFINITY
    if clock.position < len(s.jobs):
        date = s.jobs[clock.position].submit
    if clock.n_ends > 0 and s.ends[0].date <= date:
        date = s.ends[0].date
    return date


@jit
def _one_date(s):
    clock = s.clock[0]
    ended, late, reach = False, False, clock.now
    begin_date(s)
    while clock.n_ends > 0 and s.ends[0].date == clock.now:
        j = pop_end(s)
        ended = True
        late = late or s.jobs[j].expected < clock.now
        reach = max(reach, finish(s, j))
    submit_and_decide(s, ended, late, reach)


@jit
def begin_date(s):
    """A date has come, which ``clock.now`` says; then jobs end (`finish`)."""
    clock = s.clock[0]
    if clock.policy == CONSERVATIVE and clock.n_slots > 0:
        forget_past(s)


@jit
def finish(s, j):
    """A job ends now; until when it leaves hosts free on which the policy had not counted."""
    clock, job = s.clock[0], s.jobs[j]
    job.end = clock.now
    job.over = clock.decisions
    clock.over += 1
    if job.apart:
        end_apart(s, j)
        return clock.now
    expect_no_more(s, j)
    clock.free += job.hosts
    if clock.picks:
        for k in range(s.first_piece[job.number], s.first_piece[job.number + 1]):
            give_hosts(s, s.pieces[k].first, s.pieces[k].length)
    if clock.policy == CONSERVATIVE and job.expected > clock.now:
        add_free(s, clock.now, job.expected, job.hosts)
        return job.expected
    return clock.now


@jit
def submit_and_decide(s, ended, late, reach):
    """Submit the jobs whose date has come, and let the policy decide.

    ended: whether some job has ended now, late: one that had outlived its estimate. reach: until
    when hosts have been given back.
    """
    clock = s.clock[0]
    reserves = clock.policy == CONSERVATIVE
    first = clock.position
    clock.n_fresh = 0
    while clock.position < len(s.jobs) and s.jobs[clock.position].submit <= clock.now:
        _submit(s, clock.position, reserves)
    clock.decisions += 1
    late = extend_outlived(s) or late
    if clock.policy == EASY:
        backfill(s, ended or late)
    elif reserves:
        keep_promises(s, late, reach)
    elif clock.policy == FCFS:
        start_in_order(s)
    elif clock.policy == REDIRECTION:
        extend_apart(s)
        start_apart(s)
        backfill(s, ended or late)
        if redirect(s, first):
            # The open loop asks again, as a job has come back to the queue.
            clock.at_date += 1
            clock.decisions += 1
            backfill(s, True)
    else:
        fill(s)


@jit
def _submit(s, j, reserves):
    clock = s.clock[0]
    if reserves:
        s.jobs[j].date = NO_DATE
    if reserves and clock.depth == 0:
        enter_ranks(s, j)
    else:
        enter(s, j)
    s.fresh[clock.n_fresh] = j
    clock.n_fresh += 1
    clock.waiting += 1
    clock.position += 1
