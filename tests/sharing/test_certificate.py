"""Certificates: what they accept and what they blame."""

from __future__ import annotations

import numpy as np
import pytest

from ptaskmodel.errors import SharingError
from ptaskmodel.sharing import SharingProblem, verify

# Two tasks on one resource of capacity 1; the first also needs a slow one.
PROBLEM = SharingProblem.build([[(0, 1.0), (1, 1.0)], [(0, 1.0)]], [1.0, 0.25])


@pytest.mark.parametrize("rule", ["bmf", "maxmin", "fairbottleneck-corrected"])
def test_the_right_rates_are_certified(rule):
    certificate = verify(PROBLEM, [0.25, 0.75], rule)
    assert certificate.ok
    assert certificate.feasible
    assert certificate.residual == 0.0
    assert (certificate.worst_task, certificate.worst_resource) == (-1, -1)


def test_excess_is_relative_and_names_the_resource():
    certificate = verify(PROBLEM, [0.5, 0.5], "bmf")
    assert not certificate.feasible
    assert certificate.capacity_excess == pytest.approx(1.0)
    assert certificate.worst_resource == 1


def test_a_task_that_could_go_faster_is_named():
    certificate = verify(PROBLEM, [0.25, 0.5], "bmf")
    assert certificate.feasible
    assert not certificate.ok
    assert certificate.worst_task == 1
    assert certificate.deficiency == pytest.approx(0.25)


def test_a_full_resource_is_no_excuse_for_getting_less_than_others():
    problem = SharingProblem.from_dense([[1.0, 1.0]], [1.0])
    certificate = verify(problem, [0.25, 0.75], "bmf")
    assert certificate.worst_task == 0
    assert certificate.deficiency == pytest.approx(2 / 3)
    assert verify(problem, [0.25, 0.75], "fairbottleneck-corrected").ok


def test_rates_and_uses_are_compared_by_different_rules():
    problem = SharingProblem.from_dense([[1.0, 3.0]], [6.0])
    assert verify(problem, [3.0, 1.0], "bmf").ok
    assert verify(problem, [1.5, 1.5], "maxmin").ok
    assert not verify(problem, [1.5, 1.5], "bmf").ok


def test_bounds_and_fatpipes_are_reasons():
    problem = SharingProblem.build([[(0, 2.0)], [(0, 1.0)]], [1.0], fatpipe=True, bound=[9.0, 0.5])
    assert verify(problem, [0.5, 0.5], "bmf").ok
    assert verify(problem, [0.6, 0.5], "bmf").capacity_excess == pytest.approx(0.2)
    assert verify(problem, [0.5, 0.6], "bmf").capacity_excess == pytest.approx(0.2)


def test_tasks_without_uses():
    problem = SharingProblem.build([[], [(0, 0.0)]], [1.0], bound=[np.inf, 4.0])
    assert verify(problem, [1.0, 4.0], "bmf").ok
    assert not verify(problem, [1.0, 1.0], "maxmin").ok
    assert verify(problem, [1.0, 1.0], "fairbottleneck").ok
    assert verify(problem, [1.0, 4.0], "fairbottleneck-corrected").ok


def test_what_a_task_without_uses_misses_is_relative():
    problem = SharingProblem.build([[], []], [1.0], bound=[1e-12, 0.0])
    assert verify(problem, [1e-12, 0.0], "bmf").ok
    assert verify(problem, [1e-10, 0.0], "bmf").deficiency == pytest.approx(99.0)
    assert verify(problem, [1e-12, 1e-12], "bmf").deficiency == np.inf


def test_fairbottleneck_guarantees_the_equal_share():
    problem = SharingProblem.from_dense([[1.0, 1.0]], [1.0])
    assert verify(problem, [0.5, 0.5], "fairbottleneck").ok
    assert verify(problem, [0.4, 0.5], "fairbottleneck").deficiency == pytest.approx(0.2)


@pytest.mark.parametrize("rates", [[np.nan, 0.0], [-0.1, 0.0], [np.inf, 0.0]])
def test_impossible_rates_are_not_feasible(rates):
    assert not verify(PROBLEM, rates, "bmf").feasible


def test_unknown_rules_and_wrong_lengths_are_mistakes():
    with pytest.raises(SharingError, match="rule 'fair' is unknown; choose one of bmf"):
        verify(PROBLEM, [0.0, 0.0], "fair")
    with pytest.raises(SharingError, match="give 2 rates"):
        verify(PROBLEM, [0.0], "bmf")


def test_an_empty_problem_is_solved_by_no_rates():
    assert verify(SharingProblem.build([], [1.0]), [], "bmf").ok
