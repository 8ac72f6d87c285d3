"""Worked examples of the model, each small enough to be done by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ptaskmodel as pm

HEADER = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
"""

THREE_HOSTS = """
<host id="a" speed="100f"/> <host id="b" speed="100f"/> <host id="c" speed="50f" core="4"/>
<link id="l" bandwidth="100Bps" latency="0s"/>
<link id="lat" bandwidth="100Bps" latency="2s"/>
<link id="fp" bandwidth="100Bps" latency="0s" sharing_policy="FATPIPE"/>
<route src="a" dst="b"><link_ctn id="l"/></route>
<route src="a" dst="c"><link_ctn id="lat"/></route>
<route src="b" dst="c"><link_ctn id="fp"/></route>
"""


class World:
    """Makes simulations of platforms given as text."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def file(self, name: str, text: str) -> None:
        (self.place / name).write_text(text)

    def simulation(
        self,
        content: str = THREE_HOSTS,
        *,
        routing: str = "Full",
        solver: str | None = "fairbottleneck",
        config: dict[str, object] | None = None,
        **options: Any,
    ) -> pm.Simulation:
        props = "".join(f'<prop id="{k}" value="{v}"/>' for k, v in (config or {}).items())
        settings = f'<config id="General">{props}</config>' if config else ""
        zone = f'<zone id="world" routing="{routing}">{content}</zone>'
        path = self.place / "platform.xml"
        path.write_text(f"{HEADER}{settings}{zone}</platform>\n")
        return pm.Simulation(pm.load_platform(path), solver=solver, **options)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def ends(simulation: pm.Simulation, *tasks: pm.Task) -> list[float | None]:
    """The finish dates of the tasks, once all is run."""
    simulation.add_all(tasks)
    simulation.run()
    return [record.end_s for record in simulation.records()]


def ptask(hosts: str, flops: list | None = None, flows: list | None = None, **more: Any) -> pm.Task:
    return pm.ParallelTask(hosts.split(), flops=flops, flows=flows, **more)


# --- what a task consumes ------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["fairbottleneck", "fairbottleneck-corrected", "bmf"])
def test_three_tasks_of_the_model(world: World, solver: str) -> None:
    simulation = world.simulation(solver=solver)
    dates = ends(
        simulation,
        ptask("a b", [1000, 1000], [(0, 1, 600)]),
        ptask("a b", None, [(0, 1, 1000)], start_s=1.0),
        ptask("a b", [300, 1000], start_s=6.0),
    )
    if solver == "bmf":
        assert dates == pytest.approx([47 / 3, 16.4, 125 / 6], rel=1e-12)
    else:
        assert dates == pytest.approx([47 / 3, 16.4, 125 / 6], rel=1e-9)


@pytest.mark.parametrize(
    ("policy", "end"), [("SHARED", 15.0), ("FATPIPE", 10.0), ("SPLITDUPLEX", 10.0)]
)
def test_opposite_flows_of_one_task(world: World, policy: str, end: float) -> None:
    way = 'direction="UP"' if policy == "SPLITDUPLEX" else ""
    back = way.replace("UP", "DOWN")
    simulation = world.simulation(f"""
        <host id="a" speed="100f"/> <host id="b" speed="100f"/>
        <link id="l" bandwidth="100Bps" latency="0s" sharing_policy="{policy}"/>
        <route src="a" dst="b" symmetrical="NO"><link_ctn id="l" {way}/></route>
        <route src="b" dst="a" symmetrical="NO"><link_ctn id="l" {back}/></route>""")
    assert ends(simulation, ptask("a b", None, [(0, 1, 1000), (1, 0, 500)])) == [end]


def test_link_twice_in_a_route_is_used_twice(world: World) -> None:
    simulation = world.simulation("""
        <host id="a" speed="100f"/> <host id="b" speed="100f"/>
        <link id="l" bandwidth="100Bps" latency="0s"/>
        <route src="a" dst="b"><link_ctn id="l"/><link_ctn id="l"/></route>""")
    assert ends(simulation, pm.Flow("a", "b", 1000.0)) == [20.0]


def test_task_without_work_ends_at_once(world: World) -> None:
    assert ends(world.simulation(), ptask("b b", [0, 0], start_s=3.0)) == [3.0]


def test_route_without_links_costs_its_latency(world: World) -> None:
    simulation = world.simulation(
        """<host id="a" speed="100f" coordinates="0 0 1000"/>
           <host id="b" speed="100f" coordinates="3000 4000 0"/>""",
        routing="Vivaldi",
    )
    assert ends(simulation, pm.Flow("a", "b", 1000.0)) == [6.0]


def test_missing_route_is_an_error(world: World) -> None:
    from ptaskmodel.errors import RouteError

    simulation = world.simulation('<host id="a" speed="100f"/> <host id="b" speed="100f"/>')
    simulation.add(pm.Flow("a", "b", 1000.0))
    with pytest.raises(RouteError):
        simulation.run()


def test_bytes_of_a_one_host_task_count(world: World) -> None:
    simulation = world.simulation(config={"network/loopback-bw": "100"})
    assert ends(simulation, ptask("a", [100], [(0, 0, 1000)])) == [10.0]


# --- latency, bounds -----------------------------------------------------------------------------


def test_latency_precedes_the_transfer(world: World) -> None:
    assert ends(world.simulation(), pm.Flow("a", "c", 1000.0)) == [12.0]


def test_tcp_window_bounds_the_rate(world: World) -> None:
    simulation = world.simulation(config={"network/TCP-gamma": "100"})
    assert ends(simulation, pm.Flow("a", "c", 1000.0)) == pytest.approx([42.0], rel=1e-12)


@pytest.mark.parametrize(("count", "end"), [(4, 2.0), (5, 2.5)])
def test_cores_are_shared_by_executions(world: World, count: int, end: float) -> None:
    tasks = [pm.Execution("c", 100.0) for _ in range(count)]
    assert ends(world.simulation(), *tasks) == pytest.approx([end] * count, rel=1e-12)


@pytest.mark.parametrize("solver", ["fairbottleneck", "fairbottleneck-corrected", "bmf"])
def test_repeated_host_uses_one_core_per_entry(world: World, solver: str) -> None:
    assert ends(world.simulation(solver=solver), ptask("c c", [100, 300])) == pytest.approx([6.0])


def test_repeated_elements_leave_a_crumb_of_the_capacity(world: World) -> None:
    assert ends(world.simulation(), ptask("a a", [100, 300])) == pytest.approx(
        [4.0000002788], rel=1e-10
    )


def test_repeated_host_under_bmf_is_exact(world: World) -> None:
    assert ends(world.simulation(solver="bmf"), ptask("a a", [100, 300])) == [4.0]


@pytest.mark.parametrize(("bound", "end"), [(0.05, 20.0), (10.0, 10.0)])
def test_rate_bound_is_in_tasks_per_second(world: World, bound: float, end: float) -> None:
    flow = pm.Flow("a", "b", 1000.0, rate_bound=bound)
    assert ends(world.simulation(), flow) == pytest.approx([end], rel=1e-12)


def test_weights_under_bmf(world: World) -> None:
    heavy, light = pm.Execution("a", 200.0, weight=2.0), pm.Execution("a", 200.0)
    assert ends(world.simulation(solver="bmf"), heavy, light) == pytest.approx([3.0, 4.0])


# --- time ----------------------------------------------------------------------------------------


def test_remainders_below_the_precision_end_together(world: World) -> None:
    dates = ends(
        world.simulation(),
        pm.Execution("a", 100.0),
        pm.Execution("b", 100.00000000000005),
        pm.Execution("c", 50.0 + 5e-10),
    )
    assert dates[:2] == pytest.approx([1.0, 1.0], rel=1e-14)
    assert dates[2] == pytest.approx(1.00000000001, rel=1e-13)


def test_availability_alone_revives_a_task(world: World) -> None:
    world.file("speed.profile", "2 0\n4 1\n")
    simulation = world.simulation('<host id="a" speed="100f" speed_file="speed.profile"/>')
    assert ends(simulation, pm.Execution("a", 400.0)) == [6.0]


def test_host_of_speed_zero_starves_its_tasks(world: World) -> None:
    world.file("speed.profile", "2 0\n")
    simulation = world.simulation('<host id="a" speed="100f" speed_file="speed.profile"/>')
    assert ends(simulation, pm.Execution("a", 400.0)) == [None]
    assert simulation.records()[0].final_state == "starved"


# --- failures ------------------------------------------------------------------------------------


def test_host_that_goes_down_fails_tasks_that_compute_nothing_there(world: World) -> None:
    simulation = world.simulation()
    simulation.add_all(
        [
            ptask("a b", [1000, 0]),  # no flop on b
            pm.Flow("a", "c", 1000.0),  # in its latency phase
            pm.Delay(9.0, ["b"]),
            pm.Execution("a", 50.0),
        ]
    )
    simulation.advance_to(1.0)
    simulation.fail("b")
    simulation.fail("c")
    simulation.run()
    found = [(record.final_state, record.end_s) for record in simulation.records()]
    assert found == [("failed", 1.0), ("failed", 1.0), ("failed", 1.0), ("completed", 1.0)]


def test_link_that_goes_down_fails_its_users(world: World) -> None:
    simulation = world.simulation()
    simulation.add_all([pm.Flow("a", "b", 1000.0), pm.Flow("b", "c", 1000.0)])
    simulation.advance_to(3.0)
    simulation.fail("l")
    simulation.run()
    found = [(record.final_state, record.end_s) for record in simulation.records()]
    assert found == [("failed", 3.0), ("completed", 10.0)]


def test_task_started_on_a_dead_link_goes_unnoticed_until_the_next_event(world: World) -> None:
    simulation = world.simulation()
    simulation.fail("l")
    simulation.add(pm.Flow("a", "b", 200.0, start_s=2.0))
    simulation.run()
    assert simulation.records()[0].final_state == "completed"
    assert simulation.records()[0].end_s == 4.0


def test_task_started_on_a_dead_link_fails_at_the_next_event(world: World) -> None:
    simulation = world.simulation()
    simulation.fail("l")
    simulation.add_all([pm.Flow("a", "b", 200.0, start_s=2.0), pm.Execution("b", 300.0)])
    simulation.run()
    assert simulation.records()[0].final_state == "failed"
    assert simulation.records()[0].end_s == 3.0


def test_execution_started_on_a_dead_host_fails(world: World) -> None:
    simulation = world.simulation()
    simulation.fail("a")
    simulation.add(pm.Execution("a", 100.0, start_s=2.0))
    simulation.run()
    assert simulation.records()[0].final_state == "failed"
    assert simulation.records()[0].end_s == 3.0


# --- delays, suspension, cancellation ------------------------------------------------------------


def test_delays_use_nothing(world: World) -> None:
    dates = ends(
        world.simulation(),
        pm.Delay(4.0, ["a"]),
        pm.Delay(0.0, ["a"], start_s=2.0),
        pm.Execution("a", 100.0),
    )
    assert dates == [4.0, 2.0, 1.0]


def test_suspended_task_goes_on_where_it_was(world: World) -> None:
    simulation = world.simulation()
    task = simulation.add(pm.Execution("a", 1000.0))
    simulation.advance_to(4.0)
    simulation.suspend(task)
    simulation.advance_to(11.0)
    assert task.progress == pytest.approx(0.4)
    simulation.resume(task)
    simulation.run()
    assert task.end_s == 17.0


def test_suspension_in_the_latency_phase_keeps_the_tcp_bound(world: World) -> None:
    simulation = world.simulation(config={"network/TCP-gamma": "100"})
    task = simulation.add(pm.Flow("a", "c", 1000.0))
    simulation.advance_to(0.5)
    simulation.suspend(task)
    simulation.advance_to(1.0)
    simulation.resume(task)
    simulation.run()
    assert task.end_s == pytest.approx(42.5)


def test_cancelled_task_ends_at_once(world: World) -> None:
    simulation = world.simulation()
    task = simulation.add(pm.Execution("a", 1000.0))
    other = simulation.add(pm.Execution("a", 1000.0))
    simulation.advance_to(4.0)
    simulation.cancel(task)
    simulation.run()
    assert (task.state, task.end_s) == ("cancelled", 4.0)
    assert other.end_s == pytest.approx(12.0)


# --- changes -------------------------------------------------------------------------------------


def test_latency_and_bandwidth_profiles(world: World) -> None:
    world.file("latency.profile", "0 2\n4 3\n")
    world.file("bandwidth.profile", "2 50\n5 25\n9 100\n")
    simulation = world.simulation("""
        <host id="a" speed="100f"/> <host id="b" speed="100f"/>
        <link id="l" bandwidth="100Bps" latency="1s" latency_file="latency.profile"
              bandwidth_file="bandwidth.profile"/>
        <route src="a" dst="b"><link_ctn id="l"/></route>""")
    assert ends(simulation, pm.Flow("a", "b", 1000.0)) == pytest.approx([16.5], rel=1e-12)


def test_speed_profile_of_a_multicore_host(world: World) -> None:
    world.file("speed.profile", "2 0.5\n5 0.25\n")
    simulation = world.simulation('<host id="a" speed="100f" core="2" speed_file="speed.profile"/>')
    tasks = [pm.Execution("a", 500.0) for _ in range(3)]
    assert ends(simulation, *tasks) == pytest.approx([21.0] * 3, rel=1e-12)


def test_speed_profile_and_pstates(world: World) -> None:
    world.file("speed.profile", "2 0.5\n5 0.25\n")
    simulation = world.simulation(
        '<host id="a" speed="100f,50f,25f" pstate="1" speed_file="speed.profile"/>'
    )
    simulation.add(pm.Execution("a", 1000.0))
    simulation.advance_to(10.0)
    simulation.set_pstate("a", 0)
    simulation.run()
    assert simulation.makespan_s == pytest.approx(40.5, rel=1e-12)


def test_pstate_change_of_a_multicore_host(world: World) -> None:
    simulation = world.simulation('<host id="a" speed="100f,50f,25f" pstate="1" core="2"/>')
    simulation.add_all([pm.Execution("a", 500.0) for _ in range(4)])
    simulation.advance_to(10.0)
    simulation.set_pstate("a", 2)
    simulation.run()
    dates = [record.end_s for record in simulation.records()]
    assert dates == pytest.approx([30.0] * 4, rel=1e-12)


def test_periodic_profiles(world: World) -> None:
    world.file("speed.profile", "LOOPAFTER 3\n0 1.0\n2 0.5\n5 0.25\n")
    simulation = world.simulation('<host id="a" speed="100f" speed_file="speed.profile"/>')
    # 200 by 2, 350 by 5, 425 by 8, 625 by 10, 775 by 13
    dates = ends(simulation, *[pm.Execution("a", 775.0)])
    assert dates == pytest.approx([13.0], rel=1e-12)


# --- several tasks -------------------------------------------------------------------------------


def test_arrival_between_two_tasks(world: World) -> None:
    dates = ends(
        world.simulation(),
        ptask("a b", [600, 600], [(0, 1, 1000), (1, 0, 1000)]),
        ptask("a b", None, [(0, 1, 1000)]),
        ptask("a b", [300, 300], start_s=6.0),
    )
    assert dates == pytest.approx([30.0, 20.0, 9.52941176470588], rel=1e-12)


def test_late_task_on_half_of_the_hosts(world: World) -> None:
    dates = ends(
        world.simulation(), ptask("a b", [1000, 1000]), ptask("a b", [500, 0], start_s=5.0)
    )
    assert dates == pytest.approx([15.0, 15.0], rel=1e-12)


def test_task_and_communication_share_a_link(world: World) -> None:
    dates = ends(
        world.simulation(), ptask("a b", [1000, 0], [(0, 1, 500)]), pm.Flow("a", "b", 500.0)
    )
    assert dates == pytest.approx([10.0, 10.0], rel=1e-12)


def test_loopback_has_latency_and_bandwidth(world: World) -> None:
    settings = {"network/loopback-bw": "100", "network/loopback-lat": "2"}
    assert ends(world.simulation(config=settings), pm.Flow("a", "a", 1000.0)) == [12.0]


def test_latency_from_coordinates(world: World) -> None:
    simulation = world.simulation(
        """<host id="a" speed="100f" coordinates="0 0 1000"/>
           <host id="b" speed="100f" coordinates="3000 4000 0"/>""",
        routing="Vivaldi",
        config={"network/TCP-gamma": "100"},
    )
    dates = ends(
        simulation,
        pm.Flow("a", "b", 1000.0),
        ptask("a b", [1000, 0], [(0, 1, 1)]),
        ptask("a b", [1000, 0]),
    )
    assert dates == pytest.approx([6.0, 20.0, 14.0], rel=1e-12)


# --- sharing -------------------------------------------------------------------------------------

OVERCHARGED = """
<host id="a" speed="100f"/> <host id="b" speed="100f"/> <host id="c" speed="100f"/>
<link id="ten" bandwidth="10Bps" latency="0s"/> <link id="forty" bandwidth="40Bps" latency="0s"/>
<route src="a" dst="b"><link_ctn id="ten"/></route>
<route src="a" dst="c"><link_ctn id="forty"/></route>"""


@pytest.mark.parametrize(
    ("solver", "end"),
    [("fairbottleneck", 20 / 9), ("fairbottleneck-corrected", 2.0), ("bmf", 2.0), ("maxmin", 2.0)],
)
def test_double_charge_of_fair_bottleneck(world: World, solver: str, end: float) -> None:
    dates = ends(
        world.simulation(OVERCHARGED, solver=solver),
        ptask("a b", [100, 0], [(0, 1, 100)]),
        ptask("a c", [100, 0], [(0, 1, 100)]),
        pm.Execution("a", 100.0),
    )
    assert dates[2] == pytest.approx(end, rel=1e-9)


LEAKY = """
<host id="a" speed="100f"/> <host id="b" speed="100f"/>
<link id="fp" bandwidth="100Bps" latency="0s" sharing_policy="FATPIPE"/>
<route src="a" dst="b"><link_ctn id="fp"/></route>"""


@pytest.mark.parametrize(("solver", "end"), [("fairbottleneck", 20 / 11), ("bmf", 10.0)])
def test_leak_of_fat_pipes(world: World, solver: str, end: float) -> None:
    dates = ends(
        world.simulation(LEAKY, solver=solver),
        pm.Flow("a", "b", 1000.0),
        ptask("a b", [1000, 0], [(0, 1, 100)]),
    )
    assert dates == pytest.approx([end, 10.0], rel=1e-9)


def test_equal_users_of_a_fat_pipe(world: World) -> None:
    dates = ends(world.simulation(LEAKY), *[pm.Flow("a", "b", 1000.0) for _ in range(2)])
    assert dates == [10.0, 10.0]


def test_loopback_beside_a_computation_ends_in_bounded_time(world: World) -> None:
    dates = ends(
        world.simulation(), ptask("a a", [300, 0], [(0, 1, 100)]), pm.Flow("a", "a", 1000.0)
    )
    assert dates[0] == pytest.approx(3.0, rel=1e-9)
    assert 0.0 <= dates[1] < 1e-6


def test_fat_pipe_shared_with_a_task_that_cannot_move(world: World) -> None:
    world.file("speed.profile", "0 0\n")
    simulation = world.simulation("""
        <host id="a" speed="100f"/> <host id="b" speed="100f" speed_file="speed.profile"/>
        <link id="fp" bandwidth="100Bps" latency="0s" sharing_policy="FATPIPE"/>
        <route src="a" dst="b"><link_ctn id="fp"/></route>""")
    dates = ends(simulation, ptask("a b", [0, 100], [(0, 1, 100)]), pm.Flow("a", "b", 1000.0))
    assert dates[0] is None
    assert dates[1] is not None
    assert dates[1] <= 10.0


# --- flow-level networks -------------------------------------------------------------------------


def pair(policy: str = "SHARED") -> str:
    way = ' direction="UP"' if policy == "SPLITDUPLEX" else ""
    return f"""
        <host id="a" speed="100f"/> <host id="b" speed="100f"/>
        <link id="l" bandwidth="125MBps" latency="1ms" sharing_policy="{policy}"/>
        <route src="a" dst="b" symmetrical="NO"><link_ctn id="l"{way}/></route>
        <route src="b" dst="a" symmetrical="NO">
          <link_ctn id="l"{way.replace("UP", "DOWN")}/></route>"""


@pytest.mark.parametrize(
    ("model", "policy", "config", "end"),
    [
        ("LV08", "SHARED", {}, 13.01e-3 + 1.05e6 / (0.97 * 125e6)),
        ("LV08", "SPLITDUPLEX", {}, 0.0216697938),
        ("LV08", "SHARED", {"network/crosstraffic": "no"}, 0.0212574227),
        ("LV08", "SHARED", {"network/TCP-gamma": "65536"}, 0.0444714207),
        ("CM02", "SHARED", {}, 0.0094),
        ("CM02", "SHARED", {"network/crosstraffic": "no"}, 0.009),
    ],
)
def test_one_flow(world: World, model: str, policy: str, config: dict, end: float) -> None:
    if policy == "SPLITDUPLEX":
        end = 0.0212574227  # the acknowledgements take the other half
    options: dict[str, Any] = {"solver": None, "network_model": model, "config": config}
    simulation = world.simulation(pair(policy), **options)
    assert ends(simulation, pm.Flow("a", "b", 1e6)) == pytest.approx([end], rel=1e-8)


def test_rate_of_a_flow(world: World) -> None:
    simulation = world.simulation(pair(), solver=None, network_model="LV08")
    flow = pm.Flow("a", "b", 1e6, rate_bound=1.0)  # 1e6 B/s
    assert ends(simulation, flow) == pytest.approx([1.01301], rel=1e-8)


def test_flows_share_by_their_round_trip_times(world: World) -> None:
    simulation = world.simulation(
        """<host id="a" speed="1f"/> <host id="b" speed="1f"/> <host id="c" speed="1f"/>
           <link id="l" bandwidth="125MBps" latency="1ms"/>
           <link id="m" bandwidth="125MBps" latency="10ms"/>
           <route src="a" dst="b"><link_ctn id="l"/></route>
           <route src="a" dst="c"><link_ctn id="l"/><link_ctn id="m"/></route>""",
        solver=None,
        network_model="LV08",
        config={"network/crosstraffic": "no"},
    )
    dates = ends(simulation, pm.Flow("a", "b", 1e9), pm.Flow("a", "c", 1e9))
    assert dates == pytest.approx([9.0946904882, 16.5078553608], rel=1e-10)


def test_flow_to_oneself(world: World) -> None:
    simulation = world.simulation(pair(), solver=None, network_model="LV08")
    assert ends(simulation, pm.Flow("a", "a", 1e10)) == pytest.approx([1 / 0.97], rel=1e-12)
