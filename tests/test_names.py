"""Names joined in one field come back as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptaskmodel.files import join_names, split_names


@given(st.lists(st.text(max_size=8), max_size=5))
def test_names_come_back(names):
    assert list(split_names(join_names(names))) == names


def test_usual_names_are_written_as_they_are():
    names = ["node-1.grid5000.fr", "a[0]", "été", "x#1", "$HOME", "~"]
    assert join_names(names) == " ".join(names)
    assert join_names(["a", "b c", "d'e"]) == "a 'b c' 'd'\"'\"'e'"


def test_a_quote_that_is_not_closed():
    with pytest.raises(ValueError, match="No closing quotation"):
        split_names("a 'b")
