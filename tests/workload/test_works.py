"""Works: what the constructors accept, drop, order, refuse."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload import work_tables
from ptaskmodel.workload.amounts import FieldError
from ptaskmodel.workload.blocks import TableMaker
from ptaskmodel.workload.works import (
    MAX_DEPTH,
    DelayWork,
    HomogeneousWork,
    ParallelWork,
    SequenceWork,
)


def test_a_matrix_is_read_row_by_row_sender_first():
    work = ParallelWork.of(2, [1, 2], [[5, 6], [0, 8]])
    assert work.flow_from.tolist() == [0, 0, 1]
    assert work.flow_to.tolist() == [0, 1, 1]
    assert work.flow_bytes.tolist() == [5.0, 6.0, 8.0]
    assert work.ranks == 2


def test_one_number_of_flops_is_for_every_rank():
    assert ParallelWork.of(3, 7).flops.tolist() == [7.0, 7.0, 7.0]


@given(st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=9, max_size=9), st.randoms())
def test_a_matrix_flat_or_nested_and_its_flows_in_any_order_are_the_same_work(matrix, random):
    flows = [(k // 3, k % 3, amount) for k, amount in enumerate(matrix)]
    random.shuffle(flows)
    nested = np.array(matrix).reshape(3, 3)
    works = [ParallelWork.of(3, bytes=matrix), ParallelWork.of(3, bytes=nested)]
    works.append(ParallelWork.of(3, flows=flows))
    for work in works:
        again = ParallelWork(work.flops, work.flow_from, work.flow_to, work.flow_bytes)
        assert again.flow_bytes.tolist() == [x for x in matrix if x > 0]
        assert (again.flow_from * 3 + again.flow_to).tolist() == [
            k for k, x in enumerate(matrix) if x > 0
        ]


def test_the_arrays_cannot_be_written():
    mine = np.array([1.0, 2.0])
    work = ParallelWork.of(2, mine, [0, 3, 0, 0])
    mine[0] = 99
    assert work.flops.tolist() == [1.0, 2.0]
    for array in (work.flops, work.flow_from, work.flow_to, work.flow_bytes):
        assert not array.flags.writeable


def test_the_constructor_copies_arrays_that_can_be_written():
    mine = np.array([1.0])
    none = np.zeros(0, dtype=np.int64)
    work = ParallelWork(mine, none, none, np.zeros(0))
    mine[0] = 99
    assert work.flops.tolist() == [1.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1), "hosts: is empty"),
        ((2, [1, 2, 3]), "flops: has 3 values for 2 hosts; give one per host"),
        ((2, [[1, 2]]), "flops: has shape 1 x 2 for 2 hosts"),
        ((2, [1, -2]), r"flops\[1\]: -2.0 is negative"),
        ((2, [1, float("nan")]), r"flops\[1\]: nan is not a finite number"),
        ((2, [1, 1e101]), r"flops\[1\]: 1e\+101 is larger than 1e\+100"),
        ((2, [1e-101, 1]), r"flops\[0\]: 1e-101 is below 1e-100"),
        ((2, "ab"), "flops: holds <U2 values"),
        ((2, [True, False]), "flops: holds bool values"),
        ((2, [1, [2]]), "flops: is not a regular array"),
        ((2, None, [1, 2, 3]), "bytes: has 3 values for 2 hosts; give 2 x 2 values"),
        ((2, None, [[0, 1], [float("inf"), 0]]), r"bytes\[1\]\[0\]: inf is not a finite"),
        ((2, None, 5), "bytes: has a single number"),
        ((2, None, [0] * 4, []), "flows: is given in addition to bytes"),
        ((2, None, None, 5), "flows: is not a list of triples"),
        ((2, None, None, [(0, 1)]), "flows: is not a list of triples"),
        ((2, None, None, [(0, 2, 1)]), r"flows\[0\]\[1\]: 2 is not one of the 2 hosts"),
        ((2, None, None, [(0, 0.5, 1)]), r"flows\[0\]\[1\]: 0.5 is not one of"),
        ((2, None, None, [(0, 1, 1), (0, 1, 2)]), r"flows\[1\]: from 0 to 1 again"),
        ((2, None, None, [(0, 1e-200, 1)]), r"flows\[0\]\[1\]: 1e-200 is below 1e-100"),
        ((2, None, None, [(0, 1, 1), (-1, 0, 1)]), r"flows\[1\]\[0\]: -1.0 is negative"),
        ((2, None, None, [(0, 1, 1), (1, 0, 1e200)]), r"flows\[1\]\[2\]: 1e.200 is larger"),
        ((2, None, None, [(0, 1, -1)]), r"flows\[0\]\[2\]: -1.0 is negative"),
    ],
)
def test_bad_amounts_are_told(arguments, message):
    with pytest.raises(WorkloadError, match=message):
        ParallelWork.of(*arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"flops": np.zeros(0)}, "flops: is empty"),
        ({"flops": [1.0, 2.0]}, "flops: is not a one-dimensional array of float64"),
        ({"flow_from": np.array([0.0, 1.0])}, "flow_from: is not a one-dimensional array of int64"),
        ({"flow_from": np.array([0])}, "differ in length"),
        ({"flow_to": np.array([1, 2])}, r"flow_to: holds a rank outside 0..1"),
        ({"flow_bytes": np.array([1.0, 0.0])}, "flow_bytes: holds a 0"),
        ({"flow_from": np.array([1, 0])}, "not in row-major order"),
    ],
)
def test_arrays_that_are_no_work_are_told(changes, message):
    arrays = {
        "flops": np.ones(2),
        "flow_from": np.array([0, 1]),
        "flow_to": np.array([1, 0]),
        "flow_bytes": np.ones(2),
    }
    with pytest.raises(WorkloadError, match=message):
        ParallelWork(**(arrays | changes))


def test_fast_constructors_give_what_the_general_one_gives():
    for fast, general in (
        (ParallelWork.of_execution(3), ParallelWork.of(1, 3)),
        (ParallelWork.of_flow(3), ParallelWork.of(2, flows=[(0, 1, 3)])),
        (ParallelWork.of_flow(0), ParallelWork.of(2, flows=[(0, 1, 0)])),
    ):
        for name in ("flops", "flow_from", "flow_to", "flow_bytes"):
            assert getattr(fast, name).tolist() == getattr(general, name).tolist()


def flows_of(random, ranks):
    pairs = random.sample(range(ranks * ranks), random.randint(0, ranks * ranks))
    triples = [(*divmod(pair, ranks), random.choice([0.0, 1.0, 2.5])) for pair in pairs]
    return np.array(triples, dtype=np.float64)


def parts_of(work):
    arrays = work.flops, work.flow_from, work.flow_to, work.flow_bytes
    return [array.tolist() for array in arrays], work.pair_bytes


def made_together(ranks, flops, flows):
    maker = TableMaker()
    for each in zip(ranks, flops, flows, strict=True):
        maker.parallel(*each)
    return maker.table().works.take(np.arange(len(ranks)))


@given(st.randoms(), st.lists(st.integers(1, 4), max_size=6), st.booleans())
def test_works_made_together_are_those_made_one_by_one(random, ranks, alike):
    flops = [np.array(7.0 + k if alike or k % 2 else [1.0] * n) for k, n in enumerate(ranks)]
    flows = [flows_of(random, n) for n in ranks]
    together = made_together(ranks, flops, flows)
    alone = [
        ParallelWork.of(n, cpu, flows=sent)
        for n, cpu, sent in zip(ranks, flops, flows, strict=True)
    ]
    assert list(map(parts_of, together)) == list(map(parts_of, alone))
    assert not any(array.flags.writeable for work in together for array in work.demand(1)[2:])


def test_works_made_together_in_several_pieces_are_all_there(monkeypatch):
    monkeypatch.setattr(work_tables, "FLOWS_AT_ONCE", 3)
    flows = [np.array([[0, 1, 1.0 + k], [1, 0, 2.0]]) for k in range(7)]
    made = made_together([2] * 7, [np.array(float(k)) for k in range(7)], flows)
    assert [work.flow_bytes.tolist() for work in made] == [[1.0 + k, 2.0] for k in range(7)]
    assert [work.flops.tolist() for work in made] == [[float(k)] * 2 for k in range(7)]


@pytest.mark.parametrize("bad", [[0, 2, 1], [2, 0, 1], [0, 0.5, 1], [-1, 0, 1], [0, 1, -1]])
def test_a_bad_flow_among_many_works_is_refused(bad):
    flows = [np.array([row], dtype=np.float64) for row in ([0, 1, 1], bad, [2, 0, 1])]
    with pytest.raises(FieldError, match="flows"):
        made_together([2, 2, 3], [np.zeros(())] * 3, flows)


def test_totals_are_spread_over_ranks_and_over_pairs_of_distinct_ranks():
    assert HomogeneousWork(12, 60, total=True).per_rank(4) == (3.0, 5.0)
    assert HomogeneousWork(12, 60, total=True).per_rank(1) == (12.0, 60.0)
    assert HomogeneousWork(12, 60).per_rank(4) == (12.0, 60.0)


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), "1", None, True, 10**400])
def test_bad_numbers_of_small_works_are_told(bad):
    with pytest.raises(WorkloadError, match="flops: "):
        HomogeneousWork(bad, 0)
    with pytest.raises(WorkloadError, match="bytes: "):
        HomogeneousWork(0, bad)
    with pytest.raises(WorkloadError, match="seconds: "):
        DelayWork(bad)


def test_a_sequence_knows_its_ranks_and_stages():
    inner = SequenceWork((ParallelWork.of(3, 1), DelayWork(2)), repeat=5)
    outer = SequenceWork((inner, HomogeneousWork(1, 1), inner), repeat=1000)
    assert outer.ranks == 3
    assert outer.stages_per_round == 21
    assert outer.depth == 2
    assert outer.duration_s is None
    assert SequenceWork((DelayWork(1), SequenceWork((DelayWork(2),)))).duration_s == 3.0


@pytest.mark.parametrize(
    ("stages", "repeat", "message"),
    [
        ((), 1, "stages: is empty"),
        (("x",), 1, r"stages\[0\]: 'x' is not a Work"),
        ((ParallelWork.of(2), ParallelWork.of(3)), 1, r"different numbers of hosts \(2, 3\)"),
        ((DelayWork(1),), 0, "repeat: 0 is not a whole number"),
        ((DelayWork(1),), 1.5, "repeat: 1.5 is not a whole number"),
        ((SequenceWork((DelayWork(1),), 10**9),), 1, "1000000000 stages a round"),
    ],
)
def test_bad_sequences_are_told(stages, repeat, message):
    with pytest.raises(WorkloadError, match=message):
        SequenceWork(stages, repeat)


def test_sequences_are_not_nested_without_end():
    work = DelayWork(1)
    for _ in range(MAX_DEPTH):
        work = SequenceWork((work,))
    with pytest.raises(WorkloadError, match="nested more than"):
        SequenceWork((work,))


def test_errors_and_works_survive_pickling():
    error = pickle.loads(pickle.dumps(FieldError("flops", "is wrong", (1,), "T1")))
    assert str(error) == "task 'T1': flops[1]: is wrong"
    work = pickle.loads(pickle.dumps(ParallelWork.of(2, 1, [0, 1, 0, 0])))
    assert work.flow_bytes.tolist() == [1.0]
