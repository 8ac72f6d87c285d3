"""Batch scheduling done the slow and obvious way: the reference for the policies.

Everything is recomputed at every date from lists of jobs, by the definitions. It shares nothing
with ptaskmodel.batch. Hosts are given lowest number first.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from math import inf


@dataclass
class NaiveJob:
    """A job: what it asks for, how long it runs and how long it is believed to run."""

    id: str
    submit: float
    size: int
    duration: float
    estimate: float
    start: float = inf
    hosts: list[int] = field(default_factory=list)

    @property
    def end(self) -> float:
        return self.start + self.duration

    @property
    def expected_end(self) -> float:
        return self.start + self.estimate


def first_come(queue, running, now, num_hosts, memory):
    """The first of the queue as long as it fits."""
    started = []
    for job in queue:
        if job.size > free_at(now, running, num_hosts):
            break
        begin(job, now, running, num_hosts)
        started.append(job)
    return started


def fill(queue, running, now, num_hosts, memory):
    """Whatever fits."""
    started = []
    for job in queue:
        if job.size <= free_at(now, running, num_hosts):
            begin(job, now, running, num_hosts)
            started.append(job)
    return started


def easy(queue, running, now, num_hosts, memory):
    """Whatever fits and, by the estimates, leaves the date of the first that does not as it is."""
    started = first_come(queue, running, now, num_hosts, memory)
    waiting = [job for job in queue if job not in started]
    if not waiting:
        return started
    head = waiting[0]
    date = head_date(head, running, now, num_hosts)
    for job in waiting[1:]:
        if job.size > free_at(now, running, num_hosts):
            continue
        begin(job, now, running, num_hosts)
        if head_date(head, running, now, num_hosts) > date:
            running.remove(job)
            job.start, job.hosts = inf, []
        else:
            started.append(job)
    return started


def conservative(queue, running, now, num_hosts, memory):
    """Each job a date that delays nobody; all move forward, till none can, at an early end."""
    dates = memory.setdefault("dates", {})
    before = None
    while memory["early"] and before != dates:
        before = dict(dates)
        for job in queue:
            if job.id in dates:
                held = dates.pop(job.id)
                dates[job.id] = min(held, promised(job, queue, dates, running, now, num_hosts))
    for job in queue:
        if job.id not in dates:
            dates[job.id] = promised(job, queue, dates, running, now, num_hosts)
    started = []
    due = [job for job in queue if dates[job.id] <= now]
    for job in sorted(due, key=lambda job: job.estimate > 0):
        if job.size > free_at(now, running, num_hosts):
            break  # a job of 0 s is in its place, and ends at this very date
        del dates[job.id]
        begin(job, now, running, num_hosts)
        started.append(job)
    return started


def promised(job, queue, dates, running, now, num_hosts):
    """First date from which the job can run for its whole estimate beside all that is promised."""
    spans = [(now, r.expected_end, r.size) for r in running]
    spans += [(dates[j.id], dates[j.id] + j.estimate, j.size) for j in queue if j.id in dates]
    return first_gap(job, spans, now, num_hosts)


def metric_aware(balance, window, backfill, walls):
    """Every order of every window tried, on lists of (begin, end, size); ``walls`` by job id."""

    def decide(queue, running, now, num_hosts, memory):
        spans = [(now, job.expected_end, job.size) for job in running]
        order = by_score(queue, now, balance, walls)
        started = []
        while order:
            jobs, order = order[:window], order[window:]
            tried = []
            for permutation in itertools.permutations(jobs):
                dates = place_all(permutation, spans, now, num_hosts)
                end = max(date + job.estimate for job, date in dates)
                tried.append((end, len(tried), dates))
            _, _, dates = min(tried)
            spans += [(date, date + job.estimate, job.size) for job, date in dates]
            for job in [job for job, date in dates if date == now]:
                begin(job, now, running, num_hosts)
                started.append(job)
            if backfill == "easy" and any(date > now for _, date in dates):
                break
        for job in order:
            if first_gap(job, spans, now, num_hosts) == now:
                spans.append((now, now + job.estimate, job.size))
                begin(job, now, running, num_hosts)
                started.append(job)
        return started

    return decide


def one_by_one(decide):
    """The same, asked again after the first start, until there is none."""

    def again(queue, running, now, num_hosts, memory):
        queue, started = list(queue), []
        while True:
            trial = list(running)
            first = decide(queue, trial, now, num_hosts, memory)
            for job in first:
                job.start, job.hosts = inf, []
            if not first:
                return started
            begin(first[0], now, running, num_hosts)
            started.append(first[0])
            queue.remove(first[0])

    return again


def by_score(queue, now, balance, walls):
    """The queue by priority; ``walls``: the requested times."""
    wait = max((now - job.submit for job in queue), default=0)
    asked = [walls[job.id] for job in queue]

    def score(job):
        waited = 100 * (now - job.submit) / wait if wait else 0
        spread = max(asked) - min(asked)
        short = 100 * (max(asked) - walls[job.id]) / spread if spread else 0
        return -(balance * waited + (1 - balance) * short)

    return sorted(queue, key=score)


def place_all(jobs, spans, now, num_hosts):
    spans, dates = list(spans), []
    for job in jobs:
        date = first_gap(job, spans, now, num_hosts)
        spans.append((date, date + job.estimate, job.size))
        dates.append((job, date))
    return dates


def first_gap(job, spans, now, num_hosts):
    """First date at which the job fits for its whole estimate beside these spans.

    Spans of no length are alone, one by one, with those that began before and end after.
    """
    for date in sorted({now, *(end for _, end, _ in spans if end > now)}):
        until = date + job.estimate
        moments = [date, *(b for b, _, _ in spans if date < b < until)]
        crossed = [(b, size) for b, e, size in spans if date < b == e < until]
        if all(
            job.size + sum(size for b, e, size in spans if b <= m < e) <= num_hosts for m in moments
        ) and all(
            job.size + alone + sum(size for b, e, size in spans if b < m < e) <= num_hosts
            for m, alone in crossed
        ):
            return date
    return inf


def head_date(head, running, now, num_hosts):
    """First date at which, by the estimates, the job fits beside what runs."""
    for date in sorted({now, *(r.expected_end for r in running)}):
        if head.size <= num_hosts - sum(r.size for r in running if r.expected_end > date):
            return date
    return inf


def free_at(now, running, num_hosts):
    return num_hosts - sum(job.size for job in running)


def begin(job, now, running, num_hosts):
    taken = {host for other in running for host in other.hosts}
    job.start = now
    job.hosts = [host for host in range(num_hosts) if host not in taken][: job.size]
    running.append(job)


def schedule(jobs, num_hosts, decide, key):
    """Run all jobs; afterwards each has its start and its hosts.

    ``key``: what sorts the queue, by job id; empty: the order of submission.
    """
    coming = sorted(jobs, key=lambda job: job.submit)
    queue, running, memory = [], [], {"early": False}
    while coming or running:
        now = min([job.end for job in running] + [job.submit for job in coming[:1]])
        ended = [job for job in running if job.end == now]
        running = [job for job in running if job.end != now]
        memory["early"] = any(job.expected_end > now for job in ended)
        while coming and coming[0].submit <= now:
            queue.append(coming.pop(0))
        if key:
            queue.sort(key=lambda job: key[job.id])
        started = decide(queue, running, now, num_hosts, memory)
        queue = [job for job in queue if job not in started]
    assert not queue
