"""Quantities with units, as SimGrid reads them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptaskmodel import units


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (units.parse_time, "50us", 50 * 1e-6),
        (units.parse_time, "1w", 604800.0),
        (units.parse_time, "1.5m", 90.0),
        (units.parse_time, "3", 3.0),
        (units.parse_time, " 3s", 3.0),
        (units.parse_time, "0x10s", 16.0),
        (units.parse_time, ".5ms", 0.5e-3),
        (units.parse_time, "1e-3s", 1e-3),
        (units.parse_speed, "23.492Gf", 23.492e9),
        (units.parse_speed, "2megaflops", 2e6),
        (units.parse_speed, "1Yf", 1e24),
        (units.parse_bandwidth, "10Gbps", 1.25e9),
        (units.parse_bandwidth, "1KiBps", 1024.0),
        (units.parse_bandwidth, "1Mibps", 131072.0),
        (units.parse_bandwidth, "1kBps", 1000.0),
        (units.parse_size, "64MiB", 67108864.0),
        (units.parse_size, "8b", 1.0),
    ],
)
def test_reads_a_quantity(read, text, expected):
    assert read(text) == expected


@pytest.mark.parametrize(
    "text", ["1Kf", "1Mflops", "1megaf", "1 Gf", "1F", "Gf", "", "-1f", "nanf"]
)
def test_refuses_a_speed(text):
    with pytest.raises(units.UnitError):
        units.parse_speed(text)


@pytest.mark.parametrize(
    "text",
    ["1KBps", "1kiBps", "1Kbps", "1kiloBps", "infBps", "1e999Bps", "1e308YBps", "1B", "--1Bps"],
)
def test_refuses_a_bandwidth(text):
    with pytest.raises(units.UnitError):
        units.parse_bandwidth(text)


def test_a_wrong_case_is_told_its_right_one():
    with pytest.raises(units.UnitError, match="known units: kBps"):
        units.parse_bandwidth("1KBps")


@pytest.mark.parametrize(("text", "expected"), [("2.9", 2), (" 1.0", 1), ("0.0", 0), ("-3x", -3)])
def test_reads_an_integer_by_prefix(text, expected):
    assert units.parse_integer(text) == expected


@pytest.mark.parametrize("text", ["", "x", ".5", "9" * 30])
def test_refuses_an_integer(text):
    with pytest.raises(units.UnitError):
        units.parse_integer(text)


@given(st.floats(min_value=1e-9, max_value=1e20))
def test_format_then_parse_keeps_six_digits(value):
    for write, read in (
        (units.format_time, units.parse_time),
        (units.format_speed, units.parse_speed),
        (units.format_bandwidth, units.parse_bandwidth),
    ):
        assert read(write(value)) == pytest.approx(value, rel=1e-5)


@given(st.text(max_size=20))
def test_any_text_is_read_or_refused(text):
    for read in (units.parse_time, units.parse_speed, units.parse_bandwidth, units.parse_integer):
        with contextlib.suppress(units.UnitError):
            assert read(text) is not None
