"""What tables say, against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pandas
import pytest

from ptaskmodel.campaign.report import in_short
from ptaskmodel.campaign.statistics import effects, means, paired, pareto


def table(formula, levels=(1, 2, 3), modes=("a", "b"), repetitions=8):
    rows = [
        {"x": x, "mode": mode, "repetition": k, "y": formula(x, mode, k)}
        for x in levels
        for mode in modes
        for k in range(repetitions)
    ]
    return pandas.DataFrame(rows)


def test_means_have_student_intervals():
    frame = pandas.DataFrame({"x": 1, "repetition": range(4), "y": [1.0, 2.0, 4.0, 5.0]})
    found = means(frame, ["x"], ["y"]).iloc[0]
    assert found["runs"] == found["seeds"] == 4
    assert found["mean"] == 3.0
    deviation = math.sqrt(10 / 3)
    assert found["standard_deviation"] == pytest.approx(deviation)
    assert found["high"] - 3.0 == pytest.approx(3.182446305 * deviation / 2)
    assert found["low"] == pytest.approx(6.0 - found["high"])


def test_what_the_seeds_have_in_common_cancels():
    noise = np.random.default_rng(1).normal(0, 100, 8)
    frame = table(lambda x, mode, k: x + noise[k] + (1.0 if mode == "b" else 0.0))
    found = paired(frame, ["x", "mode"], ["y"], {"mode": "a"}).iloc[0]
    assert (found["pairs"], found["seeds"]) == (24, 8)
    assert found[["difference", "low", "high"]].tolist() == pytest.approx([1.0] * 3)
    assert found["lower_in"] == 0.0
    assert found["p_value"] == found["p_wilcoxon"] == 2 ** (1 - 8)  # of its sign, eight times


def test_what_does_not_differ_has_a_p_value_of_one():
    found = paired(table(lambda x, mode, k: x + k), ["x", "mode"], ["y"], {"mode": "a"})
    assert found["difference"].tolist() == [0.0]
    assert found[["p_value", "p_wilcoxon", "p_holm"]].iloc[0].tolist() == [1.0] * 3


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


def slowdowns(repetitions):
    """Far nodes cost 5 more under load; next ones nothing beside noise."""
    noise = np.random.default_rng(7).normal(0, 0.3, (3, 2, repetitions))
    return pandas.DataFrame(
        [
            (where, load, k, 10.0 + 5.0 * (where == "far") * load + k + noise[i, load, k])
            for i, where in enumerate(("near", "far", "next"))
            for load in (0, 1)
            for k in range(repetitions)
        ],
        columns=["where", "load", "repetition", "slowdown"],
    )


def test_what_was_found_is_said_in_short():
    given = (slowdowns(8), ["where", "load"], ["slowdown"], {"where": "near"})
    said, tests = in_short(*given, {"slowdown": -1})
    assert said == (
        "slowdown: far has 16.9 % more than near (worse, p < 0.001), in 56.3 % of 16 pairs; next "
        "not significantly different from near; the effect of where depends on load (16.2 % of the "
        "variation, p < 0.001)."
    )
    assert tests.startswith("8 independent seeds; runs with the same seed are averaged first.")
    assert "(better, " in in_short(*given, {"slowdown": 1})[0]


def test_one_seed_tells_nothing_apart():
    frame = slowdowns(1)
    said, tests = in_short(frame, ["where", "load"], ["slowdown"], {"where": "near"}, {})
    assert "far has 22.7 % more than near (no test), in 50 % of 2 pairs" in said
    assert "depends" not in said
    assert tests.startswith("One seed, or seeds without effect: no test and no interval")
    found = paired(frame, ["where", "load"], ["slowdown"], {"where": "near"})
    assert found[["low", "high", "p_value", "p_wilcoxon", "p_holm"]].isna().all(axis=None)


def test_seeds_that_change_nothing_are_one():
    frame = table(lambda x, mode, k: x + (mode == "b"))
    found = paired(frame, ["x", "mode"], ["y"], {"mode": "a"}).iloc[0]
    assert (found["pairs"], found["seeds"]) == (24, 1)
    assert math.isnan(found["p_value"])
    assert effects(frame, ["x", "mode"], ["y"])["seeds"].tolist() == [1] * 3


def test_many_levels_are_said_as_well():
    noise = np.random.default_rng(2).normal(size=(20, 6))
    frame = table(lambda x, mode, k: 50 * (x == 7) + noise[x, k % 6], levels=range(20), modes="a")
    said = in_short(frame.query("repetition < 6"), ["x"], ["y"], {"x": 0}, {})[0]
    assert "18 of 19 levels not significantly different from 0" in said
    assert said.startswith("y: 7 has ")


def test_without_a_baseline_the_strongest_factors_are_said():
    noise = np.random.default_rng(3).normal(size=(4, 2, 8))
    frame = table(lambda x, mode, k: 9000.0 * x + (mode == "b") + noise[x, int(mode == "b"), k])
    said = in_short(frame, ["x", "mode"], ["y"], {}, {})[0]
    assert said == (
        "y: 100 % of the variation is explained by x (p < 0.001, means from 9\u202f001 with 1 to "
        "27\u202f000 with 3); no interaction of factors is significant."
    )


def test_equal_runs_deviate_by_nothing():
    frame = table(lambda x, mode, k: 0.1 * x)
    found = means(frame, ["x", "mode"], ["y"])
    assert found["standard_deviation"].tolist() == [0.0] * 6
    parts = effects(frame, ["x", "mode"], ["y"])
    assert parts["part"].tolist() == [1.0, 0.0, 0.0]
