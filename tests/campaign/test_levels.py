"""What the page of a campaign says first: conditions apart, colours only where earned."""

from __future__ import annotations

import pandas
import pytest

from ptaskmodel.campaign import Campaign
from ptaskmodel.campaign.levels import (
    answer_of,
    compared,
    conditions_of,
    ended_share,
    kind_of,
    level_sections,
    words_of,
)
from ptaskmodel.campaign.pictures import pareto_figure
from ptaskmodel.campaign.plan import plan_of
from ptaskmodel.errors import CampaignError

STUDY = """
def measure(parameters):
    slow = {"calm": 1.0, "wild": 2.0}[parameters["rule"]] * parameters["load"]
    seed = parameters["seed"]
    ended = {"calm": 90, "wild": 10}[parameters["rule"]]
    waits = {name: 60.0 * slow * k + seed for k, name in enumerate(("min", "p50", "p90", "p95",
             "p99", "max"))}
    return {"slow": slow + 0.001 * seed * slow, "use": 1.0 + 0.1 * seed,
            "waiting_s": waits, "jobs": {"all": 100, "succeeded": ended, "rejected": 100 - ended}}
"""
PLAN = """
run = "study.py:measure"
repetitions = 5
metrics = ["slow", "use"]
lower_is_better = ["slow"]
compare_with = {rule = "calm"}
[factors]
rule = ["calm", "wild"]
load = [1, 4]
"""


@pytest.fixture
def campaign(tmp_path):
    (tmp_path / "study.py").write_text(STUDY)
    made = Campaign.of(plan_of(PLAN, tmp_path, "plan"), tmp_path / "runs")
    made.make(1)
    return made


def test_loads_are_conditions_if_nothing_is_said(tmp_path):
    (tmp_path / "study.py").write_text(STUDY)
    assert plan_of(PLAN, tmp_path, "p").conditions == ("load",)
    assert plan_of(f"conditions = []\n{PLAN}", tmp_path, "p").conditions == ()
    for given, said in (("size", "not a factor"), ("rule", "compare_with")):
        with pytest.raises(CampaignError, match=said):
            plan_of(f'conditions = ["{given}"]\n{PLAN}', tmp_path, "p")


def test_levels_are_compared_within_each_condition(campaign):
    frame = campaign.frame()
    assert conditions_of(campaign.plan, frame) == ["load"]
    (one,) = compared(campaign.plan, frame, ["slow", "use"])
    slow = one.found[one.found["metric"] == "slow"]
    # Pooled over loads, the pairs would be ten of unequal size.
    assert slow["pairs"].tolist() == [5, 5]
    assert slow["relative"].tolist() == pytest.approx([1.0, 1.0])


def test_only_what_is_told_apart_and_declared_is_coloured(campaign):
    frame, every = campaign.frame(), campaign.frame(every=True)
    ended = ended_share(every)
    assert sorted(set(ended.round(3))) == [0.1, 0.9]
    (section,) = level_sections(campaign.plan, frame, ["slow", "use"], ended)
    assert [table.caption for table in section.tables] == ["load = 1", "load = 4"]
    heads, (base, wild) = section.tables[0].header, section.tables[0].rows
    assert (heads, base[1], wild[1]) == (["rule", "ended", "slow", "use"], "90 %", "10 %")
    slow, use = wild[2:]
    assert (slow["label"], slow["marks"][-1][2]) == ("✗ +100 % ± 0", "lose")
    assert (use["label"], [mark[2] for mark in use["marks"]]) == ("0.0 % ± 0.0", ["line"])
    # One dot a pair, and one for their mean.
    assert sum(mark[3] == "•" for mark in slow["marks"]) == 5


def test_who_ends_fewer_jobs_wins_nothing(campaign):
    frame = campaign.frame()
    plan = plan_of(PLAN.replace("lower", "higher"), campaign.plan.folder, "plan")
    section, *_ = level_sections(plan, frame, ["slow"], ended_share(campaign.frame(every=True)))
    assert section.tables[0].rows[1][2]["marks"][-1][2] == "ink"
    section, *_ = level_sections(plan, frame, ["slow"], None)
    assert section.tables[0].rows[1][1]["marks"][-1][2] == "gain"


def test_the_answer_begins_with_what_ended(campaign):
    ended = ended_share(campaign.frame(every=True))
    assert answer_of(campaign.plan, campaign.frame(), ["slow", "use"], ended).splitlines() == [
        "Of their jobs end with calm 90 %, wild 10 %.", "Against calm: wild is worse in slow.",
    ]  # fmt: skip


def test_fronts_are_drawn_within_conditions():
    pytest.importorskip("matplotlib")
    rows = [{"a": a, "load": load, "repetition": 0, "x": a + load, "y": a - load}
            for a in (1, 2, 3) for load in (1, 9)]  # fmt: skip
    frame = pandas.DataFrame(rows)
    figure = pareto_figure(frame, ["a", "load"], {"x": -1, "y": 1}, ["load"])
    assert [axes.get_title() for axes in figure.axes] == ["load = 1", "load = 9"]
    assert all(len(axes.lines[1].get_xdata()) == 3 for axes in figure.axes)


def test_metrics_have_words_and_kinds():
    names = ("waiting_s.mean", "utilisation", "energy.total_J", "bounded_slowdown.mean")
    assert [words_of(name) for name in names[:2]] == ["mean waiting", "utilisation"]
    assert [kind_of(name) for name in names] == ["time", "share", "energy", "number"]
