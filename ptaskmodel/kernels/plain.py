"""Compile kernels with numba's public interface, where no module has their machine code.

Results are the same, but the first call takes up to a minute. Numba caches the machine code in a
directory of the user. Five measures limit the cost. A kernel that both Python and kernels call has
two dispatchers, so that the parts need no wrappers. References are not counted. Late kernels that
no caller requested are left out. Only exported kernels are cached. LLVM optimises at its first
level, which makes kernels as fast as the third, in an eighth less time.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
from typing import Any

import numba

from ptaskmodel.directories import cache_directory
from ptaskmodel.kernels import module

# It takes options that its types do not tell of.
njit: Any = numba.njit
# What calling a late kernel returns that is not there.
NOT_THERE = -(2**62)
# Of how many versions of the sources machine code is kept; the last made.
KEPT = 4

_config: Any = numba.config
_config.OPT = type(_config.OPT)(1)


def _options(kernel: Any) -> dict[str, Any]:
    # Callers hold arrays: each count of references to them would be an atomic operation.
    return {"error_model": "numpy", "_nrt": kernel.allocates, "no_cfunc_wrapper": True}


def part(kernel: Any) -> Any:
    """What numba is to know a kernel by in others."""
    if kernel.is_late and not kernel.is_wanted:
        return _nobody()
    return njit(**_options(kernel), no_cpython_wrapper=True)(kernel.py_func)


@functools.cache
def _nobody() -> Any:
    return njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)(lambda *_: NOT_THERE)


def public(kernel: Any, wanted: list[str]) -> Any:
    """What Python calls. wanted: the late kernels that are there."""
    dispatcher = njit(**_options(kernel))(kernel.py_func)
    place = cache_directory()
    if place is None or not module.is_ours(kernel.name):
        return dispatcher
    # Numba looks at the file of a kernel alone, not at those of its parts.
    version = place / "numba" / module.stamps()[module.is_checkout()].replace(" ", "-")
    before, _config.CACHE_DIR = _config.CACHE_DIR, str(version / module.symbol("", repr(wanted)))
    try:
        dispatcher.enable_caching()
    finally:
        _config.CACHE_DIR = before
    with contextlib.suppress(OSError):
        versions = sorted(version.parent.iterdir(), key=lambda each: each.stat().st_mtime)
        for old in versions[:-KEPT]:
            shutil.rmtree(old)
    return dispatcher
