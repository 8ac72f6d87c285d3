"""Jobs that are submitted in answer to others."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from ptaskmodel.batch import (
    BatchSimulation,
    ClosedLoop,
    Easy,
    Fcfs,
    Job,
    Kill,
    Reject,
    check_schedule,
    random_jobs,
)
from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.works import DelayWork


def job(name, submit, seconds, after=None, think=0.0, hosts=1):
    work = DelayWork(float(seconds))
    return Job(name, float(submit), hosts, "d", work, None, preceding_job=after, think_time_s=think)


def run(jobs, hosts, policy):
    loop = ClosedLoop(jobs, "w")
    simulation = BatchSimulation(loop.first, hosts, policy, respond=loop.respond)
    schedule = simulation.run()
    assert loop.waiting == 0
    return schedule


def test_jobs_come_when_the_one_before_is_over():
    jobs = [
        job("a", 5, 10),
        job("b", 0, 2, "a", 3.0),
        job("c", 99, 1, "b"),
        job("d", 0, 1, "a", 3.0),
        job("e", 7, 1, "unknown", 50.0),
    ]
    schedule = run(jobs, 2, Fcfs())
    rows = [(x.job.id, x.job.submit_time_s, x.start_s, x.end_s) for x in schedule.final]
    assert rows == [
        ("a", 5.0, 5.0, 15.0),
        ("e", 7.0, 7.0, 8.0),
        ("b", 18.0, 18.0, 20.0),
        ("d", 18.0, 18.0, 19.0),
        ("c", 20.0, 20.0, 21.0),
    ]


def test_every_end_is_answered_once_however_it_came():
    """Rejected, killed and requeued jobs too: the answer comes when a job is over for good."""

    class Rough:
        def decide(self, view):
            for attempt in view.running:
                if int(attempt.job.id[1:]) % 5 == 0 and attempt.start_s < view.now:
                    yield Kill(attempt.job)
            for each in view.queue:
                if int(each.id[1:]) % 7 == 0:
                    yield Reject(each)
                elif view.fits(each):
                    yield each

    for seed in range(60):
        draw = random.Random(seed)
        jobs = random_jobs(seed, 30, 8)
        for k in range(1, len(jobs)):
            if draw.random() < 0.6:
                before = jobs[draw.randrange(k)].id
                think = draw.choice((0.0, 1.0, 2.5))
                jobs[k] = replace(jobs[k], preceding_job=before, think_time_s=think)
        draw.shuffle(jobs)
        failures = {0: [(5.0, False), (9.0, True), (30.0, False), (33.0, True)]}
        for policy in (Rough(), Easy()):
            loop = ClosedLoop(jobs, "w")
            simulation = BatchSimulation(
                loop.first,
                8,
                policy,
                respond=loop.respond,
                failures=failures,
                on_failure="requeue",
            )
            schedule = simulation.run()
            assert sorted(x.job.id for x in schedule.final) == sorted(j.id for j in jobs)
            check_schedule(schedule, [x.job for x in schedule.final])
            over = {x.job.id: x for x in schedule.final}
            for x in schedule.final:
                before = over.get(x.job.preceding_job)
                if before is not None and before.end_s is not None:
                    assert x.job.submit_time_s == before.end_s + x.job.think_time_s


def test_a_circle_is_told():
    jobs = [job("a", 0, 1), job("b", 0, 1, "c"), job("c", 0, 1, "b"), job("d", 0, 1, "d")]
    with pytest.raises(WorkloadError) as caught:
        ClosedLoop(jobs, "w")
    first, *circles = caught.value.message.split("\n")
    assert first == "w: 2 problems:"
    assert "jobs 'b', 'c' wait for each other" in circles[0]
    assert "job 'd' waits for itself" in circles[1]


def test_users_who_answer_by_a_function():
    """A user who submits the next job, a longer one, until one takes more than 30 s."""

    def respond(attempt, now):
        took = now - attempt.start_s
        if took <= 30:
            yield job(f"{attempt.job.id}+", now + 10.0, 2 * took)

    schedule = BatchSimulation([job("x", 0, 5)], 1, Fcfs(), respond=respond).run()
    assert [(x.job.id, x.start_s) for x in schedule.final] == [
        ("x", 0.0), ("x+", 15.0), ("x++", 35.0), ("x+++", 65.0)
    ]  # fmt: skip
