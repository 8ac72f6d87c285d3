"""What works say of themselves: stages, demands, other amounts, steps on hosts, pickles."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptaskmodel.errors import WorkloadError
from ptaskmodel.platform.facts import HostFacts
from ptaskmodel.workload.batch_works import SpreadWork, StagingWork, StorageWork, UsageTraceWork
from ptaskmodel.workload.works import (
    DelayWork,
    HomogeneousWork,
    ParallelWork,
    SequenceWork,
    Work,
)

RANKS = 3
FACTS = HostFacts({"a": 2, "b": 1, "c": 4}, {"pfs": "d", "tape": "e", "disk": "d"})
amounts = st.sampled_from([0.0, 1.0, 2.5, 3e9])
parallel = st.builds(
    lambda flops, matrix: ParallelWork.of(RANKS, flops, matrix),
    st.lists(amounts, min_size=RANKS, max_size=RANKS),
    st.lists(amounts, min_size=RANKS**2, max_size=RANKS**2),
)
simple = st.one_of(
    parallel,
    st.builds(HomogeneousWork, amounts, amounts, st.booleans()),
    st.builds(DelayWork, amounts),
)
of_jobs = st.one_of(
    simple,
    st.builds(SpreadWork, amounts, amounts, st.booleans()),
    st.builds(StorageWork, amounts, amounts, st.sampled_from(["pfs", "tape"]), st.booleans()),
    st.builds(StagingWork, amounts, st.just("tape"), st.just("disk")),
)


def nested(works):
    sequence = st.builds(
        lambda stages, repeat: SequenceWork(tuple(stages), repeat),
        st.lists(works, min_size=1, max_size=3),
        st.integers(1, 3),
    )
    return st.one_of(works, sequence)


works = nested(nested(simple))
job_works = nested(nested(of_jobs))


def unrolled(work: Work) -> list[Work]:
    """The simple works that are done, one after the other (naively)."""
    if isinstance(work, SequenceWork):
        return [part for stage in work.stages for part in unrolled(stage)] * work.repeat
    return [work]


def totals(work: Work, ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """Flop of each rank and bytes between each two (naively)."""
    flops, matrix = np.zeros(ranks), np.zeros((ranks, ranks))
    for part in unrolled(work):
        demand = part.demand(ranks)
        flops += demand.flops
        matrix += demand.pair_bytes * (1 - np.eye(ranks))
        matrix[demand.flow_from, demand.flow_to] += demand.flow_bytes
    return flops, matrix


@given(works)
def test_the_rounds_of_a_work_are_its_stages_one_by_one(work):
    assert list(map(id, work.one_round() * work.rounds)) == list(map(id, unrolled(work)))
    assert {id(part) for part in work.parts()} == {id(part) for part in unrolled(work)}
    counted = work.summed(lambda part: 1.0)
    assert counted == len(unrolled(work))


@given(job_works)
def test_a_work_of_delays_lasts_as_long_as_they_do(work):
    parts = unrolled(work)
    if all(isinstance(part, DelayWork) for part in parts):
        assert work.duration_s == pytest.approx(sum(part.delay_s for part in parts), rel=1e-12)
    else:
        assert work.duration_s is None


@given(works, st.sampled_from([0.5, 2.0]), st.sampled_from([0.25, 4.0]))
def test_divided_amounts(work, flops, volumes):
    made = work.divided(flops, volumes)
    assert type(made) is type(work)
    assert made.duration_s == work.duration_s
    before, after = totals(work, RANKS), totals(made, RANKS)
    np.testing.assert_allclose(after[0], before[0] / flops, rtol=1e-12)
    np.testing.assert_allclose(after[1], before[1] / volumes, rtol=1e-12)


def test_divided_works_of_jobs():
    assert SpreadWork(6, 8, True).divided(2, 4) == SpreadWork(3, 2, True)
    assert StorageWork(6, 8, "x", True).divided(3, 2) == StorageWork(3, 4, "x", True)
    assert StagingWork(6, "x", "y").divided(9, 2) == StagingWork(3, "x", "y")
    assert UsageTraceWork((((0.5, 8.0),),)).divided(4, 9) == UsageTraceWork((((0.5, 2.0),),))


@given(st.builds(HomogeneousWork, amounts, amounts, st.booleans()), st.integers(1, 5))
def test_a_homogeneous_work_expanded_asks_the_same(work, ranks):
    flops, matrix = totals(work, ranks)
    again = totals(work.expanded(ranks), ranks)
    assert again[0].tolist() == flops.tolist()
    assert again[1].tolist() == matrix.tolist()


@given(
    st.integers(1, 5),
    st.sampled_from([1.0, 2.5]),
    st.dictionaries(st.integers(0, 24), st.sampled_from([0.0, 1.0]), max_size=1),
)
def test_a_complete_uniform_all_to_all_is_recognised(ranks, size, others):
    matrix = size * (1.0 - np.eye(ranks)).ravel()
    for place, amount in others.items():
        matrix[place % ranks**2] = amount
    work = ParallelWork.of(ranks, 1.0, matrix)
    pair_bytes = matrix[1] if ranks > 1 else 0.0
    complete = pair_bytes > 0 and (matrix == pair_bytes * (1 - np.eye(ranks)).ravel()).all()
    for one in (work, ParallelWork(work.flops, work.flow_from, work.flow_to, work.flow_bytes)):
        assert one.pair_bytes == (pair_bytes if complete else 0.0)
    assert totals(work, ranks)[1].ravel().tolist() == matrix.tolist()


@given(parallel, st.lists(st.integers(0, RANKS - 1), min_size=RANKS, max_size=RANKS))
def test_merged_flows_carry_the_same_bytes(work, rank):
    merged = work.with_merged_flows(np.array(rank))
    naive = np.zeros((RANKS, RANKS))
    for i, j, amount in zip(work.flow_from, work.flow_to, work.flow_bytes, strict=True):
        naive[rank[i], rank[j]] += amount
    np.testing.assert_allclose(totals(merged, RANKS)[1], naive, rtol=1e-12)


@given(job_works)
def test_a_work_of_a_job_on_its_hosts_is_plain_and_moves_the_same_bytes(work):
    (((hosts, bound),),) = work.bound(("a", "b", "c"), FACTS)
    assert bound.is_plain
    if work.is_plain:
        assert bound is work
    assert hosts[:RANKS] == ("a", "b", "c")
    assert set(hosts[RANKS:]) == {FACTS.storages[name] for name in work.storages()}
    given_flops = work.summed(lambda part: _flops(part))
    found = totals(bound, len(hosts))
    assert found[0].sum() == pytest.approx(given_flops, rel=1e-12)
    assert found[0][RANKS:].sum() == 0


def _flops(part: Work) -> float:
    if isinstance(part, SpreadWork):
        return part.flops
    if isinstance(part, StorageWork | StagingWork):
        return 0.0
    return float(np.broadcast_to(part.demand(RANKS).flops, RANKS).sum())


def test_a_sequence_has_no_demand_of_its_own():
    with pytest.raises(TypeError, match="SequenceWork has no demand of its own"):
        SequenceWork((DelayWork(1),)).demand(1)


def test_too_many_steps_are_refused_before_they_are_listed():
    sequence = SequenceWork((UsageTraceWork((((1.0, 1.0),),)),), 10**9)
    with pytest.raises(WorkloadError, match="makes 1,000,000,000 steps, more than 1,000,000"):
        sequence.bound(("a",), FACTS)


@pytest.mark.parametrize("bad", [-1.0, float("nan"), 1e101, "1", None])
def test_amounts_of_jobs_are_checked(bad):
    for make in (
        lambda: SpreadWork(bad, 0, True),
        lambda: StorageWork(0, bad),
        lambda: StagingWork(bad, "x", "y"),
    ):
        with pytest.raises(WorkloadError):
            make()


@given(job_works)
def test_works_come_back_from_a_pickle_and_from_a_copy(work):
    for again in (pickle.loads(pickle.dumps(work)), copy.deepcopy(work)):
        assert type(again) is type(work)
        assert again.duration_s == work.duration_s
        for one, other in zip(again.parts(), work.parts(), strict=True):
            if isinstance(one, ParallelWork):
                assert one.pair_bytes == other.pair_bytes
                for name in ("flops", "flow_from", "flow_to", "flow_bytes"):
                    array = getattr(one, name)
                    assert array.tolist() == getattr(other, name).tolist()
                    assert not array.flags.writeable
            else:
                assert one == other
