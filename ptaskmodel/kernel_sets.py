"""Kernels that are used together: a line for each set, and the processes that compile them ahead.

Kernels are compiled when they are first called; this has several compiled at once, by a process for
each core, and lets somebody watch.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ptaskmodel import jit, kernel_cache

# What prepares the kernels of each set, for example by calling them; the longest first.
SETS = {
    "collectives": "ptaskmodel.replay.warming:prepare_collectives",
    "acting ranks": "ptaskmodel.replay.warming:prepare_ranks",
    "replays": "ptaskmodel.replay.warming:prepare_loop",
    "ranks and tasks": "ptaskmodel.simulation.warming:prepare_ranks",
    "beside replays": "ptaskmodel.replay.warming:prepare_beside",
    "sharing": "ptaskmodel.simulation.warming:prepare_sharing",
    "tasks": "ptaskmodel.simulation.warming:prepare_loop",
    "max-min": "ptaskmodel.simulation.warming:prepare_max_min",
    "other rules": "ptaskmodel.simulation.warming:prepare_other_rules",
    "front ends": "ptaskmodel.simulation.warming:prepare_front_ends",
    "levels": "ptaskmodel.simulation.warming:prepare_levels",
    "routes": "ptaskmodel.simulation.warming:prepare_routes",
    "batches of tasks": "ptaskmodel.batch.compiled_ptasks:prepare_kernels",
    "bmf": "ptaskmodel.simulation.warming:prepare_bmf",
    "changes": "ptaskmodel.simulation.warming:prepare_changes",
    "batches": "ptaskmodel.batch.compiled_loop:load_kernel",
    "laying": "ptaskmodel.simulation.warming:prepare_laying",
    "energy": "ptaskmodel.energy.meter:prepare_kernels",
    "slurm": "ptaskmodel.batch.slurm.quick_cycle:prepare_kernels",
    "reading": "ptaskmodel.simulation.warming:prepare_reading",
}
# Of any simulation by bmf on one cluster ("bmf" itself solves what levels give up, which is rare).
SIMULATION = ("tasks", "levels", "laying")
# What finds rates, by solver.
RATES = {"bmf": "levels", "maxmin": "max-min"}
ENERGY = ("energy",)
REPLAY = ("collectives", "acting ranks", "replays", "beside replays", "max-min", "routes")
# Of traces as tasks, besides those of a simulation.
RANKS = ("ranks and tasks", "acting ranks", "collectives")
SLURM = ("slurm",)
POLL_S = 0.05
# In the environment of a process that compiles for another: it starts none itself, even if what it
# runs is not an interpreter but, once more, a program with one inside.
WORKER = "PTASKMODEL_KERNEL_WORKER"
# What a process that compiles tells of: a kernel, or all of a set.
KERNEL, SET = ".", "\n"

_log = logging.getLogger(__name__)


class Stand(NamedTuple):
    """How far the compilation of sets is: those in progress, those done, and the wall time, s.

    kernels: how many functions have been compiled so far.
    """

    running: tuple[str, ...]
    done: tuple[str, ...]
    total: int
    elapsed_s: float
    kernels: int = 0


Told = Callable[[Stand], None]


def of_tasks(solver: str, one_cluster: bool) -> tuple[str, ...]:
    """The sets that a simulation of tasks is likely to use.

    solver: by which tasks share. one_cluster: parallel tasks inside one cluster alone.
    """
    rates = RATES.get(solver, "other rules")
    return ("tasks", rates, "laying", *(() if one_cluster else ("routes",)))


def missing(sets: Iterable[str] = SETS) -> list[str]:
    """Those of the sets that have yet to be compiled, as their kernels are now."""
    if jit.INTERPRETED:
        return []
    return [name for name in sets if not _is_compiled(name)]


def _is_compiled(name: str) -> bool:
    content = kernel_cache.kept(_mark(name))
    if content is None:
        return False
    try:
        noted = json.loads(content)
        return all(
            _identity(kernel) == identity and all(map(kernel_cache.is_kept, files))
            for kernel, (identity, files) in noted.items()
        )
    except (AttributeError, ImportError, TypeError, ValueError):
        return False


def _identity(kernel: str) -> str | None:
    """What a kernel is now; "module:name" is its name."""
    module, _, name = kernel.partition(":")
    found = getattr(importlib.import_module(module), name)
    return found.identity if isinstance(found, jit.Kernel) else None


def prepare(name: str) -> None:
    """Compile a set in this process, if need be, and note that it is kept."""
    jit.only_compile()
    jit.ask_anew()
    module, _, function = SETS[name].partition(":")
    getattr(importlib.import_module(module), function)()
    noted = {
        f"{kernel.py_func.__module__}:{kernel.py_func.__name__}": (
            kernel.identity,
            sorted(kernel.files),
        )
        for kernel in jit.asked_for.values()
    }
    kernel_cache.keep(_mark(name), json.dumps(noted).encode())


def _cores() -> int:
    """How many processes can compute at a time."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def work() -> None:
    """Compile the sets named on standard input, one after the other, as `_Worker` wants it.

    What sets have in common is typed and lowered once.
    """
    gc.disable()  # what compiles leaves little behind
    with contextlib.suppress(ImportError, AttributeError):  # a numba that has changed inside
        from ptaskmodel import kernel_parts

        kernel_parts.told.append(lambda: print(end=KERNEL, flush=True))
    for line in sys.stdin:
        prepare(line.removesuffix("\n"))
        gc.collect()
        print(end=SET, flush=True)


def compile_sets(sets: Iterable[str] = SETS, told: Told | None = None) -> None:
    """Compile the sets that are missing, the longest first, as many at a time as there are cores.

    Where nothing can be kept, or no process started, nothing is done: kernels are then compiled
    when they are called.
    told: hears now and then how far it is.
    """
    wanted = missing(sets)
    waiting = [name for name in SETS if name in wanted]
    if not waiting or kernel_cache.kernel_directory() is None or not _can_start_python():
        return
    total, began = len(waiting), time.perf_counter()
    _log.info("compiling sets of kernels: %s", ", ".join(waiting))
    workers: list[_Worker] = []
    done: list[str] = []
    try:
        while len(done) < total:
            while waiting and (worker := _idle(workers)) is not None:
                worker.begin(waiting.pop(0))
            if all(worker.is_over and not worker.name for worker in workers):
                break  # no process can be started, or no more
            time.sleep(POLL_S)
            done += [name for worker in workers if (name := worker.ended()) is not None]
            if told is not None:
                running = tuple(worker.name for worker in workers if worker.name)
                elapsed = time.perf_counter() - began
                kernels = sum(worker.kernels for worker in workers)
                told(Stand(running, tuple(done), total, elapsed, kernels))
    finally:
        for worker in workers:
            worker.close()
        jit.waited(time.perf_counter() - began)


def compile_with(kernel: Any, arguments: tuple, sets: Callable[[], Iterable[str]]) -> None:
    """Compile sets, before the first call of a kernel of one of them, if that would compile it.

    So who calls it waits for the longest set, not for one after the other. In a process that
    another has made to compute for it, nothing is done: there may be many of these.
    """
    if not jit.is_missing(kernel, *arguments) or jit.only_compiles():
        return
    import multiprocessing

    if multiprocessing.parent_process() is None:
        with jit.told():
            compile_sets(sets())


def _can_start_python() -> bool:
    """Whether the program of this process is an interpreter, and no worker of another."""
    frozen = getattr(sys, "frozen", False)
    return bool(sys.executable) and not frozen and WORKER not in os.environ


def _idle(workers: list[_Worker]) -> _Worker | None:
    """Somebody to compile a set, added to the workers where there was none; None: all are busy."""
    for worker in workers:
        if not worker.name and not worker.is_over:
            return worker
    if sum(not worker.is_over for worker in workers) < _cores():
        try:
            workers.append(_Worker())
        except OSError as fault:  # too many, or the interpreter cannot be started again
            _log.info("kernels are compiled where they are called: no process (%s)", fault)
        else:
            return workers[-1]
    return None


def environment_of_own() -> dict[str, str]:
    """Of a process that imports the package that this one has."""
    places = [str(kernel_cache.PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}


class _Worker:
    """A process that compiles sets, one at a time.

    It ends where one goes wrong: what it is comes up again where its kernels are called.
    name: of the set that it compiles, if any. kernels: how many functions it has compiled.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            # -P: nothing from where the user happens to be
            [sys.executable, "-P", "-c", "from ptaskmodel import kernel_sets; kernel_sets.work()"],
            env={**environment_of_own(), WORKER: "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders, self._told = self._process.stdin, self._process.stdout
        os.set_blocking(self._told.fileno(), False)
        self.name, self.kernels, self.is_over = "", 0, False

    def begin(self, name: str) -> None:
        """Have a set compiled."""
        self.name = name
        with contextlib.suppress(BrokenPipeError):  # then it is over
            self._orders.write(f"{name}\n".encode())
            self._orders.flush()

    def ended(self) -> str | None:
        """The set that has been compiled, or went wrong, since this was last asked."""
        self.is_over = self._process.poll() is not None
        told = (self._told.read() or b"").decode()
        self.kernels += told.count(KERNEL)
        if not self.name or not (self.is_over or SET in told):
            return None
        name, self.name = self.name, ""
        return name

    def close(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):
            self._orders.close()
        self._told.close()


def _mark(name: str) -> str:
    """The file that says of which kernels a set is, once they are compiled.

    Copies of the package that share a cache may differ in kernels: each has a mark of its own.
    """
    from ptaskmodel.kernel_code import processor

    return kernel_cache.file_of(
        f"set-{name.replace(' ', '-')}",
        str(kernel_cache.plain()),
        processor(),
        str(kernel_cache.PACKAGE),
    )
