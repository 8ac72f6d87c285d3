# mypy: allow-untyped-defs, allow-incomplete-defs
"""The compiled loop of a replay: how MPI ranks react to the events at one time.

`engine.loop` defines the order of events. `look_ahead` finds the pairs of hosts that ranks will
soon need, so that Python finds their routes together.
"""

from __future__ import annotations

from ptaskmodel.engine.activity import stop, succeeds
from ptaskmodel.engine.availability import follow_live
from ptaskmodel.engine.loop import is_execution, next_happening, to_next_date
from ptaskmodel.engine.state import (
    ENDED,
    FAILING,
    NEW_DATE,
    NO_CHANGE,
    NOTHING_MORE,
    OK,
    ROUTES_CHANGED,
    WAKE,
    WOKEN,
)
from ptaskmodel.engine.stream import emit
from ptaskmodel.engine.virtual_time import write_members
from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.mpi.collectives.steps import (
    COMPUTE,
    DO_RECEIVE,
    DO_SEND,
    FINISHED,
    NO_MORE,
    POST_RECEIVE,
    POST_SEND,
    REQUEST_RECEIVE,
    REQUEST_SEND,
)
from ptaskmodel.mpi.messages import arrived, make_ready, place_of
from ptaskmodel.mpi.ranks import advance_ready, next_operation
from ptaskmodel.mpi.state import LOST_RANK, READY, TOLD_FULL


@jit
def over(s, x, slot):
    """An activity is done: a computation of a rank, or a message; OK or LOST_RANK."""
    number = ~s.activities[slot].owner
    fine = succeeds(s, slot)
    if x.counts[0].names == 1:
        emit(s, ENDED, ~number, 0.0)
    stop(s, slot)
    sent = number & 1
    number >>= 1
    if sent:
        x.messages[number].slot = -1
        if not fine:
            x.counts[0].lost = x.messages[number].source
            return LOST_RANK
        arrived(x, number, s.clock[0].now)
        return OK
    x.ranks[number].slot = -1
    if not fine:
        x.counts[0].lost = number
        return LOST_RANK
    make_ready(x, number)
    return OK


@jit
def wakes(x, r, now):
    """A rank has slept enough.

    As SimGrid has it, of ranks that slept from one date to another the last to begin goes on first:
    what tests and polls cost depends on who has done one before.
    """
    x.ranks[r].wake = -1
    counts = x.counts[0]
    since = x.ranks[r].since
    together = counts.woken == now and counts.asleep == since
    if not together or x.protocol[0].newest_first == 0:
        counts.woken = now
        counts.asleep = since
        counts.before_woken = counts.ready.last
        make_ready(x, r)
        return
    x.ranks[r].state = READY
    if counts.before_woken >= 0:
        x.ranks[r].next = x.ranks[counts.before_woken].next
        x.ranks[counts.before_woken].next = r
    else:
        x.ranks[r].next = counts.ready.first
        counts.ready.first = r


@jit
def rank_of(x, owner):
    """The rank that computes, or the one that sends, of the activity that has this owner."""
    number = ~owner
    return x.messages[number >> 1].source if number & 1 else number >> 1


@jit
def computes_before_wake(s, x):
    """Whether a rank's computation ends before the next wait or sleep does, by any digit of its
    date or, at one date, as it began before.
    """
    clock = s.clock[0]
    if clock.n_heap == 0 or clock.n_queue == 0:
        return False
    slot = s.heap[0].slot
    top = s.queue[0]
    owner = s.activities[slot].owner
    if owner >= 0 or s.heap[0].date > top.date or not is_execution(s, slot):
        return False
    if s.heap[0].date < top.date:
        return True
    if top.kind != WAKE or s.wakes[top.number].token >= 0:
        return False
    return x.ranks[rank_of(x, owner)].since < x.ranks[~s.wakes[top.number].token].since


@jit
def next_of_ranks(s, x, o, last):
    """Return what happens next at this date (see `next_happening`).

    Where ranks act by turns, computations and sleeps end in the order of their dates, as they do in
    SimGrid's queue of hosts: tests and polls that follow them cost what those before have left.

    s, o: the engine's state and options. x: the state of ranks. last: the last answer.
    """
    work_first = x.counts[0].by_turns == 1 and computes_before_wake(s, x)
    return next_happening(s, o, last, work_first)


@jit
def rank_happens(s, x, what):
    """Apply to a rank what happens at this date; OK or LOST_RANK.

    s: the engine's state. x: that of ranks. what: the answer of `next_happening`.
    """
    subject = s.clock[0].argument
    if what == WOKEN:
        wakes(x, ~subject, s.clock[0].now)
        return OK
    if what == FAILING:
        x.counts[0].lost = rank_of(x, s.activities[subject].owner)
        return LOST_RANK
    return over(s, x, subject)


@jit
def process(s, x, o):
    """Apply all that happens at this date, up to the ranks that can go on; OK or LOST_RANK.

    s, o: the engine's state and options. x: the state of ranks.
    """
    what = next_of_ranks(s, x, o, NEW_DATE)
    while what != NOTHING_MORE:
        status = rank_happens(s, x, what)
        if status != OK:
            return status
        what = next_of_ranks(s, x, o, what)
    return OK


@jit
def events_of_ranks(s, x):
    """How many events ranks may emit at a date (s: the engine's state, x: that of ranks)."""
    return 3 * s.clock[0].n_active if x.counts[0].names == 1 else 0


@jit
def advance(s, x, o):
    """Advance until something needs Python, all ranks have ended, or ``until``; returns why."""
    follow_live(s, o)
    while True:
        if s.clock[0].changed != NO_CHANGE:
            return ROUTES_CHANGED
        status = advance_ready(s, x, o)
        if status != OK:
            return status
        if x.counts[0].unfinished == 0:
            return OK
        counts = x.counts[0]
        if counts.tells == 1 and counts.n_flights + counts.n_messages > x.flights.size:
            return TOLD_FULL
        status = to_next_date(s, o, events_of_ranks(s, x))
        if status != OK:
            return status
        status = process(s, x, o)
        if status != OK:
            return status


@entry
def run(s, x, o):
    """Advance until something needs Python, all ranks have ended, or ``until``; returns why.

    Everything that it leaves undone is in the state: calling it again goes on where it was.
    """
    status = advance(s, x, o)
    write_members(s)
    return status


@jit
def want(s, x, source, target):
    """Note that the route of a pair of hosts is needed; False if the table is too full."""
    key = source * s.resources.size + target + 1
    i = place_of(x, key)
    if x.routes[i].key == key:
        return True
    if 2 * (x.counts[0].n_routes + 1) > x.routes.size:
        return False
    x.routes[i].key = key
    x.routes[i].pattern = -1
    x.counts[0].n_routes += 1
    return True


@jit
def want_ahead(s, x, r, steps):
    """Note the pairs of so many steps of a rank from where it is on; False: too full."""
    rank = x.ranks[r]
    action, phase, step, algorithm = rank.action, rank.phase, rank.step, rank.algorithm
    fits = True
    for _ in range(steps):
        what, peer, _, _ = next_operation(s, x, r)
        if what == FINISHED:
            if rank.action >= rank.last:
                break
            rank.action += 1
            rank.phase = 0
            rank.step = 0
            continue
        if what == NO_MORE:
            rank.phase += 1
            rank.step = 0
            continue
        rank.step += 1
        if what in (POST_SEND, DO_SEND, REQUEST_SEND):
            fits = want(s, x, rank.host, x.ranks[peer].host)
        elif what in (POST_RECEIVE, DO_RECEIVE, REQUEST_RECEIVE) and peer >= 0:
            fits = want(s, x, x.ranks[peer].host, rank.host)
        elif what == COMPUTE:
            fits = want(s, x, rank.host, -1)
        if not fits:
            break
    rank.action = action
    rank.phase = phase
    rank.step = step
    rank.algorithm = algorithm
    return fits


@entry
def look_ahead(s, x):
    """Note the pair that is wanted, and those that the ranks of its application will want next.

    False if the table is too full: to be called again with a larger one.
    """
    counts = x.counts[0]
    if not want(s, x, counts.wanted_source, counts.wanted_target):
        return False
    app = x.apps[x.ranks[counts.ready.first].app]
    for r in range(app.first, app.first + app.ranks):
        if not want_ahead(s, x, r, 4 * app.ranks + 256):
            return False
    return True


@entry
def move_routes(x, routes):
    """Enter routes of another table."""
    for k in range(routes.size):
        if routes[k].key != -1:
            i = place_of(x, routes[k].key)
            x.routes[i].key = routes[k].key
            x.routes[i].pattern = routes[k].pattern
            x.routes[i].unit = routes[k].unit
