"""Numbers as readers see them; scripts of pages are tested on the same cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptaskmodel.style import quantities

CASES = json.loads((Path(__file__).parents[1] / "numbers.json").read_text(encoding="utf-8"))


def column(kind, values):
    made = quantities.column(values, kind)
    return [made.unit, [made.text(value) for value in values]]


WRITERS = {
    "duration": quantities.duration,
    "change": quantities.change,
    "count": lambda given: quantities.count(*given),
    "p": quantities.p_value,
    "column": lambda given: column(*given),
    "date": lambda given: quantities.date(*given),
    "ticks": lambda given: list(quantities.ticks(*given)[:2]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_table_of_cases(name):
    write = WRITERS.get(name, lambda value: quantities.number(value, name))
    for given, text in CASES[name]:
        assert write(given) == text, given


def test_what_is_not_a_number():
    assert [quantities.number(v) for v in (float("nan"), float("-inf"))] == ["–", "−∞"]
    assert quantities.duration(float("inf")) == "∞"
    assert quantities.p_value(float("nan")) == ""
    assert column("number", [float("inf"), None, 2.5]) == ["", ["∞", "–", "2.50"]]


@pytest.mark.parametrize(("least", "step"), [(0.3, 0.5), (40, 60), (1694.6, 1800), (1e5, 172800)])
def test_cells_are_round(least, step):
    assert quantities.round_time(least) == step
