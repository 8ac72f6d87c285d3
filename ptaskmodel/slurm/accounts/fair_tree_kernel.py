# mypy: allow-untyped-defs, allow-incomplete-defs
"""Kernel of Fair Tree: the factors of users by their ranks in the tree of associations.

`fair_share.ShareTree` calls it.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import entry


@entry
def rank(order, equal, begins, is_user, users, stack, factors):
    """Set the factors of all users, by depth first from root.

    order: associations but root, family by family, each in its order. equal: whether each is on the
    level of the one before. begins: of each association where its family begins in that, and at
    last where all end. is_user: of each. users: how many. stack: scratch, for two of each.
    """
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
            stack[depth - 1, 1] = np.int64(equal[place + 1])
        if is_user[k]:
            if tied == 0:
                last = ranked
            factors[k] = (users - last) / users
            ranked += 1
        elif begins[k] < begins[k + 1]:
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = begins[k], tied, begins[k + 1]
            depth += 1
