"""interim"""

from ptaskmodel.jit import jit


@jit
def solve_bmf(
    start, resource, usage, share, capacity, fatpipe, bound, weight, level, warm, rate, limit
):
    return 1
