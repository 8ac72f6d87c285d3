"""Sharing problems: construction and the mistakes that it refuses."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from ptaskmodel.errors import SharingError
from ptaskmodel.sharing import SharingProblem


def test_rows_triplets_and_matrices_give_the_same_problem():
    rows = SharingProblem.build([[(0, 2.0), (1, 3.0)], [(1, 4.0)]], [10.0, 20.0])
    triplets = SharingProblem.from_triplets(
        [1, 0, 1], [1, 0, 0], [4.0, 2.0, 3.0], [10.0, 20.0], n=2
    )
    matrix = SharingProblem.from_dense([[2.0, 0.0], [3.0, 4.0]], [10.0, 20.0])
    for other in (triplets, matrix):
        for name in ("start", "resource", "usage", "share", "capacity", "bound", "weight"):
            assert np.array_equal(getattr(rows, name), getattr(other, name))
    assert (rows.n, rows.m) == (2, 2)
    assert rows.task.tolist() == [0, 0, 1]


def test_the_share_is_the_usage_unless_given():
    problem = SharingProblem.build([[(0, 2.0), (1, 3.0, 1.5)]], [1.0, 1.0])
    assert problem.share.tolist() == [2.0, 1.5]


def test_single_values_are_repeated():
    problem = SharingProblem.from_dense(np.ones((2, 3)), 5.0, bound=0.5, weight=2.0, fatpipe=True)
    assert problem.capacity.tolist() == [5.0, 5.0]
    assert problem.bound.tolist() == [0.5] * 3
    assert problem.weight.tolist() == [2.0] * 3
    assert problem.fatpipe.all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"capacity": [-1.0]}, r"capacity\[0\] is -1.0; it must be >= 0"),
        ({"capacity": [np.inf]}, r"capacity\[0\] is inf"),
        ({"capacity": [[1.0]]}, "capacity has 2 dimensions"),
        ({"capacity": "much"}, "capacity: 'much' is not"),
        ({"rows": [[(1, 1.0)]]}, r"resource\[0\] is 1; it must be 0\.\.0"),
        ({"rows": [[(0, np.nan)]]}, r"usage\[0\] is nan"),
        ({"rows": [[(0, 1.0, -2.0)]]}, r"share\[0\] is -2.0"),
        ({"rows": [[(0, 1.0, 1.0, 1.0)]]}, "give \\(resource, usage\\)"),
        ({"bound": [-0.5]}, r"bound\[0\] is -0.5"),
        ({"bound": [1.0, 1.0]}, "bound has 2 values; give 1"),
        ({"weight": [0.0]}, r"weight\[0\] is 0.0; it must be > 0"),
        ({"fatpipe": [True, False]}, "fatpipe has 2 values; give 1"),
    ],
)
def test_mistakes_are_named(options, message):
    given = {"rows": [[(0, 1.0)]], "capacity": [1.0], **options}
    with pytest.raises(SharingError, match=message) as caught:
        SharingProblem.build(given.pop("rows"), given.pop("capacity"), **given)
    assert "\n" not in str(caught.value)


def test_matrices_must_have_two_dimensions():
    with pytest.raises(SharingError, match="usage has 1 dimensions"):
        SharingProblem.from_dense([1.0], [1.0])


def test_problems_and_certificates_need_no_compiler():
    code = (
        "import sys; from ptaskmodel.sharing import SharingProblem, verify;"
        "import ptaskmodel.sharing.problem; assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_solvers_keep_their_names_when_their_modules_come_first():
    code = (
        "import ptaskmodel.sharing.bottleneck_max_fairness.solver;"
        "from ptaskmodel.sharing import bmf, maxmin;"
        "assert callable(bmf) and callable(maxmin)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
