"""On/off patterns and the tasks that play them."""

import math

import pytest

from ptaskmodel.apps import OnOff, interference_tasks
from ptaskmodel.errors import WorkloadError


def test_shares_and_periods():
    assert OnOff(15, 45).share == 0.25
    assert OnOff(15, 45).period_s == 60
    assert OnOff(0, 0).none
    assert OnOff(math.inf, 0).constant
    assert OnOff(15, 0).constant
    assert OnOff(math.inf, 0).share == 1.0
    assert [str(p) for p in (OnOff(15, 45), OnOff(0, 0), OnOff(math.inf, 0))] == [
        "15/45",
        "none",
        "constant",
    ]


def test_a_pattern_starts_on():
    pattern = OnOff(15, 45)
    assert [pattern.is_on(t) for t in (0, 14.9, 15, 59, 60, 75)] == [
        True,
        True,
        False,
        False,
        True,
        False,
    ]
    assert pattern.on_periods(121) == [(0, 15), (60, 15), (120, 15)]
    assert pattern.on_periods(120) == [(0, 15), (60, 15)]


def test_tasks_of_a_pattern():
    tasks = interference_tasks(OnOff(15, 45), "a", "b", 100.0, connections=2)
    assert len(tasks) == 8
    assert {task.start_s for task in tasks} == {0.0, 60.0}
    assert {task.walltime_s for task in tasks} == {15.0}
    assert {task.hosts for task in tasks} == {("a", "b"), ("b", "a")}
    assert len({task.id for task in tasks}) == 8


def test_a_joint_connection_sends_both_ways():
    (task,) = interference_tasks(OnOff(math.inf, 0), "a", "b", 1.0, joint=True, competitors=35.0)
    assert task.walltime_s is None
    assert task.competitors == 35.0
    assert task.work.flow_from.tolist() == [0, 1]
    assert interference_tasks(OnOff(0, 0), "a", "b", 1.0) == []


@pytest.mark.parametrize("durations", [(-1, 0), (1, -1), (math.nan, 0), (1, math.inf)])
def test_impossible_durations(durations):
    with pytest.raises(WorkloadError, match="durations must be >= 0"):
        OnOff(*durations)


@pytest.mark.parametrize("length_s", [1e-300, 5e-324, 1e-10])
def test_a_pattern_that_dates_cannot_tell_is_refused(length_s):
    with pytest.raises(WorkloadError, match="changes within less than 1e-09 s"):
        OnOff(length_s, length_s)


def test_patterns_of_too_many_periods_are_refused_before_any_is_made():
    with pytest.raises(WorkloadError, match=r"about 5e\+10 periods would be simulated"):
        OnOff(1e-9, 1e-9).on_periods(100.0)
    assert len(OnOff(1.0, 1.0).on_periods(100.0)) == 50
