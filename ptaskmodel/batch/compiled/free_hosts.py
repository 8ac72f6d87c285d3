"""First fit: which hosts are free, as runs of consecutive ones; the lowest run is the last."""

from __future__ import annotations

from ptaskmodel.kernels.decorators import jit


@jit
def take_hosts(s, count):
    """The lowest free hosts become the next pieces."""
    clock, runs = s.clock[0], s.runs
    while count > 0:
        run, piece = runs[clock.n_runs - 1], s.pieces[clock.n_pieces]
        taken = min(run.length, count)
        piece.first, piece.length = run.first, taken
        clock.n_pieces += 1
        count -= taken
        if taken == run.length:
            clock.n_runs -= 1
        else:
            run.first += taken
            run.length -= taken


@jit
def give_hosts(s, first, length):
    """A piece is free again: it joins its neighbours."""
    clock, runs = s.clock[0], s.runs
    low, high = 0, clock.n_runs
    while low < high:
        middle = (low + high) >> 1
        if runs[middle].first > first:
            low = middle + 1
        else:
            high = middle
    joins_above = low > 0 and first + length == runs[low - 1].first
    joins_below = low < clock.n_runs and runs[low].first + runs[low].length == first
    if joins_above and joins_below:
        runs[low].length += length + runs[low - 1].length
        clock.n_runs -= 1
        for k in range(low - 1, clock.n_runs):
            runs[k].first, runs[k].length = runs[k + 1].first, runs[k + 1].length
    elif joins_above:
        runs[low - 1].first = first
        runs[low - 1].length += length
    elif joins_below:
        runs[low].length += length
    else:
        for k in range(clock.n_runs, low, -1):
            runs[k].first, runs[k].length = runs[k - 1].first, runs[k - 1].length
        runs[low].first, runs[low].length = first, length
        clock.n_runs += 1
