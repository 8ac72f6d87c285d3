"""What the page of a campaign says first: conditions apart, colours only where earned."""

from __future__ import annotations

import pandas
import pytest
from browsing import well_made

from ptaskmodel.campaign import Campaign
from ptaskmodel.campaign.differences import (
    answer_of,
    compared,
    conditions_of,
    ended_share,
    kind_of,
    level_sections,
    words_of,
)
from ptaskmodel.campaign.pictures import figures, fronts, interactions
from ptaskmodel.campaign.plan import plan_of
from ptaskmodel.campaign.report import write_campaign_report
from ptaskmodel.campaign.statistics import paired
from ptaskmodel.errors import CampaignError
from ptaskmodel.style.text import p_value

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
    heads = [name for name, _ in section.tables[0].columns]
    base, wild = section.tables[0].rows
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
        "Jobs that end: calm 90 %, wild 10 %.", "Against calm: wild is worse in slow (5 seeds).",
    ]  # fmt: skip


def test_fronts_are_drawn_within_conditions():
    rows = [{"a": a, "load": load, "repetition": 0, "x": a + load, "y": a - load}
            for a in (1, 2, 3) for load in (1, 9)]  # fmt: skip
    frame = pandas.DataFrame(rows)
    found = fronts(frame, ["a", "load"], {"x": -1, "y": 1}, ["load"])
    assert [one.where for one in found] == ["load = 1", "load = 9"]
    assert [one.names for one in found] == [["1", "2", "3"]] * 2
    signs = {dot.sign for one in found for panel in one.panels for (dot,) in panel.rows}
    assert signs == {"●"}
    (one,) = fronts(frame, ["a", "load"], {"x": -1, "y": 1})
    assert len([row for row in one.panels[0].rows if row[0].sign == "●"]) == 3


def test_only_factors_that_depend_on_each_other_are_shown():
    rows = [{"a": a, "b": b, "repetition": k, "x": a * b + 0.01 * k * a, "y": a + b + 0.01 * k * b}
            for a in (1, 2) for b in (1, 2) for k in range(8)]  # fmt: skip
    (one,) = interactions(pandas.DataFrame(rows), ["a", "b"], ["x", "y"])
    assert one.panels[0].name == "x"
    assert "● b = 1, ■ b = 2" in one.key
    assert [[dot.value for dot in row] for row in one.panels[0].rows] == [
        pytest.approx([1.035, 2.035]), pytest.approx([2.07, 4.07]),
    ]  # fmt: skip


def test_metrics_have_words_and_kinds():
    names = ("waiting_s.mean", "utilisation", "energy.total_J", "bounded_slowdown.mean")
    assert [words_of(name) for name in names[:2]] == ["mean waiting", "utilisation"]
    assert [kind_of(name) for name in names] == ["time", "share", "energy", "number"]


def test_the_page_is_well_made_and_tells_the_p_of_the_terminal(campaign, browser, tmp_path):
    said = write_campaign_report(campaign, tmp_path / "r.html")
    found = paired(campaign.frame(), ["rule", "load"], ["slow"], {"rule": "calm"}, ["load"])
    assert all(f"({p_value(p)})" in said[0].replace("worse, ", "") for p in found["p_holm"])
    text = well_made(browser, tmp_path / "r.html")
    assert "Jobs that end: calm 90\u00a0%, wild 10\u00a0%." in text
    assert "Trade-offs" not in text
    titles = browser.execute_script(
        "return [...document.querySelectorAll('[role=img]')].map((one) => one.ariaLabel)"
    )
    assert any(p_value(found["p_holm"].iloc[0]) in title for title in titles)


def test_pictures_are_drawn_from_the_rows_of_the_page(campaign):
    pytest.importorskip("matplotlib")
    made = figures(campaign, campaign.frame())
    assert list(made) == ["effects", "interactions", "differences"]
    labels = [text.get_text() for text in made["differences"].axes[0].get_yticklabels()]
    assert labels == ["load = 1", "calm", "wild", "load = 4", "calm", "wild"]
