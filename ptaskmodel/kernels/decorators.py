# mypy: allow-untyped-defs, allow-incomplete-defs
"""The decorators of kernels, and how Python calls kernels.

An ``entry`` is an exported kernel, which Python calls. It has machine code of its own in the module
that is built with the package (`module`). A ``jit`` kernel is compiled into its callers. ``views``
are jit kernels that return views of their arguments. ``late`` kernels have machine code of their
own, for other kernels to call. `dispatch` combines several kernels into one that chooses by number.

If the module lacks a kernel, numba compiles it, if numba is installed (`plain`); otherwise it is
interpreted. ``PTASKMODEL_KERNELS`` chooses one way for all: ``module`` (a missing kernel is an
error), ``numba``, or ``interpreted``, in which kernels are plain functions, as with
``NUMBA_DISABLE_JIT=1``.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ptaskmodel.kernels import module
from ptaskmodel.memory import collector_as_usual

INTERPRETED = module.are_interpreted()
# Kinds of arguments that a kernel keeps at hand; more are found again in the module.
AT_HAND = 8

_AS_IT_IS = contextlib.nullcontext()

all_kernels: list[Kernel] = []
# Wall time that this process has waited for kernels.
_spent_s = 0.0
_waits = 0


class Builder(Protocol):
    """The builder of the module: it receives the calls that kernels are to be built for."""

    def note(self, kernel: Kernel, arguments: tuple) -> None:
        """Arguments like these are to be taken."""

    def call(self, kernel: Kernel, arguments: tuple) -> Any:
        """The same, by a call that wants an answer."""

    def dispatcher(self, kernel: Kernel) -> Any:
        """What numba is to know a kernel by."""


builder: Builder | None = None


def as_compiled() -> AbstractContextManager[None]:
    """Lets interpreted kernels divide by zero without a word, as compiled ones do."""
    if not INTERPRETED:
        return _AS_IT_IS
    module.say_why_interpreted()
    return _at_ease()


def _at_ease() -> AbstractContextManager[None]:
    import numpy as np

    return np.errstate(divide="ignore", invalid="ignore", over="ignore")


def waited(seconds: float) -> None:
    """Count the wall time of a wait for kernels."""
    global _spent_s
    _spent_s += seconds


@contextlib.contextmanager
def _counted() -> Iterator[None]:
    """Counts the wall time of a wait for kernels; of waits within waits only the outermost."""
    global _waits
    began = time.perf_counter()
    _waits += 1
    try:
        yield
    finally:
        _waits -= 1
        if not _waits:
            waited(time.perf_counter() - began)


class Stopwatch:
    """Wall time since it was made, s: spent on having kernels ready, and on all else.

    processor_s: processor time of this process, kernels that are compiled included.
    """

    def __init__(self) -> None:
        self._began, self._spent_before_s = time.perf_counter(), _spent_s
        self._processor_before_s = time.process_time()

    @property
    def kernels_s(self) -> float:
        return _spent_s - self._spent_before_s

    @property
    def rest_s(self) -> float:
        return time.perf_counter() - self._began - self.kernels_s

    @property
    def processor_s(self) -> float:
        return time.process_time() - self._processor_before_s


def entry(function: Callable, *, allocates: bool = False) -> Any:
    """A kernel for Python to call, with IEEE arithmetic.

    Division by zero gives inf or nan, as in numpy, never an exception: kernels return a status.
    Unless it ``allocates`` arrays, it counts no references to them. Called by another kernel it is
    a part of that.
    """
    return function if INTERPRETED else Kernel(function, allocates, is_entry=True)


def jit(function: Callable, *, allocates: bool = False) -> Any:
    """A kernel that is a part of those that call it.

    Called from Python it is an entry for the kinds of arguments that the module has, else the plain
    function: that is quick enough for small things.
    """
    return function if INTERPRETED else Kernel(function, allocates)


def late(example: str) -> Callable[[Callable], Any]:
    """A kernel that others call, built on its own, once for all of them; it returns an integer.

    example: ``module:function`` that makes arguments like those that it takes. By plain numba it is
    a part of those that call it, as large as it is: only if somebody does `want` it; else they get
    ``plain.NOT_THERE``.
    """
    return lambda function: function if INTERPRETED else Late(function, example)


def want(kernel: Any) -> None:
    """Make a `late` kernel available to all its callers in this process."""
    if isinstance(kernel, Late):
        kernel.want()


def is_wanted(kernel: Any) -> bool:
    """Return whether a `late` kernel is available to its callers."""
    return not isinstance(kernel, Late) or kernel.is_there


def views(function: Callable) -> Any:
    """A part that returns views of its arguments; called from Python it is the plain function."""
    return function if INTERPRETED else _Views(function, False)


class Kernel:
    """A kernel: what numba knows it by in others, and the machine code that Python calls."""

    is_late = False

    def __init__(self, function: Callable, allocates: bool, is_entry: bool = False) -> None:
        self.py_func = function
        self.allocates, self.is_entry = allocates, is_entry
        self.name = f"{function.__module__}.{function.__qualname__}"
        self._calls: list[Callable] = []
        functools.update_wrapper(self, function)
        all_kernels.append(self)

    @functools.cached_property
    def dispatcher(self) -> Any:
        """What numba knows it by in other kernels."""
        if builder is not None:
            return builder.dispatcher(self)
        from ptaskmodel.kernels import plain

        return plain.part(self)

    @property
    def _numba_type_(self) -> Any:
        """What numba asks of an object that a kernel refers to."""
        return self.dispatcher._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        for call in self._calls:
            result = call(*arguments)
            if result is not NotImplemented:
                return result
        return self._find(arguments)

    def prepare(self, *arguments: Any) -> None:
        """Have it built for arguments like these."""
        if builder is not None:
            builder.note(self, arguments)

    def forget(self) -> None:
        """Have numba compile it anew."""
        self._calls = []
        for name in ("dispatcher", "_by_numba"):
            self.__dict__.pop(name, None)

    def _find(self, arguments: tuple) -> Any:
        """Call what takes such arguments, and keep it at hand."""
        if builder is not None:
            return builder.call(self, arguments)
        with _counted():
            call = self._bound(arguments)
        if call is not None:
            result = call(*arguments)
            if result is not NotImplemented:
                self._calls = [call, *self._calls[: AT_HAND - 1]]
                return result
        is_plain = bool(module.addresses()) and not self.is_entry
        if not is_plain and not module.may_lack(self.name):
            from ptaskmodel.kernels.layout import kind_of

            raise RuntimeError(f"the module has no {self.name} for {kind_of(arguments)}")
        if is_plain or not module.has_numba():
            with _at_ease():
                return self.py_func(*map(interpretable, arguments))
        if not module.addresses():
            self._calls = [self._by_numba]
        with collector_as_usual():
            return self._by_numba(*arguments)

    @functools.cached_property
    def _by_numba(self) -> Any:
        """What Python calls where the module has no code for it."""
        from ptaskmodel.kernels import plain

        wanted = [each.name for each in all_kernels if isinstance(each, Late) and each.is_wanted]
        return plain.public(self, wanted)

    def _bound(self, arguments: tuple) -> Callable | None:
        """What calls machine code of the module with such arguments; None if it has none."""
        addresses = module.addresses()
        if not addresses:
            return None
        from ptaskmodel.kernels.layout import UnknownArgument, bind, kind_of

        try:
            address = addresses.get(module.symbol(self.name, kind_of(arguments)))
        except UnknownArgument:
            return None
        return None if address is None else bind(self.py_func.__name__, address, arguments)


class Late(Kernel):
    """A kernel that others call, built on its own (see `late`)."""

    is_late = True

    def __init__(self, function: Callable, example: str) -> None:
        super().__init__(function, False)
        self._example = example
        self.is_wanted = False

    @property
    def is_there(self) -> bool:
        if self.is_wanted or builder is not None:
            return True
        return module.is_ours(self.name) and bool(module.addresses())

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)

    def want(self) -> None:
        """Make it available to all its callers."""
        if not self.is_there:
            self.is_wanted = True
            for kernel in all_kernels:
                kernel.forget()

    @functools.cached_property
    def kind(self) -> str:
        """The kind of its arguments."""
        from ptaskmodel.kernels.layout import kind_of

        return kind_of(self.example())

    def example(self) -> tuple:
        """Arguments like those that it takes."""
        place, _, name = self._example.partition(":")
        made: tuple = getattr(importlib.import_module(place), name)()
        return made


class _Views(Kernel):
    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)


def interpretable(argument: Any) -> Any:
    """An argument as interpreted kernels take it: they read the fields of recarrays alone."""
    import numpy as np

    if isinstance(argument, np.ndarray):
        return argument.view(np.recarray) if argument.dtype.names else argument
    if isinstance(argument, tuple):
        items = [interpretable(item) for item in argument]
        return type(argument)(*items) if hasattr(argument, "_fields") else tuple(items)
    return argument


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
