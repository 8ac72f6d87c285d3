"""Columns written at once are what csv.writer writes line by line."""

import csv
import io
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptaskmodel.batch.loop.schedule import HostRuns
from ptaskmodel.csv_tables import Texts, floats, lines, quoted, text, words, write_columns
from ptaskmodel.results.tables.batch import host_texts

INTEGERS = st.integers(-(2**63) + 1, 2**63 - 1)
WHOLE = st.integers(-(10**17), 10**17).map(float)


def written(rows) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


@given(st.lists(st.tuples(INTEGERS, st.floats(allow_nan=False) | WHOLE, st.booleans())))
def test_numbers_as_csv_writes_them(rows):
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    made = [np.array(c, dtype=d) for c, d in zip(columns, ("i8", "f8", "?"), strict=True)]
    assert lines(*made).decode() == written((i, x, int(b)) for i, x, b in rows)


@pytest.mark.parametrize("digits", range(19))
def test_numbers_of_any_length(digits):
    numbers = np.array([10**digits - 1, 10**digits, -(10**digits), 0])
    assert lines(numbers).decode() == written((int(n),) for n in numbers)


def test_many_floats(monkeypatch):
    monkeypatch.setattr("ptaskmodel.csv_tables.MANY", 1)
    random = np.random.default_rng(1)
    powers = 2.0 ** np.arange(-20, 60)
    some = (powers, np.nextafter(powers, 0), -powers, 10.0 ** random.uniform(-6, 18, 5000))
    values = np.concatenate((*some, np.round(some[-1], 3)))
    assert lines(values).decode() == written((value,) for value in values.tolist())


def test_missing_floats():
    values = np.array([1.5, math.nan, 2.0])
    assert lines(values, floats(values, missing="-1")) == b"1.5,1.5\n,-1\n2.0,2.0\n"


def test_words_and_a_file_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("ptaskmodel.csv_tables.PIECE", 2)
    cells = words(["", "abc"])[[1, 0, 1]]
    assert text(cells) == b"abcabc"
    write_columns(tmp_path / "a.csv", ("n", "word"), [np.array([9, 10, 100]), cells])
    assert (tmp_path / "a.csv").read_text() == "n,word\n9,abc\n10,\n100,abc\n"


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=5)))
def test_texts_are_quoted_as_csv_quotes_them(texts):
    assert "".join(f"{each},\n" for each in quoted(texts)) == written((t, "") for t in texts)


def test_texts_of_places():
    begins = np.array([0, 2, 2, 3, 3])
    places = HostRuns(begins, np.array([0, 5, 9], "i4"), np.array([3, 1, 2], "i4"))
    found = host_texts(places)
    assert text(found, b"\n") == b"0-2 5\n\n9-10\n\n"
    assert text(found.at(np.array([2, -1, 0])), b"\n") == b"9-10\n\n0-2 5\n"


@pytest.mark.parametrize("strings", [[], [""], ["a", "", "éa"], ["\0", "b\0"]])
def test_texts_of_any_length(strings):
    found = Texts.of(strings)
    assert text(found, b";").decode() == "".join(each + ";" for each in strings)
    assert text(found.at(slice(1, None)), b";").decode() == "".join(s + ";" for s in strings[1:])
