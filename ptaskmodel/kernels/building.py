"""Build the extension module `ptaskmodel._kernels`, which holds all kernels.

    python -m ptaskmodel.kernels [--all-levels] [--to FILE]

Each kernel becomes an object file for each kind of arguments and each level of processors. Object
files stay in a cache directory of the user: unchanged kernels are not compiled again, and an
interrupted build continues. Then the C compiler links them, and the new module replaces the old one
atomically.

A kernel's identity is a digest of everything that determines its machine code. It covers its
instructions, the constants and kernels that they name, and recursively theirs. Late kernels, which
have machine code of their own, count by name and kind of arguments. So a kernel is compiled again
only when something in it changes. Comments, docstrings, other functions of its file and the
location of the package do not matter.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import concurrent.futures.process
import contextlib
import fcntl
import functools
import gc
import hashlib
import importlib
import json
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ptaskmodel.directories import cache_directory
from ptaskmodel.kernels import decorators, lowering, module
from ptaskmodel.kernels.decorators import Kernel, Late, interpretable
from ptaskmodel.kernels.layout import kind_of
from ptaskmodel.kernels.lowering import LEVELS
from ptaskmodel.memory import available_bytes

HERE = Path(__file__).resolve().parent
# What machine code depends on besides the kernels themselves.
COMPILER = ("entries.py", "layout.py", "lowering.py")
# What a process that compiles takes in the end.
PROCESS_BYTES = 2_200_000_000
# The function of a module, of any room, that uses kernels with all kinds of arguments that they are
# called with; late kernels have an example of their own.
PREPARE = "prepare_kernels"
# Where objects stay; by itself where what is made once is kept, for all checkouts of a user.
OBJECTS = "PTASKMODEL_KERNEL_OBJECTS"
KEPT_S = 30 * 86400
# How they become a module.
LINK_OPTIONS = {
    "linux": ["-shared", "-Wl,--strip-all"],
    "darwin": ["-bundle", "-undefined", "dynamic_lookup"],
}


NO_COMPILER = (
    "there is no C compiler; install one (Debian: gcc, libc6-dev), name it in $CC, "
    "or `pip install ziglang`"
)
ELSEWHERE = "build as its owner does, or name another FILE by --to"
GOES_ON = "the next build goes on from here"
MEND = f"mend that, or set {OBJECTS} to a directory elsewhere; {GOES_ON}"


class BuildFault(Exception):
    """The module cannot be built."""


class Job(NamedTuple):
    """A kernel to compile for one kind of arguments: what it is, under which name."""

    kernel: Kernel
    symbol: str
    arguments: tuple
    identity: str = ""

    def file(self, level: str) -> str:
        """The name of its object."""
        return f"{self.symbol}-{self.identity}-{level}.o"


# What is to be compiled.


class List:
    """Notes which kernels are called with which kinds of arguments, and interprets them."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self._depth = 0

    def note(self, kernel: Kernel, arguments: tuple) -> None:
        symbol = symbol_of(kernel, arguments)
        self.jobs.setdefault(symbol, Job(kernel, symbol, arguments))

    def call(self, kernel: Kernel, arguments: tuple) -> Any:
        if not self._depth:
            self.note(kernel, arguments)
            arguments = tuple(map(interpretable, arguments))
        self._depth += 1
        try:
            with np.errstate(all="ignore"):
                return kernel.py_func(*arguments)
        finally:
            self._depth -= 1

    def dispatcher(self, kernel: Kernel) -> Any:
        if isinstance(kernel, Late):
            arguments = kernel.example()
            return lowering.caller(kernel.name, symbol_of(kernel, arguments), arguments)
        return lowering.part(kernel.py_func, kernel.allocates)


def symbol_of(kernel: Kernel, arguments: tuple) -> str:
    """The name of the function of a kernel for arguments like these."""
    kind = kind_of(arguments)
    return module.symbol(kernel.name, f"late, {kind}" if kernel.is_late else kind)


def preparing() -> list[str]:
    """The modules that say how kernels are used."""
    mark = f"\ndef {PREPARE}("
    files = (file for file in HERE.parent.rglob("*.py") if mark in file.read_text("utf-8"))
    return sorted(
        ".".join(file.relative_to(HERE.parents[1]).with_suffix("").parts) for file in files
    )


def listed() -> list[Job]:
    """All kernels with the kinds of arguments that they are called with, the largest first."""
    decorators.builder = found = List()
    for name in preparing():
        getattr(importlib.import_module(name), PREPARE)()
    late = [kernel for kernel in decorators.all_kernels if isinstance(kernel, Late)]
    for kernel in late:
        found.note(kernel, kernel.example())
    jobs = [
        job._replace(identity=_digest(job.kernel.is_late, identity(job.kernel.py_func), compiler()))
        for job in found.jobs.values()
    ]
    return sorted(jobs, key=lambda job: -_size(job.kernel))


def _size(kernel: Any) -> int:
    """About how much there is to compile."""
    met, waiting, size = set(), [kernel], 0
    while waiting:
        function = waiting.pop()
        if function not in met:
            met.add(function)
            code = function.py_func.__code__
            size += len(code.co_code)
            named = [function.py_func.__globals__.get(name) for name in code.co_names]
            cells = [cell.cell_contents for cell in function.py_func.__closure__ or ()]
            waiting += [
                each for each in named + cells if isinstance(each, Kernel) and not each.is_late
            ]
    return size


def _digest(*facts: Any) -> str:
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def compiler() -> str:
    """What machine code is made by."""
    import llvmlite
    import numba

    ours = _digest(*((HERE / name).read_bytes() for name in COMPILER))
    return f"numba {numba.__version__}, llvmlite {llvmlite.__version__}, {ours}"


# Machine code.

# The jobs of this build, for the processes that it starts.
_jobs: list[Job] = []


def _compile(number: int, levels: tuple[str, ...], place: Path) -> int:
    """Write the objects of a kernel."""
    job = _jobs[number]
    kernel = job.kernel
    function, facts = kernel.py_func, (kernel.allocates, kernel.is_late, job.arguments)
    for level, content in lowering.compiled(function, *facts, job.symbol, levels):
        part = place / f"part-{os.getpid()}"
        part.write_bytes(content)
        part.replace(place / job.file(level))
    return number


def compile_missing(jobs: Sequence[Job], levels: tuple[str, ...], place: Path) -> int:
    """Compile what is not there yet, in several processes; how many."""
    _jobs[:] = [job for job in jobs if not all((place / job.file(x)).exists() for x in levels)]
    count = len(_jobs)
    if not count:
        return 0
    say(f"{count} of {len(jobs)} to compile (all take a minute or two)")
    began = time.monotonic()
    gc.disable()  # what compiles leaves little behind
    fork = multiprocessing.get_context("fork")
    processes = min(processes_for(available_bytes()), count)
    pool = concurrent.futures.ProcessPoolExecutor(processes, fork, _end_with_parent)
    with pool:
        waiting = [pool.submit(_compile, number, levels, place) for number in range(count)]
        try:
            for done, each in enumerate(concurrent.futures.as_completed(waiting), 1):
                kernel = _jobs[each.result()].kernel
                passed = time.monotonic() - began
                say(f"{done} of {count} compiled, {passed:.0f} s: {kernel.name}", done < count)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():
                worker.kill()  # some kernels take a minute
            raise
    return count


def _end_with_parent() -> None:
    """End this process with that which started it, even a killed one: it holds the lock, too."""
    parent: Any = multiprocessing.parent_process()
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


def processes_for(free_bytes: int) -> int:
    """How many processes compile at a time: one a core, as far as `free_bytes` serve."""
    return max(1, min(_cores(), free_bytes // PROCESS_BYTES))


def _cores() -> int:
    """How many processes can compute at a time."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def say(text: str, goes_on: bool = False) -> None:
    """A line on standard error, on a terminal written over by the next if it goes on."""
    shown = sys.stderr.isatty()
    start, end = ("\r\033[K", "" if goes_on else "\n") if shown else ("", "\n")
    print(f"{start}kernels: {text}", end=end, file=sys.stderr, flush=True)


# The module.


def link(jobs: Iterable[Job], levels: tuple[str, ...], place: Path, target: Path) -> None:
    """Link the objects into a module, which takes its place when it is whole."""
    jobs = sorted(jobs, key=lambda job: job.symbol)
    rows = " ".join(f"X({job.symbol}, level)" for job in jobs)
    (place / "table.h").write_text(
        f"#define KERNELS(level) {rows}\n"
        f"#define LEVELS {' '.join(f'Y({level})' for level in levels)}\n"
        + "".join(f"#define HAS_{level}\n" for level in levels)
        + f"#define COMPILER {json.dumps(compiler())}\n"
        + f"#define STAMPS {json.dumps(' '.join(_stamps))}\n"
    )
    part = target.with_name(f".{target.name}-{os.getpid()}")
    command = [
        *module.compiler_command(), *LINK_OPTIONS.get(sys.platform, ["-shared"]), "-O2", "-fPIC",
        "-fvisibility=hidden", "-I", str(place), "-o", str(part), str(HERE / "kernels.c"),
        *(str(place / job.file(level)) for job in jobs for level in levels), "-lm",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
            raise BuildFault(
                f"{command[0]} cannot link the module: {lines[0][:200]}; mend that, "
                "or name another compiler in $CC"
            )
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


# Of the sources as they were read.
_stamps: tuple[str, str] = ("", "")


def build(levels: tuple[str, ...], place: Path, target: Path, quiet: bool = False) -> None:
    """Build the module. quiet: say nothing unless something is to be compiled."""
    global _stamps
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock, contextlib.suppress(KeyboardInterrupt):
        _wait_for(lock)
        for begun in (*place.glob("part-*"), *target.parent.glob(f".{target.name}-*")):
            begun.unlink(missing_ok=True)  # by a build that was killed
        began = time.monotonic()
        _stamps = module.stamps()
        jobs = listed()
        count = compile_missing(jobs, levels, place)
        link(jobs, levels, place, target)
        if count or not quiet:
            say(f"{len(jobs)} in {target}, {time.monotonic() - began:.0f} s")
        _forget_old([place / job.file(level) for job in jobs for level in levels], place)
        return
    raise BuildFault(f"stopped; {GOES_ON}")


def _wait_for(lock: Any) -> None:
    """Let another build end first."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(f"another build goes on, waiting for it; to build apart, set {OBJECTS}")
        fcntl.flock(lock, fcntl.LOCK_EX)


def _forget_old(used: Iterable[Path], place: Path) -> None:
    """Remove objects that no build has used for long."""
    for each in used:
        os.utime(each)
    oldest = time.time() - KEPT_S
    for each in place.glob(f"{module.SYMBOL}*"):
        if each.stat().st_mtime < oldest:
            each.unlink(missing_ok=True)


def main() -> None:
    """Build as the command line has it."""
    options = argparse.ArgumentParser(prog="python -m ptaskmodel.kernels")
    options.add_argument("--all-levels", action="store_true", help="for any processor")
    options.add_argument("--to", type=Path, default=module.FILE, metavar="FILE")
    options.add_argument("--quiet", action="store_true", help="say what is compiled alone")
    chosen = options.parse_args()
    levels = tuple(LEVELS) if chosen.all_levels else (lowering.own_level(),)
    kept = cache_directory() or module.PACKAGE.parent / "build"
    place = Path(os.environ.get(OBJECTS) or kept / "objects")
    try:
        if not module.compiler_command():
            raise BuildFault(NO_COMPILER)
        if not os.access(chosen.to.resolve().parent, os.W_OK):
            raise BuildFault(f"{chosen.to.resolve().parent} cannot be written; {ELSEWHERE}")
        build(levels, place.resolve(), chosen.to.resolve(), chosen.quiet)
    except BuildFault as fault:
        sys.exit(f"kernels: {fault}")
    except concurrent.futures.process.BrokenProcessPool:
        sys.exit(f"kernels: a process was killed (memory?); {GOES_ON}")
    except OSError as fault:
        sys.exit(f"kernels: {fault.filename or place}: {fault.strerror or fault}; {MEND}")


class UnknownConstant(TypeError):
    """A kernel names what its machine code may depend on in unknown ways."""


def identity(function: Callable) -> str:
    """The digest of a kernel, a plain function here.

    Raises UnknownConstant if it names anything but kernels, numbers, types and modules.
    """
    met = {function: 0}
    waiting = [function]
    digest = hashlib.sha256()
    while waiting:
        facts, named = _facts(waiting.pop())
        digest.update(facts)
        for each in named:
            if each not in met:
                met[each] = len(met)
                waiting.append(each)
            digest.update(b"%d," % met[each])
    return digest.hexdigest()[:16]


@functools.lru_cache(maxsize=4096)
def _facts(function: Any) -> tuple[bytes, tuple[Callable, ...]]:
    """What a function alone says, and the kernels that it names."""
    if not isinstance(function, FunctionType):
        raise UnknownConstant(repr(function))
    code = function.__code__
    named: list[Callable] = []
    facts = [repr(tuple(_written(code))), repr(function.__defaults__)]
    names = sorted({name for part in _parts(code) for name in part.co_names})
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    values = [(name, function.__globals__[name]) for name in names if name in function.__globals__]
    for name, value in [*values, *((name, cell.cell_contents) for name, cell in cells)]:
        inner = getattr(value, "py_func", None)
        if getattr(value, "is_late", False):
            facts.append(f"{name} late {value.name} {value.kind}")
        elif inner is not None:
            named.append(inner)
            facts.append(f"{name} {type(value).__name__} {getattr(value, 'allocates', None)}")
        else:
            facts.append(f"{name} {_constant(value)}")
    return "\n".join(facts).encode(), tuple(named)


def _parts(code: CodeType) -> Iterator[CodeType]:
    """A code object and those of the functions within."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)


def _written(code: CodeType) -> Iterator[Any]:
    """What code says, but for where it stands."""
    for part in _parts(code):
        yield part.co_code
        yield part.co_names, part.co_varnames, part.co_freevars, part.co_cellvars
        yield part.co_argcount, part.co_posonlyargcount, part.co_kwonlyargcount, part.co_flags
        # The first constant of a function is its docstring, or None.
        constants = part.co_consts if part.co_name == "<lambda>" else (None, *part.co_consts[1:])
        yield [None if isinstance(each, CodeType) else each for each in constants]


def _constant(value: Any) -> str:
    """A constant as text that tells it from any other."""
    if isinstance(value, (bool, int, float, str, type(None), np.generic)):
        return f"{type(value).__name__} {value!r}"
    if type(value) is tuple:
        return f"({', '.join(map(_constant, value))})"
    if isinstance(value, ModuleType) and not value.__name__.startswith("ptaskmodel"):
        return f"module {value.__name__}"
    if isinstance(value, type):
        fields = getattr(value, "_fields", ()), getattr(value.__new__, "__defaults__", None)
        return f"{value.__module__}.{value.__qualname__} {fields}"
    raise UnknownConstant(repr(value))
