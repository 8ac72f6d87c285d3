"""What is compiled ahead is what a simulation then calls."""

from __future__ import annotations

import numba
import pytest
from numba import types

from ptaskmodel.core import solving
from ptaskmodel.core.store import new_state
from ptaskmodel.sharing.rules import RULES
from ptaskmodel.sharing.solvers import kernel
from ptaskmodel.simulation import warming


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_solvers_are_compiled_for_what_the_event_loop_gives_them():
    kernels = [kernel(rule) for rule in RULES.values()]
    warming.compile_solvers(*RULES)
    compiled = [set(kernel.signatures) for kernel in kernels]
    state = numba.typeof(new_state(warming._platform(), live_bandwidths=False))
    solving.solve.compile((state, types.int64, types.int64, types.int64))
    assert [set(kernel.signatures) for kernel in kernels] == compiled
