"""One kernel for several, chosen by number."""

from __future__ import annotations

from typing import Any

from ptaskmodel.kernels.decorators import jit


def dispatch(kernels: list[Any], number: int = 0) -> Any:
    """One part for several: ``dispatch(kernels)(k, *arguments)`` is ``kernels[k](*arguments)``.

    A chain of closures; numba sees numbers and kernels in it as constants.
    """
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
