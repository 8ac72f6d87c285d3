"""Verdicts on published figures: each rule says yes and no where it should."""

from __future__ import annotations

import csv
from math import inf, nan

import pytest

from ptaskmodel.campaign import Finding, between, near, ordered, stated, write_findings


@pytest.mark.parametrize(
    ("here", "verdict"), [(95.0, "agrees"), (105.0, "agrees"), (94.9, "differs"), (nan, "differs")]
)
def test_a_figure_agrees_within_a_share_of_the_published_one(here, verdict):
    found = near("wait", 100.0, here, 0.05, unit="s", cause="another log")
    assert found.verdict == verdict
    assert found.rule == "within 5 %"
    assert found.published == "100 s"
    assert found.cause == ("" if verdict == "agrees" else "another log")


@pytest.mark.parametrize(
    ("low", "high", "published"),
    [(125, 175, "125 to 175 s"), (-inf, 175, "175 s at most"), (125, inf, "125 s at least")],
)
def test_a_figure_agrees_in_the_published_range(low, high, published):
    assert between("time", low, high, 150.0, unit="s", cause="x").published == published
    assert between("time", low, high, 150.0, cause="x").verdict == "agrees"
    assert between("time", low, high, 200.0, cause="x").verdict == (
        "differs" if high == 175 else "agrees"
    )
    assert between("time", low, high, 100.0, cause="x").verdict == (
        "differs" if low == 125 else "agrees"
    )


def test_an_order_agrees_if_each_is_less_than_the_next():
    published = {"bf": None, "sr": None, "size": None}
    right = ordered("wait", published, {"size": 3.0, "bf": 1.0, "sr": 2.0}, cause="x")
    assert right == Finding(
        "wait", "bf < sr < size", "bf 1, sr 2, size 3", "in increasing order", "agrees", ""
    )
    wrong = ordered("wait", published, {"bf": 1.0, "sr": 4.0, "size": 3.0}, cause="short queue")
    assert (wrong.verdict, wrong.cause) == ("differs: 1 of 2", "short queue")
    equal = ordered("wait", {"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 1.0}, cause="x")
    assert (equal.published, equal.verdict) == ("a 1 < b 2", "differs")


def test_what_is_stated_in_words_agrees_if_it_holds():
    assert stated("a", "3 of 4", True, cause="x") == Finding(
        "a", "holds", "3 of 4", "as stated", "agrees", ""
    )
    assert stated("a", "3 of 4", False, cause="x")[3:] == ("as stated", "differs", "x")


def test_findings_are_written_as_a_table(tmp_path):
    near_by = near("wait", 12345.6, 12300.0, 0.01, unit="s", cause="x")
    lines = [near_by, between("share", 1, 2, 3, cause="c")]
    text = write_findings(tmp_path, lines)
    assert (tmp_path / "published.md").read_text() == text
    assert text.splitlines()[2] == "| wait | 12,346 s | 12,300 s | within 1 % | agrees |  |"
    with (tmp_path / "published.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict"] for row in rows] == ["agrees", "differs"]
    assert rows[1]["cause"] == "c"
