"""Tasks as packets: the same flows and routes, records, results on disk, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from ptaskmodel import Delay, Execution, Flow, ParallelTask, Platform, Simulation
from ptaskmodel.cli import main
from ptaskmodel.engine.usage.network_models import WIRES, NetworkModel
from ptaskmodel.errors import SimulationError
from ptaskmodel.packets.tasks import PacketSimulation
from ptaskmodel.runs.draws import Residuals, ranges, residuals_of, task_ranges
from ptaskmodel.runs.simulate import simulate_into, simulation_inputs
from ptaskmodel.workload.tasks import Sequence


def cable(platform_name="net", hosts=4, **link):
    """Hosts round a switch, full duplex."""
    build = Platform.build(platform_name)
    build.cluster(
        "c", hosts, prefix="h", speed=1e9, bandwidth=link.pop("bandwidth", 1.25e9), latency=5e-6,
        **link,
    )  # fmt: skip
    return build.finish()


def leaf_spine(spines=4):
    build = Platform.build("net", "Dijkstra")
    for k in range(4):
        build.host(f"h{k}", 1e9)
    names = [f"t{k}" for k in range(2)] + [f"s{k}" for k in range(spines)]
    for name in names:
        build.router(name)
    pairs = [(f"h{k}", f"t{k // 2}") for k in range(4)]
    pairs += [(f"t{leaf}", f"s{k}") for leaf in range(2) for k in range(spines)]
    for a, b in pairs:
        build.link(f"{a}--{b}", 1.25e9, 1e-6, "SPLITDUPLEX")
        build.route(a, b, [f"{a}--{b}_UP"], symmetrical=False)
        build.route(b, a, [f"{a}--{b}_DOWN"], symmetrical=False)
    return build.finish()


def by_packets(platform, tasks, model="DCTCP", **options):
    simulation = Simulation(platform, network_model=model, routing=options.pop("routing", None))
    simulation.add_all(tasks)
    made = PacketSimulation(simulation, **options)
    made.run()
    return made


def test_a_flow_alone_lasts_as_the_fluid_model_says():
    """Until a queue marks packets, both are exact: handshake, slow start, and the line's rate."""
    platform = cable()
    for model in ("DCTCP", "ROCE"):
        fluid = Simulation(platform, network_model=model)
        fluid.add(Flow("h0", "h1", 1e5))
        (packets,) = by_packets(platform, [Flow("h0", "h1", 1e5)], model).records()
        expected = fluid.run().now
        assert packets.execution_s == pytest.approx(expected, rel=1e-2)


def test_tasks_wait_for_each_other_for_their_dates_and_for_delays():
    tasks = [
        Flow("h0", "h1", 1e5, id="a"),
        Delay(1e-3, id="think", after=["a"]),
        Flow("h0", "h1", 1e5, id="b", after=["think"]),
        Flow("h0", "h1", 1e5, id="late", after=["a"], start_s=5e-3),
    ]
    a, think, b, late = by_packets(cable(), tasks).records()
    assert think.start_s == a.end_s
    assert b.start_s == think.end_s == a.end_s + 1e-3
    assert late.start_s == 5e-3
    assert b.execution_s == pytest.approx(a.execution_s, rel=1e-9)
    assert late.execution_s == pytest.approx(a.execution_s, rel=1e-6)


def test_a_task_of_several_flows_ends_with_the_last():
    both = ParallelTask(["h0", "h1", "h2"], 0.0, flows=[(0, 1, 1e4), (0, 2, 2e5)], id="t")
    made = by_packets(cable(), [both, Flow("h0", "h2", 1e3, after=["t"])])
    task, after = made.records()
    assert task.end_s == np.nanmax(made.network.end_s[:2])
    assert after.start_s == task.end_s


def test_it_stops_at_a_date():
    simulation = Simulation(cable(), network_model="DCTCP")
    simulation.add_all(
        [Flow("h0", "h1", 1e4), Flow("h0", "h1", 1e7), Flow("h0", "h1", 1, start_s=9)]
    )
    made = PacketSimulation(simulation)
    assert made.run(1e-3)
    assert [record.final_state for record in made.records()] == ["completed", "running", "waiting"]
    assert made.now == 1e-3
    assert made.records()[2].start_s is None


def test_equal_runs_are_equal_to_the_bit():
    tasks = [Flow(f"h{k % 3}", "h3", 3e5 + k) for k in range(9)]
    first, second = (by_packets(cable(), tasks).records() for _ in range(2))
    assert first == second


def test_it_says_before_how_many_hops_there_are():
    made = by_packets(cable(), [Flow("h0", "h1", 1448 * 100)], routing=None)
    assert made.expected_hops == 100 * 4
    assert made.network.hops == 100 * 4 + 4  # and the handshake


REFUSED = [
    ([Execution("h0", 1e9)], "DCTCP", {}, "computation"),
    ([Sequence(["h0", "h1"], [Flow("h0", "h1", 1.0).work] * 2)], "DCTCP", {}, "SequenceWork"),
    ([Flow("h0", "h1", 1.0, walltime_s=1.0)], "DCTCP", {}, "a walltime_s"),
    ([Flow("h0", "h1", 1.0, weight=2.0)], "DCTCP", {}, "a weight"),
    ([Flow("h0", "h0", 1.0)], "DCTCP", {"loopback": 1e9, "loopback_latency": 0.0}, "to itself"),
    ([Flow("h0", "h1", 1.0)], "DCTCP", {"backbone": 1e9, "backbone_policy": "FATPIPE"}, "FATPIPE"),
    ([Flow("h0", "h1", 1.0)], "CUBIC", {}, "knows no losses"),
    ([Flow("h0", "h1", 1.0)], "RDMA", {}, "knows no losses"),
    ([Flow("h0", "h1", 1.0)], "CM02", {}, "needs a wire model"),
]


@pytest.mark.parametrize(("tasks", "model", "link", "message"), REFUSED)
def test_what_it_does_not_know_is_refused_in_one_line(tasks, model, link, message):
    with pytest.raises(SimulationError, match=message) as raised:
        by_packets(cable(**link), tasks, model)
    assert "\n" not in str(raised.value)


def test_a_queue_that_overflows_ends_the_run_in_one_line():

    small = NetworkModel.of_wire(WIRES["DCTCP"]._replace(queue_packets=12.0))
    with pytest.raises(SimulationError, match="knows no losses; raise queue_packets"):
        by_packets(cable(), [Flow(f"h{k}", "h3", 1e6) for k in range(3)], small)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "p.xml").write_text(leaf_spine().to_xml())
    tasks = [
        {"id": f"t{k}", "hosts": [f"h{k % 2}", f"h{2 + k % 2}"], "flows": [[0, 1, 4e5]]}
        for k in range(6)
    ]
    (tmp_path / "t.json").write_text(json.dumps({"tasks": tasks}))
    return tmp_path


def command(files, *more):
    return ["simulate", str(files / "p.xml"), str(files / "t.json"), "--routing", "ecmp", *more]


def rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize(("model", "extra"), [("DCTCP", []), ("ROCE", ["pauses.csv"])])
def test_the_command_writes_results_with_queues_and_pauses(files, capsys, model, extra):
    out = files / "out"
    more = ["--network-model", model, "--network-level", "packets", "-o", str(out)]
    assert main(command(files, *more)) == 0
    assert "packets in queues" in capsys.readouterr().out
    summary = json.loads((out / "summary.json").read_text())
    assert summary["network_level"] == "packets"
    assert summary["files"] == ["summary.json", "tasks.csv", "queues.csv", *extra]
    assert len(rows(out / "tasks.csv")) == 6
    queues = rows(out / "queues.csv")
    assert {row["link"] for row in queues} >= {"h0--t0_UP", "h2--t1_DOWN"}
    assert max(float(row["largest_queue_B"]) for row in queues) > 1e4


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--network-model", "CM02"], "needs a wire model"),
        (["--network-model", "DCTCP", "--attribution"], "--attribution: --network-level packets"),
        (["--network-model", "DCTCP", "--solver", "bmf"], "--solver: --network-level packets"),
        (["--network-model", "DCTCP", "--draws", "2", "--until", "1"], "leave out --until"),
    ],
)
def test_the_command_refuses_in_one_line(files, capsys, more, message):
    out = files / "out"
    assert main(command(files, "--network-level", "packets", "-o", str(out), *more)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_draws_give_a_range_beside_each_duration(files):
    out = files / "out"
    more = ["--network-model", "DCTCP", "--network-level", "packets", "--draws", "5"]
    assert main(command(files, *more, "-o", str(out))) == 0
    for row in rows(out / "tasks.csv"):
        assert 0.0 < float(row["execution_low"]) < float(row["execution_high"])
    drawn = rows(out / "draws.csv")
    assert len(drawn) == 5 * 6
    summary = json.loads((out / "summary.json").read_text())
    assert summary["draws"]["routes"] == "ecmp:0 to ecmp:4"


def test_draws_differ_in_routes_and_a_file_keeps_them():
    platform = leaf_spine()
    tasks = [Flow(f"h{k % 2}", f"h{2 + k % 2}", 4e6) for k in range(4)]
    simulation = Simulation(platform, network_model="ROCE", routing="ecmp:0")
    simulation.add_all(tasks)
    found = task_ranges(simulation, True, 6, 0.0)
    assert len({tuple(row) for row in found.durations.tolist()}) > 1
    assert found.durations[0].tolist() == [
        record.execution_s
        for record in by_packets(platform, tasks, "ROCE", routing="ecmp:0").records()
    ]


def test_ranges_hold_four_fifths_of_what_is_drawn():
    rng = np.random.default_rng(2)
    durations = np.exp(rng.normal(0.0, 0.5, (400, 3)))
    (one, *_) = ranges(durations, np.ones(3), np.full(3, 1e5), None)
    assert one.low_s == one.drawn_low_s == pytest.approx(np.exp(-1.2816 * 0.5), rel=0.1)
    flat = Residuals((1e4,), (2.0,), np.zeros((2, 2, 5)), 1.0, ())
    (same, *_) = ranges(durations, np.ones(3), np.full(3, 1e5), flat)
    assert (same.low_s, same.high_s) == pytest.approx((one.low_s, one.high_s))
    wide = flat._replace(quantiles=np.tile([-1.0, -0.5, 0.0, 0.5, 1.0], (2, 2, 1)))
    (other, *_) = ranges(durations, np.ones(3), np.full(3, 1e5), wide)
    assert other.low_s < one.low_s
    assert other.high_s > one.high_s


def test_residuals_are_known_by_model_and_level():
    for model in ("DCTCP", "ROCE"):
        found = residuals_of(model, by_packets=True)
        assert found.quantiles.shape == (4, 4, 10)
        assert found.of(np.array([1e4, 2e6]), np.array([1.0, 9.0])).shape == (2, 10)
    assert residuals_of("L07", by_packets=False) is None


CASES = Path(__file__).resolve().parents[2] / "experiments" / "wires" / "cases"


@pytest.mark.parametrize(
    ("name", "level"),
    [("dctcp_alone", "packets"), ("roce_alone", "packets"), ("roce_alone", "fluid")],
)
def test_flows_alone_last_as_by_hand(name, level):
    case = CASES / name
    given = {"platform": case / "platform.xml", "tasks": case / "tasks.json"}
    given |= {"network_parameters": case / "wire.json", "network_level": level}
    run = simulate_into(None, **simulation_inputs(given)._asdict())
    expected = [float(row["duration_s"]) for row in rows(case / "measured.csv")]
    assert [record.execution_s for record in run.records] == pytest.approx(expected, rel=1e-4)


def test_shared_cases_are_as_near_as_the_guide_says(shared_data):
    """Median errors over a few small cases, well above what was measured."""
    for name, most in (("roce3_incast16", 0.005), ("roce0_single", 1e-3), ("incast2_n32", 0.05)):
        case = shared_data / "wires" / "packet" / name
        given = {"platform": case / "platform.xml", "tasks": case / "tasks.json"}
        given |= {"network_parameters": case / "wire.json", "network_level": "packets"}
        given["routing"] = f"file:{case / 'routes.csv'}"
        run = simulate_into(None, **simulation_inputs(given)._asdict())
        true = np.array([float(row["duration_s"]) for row in rows(case / "measured.csv")])
        found = np.array([record.execution_s for record in run.records])
        assert np.median(np.abs(found / true - 1.0)) < most
