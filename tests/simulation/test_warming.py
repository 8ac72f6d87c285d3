"""What is compiled ahead is what a simulation then calls."""

from __future__ import annotations

import numba
import pytest
from numba import types

from ptaskmodel.core import solving
from ptaskmodel.core.store import new_state
from ptaskmodel.sharing.bmf import solve_bmf
from ptaskmodel.sharing.fairbottleneck import solve_fairbottleneck
from ptaskmodel.sharing.maxmin import solve_maxmin
from ptaskmodel.simulation import warming


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_solvers_are_compiled_for_what_the_event_loop_gives_them():
    kernels = (solve_bmf, solve_fairbottleneck, solve_maxmin)
    warming.compile_solvers(*kernels)
    compiled = [set(kernel.signatures) for kernel in kernels]
    state = numba.typeof(new_state(warming._platform()))
    solving.solve.compile((state, types.int64, types.int64, types.int64))
    assert [set(kernel.signatures) for kernel in kernels] == compiled
