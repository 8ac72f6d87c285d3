"""Parts of kernels that can be written down, imported and passed on without the compiler."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class kernel:
    """As ``jit.jit``, but numba is imported when the part is first compiled or called.

    So a module may hold facts beside kernels: who needs the facts alone does not wait for numba.
    """

    def __init__(self, function: Callable) -> None:
        self.function = function
        functools.update_wrapper(self, function)

    @functools.cached_property
    def compiled(self) -> Any:
        """The part for numba (the plain function where the JIT is off)."""
        from ptaskmodel.jit import jit

        return jit(self.function)

    @property
    def _numba_type_(self) -> Any:
        """What numba asks of an object that a kernel refers to."""
        return self.compiled._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)


def dispatch(kernels: list[Any], number: int = 0) -> Any:
    """One part for several: ``dispatch(kernels)(k, *arguments)`` is ``kernels[k](*arguments)``.

    A chain of closures; numba sees numbers and kernels in it as constants.
    """
    from ptaskmodel.jit import jit

    own = kernels[number]
    if number == len(kernels) - 1:

        @jit
        def last(kind, *arguments):
            return own(*arguments)

        return last
    others = dispatch(kernels, number + 1)

    @jit
    def choose(kind, *arguments):
        if kind == number:
            return own(*arguments)
        return others(kind, *arguments)

    return choose
