"""How seldom cycles are searched for is the caller's again afterwards, whatever he has chosen."""

from __future__ import annotations

import gc

import pytest

from ptaskmodel.memory import SELDOM, USUAL, collector_as_usual, collector_at_rest, collector_seldom


@pytest.mark.parametrize(
    ("chosen", "meanwhile"),
    [
        ((700, 10, 10), SELDOM),
        ((0, 10, 10), (0, 10, 10)),
        ((10**6, 5, 50), (10**6, SELDOM[1], 50)),
    ],
)
def test_the_collector_is_left_as_it_was(chosen, meanwhile):
    before = gc.get_threshold()
    try:
        gc.set_threshold(*chosen)
        with collector_seldom():
            assert gc.get_threshold() == meanwhile
        assert gc.get_threshold() == chosen
    finally:
        gc.set_threshold(*before)


def test_a_compiler_within_a_simulation_has_the_usual_collector():
    before = gc.get_threshold()
    with collector_seldom(), collector_at_rest():
        seldom = gc.get_threshold()
        with collector_as_usual():
            assert gc.isenabled()
            assert gc.get_threshold() == USUAL
        assert not gc.isenabled()
        assert gc.get_threshold() == seldom
    assert gc.isenabled()
    assert gc.get_threshold() == before
