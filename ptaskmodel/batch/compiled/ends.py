# mypy: allow-untyped-defs, allow-incomplete-defs
"""Ends of running jobs in the compiled loop: a heap of true ends, blocks of expected ends.

A block holds up to BLOCK_ENTRIES expected ends in order of time, and the sum of their hosts.
``places`` lists the blocks in order, ``spare`` the unused ones.
"""

from __future__ import annotations

from ptaskmodel.batch.compiled.state import BLOCK_ENTRIES
from ptaskmodel.kernels.decorators import jit

INFINITY = float("inf")


@jit
def push_end(s, date, j):
    """Job j will end at a date."""
    clock, ends = s.clock[0], s.ends
    k = clock.n_ends
    clock.n_ends += 1
    while k > 0:
        up = (k - 1) >> 1
        if ends[up].date <= date:
            break
        ends[k].date, ends[k].job = ends[up].date, ends[up].job
        k = up
    ends[k].date, ends[k].job = date, j


@jit
def pop_end(s):
    """The job that ends first."""
    clock, ends = s.clock[0], s.ends
    first = ends[0].job
    clock.n_ends -= 1
    n = clock.n_ends
    date, j, k = ends[n].date, ends[n].job, 0
    while True:
        below = 2 * k + 1
        if below >= n:
            break
        if below + 1 < n and ends[below + 1].date < ends[below].date:
            below += 1
        if ends[below].date >= date:
            break
        ends[k].date, ends[k].job = ends[below].date, ends[below].job
        k = below
    ends[k].date, ends[k].job = date, j
    return first


@jit
def drop_end(s, j):
    """Job j, which runs, will not end at the date that it would have."""
    ends, k = s.ends, 0
    while ends[k].job != j:
        k += 1
    while k > 0:
        up = (k - 1) >> 1
        ends[k].date, ends[k].job = ends[up].date, ends[up].job
        k = up
    pop_end(s)


@jit
def _place_of(s, date):
    """The place of the last block that begins before a date (0 if none does)."""
    low, high = 0, s.clock[0].n_blocks
    while low < high:
        middle = (low + high) >> 1
        if s.expected[s.places[middle] * BLOCK_ENTRIES].date < date:
            low = middle + 1
        else:
            high = middle
    return low - 1 if low > 0 else 0


@jit
def _copy(s, to, of):
    one, other = s.expected[to], s.expected[of]
    one.date, one.job, one.hosts = other.date, other.job, other.hosts


@jit
def _new_block(s, place):
    """A block of nothing, at this place."""
    clock = s.clock[0]
    for k in range(clock.n_blocks, place, -1):
        s.places[k] = s.places[k - 1]
    clock.n_spare -= 1
    b = s.spare[clock.n_spare]
    s.places[place] = b
    s.blocks[b].count, s.blocks[b].hosts = 0, 0
    clock.n_blocks += 1
    return b


@jit
def _split(s, place):
    """Move the second half of a full block to a new one behind it."""
    b, new = s.places[place], _new_block(s, place + 1)
    half, hosts = BLOCK_ENTRIES // 2, 0
    for k in range(half, BLOCK_ENTRIES):
        _copy(s, new * BLOCK_ENTRIES + k - half, b * BLOCK_ENTRIES + k)
        hosts += s.expected[b * BLOCK_ENTRIES + k].hosts
    s.blocks[b].count, s.blocks[new].count = half, BLOCK_ENTRIES - half
    s.blocks[new].hosts = hosts
    s.blocks[b].hosts -= hosts
    return new


@jit
def expect(s, j):
    """Job j is expected to end."""
    date, hosts = s.jobs[j].expected, s.jobs[j].hosts
    if s.clock[0].n_blocks == 0:
        _new_block(s, 0)
    place = _place_of(s, date)
    b = s.places[place]
    if s.blocks[b].count == BLOCK_ENTRIES:
        new = _split(s, place)
        if s.expected[new * BLOCK_ENTRIES].date < date:
            b = new
    first = b * BLOCK_ENTRIES
    k = first + s.blocks[b].count
    while k > first and s.expected[k - 1].date > date:
        _copy(s, k, k - 1)
        k -= 1
    entry = s.expected[k]
    entry.date, entry.job, entry.hosts = date, j, hosts
    s.blocks[b].count += 1
    s.blocks[b].hosts += hosts


@jit
def expect_no_more(s, j):
    """Job j has ended, or is expected at another date."""
    clock, date = s.clock[0], s.jobs[j].expected
    place = _place_of(s, date)
    while True:
        b = s.places[place]
        first, count = b * BLOCK_ENTRIES, s.blocks[b].count
        k = first
        while k < first + count and s.expected[k].job != j:
            k += 1
        if k < first + count:
            break
        place += 1
    for m in range(k, first + count - 1):
        _copy(s, m, m + 1)
    s.blocks[b].count -= 1
    s.blocks[b].hosts -= s.jobs[j].hosts
    if count == 1:
        clock.n_blocks -= 1
        for m in range(place, clock.n_blocks):
            s.places[m] = s.places[m + 1]
        s.spare[clock.n_spare] = b
        clock.n_spare += 1


@jit
def first_room(s, count):
    """(date, hosts free then): when so many hosts are expected to be free (`View.first_room`)."""
    clock = s.clock[0]
    free, place, date = clock.free, 0, INFINITY
    while place < clock.n_blocks and free + s.blocks[s.places[place]].hosts < count:
        free += s.blocks[s.places[place]].hosts
        place += 1
    while place < clock.n_blocks:
        b = s.places[place]
        for k in range(b * BLOCK_ENTRIES, b * BLOCK_ENTRIES + s.blocks[b].count):
            if s.expected[k].date > date:
                return date, free
            free += s.expected[k].hosts
            if date == INFINITY and free >= count:
                date = s.expected[k].date
        place += 1
    return date, free


@jit
def _outlived(s):
    """A job that has outlived its estimate, unless it started just now; -1 if there is none."""
    clock = s.clock[0]
    for place in range(clock.n_blocks):
        b = s.places[place]
        for k in range(b * BLOCK_ENTRIES, b * BLOCK_ENTRIES + s.blocks[b].count):
            if s.expected[k].date > clock.now:
                return -1
            if s.jobs[s.expected[k].job].start < clock.now:
                return s.expected[k].job
    return -1


@jit
def extend_outlived(s):
    """Double the estimates of the jobs that outlived them, never beyond their walltime.

    Whether there was any.
    """
    now, found = s.clock[0].now, False
    while True:
        j = _outlived(s)
        if j < 0:
            return found
        found = True
        job = s.jobs[j]
        expect_no_more(s, j)
        extend(job, now)
        expect(s, j)


@jit
def extend(job, now):
    """Double the estimate of a job that has outlived it."""
    lasts = job.expected - job.start
    if lasts == 0.0:
        lasts = now - job.start
    while job.start + lasts <= now:
        lasts *= 2
    job.expected = job.start + min(lasts, job.walltime)
