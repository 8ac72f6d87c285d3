"""Spells tile every task's life, name the right culprits, and times alone are right."""

from __future__ import annotations

import csv
import io
from itertools import pairwise

import numpy as np
import pytest
from recordings import Kept, busy_tasks, recorded, small_platform
from scenarios import random_scenario

import ptaskmodel as pm
from ptaskmodel.recording import intervals
from ptaskmodel.recording.attribution import times_alone
from ptaskmodel.recording.intervals import Recorder
from ptaskmodel.results.traces.attribution import BINS, Attribution, Utilisation

HIDDEN = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="Full">
<host id="a" speed="1Gf"/><host id="b" speed="1Gf"/><host id="c" speed="1Gf"/>
<link id="fast" bandwidth="100Bps" latency="1s"/><link id="thin" bandwidth="10Bps" latency="0s"/>
<route src="a" dst="b"><link_ctn id="fast"/></route>
<route src="a" dst="c"><link_ctn id="fast"/><link_ctn id="thin"/></route>
<route src="b" dst="c"><link_ctn id="thin"/></route></zone></platform>"""


@pytest.fixture
def hidden(tmp_path):
    (tmp_path / "p.xml").write_text(HIDDEN)
    return pm.Simulation(pm.load_platform(tmp_path / "p.xml"))


def attributed(simulation, until=None):
    attribution = Attribution()
    with Recorder(simulation, [attribution]):
        simulation.run(until)
    return attribution


def check_tiling(simulation, attribution):
    by_task: dict[str, list] = {}
    for interval in attribution.limits():
        by_task.setdefault(interval.task_id, []).append(interval)
    for ref in simulation.tasks():
        if ref.start_s is None:
            continue
        end = simulation.now if ref.end_s is None else ref.end_s
        mine = by_task.get(ref.id, [])
        if end == ref.start_s and not mine:
            continue
        began = ref.task.start_s if ref.task.after else ref.start_s
        assert mine[0].start_s == began
        assert mine[-1].end_s == end
        assert all(a.end_s == b.start_s for a, b in pairwise(mine))
        assert all(a.end_s > a.start_s for a in mine)
        if ref.state == "completed" and {s.limited_by for s in mine} - {"waiting", "latency"}:
            assert mine[-1].progress == 1.0


@pytest.mark.parametrize("seed", range(40))
def test_spells_tile_the_lives_of_random_scenarios(seed):
    attribution = Attribution()
    simulation, _ = recorded(random_scenario(seed), attribution)
    check_tiling(simulation, attribution)


@pytest.mark.parametrize("gathered", [5, 1 << 15])
def test_batches_make_no_difference(tmp_path, monkeypatch, gathered):
    monkeypatch.setattr(intervals, "GATHERED", gathered)
    simulation = pm.Simulation(small_platform(tmp_path))
    simulation.add_all(busy_tasks(np.random.default_rng(3), 40))
    attribution = attributed(simulation)
    check_tiling(simulation, attribution)
    kinds = {interval.limited_by for interval in attribution.limits()}
    assert kinds == {"host", "link", "latency", "delay", "waiting"}


def test_an_unfinished_run_is_tiled_up_to_now(tmp_path):
    simulation = pm.Simulation(small_platform(tmp_path))
    simulation.add_all(busy_tasks(np.random.default_rng(3), 40))
    check_tiling(simulation, attributed(simulation, until=50.0))


def test_a_hidden_bottleneck_is_found_with_who_shares_it(hidden):
    hidden.add(pm.Flow("a", "c", 100.0, id="first"))
    hidden.add(pm.Flow("b", "c", 50.0, id="second"))
    hidden.add(pm.Flow("a", "b", 100.0, id="aside", start_s=2.0))
    attribution = attributed(hidden)
    limits = [s for s in attribution.limits() if s.task_id == "first"]
    assert [(s.start_s, s.end_s, s.limited_by, s.resource, s.shared_with) for s in limits] == [
        (0.0, 1.0, "latency", "", ()),
        (1.0, pytest.approx(15.0), "link", "thin", ("second",)),
    ]
    rows = {row[0]: row for row in attribution.summary(attribution.limits())}
    assert rows["first"][12:] == ("link", "thin", pytest.approx(14.0), 1, ("second",))
    assert rows["aside"][12:14] == ("link", "fast")


def test_waiting_delays_and_suspension(hidden):
    first = hidden.add(pm.Delay(2.0, id="first"))
    hidden.add(pm.Execution("a", 1e9, id="second", after=["first"], start_s=1.0))
    attribution = Attribution()
    with Recorder(hidden, [attribution]):
        hidden.run(1.0)
        hidden.suspend(first)
        hidden.run(4.0)
        hidden.resume(first)
        hidden.run()
    found = [(s.task_id, s.start_s, s.end_s, s.limited_by) for s in attribution.limits()]
    assert found == [
        ("first", 0.0, 1.0, "delay"),
        ("first", 1.0, 4.0, "suspended"),
        ("first", 4.0, 5.0, "delay"),
        ("second", 1.0, 5.0, "waiting"),
        ("second", 5.0, 6.0, "host"),
    ]


def test_the_tables_are_written(hidden):
    hidden.add(pm.Flow("a", "c", 100.0, id="x,1"))
    attribution = attributed(hidden)
    limits, summary = io.StringIO(), io.StringIO()
    attribution.write(limits, summary)
    rows = list(csv.DictReader(io.StringIO(limits.getvalue())))
    assert [(row["task_id"], row["limited_by"], row["resource"]) for row in rows] == [
        ("x,1", "latency", ""),
        ("x,1", "link", "thin"),
    ]
    (row,) = csv.DictReader(io.StringIO(summary.getvalue()))
    assert (row["life_s"], row["link_s"], row["latency_s"]) == ("11.0", "10.0", "1.0")


def test_times_alone(hidden):
    hidden.add(pm.Flow("a", "c", 100.0))
    hidden.add(pm.Flow("a", "c", 100.0))
    hidden.add(pm.Flow("a", "c", 100.0, walltime_s=2.0))
    hidden.add(pm.Execution("a", 5e8))
    hidden.run()
    assert times_alone(hidden) == [11.0, 11.0, None, 0.5]


def test_times_alone_on_a_platform_that_changes(tmp_path):
    text = HIDDEN.replace('<host id="a" speed="1Gf"/>', '<host id="a" speed="1Gf" '
                          'speed_file="a.av"/>')  # fmt: skip
    (tmp_path / "p.xml").write_text(text)
    (tmp_path / "a.av").write_text("0 1\n10 0.5\n")
    simulation = pm.Simulation(pm.load_platform(tmp_path / "p.xml"))
    simulation.add(pm.Execution("a", 1e9, start_s=1.0))
    simulation.add(pm.Execution("a", 1e9, start_s=20.0))
    simulation.run()
    assert times_alone(simulation) == [1.0, 2.0]


@pytest.mark.parametrize("seed", range(10))
def test_a_task_on_its_own_is_not_slowed_down(seed):
    scenario = random_scenario(seed)
    scenario["tasks"] = [{**scenario["tasks"][0], "after": ()}]
    scenario["events"] = []
    simulation, _ = recorded(scenario, Kept())
    (record,) = simulation.records()
    if record.final_state == "completed":
        (alone,) = times_alone(simulation)
        assert alone == pytest.approx(record.execution_s, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("gathered", [16, 1 << 15])
def test_utilisation_is_the_mean_of_the_shares(tmp_path, monkeypatch, gathered):
    monkeypatch.setattr(intervals, "GATHERED", gathered)
    simulation = pm.Simulation(small_platform(tmp_path))
    simulation.add_all(busy_tasks(np.random.default_rng(5), 40))
    kept, utilisation = Kept(), Utilisation()
    with Recorder(simulation, [kept, utilisation]):
        simulation.run()
    stream = io.StringIO()
    utilisation.write(stream)
    rows = list(csv.DictReader(io.StringIO(stream.getvalue())))
    resource, _, start, end, rate, capacity = kept.use_table
    assert len({row["start_s"] for row in rows}) <= BINS
    for row in rows[:: max(len(rows) // 200, 1)]:
        number = simulation._resource_number(row["resource"])
        a, b = float(row["start_s"]), float(row["end_s"])
        overlap = np.clip(np.minimum(end, b) - np.maximum(start, a), 0.0, None)
        mine = resource == number
        mean = (overlap * rate / capacity)[mine].sum() / (b - a)
        assert float(row["share"]) == pytest.approx(mean, rel=1e-9, abs=1e-9)
