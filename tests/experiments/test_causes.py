"""Causes in verdicts of experiments rest on tests that can refuse them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


def module(monkeypatch, study, name):
    """A module of a study, which others may have, too."""
    monkeypatch.syspath_prepend(str(EXPERIMENTS / study))
    monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module(name)
    sys.modules.pop(name, None)


@pytest.fixture
def causes(monkeypatch):
    yield from module(monkeypatch, "suspend_resume", "causes")


@pytest.fixture
def metric_aware(monkeypatch):
    yield from module(monkeypatch, "metric_aware", "relations")


def rows(part, policy, **columns):
    """A row for each value of the columns."""
    named = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [{"part": part, "policy": policy, **row} for row in named]


@pytest.mark.parametrize(
    ("means", "refused"), [((100, 140, 60, 120, 80), False), ((100, 101, 99, 102, 98), True)]
)
def test_other_jobs_are_refused_where_chance_of_orders_says_as_much(causes, means, refused):
    made = rows("work orders", "bf", waiting_s=means, spread_waiting_s=[10] * 5, orders=[5] * 5)
    assert causes.of_samples(made).startswith("unknown, not other jobs") is refused


@pytest.mark.parametrize(("waits", "refused"), [((0, 0, 0), False), ((0, 0, 60), True)])
def test_other_priorities_are_refused_where_the_job_waits_alone(causes, waits, refused):
    made = rows("huge alone", "sr size", huge_waits_s=waits)
    assert causes.of_start(made).startswith("unknown") is refused


@pytest.mark.parametrize(
    ("then", "found"),
    [
        ((1, 2, 3), "the queue: 2 of 2"),
        ((1, 3, 2), "the queue, in part: 1 of 2"),
        ((3, 2, 1), "unknown, not the queue: 0 of 2"),
    ],
)
def test_the_queue_is_refused_where_a_longer_one_mends_nothing(causes, then, found):
    order = ("bf", "bf rand", "sr rand")
    made = [
        row
        for part, waits in (("shuffled", (3, 2, 1)), ("queue", then))
        for name, wait in zip(order, waits, strict=True)
        for row in rows(part, name, waiting_s=[wait], response_s=[wait + 1])
    ]
    assert causes.of_order(made, "waiting_s", order).startswith(found)


@pytest.mark.parametrize(("steady", "refused"), [(0.84, False), (0.74, True)])
def test_begin_and_end_are_refused_where_most_of_the_gap_stays(causes, steady, refused):
    made = [
        *rows("whole", "bf", utilisation=[0.86], steady_utilisation=[0.86]),
        *rows("work", "bf", utilisation=[0.70], steady_utilisation=[steady]),
    ]
    assert causes.of_use(made, "work").startswith("unknown") is refused


def test_other_large_jobs_are_refused_where_use_does_not_fall_without_them(causes):
    assert causes.of_drop((False, "as before")).startswith("unknown, not other large jobs")
    assert causes.of_drop((True, "less")).startswith("other large jobs")


@pytest.mark.parametrize(
    ("samples", "loads", "found"),
    [
        ((0.9, 0.2), (0.9, 1.1), "the sample: "),
        ((0.9, 0.8), (0.9, 0.2), "the load: "),
        ((0.9, 0.2), (0.9, 0.2), "the sample or the load: "),
        ((0.9, 0.8), (0.9, 1.1), "unknown, not the sample or the load: "),
        ((0.9, 0.8), (0.9,), "unknown, not the sample: "),
    ],
)
def test_samples_and_loads_are_refused_where_none_has_the_published_ratio(
    metric_aware, samples, loads, found
):
    assert metric_aware.why(0.25, samples, loads).startswith(found)
