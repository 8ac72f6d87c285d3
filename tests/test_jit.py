"""How kernels are compiled: parts, entries, no counting of references."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from ptaskmodel.jit import entry, inlined, jit

compiled = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


@jit
def largest(values):
    best = values[0]
    for x in values:
        best = max(best, x)
    return best


@inlined
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


def test_division_by_zero_is_no_exception():
    @entry
    def quotient(a, b):
        return a / b

    with np.errstate(divide="ignore"):
        assert quotient(np.float64(1.0), np.float64(0.0)) == np.inf


@compiled
def test_references_are_not_counted():
    largest_of_halves(VALUES)
    (code,) = largest_of_halves.inspect_asm().values()
    body = code.split("NRT_incref:")[0]
    assert "NRT_incref" not in body.split("cpython")[0]


@compiled
def test_callers_keep_their_arrays():
    import sys

    before = sys.getrefcount(VALUES)
    for _ in range(100):
        largest_of_halves(VALUES)
    assert sys.getrefcount(VALUES) == before
