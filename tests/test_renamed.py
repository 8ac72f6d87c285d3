"""Old names of the public face work until version 0.3, and say what the new ones are."""

from __future__ import annotations

from pathlib import Path

import pytest

import ptaskmodel as pm
from ptaskmodel.batch import BatchSimulation, Checkpointing, Fcfs
from ptaskmodel.lazy import RENAMED, UNTIL
from ptaskmodel.results.loading import ShownTask

WORKED = Path(__file__).parents[1] / "platforms" / "worked_example.xml"


@pytest.fixture(scope="module")
def simulation():
    made = pm.Simulation(pm.load_platform(WORKED))
    made.add(pm.Execution("a", 300.0, id="task"))
    return made.run()


@pytest.fixture(scope="module")
def examples(simulation):
    """An object of each class, and of each function a call with a value of the old name."""
    return {
        "TaskRecord": simulation.records()[0],
        "TaskRef": simulation.task("task"),
        "Simulation.run()": (lambda **to: simulation.fork().run(**to).now, 5.0),
        "Simulation.run_until_change()": (
            lambda **to: len(simulation.fork().run_until_change(**to)),
            5.0,
        ),
        "Simulation.advance_to()": (simulation.fork().advance_to, 5.0),
        "BatchSimulation.advance_to()": (BatchSimulation([], 1, Fcfs()).advance_to, 5.0),
        "Simulation": simulation,
        "BatchSimulation": BatchSimulation([], 1, Fcfs()),
        "Delay()": (lambda **to: pm.Delay(**to).work, 5.0),
        "BatchWriting": pm.BatchWriting(),
        "BatchWriting()": (pm.BatchWriting, 5.0),
        "Checkpointing": Checkpointing(),
        "Checkpointing()": (Checkpointing, 5.0),
        "ShownTask": ShownTask("a", None, 0.0, 1.0, "completed", (), None),
        "ShownTask()": (
            lambda **to: ShownTask("a", None, 0.0, state="", hosts=(), slowdown=None, **to),
            5.0,
        ),
        "SimulationOptions": pm.SimulationOptions(until_s=5.0),
        "SimulationOptions()": (pm.SimulationOptions, 5.0),
    }


def names(each):
    return f"{each.where}.{each.old}"


def used(where, name, example):
    """What comes of the use of an attribute or of a keyword argument."""
    if not where.endswith("()"):
        return getattr(example, name)
    call, value = example
    return call(**{name: value})


@pytest.mark.parametrize("each", RENAMED, ids=names)
def test_an_old_name_works_and_warns_once(each, examples):
    example = examples[each.where]
    with pytest.warns(DeprecationWarning, match=f"{each.old} is called {each.new} now") as warned:
        found = used(each.where, each.old, example)
    assert len(warned) == 1
    assert warned[0].filename == __file__
    assert found == used(each.where, each.new, example)


def test_old_names_go_with_their_version():
    version, until = (tuple(map(int, text.split(".")[:2])) for text in (pm.__version__, UNTIL))
    assert version < until
