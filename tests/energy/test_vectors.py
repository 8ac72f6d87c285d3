"""Joules of SimGrid 3.32's energy plugins, case by case, and what we say instead where it samples.

Its numbers were made with the plugins host_energy and link_energy of SimGrid 3.32 (Debian), which
add energy at some changes of load only; "asked" means that it was asked for the energy then, which
makes it look.
"""

from __future__ import annotations

import pytest

import ptaskmodel as pm
from ptaskmodel.energy.tasks import TaskEnergy

EXACT = 1e-9
POWERS = {"A": "95:120:200,93:115:170,90:110:150", "B": "100:200", "C": "100:120:200"}


def four_hosts() -> pm.Platform:
    """A has 4 cores and three pstates, B 4 cores, C and S one; A-B is fast, A-C slow."""
    build = pm.Platform.build("vectors")
    speeds = ["100Mf", "50Mf", "20Mf"]
    off = {"wattage_off": "10"}
    build.host("A", speeds, 4, properties={"wattage_per_state": POWERS["A"]} | off)
    build.host("B", "100Mf", 4, properties={"wattage_per_state": POWERS["B"]})
    build.host("C", "100Mf", properties={"wattage_per_state": POWERS["C"]})
    build.host("S", "100Mf", properties={"wattage_per_state": POWERS["B"]})
    build.link("ab", "100MBps", "1ms", properties={"wattage_range": "10:30"})
    build.link("ac", "1MBps", "1s")
    build.route("A", "B", ["ab"])
    build.route("A", "C", ["ac"])
    build.route("A", "S", ["ab"])
    build.route("S", "C", ["ab"])
    return build.finish()


def together(first: str, second: str, a: float, b: float, size: float = 0.0) -> pm.Task:
    """A parallel task of so many flops on each, and bytes from the first to the second."""
    return pm.ParallelTask([first, second], flops=[a, b], flows=[[0, 1, size]] if size else None)


class Run:
    """A simulation with its meter."""

    def __init__(self, platform: pm.Platform | None = None, **options: str) -> None:
        self.simulation = pm.Simulation(platform or four_hosts(), **options)
        self.energy = TaskEnergy(self.simulation)

    def at(self, date: float, **hosts: float) -> Run:
        """Go to a date; these are the joules of hosts then."""
        self.simulation.advance_to(date)
        for name, joules in hosts.items():
            assert self.energy.host_J(name) == pytest.approx(joules, rel=EXACT), (date, name)
        return self

    def add(self, *tasks: pm.Task) -> list[pm.TaskRef]:
        return list(self.simulation.add_all(tasks))


def execution(host: str, flops: float = 1e9) -> pm.Task:
    return pm.Execution(host, flops)


def test_idle():
    Run().at(10, A=950, B=1000)


def test_one_core_of_four_then_idle():
    run = Run()
    run.add(execution("A"))
    run.at(10, A=1400).at(20, A=2350)


def test_all_cores_and_half_of_them():
    run = Run()
    run.add(*[execution("A")] * 4, *[execution("B")] * 2)
    run.at(10, A=2000, B=1500)


def test_more_executions_than_cores():
    run = Run()
    run.add(*[execution("A")] * 8)
    run.at(20, A=4000)


def test_pstates_while_computing_and_idle():
    run = Run()
    (task,) = run.add(execution("A"))
    run.at(5, A=700)
    run.simulation.set_pstate("A", 1)
    run.at(10, A=1343.75).at(15, A=1987.5)
    run.at(20, A=2452.5)
    run.simulation.set_pstate("A", 2)
    run.at(25, A=2902.5)
    assert task.end_s == pytest.approx(15, rel=EXACT)


def test_off_and_on():
    run = Run()
    run.at(5)
    run.simulation.fail("A")
    run.at(15, A=575)
    run.simulation.restore("A")
    run.at(20, A=1050)
    (task,) = run.add(execution("A"))
    run.at(22)
    run.simulation.fail("A")
    run.at(25, A=1360)
    assert task.state == "failed"


def test_the_pstate_is_kept_while_off():
    run = Run()
    run.at(10)
    run.simulation.set_pstate("A", 1)
    run.simulation.fail("A")
    run.at(20)
    run.simulation.restore("A")
    run.at(30, A=1980)


def test_a_speed_of_zero_counts_as_a_full_load():
    build = pm.Platform.build("stopped")
    build.host("z", ["1f", "0f"], pstate=1, properties={"wattage_per_state": "1:2:3,7:8:9"})
    Run(build.finish()).at(10, z=90)


def test_the_load_is_that_of_the_nominal_speed():
    build = pm.Platform.build("half")
    trace = [(0.0, 0.5), (5.0, 1.0)]
    power = {"wattage_per_state": "100:120:200"}
    build.host("h", "100Mf", properties=power, speed_trace=trace)
    run = Run(build.finish())
    (task,) = run.add(execution("h", 5e8))
    run.at(20, h=2550)
    assert task.end_s == pytest.approx(7.5, rel=EXACT)


@pytest.mark.parametrize("latency_s", [0.001])
def test_a_parallel_task_after_idling(latency_s):
    # SimGrid, asked at 10: A 7050.122, B 6125.1025: it charges the latency as loaded (with a load
    # of 0.025). Not asked at 10 it charges the idle time as busy too: 7320.122 and 6150.1025.
    run = Run()
    run.at(10)
    run.add(together("A", "B", 5e8, 5e8, 5e9))
    loaded_a, loaded_b = 120 + 0.025 * 80, 100 + 0.025 * 100
    run.at(60.001, A=950 + latency_s * 95 + 50 * loaded_a, B=1000 + latency_s * 100 + 50 * loaded_b)
    assert 950 + latency_s * loaded_a + 50 * loaded_a == pytest.approx(7050.122, rel=EXACT)
    # The link, which SimGrid sees idle unless it is asked: 600.01.
    assert run.energy.link_J("ab") == pytest.approx(10.001 * 10 + 50 * 30, rel=EXACT)


def test_a_parallel_task_of_computations():
    run = Run()
    run.add(together("A", "B", 1e9, 5e8))
    run.at(10, A=1400, B=1125)


def test_a_parallel_task_uses_one_core_of_each_host():
    run = Run()
    run.add(together("A", "B", 16e8, 1e8))
    run.at(16, A=2240, B=1625)


def test_nobody_computes_during_a_latency():
    # SimGrid charges the latency as loaded: A 840, C 1200.
    run = Run()
    run.add(together("A", "C", 5e8, 5e8, 1e6))
    run.at(6, A=795, C=1100)


def test_contention_elsewhere_is_seen():
    # SimGrid's A, asked at 5: 2000, not asked: 1950; its C, not asked: 2400.
    run = Run()
    run.add(together("A", "S", 1e9, 1e9))
    run.at(5, A=700)
    run.add(together("S", "C", 5e8, 5e8))
    run.at(15, A=2000, S=3000, C=2100)


def test_communicating_is_no_load_of_a_host():
    run = Run()
    run.add(together("A", "B", 0.0, 0.0, 5e9))
    run.at(50.001, A=4750.095, B=5000.1)


def test_one_flop_is_enough_for_epsilon():
    # SimGrid: 10750.215 after both, with the latency of the second one charged as loaded.
    run = Run()
    run.add(together("A", "B", 0.0, 0.0, 5e9))
    run.at(50.001)
    run.add(together("A", "B", 1.0, 0.0, 5e9))
    load = 1 / 50 / 4e8
    run.at(100.002, A=4750.095 + 0.001 * 95 + 50 * (120 + load * 80))


def test_cancelled():
    run = Run()
    (task,) = run.add(together("A", "B", 1e9, 1e9))
    run.at(4, A=560)
    run.simulation.cancel(task)
    run.at(10, A=1130, B=1100)


def test_a_sleep_is_no_load():
    # SimGrid: B 4750 instead.
    run = Run()
    run.at(10)
    run.add(together("A", "B", 1e9, 1e9))
    run.at(20)
    run.add(pm.Delay(10.0, ["A"]))
    run.at(30)
    run.add(together("A", "B", 1e9, 1e9))
    run.at(40, A=4700, B=4500)


def test_a_parallel_task_whose_host_changes_its_pstate():
    run = Run()
    run.simulation.set_pstate("A", 1)
    (task,) = run.add(together("A", "B", 1e9, 1e9))
    run.at(10)
    run.simulation.set_pstate("A", 0)
    run.at(15, A=1987.5, B=1750)
    assert task.end_s == pytest.approx(15, rel=EXACT)


def test_simgrids_own_test():
    build = pm.Platform.build("energy")
    build.host("one", "100Mf", 4, properties={"wattage_per_state": "100:93.3333:200"})
    build.host("two", "100Mf", properties={"wattage_per_state": "100:200:200"})
    build.link("l", "1MBps")
    build.route("one", "two", ["l"])
    run = Run(build.finish())
    run.add(together("one", "two", 1e9, 1e9))
    run.at(10, two=2000)
    assert run.energy.host_J("one") == pytest.approx(1200, abs=1e-3)


def one_link(*bandwidths: str, latency: str = "1ms") -> pm.Platform:
    build = pm.Platform.build("links")
    power = {"wattage_per_state": "0:0"}
    for host in "ab":
        build.host(host, "1Gf", properties=power)
    for k, bandwidth in enumerate(bandwidths):
        build.link(f"l{k}", bandwidth, latency, properties={"wattage_range": "10:30"})
    build.route("a", "b", [f"l{k}" for k in range(len(bandwidths))])
    return build.finish()


@pytest.mark.parametrize(
    ("model", "duration_s", "latency_s", "simgrid_J"),
    [
        ("LV08", 1.05e9 / 0.97e8 + 0.01301, 0.01301, 375.132568),
        ("CM02", 10.501, 0.001, 365.03),
        ("L07", 10.001, 0.001, 350.03),
    ],
)
def test_a_communication_on_a_link(model, duration_s, latency_s, simgrid_J):
    run = Run(one_link("100MBps"), network_model=model)
    run.at(5)
    assert run.energy.link_J("l0") == pytest.approx(50, rel=EXACT)
    (task,) = run.add(pm.Flow("a", "b", 1e9))
    run.simulation.run()
    end = task.end_s
    assert end == pytest.approx(5 + duration_s, rel=1e-7)
    # SimGrid charges the latency as loaded: the difference is (30 - 10) W times the latency.
    found = run.energy.link_J("l0")
    assert found + 20 * latency_s == pytest.approx(simgrid_J, rel=EXACT)
    assert found == pytest.approx(50 + 10 * latency_s + 30 * (duration_s - latency_s), rel=1e-7)
    run.at(end + 5)
    assert run.energy.link_J("l0") == pytest.approx(found + 50, rel=EXACT)


@pytest.mark.parametrize(
    ("model", "joules"),
    [("LV08", (432.9896907, 649.4845361)), ("L07", (400.0, 600.0))],
)
def test_two_links_in_a_row(model, joules):
    run = Run(one_link("100MBps", "50MBps", latency="0s"), network_model=model)
    run.add(pm.Flow("a", "b", 1e9))
    run.simulation.run()
    found = [run.energy.link_J(name) for name in ("l0", "l1")]
    assert found == pytest.approx(list(joules), rel=EXACT)


@pytest.mark.parametrize(
    ("model", "simgrid_J", "latency_s"),
    [("LV08", 1433.249891, 0.01301), ("CM02", 1420.02, 0.001), ("L07", 1400.02, 0.001)],
)
def test_two_opposite_flows(model, simgrid_J, latency_s):
    run = Run(one_link("100MBps"), network_model=model)
    run.add(pm.Flow("a", "b", 1e9), pm.Flow("b", "a", 1e9))
    run.at(100)
    assert run.energy.link_J("l0") + 20 * latency_s == pytest.approx(simgrid_J, rel=EXACT)
