"""Numbers of a checkpoint that point elsewhere are refused before a kernel follows them."""

from __future__ import annotations

import copy
import os
import pickle
import random
import signal

import numpy as np
import pytest
from engine_runner import prepare
from scenarios import random_flow_scenario, random_scenario

import ptaskmodel as pm
from ptaskmodel.simulation.checkpoint import check_parts

VALUES = (10**9, 2**31 - 1, -5)
BACKBONE = """<?xml version='1.0'?><platform version="4.1"><cluster id="c" prefix="n" suffix=""
radical="0-15" speed="1Gf" bw="1GBps" lat="1us" bb_bw="100MBps" bb_lat="1us"/></platform>"""
SOLVERS = ("bmf", "fairbottleneck")


def half_way(seed=4, **options):
    simulation = prepare(random_scenario(seed), **options)
    return read_again(simulation, 0.4)


def read_again(simulation, part):
    """What a checkpoint at a part of the makespan holds."""
    simulation.advance_to(part * simulation.fork().run().makespan_s)
    return pickle.loads(pickle.dumps(simulation))


def arrays(simulation):
    """(where, name, array) of all that kernels are given of tasks."""
    for holder, name in ((simulation.core, "state"), (simulation._intake, "arrays")):
        for field, array in getattr(holder, name)._asdict().items():
            if field != "graph":
                yield holder, name, field, array
    for field, array in simulation.core.state.graph._asdict().items():
        yield simulation.core, "graph", field, array


def columns(simulation):
    """(tuple and field of the array, field of the record) of every integer that is kept."""
    for _, tuple_name, name, array in arrays(simulation):
        if name in ("reals", "integers", "events"):  # made again
            continue
        for field in array.dtype.names or (None,):
            kind = array.dtype[field] if field else array.dtype
            if kind.kind in "iu" and array.size:
                yield (tuple_name, name), field, bool(kind.metadata)


def with_number(simulation, name, field, value):
    """A copy of which one column is overwritten."""
    twin = simulation.fork()
    for holder, tuple_name, found, array in arrays(twin):
        if (tuple_name, found) == name:
            changed = copy.deepcopy(array)
            column = changed[field] if field else changed
            bounds = np.iinfo(column.dtype)
            column[...] = min(max(value, bounds.min), bounds.max)
            if tuple_name == "graph":
                graph = holder.state.graph._replace(**{found: changed})
                holder.state = holder.state._replace(graph=graph)
            else:
                held = getattr(holder, tuple_name)._replace(**{found: changed})
                setattr(holder, tuple_name, held)
    return twin


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
def test_what_was_simulated_passes(seed, part):
    simulations = [prepare(random_scenario(seed), solver=solver) for solver in SOLVERS]
    simulations.append(prepare(random_flow_scenario(seed), network_model="LV08"))
    for simulation in simulations:
        check_parts(read_again(simulation, part))


@pytest.mark.parametrize("part", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("options", [{"solver": "maxmin"}, {"network_model": "CM02"}, {}])
def test_many_flows_over_one_link_pass(part, options, tmp_path):
    draw = random.Random(5)
    (tmp_path / "p.xml").write_text(BACKBONE)
    simulation = pm.Simulation(pm.load_platform(tmp_path / "p.xml"), **options)
    for k in range(200):
        source, target = (f"n{host}" for host in draw.sample(range(16), 2))
        simulation.add(pm.Flow(source, target, draw.uniform(1e6, 3e7), start_s=0.05 * k))
    check_parts(read_again(simulation, part))


def test_every_state_of_many_flows_under_bmf_passes(tmp_path):
    """Some tasks keep nothing for a while, though they had active nodes before."""
    (tmp_path / "p.xml").write_text(BACKBONE)
    simulation = pm.Simulation(pm.load_platform(tmp_path / "p.xml"), solver="bmf")
    drawn, date = random.Random(5), 0.0
    for _ in range(40):
        date += drawn.expovariate(20)
        source, target = (f"n{host}" for host in drawn.sample(range(16), 2))
        simulation.add(pm.Flow(source, target, drawn.uniform(1e6, 3e7), start_s=date))
    while simulation.step():
        pm.save_checkpoint(simulation, tmp_path / "c")
        pm.load_checkpoint(tmp_path / "c")


def test_numbers_beyond_what_the_layout_declares_are_refused():
    simulation = half_way()
    declared = [(name, field) for name, field, known in columns(simulation) if known]
    assert len(declared) > 60
    blank = ("kept", "nodes", "users", "elements")
    for name, field in declared:
        with pytest.raises(pm.SimulationError):
            check_parts(with_number(simulation, name, field, 10**9))
    assert not {name for (_, name), _ in declared} & set(blank)


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_number_ends_the_interpreter(solver):
    """Refused or simulated to some end: in a process of its own, which would die."""
    simulation = half_way(solver=solver)
    simulation.fork().run()
    for name, field, known in columns(simulation):
        if known:
            continue
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            for value in VALUES:
                twin = with_number(simulation, name, field, value)
                try:
                    check_parts(twin)
                    twin.run()
                except Exception:
                    continue
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, (name, field)
