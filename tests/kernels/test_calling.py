"""Kernels and their parts; how machine code finds its arguments in objects of Python."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from ptaskmodel.kernels import decorators, layout
from ptaskmodel.kernels.decorators import INTERPRETED, entry, jit, late, views, want

compiled = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")


@jit
def largest(values):
    best = values[0]
    for x in values:
        best = max(best, x)
    return best


@views
def halves(values):
    middle = values.size // 2
    return values[:middle], values[middle:]


@entry
def largest_of_halves(values):
    first, second = halves(values)
    return largest(first), largest(second)


VALUES = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0])


def test_an_entry_has_its_parts():
    assert largest_of_halves(VALUES) == (4.0, 9.0)


def test_parts_can_be_called_from_python():
    assert largest(VALUES) == 9.0
    assert [half.tolist() for half in halves(VALUES)] == [[3.0, 1.0, 4.0], [1.0, 5.0, 9.0]]


class Several(NamedTuple):
    reals: np.ndarray
    rows: np.ndarray
    limit: float
    count: int
    flag: bool
    fixed: np.ndarray


def several(count: int = 3, flag: bool = True) -> Several:
    fixed = np.arange(3)
    fixed.flags.writeable = False
    rows = np.arange(24.0).reshape(2, 3, 4)
    return Several(np.zeros(5), rows, 2.5, count, flag, fixed)


@jit
def fill(s, value):
    for k in range(s.count):
        s.reals[k] = value if s.flag else s.limit
    return s.rows[1, 2, 3] + s.rows[-1, 0].sum() + s.fixed[-1]


@entry
def fill_twice(s, value):
    return fill(s, value) + fill(s, value + 1.0), s.rows.size, s.rows.shape[1], s.rows.strides[0]


@pytest.mark.parametrize("flag", [True, False])
def test_tuples_of_many_arrays_are_handed_on(flag):
    s = several(3, flag)
    assert fill_twice(s, 6.0) == (2 * (23.0 + 54.0 + 2), 24, 3, 96)
    assert s.reals.tolist() == [7.0 if flag else 2.5] * 3 + [0.0] * 2
    others = several(2, flag)
    fill_twice(others, 0.0)
    assert np.count_nonzero(others.reals) == 2
    assert fill_twice(s._replace(rows=s.rows * 2), 6.0)[0] == 2 * (46.0 + 108.0 + 2)


@compiled
def test_tuples_of_arrays_that_do_not_lie_in_order_are_taken_too():
    s = several()
    assert fill_twice(s._replace(reals=np.zeros(10)[::2]), 6.0)[1] == 24
    assert fill_twice(s._replace(rows=s.rows.T.copy().T), 6.0)[0] == 2 * (23.0 + 54.0 + 2)


def test_division_by_zero_is_no_exception():
    @entry
    def quotient(a, b):
        return a / b

    with np.errstate(divide="ignore"):
        assert quotient(np.float64(1.0), np.float64(0.0)) == np.inf


@compiled
def test_what_hears_of_all_that_python_does_changes_nothing():
    code = (
        "import sys; sys.addaudithook(lambda *_: None)\n"
        "from ptaskmodel.kernels.layout import layout_is_known; print(layout_is_known())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{layout.layout_is_known()}\n"


@compiled
def test_callers_keep_their_arrays():
    before = sys.getrefcount(VALUES)
    for _ in range(100):
        largest_of_halves(VALUES)
    assert sys.getrefcount(VALUES) == before


def test_fields_of_records_can_be_read_without_the_jit():
    """An attribute that every numpy record has hides the field of that name."""
    from ptaskmodel.engine import state

    records = [kind for kind in vars(state).values() if isinstance(kind, np.dtype)]
    names = {name for kind in records for name in kind.names or ()}
    assert names
    assert not {name for name in names if hasattr(np.void, name)}


# Kernels that others call.


class Pair(NamedTuple):
    values: np.ndarray
    factor: float


def late_arguments():
    return Pair(VALUES, 2.0), 1


@late(f"{__name__}:late_arguments")
def scaled_size(pair, more):
    return int(pair.values.size * pair.factor) + more


@entry
def one_caller(pair):
    return scaled_size(pair, 1)


@entry
def another_caller(pair):
    return scaled_size(pair, 2) + scaled_size(pair, 3)


def test_late_kernels_are_there_for_all_who_call_them_once_they_are_wanted():
    pair = Pair(VALUES, 2.0)
    want(scaled_size)
    assert one_caller(pair) == 13
    assert another_caller(pair) == 29
    assert scaled_size(pair, 1) == 13


# Machine code as the module has it.

POINT = np.dtype([("x", "f8"), ("n", "i8")], align=True)


def everything(pair, points, matrix, number, flag, nothing):
    total = pair.values[0] * pair.factor + points[0].x + points[0].n + matrix[1, 2]
    points[0].n += 1
    return total, number + matrix.shape[0], not flag, nothing is None


def given() -> tuple:
    points = np.zeros(2, POINT)
    points[0] = (0.5, 7)
    return Pair(VALUES, 2.0), points, np.arange(6.0).reshape(2, 3), 41, False, None


def machine_code(function: Any, arguments: tuple) -> Any:
    """What calls a function compiled as it is for the module."""
    pytest.importorskip("numba")
    import llvmlite.binding as llvm

    from ptaskmodel.kernels import building, lowering

    before, decorators.builder = decorators.builder, building.List()
    try:
        level = lowering.own_level()
        ((_, content),) = lowering.compiled(function, False, False, arguments, "pk_test", [level])
    finally:
        decorators.builder = before
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(content))
    engine.finalize_object()
    ENGINES.append(engine)
    address = engine.get_function_address(f"pk_test_{level}")
    return layout.bind(function.__name__, address, arguments)


ENGINES: list[Any] = []


@pytest.fixture(scope="module")
def all_kinds():
    return machine_code(everything, given())


@compiled
def test_arguments_of_every_kind(all_kinds):
    arguments = given()
    assert all_kinds(*arguments) == (18.5, 43, True, True)
    assert arguments[1]["n"].tolist() == [8, 0]


def fixed(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


@compiled
@pytest.mark.parametrize(
    ("place", "other"),
    [
        (0, Pair(VALUES[::2], 2.0)),
        (0, Pair(VALUES.astype("i8"), 2.0)),
        (0, (VALUES, 2.0)),
        (1, fixed(given()[1].copy())),
        (2, np.asfortranarray(np.arange(6.0).reshape(2, 3))),
        (3, 41.5),
        (3, "41"),
        (4, 0),
        (5, 0),
    ],
)
def test_arguments_of_another_kind_are_refused(all_kinds, place, other):
    arguments = list(given())
    arguments[place] = other
    assert all_kinds(*arguments) is NotImplemented


@compiled
@pytest.mark.parametrize(
    ("place", "other", "result"),
    [(3, np.int64(41), (18.5, 43, True, True)), (4, np.True_, (18.5, 43, False, True))],
)
def test_numpy_s_numbers_are_taken_too(all_kinds, place, other, result):
    arguments = list(given())
    arguments[place] = other
    assert all_kinds(*arguments) == result


@compiled
def test_code_that_only_reads_takes_arrays_that_may_be_written_and_others():
    def total(values):
        return values.sum()

    for_fixed = machine_code(total, (fixed(VALUES.copy()),))
    assert for_fixed(VALUES) == for_fixed(fixed(VALUES.copy())) == VALUES.sum()
    assert layout.layout(VALUES) == layout.layout(fixed(VALUES.copy()))


@compiled
def test_a_number_that_is_too_large_is_an_error(all_kinds):
    arguments = list(given())
    arguments[3] = 2**63
    with pytest.raises(OverflowError):
        all_kinds(*arguments)


@compiled
def test_another_number_of_arguments_is_refused(all_kinds):
    assert all_kinds(VALUES, VALUES) is NotImplemented


@compiled
def test_references_are_balanced():
    called = machine_code(largest_of_halves.py_func, (VALUES,))

    def references() -> list[int]:
        return [sys.getrefcount(each) for each in (VALUES, VALUES.dtype, None, NotImplemented)]

    def use() -> None:
        for _ in range(100):
            assert called(VALUES) == (4.0, 9.0)
            assert called(VALUES[::2]) is NotImplemented

    use()
    before = references()
    use()
    assert max(abs(a - b) for a, b in zip(references(), before, strict=True)) < 20


@compiled
def test_objects_lie_as_written():
    assert layout.layout_is_known()


@compiled
def test_what_a_kernel_is_called_by_outlives_it(monkeypatch):
    """As Python ends it frees the lists of modules, then the functions that are left."""

    def methods() -> int:
        gc.collect()
        return sum(type(each) is layout._Method for each in gc.get_objects())

    before = methods()
    monkeypatch.setattr(layout, "_ALIVE", [])
    layout.bind("never called", 1, ())
    layout._ALIVE.clear()
    assert methods() == before + 1


# Ways to run kernels.

SHARES = """
import sys
from ptaskmodel.sharing import SharingProblem, flow_maxmin, maxmin
problem = SharingProblem.build([[(0, 1.0), (1, 1.0)], [(0, 1.0)], [(1, 1.0)]], [10.0, 4.0])
print(maxmin(problem).rates.tolist(), flow_maxmin(problem).limits.tolist(), "numba" in sys.modules)
"""


@compiled
@pytest.mark.parametrize(
    ("way", "has_numba"), [("", False), ("numba", True), ("interpreted", False)]
)
def test_all_ways_give_the_same(way, has_numba, tmp_path):
    if has_numba:
        pytest.importorskip("numba")
    kept = {"PTASKMODEL_CACHE_DIR": str(tmp_path)} if has_numba else {}
    done = subprocess.run(
        [sys.executable, "-c", SHARES],
        env=os.environ | {"PTASKMODEL_KERNELS": way} | kept,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == f"[2.0, 8.0, 2.0] [1, 0, 1] {has_numba}\n", done.stderr[-2000:]
    assert any(tmp_path.rglob("*.nbi")) == has_numba


@compiled
def test_the_worked_examples_pass_without_the_jit():
    tests = Path(__file__).parent.parent / "simulation" / "test_spec_examples.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not jit", "-p", "no:cacheprovider", tests],
        env={**os.environ, "PTASKMODEL_KERNELS": "interpreted"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_a_wait_for_kernels_within_another_counts_once():
    watch = decorators.Stopwatch()
    with decorators._counted(), decorators._counted():
        time.sleep(0.01)
    assert watch.kernels_s >= 0.01
    assert watch.rest_s >= 0.0
