"""Collectives against their closed forms: who sends how much, in how many steps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptaskmodel.apps import all_to_all, allgather, allreduce, broadcast, reduce
from ptaskmodel.apps.collectives import BROADCAST_TREES
from ptaskmodel.errors import WorkloadError

RANKS = st.integers(1, 40)


@given(RANKS, st.integers(0, 100), st.sampled_from(BROADCAST_TREES))
def test_broadcast_reaches_every_rank_once_from_one_that_has_it(ranks, root, tree):
    root %= ranks
    comm = broadcast(ranks, 7.0, root, tree)
    assert comm.total_bytes == 7.0 * (ranks - 1)
    has = {root}
    for step in range(comm.steps):
        now = comm.step == step
        assert set(comm.source[now]) <= has
        assert not has & set(comm.destination[now])
        has |= set(comm.destination[now])
    assert has == set(range(ranks))
    received = comm.received_bytes
    assert received[root] == 0.0
    assert (np.delete(received, root) == 7.0).all()


@pytest.mark.parametrize(
    ("tree", "steps", "largest"),
    [("flat", 1, 15), ("binary", 4, 2), ("binomial", 4, 4), ("chain", 15, 1)],
)
def test_broadcast_trees_among_16(tree, steps, largest):
    comm = broadcast(16, 1.0, 3, tree)
    assert comm.steps == steps
    assert comm.sent_bytes.max() == largest


def test_binary_tree_parents():
    comm = broadcast(5, 1.0, root=2)
    edges = set(zip(comm.source.tolist(), comm.destination.tolist(), strict=True))
    assert edges == {(2, 3), (2, 4), (3, 0), (3, 1)}


@given(RANKS, st.sampled_from(BROADCAST_TREES))
def test_reduce_is_a_broadcast_backwards(ranks, tree):
    there, back = broadcast(ranks, 2.0, 0, tree), reduce(ranks, 2.0, 0, tree)
    assert (there.matrix() == back.matrix().T).all()
    assert (there.step + back.step == max(there.steps - 1, 0)).all()


@given(RANKS)
def test_ring_allreduce_sends_twice_the_data_but_two_parts(ranks):
    comm = allreduce(ranks, 10.0, "ring")
    assert comm.steps == 2 * (ranks - 1)
    expected = 2 * (ranks - 1) / ranks * 10.0
    assert comm.sent_bytes == pytest.approx(np.full(ranks, expected))
    assert comm.received_bytes == pytest.approx(np.full(ranks, expected))


@given(RANKS)
def test_recursive_doubling_combines_everything(ranks):
    comm = allreduce(ranks, 1.0, "recursive_doubling")
    known = [{rank} for rank in range(ranks)]
    for step in range(comm.steps):
        before = [set(part) for part in known]
        now = comm.step == step
        for source, destination in zip(comm.source[now], comm.destination[now], strict=True):
            known[destination] |= before[source]
    assert all(part == set(range(ranks)) for part in known)
    core = 1 << (ranks.bit_length() - 1)
    assert comm.total_bytes == core * (core.bit_length() - 1) + 2 * (ranks - core)


@given(RANKS)
def test_all_to_all_is_a_full_matrix_without_diagonal(ranks):
    comm = all_to_all(ranks, 3.0)
    assert (comm.matrix() == 3.0 * (1 - np.eye(ranks))).all()
    assert comm.steps == ranks - 1


@pytest.mark.parametrize(("algorithm", "steps"), [("ring", 7), ("recursive_doubling", 3)])
def test_allgather_brings_all_others_contributions(algorithm, steps):
    comm = allgather(8, 5.0, algorithm)
    assert comm.steps == steps
    assert (comm.received_bytes == 35.0).all()
    assert (comm.sent_bytes == 35.0).all()


def test_works_keep_the_bytes():
    comm = allreduce(6, 12.0)
    assert comm.work().flow_bytes.sum() == pytest.approx(comm.total_bytes)
    stages = comm.phases().stages
    assert len(stages) == comm.steps
    assert sum(stage.flow_bytes.sum() for stage in stages) == pytest.approx(comm.total_bytes)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: broadcast(4, 1.0, tree="star"), "unknown broadcast tree 'star'"),
        (lambda: broadcast(4, 1.0, root=4), "root 4 is not one of them"),
        (lambda: broadcast(0, 1.0), "give at least one"),
        (lambda: all_to_all(4, -1.0), "finite number >= 0"),
        (lambda: allreduce(4, 1.0, "tree"), "unknown allreduce algorithm"),
        (lambda: allgather(6, 1.0, "recursive_doubling"), "not a power of two"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(WorkloadError, match=message):
        call()
