"""The least squares are found although a runtime has a kink where it ends at a change."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ptaskmodel.apps import OnOff
from ptaskmodel.calibration import (
    MeasuredGroup,
    Measurement,
    MeasurementError,
    leave_one_pattern_out,
    rates_fitter,
)
from ptaskmodel.calibration.fits import predicted_runtime, predicted_runtimes
from ptaskmodel.calibration.measurements import fit, standard_errors

NONE, CONSTANT = OnOff(0.0, 0.0), OnOff(math.inf, 0.0)
TABLE = MeasuredGroup(
    {},
    (
        Measurement(NONE, 600.0),
        Measurement(CONSTANT, 1800.0),
        Measurement(OnOff(10.0, 50.0), 660.0),
    ),
)
DURATIONS = (2.0, 5.0, 10.0, 15.0, 30.0, 45.0, 60.0)
POINTS = 201


def noisy(seed):
    """A table of runs that end 1.5 % beside what the model says."""
    draw = np.random.default_rng(seed)
    c1, c2 = 1.0 / draw.uniform(800, 2000), 1.0 / draw.uniform(300, 700)
    some = [OnOff(*map(float, draw.choice(DURATIONS, 2))) for _ in range(draw.integers(1, 5))]
    rows = []
    for pattern in (NONE, CONSTANT, *some):
        runtime_s = predicted_runtime(c1, c2, pattern) * draw.normal(1.0, 0.015)
        rows.append(Measurement(pattern, runtime_s))
    return MeasuredGroup({}, tuple(rows))


def chi_square(rows, c1, c2):
    parts = [(predicted_runtimes(c1, c2, row.pattern) / row.runtime_s - 1) / 0.01 for row in rows]
    return sum(part**2 for part in parts)


def least_on_grids(rows, c1, c2):
    """The least chi square within 6 % of two rates: on a grid, and on ever finer ones below it."""
    places, width, least = [(math.log(c1), math.log(c2))], 0.06, math.inf
    for _ in range(9):
        found = []
        for a, b in places:
            x, y = np.meshgrid(a + width * SIDE, b + width * SIDE, indexing="ij")
            costs = chi_square(rows, np.exp(x), np.exp(y))
            inner = costs[1:-1, 1:-1]
            low = (inner <= costs[:-2, 1:-1]) & (inner <= costs[2:, 1:-1])
            low &= (inner <= costs[1:-1, :-2]) & (inner <= costs[1:-1, 2:])
            for i, j in (np.argwhere(low) + 1).tolist():
                found.append((float(costs[i, j]), float(x[i, j]), float(y[i, j])))
        found.sort()
        places, width = [(a, b) for _, a, b in found[:5]] or places, width / 20.0
        least = min([least, *(cost for cost, _, _ in found[:1])])
    return least


SIDE = np.linspace(-1.0, 1.0, POINTS)


def test_a_table_whose_minimum_lies_at_a_kink():
    """Found by hand: a pattern's eleven periods end just before its work."""
    found = rates_fitter()(TABLE, [True] * 3)
    assert found.value("c1") == pytest.approx(0.00055632, abs=5e-9)
    assert found.value("c2") == pytest.approx(0.00170164, abs=5e-9)
    assert found.chi_square == pytest.approx(4.868, abs=1e-3)


@pytest.mark.parametrize("seed", range(12))
def test_no_rates_nearby_are_better(seed):
    group = noisy(seed)
    found = rates_fitter()(group, [True] * len(group.measurements))
    least = least_on_grids(group.measurements, found.value("c1"), found.value("c2"))
    assert found.chi_square <= least * (1.0 + 1e-7)


@pytest.mark.parametrize("seed", range(12, 20))
def test_it_matters_not_where_the_search_begins(seed):
    rows = noisy(seed).measurements
    measured_s, error_s = np.array([row.runtime_s for row in rows]), standard_errors(rows)

    def predict(rates):
        return np.array([predicted_runtimes(rates[0], rates[1], row.pattern) for row in rows])

    start = np.array([1.0 / rows[1].runtime_s, 1.0 / rows[0].runtime_s])
    factors = ((1.0, 1.0), (1.1, 0.9), (0.8, 1.2), (1.3, 1.3))
    found = [fit(predict, start * by, measured_s, error_s, searched=True) for by in factors]
    least = min(one.chi_square for one in found)
    assert all(one.chi_square <= least * (1.0 + 1e-7) for one in found)


def test_predictions_of_what_is_left_out_are_of_the_least_squares():
    rows = (*TABLE.measurements, Measurement(OnOff(5.0, 25.0), 640.0))
    (left,) = (
        row
        for row in leave_one_pattern_out([MeasuredGroup({}, rows)], rates_fitter())
        if row.measurement is rows[-1]
    )
    best = rates_fitter()(TABLE, [True] * 3)
    pattern = rows[-1].pattern
    expected = predicted_runtime(best.value("c1"), best.value("c2"), pattern)
    assert left.predicted_s == pytest.approx(expected, rel=1e-7)


def test_costly_predictions_are_not_searched_but_end_at_a_kink_too():
    """|x - 3| + |y - 5| and both themselves: the minimum lies where no derivative is."""

    def predict(point):
        x, y = point
        return np.array([x + 5.0 * abs(x - 3.0), y + 5.0 * abs(y - 5.0), x + y, x * y])

    asked = []

    def counted(point):
        asked.append(point)
        return predict(point)

    found = fit(counted, [3.3, 4.6], np.array([2.0, 4.0, 8.0, 15.0]), np.full(4, 0.1), spread=0.0)
    assert found.values == pytest.approx([3.0, 5.0], rel=2e-4)
    assert len(asked) < 300


def test_runtimes_too_far_apart_are_refused():
    rows = (Measurement(NONE, 1e10), Measurement(CONSTANT, 1e11), Measurement(NONE, 1e-300))
    with pytest.raises(MeasurementError, match="differ too much"):
        rates_fitter()(MeasuredGroup({}, rows), [True] * 3)
