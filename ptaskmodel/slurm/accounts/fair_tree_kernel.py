# mypy: allow-untyped-defs, allow-incomplete-defs
"""Kernel of Fair Tree: the factors of users by their ranks in the tree of associations.

`fair_share.ShareTree` calls it.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import entry, jit


@jit
def _comes_before(k, other, high, low, ties):
    """Whether an association has a higher level than another, or an equal one and comes first."""
    if high[k] != high[other]:
        return high[k] > high[other]
    if low[k] != low[other]:
        return low[k] > low[other]
    return ties[k] < ties[other]


@entry
def rank(high, low, fixed, ties, order, begins, is_user, users, stack, factors):
    """Set the factors of all users, by depth first from root.

    high, low: the level of each association is their sum; nan: it has used nothing. fixed: levels
    that do not depend on usage; nan: it does. ties: the place of each among equals. order:
    associations but root, family by family, each as it was before; it is sorted by level. begins:
    of each association where its family begins in that, and at last where all end. is_user: of
    each. users: how many. stack: scratch, for two of each.
    """
    for k in range(len(high)):
        if fixed[k] == fixed[k]:
            high[k] = fixed[k]
        if not high[k] < np.inf:
            high[k] = np.inf
        if fixed[k] == fixed[k] or high[k] == np.inf:
            low[k] = 0.0
    for family in range(len(begins) - 1):
        for place in range(begins[family] + 1, begins[family + 1]):
            k, to = order[place], place
            while to > begins[family] and _comes_before(k, order[to - 1], high, low, ties):
                order[to] = order[to - 1]
                to -= 1
            order[to] = k
    depth, ranked, last = 1, 0, 0
    # Where the next of a family is; whether the first of it shares the rank of the one before.
    stack[0, 0], stack[0, 1] = begins[0], 0
    stack[0, 2] = begins[1]
    while depth > 0:
        place = stack[depth - 1, 0]
        if place >= stack[depth - 1, 2]:
            depth -= 1
            continue
        tied = stack[depth - 1, 1]
        stack[depth - 1, 0] = place + 1
        k = order[place]
        if place + 1 < stack[depth - 1, 2]:
            following = order[place + 1]
            equal = high[k] == high[following] and low[k] == low[following]
            stack[depth - 1, 1] = np.int64(equal)
        if is_user[k]:
            if tied == 0:
                last = ranked
            factors[k] = (users - last) / users
            ranked += 1
        elif begins[k] < begins[k + 1]:
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = begins[k], tied, begins[k + 1]
            depth += 1
