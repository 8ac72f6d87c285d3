"""KEY=VALUE arguments: numbers, times with units, text."""

from __future__ import annotations

import pytest

from ptaskmodel.cli import main
from ptaskmodel.errors import SimulationError
from ptaskmodel.options import values
from ptaskmodel.runs.scheduling_options import BATCH


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("0.5", 0.5), ("1h", 3600.0), ("2m", 120.0), ("30d", 2_592_000.0), ("daly", "daly")],
)
def test_times_may_have_a_unit(text, value):
    assert values(BATCH, {"checkpoint": {"interval": text}})["checkpoint"] == {"interval": value}


def test_an_unknown_unit_is_told_with_its_option_and_key():
    with pytest.raises(SimulationError, match="checkpoint: write: '2min' has the unknown"):
        values(BATCH, {"checkpoint": {"write": "2min"}})


def test_what_is_no_pair_is_told_with_its_option(capsys):
    assert main(["batch", "p.xml", "w.json", "--licence", "matlab"]) == 2
    assert "--licence: 'matlab' is not NAME=COUNT" in capsys.readouterr().err


def test_a_key_is_given_once(capsys):
    assert main(["batch", "p.xml", "w.json", "--licence", "matlab=1", "--licence", "matlab=2"]) == 2
    assert "--licence: 'matlab=2' is the second of 'matlab'; give one" in capsys.readouterr().err
