"""How kernels are compiled: parts, entries, no counting of references."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from ptaskmodel.jit import entry, jit, views

compiled = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


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


def test_division_by_zero_is_no_exception():
    @entry
    def quotient(a, b):
        return a / b

    with np.errstate(divide="ignore"):
        assert quotient(np.float64(1.0), np.float64(0.0)) == np.inf


@compiled
def test_references_are_not_counted(monkeypatch):
    # Numba shows no code that comes from its cache.
    monkeypatch.setattr("ptaskmodel.jit.cache_directory", lambda: None)
    fresh = entry(largest_of_halves.py_func)
    fresh(VALUES)
    (code,) = fresh.inspect_asm().values()
    body = code.split("NRT_incref:")[0]
    assert "NRT_incref" not in body.split("cpython")[0]


@compiled
def test_callers_keep_their_arrays():
    before = sys.getrefcount(VALUES)
    for _ in range(100):
        largest_of_halves(VALUES)
    assert sys.getrefcount(VALUES) == before


def test_fields_of_records_can_be_read_without_the_jit():
    """An attribute that every numpy record has hides the field of that name."""
    from ptaskmodel.core import state

    records = [kind for kind in vars(state).values() if isinstance(kind, np.dtype)]
    names = {name for kind in records for name in kind.names or ()}
    assert names
    assert not {name for name in names if hasattr(np.void, name)}


@compiled
def test_the_worked_examples_pass_without_the_jit():
    tests = Path(__file__).parent / "simulation" / "test_spec_examples.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not jit", "-p", "no:cacheprovider", tests],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
