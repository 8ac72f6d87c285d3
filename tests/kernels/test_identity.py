"""Kernels are told apart by what their machine code is made of, and by nothing else."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ptaskmodel
from ptaskmodel.kernels.building import UnknownConstant, identity
from ptaskmodel.kernels.decorators import INTERPRETED, Kernel
from ptaskmodel.kernels.layout import layout

pytestmark = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")

SOURCE = """
from typing import NamedTuple
import numpy as np
from ptaskmodel.kernels.decorators import entry, jit

LIMIT = 3
PAIR = (1, LIMIT)

class Fields(NamedTuple):
    first: int
    second: int

@jit
def inner(x):
    return x + LIMIT

def outer_of(number):
    def outer(x):
        total = np.float64(0.0)
        for _ in range(2):
            total += inner(x) + number
        return Fields(total, PAIR[1])
    return outer

outer = outer_of(1)
"""


def of(source: str) -> Callable[..., Any]:
    names: dict[str, Any] = {"__name__": "kernels"}
    exec(source, names)
    return names["outer"]


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("LIMIT = 3", "LIMIT = 3.0"),
        ("LIMIT = 3", "LIMIT = np.int64(3)"),
        ("PAIR = (1, LIMIT)", "PAIR = (1, 7)"),
        ("x + LIMIT", "x - LIMIT"),
        ("range(2)", "range(3)"),
        ("np.float64(0.0)", "np.float32(0.0)"),
        ("outer_of(1)", "outer_of(2)"),
        ("    first: int\n    second: int", "    second: int\n    first: int"),
        ("second: int", "second: int = 3"),
    ],
)
def test_what_a_kernel_is_made_of_matters(written, instead):
    assert SOURCE.count(written) == 1
    assert identity(of(SOURCE.replace(written, instead))) != identity(of(SOURCE))


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("LIMIT = 3", "# Three.\n\nLIMIT = 2 + 1"),
        ("@jit\ndef inner", "OTHER = 5\ndef other():\n    return OTHER\n\n@jit\ndef inner"),
    ],
)
def test_where_it_stands_does_not_matter(written, instead):
    assert identity(of(SOURCE.replace(written, instead))) == identity(of(SOURCE))


def test_kernels_that_call_each_other_have_an_identity():
    calls = SOURCE.replace("return x + LIMIT", "return x if x < LIMIT else inner(x - 1)")
    assert identity(of(calls)) == identity(of(calls)) != identity(of(SOURCE))


def test_what_may_be_anything_is_refused():
    with pytest.raises(UnknownConstant, match="array"):
        identity(of(SOURCE.replace("PAIR = (1, LIMIT)", "PAIR = np.ones(2)")))


def test_every_kernel_has_one():
    kernels = {
        value
        for module in pkgutil.walk_packages(ptaskmodel.__path__, "ptaskmodel.")
        if not module.name.endswith("__main__")
        for value in vars(importlib.import_module(module.name)).values()
        if isinstance(value, Kernel)
    }
    assert len(kernels) > 300
    assert not [kernel.name for kernel in kernels if not identity(kernel.py_func)]


def test_fields_of_the_same_types_in_another_order_are_another_argument():
    names = {}
    exec(
        "from typing import NamedTuple\n"
        "class A(NamedTuple):\n    x: int\n    y: int\nfirst = A(1, 2)\n"
        "class A(NamedTuple):\n    y: int\n    x: int\nsecond = A(1, 2)\n",
        names,
    )
    assert layout(names["first"]) != layout(names["second"])
    one, other = (np.zeros(1, dtype=[(a, "f8"), (b, "f8")]) for a, b in ("xy", "yx"))
    assert layout(one) != layout(other)


LATE = """
from ptaskmodel.kernels.decorators import entry, late

@late("nowhere:example")
def inner(x):
    return x + 1

inner.kind = "f8"

def outer(x):
    return inner(x)
"""


def test_late_kernels_count_by_their_names_and_kinds_alone():
    before = identity(of(LATE))
    assert identity(of(LATE.replace("x + 1", "x + 2"))) == before
    assert identity(of(LATE.replace('"f8"', '"i8"'))) != before
    assert identity(of(LATE.replace("inner", "other"))) != before
