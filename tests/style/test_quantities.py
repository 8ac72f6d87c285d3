"""Numbers as readers see them; scripts of pages are tested on the same cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptaskmodel.style import text

CASES = json.loads((Path(__file__).parents[1] / "numbers.json").read_text(encoding="utf-8"))


def column(kind, values):
    made = text.column(values, kind)
    return [made.unit, [made.text(value) for value in values]]


WRITERS = {
    "duration": text.duration,
    "change": text.change,
    "count": lambda given: text.count(*given),
    "p": text.p_value,
    "column": lambda given: column(*given),
    "date": lambda given: text.date(*given),
    "ticks": lambda given: list(text.ticks(*given)[:2]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_table_of_cases(name):
    write = WRITERS.get(name, lambda value: text.number(value, name))
    for given, expected in CASES[name]:
        assert write(given) == expected, given


def test_what_is_not_a_number():
    assert [text.number(v) for v in (float("nan"), float("-inf"))] == ["–", "−∞"]
    assert text.duration(float("inf")) == "∞"
    assert text.p_value(float("nan")) == ""
    assert column("number", [float("inf"), None, 2.5]) == ["", ["∞", "–", "2.50"]]


@pytest.mark.parametrize(("least", "step"), [(0.3, 0.5), (40, 60), (1694.6, 1800), (1e5, 172800)])
def test_cells_are_round(least, step):
    assert text.round_time(least) == step
