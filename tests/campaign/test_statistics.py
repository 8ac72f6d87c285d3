"""What tables say, against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pandas
import pytest

from ptaskmodel.campaign.statistics import effects, means, paired, pareto
from ptaskmodel.campaign.words import in_short


def table(formula, levels=(1, 2, 3), modes=("a", "b"), repetitions=8):
    rows = [
        {"x": x, "mode": mode, "repetition": k, "y": formula(x, mode, k)}
        for x in levels
        for mode in modes
        for k in range(repetitions)
    ]
    return pandas.DataFrame(rows)


def test_means_have_student_intervals():
    values = [1.0, 2.0, 4.0, 5.0]
    found = means(pandas.DataFrame({"x": 1, "y": values}), ["x"], ["y"]).iloc[0]
    assert found["runs"] == 4
    assert found["mean"] == 3.0
    deviation = math.sqrt(10 / 3)
    assert found["standard_deviation"] == pytest.approx(deviation)
    assert found["half_interval"] == pytest.approx(3.182446305 * deviation / 2)


def test_what_the_seeds_have_in_common_cancels():
    noise = np.random.default_rng(1).normal(0, 100, 8)
    frame = table(lambda x, mode, k: x + noise[k] + (1.0 if mode == "b" else 0.0))
    found = paired(frame, ["x", "mode"], ["y"], {"mode": "a"}).iloc[0]
    assert found["pairs"] == 24
    assert found["difference"] == pytest.approx(1.0)
    assert found["half_interval"] == pytest.approx(0.0, abs=1e-9)
    assert found["lower_in"] == 0.0
    assert found["p_value"] < 1e-4


def test_no_difference_has_no_p_value():
    found = paired(table(lambda x, mode, k: x + k), ["x", "mode"], ["y"], {"mode": "a"})
    assert found["difference"].tolist() == [0.0]
    assert math.isnan(found["p_value"][0])


def test_effects_of_a_sum_and_of_a_product():
    added = effects(table(lambda x, mode, k: x + (mode == "b")), ["x", "mode"], ["y"])
    parts = dict(
        zip(zip(added["factor"], added["with_factor"], strict=True), added["part"], strict=True)
    )
    assert parts["x", ""] == pytest.approx((2 / 3) / (2 / 3 + 1 / 4))
    assert parts["x", "mode"] == pytest.approx(0.0, abs=1e-12)
    crossed = effects(
        table(lambda x, mode, k: (x - 2) * (1 if mode == "b" else -1)), ["x", "mode"], ["y"]
    )
    assert crossed["part"].tolist() == pytest.approx([0.0, 0.0, 1.0])


def test_a_front_holds_what_nothing_beats():
    found = pandas.DataFrame({"cost": [1, 2, 3, 2], "gain": [1, 3, 3, 2]})
    assert pareto(found, {"cost": -1, "gain": 1}).index.tolist() == [0, 1]
    assert pareto(found, {"cost": -1, "gain": -1}).index.tolist() == [0]


def test_what_was_found_is_said_in_short():
    frame = pandas.DataFrame(
        [
            (where, load, seed, 10.0 + 5.0 * (where == "far") * load + seed + (0.3 * seed * load))
            for where in ("near", "far", "next")
            for load in (0.0, 1.0)
            for seed in range(8)
        ],
        columns=["where", "load", "repetition", "slowdown"],
    )
    given = (frame, ["where", "load"], ["slowdown"], {"where": "near"})
    (said,) = in_short(*given, {"slowdown": -1})
    assert said == (
        "slowdown: far has 18 % more than near (worse), in 50% of 16 pairs; next not told apart "
        "from near; what where does depends on load (11.9% of the variation)."
    )
    assert "(better)" in in_short(*given, {"slowdown": 1})[0]
    assert in_short(frame, ["where"], ["slowdown"], {}, {}) == []


def test_without_a_baseline_the_strongest_factor_is_said():
    frame = table(lambda x, mode, k: 9000.0 * x + (mode == "b") + k % 2)
    (said,) = in_short(frame, ["x", "mode"], ["y"], {}, {})
    assert said == (
        "y: 100% of the variation goes with x, least with 1 (9001) and most with 3 (27,001); "
        "what x does depends little on mode (0.0% of the variation)."
    )


def test_equal_runs_deviate_by_nothing():
    frame = table(lambda x, mode, k: 0.1 * x)
    found = means(frame, ["x", "mode"], ["y"])
    assert found["standard_deviation"].tolist() == [0.0] * 6
    parts = effects(frame, ["x", "mode"], ["y"])
    assert parts["part"].tolist() == [1.0, 0.0, 0.0]
