"""Availability traces and what starves: dates, the clock, and what will never happen."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import ptaskmodel as pm

ONCE = "1 50\n5 100\n20 10\n"
PERIODIC = "PERIODICITY 10\n1 50\n5 100\n"


def platform(
    directory: Path, bandwidth: str = "", speed: str = "", link: str = "bandwidth='100Bps'"
) -> pm.Platform:
    """Hosts a and b of 100 flop/s, link l between them."""
    attributes = {"bandwidth_file": bandwidth, "speed_file": speed}
    said = {}
    for name, text in attributes.items():
        if text:
            (directory / name).write_text(text)
            said[name] = f"{name}='{name}'"
    path = directory / "platform.xml"
    path.write_text(
        "<?xml version='1.0'?><!DOCTYPE platform SYSTEM 'https://simgrid.org/simgrid.dtd'>"
        "<platform version='4.1'><zone id='z' routing='Full'>"
        f"<host id='a' speed='100f' {said.get('speed_file', '')}/><host id='b' speed='100f'/>"
        f"<link id='l' {link} {said.get('bandwidth_file', '')}/>"
        "<route src='a' dst='b'><link_ctn id='l'/></route></zone></platform>"
    )
    return pm.load_platform(path)


def starved(directory: Path, trace: str) -> pm.Simulation:
    """A simulation that has run to its end: a task on a has no speed for ever."""
    sim = pm.Simulation(platform(directory, trace))
    sim.set_speed("a", 0)
    sim.add(pm.Execution("a", 1))
    sim.run()
    assert sim.now == 0.0
    return sim


def test_a_run_that_starves_leaves_the_future_of_the_traces_alone(tmp_path):
    sim = starved(tmp_path, ONCE)
    flow = sim.add(pm.Flow("a", "b", 1000))
    sim.run()
    # 100 B in the first second, 200 B in four, the rest at 100 B/s.
    assert flow.end_s == pytest.approx(12.0)


def test_the_clock_goes_on_after_a_run_that_starves_beside_a_periodic_trace(tmp_path):
    sim = starved(tmp_path, PERIODIC)
    sim.advance_to(3.5)
    assert sim.now == 3.5
    flow = sim.add(pm.Flow("a", "b", 75))
    sim.run()
    assert flow.end_s == pytest.approx(5.0)


@pytest.mark.jit
def test_changes_by_a_trace_in_vain_end_a_run_but_not_the_next_one(tmp_path):
    sim = pm.Simulation(platform(tmp_path, speed="PERIODICITY 2\n0 0\n1 0\n"))
    task = sim.add(pm.Execution("a", 100))
    sim.run()
    assert task.state == "starved"
    date = sim.now
    sim.advance_to(date + 7.5)
    assert sim.now == date + 7.5


def test_while_all_is_suspended_nothing_will_happen(tmp_path):
    sim = pm.Simulation(platform(tmp_path, "1 50\n5 100\n"))
    flow = sim.add(pm.Flow("a", "b", 1000))
    sim.advance_to(0.5)
    sim.suspend(flow)
    assert sim.next_event_s() is None
    assert sim.step() is False
    assert sim.run_until_change() == []
    sim.advance_to(6.0)
    sim.resume(flow)
    assert sim.next_event_s() == pytest.approx(6.0 + 9.5)


def test_the_loop_of_the_guide_ends(tmp_path):
    sim = pm.Simulation(platform(tmp_path, "1 50\n5 100\n"))
    flow = sim.add(pm.Flow("a", "b", 1000))
    sim.advance_to(0.5)
    sim.suspend(flow)
    turns = 0
    while sim.next_event_s() is not None:
        sim.run_until_change()
        turns += 1
        assert turns < 10


def test_step_says_a_plain_truth_value(tmp_path):
    sim = pm.Simulation(platform(tmp_path))
    sim.add(pm.Execution("a", 100))
    assert sim.step() is True
    assert sim.step() is False


@pytest.mark.parametrize("model", ["CM02", "LV08"])
def test_a_flow_waits_for_a_link_whose_bandwidth_is_0(tmp_path, model):
    link = "bandwidth='1GBps' latency='1ms'"
    sim = pm.Simulation(platform(tmp_path, "1 0\n5 1e9\n", link=link), network_model=model)
    x = sim.add(pm.Flow("a", "b", 2e9))
    y = sim.add(pm.Flow("a", "b", 2e9, start_s=2.0))
    sim.run()
    # x sends until 1 and from 5 on; both share; a TCP window of 4 MiB would allow 2 GB/s.
    factor, wait = (1.0, 0.001) if model == "CM02" else (0.97, 0.01301)
    part = 1.0 / 1.05  # acknowledgements take 5 % of what both directions share
    left = 2e9 - factor * 1e9 * part * (1.0 - wait)
    end = 5.0 + 2.0 * left / (factor * 1e9 * part)
    assert x.end_s == pytest.approx(end, rel=1e-3)
    assert y.end_s == pytest.approx(5.0 + (left + 2e9) / (factor * 1e9 * part), rel=1e-3)


@pytest.mark.parametrize("model", ["CM02", "LV08"])
def test_a_flow_on_a_link_that_never_has_bandwidth_starves(tmp_path, model):
    sim = pm.Simulation(platform(tmp_path, "0 0\n"), network_model=model)
    flow = sim.add(pm.Flow("a", "b", 2e9))
    sim.run()
    assert flow.state == "starved"


class Heard(pm.Observer):
    """Counts what it hears."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.ended: list[str] = []
        self.dates: list[float] = []

    def task_started(self, task):
        self.started.append(task.id)

    def task_ended(self, task):
        self.ended.append(task.id)

    def stepped(self, simulation):
        self.dates.append(simulation.now)


def test_observers_hear_from_step_what_they_hear_from_run(tmp_path):
    heard = []
    for stepwise in (True, False):
        sim = pm.Simulation(platform(tmp_path))
        sim.add(pm.Execution("a", 100, id="x"))
        sim.add(pm.Execution("b", 300, id="y", after=["x"]))
        observer = Heard()
        sim.observe(observer)
        if stepwise:
            while sim.step():
                pass
        else:
            sim.run()
        heard.append(observer)
    assert heard[0].started == heard[1].started == ["x", "y"]
    assert heard[0].ended == heard[1].ended == ["x", "y"]
    assert heard[0].dates == heard[1].dates


@pytest.mark.parametrize(
    ("solver", "end"), [("bmf", 0.0), ("maxmin", 0.0), ("fairbottleneck", 0.5)]
)
def test_what_begins_on_something_off_fails_at_once_but_as_in_simgrid_under_its_rule(
    tmp_path, solver, end
):
    sim = pm.Simulation(platform(tmp_path), solver=solver)
    sim.fail("l")
    flow = sim.add(pm.Flow("a", "b", 100))
    sim.add(pm.Delay(0.5, ["b"]))
    sim.run()
    assert (flow.state, flow.end_s) == ("failed", end)


def test_reading_changes_nothing(tmp_path):
    sim = pm.Simulation(platform(tmp_path))
    task = sim.add(pm.Execution("a", 100))
    assert (task.state, task.rate, task.progress, task.state) == ("waiting", 1.0, 0.0, "waiting")
    sim.advance_to(0.25)
    sim.set_speed("a", 0.5)
    assert (task.rate, task.progress) == (0.5, 0.25)
    sim.run()
    assert task.end_s == 0.25 + 0.75 / 0.5


@pytest.mark.parametrize(
    "task",
    [
        pm.Flow("a", "b", 1.0),
        pm.Execution("a", 1.0),
        pm.Delay(1.0, ["a"]),
        pm.ParallelTask(["a", "b"], 1.0),
        pm.Sequence(["a", "b"], [pm.HomogeneousWork(1.0, 1.0)]),
    ],
)
def test_tasks_can_be_made_from_others(task):
    assert dataclasses.replace(task, id="x").id == "x"


def test_a_trace_that_nobody_used_catches_up_when_somebody_comes(tmp_path):
    """Also over many rounds, and from a change by hand on."""
    sim = pm.Simulation(platform(tmp_path, PERIODIC))
    sim.advance_to(1e6 + 2.0)
    flow = sim.add(pm.Flow("a", "b", 150 + 300))
    sim.run()
    # 50 B/s until 5 s of that round, then 100 B/s.
    assert flow.end_s == pytest.approx(1e6 + 8.0)
    sim.advance_to(1e6 + 12.0)
    sim.set_bandwidth("l", 10.0)
    flow = sim.add(pm.Flow("a", "b", 30 + 100))
    sim.run()
    assert flow.end_s == pytest.approx(1e6 + 16.0)
