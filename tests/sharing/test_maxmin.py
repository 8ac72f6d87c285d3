"""Weighted max-min sharing."""

from __future__ import annotations

import naive_sharing
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sharing.systems import changed, many, permuted, problems, random_problem

from ptaskmodel.sharing import SharingProblem, flow_maxmin, maxmin


def test_three_flows_on_two_links():
    # The classic: a long flow and two short ones; links of 10 and 4.
    problem = SharingProblem.build([[(0, 1.0), (1, 1.0)], [(0, 1.0)], [(1, 1.0)]], [10.0, 4.0])
    allocation = maxmin(problem)
    assert allocation.rates.tolist() == [2.0, 8.0, 2.0]
    assert allocation.limits.tolist() == [1, 0, 1]


def test_weights_divide_the_bottleneck():
    problem = SharingProblem.build([[(0, 1.0)]] * 3, [7.0], weight=[1.0, 2.0, 4.0])
    assert maxmin(problem).rates == pytest.approx([1.0, 2.0, 4.0])


def test_weights_from_round_trip_penalties():
    # Two flows under SimGrid's LV08 without cross-traffic: l (125 MB/s, 1 ms) for both, m (10 ms)
    # for the second; penalty = latency + 20537 / bandwidth of each link, capacity 0.97 of it.
    short, long = 1e-3 + 20537 / 125e6, 11e-3 + 2 * 20537 / 125e6
    problem = SharingProblem.build(
        [[(0, 1.0)], [(0, 1.0), (1, 1.0)]], [125e6, 125e6], weight=[1 / short, 1 / long]
    )
    assert maxmin(problem).rates == pytest.approx([113350411.85, 11649588.15], abs=0.01)


def test_bounded_tasks_leave_the_rest_to_others():
    problem = SharingProblem.build([[(0, 1.0)]] * 3, [9.0], bound=[1.0, np.inf, np.inf])
    allocation = maxmin(problem)
    assert allocation.rates.tolist() == [1.0, 4.0, 4.0]
    assert allocation.limits.tolist() == [-1, 0, 0]


def test_a_fatpipe_limits_each_use_alone():
    problem = SharingProblem.build([[(0, 1.0)], [(0, 4.0)]], [8.0], fatpipe=True)
    allocation = maxmin(problem)
    assert allocation.rates.tolist() == [8.0, 2.0]
    assert allocation.limits.tolist() == [0, 0]
    assert allocation.certificate.ok


def test_users_of_a_fatpipe_do_not_hold_each_other_back_elsewhere():
    # The first is stopped at 2 by the FATPIPE; the second gets the rest of the link, 9 - 2.
    problem = SharingProblem.build(
        [[(0, 4.0), (1, 1.0)], [(0, 1.0), (1, 1.0)]], [8.0, 9.0], fatpipe=[True, False]
    )
    allocation = maxmin(problem)
    assert allocation.rates.tolist() == [2.0, 7.0]
    assert allocation.limits.tolist() == [0, 1]


def test_in_flow_models_a_fatpipe_stops_all_its_users_at_its_largest_use():
    problem = SharingProblem.build([[(0, 1.0)], [(0, 4.0)]], [8.0], fatpipe=True)
    assert flow_maxmin(problem).rates.tolist() == [2.0, 2.0]


def test_a_capacity_of_zero_stops_but_in_flow_models():
    problem = SharingProblem.build([[(0, 1.0), (1, 1.0)], [(0, 1.0)]], [0.0, 100.0])
    assert maxmin(problem).rates.tolist() == [0.0, 0.0]
    allocation = flow_maxmin(problem)
    assert allocation.rates.tolist() == [100.0, 0.0]
    assert allocation.certificate.ok


def test_tasks_without_uses_have_their_bound_or_one():
    problem = SharingProblem.build([[], []], [1.0], bound=[np.inf, 3.0])
    assert maxmin(problem).rates.tolist() == [1.0, 3.0]


@pytest.mark.parametrize("flows", [False, True])
def test_rates_equal_filling_in_fractions(flows):
    random = np.random.default_rng(3)
    for number in range(many(300)):
        problem = random_problem(
            random, fatpipes=0.2 * (number % 2), repeated=True, zeros=0.1, weights=True
        )
        expected = naive_sharing.maxmin(problem, flows)
        allocation = flow_maxmin(problem) if flows else maxmin(problem)
        assert allocation.rates == pytest.approx(expected, rel=1e-11, abs=0.0)


@settings(max_examples=many(300), deadline=None)
@given(problems(fatpipes=0.2, repeated=True, zeros=0.1, weights=True, scale=(-3.0, 15.0)))
def test_certified_at_all_scales(problem):
    assert maxmin(problem).certificate.ok
    assert flow_maxmin(problem).certificate.ok


@settings(max_examples=many(100), deadline=None)
@given(problems(weights=True), st.randoms(use_true_random=False))
def test_the_order_of_tasks_does_not_matter(problem, source):
    order = np.array(source.sample(range(problem.n), problem.n))
    expected = maxmin(problem).rates[order]
    assert maxmin(permuted(problem, order)).rates == pytest.approx(expected, rel=1e-12)


@settings(max_examples=many(100), deadline=None)
@given(problems(weights=True, bounds=0.0), st.floats(1e-6, 1e6))
def test_rates_scale_with_the_capacities(problem, factor):
    scaled = maxmin(changed(problem, capacity=problem.capacity * factor)).rates
    assert scaled == pytest.approx(maxmin(problem).rates * factor, rel=1e-12)
