"""Which jobs wait for which, as Slurm has it."""

from types import SimpleNamespace

import pytest

from ptaskmodel.errors import SlurmError
from ptaskmodel.slurm.jobs.dependencies import (
    NEVER,
    READY,
    WAITING,
    Condition,
    Dependencies,
    Term,
    parsed,
)
from ptaskmodel.slurm.jobs.request import ArrayTask, JobRequest
from ptaskmodel.workload.works import DelayWork


def jobs(**dependencies):
    """Jobs by id, submitted in order, and what knows what they wait for."""
    known = Dependencies()
    found = {}
    for number, (name, text) in enumerate(dependencies.items()):
        array = None
        if "_" in name:
            base, index = name.split("_")
            array = ArrayTask(base, int(index))
        request = JobRequest(
            name, 0.0, DelayWork(1.0), user="ann", name="same", dependency=text, array=array
        )
        found[name] = SimpleNamespace(
            request=request, number=number, state="PENDING", start_s=0, completing=False
        )
        known.add(found[name])
    return known, found


@pytest.mark.parametrize(
    ("kind", "states"),
    [
        ("after", {"RUNNING": READY, "COMPLETED": READY, "FAILED": READY, "CANCELLED": READY}),
        ("afterany", {"RUNNING": WAITING, "COMPLETING": WAITING, "FAILED": READY}),
        ("afterok", {"SUSPENDED": WAITING, "COMPLETED": READY, "TIMEOUT": NEVER}),
        ("afternotok", {"RUNNING": WAITING, "COMPLETED": NEVER, "CANCELLED": READY}),
    ],
)
def test_one_job_after_another(kind, states):
    for state, expected in states.items():
        known, found = jobs(a=None, b=f"{kind}:a")
        assert known.state(found["a"], 0) == READY
        assert known.state(found["b"], 0) == WAITING
        found["a"].state = state
        assert known.state(found["b"], 0) == expected


def test_minutes_after_a_start():
    known, found = jobs(a=None, b="after:a+2")
    found["a"].state, found["a"].start_s = "RUNNING", 10
    assert known.state(found["b"], 129) == WAITING
    assert known.state(found["b"], 130) == READY


def test_all_or_any():
    known, found = jobs(a=None, b=None, c="afterok:a:b", d="afterok:a?afterok:b")
    found["a"].state = "FAILED"
    assert known.state(found["c"], 0) == NEVER
    assert known.state(found["d"], 0) == WAITING
    found["b"].state = "COMPLETED"
    assert known.state(found["c"], 0) == NEVER
    assert known.state(found["d"], 0) == READY
    known, found = jobs(a=None, d="afterok:a?afternotok:a")
    found["a"].state = "FAILED"
    assert known.state(found["d"], 0) == READY
    known, found = jobs(a=None, d="afterok:a?afterok:a")
    found["a"].state = "FAILED"
    assert known.state(found["d"], 0) == NEVER


def test_what_was_fulfilled_stays_so():
    known, found = jobs(a=None, b=None, c="afterok:a,afterany:b")
    found["a"].state = "COMPLETED"
    assert known.state(found["c"], 0) == WAITING
    found["a"].state = "PENDING"  # requeued
    found["b"].state = "FAILED"
    assert known.state(found["c"], 0) == READY


def test_jobs_that_nobody_knows():
    known, found = jobs(a=None, b="afterok:zz", c="afterok:a")
    assert known.state(found["b"], 0) == READY
    found["a"].state = "FAILED"
    known.forget(found["a"])
    assert known.state(found["c"], 0) == READY


def test_arrays():
    known, found = jobs(a_0=None, a_1=None, b="afterok:a", c="afterok:a_0", d="after:a")
    found["a_0"].state = "COMPLETED"
    assert known.state(found["c"], 0) == READY
    assert known.state(found["b"], 0) == known.state(found["d"], 0) == WAITING
    found["a_1"].state = "FAILED"
    assert known.state(found["b"], 0) == NEVER
    assert known.state(found["d"], 0) == READY


def test_task_to_task():
    known, found = jobs(a_0=None, a_1=None, b_0="aftercorr:a", b_1="aftercorr:a")
    found["a_1"].state = "COMPLETED"
    assert known.state(found["b_0"], 0) == WAITING
    assert known.state(found["b_1"], 0) == READY


def test_an_array_is_alone_as_a_whole():
    known, found = jobs(a_0="singleton", a_1="singleton", b="singleton")
    assert known.state(found["a_0"], 0) == READY
    assert known.state(found["a_1"], 0) == READY
    found["a_0"].state = "COMPLETED"
    assert known.state(found["b"], 0) == WAITING


def test_one_at_a_time():
    known, found = jobs(a="singleton", b="singleton", c="singleton")
    assert known.state(found["a"], 0) == READY
    assert known.state(found["b"], 0) == WAITING
    found["a"].state = "COMPLETED"
    assert known.state(found["c"], 0) == WAITING
    assert known.state(found["b"], 0) == READY
    found["b"].state = "SUSPENDED"
    assert known.state(found["c"], 0) == WAITING
    found["b"].state = "FAILED"
    assert known.state(found["c"], 0) == READY


def test_the_words():
    assert parsed("afterok:1:2,singleton") == Condition(
        (Term("afterok", "1"), Term("afterok", "2"), Term("singleton"))
    )
    assert parsed("after:7+3?afterany:x_4") == Condition(
        (Term("after", "7", 180), Term("afterany", "x_4")), True
    )


@pytest.mark.parametrize("text", ["", "afterok", "before:1", "after:1+x", "singleton:3", "a:1,b?c"])
def test_mistakes(text):
    with pytest.raises(SlurmError, match="w:3: dependency"):
        parsed(text, "w:3")
