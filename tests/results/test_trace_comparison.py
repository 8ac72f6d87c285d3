"""Replays beside parallel tasks: what must hold of a comparison, and its files."""

from __future__ import annotations

import csv
import json

import pytest

from ptaskmodel.apps.programs import Size, program
from ptaskmodel.apps.trace_works import disturbed, pairs_of
from ptaskmodel.cli import main
from ptaskmodel.errors import WorkloadError
from ptaskmodel.mpi import Replay, trace_of_actions
from ptaskmodel.platform import Platform
from ptaskmodel.runs.trace_comparison import ModelOptions, compare_trace

BANDWIDTH, LATENCY = 125e6, 50e-6


def platform(hosts=8):
    build = Platform.build("p")
    build.cluster(
        "c", hosts, prefix="n", speed=1e9, bandwidth=BANDWIDTH, latency=LATENCY, backbone=250e6,
        backbone_latency=10e-6,
    )  # fmt: skip
    return build.finish()


def names(first, last):
    return [f"n{k}" for k in range(first, last)]


def test_a_message_shares_a_link_with_endless_flows():
    trace = trace_of_actions([[("send", 1, 0, 125e6)], [("recv", 0, 0, 125e6)]])
    for flows in (0, 1, 3):
        made = disturbed(platform(), trace, ["n0", "n1"], [("n0", "n2")] * flows, model="L07")
        result = made.run()
        assert result.makespan_s == pytest.approx(1.0 + flows, rel=1e-3)
        assert result.messages == 1


def test_collectives_beside_flows_are_those_of_the_application_alone():
    trace = program("all-to-all", Size(4, 2, 1e6, 5000))
    hosts = names(0, 4)
    alone = Replay(platform(), trace, hosts).run()
    beside = disturbed(platform(), trace, hosts, [("n6", "n7")]).run()
    assert beside.messages == alone.messages
    assert beside.makespan_s >= alone.makespan_s
    assert beside.makespan_s == pytest.approx(alone.makespan_s, rel=0.2)
    none = disturbed(platform(), trace, hosts, []).run()
    assert none.makespan_s == alone.makespan_s


def test_pairs_need_as_many_ends():
    assert pairs_of(["a", "b"], ["c", "d"]) == [("a", "c"), ("b", "d")]
    with pytest.raises(WorkloadError, match="flows from 1 hosts to 2; give as many of both"):
        pairs_of(["a"], ["b", "c"])


@pytest.mark.jit
@pytest.mark.parametrize("imbalance", [0.0, 0.5])
def test_a_bundle_takes_least_and_windows_as_long_as_the_replay(imbalance):
    """By L07 for both, with latencies of nearly nothing: order only costs time."""
    for name in ("all-to-all", "stencil", "pipeline", "pdgemm"):
        trace = program(name, Size(4, 3, 1e8, 5_000_000, imbalance))
        options = ModelOptions(network_model="L07", solver="fairbottleneck")
        made = compare_trace(platform(), trace, names(0, 4), windows=(1, 5), options=options)
        ends = {row.model: row.makespan_s for row in made.rows}
        assert ends["bundle"] <= 1.001 * min(ends.values())
        if imbalance == 0.0:  # else ranks may begin a collective before others
            assert ends.get("collectives", 0.0) <= 1.001 * ends["replay"]
        assert ends["1 window"] == pytest.approx(ends["replay"], rel=1e-3)
        assert ends["5 windows"] == pytest.approx(ends["replay"], rel=0.05)


@pytest.mark.jit
def test_rows_say_what_changes_beside_flows():
    trace = program("all-to-all", Size(4, 3, 1e8, 1_000_000))
    made = compare_trace(
        platform(), trace, names(0, 4), pairs=[("n4", "n5"), ("n6", "n7")], flows=(2,), windows=(1,)
    )
    assert made.models == ["replay", "bundle", "collectives", "1 window"]
    assert [row.flows for row in made.of("bundle")] == [0, 2]
    for row in made.rows:
        assert row.slowdown >= 1.0 - 1e-9
        assert (row.error == 0.0) == (row.model == "replay")
        true = next(other for other in made.of("replay") if other.flows == row.flows)
        assert row.error == pytest.approx(row.makespan_s / true.makespan_s - 1)
        assert made.slowdown_error(row) == pytest.approx(row.slowdown / true.slowdown - 1)


@pytest.fixture
def case(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.xml").write_text(platform().to_xml())
    (tmp_path / "t.txt").write_text("0 compute 1e8\n0 send 1 0 1e6\n1 recv 0 0 1e6\n")
    return tmp_path


@pytest.mark.jit
def test_a_comparison_is_printed_and_written(case, capsys):
    asked = ["trace", "compare", "p.xml", "t.txt", "--disturb", "n[0-1]:n[2-3]", "--flows", "2"]
    assert main([*asked, "--windows", "1,2", "-o", "out"]) == 0
    printed = capsys.readouterr().out
    assert "2 windows" in printed
    with (case / "out" / "comparison.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 8
    assert float(rows[0]["makespan_s"]) < float(rows[4]["makespan_s"])
    assert (case / "out" / "comparison.png").stat().st_size > 5000
    assert json.loads((case / "out" / "summary.json").read_text())["what"] == "2 ranks, 1 messages"
    assert main([*asked, "-o", "out"]) == 0  # earlier results are replaced


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--disturb n0", "--disturb 'n0'; give FROM:TO, such as n[0-3]:n[4-7]"),
        ("--disturb n0:n[1-2]", "flows from 1 hosts to 2; give as many of both"),
        ("--disturb n[0:n1", "--disturb: 'n[0' has brackets that do not match"),
        ("--flows 1,two", "--flows '1,two'; give whole numbers from 0, such as 1,4"),
        ("--windows 0", "--windows '0'; give whole numbers from 1"),
        ("--hosts n0 --ranks-on p.xml", "--ranks-on and --hosts exclude each other; give one"),
        ("--solver best", "solver 'best' is unknown"),
        ("-o p.xml", "p.xml: is a file; give a directory"),
    ],
)
def test_a_mistake_is_one_line(case, capsys, arguments, message):
    assert main(["trace", "compare", "p.xml", "t.txt", *arguments.split()]) == 2
    assert message in capsys.readouterr().err


def test_progress_counts_the_actions_of_all_replays():
    trace = trace_of_actions([[("send", 1, 0, 125e6)], [("recv", 0, 0, 125e6)]])
    told = []
    compare_trace(
        platform(),
        trace,
        ["n0", "n1"],
        pairs=[("n2", "n1")],
        flows=(1,),
        windows=(2,),
        progress=lambda *numbers: told.append(numbers[1:]),
    )
    # Alone, for the windows, beside a flow; short replays are done twice.
    assert {(2, 6), (4, 6), (6, 6)} <= set(told)
    assert {total for _, total in told} == {6}
