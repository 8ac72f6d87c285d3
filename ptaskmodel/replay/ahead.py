"""Which pairs of hosts ranks are about to need, so that their routes are found together."""

from __future__ import annotations

from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.replay.messages import place_of
from ptaskmodel.replay.ranks import next_operation
from ptaskmodel.replay.steps import (
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
    app = x.apps[x.ranks[counts.first_ready].app]
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
