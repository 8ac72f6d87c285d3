"""An application beside the tasks of one's own simulation: its replay and what stands for it."""

from __future__ import annotations

import pytest

import ptaskmodel as pm
from ptaskmodel.apps import compare_in_company
from ptaskmodel.apps.programs import Size, program
from ptaskmodel.errors import SimulationError
from ptaskmodel.mpi import replay, trace_of_actions
from ptaskmodel.platform import Platform

BANDWIDTH = 125e6
# One rank computes for a second, then sends for one.
TRACE = trace_of_actions([[("compute", 1e9), ("send", 1, 0, 125e6)], [("recv", 0, 0, 125e6)]])


def platform():
    build = Platform.build("p")
    build.cluster("c", 4, prefix="n", speed=1e9, bandwidth=BANDWIDTH, latency=1e-9)
    return build.finish()


@pytest.mark.jit
def test_each_model_contends_with_the_tasks_of_the_simulation():
    simulation = pm.Simulation(platform())
    simulation.add(pm.Flow("n0", "n2", 1e12))
    made = {one.model: one for one in compare_in_company(simulation, TRACE, ["n0", "n1"])}
    assert list(made) == ["replay", "bundle", "1 window", "10 windows"]
    real, bundle = made["replay"], made["bundle"]
    assert real.alone_s == pytest.approx(2.0, rel=1e-6)
    assert real.taken_s == pytest.approx(3.0, rel=1e-6)  # half of the card while it sends
    assert bundle.alone_s == pytest.approx(1.0, rel=1e-6)
    assert bundle.taken_s == pytest.approx(2.0, rel=1e-6)
    assert bundle.error == pytest.approx(-1 / 3, rel=1e-6)
    assert bundle.slowdown_error == pytest.approx(2 / 1.5 - 1, rel=1e-6)
    assert (real.error, real.slowdown_error) == (0.0, 0.0)
    assert real.slowdown == real.taken_s / real.alone_s
    assert simulation.now == 0.0  # it is left as it is
    assert len(simulation.records()) == 1


@pytest.mark.jit
def test_it_begins_where_the_simulation_is_and_later():
    simulation = pm.Simulation(platform())
    simulation.add(pm.Flow("n0", "n2", 125e6 * 5.5))
    simulation.run(until_s=5.0)
    now = compare_in_company(simulation, TRACE, ["n0", "n1"], windows=())[0]
    assert now.taken_s == pytest.approx(2.0, rel=1e-6)  # the flow is over before it sends
    early = pm.Simulation(platform())
    early.add(pm.Flow("n0", "n2", 125e6 * 5.5))
    later = compare_in_company(early, TRACE, ["n0", "n1"], windows=(), start_s=4.0)[0]
    assert later.taken_s == pytest.approx(2.5, rel=1e-6)


@pytest.mark.jit
def test_messages_may_travel_by_the_model_of_smpi():
    trace = program("stencil", Size(4, 2, 1e6, 1000))
    hosts = [f"n{k}" for k in range(4)]
    company = [pm.Flow("n0", "n2", 1e7)]
    by_tasks = pm.Simulation(platform())
    by_smpi = pm.Simulation(platform(), network_model="SMPI")
    by_tasks.add_all(company)
    by_smpi.add_all(company)
    made = compare_in_company(by_tasks, trace, hosts, windows=(), replayed_in=by_smpi)
    assert made[0].alone_s == pytest.approx(replay(platform(), trace, hosts).makespan_s, rel=1e-9)
    assert made[0].taken_s > made[0].alone_s
    with pytest.raises(SimulationError, match="SMPI carries no parallel tasks; give a simulation"):
        compare_in_company(by_smpi, trace, hosts)
