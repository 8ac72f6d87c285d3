"""Conservative backfilling of which only the first of the queue hold reservations."""

from __future__ import annotations

import random
import warnings
from functools import partial

import numpy as np
import pytest

from ptaskmodel.batch import (
    BatchOptions,
    BatchSimulation,
    Conservative,
    Easy,
    Job,
    Verifier,
    Workload,
    check_schedule,
    plan,
    random_jobs,
    run_batch,
    walltime_or_inf,
)
from ptaskmodel.batch.allocations.rules import Contiguous, FirstFit
from ptaskmodel.batch.compiled import delays
from ptaskmodel.batch.compiled.delays import compiled_batch
from ptaskmodel.batch.policies import orders
from ptaskmodel.errors import SimulationError
from ptaskmodel.platform import Platform
from ptaskmodel.workload.works import DelayWork


def opened(jobs, policy, estimate=walltime_or_inf, **options):
    return BatchSimulation(jobs, 8, policy, estimate=estimate, **options).run()


def compiled(jobs, policy, estimate=walltime_or_inf, progress=None):
    given = {"estimate": estimate, "limited": True, "most_decisions": 10_000}
    return compiled_batch(jobs, 8, policy, FirstFit(), **given).run(progress=progress)


def numbered(schedule):
    return {a.job.id: (a.start_s, a.mask, a.number) for a in schedule.final}


def job(name, submit, hosts, lasts):
    return Job(name, float(submit), hosts, "d", DelayWork(float(lasts)), lasts + 1.0)


def test_who_has_no_reservation_starts_where_it_delays_none():
    jobs = [
        job("a", 0, 5, 9),  # until 10, as it is believed
        job("b", 1, 8, 9),  # at 10
        job("c", 2, 8, 9),  # at 20 with a depth of 2
        job("late", 3, 3, 9),  # would delay b
        job("short", 4, 3, 4),  # is gone when b begins
    ]
    at = {a.job.id: a.start_s for a in opened(jobs, Conservative(depth=1)).final}
    assert at == {"a": 0, "short": 4, "b": 9, "c": 18, "late": 27}


def test_both_loops_agree_at_every_depth_and_keep_the_promise():
    for seed in range(200):
        draw = random.Random(seed)
        estimate = (walltime_or_inf, lambda job: 0.6 * job.walltime_s)[seed % 2]
        named = orders(estimate)
        key = named[draw.choice(["fcfs", "sjf", "largest"])]
        make = partial(Conservative, key, draw.choice([1, 2, 3, 7]))
        jobs = random_jobs(seed, 40, 8)
        found = opened(jobs, make(), estimate, observe=Verifier("all"))
        assert numbered(compiled(jobs, make(), estimate)) == numbered(found), seed


def test_beyond_the_queue_it_is_conservative():
    for seed in range(40):
        jobs = random_jobs(seed, 40, 8)
        whole = numbered(opened(jobs, Conservative()))
        assert numbered(opened(jobs, Conservative(depth=40))) == whole
        assert numbered(compiled(jobs, Conservative(depth=40))) == whole


def test_one_reservation_is_easy():
    for seed in range(80):
        jobs = random_jobs(seed, 40, 8)
        assert numbered(opened(jobs, Conservative(depth=1))) == numbered(opened(jobs, Easy()))


@pytest.mark.parametrize("depth", [1, 3])
def test_places_are_kept_too(depth):
    for seed in range(40):
        jobs = random_jobs(seed, 30, 8)
        policy = Conservative(depth=depth)
        schedule = opened(jobs, policy, allocation=Contiguous(), observe=Verifier("all"))
        check_schedule(schedule, jobs)


def test_a_depth_is_a_number_of_jobs():
    with pytest.raises(SimulationError, match="depth=0 is not a number of jobs >= 1"):
        Conservative(depth=0)


def overloaded(count):
    """As many jobs as fit in a tenth of the time: most of them wait."""
    draw = np.random.default_rng(1)
    sizes, lasts = draw.integers(1, 9, count), draw.integers(1, 400, count)
    jobs = [
        job(str(k), k, *pair)
        for k, pair in enumerate(zip(sizes.tolist(), lasts.tolist(), strict=True))
    ]
    return Workload(tuple(jobs), {"d": DelayWork(1.0)}, num_hosts=8)


def platform():
    build = Platform.build("p")
    build.cluster("c", 8, prefix="h", speed=1e9, bandwidth=1e9, latency=1e-6)
    return build.finish()


@pytest.mark.parametrize(("depth", "said"), [({}, 2), ({"depth": 10}, 1)])
def test_a_long_queue_is_announced_with_the_remedy(monkeypatch, depth, said):
    monkeypatch.setattr(plan, "LONG_S", 0.01)
    options = BatchOptions(policy="conservative", loop="compiled", policy_options=depth)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_batch(platform(), overloaded(1000), options)
    texts = [str(warning.message) for warning in caught]
    assert [text[:16] for text in texts] == ["the offered load", "conservative may"][:said]
    assert all("--policy-option depth=100" in text for text in texts[1:])


def test_the_compiled_loop_comes_back_where_decisions_take_long(monkeypatch):
    monkeypatch.setattr(delays, "LONG_S", 0.0)
    told = []
    jobs = overloaded(300).jobs
    schedule = compiled(jobs, Conservative(), progress=lambda *numbers: told.append(numbers))
    assert numbered(schedule) == numbered(compiled(jobs, Conservative()))
    assert len(told) > 300
    assert [over for _, over, _ in told] == sorted(over for _, over, _ in told)
