"""Tasks and their constructors."""

from __future__ import annotations

import dataclasses
import pickle

import pytest

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload import (
    Delay,
    DelayWork,
    Execution,
    Flow,
    HomogeneousWork,
    ParallelTask,
    ParallelWork,
    Sequence,
    Task,
)

WORK = HomogeneousWork(1.0, 0.0)


def test_defaults():
    task = Task(["a"], WORK)
    assert task.hosts == ("a",)
    assert (task.id, task.start_s, task.after, task.weight) == (None, 0.0, (), 1.0)
    assert (task.walltime_s, task.rate_bound, task.profile, task.competitors) == (None,) * 4


def test_numbers_become_floats():
    task = Task(("a",), WORK, start_s=1, weight=2, walltime_s=3, rate_bound=4, competitors=5)
    values = (task.start_s, task.weight, task.walltime_s, task.rate_bound, task.competitors)
    assert values == (1.0, 2.0, 3.0, 4.0, 5.0)
    assert all(type(value) is float for value in values)


def test_a_task_is_a_frozen_fact():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Task(("a",), WORK).start_s = 3.0


def test_constructors_build_the_work():
    assert ParallelTask(["a", "b"], 1, [0, 9, 0, 0]).work.flow_bytes.tolist() == [9.0]
    assert Execution("a", 5).work.flops.tolist() == [5.0]
    assert Flow("a", "b", 7).hosts == ("a", "b")
    assert Flow("a", "a", 7).work.flow_to.tolist() == [1]
    assert Delay(3).hosts == ()
    assert Delay(3, ["a", "b"]).work == DelayWork(3.0)
    assert Sequence(["a"], [WORK, DelayWork(1)], repeat=2).work.repeat == 2


def test_common_arguments_reach_every_constructor():
    common = {"id": "x", "start_s": 2.0, "after": ["y"], "walltime_s": 9.0, "weight": 3.0}
    for task in (
        ParallelTask(["a"], 1, **common),
        Execution("a", 1, **common),
        Flow("a", "b", 1, **common),
        Delay(1, **common),
        Sequence(["a"], [WORK], **common),
    ):
        assert (task.id, task.start_s, task.after) == ("x", 2.0, ("y",))
        assert (task.walltime_s, task.weight) == (9.0, 3.0)


def test_a_task_of_a_subclass_survives_pickling():
    task = pickle.loads(pickle.dumps(Flow("a", "b", 5, id="z")))
    assert type(task) is Flow
    assert task.id == "z"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Task("ab", WORK), r"hosts: 'ab' is not a list of names; write \['ab'\]"),
        (lambda: Task(["a", 3], WORK), r"hosts\[1\]: 3 is not a non-empty string"),
        (lambda: Task((), WORK), "hosts: is empty"),
        (lambda: Task(3, WORK), "hosts: 3 is not a list"),
        (lambda: Task(("a",), "work"), "work: 'work' is not a work"),
        (lambda: Task(("a",), ParallelWork.of(2)), "hosts: 1 host for a work of 2 ranks"),
        (lambda: Task(("a",), WORK, id=""), "id: '' is not a non-empty string"),
        (lambda: Task(("a",), WORK, id=3), "id: 3 is not a non-empty string"),
        (lambda: Task(("a",), WORK, after="T1"), "after: 'T1' is not a list of names"),
        (lambda: Task(("a",), WORK, start_s=-1), "start_s: -1.0 is negative"),
        (lambda: Task(("a",), WORK, start_s="0"), "start_s: '0' is not a number"),
        (lambda: Task(("a",), WORK, walltime_s=0), "walltime_s: 0 is too small"),
        (lambda: Task(("a",), WORK, weight=0), "weight: 0 is too small"),
        (lambda: Task(("a",), WORK, weight=float("nan")), "weight: nan is not a finite"),
        (lambda: Task(("a",), WORK, rate_bound=float("inf")), "rate_bound: inf is not a finite"),
        (lambda: Task(("a",), WORK, competitors=0), "competitors: 0 is too small"),
        (lambda: ParallelTask(["a"], [1, 2], id="T"), "task 'T': flops: has 2 values for 1 host"),
        (lambda: ParallelTask([], 1), "hosts: is empty"),
        (lambda: Execution("", 1), "host: '' is not a non-empty string"),
        (lambda: Flow("a", "", 1), "dst: '' is not"),
        (lambda: Flow("a", "b", -1, id="F"), "task 'F': bytes: -1.0 is negative"),
        (lambda: Delay(float("nan")), "seconds: nan is not"),
        (lambda: Sequence(["a"], []), "stages: is empty"),
        (lambda: Sequence([], [WORK]), "hosts: is empty"),
    ],
)
def test_bad_tasks_are_told_in_one_line(make, message):
    with pytest.raises(WorkloadError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
