"""Weighted proportional fairness: by hand, against its definition, and warm as from nothing."""

from __future__ import annotations

import numpy as np
import pytest

from ptaskmodel.kernels.decorators import as_compiled
from ptaskmodel.sharing import SharingProblem, verify
from ptaskmodel.sharing.arrays import (
    LIMIT_BOUND,
    Answer,
    Settings,
    System,
    kernel,
    maxmin,
    new_scratch,
    proportional,
)
from ptaskmodel.sharing.rules import RULES


def parking_lot(links):
    """A long flow over all links, and one across each, of three times its weight."""
    rows = [[(k, 1.0) for k in range(links)], *([(k, 1.0)] for k in range(links))]
    return SharingProblem.build(rows, np.ones(links), weight=[1 / 3, *[1.0] * links])


def random_problem(rng):
    n, m = int(rng.integers(1, 25)), int(rng.integers(1, 15))
    alike = rng.random() < 0.5
    rows = []
    for _ in range(n):
        count = int(rng.integers(0 if rng.random() < 0.1 else 1, min(m, 6) + 1))
        chosen = rng.choice(m, count, replace=bool(rng.random() < 0.1))
        rows.append([(int(r), 1.0 if alike else float(10 ** rng.uniform(-2, 2))) for r in chosen])
    capacity = 10 ** rng.uniform(-2, 2, m)
    if rng.random() < 0.1:
        capacity[rng.integers(m)] = 0.0
    bound = np.where(rng.random(n) < 0.3, 10 ** rng.uniform(-3, 2, n), np.inf)
    weight = 10 ** rng.uniform(-1, 1, n)
    fatpipe = rng.random(m) < 0.1
    return SharingProblem.build(rows, capacity, fatpipe=fatpipe, bound=bound, weight=weight)


def test_a_flow_over_three_full_links_pays_at_each():
    assert proportional(parking_lot(3)).rates == pytest.approx([0.1, 0.9, 0.9, 0.9], rel=1e-9)
    assert maxmin(parking_lot(3)).rates == pytest.approx([0.25, 0.75, 0.75, 0.75], rel=1e-9)


def test_on_one_bottleneck_it_is_max_min():
    problem = SharingProblem.build(
        [[(0, 1.0), (1, 1.0)], [(0, 1.0)], [(0, 1.0)]], [6.0, 100.0], weight=[1.0, 2.0, 1.0],
        bound=[np.inf, np.inf, 0.5],
    )  # fmt: skip
    assert proportional(problem).rates == pytest.approx(maxmin(problem).rates, rel=1e-9)


def test_acknowledgements_use_a_part_of_the_way_back():
    part = 54 / 1502
    problem = SharingProblem.build([[(0, 1.0), (1, part)], [(1, 1.0), (0, part)]], [1.0, 1.0])
    assert proportional(problem).rates == pytest.approx([1 / (1 + part)] * 2, rel=1e-9)


def test_a_task_is_limited_by_what_it_pays_most_for():
    problem = SharingProblem.build([[(0, 1.0), (1, 1.0)], [(0, 1.0)], [(1, 9.0)]], [1.0, 10.0],
                                   bound=[np.inf, np.inf, 0.1])  # fmt: skip
    allocation = proportional(problem)
    assert allocation.limits.tolist() == [0, 0, LIMIT_BOUND]
    assert allocation.rates == pytest.approx([0.5, 0.5, 0.1], rel=1e-9)


def test_random_systems_have_prices_that_explain_their_rates():
    rng = np.random.default_rng(5)
    for _ in range(300):
        problem = random_problem(rng)
        certificate = verify(problem, proportional(problem).rates, "proportional")
        assert certificate.ok, certificate


def test_newton_may_not_undo_sweeps_for_ever():
    problem = SharingProblem.build(
        [[(0, 1.0), (1, 1.0)], [(0, 1.0), (1, 1.0), (2, 1.0)], [(1, 1.0)],
         [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0)]],
        [1.5, 53.17, 0.012, 1.9, 0.081],
        bound=[np.inf, np.inf, 51.69198646068084, np.inf],
        weight=[0.23, 5.7, 0.14, 5.2],
    )  # fmt: skip
    assert verify(problem, proportional(problem).rates, "proportional").ok


def test_the_check_refuses_other_rates():
    problem = parking_lot(3)
    assert not verify(problem, proportional(problem).rates * (1 - 1e-7), "proportional").ok
    assert not verify(problem, maxmin(problem).rates, "proportional").ok
    assert not verify(problem, np.array([0.1, 0.8, 0.9, 0.9]), "proportional").ok
    assert not verify(problem, np.array([0.2, 0.9, 0.9, 0.9]), "proportional").feasible


def test_it_maximises_the_sum_of_weighted_logarithms():
    rng = np.random.default_rng(8)
    problem = SharingProblem.from_dense(rng.uniform(0.1, 1.0, (4, 6)), np.ones(4))
    best = proportional(problem).rates
    matrix = np.zeros((4, 6))
    matrix[problem.resource, problem.task] = problem.usage
    for _ in range(200):
        other = best * np.exp(rng.normal(0.0, 0.1, 6))
        other /= max(1.0, float((matrix @ other).max()))
        assert np.log(other).sum() <= np.log(best).sum() + 1e-12


def test_known_prices_lead_to_the_same_rates():
    rng = np.random.default_rng(3)
    rule = RULES["proportional"]
    for _ in range(50):
        problem = random_problem(rng)
        answer = Answer.room(problem)
        for warm in (False, True):
            if warm:
                answer.level[:] *= np.exp(rng.normal(0.0, 1.0, problem.m))
                answer.level[rng.random(problem.m) < 0.2] = 0.0
            settings = Settings(warm=warm)
            args = System.of(problem), settings, answer, *new_scratch(problem, rule)
            assert kernel(rule)(*args) == 0
            assert verify(problem, answer.rate, "proportional").ok


@pytest.mark.parametrize("seed", range(3))
def test_from_event_to_event_it_is_what_it_is_from_nothing(seed):
    """Flows of four links each begin and end; prices go on from those before."""
    rng = np.random.default_rng(seed)
    rule = RULES["proportional"]
    capacity = rng.choice([1.0, 2.5], 40)
    flows = [[(int(r), 1.0) for r in rng.choice(40, 4, replace=False)] for _ in range(60)]
    weight = 10 ** rng.uniform(-1, 1, 60)
    prices = np.full(40, np.inf)
    present = set(range(30))
    for _ in range(15):
        present ^= {int(k) for k in rng.choice(60, 2, replace=False)}
        own = sorted(present)
        problem = SharingProblem.build([flows[k] for k in own], capacity, weight=weight[own])
        warm, cold = Answer.room(problem), Answer.room(problem)
        warm.level[:] = prices
        for settings, answer in ((Settings(warm=True), warm), (Settings(), cold)):
            args = System.of(problem), settings, answer, *new_scratch(problem, rule)
            assert kernel(rule)(*args) == 0
        assert warm.rate == pytest.approx(cold.rate, rel=1e-9)
        assert verify(problem, warm.rate, "proportional").ok
        prices = warm.level


def test_a_task_may_pay_many_prices_that_move():
    """Six full links each: more than have entries of their own in Newton's matrix."""
    rows = [[(k, 1.0) for k in range(6)] for _ in range(3)]
    rows += [[(k, 1.0)] for k in range(6) for _ in range(2)]
    problem = SharingProblem.build(rows, np.linspace(1.0, 2.0, 6))
    assert verify(problem, proportional(problem).rates, "proportional").ok


def test_a_price_moves_between_links_with_the_same_users():
    """From a price on the wrong one of two: sweeps alone would take thousands of turns."""
    rows = [[(0, 1.0), (1, 1.0), (2, 0.036)], [(0, 1.0), (1, 1.0)], [(2, 1.0), (0, 0.036)]]
    problem = SharingProblem.build(rows, [1.05, 1.0, 1.0])
    answer = Answer.room(problem)
    answer.level[:] = [2.0, 0.0, 1.0]
    rule = RULES["proportional"]
    args = System.of(problem), Settings(warm=True), answer, *new_scratch(problem, rule)
    assert kernel(rule)(*args) == 0
    assert verify(problem, answer.rate, "proportional").ok
    assert answer.level[0] == 0.0


def test_a_price_falls_only_if_the_whole_step_would_take_it_below_0():
    """Resources 0 and 5 have the same users but for slow ones: a price moves from 5 to 0."""
    slow, part = 1.6e-5, 0.036
    rows = [[(0, 1.0)], [(0, part)], [(1, 1.0), (2, 1.0), (3, 1.0), (4, part)],
            [(1, 1.0), (0, 1.0), (5, 1.0)], [(4, 1.0), (0, 1.0), (5, 1.0), (2, part)],
            [(2, 1.0), (3, 1.0), (4, part)]]  # fmt: skip
    bound = np.array([slow, slow, np.inf, np.inf, np.inf, 0.573])
    problem = SharingProblem.build(rows, np.ones(6), bound=bound)
    rule = RULES["proportional"]
    answer = Answer.room(problem)
    settings = Settings(aim=1e-5, accept=1e-5)
    assert kernel(rule)(System.of(problem), settings, answer, *new_scratch(problem, rule)) == 0
    assert verify(problem, answer.rate, "proportional", tolerance=1e-4).ok


@pytest.mark.parametrize("level", [1e308, 1e200])
def test_prices_that_lead_nowhere_are_given_up(level):
    """No step begins at a price that is infinite, or where rates are as good as 0."""
    rng = np.random.default_rng(8)
    rule = RULES["proportional"]
    for _ in range(20):
        problem = random_problem(rng)
        answer = Answer.room(problem)
        answer.level[:] = level
        args = System.of(problem), Settings(warm=True), answer, *new_scratch(problem, rule)
        with as_compiled():
            assert kernel(rule)(*args) == 0
        assert verify(problem, answer.rate, "proportional").ok
