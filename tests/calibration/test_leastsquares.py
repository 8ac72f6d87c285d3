"""Least squares: what the measurements determine, and what they do not."""

from __future__ import annotations

import numpy as np
import pytest

from ptaskmodel.calibration.measurements import fit

MEASURED = np.array([6.0, 6.06, 9.0])
CASES = {
    "a product": (lambda p: np.full(3, p[0] * p[1]), 2, (), (0, 1)),
    "a product and a third": (lambda p: p[0] * p[1] * np.array([1, 1, 1 + p[2]]), 3, (), (0, 1)),
    "one of two": (lambda p: np.full(3, p[0]) + 0.0 * p[1], 2, (1,), ()),
    "both": (lambda p: np.array([p[0], p[0], p[0] + p[1]]), 2, (), ()),
}


@pytest.mark.parametrize("name", CASES)
def test_parameters_that_only_a_combination_determines_are_named(name):
    predict, count, idle, tied = CASES[name]
    found = fit(predict, [2.0, 2.5, 0.5][:count], MEASURED, np.full(3, 0.06))
    assert (found.idle, found.tied) == (idle, tied)
