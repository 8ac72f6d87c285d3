"""The load of a machine in cells of time: means are integrals, peaks are not lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptaskmodel.results.pictures.tracks import load_in_cells


def test_a_step_in_the_middle_of_a_cell():
    rows = [(0.0, 0.0, 0.0, 4.0), (1.0, 2.0, 6.0, 8.0), (3.0, 0.0, 0.0, 0.0)]
    mean, most = load_in_cells(rows, 4.0, 2)
    assert mean.tolist() == [[1.0, 3.0, 6.0], [1.0, 3.0, 4.0]]
    assert most.tolist() == [[2.0, 6.0, 8.0], [2.0, 6.0, 8.0]]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), min_size=1, max_size=12),
    st.integers(1, 7),
)
def test_means_add_up_and_lie_below_the_most(changes, cells):
    changes = sorted(dict(changes).items())
    rows = [(float(date), value, 0.0, 0.0) for date, value in changes]
    mean, most = load_in_cells(rows, 60.0, cells)
    ends = [date for date, _ in changes[1:]] + [60]
    whole = sum(value * (end - date) for (date, value), end in zip(changes, ends, strict=True))
    assert mean[:, 0].sum() * 60.0 / cells == pytest.approx(whole)
    assert np.all(mean <= most + 1e-12)
    assert most.max() == max(value for _, value in changes)
