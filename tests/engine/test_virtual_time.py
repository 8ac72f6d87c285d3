"""Many flows that one link limits, followed by their goals: dates and rates are as ever."""

from __future__ import annotations

import numpy as np
import pytest
from replay_crowds import crowd_case
from smpi import write_case

import ptaskmodel as pm
from ptaskmodel.engine.check import check_state
from ptaskmodel.mpi import read_trace
from ptaskmodel.workload.works import TraceWork

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<zone id="world" routing="Full">
<cluster id="c" prefix="n" suffix="" radical="0-39" speed="1Gf" bw="{link}MBps" lat="50us"
  bb_bw="100MBps" bb_lat="10us"/>
</zone>
{trace}
</platform>
"""
TRACE = """<trace id="t" periodicity="3">0 1e8
1 4e7
2 2e8
</trace>
<trace_connect kind="BANDWIDTH" trace="t" element="c_backbone"/>"""


def machine(place, link=125, trace=""):
    (place / "platform.xml").write_text(PLATFORM.format(link=link, trace=trace))
    return pm.load_platform(place / "platform.xml")


def flow(rng, start_s, size, **more):
    source, target = rng.choice(40, 2, replace=False)
    hosts = f"n{source}", f"n{target}"
    return pm.ParallelTask(hosts, [0, 0], [[0, size], [0, 0]], start_s=start_s, **more)


def flows_of_one_link(seed, flows=150, varied=False):
    """Flows that come one after the other, faster than they go; and what else there may be."""
    rng = np.random.default_rng(seed)
    tasks = []
    for start_s in np.cumsum(rng.exponential(0.01, flows)).tolist():
        more = {}
        if varied and rng.random() < 0.2:
            more["weight"] = float(rng.choice([0.5, 2.0, 3.0]))
        if varied and rng.random() < 0.1:
            more["walltime_s"] = float(rng.uniform(0.1, 2.0))
        if varied and rng.random() < 0.05:
            more["rate_bound"] = float(rng.uniform(0.3, 3.0))
        if varied and rng.random() < 0.2:
            tasks.append(pm.ParallelTask([f"n{rng.integers(40)}"], [1e8 * rng.random()], None))
        size = float(rng.choice([1e6, 2e6, 4e6 * rng.random() + 1e6]))
        tasks.append(flow(rng, start_s, size, **more))
    return tasks


def both(platform, tasks, model="LV08"):
    """The simulation, and one that knows no groups; neither has begun."""
    made = [pm.Simulation(platform, network_model=model, optimise=each) for each in (True, False)]
    for simulation in made:
        simulation.add_all(tasks)
    return made


def finish_times(simulation):
    return [record.end_s for record in simulation.records()]


@pytest.mark.jit
@pytest.mark.parametrize("model", ["LV08", "CM02"])
@pytest.mark.parametrize("seed", range(3))
def test_a_group_ends_at_the_same_dates_and_is_solved_once(tmp_path, model, seed):
    simulation, plain = both(machine(tmp_path), flows_of_one_link(seed), model)
    simulation.run()
    plain.run()
    assert finish_times(simulation) == pytest.approx(finish_times(plain), rel=1e-12)
    counts = simulation.core.state.graph.counts[0]
    assert counts["solves"] < 0.6 * plain.core.state.graph.counts[0]["solves"]


@pytest.mark.jit
@pytest.mark.parametrize("trace", ["", TRACE])
@pytest.mark.parametrize("link", [9, 30, 125])
def test_whatever_else_there_is(tmp_path, link, trace):
    platform = machine(tmp_path, link, trace)
    for seed in range(4):
        simulation, plain = both(platform, flows_of_one_link(seed, varied=True))
        simulation.run()
        plain.run()
        assert finish_times(simulation) == pytest.approx(finish_times(plain), rel=1e-11), seed


@pytest.mark.jit
def test_rates_and_what_is_left_are_told_between(tmp_path):
    simulation, plain = both(machine(tmp_path), flows_of_one_link(5))
    for until in np.linspace(0.1, 3.0, 12):
        for each in (simulation, plain):
            each.run(until_s=float(until))
        assert check_state(simulation.core.state) == []
        for task, other in zip(simulation.tasks(), plain.tasks(), strict=True):
            assert task.rate == pytest.approx(other.rate, rel=1e-11)
            assert task.progress == pytest.approx(other.progress, rel=1e-11)


@pytest.mark.jit
def test_a_group_that_never_ends_does_not_drift(tmp_path):
    rng = np.random.default_rng(1)
    sizes = (1e6 * (1.0 + rng.random(4000))).tolist()
    tasks = [flow(rng, 0.015 * k if k > 60 else 0.0, size) for k, size in enumerate(sizes)]
    simulation, plain = both(machine(tmp_path), tasks)
    simulation.run()
    plain.run()
    assert finish_times(simulation) == pytest.approx(finish_times(plain), rel=1e-12)


@pytest.mark.jit
@pytest.mark.parametrize("seed", [1, 11])
def test_ranks_and_flows_in_one_group(tmp_path, seed):
    text, hosts, files = crowd_case(seed)
    trace = read_trace(write_case(tmp_path, hosts, files), len(hosts))
    (tmp_path / "platform.xml").write_text(text)
    platform = pm.load_platform(tmp_path / "platform.xml")
    rng = np.random.default_rng(seed)
    tasks = [
        pm.Task(hosts, TraceWork(trace)),
        pm.Task(hosts[::-1], TraceWork(trace), walltime_s=2.0),
    ]
    for start_s in rng.uniform(0.0, 3.0, 100).tolist():
        walltime_s = float(rng.uniform(0.1, 0.5)) if rng.random() < 0.2 else None
        tasks.append(flow(rng, start_s, float(rng.uniform(1e5, 1e7)), walltime_s=walltime_s))
    simulation, plain = both(platform, tasks, "SMPI")
    simulation.run()
    plain.run()
    assert finish_times(simulation) == pytest.approx(finish_times(plain), rel=1e-11)
    counts = simulation.core.state.graph.counts[0]
    assert counts["solves"] < 0.7 * plain.core.state.graph.counts[0]["solves"]


def test_without_the_jit_too(tmp_path):
    simulation, plain = both(machine(tmp_path), flows_of_one_link(9, flows=70))
    simulation.run()
    plain.run()
    assert finish_times(simulation) == pytest.approx(finish_times(plain), rel=1e-12)
    ours, theirs = (each.core.state.graph.counts[0]["solves"] for each in (simulation, plain))
    assert ours < theirs


def crowded_cluster(seed, tasks=700):
    """Parallel tasks on neighbouring hosts, more than these can serve: many share a bottleneck."""
    rng = np.random.default_rng(seed)
    made = []
    for k in range(tasks):
        n = int(rng.choice([1, 2, 4, 8, 16]))
        first = int(rng.integers(40 - n))
        flows = [(i, (i + 1) % n, 5e7 * rng.lognormal()) for i in range(n)] if n > 1 else []
        work = pm.ParallelWork.of(n, 1e9 * rng.lognormal(1.0, 1.2), flows=flows)
        made.append(pm.Task([f"n{first + i}" for i in range(n)], work, start_s=0.5 * k))
    return made


@pytest.mark.jit
@pytest.mark.parametrize("solver", ["bmf", "maxmin", "fairbottleneck-corrected"])
@pytest.mark.parametrize("seed", range(3))
def test_tasks_that_share_hosts_with_others_overload_none(tmp_path, solver, seed):
    platform = machine(tmp_path)
    made = [pm.Simulation(platform, solver=solver, optimise=each) for each in (True, False)]
    for simulation in made:
        simulation.add_all(crowded_cluster(seed))
        simulation.run()
    assert finish_times(made[0]) == pytest.approx(finish_times(made[1]), rel=1e-9)


@pytest.mark.jit
def test_a_link_with_room_is_full_once_its_users_speed_up():
    """40 short and 40 long tasks share the link up from n0; an outsider takes 0.3 of that to n1.

    With the short ones, the long ones take less than half of the link to n1. Without them they take
    0.9, and leave 0.1 to the outsider, whose share is the greatest.
    """
    build = pm.Platform.build("star")
    build.cluster("c", 6, prefix="n", speed=1e9, bandwidth=1e9, latency=0.0)
    simulation = pm.Simulation(build.finish(), solver="bmf")

    def add(hosts, flows):
        return simulation.add(pm.Task(hosts, pm.ParallelWork.of(len(hosts), 0.0, flows=flows)))

    outsider = add(["n3", "n1", "n4"], [(0, 1, 0.3e13), (0, 2, 0.7e13)])
    for size in [0.5e9] + 39 * [1e9]:
        add(["n0", "n5"], [(0, 1, size)])
    for _ in range(40):
        add(["n0", "n1", "n2"], [(0, 1, 0.9e10), (0, 2, 0.1e10)])
    simulation.run()
    # The short ones end after 40 and 79.5 s; then 9 GB of each of the 40 are left.
    assert outsider.record.end_s == pytest.approx(1e4 + 360.0 * (1.0 - 0.1 / 0.3))
