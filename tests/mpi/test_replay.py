"""Replays by hand: what messages, waits and collectives take, and what goes wrong."""

from __future__ import annotations

import numpy as np
import pytest

from ptaskmodel.errors import PTaskModelError, RouteError, SimulationError
from ptaskmodel.mpi import (
    hosts_in_file,
    hosts_named,
    hosts_of_ranks,
    read_trace,
    replay,
    trace_of_actions,
)
from ptaskmodel.mpi.collectives import dispatch
from ptaskmodel.mpi.collectives.names import CHOICES, default_algorithms
from ptaskmodel.mpi.collectives.selection import Chosen
from ptaskmodel.mpi.state import COMPUTING, IN_ALL
from ptaskmodel.mpi.traffic import Tally
from ptaskmodel.platform import FatTree, Platform, Torus
from ptaskmodel.platform.routing import Ecmp
from ptaskmodel.workload.actions import BARRIER, DATATYPE_BYTES, GATHERV, SCAN, SCATTERV
from ptaskmodel.workload.formats.ti_trace import trace_in

LATENCY = 110e-6
BANDWIDTH = 125e6
TINY = LATENCY * 2.01467  # of a message without content, but for its envelope
SMALL = 16 / (BANDWIDTH * 0.812084)


def platform(hosts=4, config=None):
    build = Platform.build("p", config=config)
    build.cluster(
        "c", hosts, prefix="n", speed=1e9, bandwidth=BANDWIDTH, latency=50e-6, backbone=1.25e9,
        backbone_latency=10e-6,
    )  # fmt: skip
    return build.finish()


@pytest.fixture
def ends(tmp_path):
    """Dates at which the ranks of a trace (lines without rank, by rank) end."""

    def run(*ranks, config=None, model=None, hosts=None):
        path = tmp_path / "trace.txt"
        lines = [f"{r} {line}\n" for r, own in enumerate(ranks) for line in ["init", *own]]
        path.write_text("".join(lines))
        made = platform(len(ranks), config)
        return replay(made, read_trace(path), hosts, model=model).end_s.tolist()

    return run


def test_a_large_message_takes_its_factors(ends):
    took = LATENCY * 11.6436 + 1000016 / (BANDWIDTH * 0.940694)
    assert ends(["send 1 0 1e6"], ["recv 0 0 1e6"]) == pytest.approx([took, took], rel=1e-12)


def test_the_sender_of_a_small_message_does_not_wait(ends):
    took = LATENCY * 1.9503 + 1016 / (BANDWIDTH * 0.341987)
    assert ends(["send 1 0 1000"], ["recv 0 0 1000"]) == pytest.approx([0.0, took], rel=1e-12)


def test_a_message_is_under_way_when_both_have_posted(ends):
    both = ends(["send 1 0 65536"], ["sleep 2", "recv 0 0 65536"])
    assert both == pytest.approx([2.001838, 2.001838], abs=1e-6)
    one = ends(["send 1 0 65535"], ["sleep 2", "recv 0 0 65535"])
    assert one == pytest.approx([0.0, 2.001838], abs=1e-6)


def test_a_platform_moves_the_thresholds(ends):
    config = {"smpi/send-is-detached-thresh": 10}
    first, second = ends(["send 1 0 100"], ["recv 0 0 100"], config=config)
    assert first == second > 0
    early = {"smpi/async-small-thresh": 1000}
    _, second = ends(["send 1 0 100"], ["sleep 2", "recv 0 0 100"], config=early)
    assert second == 2  # it was there already


@pytest.mark.parametrize("key", ["smpi/lat-factor", "network/latency-factor"])
def test_factors_have_an_old_and_a_new_name(ends, key):
    _, second = ends(["send 1 0 100"], ["recv 0 0 100"], config={key: "10:3;1000:5"})
    assert second == pytest.approx(3 * LATENCY + 116 / (BANDWIDTH * 0.812084), rel=1e-12)


def test_overheads_are_slept(ends):
    config = {"smpi/os": "0:0.5:0", "smpi/or": "0:0.25:0"}
    first, second = ends(["send 1 0 0"], ["recv 0 0 0"], config=config)
    assert first == 0.5
    assert second == pytest.approx(0.5 + TINY + SMALL + 0.25, rel=1e-12)


def test_a_sleep_lasts_as_long_as_the_precision_of_dates_at_least(ends):
    # As measured with SimGrid 3.32; its parallel tasks (L07) sleep as long as they are told to.
    naps = ["sleep 1e-12", "sleep 0", "sleep 1e-12"]
    assert ends(naps) == pytest.approx([2e-9])
    assert ends(naps, config={"precision/timing": 1e-6}) == pytest.approx([2e-6])
    assert ends(naps, model="L07") == pytest.approx([2e-12])


@pytest.mark.parametrize(("flops", "together"), [(999, True), (10**6, True), (7777777, False)])
def test_whole_flop_decide_by_the_last_digit_who_ends_together(ends, flops, together):
    dates = flops / 1e9, (flops + 1) / 1e9  # the precision of dates apart
    assert (dates[1] - dates[0] < 1e-9) == together
    assert ends([f"compute {flops}"], [f"compute {flops + 1}"]) == [dates[0], dates[not together]]


def test_a_barrier_of_two(ends):
    there = TINY + SMALL
    assert ends(["barrier"], ["barrier"]) == pytest.approx([there, 2 * there], rel=1e-9)


def test_a_wait_takes_a_turn_for_each_message(ends):
    # Three messages come at once, the last of them to rank 0. Rank 1 waits for the other two, so
    # that it begins to test after rank 0; of those who slept equally long, the last to begin tests
    # first, and the next test of rank 0 is longer for it. As measured with SimGrid 3.32.
    tests = ["test 2 {} 9", "test 2 {} 9", "wait 2 {} 9"]
    one = ["irecv 2 1 0", "irecv 2 9 0", "wait 2 0 1", *(line.format(0) for line in tests)]
    two = ["irecv 2 1 0", "irecv 2 2 0", "irecv 2 9 0", "wait 2 1 1", "wait 2 1 2"]
    two += [line.format(1) for line in tests]
    sends = ["send 1 1 0", "send 1 2 0", "send 0 1 0", "sleep 2e-4", "send 0 9 0", "send 1 9 0"]
    at = TINY + 3 * SMALL
    assert ends(one, two, sends) == pytest.approx([at + 4e-4, at + 3e-4, 2e-4], rel=1e-12)


def test_a_test_has_found_a_message_when_its_cost_is_paid(ends):
    # Until then the tests of others grow longer: five take 15 ms. As measured with SimGrid 3.32.
    one = ["irecv 1 1 0", "test 1 0 1", "recv 1 8 0", "send 1 7 0", "wait 1 0 1"]
    two = ["isend 0 1 0", "irecv 0 7 0", *["test 0 1 7"] * 5, "send 0 8 0"]
    first, _ = ends(one, two, config={"smpi/test": 1e-3, "smpi/or": "0:0.01:0"})
    assert first == pytest.approx(0.015 + TINY + SMALL + 0.01, rel=1e-9)


@pytest.mark.parametrize(("flops", "cost_s"), [(649999.6, 3e-4), (650000, 3e-4), (650000.4, 1e-4)])
def test_computations_and_sleeps_at_one_date_end_in_order(ends, flops, cost_s):
    """The third test costs more, unless one has found a message before, in the first rank."""
    made = ends(
        ["sleep 3.5e-4", "isend 1 5 10", "test 0 1 5", "waitall"],
        ["irecv 2 1 10", f"compute {flops}", "test 2 1 1", "compute 1e9", "recv 0 5 10", "waitall"],
        ["irecv 3 9 10", "test 3 2 9", "test 3 2 9", "send 1 1 10"],
        ["sleep 2", "send 2 9 10"],
    )
    message_s = TINY + 26 / (BANDWIDTH * 0.812084)
    assert made[1] == pytest.approx(1.00065 + cost_s + message_s, rel=1e-8)


def test_at_its_end_a_rank_waits_for_all_that_is_pending(ends):
    made = ends(
        ["irecv 1 0 10", "irecv 1 0 10", "test 1 0 0"],
        ["sleep 1", "send 0 0 10", "sleep 1", "send 0 0 10"],
    )
    assert made[0] == pytest.approx(2.0 + TINY, abs=1e-5)


def test_messages_of_one_sender_and_tag_are_received_in_order(ends):
    sender = ["isend 1 0 1e6", "isend 1 0 10", "isend 1 1 10", "waitall"]
    first, second = ends(sender, ["recv 0 1 10", "recv 0 0 1e6"])
    assert first == second > 0.009
    _, other = ends(sender, ["recv 0 1 10", "irecv 0 0 1", "recv 0 0 10", "waitall"])
    assert other > 0.009


def test_in_a_mesh_who_comes_first_is_received_first(ends):
    # As measured with SimGrid 3.32.
    gather = "allgather 100 100"
    config = {"smpi/allgather": "2dmesh", "smpi/or": "0:0.25:0"}
    first, late, third = ends([gather], ["sleep 1", gather], [gather], config=config)
    assert [first, late, third] == pytest.approx([1.250224, 1.500224, 1.250224], abs=1e-7)


def test_a_poll_takes_longer_where_less_of_the_host_is_available(tmp_path):
    build = Platform.build("p")
    build.host("n0", speed=1e9, speed_trace=[(0.5, 0.25)])
    build.link("wire", bandwidth=BANDWIDTH, latency=0.0)
    build.route("n0", "n0", ["wire"])
    path = tmp_path / "t.txt"
    path.write_text("0 isend 0 3 0\n0 sleep 1\n0 recv 0 3 -1\n")
    (end,) = replay(build.finish(), read_trace(path), ["n0"]).end_s
    assert end == pytest.approx(1 + 4e-4 + 1.05 * SMALL, rel=1e-12)


@pytest.mark.parametrize(("gamma", "end"), [(0, 0.0186669333), (4194304, 0.01360016)])
def test_a_fatpipe_stops_all_flows_that_have_no_bound(tmp_path, gamma, end):
    # As measured with SimGrid 3.32. With a TCP window flows have bounds, here a digit below that.
    build = Platform.build("p", config={"network/TCP-gamma": gamma, "network/crosstraffic": "no"})
    build.link("pipe", bandwidth=1e8, latency=0.0, policy="FATPIPE")
    for k, latency in enumerate((1.2e-3, 3.6e-3)):
        build.host(f"a{k}", speed=1e9)
        build.host(f"b{k}", speed=1e9)
        build.link(f"wire{k}", bandwidth=1e9, latency=latency)
        build.route(f"a{k}", f"b{k}", ["pipe", f"wire{k}"])
    path = tmp_path / "t.txt"
    path.write_text("".join(f"{k} send {k + 1} 0 1e6\n{k + 1} recv {k} 0 1e6\n" for k in (0, 2)))
    hosts = ["a0", "b0", "a1", "b1"]
    ends = replay(build.finish(), read_trace(path), hosts, model="CM02").end_s
    assert ends[1:4:2] == pytest.approx([0.01120016, end], rel=1e-6)


def test_a_receiver_may_ask_for_the_size_before(ends):
    _, known = ends(["sleep 0.01", "send 1 0 10"], ["recv 0 0 10"])
    _, asked = ends(["sleep 0.01", "send 1 0 10"], ["recv 0 0 -1"])
    assert known < asked < known + 0.005


def test_anybody_may_send_what_is_received_from_anybody(ends):
    late, soon = ["sleep 2", "send 0 7 70000"], ["sleep 1", "send 0 8 10"]
    first, second, third = ends(["recv -333 -444 1", "sleep 3", "recv -333 7 1"], late, soon)
    took = LATENCY * 2.01467 + 26 / (BANDWIDTH * 0.812084)
    big = LATENCY * 11.6436 + 70016 / (BANDWIDTH * 0.940694)
    assert first == second == pytest.approx(1 + took + 3 + big, rel=1e-9)
    assert third == 1


def test_of_receives_that_fit_the_first_asked_for_gets_the_message(ends):
    senders = ["sleep 2", "send 0 7 10"], ["sleep 1", "send 0 8 10"]
    one, other = "irecv 2 8 1", "irecv -555 -444 1"
    first, *_ = ends([one, other, "wait -555 0 -444", "sleep 1", "wait 2 0 8"], *senders)
    assert first == pytest.approx(3 + LATENCY * 2.01467 + 26 / (BANDWIDTH * 0.812084), rel=1e-9)
    with pytest.raises(SimulationError, match="1 rank waits forever: rank 0 in 'wait 2 0 8'"):
        ends([other, one, "wait -555 0 -444", "wait 2 0 8"], *senders)


def test_messages_of_nobody_take_no_time(ends):
    """At the ends of a line of ranks (MPI_PROC_NULL): nothing is sent, received or waited for."""
    left = ["irecv -666 0 10", "isend -666 1 1e9", "irecv 1 1 10", "isend 1 0 10", "waitall"]
    left += ["send -666 3 1e9", "recv -666 3 1", "wait -666 0 0", "test 0 -666 1"]
    right = ["irecv 0 0 10", "isend 0 1 10", "irecv -333 1 10", "isend -333 0 10", "waitall"]
    took = LATENCY * 2.01467 + 1.05 * 26 / (BANDWIDTH * 0.812084)  # both ways at once
    assert ends(left, right) == pytest.approx([took, took], rel=1e-9)
    swaps = ["sendRecv 10 -666 10 1 6 6"], ["sendRecv 10 0 10 -666 6 6"]
    took = LATENCY * 2.01467 + 26 / (BANDWIDTH * 0.812084)
    assert ends(*swaps)[0] == pytest.approx(took, rel=1e-9)


@pytest.mark.parametrize("kind", [SCATTERV, GATHERV, SCAN, BARRIER])
def test_sizes_are_looked_at_only_where_algorithms_depend_on_them(kind, monkeypatch):
    """Fields of others are no datatypes: a count of millions is far outside their table."""
    monkeypatch.setattr(dispatch, "deciding", None)
    every = Chosen(default_algorithms(), CHOICES)
    fields = (np.full(8, 2e6), 0, 8, 3, kind, DATATYPE_BYTES, 1.0)
    interpreted = getattr(dispatch.chosen, "py_func", dispatch.chosen)
    assert interpreted(*fields, every) == default_algorithms()[kind]


def test_any_tag_is_none_of_a_collective(ends):
    with pytest.raises(SimulationError, match="rank 0 in 'recv 1 -444 1'"):
        ends(["recv 1 -444 1", "barrier"], ["barrier", "send 0 3 1"])


def test_messages_to_oneself_are_free_in_a_sendrecv(ends):
    assert ends(["sendRecv 1e9 0 1e9 0 0 0"]) == [0.0]


def test_a_message_to_ones_own_host_needs_a_way(tmp_path):
    build = Platform.build("p")
    build.cluster("c", Torus((2, 2)), prefix="n", speed=1e9, bandwidth=1e9, latency=1e-6)
    path = tmp_path / "t.txt"
    path.write_text("0 send 1 0 1\n1 recv 0 0 1\n")
    with pytest.raises(RouteError, match="no link from 'n0' to 'n0'"):
        replay(build.finish(), read_trace(path), ["n0", "n0"])


def test_parallel_tasks_and_flows_carry_messages_by_choice(ends):
    pair = ["send 1 0 1e6"], ["recv 0 0 1e6"]
    took = LATENCY + 1000016 / BANDWIDTH
    assert ends(*pair, model="L07") == pytest.approx([took, took], rel=1e-12)
    took = 13.01 * LATENCY + 1000016 / (0.97 * BANDWIDTH)
    assert ends(*pair, model="LV08") == pytest.approx([took, took], rel=1e-12)


def test_ranks_that_wait_for_each_other_are_named(ends):
    with pytest.raises(SimulationError, match=r"2 ranks wait forever: rank 0 in 'recv 1 0 1'"):
        ends(["recv 1 0 1"], ["recv 0 0 1"])
    with pytest.raises(SimulationError, match=r"1 rank waits forever: rank 1 in 'barrier'"):
        ends([], ["barrier"])


def test_a_wait_for_what_a_waitall_has_waited_for_is_over_at_once(ends):
    mine = ["irecv 1 7 100", "isend 1 8 100", "waitall 1", "wait 1 0 7"]
    other = ["irecv 0 8 100", "isend 0 7 100", "waitall 1", "wait 0 1 8"]
    took = LATENCY * 2.01467 + (116 + 0.05 * 116) / (BANDWIDTH * 0.812084)  # both ways at once
    assert ends(mine, other) == pytest.approx([took, took], rel=1e-12)
    assert ends(mine, other) == ends(mine[:3], other[:3])


def test_a_wait_for_any_goes_on_with_the_first_message_that_is_there(ends):
    """The second receive is served first; the computation between two waits hides the other."""
    large = LATENCY * 11.6436 + 1000016 / (BANDWIDTH * 0.940694)
    receives = ["irecv 1 1 1e6", "irecv 1 2 1e6"]
    sends = ["send 0 2 1e6", "compute 1e8", "send 0 1 1e6"]
    hidden, _ = ends([*receives, "waitAny 2", "compute 1e9", "waitany 2"], sends)
    assert hidden == pytest.approx(large + 1.0, rel=1e-12)
    shown, _ = ends([*receives, "waitany 2", "waitany 2", "compute 1e9"], sends)
    assert shown == pytest.approx(2 * large + 0.1 + 1.0, rel=1e-12)


def test_a_wait_for_any_of_nothing_is_over_at_once(ends):
    assert ends(["waitAny 3", "compute 1e9"], []) == [1.0, 0.0]


def test_a_non_blocking_collective_goes_on_while_ranks_compute(ends):
    """Two ranks exchange 4 MB each way; one computes meanwhile, the other waits at once."""
    size = 4e6 + 16
    took = LATENCY * 11.6436 + (size + 0.05 * size) / (BANDWIDTH * 0.940694)
    begin = "ialltoall 1e6 1e6 1 1"
    mine = [begin, "compute 1e9", "wait -333 -333 -1113"]
    assert ends(mine, [begin, "wait 0 0 -1113"]) == pytest.approx([1.0, took], rel=1e-12)
    assert ends(mine, [begin, "waitany 1"]) == pytest.approx([1.0, took], rel=1e-12)
    assert ends([begin], [begin, "waitall 1"]) == pytest.approx([took, took], rel=1e-12)


def test_waits_find_the_non_blocking_collective_of_their_kind(ends):
    """The barrier is posted last and waited for first; 0 waits for nobody but at its end."""
    slow = ["compute 1e9", "ibcast 1e6 0 1", "ibarrier", "waitall"]
    both = ["ibcast 1e6 0 1", "ibarrier", "wait 0 0 -779", "compute 5e8", "wait 0 0 -3335"]
    large = LATENCY * 11.6436 + 4000016 / (BANDWIDTH * 0.940694)
    slow_end, end = ends(slow, both)
    assert slow_end == pytest.approx(1.0 + large, rel=1e-12)
    assert end == pytest.approx(1.5 + TINY + 1.05 * SMALL, rel=1e-12)  # both ways at once


def test_a_test_of_a_non_blocking_collective_takes_its_time(ends):
    """The second test finds it over, so that the third one and the wait take no time."""
    tests = ["ibarrier", *["test 0 0 -779"] * 3, "wait 0 0 -779"]
    assert ends(["ibarrier"], tests)[1] == pytest.approx(1e-4 + 2e-4, rel=1e-12)


def test_non_blocking_reductions_add_up_as_the_messages_that_they_are():
    """All pairs, as SMPI's applications send them; flop that a trace names are computed."""
    trace = trace_of_actions([[("init",), ("iallreduce", 1000, 5e6, 1), ("waitall",)]] * 3)
    amounts = Tally(trace).amounts(trace.first[:-1], trace.first[1:])
    assert amounts.flops.tolist() == [5e6] * 3
    pairs = zip(
        amounts.source.tolist(), amounts.target.tolist(), amounts.bytes.tolist(), strict=True
    )
    assert sorted(pairs) == [(a, b, 4000.0) for a in range(3) for b in range(3) if a != b]


def test_what_nobody_receives_is_counted(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("0 send 1 0 10\n1 compute 1e9\n")
    result = replay(platform(), read_trace(path), ["n0", "n1"])
    assert (result.unmatched, result.messages, result.makespan_s) == (1, 0, 1.0)
    assert result.first_unmatched == (0, 1, 0)


def test_many_messages_at_once_grow_the_state(tmp_path):
    path = tmp_path / "t.txt"
    sends = "".join(f"0 isend 1 {k} 10\n" for k in range(300))
    receives = "".join(f"1 irecv 0 {k} 10\n" for k in reversed(range(300)))
    path.write_text(f"{sends}0 waitall\n{receives}1 waitall\n")
    result = replay(platform(), read_trace(path), ["n0", "n1"])
    assert (result.unmatched, result.messages) == (0, 300)


def test_listeners_learn_what_ranks_do_and_who_sends(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("0 compute 1e9\n0 send 1 0 1e6\n1 recv 0 0 1e6\n")
    told = []
    trace = read_trace(path)
    replay(platform(), trace, ["n0", "n1"], listener=lambda *both: told.append(both))
    spans = [span for both in told for span in both[0].tolist()]
    flights = [flight for both in told for flight in both[1].tolist()]
    latency = LATENCY * 11.6436
    end = pytest.approx(1.0 + latency + 1000016 / (BANDWIDTH * 0.940694))
    assert spans == [
        (0, 0, COMPUTING, -1, 0.0, 1.0),
        (1, 2, IN_ALL, 0, 0.0, end),  # who waits longest is told of first
        (0, 1, IN_ALL, 0, 1.0, end),
    ]
    assert flights == [(0, 0, 1, 1e6, 0, 1.0, pytest.approx(latency), end)]


def test_ranks_take_the_hosts_that_smpirun_would():
    made = platform(12)
    assert hosts_of_ranks(made, 4) == ["n0", "n1", "n10", "n11"]
    assert hosts_of_ranks(made, 5, hosts=["n1", "n0"], per_host=2) == ["n1", "n1", "n0", "n0", "n1"]
    assert hosts_named("n[0-2], n7") == ["n0", "n1", "n2", "n7"]
    with pytest.raises(PTaskModelError, match="nowhere"):
        hosts_of_ranks(made, 1, hosts=["nowhere"])


def test_a_hostfile_may_say_how_many_ranks(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("# two machines\nn3:2\n\nn1\n")
    assert hosts_in_file(path) == ["n3", "n3", "n1"]
    path.write_text("n3 slots=2 max_slots=4 # as mpirun has it\nn1\tslots=1\n")
    assert hosts_in_file(path) == ["n3", "n3", "n1"]
    path.write_text("n3 cores=2\n")
    with pytest.raises(SimulationError, match="hosts:1: 'cores=2' is not slots=N"):
        hosts_in_file(path)
    path.write_text("n3 slots=0\n")
    with pytest.raises(SimulationError, match="hosts:1: '0' is not a number of ranks"):
        hosts_in_file(path)
    path.write_text("n3:many\n")
    with pytest.raises(SimulationError, match="hosts:1: 'many' is not a number of ranks"):
        hosts_in_file(path)
    path.write_text("n3\nn77\n")
    with pytest.raises(SimulationError, match=r"hosts:2: .*'n77'"):
        hosts_in_file(path, platform())
    path.write_text("\n")
    with pytest.raises(SimulationError, match="names no hosts"):
        hosts_in_file(path)


def test_an_algorithm_has_its_number_of_ranks(ends):
    pairs = {"smpi/allgather": "pair"}
    assert ends(["allgather 1 1"], ["allgather 1 1"], config=pairs)[0] > 0
    with pytest.raises(SimulationError, match="pair needs a number of ranks that is a power of"):
        ends(*[["allgather 1 1"]] * 3, config=pairs)
    assert ends(*[["barrier"]] * 3, config=pairs)[0] > 0  # nothing is gathered
    with pytest.raises(SimulationError, match=r"two_procs needs .* that is 2, but there are 3"):
        ends(*[["barrier"]] * 3, config={"smpi/barrier": "ompi_two_procs"})
    with pytest.raises(SimulationError, match="coll-selector: 'impi' is not simulated"):
        ends(["barrier"], config={"smpi/coll-selector": "impi"})
    with pytest.raises(SimulationError, match=r"'mvapich2' .* crashes with it.*--collective bcast"):
        ends(["bcast 1"], config={"smpi/coll-selector": "mvapich2"})
    unequal = [["reducescatter 1 2 0"]] * 2
    with pytest.raises(SimulationError, match="needs the same count on each rank"):
        ends(*unequal, config={"smpi/reduce_scatter": "mpich_noncomm"})


def test_without_content_some_algorithms_send_empty_messages_and_some_none(ends):
    def of_four(line, **config):
        config = {f"smpi/{name}": algorithm for name, algorithm in config.items()}
        return ends(*[[line]] * 4, config=config)

    rounds = of_four("barrier", barrier="ompi_recursivedoubling")
    halved = of_four("reducescatter 0 0 0 0 0", reduce_scatter="mpich_noncomm")
    assert halved == pytest.approx(rounds, rel=1e-12)
    assert of_four("reducescatter 0 0 0 0 0", reduce_scatter="mpich_pair") == [0.0] * 4
    five = [["allgatherv 0 0 0 0 0 0"]] * 5
    assert ends(*five, config={"smpi/allgatherv": "mpich"}) == [0.0] * 5
    assert ends(*five, config={"smpi/allgatherv": "ompi_bruck"})[0] > 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("smpi/bw-factor", "12:x"),
        ("smpi/os", "0:1:2;3"),
        ("smpi/send-is-detached-thresh", "many"),
        ("smpi/lat-factor", "-3"),
    ],
)
def test_figures_of_the_platform_are_checked(ends, key, value):
    with pytest.raises(SimulationError, match=f"<config>: {key}"):
        ends(["barrier"], ["barrier"], config={key: value})


def test_routes_that_change_are_found_again(tmp_path):
    build = Platform.build("p")
    for name in ("n0", "n1"):
        build.host(name, speed=1e9)
    build.link("wire", bandwidth=BANDWIDTH, latency=1e-3, latency_trace=[(1.0, 5e-3)])
    build.route("n0", "n1", ["wire"])
    path = tmp_path / "t.txt"
    send = "0 send 1 0 1e6\n0 sleep 2\n"
    path.write_text(f"{send}{send}1 recv 0 0 1e6\n1 recv 0 0 1e6\n")
    took = [latency * 11.6436 + 1.05 * 1000016 / (BANDWIDTH * 0.940694) for latency in (1e-3, 5e-3)]
    result = replay(build.finish(), read_trace(path), ["n0", "n1"])
    assert result.end_s[1] == pytest.approx(took[0] + 2 + took[1], rel=1e-9)


def test_messages_between_two_hosts_take_one_of_their_paths_and_the_same_again():
    build = Platform.build("w")
    build.cluster("c", FatTree((2, 2), (1, 4), (1, 1)), prefix="c", speed=1e9, bandwidth=1e9,
                  latency=1e-6)  # fmt: skip
    platform = build.finish()
    text = b"".join(b"%d init\n" % rank for rank in range(4))
    for source, target in ((0, 2), (1, 3)):
        text += b"%d send %d 0 1e8\n%d send %d 0 1e8\n" % (source, target, source, target)
        text += b"%d recv %d 0 1e8\n%d recv %d 0 1e8\n" % (target, source, target, source)
    trace = trace_in(text, "two pairs")
    hosts = ["c0", "c1", "c2", "c3"]
    ends = set()
    for seed in range(12):
        routing = Ecmp(seed)
        took_s = replay(platform, trace, hosts, routing=routing).makespan_s
        assert took_s == replay(platform, trace, hosts, routing=routing).makespan_s
        node = platform.fabric.node
        ways = [set(routing.way(platform.fabric, f"c{k}>c{k + 2}", 0, node[k], node[k + 2]).there)
                for k in range(2)]  # fmt: skip
        meet = not ways[0].isdisjoint(ways[1])
        ends.add(meet)
        assert took_s == pytest.approx(0.4 if meet else 0.2, rel=0.1)
    assert ends == {True, False}
    with pytest.raises(SimulationError, match="L07: its messages take the platform's routes"):
        replay(platform, trace, hosts, model="L07", routing=Ecmp(0))
