"""What tables assert of campaigns without any effect, and find in those with one."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from scipy import stats

from ptaskmodel.campaign.report import printed
from ptaskmodel.campaign.statistics import (
    bounds_of,
    effects,
    holm,
    mean_interval,
    paired,
)

DRAWS = 30


def table(**metrics):
    """A row a run; a metric is an array of levels of p, levels of q, repetitions."""
    shape = next(iter(metrics.values())).shape
    index = pandas.MultiIndex.from_product(map(range, shape), names=["p", "q", "repetition"])
    return pandas.DataFrame(
        {name: one.ravel() for name, one in metrics.items()}, index=index
    ).reset_index()


def asserted(found, column):
    return bool((found[column] < 0.05).any())


@pytest.mark.parametrize("levels", [1, 10])
def test_levels_of_a_factor_that_does_nothing_are_no_repetitions(levels):
    wrong = outside = 0
    for k in range(DRAWS):
        g = np.random.default_rng(1000 + k)
        values = np.repeat(g.normal(size=(2, 1, 6)), levels, axis=1)
        values += 1e-9 * g.normal(size=values.shape)
        row = paired(table(m=values), ["p", "q"], ["m"], {"p": 0}).iloc[0]
        assert (row["seeds"], row["pairs"]) == (6, 6 * levels)
        wrong += row["p_value"] < 0.05
        outside += not row["low"] <= 0 <= row["high"]
    assert max(wrong, outside) <= 0.08 * DRAWS


def test_p_values_are_those_of_means_over_seeds():
    g = np.random.default_rng(5)
    values = g.normal(size=(2, 4, 7)) + g.normal(size=7)
    row = paired(table(m=values), ["p", "q"], ["m"], {"p": 0}).iloc[0]
    base, other = values.mean(axis=1)
    known = stats.ttest_rel(other, base)
    assert row["p_value"] == pytest.approx(known.pvalue)
    ends = known.confidence_interval(0.95)
    assert row[["low", "high"]].tolist() == pytest.approx([ends.low, ends.high])
    assert row["p_wilcoxon"] == pytest.approx(stats.wilcoxon(other - base).pvalue)


@pytest.mark.parametrize(("levels", "seeds"), [((3, 2), 3), ((4, 5), 3), ((3, 2), 10)])
def test_noise_is_no_interaction(levels, seeds):
    found = 0
    for k in range(DRAWS):
        g = np.random.default_rng(5000 + k)
        table_of_noise = table(m=g.normal(size=(*levels, seeds)) + 3 * g.normal(size=seeds))
        parts = effects(table_of_noise, ["p", "q"], ["m"])
        found += asserted(parts[parts["with_factor"] != ""], "p_holm")
    assert found <= 0.1 * DRAWS


def test_an_effect_of_two_deviations_is_found_beside_three_metrics_of_noise():
    alone = crossed = 0
    for k in range(DRAWS):
        g = np.random.default_rng(9000 + k)
        noise = {name: g.normal(size=(3, 2, 10)) + 3 * g.normal(size=10) for name in "abcd"}
        noise["a"][2] += 2
        noise["b"][2] += [[-2], [2]]
        frame = table(**noise)
        against = paired(frame, ["p", "q"], list("abcd"), {"p": 0})
        alone += asserted(against[(against["metric"] == "a") & (against["p"] == 2)], "p_holm")
        parts = effects(frame, ["p", "q"], list("abcd"))
        crossed += asserted(
            parts[(parts["metric"] == "b") & (parts["with_factor"] != "")], "p_holm"
        )
    assert alone >= 0.85 * DRAWS
    assert crossed >= 0.85 * DRAWS


def test_an_effect_is_tested_as_in_designs_with_repeated_measures():
    """F and p of two levels are those of a t test; of more, of effect against effect times seed."""
    g = np.random.default_rng(8)
    values = g.normal(size=(2, 3, 9)) + g.normal(size=9)
    found = effects(table(m=values), ["p", "q"], ["m"]).set_index("with_factor")
    first = found.loc[""].set_index("factor")
    assert first["p_value"]["p"] == pytest.approx(stats.ttest_rel(*values.mean(axis=1)).pvalue)
    crossed = values[1] - values[0]
    mean, within = crossed.mean(axis=1), crossed - crossed.mean(axis=0)
    between = 9 * ((mean - mean.mean()) ** 2).sum()
    ratio = between / (((within.T - within.mean(axis=1)) ** 2).sum() / 8)
    assert found.loc["q", "p_value"] >= stats.f.sf(ratio, 2, 16) - 1e-12
    assert found.loc["q", "p_value"] == pytest.approx(stats.f.sf(ratio, 2, 16), rel=0.5)


def test_combinations_left_out_are_no_effect():
    """p stands for nothing, but its second level is run at high q alone."""
    values = np.random.default_rng(4).normal(0, 0.1, (2, 3, 8))
    values += [[0.0], [5.0], [10.0]]
    frame = table(m=values).query("p == 0 or q > 0")
    found = effects(frame, ["p", "q"], ["m"]).set_index(["factor", "with_factor"])
    assert found["p_value"]["p", ""] > 0.05
    assert found["part"]["p", ""] < 0.01
    assert found["p_holm"]["q", ""] < 1e-4


def test_a_run_that_failed_costs_its_seed_alone():
    values = np.random.default_rng(6).normal(size=(2, 2, 8))
    values[1, 1] += 9.0
    frame = table(m=values).drop(index=3)
    found = effects(frame, ["p", "q"], ["m"])
    assert found["seeds"].tolist() == [8, 8, 7]
    assert (found["p_holm"] < 0.05).all()


def test_numbers_that_were_drawn_count_as_scales():
    g = np.random.default_rng(9)
    x, y = g.random(60), g.random(60)
    rows = [(x[k], y[k], seed, 5 * x[k] + g.normal()) for k in range(60) for seed in range(6)]
    frame = pandas.DataFrame(rows, columns=["x", "y", "repetition", "m"])
    found = effects(frame, ["x", "y"], ["m"])
    assert found["p_holm"].iloc[0] < 1e-4
    assert found["p_holm"].iloc[1] > 0.05
    assert found["part"].iloc[0] == pytest.approx(0.68, abs=0.1)


def test_holm_steps_down():
    given = np.array([0.01, 0.04, np.nan, 0.03, 0.005])
    assert holm(given)[[0, 1, 3, 4]].tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert np.isnan(holm(given)[2])


def test_intervals_stay_within_what_a_metric_can_be():
    slow = np.array([1.1, 1.2, 30.0])
    mean, _, low, high = mean_interval(slow, bounds_of("slowdown.mean", slow))
    assert 1.0 < low < mean < high
    used = np.array([0.9, 0.99, 0.999])
    mean, _, low, high = mean_interval(used, bounds_of("useful_utilisation", used))
    assert 0.0 < low < mean < high < 1.0
    assert mean_interval(used - 1.0, bounds_of("utilisation", used - 1.0))[3] > 0.0
    times = np.array([0.1, 0.2, 9.0])
    assert mean_interval(times, bounds_of("waiting_s.mean", times))[2] > 0.0


def test_a_relative_difference_of_times_is_above_minus_one():
    g = np.random.default_rng(1)
    found = paired(table(wait_s=g.lognormal(0, 2, (2, 1, 3))), ["p"], ["wait_s"], {"p": 0}).iloc[0]
    assert -1.0 < found["relative_low"] < found["relative"] < found["relative_high"]


def test_a_terminal_table_has_quantities():
    rows = {
        "load": [0.6, 0.6],
        "metric": ["waiting_s.mean", "utilisation"],
        "difference": [-90.0, 0.02],
        "relative": [-0.25, 0.025],
        "p_value": [0.03125, 1e-9],
    }
    lines = [line.split() for line in printed(pandas.DataFrame(rows)).splitlines()]  # fmt: skip
    assert lines[2:] == [
        ["0.6", "waiting_s.mean", "−90", "s", "−25", "%", "0.031"],
        ["0.6", "utilisation", "2", "%", "2.5", "%", "<", "0.001"],
    ]
