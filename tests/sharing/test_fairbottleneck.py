"""Fair bottleneck: SimGrid's rates, defects included, and the corrected variant."""

from __future__ import annotations

import naive_sharing
import numpy as np
import pytest
from hypothesis import given, settings
from sharing.systems import changed, loads, many, problems, random_problem

from ptaskmodel.sharing import SharingProblem, fairbottleneck, fairbottleneck_corrected

# Three tasks on one host of 100 f/s; the first two also on links of 10 and 40 B/s.
OVERCHARGE = SharingProblem.build(
    [[(0, 100.0), (1, 100.0)], [(0, 100.0), (2, 100.0)], [(0, 100.0)]], [100.0, 10.0, 40.0]
)
# A FATPIPE of 100 B/s: one task is slowed by its host to 10 B/s, the other only uses the FATPIPE.
LEAK = SharingProblem.build(
    [[(0, 1000.0), (1, 100.0)], [(1, 1000.0)]], [100.0, 100.0], fatpipe=[False, True]
)


def test_fixed_tasks_are_charged_again():
    allocation = fairbottleneck(OVERCHARGE)
    assert allocation.rates.tolist() == pytest.approx([0.1, 0.4, 0.45], rel=1e-14)
    assert allocation.limits.tolist() == [1, 0, 0]
    assert loads(OVERCHARGE, allocation.rates)[0] == pytest.approx(95.0)


def test_the_corrected_variant_charges_once():
    allocation = fairbottleneck_corrected(OVERCHARGE)
    assert allocation.rates.tolist() == pytest.approx([0.1, 0.4, 0.5], rel=1e-14)
    assert allocation.certificate.ok


def test_a_fatpipe_leaks():
    allocation = fairbottleneck(LEAK)
    assert allocation.rates.tolist() == pytest.approx([0.1, 0.55], rel=1e-14)
    assert allocation.certificate.capacity_excess == pytest.approx(4.5)


def test_the_corrected_variant_keeps_fatpipes():
    allocation = fairbottleneck_corrected(LEAK)
    assert allocation.rates.tolist() == pytest.approx([0.1, 0.1], rel=1e-14)
    assert allocation.limits.tolist() == [0, 1]
    assert allocation.certificate.ok


def test_equal_users_of_a_fatpipe_get_it_whole():
    problem = SharingProblem.build([[(0, 1000.0)]] * 2, [100.0], fatpipe=True)
    assert fairbottleneck(problem).rates.tolist() == [0.1, 0.1]


def test_a_task_that_names_a_resource_twice_counts_twice():
    problem = SharingProblem.build([[(0, 100.0), (0, 300.0)]], [100.0])
    assert 1.0 / fairbottleneck(problem).rates[0] == pytest.approx(4.0000002788, abs=5e-11)


def test_a_core_for_each_entry_bounds_a_task_on_two():
    problem = SharingProblem.build([[(0, 100.0), (0, 300.0)]], [200.0], bound=[50.0 / 300.0])
    allocation = fairbottleneck(problem)
    assert 1.0 / allocation.rates[0] == pytest.approx(6.0)
    assert allocation.limits.tolist() == [-1]


def test_a_hundred_million_rounds_are_summed():
    # The FATPIPE loses 100 B/s a round: the second task gets 10 (1 + 10^8) / 2 from 10^7 on down.
    problem = SharingProblem.build(
        [[(0, 300.0), (1, 100.0)], [(1, 1000.0)]], [100.0, 1e10], fatpipe=[False, True]
    )
    rates = fairbottleneck(problem).rates
    consumed = 100.0 / 3.0
    rounds = 1e10 / consumed
    assert rates[0] == pytest.approx(1.0 / 3.0)
    assert rates[1] == pytest.approx((1e10 + consumed) / 2.0 * rounds / 1000.0, rel=1e-6)
    assert 1.0 / rates[1] == pytest.approx(6.7e-16, rel=0.01)


def test_summed_rounds_equal_rounds_one_by_one():
    random = np.random.default_rng(7)
    for _ in range(many(40)):
        slow = random.uniform(0.5, 2.0)
        problem = SharingProblem.build(
            [[(0, 1.0), (1, slow)], [(1, 3.0), (2, 1e-3)], [(1, 2.0), (2, 1e-3)]],
            [1.0, random.uniform(500.0, 2000.0), random.choice([40.0, 400.0, 4e6])],
            fatpipe=[False, True, False],
            bound=random.choice([50.0, 3e4, np.inf], 3),
        )
        expected = naive_sharing.fairbottleneck(problem)
        assert fairbottleneck(problem).rates == pytest.approx(expected, rel=1e-10)


def test_endless_rounds_end_with_the_capacity():
    problem = SharingProblem.build(
        [[(0, 300.0), (1, 100.0)], [(1, 1000.0)]], [0.0, 1e10], fatpipe=[False, True]
    )
    assert fairbottleneck(problem).rates.tolist() == [0.0, 1e7]


def test_endless_rounds_end_at_a_shared_resource_or_a_bound():
    rows = [[(0, 300.0), (1, 100.0)], [(1, 1000.0), (2, 1.0)]]
    fatpipe = [False, True, False]
    problem = SharingProblem.build(rows, [0.0, 1e3, 1e6], fatpipe=fatpipe)
    assert fairbottleneck(problem).rates[1] == pytest.approx(1e6)
    problem = SharingProblem.build(rows, [0.0, 1e3, 1e6], fatpipe=fatpipe, bound=[np.inf, 1e5])
    assert fairbottleneck(problem).rates[1] == 1e5


def test_tasks_without_uses_have_rate_one():
    problem = SharingProblem.build([[], [(0, 0.0)], [(0, 1.0)]], [5.0], bound=[0.5, np.inf, np.inf])
    assert fairbottleneck(problem).rates.tolist() == [1.0, 1.0, 5.0]


def test_the_corrected_variant_keeps_their_bounds():
    problem = SharingProblem.build([[], [], [(0, 1.0)]], [5.0], bound=[0.72, np.inf, np.inf])
    assert fairbottleneck_corrected(problem).rates.tolist() == [0.72, 1.0, 5.0]


def test_a_capacity_of_zero_stops_its_users():
    problem = SharingProblem.build([[(0, 1.0), (1, 1.0)], [(1, 1.0)]], [0.0, 10.0])
    assert fairbottleneck(problem).rates.tolist() == [0.0, 10.0]
    assert fairbottleneck_corrected(problem).rates.tolist() == [0.0, 10.0]


@pytest.mark.parametrize(
    ("solve", "corrected"), [(fairbottleneck, False), (fairbottleneck_corrected, True)]
)
def test_rates_equal_the_naive_rounds(solve, corrected):
    random = np.random.default_rng(11)
    for number in range(many(500)):
        problem = random_problem(
            random,
            fatpipes=0.0 if corrected or number % 2 else 0.2,
            repeated=number % 3 == 0,
            zeros=0.05 * (number % 4),
            scale=(-3.0, 12.0) if number % 5 == 0 else (0.0, 1.0),
        )
        expected = naive_sharing.fairbottleneck(problem, corrected, max_rounds=1000)
        if expected is not None:
            assert solve(problem).rates == pytest.approx(expected, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("exponent", [11, 13, 15])
def test_operations_are_in_the_order_of_simgrid_at_large_capacities(exponent):
    # There rounding exceeds the absolute threshold and decides how many rounds there are.
    random = np.random.default_rng(exponent)
    for _ in range(many(100)):
        problem = random_problem(random, tasks=10, bounds=0.0, scale=(0.0, 2.0))
        problem = changed(problem, capacity=problem.capacity * 1.2345 * 10.0**exponent)
        assert np.array_equal(fairbottleneck(problem).rates, naive_sharing.fairbottleneck(problem))


@settings(max_examples=many(300), deadline=None)
@given(problems(fatpipes=0.2, repeated=True, zeros=0.1))
def test_the_corrected_variant_is_always_certified(problem):
    assert fairbottleneck_corrected(problem).certificate.ok


@settings(max_examples=many(200), deadline=None)
@given(problems(repeated=True, zeros=0.1))
def test_without_fatpipes_no_capacity_is_exceeded(problem):
    assert fairbottleneck(problem).certificate.ok


def test_dominated_resources_change_nothing():
    # The core leaves out links that their hosts dominate: the rates must not depend on it.
    random = np.random.default_rng(5)
    for exponent in (0, 9, 12):
        for _ in range(many(50)):
            hosts = 6
            full, pruned = [], []
            for _ in range(random.integers(2, 9)):
                chosen = random.choice(hosts, random.integers(1, hosts), replace=False).tolist()
                flops = random.uniform(1.0, 2.0)
                row = [(h, flops) for h in chosen]
                pruned.append(row)
                full.append(row + [(hosts + h, flops * random.uniform(0.1, 0.9)) for h in chosen])
            unit = 10.0**exponent
            kept = fairbottleneck(SharingProblem.build(pruned, np.full(hosts, unit)))
            everything = fairbottleneck(SharingProblem.build(full, np.full(2 * hosts, unit)))
            assert everything.rates == pytest.approx(kept.rates, rel=1e-12)
