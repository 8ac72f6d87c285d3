"""The next job that fits, against looking at each; EASY written with it, against EASY."""

from __future__ import annotations

import random
from math import inf

import pytest

from ptaskmodel.batch import BatchSimulation, Easy, Filler, Job, Requeue, check_policy, random_jobs
from ptaskmodel.batch.jobs.queue import JobQueue
from ptaskmodel.batch.policies import backfilling
from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.works import DelayWork

ORDERS = (None, lambda job: job.num_hosts, lambda job: -(job.walltime_s or 0.0))


def job(name, hosts, walltime_s=1.0, submit_s=0.0):
    return Job(name, submit_s, hosts, "delay", DelayWork(1.0), walltime_s)


def expected(queue, after, hosts, beyond, now, end_by, estimates):
    begin = 0 if after is None else queue.jobs.index(after) + 1
    for candidate in queue.jobs[begin:]:
        count = candidate.num_hosts
        ends = now + estimates[candidate] <= end_by < inf
        if candidate in queue.waiting and count <= hosts and (count <= beyond or ends):
            return candidate
    return None


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("short", [0, 4, 1000])
def test_the_next_that_fits_is_found(monkeypatch, order, short):
    monkeypatch.setattr("ptaskmodel.batch.jobs.queue.SHORT", short)
    monkeypatch.setattr("ptaskmodel.batch.jobs.queue.STRETCH", 3)
    draw = random.Random(short)
    for _ in range(15):
        estimates: dict[Job, float] = {}
        queue = JobQueue(order, estimates)
        away, gone = [], []
        for number in range(120):
            kind = draw.random()
            if kind < 0.5:
                new = job(f"j{number}", draw.randint(0, 9), draw.choice((1.0, 2.0, 5.0, 1e9)))
                estimates[new] = new.walltime_s or 0.0
                queue.enter(new)
            elif kind < 0.6 and away:
                queue.enter_again(away.pop(draw.randrange(len(away))))
            elif kind < 0.8 and queue.waiting:
                some = min(len(queue.waiting), draw.choice((1, 2, 12)))
                taken = draw.sample([j for j in queue.jobs if j in queue.waiting], some)
                queue.waiting -= set(taken)
                gone += taken
            elif gone:
                queue.leave(gone)
                away += gone
                gone = []
            ranked = sorted(queue.jobs, key=queue._rank.__getitem__)
            assert queue.jobs == ranked
            after = draw.choice([None, *queue.jobs])
            asked = (after, draw.randint(0, 9), draw.randint(0, 9), 1.0, draw.choice((2, 4, inf)))
            assert queue.next_fitting(*asked) is expected(queue, *asked, estimates)


class PlainEasy:
    """The one of the guide."""

    def decide(self, view):
        head = None
        for waiting in view.queue:
            if not view.fits(waiting):
                head = waiting
                break
            yield waiting
        if head is None or head.num_hosts > view.num_available:
            return
        shadow, free = view.first_room(head.num_hosts)
        extra = free - head.num_hosts
        found = view.next_fitting(head, beyond=extra, end_by=shadow)
        while found is not None:
            if view.now + view.estimate_s(found) > shadow:
                extra -= found.num_hosts
            yield found
            found = view.next_fitting(found, beyond=extra, end_by=shadow)


class PlainFiller:
    def decide(self, view):
        for waiting in view.queue:
            if view.fits(waiting):
                yield waiting


@pytest.mark.parametrize("short", [4, 1000])
def test_easy_written_with_it_is_easy(monkeypatch, short):
    monkeypatch.setattr("ptaskmodel.batch.jobs.queue.SHORT", short)
    monkeypatch.setattr(backfilling, "SHORT", short)
    check_policy(PlainEasy, promise="head", workloads=10)
    for seed in range(10):
        found = []
        for policy in (PlainEasy(), Easy(), Easy(backfill_order=lambda job: 0), PlainFiller()):
            schedule = BatchSimulation(random_jobs(seed, 200, 16), 16, policy).run()
            found.append([(a.job.id, a.start_s, a.end_s, str(a.hosts)) for a in schedule.attempts])
        assert found[0] == found[1] == found[2]
        schedule = BatchSimulation(random_jobs(seed, 200, 16), 16, Filler()).run()
        filled = [(a.job.id, a.start_s, a.end_s, str(a.hosts)) for a in schedule.attempts]
        assert filled == found[3]


def test_a_job_that_was_put_back_is_found_at_its_place():
    class PutBack:
        again = False

        def decide(self, view):
            if view.now == 0.5 and not self.again:
                self.again = True
                yield Requeue(view.running[0].job)
                return
            if view.now == 0.5:
                assert [waiting.id for waiting in view.queue] == ["a", "b", "c"]
            found = view.next_fitting()
            while found is not None:
                yield found
                found = view.next_fitting(found)

    jobs = [job("a", 2), job("b", 4, submit_s=0.5), job("c", 1, submit_s=0.5)]
    schedule = BatchSimulation(jobs, 4, PutBack()).run()
    starts = [(attempt.job.id, attempt.start_s) for attempt in schedule.attempts]
    assert starts == [("a", 0.0), ("a", 0.5), ("c", 0.5), ("b", 1.5)]


def test_a_job_that_never_came_has_no_place():
    class Lost:
        def decide(self, view):
            view.next_fitting(job("lost", 1))
            return []

    with pytest.raises(SimulationError, match="'lost' has not been submitted"):
        BatchSimulation([job("a", 1)], 2, Lost()).run()
