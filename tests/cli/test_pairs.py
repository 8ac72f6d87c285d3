"""KEY=VALUE arguments: numbers, times with units, text."""

from __future__ import annotations

import pytest

from ptaskmodel.cli.parameters import number_time_or_text, pairs
from ptaskmodel.errors import SimulationError


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("0.5", 0.5), ("1h", 3600.0), ("2m", 120.0), ("30d", 2_592_000.0), ("daly", "daly")],
)
def test_times_may_have_a_unit(text, value):
    assert pairs((f"interval={text}",), "--checkpoint", number_time_or_text) == {"interval": value}


def test_an_unknown_unit_is_told_with_its_option_and_key():
    with pytest.raises(SimulationError, match="checkpoint: write: '2min' has the unknown"):
        pairs(("write=2min",), "--checkpoint", number_time_or_text)
