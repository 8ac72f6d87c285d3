"""Numbers as readers see them; scripts of pages are tested on quantities.json too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptaskmodel.style import quantities

CASES = json.loads(Path(__file__).with_name("quantities.json").read_text(encoding="utf-8"))
WRITERS = {
    "number": lambda given: quantities.number(*given),
    "duration": quantities.duration,
    "difference": lambda given: quantities.difference(*given),
    "count": lambda given: quantities.count(*given),
    "p_value": quantities.p_value,
    "moment": lambda given: quantities.moment(*given),
    "column": lambda given: quantities.texts(*given),
    "round_time": quantities.round_time,
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_table_of_cases(name):
    for given, text in CASES[name]:
        assert WRITERS[name](given) == text, given


def test_what_is_not_a_number():
    assert [quantities.number(v) for v in (float("nan"), float("-inf"))] == ["–", "−∞"]
    assert quantities.duration(float("inf")) == "∞"
    assert quantities.p_value(float("nan")) == ""
    assert quantities.texts([float("inf"), None, 2.5], "x") == ["x", "∞", "–", "2.50"]
