"""Bottleneck max fairness: closed forms, laws, every solution enumerated, hard systems."""

from __future__ import annotations

import json

import naive_sharing
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sharing.systems import (
    changed,
    loads,
    many,
    needs_jit,
    permuted,
    problems,
    random_problem,
)

from ptaskmodel.sharing import SharingProblem, bmf, verify
from ptaskmodel.sharing.arrays import Answer, Settings, System, new_scratch
from ptaskmodel.sharing.bottleneck_max_fairness import fallbacks
from ptaskmodel.sharing.bottleneck_max_fairness.solver import solve_bmf
from ptaskmodel.sharing.rules import RULES


def solve(problem, levels=None):
    """(status, rates, levels) of the kernel; warm if levels are given."""
    answer, warm = Answer.room(problem), levels is not None
    if warm:
        answer.level[:] = levels
    scratch = new_scratch(problem, RULES["bmf"])
    status = solve_bmf(System.of(problem), Settings(warm=warm), answer, *scratch)
    return status, answer.rate, answer.level


def circulant(line, **options):
    return SharingProblem.from_dense([np.roll(line, i) for i in range(len(line))], 1.0, **options)


def test_two_resources_by_hand():
    # The first task is limited by its link; the others share what it leaves of the host.
    problem = SharingProblem.build(
        [[(0, 100.0), (1, 100.0)], [(0, 100.0), (2, 100.0)], [(0, 100.0)]], [100.0, 10.0, 40.0]
    )
    allocation = bmf(problem)
    assert allocation.rates == pytest.approx([0.1, 0.4, 0.5], rel=1e-14)
    assert allocation.limits.tolist() == [1, 2, 0]
    assert allocation.certificate.ok


def test_shares_of_the_resource_are_equal_not_rates():
    problem = SharingProblem.from_dense([[1.0, 3.0]], [6.0])
    assert bmf(problem).rates == pytest.approx([3.0, 1.0])


def test_a_task_of_weight_two_gets_twice_the_share():
    problem = SharingProblem.from_dense([[1.0, 5.0]], [6.0], weight=[1.0, 2.0])
    assert bmf(problem).rates == pytest.approx([2.0, 0.8])


def test_connections_count_each_as_a_competitor():
    # Five connections against one, uses equal: five sixths.
    problem = SharingProblem.build([[(0, 1.0, 1.0 / 5.0)], [(0, 1.0)]], [6.0])
    assert bmf(problem).rates == pytest.approx([5.0, 1.0])


def test_bounds_leave_the_rest_to_others():
    problem = SharingProblem.from_dense([[1.0, 1.0, 1.0]], [9.0], bound=[1.0, np.inf, np.inf])
    allocation = bmf(problem)
    assert allocation.rates == pytest.approx([1.0, 4.0, 4.0])
    assert allocation.limits.tolist() == [-1, 0, 0]


def test_a_fatpipe_limits_each_use_alone():
    problem = SharingProblem.build([[(0, 1.0)], [(0, 4.0)]], [8.0], fatpipe=True)
    allocation = bmf(problem)
    assert allocation.rates.tolist() == [8.0, 2.0]
    assert allocation.limits.tolist() == [0, 0]


def test_a_resource_named_twice_counts_once_with_the_sum():
    problem = SharingProblem.build([[(0, 1.0), (0, 2.0)], [(0, 3.0)]], [6.0])
    assert bmf(problem).rates == pytest.approx([1.0, 1.0])


def test_rows_and_resources_of_nothing():
    problem = SharingProblem.build(
        [[], [], [(0, 1.0), (1, 1.0)], [(1, 1.0)], [(1, 1.0)], [(0, 0.0, 7.0)]],
        [0.0, 4.0],
        bound=[np.inf, 3.0, np.inf, np.inf, 0.0, np.inf],
    )
    allocation = bmf(problem)
    assert allocation.rates.tolist() == [1.0, 3.0, 0.0, 4.0, 0.0, 1.0]
    assert allocation.limits.tolist() == [-2, -1, 0, 1, -1, -2]
    assert allocation.certificate.ok


def test_a_share_of_zero_stands_for_the_usage():
    problem = SharingProblem.build([[(0, 1.0, 0.0)], [(0, 3.0)]], [6.0])
    assert bmf(problem).rates == pytest.approx([3.0, 1.0])


def test_an_empty_problem():
    assert bmf(SharingProblem.build([], [1.0])).rates.size == 0


def test_the_three_solutions_of_a_circulant_are_certified():
    problem = circulant([0.55, 0.0, 0.5, 1.0])
    swap = [0.625, 0.34375, 0.625, 0.34375]
    for rates in ([20 / 41] * 4, swap, swap[::-1]):
        assert verify(problem, rates, "bmf").ok
    assert bmf(problem).certificate.ok


def test_rates_are_among_all_solutions():
    random = np.random.default_rng(17)
    for number in range(many(150)):
        problem = random_problem(
            random, tasks=4, resources=3, fatpipes=0.15, weights=True, shares=number % 2 == 1
        )
        solutions = naive_sharing.all_bmf(problem)
        rates = bmf(problem).rates
        assert any(np.allclose(rates, x, rtol=1e-7, atol=0.0) for x in solutions)


@settings(max_examples=many(300), deadline=None)
@given(problems(fatpipes=0.2, repeated=True, zeros=0.1, weights=True, shares=True))
def test_always_certified(problem):
    assert bmf(problem).certificate.ok


@settings(max_examples=many(300), deadline=None)
@given(problems(fatpipes=0.1, weights=True, scale=(-3.0, 15.0)))
def test_always_certified_at_all_scales(problem):
    assert bmf(problem).certificate.ok


@settings(max_examples=many(100), deadline=None)
@given(st.integers(1, 9), st.floats(1e-3, 1e3), st.floats(1e-6, 1e6))
def test_one_resource_in_closed_form(n, ratio, capacity):
    usage = ratio ** np.arange(n)
    weight = 1.0 + np.arange(n) % 3
    problem = SharingProblem.from_dense(usage[None, :], capacity, weight=weight)
    assert bmf(problem).rates == pytest.approx(weight / usage * capacity / weight.sum(), rel=1e-12)


@settings(max_examples=many(100), deadline=None)
@given(problems(resources=1, weights=True), st.floats(1.0, 1e3))
def test_more_capacity_of_the_only_resource_slows_nobody(problem, factor):
    more = changed(problem, capacity=problem.capacity * factor)
    assert np.all(bmf(more).rates >= bmf(problem).rates * (1 - 1e-12))


@settings(max_examples=many(100), deadline=None)
@given(problems(weights=True, bounds=0.0), st.integers(-20, 20))
def test_units_do_not_matter(problem, exponent):
    # Powers of two: the same operations on the same digits, hence the same solution among several.
    factor = 2.0**exponent
    larger = changed(
        problem,
        usage=problem.usage * factor,
        share=problem.share * factor,
        capacity=problem.capacity * factor,
    )
    assert np.array_equal(bmf(larger).rates, bmf(problem).rates)
    faster = changed(problem, capacity=problem.capacity * factor)
    assert np.array_equal(bmf(faster).rates, bmf(problem).rates * factor)


@settings(max_examples=many(100), deadline=None)
@given(problems(tasks=4, resources=3, weights=True), st.randoms(use_true_random=False))
def test_the_order_of_tasks_does_not_matter_where_the_solution_is_unique(problem, source):
    if len(naive_sharing.all_bmf(problem)) == 1:
        order = np.array(source.sample(range(problem.n), problem.n))
        expected = bmf(problem).rates[order]
        assert bmf(permuted(problem, order)).rates == pytest.approx(expected, rel=1e-9)


@settings(max_examples=many(100), deadline=None)
@given(problems(bounds=0.0, weights=True))
def test_everybody_is_limited_by_a_full_resource(problem):
    allocation = bmf(problem)
    load = loads(problem, allocation.rates)
    assert np.all(load <= problem.capacity * (1 + 1e-9))
    assert load[allocation.limits] == pytest.approx(problem.capacity[allocation.limits], rel=1e-9)


def test_warm_starts_give_certified_rates():
    random = np.random.default_rng(23)
    for _ in range(many(100)):
        problem = random_problem(random, tasks=12, weights=True)
        _, _, levels = solve(problem)
        nearby = changed(problem, capacity=problem.capacity * random.uniform(0.5, 2.0, problem.m))
        status, rates, _ = solve(nearby, levels)
        assert status != 0 or verify(nearby, rates, "bmf").ok


def test_a_warm_start_from_the_solution_stays_there():
    random = np.random.default_rng(29)
    for _ in range(many(100)):
        problem = random_problem(random, tasks=12, shares=True)
        status, rates, levels = solve(problem)
        if status == 0:
            assert solve(problem, levels)[1] == pytest.approx(rates, rel=1e-9)


def test_equal_problems_have_equal_answers():
    problem = circulant([1.0, 0.3, 0.0, 0.7, 0.2, 0.0, 0.9])
    assert np.array_equal(
        fallbacks.solve_by_fallbacks(problem).rates, fallbacks.solve_by_fallbacks(problem).rates
    )


# From event to event: only the resources that limit somebody have a level.
def crossbar(random, tasks, hosts=48):
    """All-to-all tasks: on each of its hosts, and on the link of the host, which is rarely full."""
    rows = []
    for _ in range(tasks):
        chosen = random.choice(hosts, random.integers(2, 9), replace=False)
        size = 10.0 ** random.uniform(7, 9)
        rows.append(
            [(int(r), 10.0 ** random.uniform(9, 11)) for r in chosen]
            + [(int(hosts + r), size * len(chosen)) for r in chosen]
        )
    return rows


def test_levels_kept_while_tasks_come_and_go_give_certified_rates():
    random = np.random.default_rng(41)
    rows = crossbar(random, 80)
    capacity = np.repeat([1e10, 1.25e9], 48)
    present, levels, quick = list(range(30)), np.full(96, np.inf), 0
    for coming in range(30, 30 + many(50)):
        present = [*present[1:], coming] if coming % 3 else [*present[2:], coming]
        problem = SharingProblem.build([rows[i] for i in present], capacity)
        status, rates, levels = solve(problem, levels)
        assert status == 0
        assert verify(problem, rates, "bmf").ok
        # Whatever was there before, where the solution is unique.
        assert rates == pytest.approx(bmf(problem).rates, rel=1e-9)
        quick += np.isfinite(levels).sum()
    # Few resources have a level.
    assert 0 < quick < 0.5 * 96 * many(50)


def test_any_levels_may_be_the_first_guess():
    random = np.random.default_rng(43)
    for number in range(many(300)):
        problem = random_problem(
            random, tasks=10, fatpipes=0.2, repeated=number % 3 == 0, zeros=0.1, weights=True,
            shares=number % 2 == 1,
        )  # fmt: skip
        levels = 10.0 ** random.uniform(-3, 3, problem.m)
        levels[random.random(problem.m) < 0.5] = np.inf
        status, rates, _ = solve(problem, levels)
        assert status != 0 or verify(problem, rates, "bmf").ok


def test_levels_that_do_not_settle_are_left_to_the_fallbacks():
    random = np.random.default_rng(47)
    solved = 0
    for problem in hard_systems(many(200)):
        status, rates, _ = solve(problem, random.uniform(0.1, 1.0, problem.m))
        solved += status == 0
        if status != 0:
            rates = fallbacks.solve_by_fallbacks(problem).rates
        assert verify(problem, rates, "bmf").ok
    assert solved > 0


# The rungs, each alone on systems that need it and on ordinary ones.
def hard_systems(count):
    random = np.random.default_rng(31)
    for _ in range(count):
        n = random.integers(3, 9)
        line = random.random(n) * (random.random(n) < 0.5)
        line[random.integers(n)] = 1.0
        yield circulant(line)
        yield random_problem(random, tasks=8, resources=6, weights=True, shares=True)


@pytest.mark.parametrize("fallback", [fallbacks._paths, fallbacks._exact])
def test_each_sure_fallback_solves_alone(fallback):
    for problem in hard_systems(many(15)):
        reduced = fallbacks._ReducedProblem(problem)
        if reduced.n:
            assert fallback(reduced)
        assert verify(problem, reduced.answer()[0], "bmf").ok


def test_damped_filling_is_right_when_it_ends():
    for problem in hard_systems(many(30)):
        reduced = fallbacks._ReducedProblem(problem)
        if reduced.n and fallbacks._damped(reduced):
            assert verify(problem, reduced.answer()[0], "bmf").ok


@pytest.mark.parametrize("halvings", fallbacks.DAMPING)
def test_damping_moves_levels_a_part_of_the_way_geometrically(halvings):
    """From 4 towards the level that fills the first resource, whatever the second then does."""
    c = fallbacks._ReducedProblem(SharingProblem.from_dense([[2.0, 1.0], [1.0, 2.0]], 1.0)).arrays
    c.levels[:], c.y[:] = 4.0, 0.9
    fallbacks.fill(0, c)
    aim = float(c.levels[0])
    assert np.isfinite(aim)
    c.levels[:], c.y[:] = 4.0, 0.9
    fallbacks.damp(halvings, c)
    assert c.levels[0] == pytest.approx(4.0 * (aim / 4.0) ** 0.5**halvings, rel=1e-14)


def test_the_last_resort_is_feasible(monkeypatch):
    for fallback in ("_damped", "_paths", "_exact", "_long_paths"):
        monkeypatch.setattr(fallbacks, fallback, lambda reduced: False)
    uses = np.random.default_rng(1).random((5, 5))
    allocation = fallbacks.solve_by_fallbacks(SharingProblem.from_dense(uses, 1.0))
    assert allocation.certificate.feasible
    assert not allocation.certificate.ok


HARD_SYSTEMS = [
    "circulant80_worst",
    "circulant_many_pivots",
    "continuum_3x3",
    "newton_fail_shape0",
    "newton_fail_shape10",
    "newton_fail_shape11",
    "newton_fail_shape2",
    "newton_fail_shape3",
    "newton_fail_shape4",
    "newton_fail_shape6",
    "newton_fail_shape7",
    "newton_fail_shape8",
    "newton_fail_shape9",
    "polish_fail",
    "scales_1e19",
    "sg_abort_min",
    "three_isolated_4x4",
]


@pytest.mark.jit
@needs_jit
@pytest.mark.parametrize("name", HARD_SYSTEMS)
def test_hard_systems_of_the_study(name, shared_data):
    path = shared_data.parent / "spec" / "hard" / f"{name}.json"
    if not path.is_file():
        pytest.skip("the hard systems are not beside this checkout")
    system = json.loads(path.read_text())
    resource, task, usage = zip(*system["usage"], strict=True)
    problem = SharingProblem.from_triplets(
        [int(r) for r in resource],
        [int(i) for i in task],
        usage,
        system["capacity"],
        n=system["n_tasks"],
        fatpipe=[not shared for shared in system["shared"]],
        bound=[b if b and b > 0 else np.inf for b in system["bound"]],
        weight=system["weight"],
    )
    assert verify(problem, system["x"], "bmf", tolerance=1e-8).ok
    assert bmf(problem).certificate.ok
    # From levels of a system that is not much like it.
    for guess in (np.inf, 1.0):
        status, rates, _ = solve(problem, np.full(problem.m, guess))
        if status != 0:
            rates = fallbacks.solve_by_fallbacks(problem).rates
        assert verify(problem, rates, "bmf").ok


@pytest.mark.jit
@needs_jit
def test_long_near_circulant_paths():
    random = np.random.default_rng(37)
    for n in (20, 40, 60):
        line = random.random(n) * (random.random(n) < 8 / n)
        line[0] = 1.0
        matrix = np.array([np.roll(line, i) for i in range(n)])
        problem = SharingProblem.from_dense(matrix * (1 + 1e-3 * random.random((n, n))), 1.0)
        assert bmf(problem).certificate.ok
        reduced = fallbacks._ReducedProblem(problem)
        assert fallbacks._paths(reduced)
