"""Fits of the rates: recovered truth, and the accuracy on the measured runs."""

import math

import numpy as np
import pytest

from ptaskmodel.apps import OnOff
from ptaskmodel.calibration import (
    MeasuredGroup,
    Measurement,
    calibrate,
    leave_one_pattern_out,
    rates_fitter,
    read_measurements,
    report,
    summarise,
)
from ptaskmodel.calibration.fits import predicted_runtime
from ptaskmodel.calibration.results import is_endpoint

PATTERNS = [OnOff(0, 0), OnOff(15, 45), OnOff(15, 15), OnOff(45, 15), OnOff(math.inf, 0)]


def made_up(c1, c2, noise=0.0, seed=0):
    draw = np.random.default_rng(seed)
    rows = []
    for pattern in PATTERNS:
        runtime_s = predicted_runtime(c1, c2, pattern) + noise * draw.standard_normal()
        rows.append(Measurement(pattern, runtime_s, stddev_s=max(noise, 1.0), runs=1))
    return MeasuredGroup({"case": "made up"}, tuple(rows))


@pytest.mark.parametrize("fit_on", ["endpoints", "all"])
def test_exact_measurements_give_the_rates_back(fit_on):
    (group,) = calibrate([made_up(1 / 900, 1 / 300)], rates_fitter(), "rates", fit_on).groups
    assert group.value("c1") == pytest.approx(1 / 900, rel=1e-6)
    assert group.value("c2") == pytest.approx(1 / 300, rel=1e-6)
    assert all(abs(row.relative_error) < 1e-6 for row in group.predictions)


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    covered = 0
    for seed in range(60):
        group = made_up(1 / 900, 1 / 300, noise=2.0, seed=seed)
        fitted = rates_fitter()(group, [True] * len(PATTERNS))
        low, high = fitted.parameters["c1"].interval95
        covered += low <= 1 / 900 <= high
    assert covered >= 54


def test_standard_error_at_the_endpoints_is_that_of_the_measurement():
    rows = (
        Measurement(OnOff(0, 0), 300.0, stddev_s=2.0, runs=4),
        Measurement(OnOff(math.inf, 0), 900.0, stddev_s=9.0, runs=9),
    )
    fitted = rates_fitter()(MeasuredGroup({}, rows), [True, True])
    assert fitted.parameters["c2"].stderr == pytest.approx(1.0 / 300**2, rel=1e-3)
    assert fitted.parameters["c1"].stderr == pytest.approx(3.0 / 900**2, rel=1e-3)


def test_rows_weigh_by_their_standard_deviations():
    rows = (
        Measurement(OnOff(0, 0), 300.0, stddev_s=0.1),
        Measurement(OnOff(0, 0), 320.0, stddev_s=10.0),
        Measurement(OnOff(math.inf, 0), 900.0, stddev_s=1.0),
    )
    fitted = rates_fitter()(MeasuredGroup({}, rows), [True] * 3)
    assert 1 / fitted.value("c2") == pytest.approx(300.0, abs=0.01)


def test_a_group_without_two_levels_of_interference_is_not_fitted():
    rows = (Measurement(OnOff(0, 0), 300.0), Measurement(OnOff(15, 15), None))
    fitted = rates_fitter()(MeasuredGroup({}, rows), [True, True])
    assert not fitted.parameters
    assert "rows with interference" in fitted.note
    assert all(row.predicted_s is None for row in fitted.predictions)


@pytest.fixture(scope="module")
def measured(repository_measurements):
    return read_measurements(repository_measurements / "pdgemm_runtimes.csv")


def disturbed(calibration):
    return [
        row
        for group in calibration.groups
        for row in group.predictions
        if not is_endpoint(row.measurement.pattern) and row.relative_error is not None
    ]


def test_endpoints_predict_the_other_28_rows(measured):
    calibration = calibrate(measured, rates_fitter(), "rates", "endpoints")
    found = summarise(calibration.predictions, used_in_fit=False)
    assert found.count == 28
    assert found.mean <= 0.009
    assert found.largest <= 0.043


def test_the_joint_fit_does_better_on_the_same_rows(measured):
    fittable = [g for g in measured if g.measurements[-1].runtime_s is not None]
    before = summarise(disturbed(calibrate(fittable, rates_fitter(), "rates", "endpoints")))
    after = summarise(disturbed(calibrate(fittable, rates_fitter(), "rates", "all")))
    assert after.count == before.count == 28
    assert after.mean < before.mean
    assert after.largest < before.largest


def test_leaving_one_pattern_out_is_reported(measured):
    fitter = rates_fitter()
    left_out = leave_one_pattern_out(measured, fitter)
    assert len(left_out) == 47
    text = report(calibrate(measured, fitter, "rates", "all"), left_out)
    assert "each pattern left out" in text
    assert summarise(left_out).mean < 0.03
