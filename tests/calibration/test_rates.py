"""The slow/fast model: exact runtimes and progress for any pattern."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptaskmodel.apps import OnOff
from ptaskmodel.calibration.fits import predicted_runtime, progress
from ptaskmodel.errors import PTaskModelError

RATES = st.floats(1e-4, 1.0)
DURATIONS = st.floats(0.5, 500.0)

# The parallel-task prediction published for PDGEMM (whole seconds): a third of the rate while on.
PUBLISHED = [(0, 0, 312), (15, 45, 382), (15, 15, 472), (30, 30, 472), (45, 15, 635)]


@pytest.mark.parametrize("undisturbed_s", [311.51, 311.6, 311.69])
@pytest.mark.parametrize(("on_s", "off_s", "published_s"), [*PUBLISHED, (math.inf, 0, 935)])
def test_published_predictions_are_a_third_of_the_rate(undisturbed_s, on_s, off_s, published_s):
    c2 = 1.0 / undisturbed_s
    assert round(predicted_runtime(c2 / 3.0, c2, OnOff(on_s, off_s))) == published_s


@given(RATES, RATES, DURATIONS, DURATIONS)
def test_progress_at_the_runtime_is_one_and_not_before(c1, c2, on_s, off_s):
    pattern = OnOff(on_s, off_s)
    end_s = predicted_runtime(c1, c2, pattern)
    before = progress(c1, c2, pattern, np.array([end_s * (1 - 1e-6)]))[0]
    assert before < 1.0
    assert progress(c1, c2, pattern, np.array([end_s]))[0] == pytest.approx(1.0, abs=1e-9)


@given(RATES, DURATIONS, DURATIONS)
def test_equal_rates_do_not_see_the_pattern(c, on_s, off_s):
    assert predicted_runtime(c, c, OnOff(on_s, off_s)) == pytest.approx(1.0 / c, rel=1e-12)


def test_within_the_first_time_on_only_the_slow_rate_counts():
    assert predicted_runtime(0.1, 1.0, OnOff(20, 1)) == pytest.approx(10.0)


def test_a_run_may_end_exactly_with_a_period():
    assert predicted_runtime(0.01, 0.03, OnOff(10, 5)) == pytest.approx(60.0)
    assert predicted_runtime(0.25, 0.25, OnOff(2, 2)) == pytest.approx(4.0)


def test_rates_must_be_positive():
    with pytest.raises(PTaskModelError, match="give finite numbers > 0"):
        predicted_runtime(0.0, 1.0, OnOff(1, 1))
