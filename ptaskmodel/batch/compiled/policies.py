# mypy: allow-untyped-defs, allow-incomplete-defs
"""Kernels of the built-in policies; decisions are bit-identical to those of `batch.policies`.

`batch.policies` defines the same policies in Python, for the open loop; change both together. Tests
compare them (tests/batch). With redirection, each running job has a counter, and the last hosts
form a second group. The state describes the principal group. Of the redirection group, it holds
only the running jobs and those that wait for it.
"""

from __future__ import annotations

from ptaskmodel.batch.compiled.ends import (
    drop_end,
    expect,
    expect_no_more,
    extend,
    first_room,
    push_end,
)
from ptaskmodel.batch.compiled.queue import (
    LARGEST,
    add_free,
    earliest,
    fewest_free,
    first_from,
    fits_now,
    give_instant,
    leave,
    most_free,
    sooner,
    take_hosts,
    take_instant,
)
from ptaskmodel.batch.compiled.state import (
    BLOCK_ENTRIES,
    BY_COUNTER,
    BY_ESTIMATE,
    BY_HOSTS,
    NO_DATE,
)
from ptaskmodel.kernels.decorators import jit

INFINITY = float("inf")
# So many new jobs are looked at one by one; more are found in the queue.
FEW_FRESH = 4


@jit
def begin(s, j):
    """Start a job now."""
    clock, job = s.clock[0], s.jobs[j]
    job.start = clock.now
    job.expected = clock.now + job.estimate
    job.number, job.began = clock.started, clock.decisions
    s.order[clock.started] = j
    expect(s, j)
    if job.duration < INFINITY:
        push_end(s, clock.now + job.duration, j)
    clock.free -= job.hosts
    clock.waiting -= 1
    if clock.picks:
        take_hosts(s, job.hosts)
    clock.started += 1
    s.first_piece[clock.started] = clock.n_pieces


@jit
def start_in_order(s):
    """Start the first of the queue as long as they fit; the job that does not, or -1."""
    clock, rank = s.clock[0], 0
    while clock.waiting > 0:
        rank = first_from(s.queue, clock.leaves, rank, LARGEST - 1, LARGEST - 1, 0.0, INFINITY)
        j = s.by_rank[rank]
        if s.jobs[j].hosts > clock.free:
            return j
        leave(s, j)
        begin(s, j)
        rank += 1
    return -1


@jit
def fill(s):
    """Start whatever fits."""
    clock, rank = s.clock[0], 0
    while clock.waiting > 0:
        rank = first_from(s.queue, clock.leaves, rank, clock.free, clock.free, 0.0, INFINITY)
        if rank < 0:
            return
        leave(s, s.by_rank[rank])
        begin(s, s.by_rank[rank])
        rank += 1


# --- EASY


@jit
def backfill(s, changed):
    """EASY. ``changed``: whether somebody ended or an estimate was outlived.

    As long as nobody does, (head, shadow, extra) hold, and only those submitted since can start:
    dates go on, and there are never more free hosts. Without a shadow they do not hold, as those
    that started are expected to be gone by then.
    """
    clock = s.clock[0]
    before = clock.started
    head = start_in_order(s)
    anew = changed or not clock.kept or head != clock.head or clock.started > before
    if anew:
        clock.kept = False
    if clock.waiting < 2 or clock.free == 0:
        return
    if anew:
        clock.head = head
        clock.shadow, free = first_room(s, s.jobs[head].hosts)
        clock.extra = free - s.jobs[head].hosts
        clock.kept = clock.shadow < INFINITY
    if not anew and clock.n_fresh <= FEW_FRESH and not clock.sorts:
        _backfill_fresh(s)
    else:
        _backfill_all(s)


@jit
def _backfill_all(s):
    clock, rank = s.clock[0], 0
    while clock.free > 0:
        if clock.sorts:
            tree, jobs = s.candidates, s.by_candidate
        else:
            tree, jobs = s.queue, s.by_rank
        rank = first_from(
            tree, clock.leaves, rank, clock.free, clock.extra, clock.now, clock.shadow
        )
        if rank < 0:
            return
        _overtake(s, jobs[rank])
        rank += 1


@jit
def _backfill_fresh(s):
    clock, fresh = s.clock[0], s.fresh
    for k in range(1, clock.n_fresh):
        j, m = fresh[k], k
        while m > 0 and s.jobs[fresh[m - 1]].rank > s.jobs[j].rank:
            fresh[m] = fresh[m - 1]
            m -= 1
        fresh[m] = j
    for k in range(clock.n_fresh):
        job = s.jobs[fresh[k]]
        if job.hosts <= clock.free and (
            job.hosts <= clock.extra
            or (clock.now + job.estimate <= clock.shadow and clock.shadow < INFINITY)
        ):
            _overtake(s, fresh[k])
            if clock.free == 0:
                return


@jit
def _overtake(s, j):
    """Start a job before the head of the queue."""
    clock, job = s.clock[0], s.jobs[j]
    if not (clock.now + job.estimate <= clock.shadow and clock.shadow < INFINITY):
        clock.extra -= job.hosts
    leave(s, j)
    begin(s, j)


# --- conservative


@jit
def enter_ranks(s, j):
    """A job waits, for a policy that goes through all that do."""
    clock, rank = s.clock[0], s.jobs[j].rank
    k = clock.n_queue
    while k > 0 and s.ranks[k - 1] > rank:
        s.ranks[k] = s.ranks[k - 1]
        k -= 1
    s.ranks[k] = rank
    clock.n_queue += 1


@jit
def _reserve(s, j):
    """Give a job the first date at which it delays no other job."""
    job = s.jobs[j]
    _book(s, j, earliest(s, job.hosts, job.estimate))


@jit
def _book(s, j, date):
    """Give a job a reservation."""
    clock, job = s.clock[0], s.jobs[j]
    if _lasts(job, date):
        add_free(s, date, date + job.estimate, -job.hosts)
    else:
        clock.brief = True
        if clock.now < date < INFINITY:
            take_instant(s, date, job.hosts, _hosts_at(s, date, True))
    job.date = date
    clock.first_date = min(clock.first_date, date)


@jit
def _lasts(job, date):
    """Whether a job, from a date on, has a length."""
    return date < date + job.estimate


@jit
def _hosts_at(s, date, lasting):
    """The hosts reserved from a date on for those that last; or the most for one that does not."""
    found = 0 if lasting else -1
    for q in range(s.clock[0].n_queue):
        job = s.jobs[s.by_rank[s.ranks[q]]]
        if job.date == date and _lasts(job, date) == lasting:
            found = found + job.hosts if lasting else max(found, job.hosts)
    return found


@jit
def _cancel(s, j):
    """A job has no reservation any more."""
    job = s.jobs[j]
    date, job.date = job.date, NO_DATE
    if _lasts(job, date):
        add_free(s, date, date + job.estimate, job.hosts)
    else:
        give_instant(s, date, _hosts_at(s, date, False))


@jit
def _reserve_anew(s):
    """A calendar with the running jobs alone, then those that hold reservations."""
    clock = s.clock[0]
    s.slots[0].date, s.slots[0].free = clock.now, clock.hosts
    clock.n_slots, clock.n_instants = 1, 0
    for place in range(clock.n_blocks):
        b = s.places[place]
        for k in range(b * BLOCK_ENTRIES, b * BLOCK_ENTRIES + s.blocks[b].count):
            add_free(s, clock.now, s.expected[k].date, -s.expected[k].hosts)
    clock.first_date = INFINITY
    for q in range(clock.n_queue):
        s.jobs[s.by_rank[s.ranks[q]]].date = NO_DATE
    for q in range(clock.n_queue):
        _reserve(s, s.by_rank[s.ranks[q]])


@jit
def _move_forward(s, reach):
    """Each waiting job in turn moves to the first date that is possible now, until nobody can.

    A job moves only if a date is found by reading. After the last time that nobody could, only what
    was given back, before ``reach``, is freer: a new date begins before, and needs no more than the
    most hosts free there. A reservation of no date is simply made again.
    """
    clock, moved = s.clock[0], True
    room = most_free(s, reach)
    while moved:
        moved = False
        for q in range(clock.n_queue):
            j = s.by_rank[s.ranks[q]]
            job = s.jobs[j]
            date, end = job.date, job.date + job.estimate
            if date == NO_DATE:
                continue
            if date == INFINITY:
                _reserve(s, j)
                moved = moved or job.date < date
            elif job.hosts <= room:
                new = sooner(s, job.hosts, job.estimate, date, reach)
                if new < date:
                    _cancel(s, j)
                    _book(s, j, new)
                    reach = max(reach, end)
                    room = most_free(s, reach)
                    moved = True


@jit
def keep_promises(s, late, reach):
    """Conservative. late: some estimate was outlived. reach: until when hosts were given back."""
    clock = s.clock[0]
    if clock.n_slots == 0 or late:
        _reserve_anew(s)
    else:
        if reach > clock.now:
            _move_forward(s, reach)
        if clock.depth == 0:
            _reserve_fresh(s)
    blocked = False
    if clock.depth > 0:
        _reserve_more(s)
    while clock.first_date <= clock.now and not blocked:
        blocked = _start_due(s)
        if clock.depth > 0 and not blocked:
            _reserve_more(s)
    if clock.depth > 0 and not blocked:
        _start_beside(s)


@jit
def _reserve_fresh(s):
    """Give jobs submitted now their reservations, in the order of the queue."""
    clock = s.clock[0]
    if clock.n_fresh == 1:
        _reserve(s, s.fresh[0])
    elif clock.n_fresh > 1:
        for q in range(clock.n_queue):
            if s.jobs[s.by_rank[s.ranks[q]]].date == NO_DATE:
                _reserve(s, s.by_rank[s.ranks[q]])


@jit
def _reserve_more(s):
    """The first jobs of the queue without a reservation get one, as far as there are any."""
    clock = s.clock[0]
    while clock.n_queue < clock.depth and clock.n_queue < clock.waiting:
        rank = first_from(s.queue, clock.leaves, 0, LARGEST - 1, LARGEST - 1, 0.0, INFINITY)
        j = s.by_rank[rank]
        leave(s, j)
        enter_ranks(s, j)
        _reserve(s, j)


@jit
def _start_beside(s):
    """Start the jobs without reservations that delay none, in the order of the queue."""
    clock, rank, least = s.clock[0], 0, fewest_free(s)
    while clock.n_queue < clock.waiting:
        free, fewest, until = s.slots[0].free, s.slots[least].free, s.slots[least].date
        rank = first_from(s.queue, clock.leaves, rank, free, fewest, clock.now, until)
        if rank < 0:
            return
        j = s.by_rank[rank]
        job = s.jobs[j]
        if fits_now(s, job.hosts, job.estimate):
            if job.hosts > clock.free:
                return  # a job of 0 s is still there
            leave(s, j)
            add_free(s, clock.now, clock.now + job.estimate, -job.hosts)
            begin(s, j)
            least = fewest_free(s)
        rank += 1


@jit
def _start_due(s):
    """Start those whose date has come, in the order of the queue, those of no length first.

    Whether one is blocked.
    """
    blocked = s.clock[0].brief and _start_lasting(s, False, False)
    return _start_lasting(s, True, blocked)


@jit
def _start_lasting(s, lasting, blocked):
    """Start those that are due and last, or those that do not; whether one is blocked.

    One that does not fit waits for a job of 0 s that is still there, and so do those behind it.
    """
    clock, left = s.clock[0], 0
    clock.first_date = INFINITY
    for q in range(clock.n_queue):
        j = s.by_rank[s.ranks[q]]
        job = s.jobs[j]
        if job.date <= clock.now and _lasts(job, clock.now) == lasting:
            if not blocked and job.hosts <= clock.free:
                begin(s, j)
                continue
            blocked = True
        clock.first_date = min(clock.first_date, job.date)
        s.ranks[left] = s.ranks[q]
        left += 1
    clock.n_queue = left
    return blocked


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
    """Count for the jobs submitted now, from ``first`` on, that wait, and move jobs that qualify.

    Return whether a moved job has to wait.
    """
    clock, before = s.clock[0], s.clock[0].n_lost
    for j in range(first, clock.position):
        if s.queue[clock.leaves + s.jobs[j].rank].hosts == LARGEST:
            continue
        chosen = _count(s, s.jobs[j].estimate)
        if chosen >= 0:
            _forget_counts(s)
            _set_apart(s, chosen)
            start_apart(s)
            backfill(s, True)
    return clock.n_again < clock.n_lost and clock.n_lost > before


@jit
def _count(s, estimate):
    """Raise the counters of jobs that are not shorter; return the job to redirect, or -1."""
    clock, chosen, least = s.clock[0], -1, 0.0
    for place in range(clock.n_blocks):
        b = s.places[place]
        for k in range(b * BLOCK_ENTRIES, b * BLOCK_ENTRIES + s.blocks[b].count):
            j = s.expected[k].job
            job = s.jobs[j]
            if job.estimate < estimate:
                continue
            job.counter += 1
            room = clock.hosts_apart if clock.queues else clock.free_apart
            if job.counter > clock.theta and job.hosts <= room:
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
    """Stop a job, which is to begin anew in the group set apart."""
    clock, job, lost = s.clock[0], s.jobs[j], s.lost[s.clock[0].n_lost]
    lost.job, lost.number, lost.began, lost.before = j, job.number, job.began, clock.started
    lost.start, lost.expected, lost.end = job.start, job.expected, clock.now
    clock.n_lost += 1
    expect_no_more(s, j)
    drop_end(s, j)
    clock.free += job.hosts
    job.apart = 1


@jit
def start_apart(s):
    """Begin the jobs that were moved anew, in order, as long as they fit. s: the state."""
    clock = s.clock[0]
    while clock.n_again < clock.n_lost:
        j = s.lost[clock.n_again].job
        job = s.jobs[j]
        if job.hosts > clock.free_apart:
            return
        clock.n_again += 1
        job.start, job.expected = clock.now, clock.now + job.estimate
        job.number, job.began = clock.started, clock.decisions
        s.order[clock.started] = j
        clock.started += 1
        push_end(s, clock.now + job.duration, j)
        clock.free_apart -= job.hosts
        s.apart[clock.n_apart] = j
        clock.n_apart += 1
