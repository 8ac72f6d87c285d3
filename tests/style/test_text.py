"""Tables fit the terminal: names are elided, then columns are left out, and said."""

from __future__ import annotations

import itertools

import pytest

from ptaskmodel.style.text import (
    NO_TERMINAL,
    elided,
    fact_lines,
    fits,
    text_table,
    words_of_name,
    wrapped,
)

LONG = "/scratch/" + "a_very_long_name/" * 7
HEADER = ("task", "a (s)", "b (s)", "change (s)", "b / a", "limit in a", "limit in b")
ROWS = [
    (LONG, "13.3", "15.0", "1.7", "1.13", "link link_from_199_195_100_DOWN", "host n1"),
    ("x", "1.0", "2.0", "1.0", "2.00", "", "link link_from_199_195_100_DOWN"),
]
RIGHT = (1, 2, 3, 4)


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width):
    lines = text_table(HEADER, ROWS, RIGHT, width).splitlines()
    assert all(len(line) <= width for line in lines)
    shown = lines[0].split("  ")
    left_out = [name for name in HEADER if not any(name in part for part in shown)]
    said = " ".join(itertools.dropwhile(lambda line: "left out" not in line, lines))
    assert all(name in said for name in left_out)


def test_the_first_column_keeps_its_least_width():
    lines = text_table(HEADER, ROWS, RIGHT, 60, (30,)).splitlines()
    assert elided(LONG, 30) in lines[2]
    assert max(map(len, lines)) <= 60
    assert "left out" in lines[-2]


def test_a_table_fits_if_all_but_its_first_column_is_whole(monkeypatch):
    whole = max(map(len, text_table(HEADER, ROWS, RIGHT).splitlines())) - len(LONG)
    for width, found in ((whole + 12, True), (whole + 11, False), (None, True)):
        monkeypatch.setattr("ptaskmodel.style.text.terminal_width", lambda width=width: width)
        assert fits(HEADER, ROWS, 12) is found


def test_elsewhere_a_table_is_as_wide_as_it_needs():
    first = text_table(HEADER, ROWS, RIGHT).splitlines()[2]
    assert LONG in first
    assert first.endswith("host n1")


def test_names_that_differ_still_do_when_they_are_elided():
    rows = [(f"{'waiting' * 3}.{which}.of_all_jobs", "1") for which in ("mean", "best")]
    lines = text_table(("metric", "n"), rows, {1}, 30).splitlines()
    assert lines[2] != lines[3]


def test_a_whole_table_goes_on_below_behind_its_first_column():
    rows = [("first row", *(f"{k}{'x' * 12}" for k in range(5)))]
    lines = text_table(("", *"abcde"), rows, (), 45, whole=True).splitlines()
    assert max(map(len, lines)) <= 45
    assert [line[:9] for line in lines].count("first row") == 3
    assert all(any(f" {name}" in line for line in lines) for name in "abcde")


def test_columns_in_which_nothing_stands_are_left_out():
    lines = text_table(("task", "profile", "n"), [("a", "", "1"), ("b", "", "22")], {2})
    assert lines.splitlines() == ["task   n", "----  --", "a      1", "b     22"]


def test_names_of_values_have_their_unit():
    assert [*map(words_of_name, ("until_s", "host_order", "s"))] == ["until (s)", "host order", "s"]


def test_names_lose_their_middle():
    assert elided("link_from_199_195_100_DOWN", 11) == "link_…_DOWN"
    assert elided("short", 11) == "short"


def test_facts_go_on_below_their_value():
    lines = fact_lines([("note", "word " * 30), ("jobs", "3")], 6, 40).splitlines()
    assert all(len(line) <= 40 for line in lines)
    assert all(line.startswith((" " * 6, "note  word", "jobs  3")) for line in lines)


def test_sentences_are_broken_between_words_and_lines_stay_lines():
    said = "link_from_199_195 of first-fit is full. " * 9 + "\nNo other task is slowed."
    for width in (40, None):
        lines = wrapped(said, width).splitlines()
        assert all(len(line) <= (width or NO_TERMINAL) for line in lines)
        assert " ".join(lines).split() == said.split()
        assert lines[-1] == "No other task is slowed."
