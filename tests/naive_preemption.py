"""Preemption, failures and maintenance done the slow and obvious way: the reference for tests.

Every date looks at every job; hosts are sets of numbers. It shares nothing with ptaskmodel.batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf


@dataclass(eq=False)
class NaiveJob:
    """What a job asks for and, while it runs or is suspended, where it is and what is left."""

    id: str
    submit: float
    size: int
    duration: float
    estimate: float
    priority: int = 0
    rank: int = 0
    hosts: frozenset = frozenset()
    left: float = 0.0
    believed: float = 0.0  # seconds to run, as the scheduler believes
    began: int = -1
    ordinal: int = -1
    state: str = "coming"
    log: list = field(default_factory=list)  # [ordinal, start, end, hosts, state, suspended s]
    saved: float = 0.0  # seconds of its work that a checkpoint holds
    phases: list = field(default_factory=list)  # [what, seconds] still to go through
    kept: float = 0.0  # seconds of this attempt that a checkpoint holds
    worked: float = 0.0  # seconds of this attempt


class Naive:
    """A machine of some hosts, and what happens on it date by date."""

    def __init__(self, jobs, hosts, decide, failures=(), windows=(), requeue=True, checkpoint=None):
        self.checkpoint = checkpoint or (inf, 0.0, 0.0)  # interval, write, read
        self.jobs = jobs
        self.all = frozenset(range(hosts))
        self.decide = decide
        self.failures = sorted(failures)  # (date, host, up)
        self.windows = windows  # (hosts, start, end)
        self.requeue = requeue
        self.down = set()
        self.now = 0.0
        self.starts = 0
        self.wakes = set()
        self.memory = {}
        for rank, job in enumerate(jobs):
            job.rank = rank

    # --- what the schedulers look at --------------------------------------------------------

    def those(self, state):
        return [job for job in self.jobs if job.state == state]

    @property
    def queue(self):
        return self.those("waiting")

    @property
    def running(self):
        return sorted(self.those("running"), key=lambda job: job.began)

    @property
    def suspended(self):
        return sorted(self.those("suspended"), key=lambda job: job.began)

    def usable(self, begin, end):
        """Hosts that are up, and in no window from begin until end."""
        gone = set(self.down)
        for hosts, start, stop in self.windows:
            if (start < end and stop > begin) or start <= begin < stop:
                gone |= hosts
        return self.all - gone

    def free(self):
        return self.usable(self.now, self.now).difference(*(job.hosts for job in self.running))

    def room(self, job, hosts):
        """Those of the hosts on which a job could be until its end by its estimate."""
        return hosts & self.usable(self.now, self.now + job.estimate)

    # --- what they do -----------------------------------------------------------------------

    def start(self, job, hosts):
        assert len(hosts) == job.size
        assert job.state == "waiting"
        assert hosts <= self.room(job, self.free())
        job.state, job.hosts = "running", frozenset(hosts)
        job.believed, job.kept, job.worked = job.estimate, 0.0, 0.0
        job.phases = self.phases(job)
        job.left = sum(seconds for _, seconds in job.phases)
        job.began, self.starts = self.starts, self.starts + 1
        job.ordinal += 1
        job.log.append([job.ordinal, self.now, None, tuple(sorted(hosts)), "", 0.0])

    def phases(self, job):
        """What a job goes through: it reads, works an interval, writes, works another ..."""
        interval, write, read = self.checkpoint
        found, left = ([["read", read]] if job.saved else []), job.duration - job.saved
        while left > interval:
            found += [["work", interval], ["write", write]]
            left -= interval
        return [*found, ["work", left]]

    def go_through(self, job, seconds):
        while job.phases and seconds >= job.phases[0][1]:
            what, spent = job.phases.pop(0)
            seconds -= spent
            job.worked += spent * (what == "work")
            if what == "write":
                job.kept = job.worked
        if job.phases:
            job.phases[0][1] -= seconds
            job.worked += seconds * (job.phases[0][0] == "work")

    def stop(self, job, state, final):
        job.saved += job.kept
        job.log[-1][2], job.log[-1][4] = self.now, state
        job.state = "over" if final else "waiting"
        job.hosts = frozenset()

    def suspend(self, job):
        assert job.state == "running"
        job.state = "suspended"

    def resume(self, job):
        assert job.state == "suspended"
        assert job.hosts <= self.free()
        job.state = "running"

    # --- time -------------------------------------------------------------------------------

    def go(self, date):
        for job in self.jobs:
            if job.state == "running":
                job.left -= date - self.now
                self.go_through(job, date - self.now)
                job.believed -= date - self.now
                if abs(job.left) < 1e-9:
                    job.left = 0.0
            elif job.state == "suspended":
                job.log[-1][5] += date - self.now
        self.now = date

    def interrupt(self, hosts):
        for job in [*self.running, *self.suspended]:
            if job.hosts & set(hosts):
                self.stop(job, "FAILED", final=not self.requeue)

    def run(self):
        while any(job.state not in ("over",) for job in self.jobs):
            dates = [self.now + job.left for job in self.running]
            dates += [job.submit for job in self.those("coming")]
            dates += [date for date, _, _ in self.failures[:1]]
            dates += [d for _, start, end in self.windows for d in (start, end) if d > self.now]
            dates += [date for date in self.wakes if date > self.now]
            date = min(dates)
            assert date < inf
            self.go(date)
            for job in self.running:
                if job.left <= 0:
                    self.stop(job, "DONE", final=True)
            while self.failures and self.failures[0][0] <= date:
                _, host, up = self.failures.pop(0)
                if up:
                    self.down.discard(host)
                elif host not in self.down:
                    self.down.add(host)
                    self.interrupt({host})
            for hosts, start, _ in self.windows:
                if start == date:
                    self.interrupt(hosts)
            for job in self.those("coming"):
                if job.submit <= date:
                    job.state = "waiting"
            self.decide(self)
            while again := self.those("pushed aside"):
                for job in again:
                    job.state = "waiting"
                self.decide(self)
        return {job.id: job.log for job in self.jobs}


def lowest(hosts, count):
    return frozenset(sorted(hosts)[:count])


def fcfs(machine):
    for job in machine.queue:
        room = machine.room(job, machine.free())
        if len(room) < job.size:
            return
        machine.start(job, lowest(room, job.size))


def fill(machine):
    for job in machine.queue:
        room = machine.room(job, machine.free())
        if len(room) >= job.size:
            machine.start(job, lowest(room, job.size))


def easy(machine, waiting=None, within=None):
    """EASY; where maintenance is to come a reservation is a place, else a number of hosts."""
    waiting = machine.queue if waiting is None else waiting
    within = machine.all if within is None else within
    while waiting:
        room = machine.room(waiting[0], machine.free() & within)
        if len(room) < waiting[0].size:
            break
        machine.start(waiting[0], lowest(room, waiting[0].size))
        waiting = waiting[1:]
    if not waiting:
        return
    head, candidates = waiting[0], waiting[1:]
    if any(end > machine.now for _, _, end in machine.windows):
        backfill_places(machine, head, candidates, within)
    else:
        backfill_counts(machine, head, candidates, within)


def backfill_counts(machine, head, candidates, within):
    available = machine.usable(machine.now, machine.now) & within
    date, extra = inf, 0
    if head.size > len(available):
        extra, date = inf, -inf
    else:
        for end in sorted({machine.now + job.believed for job in machine.running}):
            later = [job for job in machine.running if machine.now + job.believed > end + 1e-9]
            free = available.difference(*(job.hosts for job in later))
            if len(free) >= head.size:
                date, extra = end, len(free) - head.size
                break
    for job in candidates:
        room = machine.free() & within
        if len(room) < job.size:
            continue
        if machine.now + job.estimate > date + 1e-9 or date == inf:
            if extra < job.size:
                continue
            extra -= job.size
        machine.start(job, lowest(room, job.size))


def backfill_places(machine, head, candidates, within, below=()):
    """below: jobs that do not count."""
    date, place = reservation(machine, head, within, below)
    for job in candidates:
        room = machine.room(job, machine.free() & within)
        if machine.now + job.estimate > date + 1e-9:
            room -= place
        if len(room) >= job.size:
            machine.start(job, lowest(room, job.size))


def reservation(machine, head, within, below=(), held=frozenset()):
    """(date, hosts) of the first job that does not fit; (inf, none): not to be foreseen."""
    there = [job for job in machine.running if job not in below]
    dates = {machine.now + job.believed for job in there}
    dates |= {end for _, _, end in machine.windows if end > machine.now}
    for date in sorted(dates):
        busy = [job.hosts for job in there if machine.now + job.believed > date + 1e-9]
        room = (machine.usable(date, date + head.estimate) & within).difference(*busy) - held
        if len(room) >= head.size:
            return date, lowest(room, head.size)
    return inf, frozenset()


def preemptive(mechanism):
    """Each priority as if those below it were not there."""

    def decide(machine):
        levels = {job.priority for job in machine.queue + machine.suspended}
        for level in sorted(levels, reverse=True):
            for job in machine.suspended:
                if job.priority == level and job.hosts <= machine.free():
                    left = machine.usable(machine.now, machine.now + job.believed)
                    if job.hosts <= left:
                        machine.resume(job)
            waiting = [job for job in machine.queue if job.priority == level]
            if not any(job.priority < level for job in machine.running):
                held = set().union(*(job.hosts for job in machine.suspended))
                easy(machine, waiting, machine.all - held)
            else:
                above_others(machine, level, waiting, mechanism)

    return decide


def above_others(machine, level, waiting, mechanism):
    def below():
        return [job for job in machine.running if job.priority < level]

    def held():
        kept = (job.hosts for job in machine.suspended if job.priority >= level)
        return frozenset().union(*kept)

    def without_those_below(job):
        there = (other.hosts for other in machine.running if other.priority >= level)
        hosts = machine.usable(machine.now, machine.now).difference(*there) - held()
        return machine.room(job, hosts)

    def begin(job, room):
        """Whether it started, those in the way pushed aside."""
        if len(room) < job.size:
            return False
        beside = (machine.free() - held()) & room
        if len(beside) >= job.size:
            machine.start(job, lowest(beside, job.size))
            return True
        victims = sorted(below(), key=lambda other: (other.priority, other.size, other.began))
        for again in (False, True):
            hosts, used = set(machine.free() - held()), []
            for victim in victims:
                hosts |= victim.hosts
                used.append(victim)
                if len((hosts - held()) & room) >= job.size:
                    break
            if not again:
                last = used.pop()
                victims = [last, *sorted(used, key=lambda other: (-other.size, other.began))]
        place = lowest((hosts - held()) & room, job.size)
        for victim in used:
            if victim.hosts & place:
                if mechanism == "suspend":
                    machine.suspend(victim)
                else:
                    machine.stop(victim, "KILLED", final=mechanism == "kill")
                    if mechanism == "requeue":
                        victim.state = "pushed aside"  # it waits again once all is decided
        machine.start(job, place)
        return True

    waiting = list(waiting)
    while waiting and begin(waiting[0], without_those_below(waiting[0])):
        waiting.pop(0)
    if not waiting:
        return
    head = waiting.pop(0)
    date, place = reservation(machine, head, machine.all, below(), held())
    taken = set(place)
    for job in waiting:
        room = without_those_below(job)
        late = machine.now + job.estimate > date + 1e-9
        if late:
            room = room - taken
        if begin(job, room) and late:
            taken |= job.hosts


def gang(slice_s, max_rows, fill):
    """Ousterhout's matrix: rows of jobs with disjoint hosts take turns."""

    def decide(machine):
        memory = machine.memory
        rows, turn = memory.setdefault("rows", []), memory.get("turn", 0)
        alive = machine.running + machine.suspended
        rows = [[(job, hosts) for job, hosts in row if job in alive] for row in rows]
        over = bool(rows) and not rows[turn]
        turn -= sum(1 for row in rows[:turn] if not row)
        rows = [row for row in rows if row]
        turn = turn if turn < len(rows) else 0
        for job in machine.queue:
            order = [*range(turn, len(rows)), *range(turn)]
            if len(rows) < max_rows:
                order.append(len(rows))
            for k in order:
                used = rows[k] if k < len(rows) else []
                room = machine.room(job, machine.usable(machine.now, machine.now))
                room = room.difference(*(hosts for _, hosts in used))
                if len(room) >= job.size:
                    break
            else:
                break
            if k == len(rows):
                rows.append([])
            rows[k].append((job, lowest(room, job.size)))
        if rows:
            if machine.now >= memory.get("end", inf) and not over:
                turn += 1
            turn %= len(rows)
        chosen, busy = [], set()
        for k in range(len(rows) if fill else min(1, len(rows))):
            for job, hosts in rows[(turn + k) % len(rows)]:
                if not hosts & busy:
                    chosen.append((job, hosts))
                    busy |= hosts
        jobs = [job for job, _ in chosen]
        for job in machine.running:
            if job not in jobs:
                machine.suspend(job)
        for job in machine.suspended:
            until = machine.now + job.believed
            if job in jobs and job.hosts <= machine.usable(machine.now, until) & machine.free():
                machine.resume(job)
        for job, hosts in chosen:
            if job.state == "waiting" and hosts <= machine.room(job, machine.free()):
                machine.start(job, hosts)
        if len(rows) < 2:
            memory["end"] = inf
        elif not machine.now < memory.get("end", inf) < inf:
            memory["end"] = (machine.now // slice_s + 1) * slice_s
            machine.wakes.add(memory["end"])
        memory["rows"], memory["turn"] = rows, turn

    return decide
