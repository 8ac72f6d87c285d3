"""Tasks that come faster than they can be served are told of."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ptaskmodel as pm
from ptaskmodel.cli import main
from ptaskmodel.simulation import advancing, checks, simulation
from ptaskmodel.simulation.checks import offered_load, overload_text
from ptaskmodel.workload.works import DelayWork, HomogeneousWork, ParallelWork, SequenceWork

PLATFORM = """<?xml version="1.0"?><platform version="4.1"><zone id="z" routing="Full">
<host id="a" speed="100f" core="2"/><host id="b" speed="100f" core="2"/>
<link id="l" bandwidth="100Bps" latency="0"/><link id="fat" bandwidth="1Bps" latency="0"
 sharing_policy="FATPIPE"/>
<route src="a" dst="b"><link_ctn id="l"/><link_ctn id="fat"/></route></zone></platform>"""
BOTH = ("a", "b")


@pytest.fixture
def platform(tmp_path):
    (tmp_path / "p.xml").write_text(PLATFORM)
    return pm.load_platform(tmp_path / "p.xml")


def each_second(work, count=11, hosts=BOTH, **more):
    return [
        pm.Task(hosts, work, id=str(k), start_s=float(k), **more) for k in range(count)
    ]  # 10 s from the first to the last


def test_the_load_is_what_is_asked_over_what_is_given_meanwhile(platform):
    work = ParallelWork.of(2, [20.0, 40.0], [[0, 60], [0, 0]])
    load = offered_load(platform, each_second(work))
    assert (load.kind, load.name) == ("link", "l")
    assert load.value == pytest.approx(11 * 60 / (10 * 100))
    computing = ParallelWork.of(2, [20.0, 400.0], [[0, 60], [0, 0]])
    load = offered_load(platform, each_second(computing))
    assert (load.kind, load.name) == ("host", "b")
    assert load.value == pytest.approx(11 * 400 / (10 * 200))


def test_stages_and_both_directions_count(platform):
    inner = HomogeneousWork(1.0, 5.0)
    work = SequenceWork((inner, DelayWork(3.0), inner), 3)
    load = offered_load(platform, each_second(work))
    assert (load.name, load.value) == ("l", pytest.approx(11 * 3 * 2 * 10 / 1000))


def test_what_waits_for_others_and_what_comes_at_once_is_no_load(platform):
    work = HomogeneousWork(1e9, 1e9)
    tasks = each_second(work)
    chain = [tasks[0], *(pm.Task(BOTH, work, id=f"{k}x", start_s=k, after=("0",)) for k in (1, 2))]
    assert offered_load(platform, chain) is None
    assert offered_load(platform, [pm.Task(BOTH, work, id=str(k)) for k in range(9)]) is None
    assert offered_load(platform, each_second(DelayWork(9.0))) is None


def test_too_much_is_not_looked_at(platform, monkeypatch):
    monkeypatch.setattr(checks, "MOST_FLOWS", 20)
    assert offered_load(platform, each_second(HomogeneousWork(1.0, 1.0))) is None


def test_bytes_of_pairs_are_summed_alike_for_few_and_for_many_hosts():
    keys = np.array([7, 2, 7, 0, 2, 7])
    amounts = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    few, many = (checks._sums(keys, amounts, n) for n in (8, 10**9))
    assert few[0].tolist() == many[0].tolist() == [0, 2, 7]
    assert few[1].tolist() == many[1].tolist() == [0.4, 0.2 + 0.5, 0.1 + 0.3 + 0.6]


def test_of_many_pairs_those_that_exchange_most_count(platform, monkeypatch):
    monkeypatch.setattr(checks, "MOST_PAIRS", 1)
    work = ParallelWork.of(2, 0.0, [[0, 60], [20, 0]])
    assert offered_load(platform, each_second(work)).value == pytest.approx(11 * 60 / (10 * 100))


@pytest.mark.parametrize(("size", "told"), [(90.0, False), (150.0, True)])
def test_only_many_tasks_that_pile_up_are_told_of(platform, size, told):
    tasks = each_second(ParallelWork.of(2, 0.0, [[0, size], [0, 0]]), 2000)
    text = overload_text(platform, tasks)
    assert (text is not None) == told
    assert overload_text(platform, tasks[:500]) is None
    if told:
        assert text.startswith("the offered load of link 'l' is 1.5: tasks arrive faster than")


@pytest.mark.parametrize(("together", "least"), [(10, 8), (300, 24)])
def test_progress_is_told_oftener_where_more_goes_on(platform, monkeypatch, together, least):
    monkeypatch.setattr(simulation, "PROGRESS_EVERY_S", -1.0)
    monkeypatch.setattr(advancing, "LOOKS_PER_SLICE", 10_000)
    sim = pm.Simulation(platform)
    for k in range(600):
        start_s = k // together * 1e5 + k % together * 1e-3
        sim.add(pm.ParallelTask(["a"], flops=100 + k, start_s=start_s, id=str(k)))
    dates = []
    sim.run(progress=lambda now, *_: dates.append(now))
    assert dates == sorted(dates)
    assert least <= len(dates) <= 3 * least


def test_progress_is_told_while_somebody_observes(platform, monkeypatch):
    monkeypatch.setattr(simulation, "PROGRESS_EVERY_S", -1.0)
    sim = pm.Simulation(platform)
    sim.add_all(each_second(HomogeneousWork(1.0, 0.0), 20))
    told = []
    sim.observe(pm.Observer())
    sim.run(progress=lambda now, ended, tasks: told.append((now, ended, tasks)))
    assert [now for now, _, _ in told] == sorted(now for now, _, _ in told)
    assert len(told) >= 20
    assert {tasks for _, _, tasks in told} == {20}


@pytest.mark.jit
@pytest.mark.filterwarnings("default:the offered load")
def test_simulate_tells_of_it(tmp_path, capsys):
    (tmp_path / "p.xml").write_text(PLATFORM)
    tasks = [{"id": k, "hosts": ["a"], "cpu": 300, "start": k} for k in range(1000)]
    (tmp_path / "t.json").write_text(json.dumps({"tasks": tasks}))
    command = ["simulate", str(tmp_path / "p.xml"), str(tmp_path / "t.json"), "--until", "1"]
    assert main(command) == 0
    assert "warning: the offered load of host 'a' is 1.5" in capsys.readouterr().err
    assert main([*command, "-q"]) == 0
    assert capsys.readouterr().err == ""
