"""Jobs of 0 s and reservations: nobody runs across the date that one was promised."""

from __future__ import annotations

import random
from dataclasses import replace

import naive_batch as naive
import pytest

from ptaskmodel.batch import (
    BatchSimulation,
    Conservative,
    HostCapacity,
    MetricAware,
    PolicyFault,
    Start,
    Verifier,
    Window,
    check_schedule,
    walltime_or_inf,
)
from ptaskmodel.batch.allocations.rules import Contiguous, FirstFit
from ptaskmodel.batch.compiled.delays import compiled_batch
from ptaskmodel.batch.machine.host_sets import of_hosts
from ptaskmodel.batch.policies import orders
from ptaskmodel.workload.jobs import Job
from ptaskmodel.workload.works import DelayWork


def job(name, submit, hosts, lasts, believed=None):
    believed = lasts if believed is None else believed
    return Job(name, float(submit), hosts, "d", DelayWork(float(lasts)), float(believed))


def drawn(seed):
    """Jobs on a grid of whole seconds, so that many dates are equal; many of 0 s."""
    draw = random.Random(seed)
    hosts, date, jobs = draw.choice((2, 3, 4, 6)), 0, []
    for k in range(draw.randint(4, 40)):
        date += draw.choice((0, 0, 1, 1, 2, 3, 5))
        lasts = draw.choice((0, 0, 1, 2, draw.randint(1, 12)))
        believed = max(lasts, 1) * draw.choice((1, 1, 2, 3)) if draw.random() < 0.4 else lasts
        jobs.append(job(str(k), date, draw.randint(1, hosts), lasts, believed))
    return jobs, hosts


def opened(jobs, hosts, policy, **options):
    options.setdefault("estimate", walltime_or_inf)
    return BatchSimulation(jobs, hosts, policy, limited=False, **options).run()


def compiled(jobs, hosts, policy, estimate=walltime_or_inf):
    given = {"estimate": estimate, "limited": False, "most_decisions": 10_000}
    return compiled_batch(jobs, hosts, policy, FirstFit(), **given).run()


def numbered(schedule):
    return {a.job.id: (a.start_s, a.mask, a.number) for a in schedule.final}


def starts(schedule):
    return {a.job.id: a.start_s for a in schedule.final}


EXAMPLE = [
    job("a", 0, 1, 8),
    job("z", 1, 2, 0),
    *(job(f"s{k}", 2 + 6 * k, 1, 10) for k in range(8)),
]


@pytest.mark.parametrize(
    "run",
    [
        lambda jobs: compiled(jobs, 2, Conservative()),
        lambda jobs: opened(jobs, 2, Conservative(), observe=Verifier("all")),
        lambda jobs: opened(jobs, 2, MetricAware(backfill="conservative")),
        lambda jobs: opened(jobs, [HostCapacity()] * 2, Conservative(), allocation=Contiguous()),
    ],
)
def test_nobody_runs_across_a_job_of_0_s(run):
    found = starts(run(EXAMPLE))
    assert found["z"] == found["s0"] == found["s1"] == 8.0
    longer = [replace(j, work=DelayWork(0.001)) if j.id == "z" else j for j in EXAMPLE]
    assert starts(run(longer))["z"] == 8.0


def test_schedules_equal_the_naive_reference_in_both_loops():
    for seed in range(400):
        jobs, hosts = drawn(seed)
        named = orders(walltime_or_inf)
        key = named[list(named)[seed // 2 % len(named) if seed % 2 else 0]]
        expected = [
            naive.NaiveJob(j.id, j.submit_time_s, j.num_hosts, j.work.duration_s, j.walltime_s)
            for j in jobs
        ]
        rank = {j.id: key(j) for j in jobs} if key else {}
        naive.schedule(expected, hosts, naive.conservative, key=rank)
        found = opened(jobs, hosts, Conservative(key), observe=Verifier("all"))
        assert starts(found) == {j.id: j.start for j in expected}, seed
        assert numbered(compiled(jobs, hosts, Conservative(key))) == numbered(found), seed


def test_both_loops_agree_when_a_job_believed_to_take_0_s_takes_longer():
    def estimate(job):
        return 0.0 if int(job.id) % 4 == 0 else job.walltime_s

    for seed in range(200):
        jobs, hosts = drawn(seed)
        found = opened(jobs, hosts, Conservative(), estimate=estimate)
        assert numbered(compiled(jobs, hosts, Conservative(), estimate)) == numbered(found), seed


@pytest.mark.parametrize("what", ["contiguous", "maintenance", "cores", "licences"])
def test_promises_are_kept_where_a_reservation_is_a_place(what):
    for seed in range(150):
        jobs, hosts = drawn(seed)
        draw, options, machine = random.Random(seed), {}, hosts
        if what == "contiguous":
            options["allocation"] = Contiguous()
        elif what == "maintenance":
            those = of_hosts(draw.sample(range(hosts), draw.randint(1, hosts)))
            dates = draw.randint(0, 20), draw.randint(25, 40)
            options["maintenance"] = [Window(those, date, date + 4.0) for date in dates]
        elif what == "cores":
            jobs = [replace(j, cores=draw.randint(1, 2)) for j in jobs]
            machine = [HostCapacity(2)] * hosts
        else:
            jobs = [replace(j, licences={"x": 1}) if draw.random() < 0.3 else j for j in jobs]
            options["licences"] = {"x": 1}
        schedule = opened(jobs, machine, Conservative(), observe=Verifier("all"), **options)
        check_schedule(schedule, jobs, machine if what == "cores" else None)


class Promising:
    """Promises what it is told to: (from when on, the date) by job."""

    order = None

    def __init__(self, dates):
        self.dates = dates
        self.reserved_s = {}

    def decide(self, view):
        self.reserved_s = {
            j: [date for since, date in self.dates[j.id] if since <= view.now][-1]
            for j in view.queue
        }
        for each in view.queue:
            if self.reserved_s[each] <= view.now and view.fits(each):
                del self.reserved_s[each]
                yield Start(each)


@pytest.mark.parametrize(
    ("promised", "what"),
    [
        ([(0, 8), (2, 12)], "job 'z' was put off from 8 s to 12 s"),
        ([(0, 8)], "the reservations use 3 of 2 hosts at 8 s"),
    ],
)
def test_the_check_of_promises_knows_jobs_of_0_s(promised, what):
    jobs = [job("a", 0, 1, 8), job("z", 1, 2, 0), job("s", 2, 1, 10)]
    policy = Promising({"a": [(0, 0)], "z": promised, "s": [(0, 2)]})
    with pytest.raises(PolicyFault, match=what):
        opened(jobs, 2, policy, observe=Verifier("all"))
