"""Being watched, cut, saved or resumed changes no bit of a date, in virtual time neither."""

from __future__ import annotations

import pickle
import random

import pytest

import ptaskmodel as pm
from ptaskmodel.engine.check import check_state
from ptaskmodel.engine.state import RATE
from ptaskmodel.engine.stream import Listener
from ptaskmodel.platform import Platform

build = Platform.build("p")
build.cluster(
    "c", 16, prefix="n", speed=1e9, bandwidth=1e9, latency=1e-6, backbone=1e8,
    backbone_latency=1e-6,
)  # fmt: skip
PLATFORM = build.finish()
MODELS = [("L07", "maxmin"), ("CM02", None), ("LV08", None)]


def simulation(model, solver, flows=300):
    """Flows that come faster than they go: up to half of them share the backbone."""
    rng, date, tasks = random.Random(5), 0.0, []
    for _ in range(flows):
        date += rng.expovariate(20)
        a, b = rng.sample(range(16), 2)
        tasks.append(pm.Flow(f"n{a}", f"n{b}", rng.uniform(1e6, 3e7), start_s=date))
    sim = pm.Simulation(PLATFORM, network_model=model, solver=solver)
    sim.add_all(tasks)
    return sim


def dates(sim):
    sim.run()
    return [record.end_s for record in sim.records()]


class Hears(Listener):
    """Adds up what each task has done at the rates that it is told."""

    def __init__(self):
        self.now = {}  # since when, at which rate
        self.done = {}
        self.amount = {}

    def take(self, events):
        for event in events[events["kind"] == RATE]:
            task, date = int(event["subject"]), float(event["date"])
            since, rate = self.now.get(task, (date, 0.0))
            self.done[task] = self.done.get(task, 0.0) + rate * (date - since)
            self.now[task] = date, float(event["value"])
            self.amount[task] = float(event["amount"])


def watched(sim):
    sim.observe(pm.Observer())
    return sim


def listened_to(sim):
    sim.listen(Hears())
    return sim


def cut(sim):
    sim.advance_to(7.123)
    sim.run(until_s=9.5)
    return sim


def stepped(sim):
    for _ in range(200):
        sim.step()
    return sim


def changed(sim):
    for _ in range(100):
        sim.run_until_change()
    return sim


def saved(sim):
    sim.run(until_s=6.2)
    return pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(sim)).fork()))


def read(sim):
    for date in (3.0, 5.1, 8.8):
        sim.run(until_s=date)
        assert check_state(sim.core.state) == []
        assert sum(task.rate * task.task.work.flow_bytes[0] for task in sim.tasks()) > 0.0
        assert all(0.0 <= task.progress <= 1.0 for task in sim.tasks())
        sim.next_event_s()
    return sim


@pytest.mark.jit
@pytest.mark.parametrize(("model", "solver"), MODELS)
@pytest.mark.parametrize("way", [watched, listened_to, cut, stepped, changed, saved, read])
def test_no_bit_changes(way, model, solver):
    plain = simulation(model, solver)
    expected = dates(plain)
    sim = way(simulation(model, solver))
    assert dates(sim) == expected
    counts = sim.core.state.graph.counts[0]
    assert counts["solves"] == plain.core.state.graph.counts[0]["solves"]


@pytest.mark.jit
@pytest.mark.parametrize(("model", "solver"), MODELS)
def test_listeners_hear_of_each_change_of_a_rate(model, solver):
    sim, hears = simulation(model, solver), Hears()
    sim.listen(hears)
    sim.run()
    assert len(hears.done) == 300
    assert hears.done == pytest.approx(hears.amount, rel=1e-9)
    assert {rate for _, rate in hears.now.values()} == {0.0}  # at the end


def test_so_it_is_without_the_jit():
    assert dates(watched(simulation("CM02", None, 80))) == dates(simulation("CM02", None, 80))
