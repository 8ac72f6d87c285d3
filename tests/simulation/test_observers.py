"""Observers hear the same events, in the same order, by every way of going on."""

from __future__ import annotations

import itertools
import pickle
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptaskmodel as pm
from ptaskmodel.connect.simpy import SimPyBridge
from ptaskmodel.platform import Platform

build = Platform.build("p")
build.cluster("c", 4, prefix="n", speed=1.0, bandwidth=1.0, latency=0.25)
PLATFORM = build.finish()
NEVER = 1000.0


class Hears(pm.Observer):
    """Notes all that it is told; for each of some tasks that end it adds another, at once."""

    def __init__(self, seen, answers=()):
        self.seen = seen
        self.answers = answers

    def task_started(self, task):
        self.seen.append(("starts", task.id, task.start_s))

    def task_ended(self, task):
        self.seen.append(("ends", task.id, task.end_s))
        if task.id in self.answers:
            task.simulation.add(pm.Execution("n0", 1.0, id=f"after {task.id}"))

    def stepped(self, simulation):
        self.seen.append(("date", simulation.now))


def random_tasks(rng):
    """Tasks whose dates often coincide: round numbers, nothing to do, walltimes, followers."""
    tasks = []
    for k in range(rng.randint(1, 9)):
        host = f"n{rng.randrange(4)}"
        facts = {"id": f"t{k}", "start_s": float(rng.choice([0, 0, 1, 2, 5]))}
        if tasks and rng.random() < 0.4:
            facts["after"] = [rng.choice(tasks).id]
        if rng.random() < 0.2:
            facts["walltime_s"] = float(rng.choice([1, 2]))
        kind = rng.choice(["run", "run", "send", "wait"])
        amount = float(rng.choice([0, 1, 2, 3]))
        if kind == "run":
            tasks.append(pm.Execution(host, amount, **facts))
        elif kind == "send":
            tasks.append(pm.Flow(host, f"n{rng.randrange(4)}", 1.0 + amount, **facts))
        else:
            tasks.append(pm.Delay(amount, [host], **facts))
    return tasks


def by_run(sim, rng):
    sim.run()


def by_steps(sim, rng):
    while sim.step():
        pass


def by_changes(sim, rng):
    while sim.next_event_s() is not None:
        sim.run_until_change()


def by_changes_until(sim, rng):
    steps = [rng.uniform(0.0, 2.0) for _ in range(60)]
    for date in itertools.accumulate(steps, initial=sim.now):
        while sim.run_until_change(until_s=date):
            pass
    sim.run()


def by_dates(sim, rng):
    steps = [rng.choice([0.0, 0.25, 1.0, 1.7]) for _ in range(60)]
    for date in itertools.accumulate(steps, initial=sim.now):
        sim.advance_to(date)
    sim.run()


def by_all(sim, rng):
    for _ in range(20):
        rng.choice([sim.step, sim.run_until_change, sim.next_event_s])()
        sim.advance_to(sim.now + rng.choice([0.0, 0.5, 1.0]))
    sim.run()


WAYS = [by_run, by_steps, by_changes, by_changes_until, by_dates, by_all]


def heard(tasks, go_on, rng, answers=(), model="L07"):
    """What an observer is told of tasks, the dates at which nothing began or ended left out."""
    sim, seen = pm.Simulation(PLATFORM, network_model=model), []
    sim.add_all(tasks)
    sim.observe(Hears(seen, answers))
    go_on(sim, rng)
    return told_of_tasks(seen)


def told_of_tasks(seen):
    """Without the dates at which no task began or ended."""
    pairs = itertools.pairwise([("date",), *seen])
    return [x for before, x in pairs if x[0] != "date" or before[0] != "date"]


@pytest.mark.parametrize("model", ["L07", "LV08"])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_every_way_tells_the_same(model, seed):
    tasks = random_tasks(random.Random(seed))
    answers = {task.id for task in tasks[::3]}
    rng = random.Random(seed)
    first, *others = [heard(tasks, way, rng, answers, model) for way in WAYS]
    for way, told in zip(WAYS[1:], others, strict=True):
        assert told == first, way.__name__
    dates = [x[-1] for x in first if x[-1] is not None]
    assert dates == sorted(dates)
    begun = [x[1] for x in first if x[0] == "starts"]
    ended = [x[1] for x in first if x[0] == "ends" and x[2] is not None]
    assert sorted(begun) == sorted(ended)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_an_observer_of_what_was_saved_hears_the_rest(seed):
    rng = random.Random(seed)
    tasks = random_tasks(rng)
    sim, seen = pm.Simulation(PLATFORM), []
    sim.add_all(tasks)
    sim.observe(Hears(seen))
    for _ in range(rng.randint(0, 5)):
        rng.choice([sim.step, sim.run_until_change])()
    sim.advance_to(sim.now)
    twin = pickle.loads(pickle.dumps(sim)) if rng.random() < 0.5 else sim.fork()
    twin.observe(Hears(seen))
    rng.choice(WAYS)(twin, rng)
    assert told_of_tasks(seen) == heard(tasks, by_run, rng)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_so_does_a_run_inside_simpy(seed):
    simpy = pytest.importorskip("simpy")
    tasks = random_tasks(random.Random(seed))
    env, sim, seen = simpy.Environment(), pm.Simulation(PLATFORM), []
    bridge = SimPyBridge(env, sim)
    sim.observe(Hears(seen))
    for task in tasks:
        bridge.run(task).defused = True
    env.run(until=NEVER)

    def by_adding_one_by_one(sim, rng):
        for task in tasks:
            sim.advance_to(0.0)
            sim.add(task)
        sim.run()

    assert told_of_tasks(seen) == heard([], by_adding_one_by_one, None)
