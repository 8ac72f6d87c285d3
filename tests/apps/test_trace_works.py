"""From traces to parallel works: nothing is lost, and order is kept where it is asked for."""

from __future__ import annotations

import random

import numpy as np
import pytest
from replay_traces import random_trace

from ptaskmodel.apps.trace_works import (
    WindowSums,
    collective_cuts,
    phases_at_collectives,
    task_of_trace,
    windows,
)
from ptaskmodel.errors import WorkloadError
from ptaskmodel.mpi import Replay, read_trace
from ptaskmodel.mpi.traffic import bundle
from ptaskmodel.platform import Platform
from ptaskmodel.workload.traces import trace_of_actions
from ptaskmodel.workload.works import DelayWork, ParallelWork


def platform(hosts):
    build = Platform.build("p")
    build.cluster("c", hosts, prefix="n", speed=1e9, bandwidth=125e6, latency=50e-6)
    return build.finish()


def amounts(work, ranks):
    """(flop of each rank, matrix of bytes, s of delays) of a work, its stages added up."""
    flops, sent, delay_s = np.zeros(ranks), np.zeros((ranks, ranks)), 0.0
    for part in work.one_round():
        if isinstance(part, DelayWork):
            delay_s += part.delay_s
            continue
        flops += part.flops
        np.add.at(sent, (part.flow_from, part.flow_to), part.flow_bytes)
    return flops, sent, delay_s


def heard(trace, listeners=()):
    """The matrix of bytes of all messages that a replay carries, and its makespan."""
    sent = np.zeros((trace.ranks, trace.ranks))

    def listen(spans, flights):
        np.add.at(sent, (flights["source"], flights["target"]), flights["bytes"])
        for listener in listeners:
            listener(spans, flights)

    made = platform(trace.ranks)
    hosts = [f"n{k}" for k in range(trace.ranks)]
    return sent, Replay(made, trace, hosts).run(listen).makespan_s


def computed(files):
    """What each rank computes, summed from the text: the flop field is the n-th of an action."""
    flops = np.zeros(len(files))
    at = {"compute": 0, "reduce": 1, "allreduce": 1, "scan": 1, "exscan": 1}
    at["reducescatter"] = len(files)
    for line in "".join(files).splitlines():
        rank, action, *fields = line.split()
        if action in at:
            flops[int(rank)] += float(fields[at[action]])
    return flops


def random_case(seed, tmp_path):
    rng = random.Random(seed)
    files = random_trace(rng, rng.choice([1, 2, 3, 4, 5, 7, 8, 16]))
    path = tmp_path / "trace.txt"
    path.write_text("".join(files))
    return read_trace(path, len(files)), files


@pytest.mark.jit
@pytest.mark.parametrize("part", range(4))
def test_works_carry_what_the_messages_of_a_replay_do(tmp_path, part):
    for seed in range(10 * part, 10 * part + 10):
        trace, files = random_case(seed, tmp_path)
        sent, makespan_s = heard(trace)
        if makespan_s == 0.0:
            continue
        sums = WindowSums(trace, makespan_s, 7)
        heard(trace, [sums])
        flops = computed(files)
        for work in (bundle(trace), phases_at_collectives(trace), sums.windows().work):
            theirs = amounts(work, trace.ranks)
            np.testing.assert_allclose(theirs[0], flops, rtol=1e-12)
            np.testing.assert_allclose(theirs[1], sent, rtol=1e-12)


def test_a_small_trace_by_hand():
    trace = trace_of_actions(
        [
            [("init",), ("compute", 5e8), ("send", 1, 0, 1000), ("sleep", 2), ("bcast", 70, 0)],
            [("init",), ("recv", 0, 0, 1000), ("sleep", 1), ("bcast", 70, 0), ("compute", 1e9)],
            [
                ("init",),
                ("sendRecv", 9, 2, 9, 2, 6, 6),
                ("bcast", 70, 0),
                ("sendRecv", 9, 2, 9, 2, 6, 6),
            ],
        ]
    )
    delay, work = bundle(trace).stages
    assert delay == DelayWork(2.0)
    assert work.flops.tolist() == [5e8, 1e9, 0.0]
    flows = zip(work.flow_from, work.flow_to, work.flow_bytes, strict=True)
    assert list(flows) == [(0, 1, 1070.0), (0, 2, 70.0)]
    stages = phases_at_collectives(trace).stages
    assert [getattr(stage, "delay_s", None) for stage in stages] == [2.0, None, None, None]
    assert [stage.flow_bytes.tolist() for stage in stages[1:]] == [[1000.0], [70.0, 70.0], []]


def test_sizes_are_of_the_datatype():
    actions = [[("init", 1), ("isend", 1, 0, 10.5)], [("init", 1), ("isend", 0, 0, 10, 1)]]
    work = bundle(trace_of_actions(actions))
    assert work.flow_bytes.tolist() == [80.0, 40.0]


def test_phases_that_are_alike_are_one_work():
    own = [("compute", 1e9), ("alltoall", 100, 100), ("barrier",)] * 5
    stages = phases_at_collectives(trace_of_actions([own] * 4)).stages
    assert len(stages) == 10
    assert len(set(map(id, stages))) == 2


def test_a_trace_of_nothing_is_an_empty_work():
    for work in (bundle, phases_at_collectives):
        made = work(trace_of_actions([[("barrier",)]] * 3))
        assert isinstance(made, ParallelWork)
        assert (made.ranks, made.flops.sum(), len(made.flow_bytes)) == (3, 0.0, 0)


def test_room_grows_with_the_pairs_that_talk():
    ranks = 70
    work = bundle(trace_of_actions([[("alltoall", 2000, 2000)]] * ranks))
    assert work.pair_bytes == 2000.0
    assert len(work.flow_bytes) == ranks * (ranks - 1)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ([("bcast", 1)], "rank 1 takes part in 1 collectives and rank 0 in 2"),
        (
            [("bcast", 1), ("reduce", 1, 0)],
            "collective 2 is reduce on rank 1 and barrier on rank 0",
        ),
    ],
)
def test_ranks_must_agree_on_collectives(second, message):
    trace = trace_of_actions([[("bcast", 1), ("barrier",)], second])
    with pytest.raises(WorkloadError, match=message):
        collective_cuts(trace)


def test_windows_follow_the_dates_of_a_replay():
    trace = trace_of_actions([[("compute", 1e9), ("sleep", 2), ("compute", 1e9)]])
    found = windows(trace, platform(1), ["n0"], 4)
    assert found.window_s == 1.0
    kinds = [type(stage).__name__ for stage in found.work.stages]
    assert kinds == ["ParallelWork", "DelayWork", "DelayWork", "ParallelWork"]
    with pytest.raises(WorkloadError, match="0 windows"):
        windows(trace, platform(1), ["n0"], 0)
    with pytest.raises(WorkloadError, match="that takes time"):
        windows(trace_of_actions([[("init",)]]), platform(1), ["n0"], 3)


def test_collectives_are_done_as_asked_for_or_as_the_platform_says():
    trace = trace_of_actions([[("bcast", 1e6)]] * 4)
    asked = task_of_trace(trace, ["n0", "n1", "n2", "n3"], collectives={"bcast": "flattree"})
    assert asked.work.flow_from.tolist() == [0, 0, 0]
    tree = task_of_trace(trace, ["n0", "n1", "n2", "n3"])
    assert tree.work.flow_from.tolist() == [0, 0, 2]
    says = Platform.build("p", config={"smpi/bcast": "flattree"})
    says.cluster("c", 4, prefix="n", speed=1e9, bandwidth=125e6, latency=50e-6)
    by_config = task_of_trace(trace, ["n0", "n1", "n2", "n3"], platform=says.finish())
    assert by_config.work.flow_from.tolist() == [0, 0, 0]
