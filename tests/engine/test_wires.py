"""Wire models of flows: by hand, their ingredients one by one, and wrong parameters."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ptaskmodel import Flow, Platform, Simulation, load_platform, load_tasks
from ptaskmodel.cli import main
from ptaskmodel.engine.check import check_lists
from ptaskmodel.engine.usage.network_models import INGREDIENTS, WIRES, NetworkModel, Wire, read_wire
from ptaskmodel.errors import SimulationError
from ptaskmodel.platform.routing import read_routes
from ptaskmodel.results.schemas import schema_of

C = 1.25e9  # B/s, of each link here
PLAIN = Wire(
    "CUBIC", header_B=0.0, ack_B=0.0, hops=False, measured_from="first byte", initial_window=0.0,
    rtt_weights=False,
)  # fmt: skip


def line(latencies_us):
    """Hosts a and b at the ends of links of 10 Gbit/s with these latencies."""
    build = Platform.build("line", routing="Dijkstra")
    names = ["a", *(f"r{k}" for k in range(len(latencies_us) - 1)), "b"]
    build.host("a", "1Gf")
    build.host("b", "1Gf")
    for name in names[1:-1]:
        build.router(name)
    for k, latency_us in enumerate(latencies_us):
        build.link(f"l{k}", C, latency_us * 1e-6, policy="SPLITDUPLEX")
        build.route(names[k], names[k + 1], [(f"l{k}", "UP")])
    return build.finish()


def lasts(wire, flows, latencies_us=(5, 5, 5), solver=None):
    simulation = Simulation(
        line(latencies_us), network_model=NetworkModel.of_wire(wire), solver=solver
    )
    simulation.add_all(flows)
    while simulation.step():
        assert check_lists(simulation.core.state) == []
    return [record.execution_s for record in simulation.records()]


def test_a_flow_alone_by_hand():
    """3 MB over three links of 5 us: see the sum in the comments."""
    n = 2072
    wire_B = 3_000_000 + n * 54
    d, x = 15e-6, 3 / C
    handshake = 2 * d + 2 * x * 54
    trip = 2 * d + x * (1502 + 54)
    slow = 15_020 + 30_040  # in the first two round trips; the third window is more than the link
    moving = 2 * trip + (wire_B - slow) / C
    after = d + 2 * 1502 / C
    assert lasts(WIRES["DCTCP"], [Flow("a", "b", 3e6)]) == [
        pytest.approx(handshake + moving + after, rel=1e-9)
    ]
    assert handshake + moving + after == pytest.approx(2568.59e-6, abs=0.01e-6)


@pytest.mark.parametrize("packets", [1, 10, 500])
def test_roce_alone_by_hand(packets):
    d, each = 4e-6, 4160 / C
    wanted = packets * each + 3 * each + 2 * d + 4 * 64 / C
    found = lasts(WIRES["ROCE"], [Flow("a", "b", packets * 4096)], (1, 1, 1, 1))
    assert found == [pytest.approx(wanted, rel=1e-9)]


def test_a_read_is_bytes_on_the_wire_and_a_fixed_time():
    wire = WIRES["RDMA"]._replace(read_overhead_s=10e-6)
    size = 102_408
    wanted = (size + 82 * 101) / C + 10e-6
    assert lasts(wire, [Flow("a", "b", size)]) == [pytest.approx(wanted, rel=1e-9)]


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({}, 0.0),
        ({"latency": False}, -15e-6),
        ({"header_B": 54.0}, 2072 * 54 / C),
        ({"hops": True}, 2 * 1448 / C),
        ({"measured_from": "connect"}, 30e-6),
        ({"measured_to": "acknowledgement"}, 15e-6),
        ({"measured_to": "acknowledgement", "ack_B": 64.0}, 15e-6 + 3 * 64 / C),
        ({"read_overhead_s": 7e-6}, 7e-6),
        # The first window, then the second, in a round trip each.
        ({"initial_window": 10.0}, 2 * (30e-6 + 3 * 1448 / C) - 30 * 1448 / C),
        ({"rtt_weights": True}, 0.0),
        ({"mark_packets": 20.0, "queue_part": 1.0}, 0.0),
    ],
)
def test_an_ingredient_adds_what_it_says(changes, more):
    wanted = 3e6 / C + 15e-6 + more
    assert lasts(PLAIN._replace(**changes), [Flow("a", "b", 3e6)]) == [
        pytest.approx(wanted, rel=1e-9)
    ]


def test_two_flows_wait_in_a_queue_equally_long():
    queue = max(20 * 1448 / C, 40e-6) * 0.5
    wire = PLAIN._replace(mark_packets=20.0, mark_s=40e-6, queue_part=0.5)
    found = lasts(wire, [Flow("a", "b", 3e6), Flow("a", "b", 3e6)])
    # Each of the three links is full, and in the model each holds a queue.
    assert found == [pytest.approx(6e6 / C + 15e-6 + 3 * queue, rel=1e-9)] * 2


def test_weights_are_one_over_round_trip_times():
    build = Platform.build("y", routing="Dijkstra")
    for name in "abc":
        build.host(name, "1Gf")
    build.router("r")
    for name, latency in (("a", 10e-6), ("b", 40e-6), ("c", 0.0)):
        build.link(name, C if name == "c" else 10 * C, latency, policy="SPLITDUPLEX")
        build.route(name, "r", [(name, "UP")])
    wire = PLAIN._replace(mss_B=1.0, rtt_weights=True)
    simulation = Simulation(build.finish(), network_model=NetworkModel.of_wire(wire))
    refs = simulation.add_all([Flow("a", "c", 1e7), Flow("b", "c", 1e7)])
    simulation.run(1e-3)
    rates = [ref.rate * 1e7 for ref in refs]
    assert rates == pytest.approx([0.8 * C, 0.2 * C], rel=1e-3)


def test_acknowledgements_take_their_part_of_the_way_back():
    wire = PLAIN._replace(ack_B=54.0, mss_B=1446.0, acknowledgements=True)
    part = 54 / 1446
    found = lasts(wire, [Flow("a", "b", 3e6), Flow("b", "a", 3e6)], solver="proportional")
    assert found == [pytest.approx(3e6 * (1 + part) / C + 15e-6, rel=1e-4)] * 2


@pytest.mark.parametrize("name", WIRES)
def test_every_parameter_has_a_row_and_a_schema(name):
    assert set(WIRES[name]._fields) == {"name", *INGREDIENTS}
    assert {*schema_of("wire")["properties"]} == {"network_model", "mtu_B", *INGREDIENTS}


def test_ingredients_that_are_off_leave_the_bytes_alone():
    off = {
        key: row.off for key, row in INGREDIENTS.items()
        if row.off is not None and key not in ("latency",)
    }  # fmt: skip
    for wire in WIRES.values():
        found = lasts(wire._replace(**off), [Flow("a", "b", 1e6)])
        assert found == [pytest.approx(1e6 / C + (15e-6 if wire.latency else 0.0), rel=1e-9)]


def test_a_suspended_flow_keeps_its_window():
    simulation = Simulation(line((50, 50)), network_model="CUBIC")
    ref = simulation.add(Flow("a", "b", 1e7))
    simulation.run(500e-6)
    before = ref.rate
    simulation.suspend(ref)
    simulation.run(1e-3)
    simulation.resume(ref)
    assert ref.rate == before
    assert check_lists(simulation.core.state) == []
    alone = lasts(WIRES["CUBIC"], [Flow("a", "b", 1e7)], (50, 50))[0]
    assert alone + 500e-6 <= simulation.run().now <= alone + 800e-6


@pytest.mark.jit
def test_a_checkpoint_goes_on_to_the_same_bits(tmp_path):
    from ptaskmodel import load_checkpoint, save_checkpoint

    def begun():
        simulation = Simulation(line((5, 50)), network_model="DCTCP")
        simulation.add_all([Flow("a", "b", 1e6 * k, start_s=1e-4 * k) for k in range(1, 6)])
        return simulation

    simulation = begun()
    simulation.run(1e-3)
    save_checkpoint(simulation, tmp_path / "c", {})
    assert load_checkpoint(tmp_path / "c")[0].run().records() == begun().run().records()


def test_all_changes_together_give_the_same_dates():
    rng = np.random.default_rng(4)
    flows = [
        Flow("ab"[k % 2], "ba"[k % 2], float(size), start_s=float(start))
        for k, (size, start) in enumerate(
            zip(rng.integers(1e3, 3e6, 30), rng.uniform(0, 5e-3, 30), strict=True)
        )
    ]
    for name in ("CUBIC", "ROCE"):
        ends = []
        for optimise in (True, False):
            simulation = Simulation(line((5, 5, 5)), network_model=name, optimise=optimise)
            simulation.add_all(flows)
            ends.append([record.end_s for record in simulation.run().records()])
        assert ends[0] == pytest.approx(ends[1], rel=1e-9)


def test_a_window_that_bounds_nothing_moves_no_rate():
    """20 flows share a link of 10 Gbit/s: their windows bound them once or twice, then grow on."""
    ends, solves = [], []
    for optimise in (True, ("levels", "parts", "rounds", "virtual-time")):
        simulation = Simulation(line((200, 200)), network_model="DCTCP", optimise=optimise)
        simulation.add_all(Flow("a", "b", 1e6 * k, start_s=1e-5 * k) for k in range(1, 21))
        while simulation.step():
            assert check_lists(simulation.core.state) == []
        ends.append([record.end_s for record in simulation.records()])
        solves.append(int(simulation.core.state.graph.counts[0]["solves"]))
    assert ends[0] == pytest.approx(ends[1], rel=1e-6)
    assert solves[0] < solves[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "w.json: is a list; give an object of parameters"),
        ('{"network_model": "TCP"}', "w.json: /network_model: is 'TCP'; give one of DCTCP"),
        ("{}", "w.json: /network_model: is null"),
        ('{"network_model": "ROCE", "mss_B": 0}', "/mss_B: is 0; give a number from 1"),
        ('{"network_model": "ROCE", "mss_B": 1e-300}', "/mss_B: is 1e-300; give a number from 1"),
        ('{"network_model": "ROCE", "mss": 0}', "/mss: is not a parameter; do you mean mss_B"),
        ('{"network_model": "ROCE", "hops": 1}', "/hops: is 1; give true or false"),
        ('{"network_model": "ROCE", "pfc_packets": [2, 1]}', "give [resume, pause] in packets"),
        ('{"network_model": "ROCE", "queue_part": 2}', "give a fraction from 0 to 1"),
        ('{"network_model": "ROCE", "measured_from": "SYN"}', "give 'connect' or 'first byte'"),
        (
            '{"network_model": "ROCE", "ack_B": -1, "mark_s": "1us"}',
            "/ack_B: is -1; give a number from 0 to 1e+12; /mark_s: is '1us'; give a number from 0",
        ),
        ('{"network_model": "ROCE", "ack_B": 1, "ack_B": 2}', "\"ack_B' is given twice"),
        ('{"network_model"', "w.json:1:17: is not JSON"),
    ],
)
def test_wrong_parameters_are_one_line(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.json").write_text(text)
    with pytest.raises(SimulationError) as raised:
        read_wire("w.json")
    assert message.lstrip('"') in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_command_takes_a_model_and_its_parameters(tmp_path, capsys):
    (tmp_path / "p.xml").write_text(line((1, 1)).to_xml())
    (tmp_path / "t.json").write_text(
        json.dumps({"tasks": [{"id": "t", "hosts": ["a", "b"], "flows": [[0, 1, 4096]]}]})
    )
    (tmp_path / "w.json").write_text('{"network_model": "ROCE", "header_B": 0, "ack_B": 0}')
    files = [str(tmp_path / "p.xml"), str(tmp_path / "t.json")]
    out = ["-o", str(tmp_path / "out"), "--network-parameters", str(tmp_path / "w.json")]
    assert main(["simulate", *files, *out]) == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["network_model"] == "ROCE"
    assert summary["network_parameters"]["header_B"] == 0
    assert summary["makespan"] == pytest.approx(2 * 4096 / C + 4e-6, rel=1e-9)
    capsys.readouterr()
    assert main(["simulate", *files, *out, "--network-model", "CM02"]) == 2
    assert "choose one of DCTCP, CUBIC, ROCE, RDMA" in capsys.readouterr().err


def configured(**fields):
    build = Platform.build("p", config={f"wire/{key}": text for key, text in fields.items()}
                           | {"network/model": "ROCE"})  # fmt: skip
    for name in "ab":
        build.host(name, "1Gf")
    build.link("l", C, 1e-6)
    build.route("a", "b", ["l"])
    return build.finish()


def test_the_config_of_a_platform_may_give_a_model_and_its_parameters():
    platform = configured(
        header_B="0", input_ports="true", measured_to="last byte", pfc_packets="[7, 9]"
    )
    for name in (None, "ROCE"):
        wire = Simulation(platform, network_model=name).network_model.wire
        assert wire == WIRES["ROCE"]._replace(
            header_B=0.0, input_ports=True, measured_to="last byte", pfc_packets=(7.0, 9.0)
        )
    assert Simulation(configured()).network_model == NetworkModel.of_wire(WIRES["ROCE"])
    assert Simulation(platform, network_model="CM02").network_model.wire is None
    with pytest.raises(
        SimulationError,
        match=r"<config>: wire/ack_B: is -1; give a number .*; "
        "wire/hop: is not a parameter; do you mean hops; correct the platform",
    ):
        Simulation(configured(ack_B="-1", hop="true"))  # fmt: skip


# --- cases of the shared material: what packet simulators and wires measured ---------------------


def errors(place, **options):
    """Relative errors of the durations of a case, and the name of its model."""
    import csv

    wire = read_wire(place / "wire.json")
    simulation = Simulation(
        load_platform(place / "platform.xml"), network_model=NetworkModel.of_wire(wire),
        routing=read_routes(place / "routes.csv"), **options,
    )  # fmt: skip
    simulation.add_all(load_tasks(place / "tasks.json"))
    found = {record.task_id: record.execution_s for record in simulation.run().records()}
    with (place / "measured.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    return wire.name, [abs(found[row["task"]] / float(row["duration_s"]) - 1) for row in rows]


@pytest.mark.parametrize(
    ("name", "median", "p90", "cases"),
    [("DCTCP", 0.118, 0.414, 0.091), ("ROCE", 0.039, 0.311, 0.082)],
)
def test_errors_against_packet_simulators(shared_data, name, median, p90, cases):
    folder = shared_data / "wires" / "packet"
    if not folder.exists():
        pytest.skip("no cases of wires")
    chosen = [
        place for place in sorted(folder.iterdir())
        if json.loads((place / "wire.json").read_text())["network_model"] == name
    ]  # fmt: skip
    by_case = [errors(place)[1] for place in chosen]
    every = np.concatenate(by_case)
    assert np.median(every) <= 1.1 * median
    assert np.quantile(every, 0.9) <= 1.1 * p90
    assert np.mean([np.median(case) for case in by_case]) <= 1.1 * cases
