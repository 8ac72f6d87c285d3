"""The one way kernels are compiled: kept, IEEE arithmetic, one thread.

An ``entry`` is a kernel for Python to call: it becomes machine code of its own, kept in a file. A
``jit`` kernel is a part of those that call it: numba types and lowers it once, but leaves its
optimisation and machine code to them, which halves the time of a first compilation. ``views`` are
parts that return views of their arguments. ``late`` kernels are called by others by their address:
they are machine code of their own, too, made only if somebody wants them.

Numba is imported when something must be compiled; kernels that are kept are linked and called
without it. That, and parts, reach into numba and Python's objects (`kernel_parts`), which is tried
once for each version. Where it does not work, or with ``PTASKMODEL_PLAIN_NUMBA=1``, kernels are
numba's dispatchers, made with what is public in it alone. With ``NUMBA_DISABLE_JIT=1`` they are
plain functions.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
# Kinds of arguments that a kernel keeps at hand; more are found again in its files.
AT_HAND = 8

# A compilation that takes longer is told of, as are all that follow it, once; s.
SILENT_S = 2.0

_AS_IT_IS = contextlib.nullcontext()

# Kernels that this process has had ready, by their names.
asked_for: dict[str, Kernel] = {}
# Wall time that this process has waited for kernels.
_spent_s = 0.0
_waits = 0
_only_compiles = False
_is_told = False


def as_compiled() -> AbstractContextManager[None]:
    """Lets interpreted kernels divide by zero without a word, as compiled ones do."""
    if not INTERPRETED:
        return _AS_IT_IS
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


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Warns of a compilation that takes a while where nobody has said so."""
    if _only_compiles or _is_told:
        yield
        return
    timer = threading.Timer(SILENT_S, _tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _tell() -> None:
    global _is_told
    _is_told = True
    logging.getLogger("ptaskmodel").warning(
        "compiling kernels, once (up to 40 s); `ptaskmodel warmup` does it ahead"
    )


def is_missing(kernel: Any, *arguments: Any) -> bool:
    """Whether a call with such arguments, the first of this process, would compile a kernel."""
    return isinstance(kernel, Kernel) and not kernel.is_at_hand and not kernel.is_kept(arguments)


class Stopwatch:
    """Wall time since it was made, s: spent on having kernels ready, and on all else."""

    def __init__(self) -> None:
        self._began, self._spent_before_s = time.perf_counter(), _spent_s

    @property
    def kernels_s(self) -> float:
        return _spent_s - self._spent_before_s

    @property
    def rest_s(self) -> float:
        return time.perf_counter() - self._began - self.kernels_s


def entry(function: Callable, *, allocates: bool = False) -> Any:
    """A kernel for Python to call: kept where a directory is writable, IEEE arithmetic.

    Division by zero gives inf or nan, as in numpy, never an exception: kernels return a status.
    Unless it ``allocates`` arrays, it counts no references to them. Called by another kernel it is
    a part of that.
    """
    return function if INTERPRETED else Kernel(function, allocates)


def jit(function: Callable, *, allocates: bool = False) -> Any:
    """Compile a kernel as a part of those that call it; called from Python, it is an entry."""
    return entry(function, allocates=allocates)


def late(example: str) -> Callable[[Callable], Any]:
    """A kernel that others call by its address: compiled on its own, once for all of them.

    So one that is large delays nobody who does not `want` it, and is compiled beside the others.
    It returns an integer; to those who call it though nobody wanted it, ``NOT_THERE``. example:
    ``module:function`` that makes arguments like those that it takes.
    """
    return lambda function: function if INTERPRETED else Late(function, example)


def want(kernel: Any) -> None:
    """Have a `late` kernel at hand for all who call it in this process."""
    if isinstance(kernel, Late) and not _only_compiles:
        kernel.want()


def is_wanted(kernel: Any) -> bool:
    """Whether a `late` kernel is at hand for all who call it."""
    return not isinstance(kernel, Late) or kernel.is_wanted


def only_compile() -> None:
    """From now on nothing is wanted: others compile late kernels meanwhile."""
    global _only_compiles
    _only_compiles = True


def only_compiles() -> bool:
    """Whether this process is for compiling alone (`only_compile`)."""
    return _only_compiles


def ask_anew() -> None:
    """Forget which kernels were asked for; those that are called from now on are, once more."""
    for kernel in asked_for.values():
        kernel.unbind()
    asked_for.clear()


def views(function: Callable) -> Any:
    """A part that returns views of its arguments; called from Python it is the plain function."""
    return function if INTERPRETED else _Views(function, False)


class Kernel:
    """A kernel: what numba compiles it as in others, and the machine code that Python calls."""

    def __init__(self, function: Callable, allocates: bool) -> None:
        self.py_func = function
        self.allocates = allocates
        self.name = f"{function.__module__}.{function.__qualname__}"
        self._calls: list[Callable] = []
        # By kind of arguments; None: numba itself must.
        self._addresses: dict[str, int | None] = {}
        # Those that its machine code is kept in, as far as this process has asked for it.
        self.files: set[str] = set()
        functools.update_wrapper(self, function)

    @functools.cached_property
    def dispatcher(self) -> Any:
        """What numba knows it by."""
        parts = _parts()
        if parts is not None:
            return parts.part(self.py_func, self.allocates)
        return self.public

    @functools.cached_property
    def public(self) -> Any:
        """A dispatcher of numba's, made by what is public in it."""
        return _public(self)

    @functools.cached_property
    def identity(self) -> str | None:
        """What tells it from any other kernel (`kernel_identity`); None: nothing does."""
        from ptaskmodel import kernel_identity

        try:
            return kernel_identity.identity(self.py_func)
        except kernel_identity.UnknownConstant:
            return None

    @property
    def _numba_type_(self) -> Any:
        """What numba asks of an object that a kernel refers to."""
        return self.dispatcher._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        for call in self._calls:
            result = call(*arguments)
            if result is not NotImplemented:
                return result
        return self.prepare(*arguments)(*arguments)

    def prepare(self, *arguments: Any) -> Callable:
        """Have it compiled, now if need be, for arguments like these; returns what to call."""
        from ptaskmodel import kernel_cache

        with _counted():
            asked_for[self.name] = self
            call = None if kernel_cache.plain() else self._bound(arguments)
        if call is not None:
            self._calls = [call, *self._calls[: AT_HAND - 1]]
            return call
        call = self.public
        # It takes whatever comes: it is at hand only where there is nothing else.
        if _parts() is None:
            self._calls = [call]
        return call

    @property
    def is_at_hand(self) -> bool:
        """Whether this process has called it before."""
        return bool(self._calls)

    def is_kept(self, arguments: tuple) -> bool:
        """Whether its machine code for arguments like these is there to be read."""
        from ptaskmodel import kernel_cache, kernel_code

        try:
            file = self._file(", ".join(map(kernel_code.layout, arguments)))
        except kernel_code.UnknownArgument:
            return False
        return kernel_cache.is_kept(file)

    def unbind(self) -> None:
        """Have the next call prepare it once more, which is quick for what is compiled."""
        self._calls = []

    def _bound(self, arguments: tuple) -> Callable | None:
        """What calls machine code with arguments like these; None if numba itself must."""
        from ptaskmodel import kernel_code

        try:
            kind = ", ".join(map(kernel_code.layout, arguments))
        except kernel_code.UnknownArgument:
            return None
        if kind not in self._addresses:
            try:
                self._addresses[kind] = self._address(kind, arguments)
            except kernel_code.UnknownArgument:
                self._addresses[kind] = None
        address = self._addresses[kind]
        if address is None:
            return None
        return kernel_code.bind(self.py_func.__name__, address, arguments)

    def _address(self, kind: str, arguments: tuple) -> int:
        """Where its machine code for a kind of arguments is, kept or compiled now."""
        from ptaskmodel import kernel_cache, kernel_code

        if not kernel_code.layout_is_known():
            raise kernel_code.UnknownArgument("objects of another Python")
        identity = self.identity
        file = self._file(kind)
        content = None if identity is None else kernel_cache.kept(file)
        linked = None if content is None else kernel_code.link(content)
        if linked is None:
            parts = _parts()
            if parts is None:
                raise kernel_code.UnknownArgument("numba as it is")
            with told():
                content = self._compiled(parts, arguments)
            linked = kernel_code.link(content)
            if identity is not None:
                kernel_cache.keep(file, content)
        if identity is not None:
            self.files.add(file)
        if linked is None:
            raise kernel_code.UnknownArgument("a kernel that calls what nobody has")
        for name, place in linked.places.items():
            _late_kernel(name).fill(place)
        return linked.address

    def _file(self, kind: str) -> str:
        """The file that its machine code for a kind of arguments is kept in."""
        from ptaskmodel import kernel_cache, kernel_code

        facts = (self.identity or "", repr(self.allocates), kind, kernel_code.processor())
        return kernel_cache.file_of(self.name, *facts)

    def _compiled(self, parts: Any, arguments: tuple) -> bytes:
        code: bytes = parts.compiled(self.py_func, self.allocates, arguments)
        return code


class Late(Kernel):
    """A kernel that is called by others by its address (see `late`)."""

    def __init__(self, function: Callable, example: str) -> None:
        super().__init__(function, False)
        self._example = example
        self._places: list[int] = []  # for its address, in the code of those who call it
        self.is_wanted = False
        self._found: int | None = None

    @functools.cached_property
    def dispatcher(self) -> Any:
        parts = _parts()
        return self.public if parts is None else parts.caller(self.name, self._arguments())

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)

    def want(self) -> None:
        """Have it at hand for all who call it."""
        if self.is_wanted:
            return
        self.is_wanted = True
        for place in self._places:
            self.fill(place)

    def fill(self, place: int) -> None:
        """Write its address in a place for it, now or once it is wanted."""
        from ptaskmodel import kernel_code

        if place not in self._places:
            self._places.append(place)
        if self.is_wanted:
            kernel_code.set_place(place, self.ready())

    def ready(self) -> int:
        """Have it compiled, now if need be; its address."""
        from ptaskmodel import kernel_code

        with _counted():
            asked_for[self.name] = self
            if self._found is None:
                arguments = self._arguments()
                kind = ", ".join(map(kernel_code.layout, arguments))
                self._found = self._address(f"late, {kind}", arguments)
        return self._found

    def _arguments(self) -> tuple:
        module, _, name = self._example.partition(":")
        made: tuple = getattr(importlib.import_module(module), name)()
        return made

    def _compiled(self, parts: Any, arguments: tuple) -> bytes:
        code: bytes = parts.compiled_late(self.py_func, arguments)
        return code


def _late_kernel(name: str) -> Late:
    """The kernel of a place for an address."""
    from ptaskmodel.kernel_code import LATE

    module, _, function = name.removeprefix(LATE).rpartition(".")
    found: Late = getattr(importlib.import_module(module), function)
    return found


class _Views(Kernel):
    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)


def _public(kernel: Kernel) -> Any:
    """A dispatcher of numba's, made and kept by what is public in it."""
    import numba

    from ptaskmodel import kernel_cache

    dispatcher = numba.njit(error_model="numpy")(kernel.py_func)
    place = kernel_cache.kernel_directory()
    if place is not None and kernel.identity is not None:
        name = kernel_cache.file_of(kernel.name, kernel.identity)
        config: Any = numba.config
        before, config.CACHE_DIR = config.CACHE_DIR, str(place / name)
        try:
            dispatcher.enable_caching()
        finally:
            config.CACHE_DIR = before
        kernel_cache.forget_old(place, name)
    return dispatcher


@functools.cache
def _parts() -> Any:
    """The module `kernel_parts` where it works with this numba, else None."""
    from ptaskmodel import kernel_cache, kernel_code

    if kernel_cache.plain():
        return None
    try:
        from ptaskmodel import kernel_parts
    except (ImportError, AttributeError):
        return None
    place = kernel_cache.cache_directory()
    known = None if place is None else place / f"parts-{kernel_code.compiler()}"
    with contextlib.suppress(OSError):
        if known is not None and known.exists():
            return kernel_parts if known.read_text() == "work" else None
    try:
        works = kernel_parts.works()
    except Exception:  # whatever a numba whose inside has changed makes of it
        works = False
    with contextlib.suppress(OSError):
        if known is not None:
            kernel_cache.write_whole(known, b"work" if works else b"do not work")
    return kernel_parts if works else None
