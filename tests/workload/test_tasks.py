"""Tasks and their constructors."""

from __future__ import annotations

import dataclasses
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from ptaskmodel.workload.batch_works import StorageWork

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
        (
            lambda: Task(("a",), "work"),
            "work: 'work' is not a Work; give one, such as ParallelWork",
        ),
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


def tasks_of_every_class():
    common = {
        "id": "x", "start_s": 2.0, "after": ("y",), "walltime_s": 9.0, "weight": 3.0,
        "rate_bound": 0.5, "profile": "p", "competitors": 4.0,
    }  # fmt: skip
    work = ParallelWork.of(2, [1, 2], [0, 3, 0, 0])
    return [
        Task(("a", "b"), work, **common),
        ParallelTask(["a", "b"], [1, 2], [0, 3, 0, 0], **common),
        Flow("a", "b", 5, **common),
        Execution("a", 5, **common),
        Delay(5, ["a"], **common),
        Sequence(["a", "b"], [work, DelayWork(1)], 2, **common),
    ]


CHANGES = {
    "id": "other", "start_s": 5.0, "after": (), "walltime_s": None, "weight": 1.0,
    "rate_bound": None, "profile": None, "competitors": 1.0, "hosts": ("c", "d"),
    "work": HomogeneousWork(1, 2),
}  # fmt: skip


@pytest.mark.parametrize("task", tasks_of_every_class(), ids=lambda task: type(task).__name__)
@given(names=st.sets(st.sampled_from(sorted(CHANGES)), max_size=4))
def test_any_task_with_other_fields_is_of_its_class_and_keeps_the_rest(task, names):
    if "hosts" in names and task.work.ranks == 1:
        names = names | {"work"}
    changes = {name: CHANGES[name] for name in names}
    made = dataclasses.replace(task, **changes)
    assert type(made) is type(task)
    for field in dataclasses.fields(Task):
        expected = changes.get(field.name, getattr(task, field.name))
        assert getattr(made, field.name) is expected or getattr(made, field.name) == expected


@pytest.mark.parametrize("task", tasks_of_every_class(), ids=lambda task: type(task).__name__)
def test_tasks_come_back_from_a_pickle(task):
    again = pickle.loads(pickle.dumps(task))
    assert type(again) is type(task)
    for field in dataclasses.fields(Task):
        if field.name != "work":
            assert getattr(again, field.name) == getattr(task, field.name)
    assert again.work.ranks == task.work.ranks


def test_tasks_that_share_a_work_share_it_after_a_pickle():
    work = ParallelWork.of(1, 5)
    tasks = pickle.loads(pickle.dumps([Task(("a",), work), Task(("b",), work)]))
    assert tasks[0].work is tasks[1].work


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda w: Flow("a", work=w, hosts=("a", "b")), "src: is given in addition to a work"),
        (lambda w: ParallelTask(["a", "b"], 1, work=w), "flops: is given in addition to a work"),
        (lambda w: Delay(1, work=w), "duration_s: is given in addition to a work"),
        (lambda w: Sequence(["a"], [w], work=w), "stages: is given in addition to a work"),
        (lambda w: Execution("a", 1, hosts=("a",)), "hosts: is given without a work"),
        (lambda w: Flow("a", "b"), "bytes: None is not a number"),
        (lambda w: Flow(), "src: None is not a non-empty string"),
        (lambda w: Delay(), "seconds: None is not a number"),
        (lambda w: Task(("a",), StorageWork(1, 2)), "work: a StorageWork describes a job"),
    ],
)
def test_arguments_that_do_not_go_together_are_told(make, message):
    with pytest.raises(WorkloadError, match=message):
        make(ParallelWork.of(2, 1))
