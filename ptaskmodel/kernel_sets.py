"""Kernels that are used together: a line for each set, and the processes that compile them ahead.

Kernels are compiled when they are first called; this makes several do it at once, each in a
process of its own, and lets somebody watch.
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
from typing import NamedTuple

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
# Of any simulation by bmf on one cluster ("bmf" itself solves what levels give up, which is rare);
# what others use, besides or instead.
SIMULATION = ("tasks", "levels", "laying")
LEVELS = ("levels",)
ROUTES = ("routes",)
OTHER_RULES = ("max-min", "other rules")
ENERGY = ("energy",)
REPLAY = ("collectives", "acting ranks", "replays", "beside replays", "max-min", "routes")
SLURM = ("slurm",)
POLL_S = 0.05

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
        return all(_identity(kernel) == identity for kernel, identity in noted.items())
    except (AttributeError, ImportError, ValueError):
        return False


def _identity(kernel: str) -> str | None:
    """What a kernel is now; "module:name" is its name."""
    module, _, name = kernel.partition(":")
    found = getattr(importlib.import_module(module), name)
    return found.identity if isinstance(found, jit.Kernel) else None


def prepare(name: str) -> None:
    """Compile a set in this process, if need be, and note that it is kept."""
    jit.only_compile()
    module, _, function = SETS[name].partition(":")
    getattr(importlib.import_module(module), function)()
    noted = {
        f"{kernel.py_func.__module__}:{kernel.py_func.__name__}": kernel.identity
        for kernel in jit.asked_for.values()
    }
    kernel_cache.keep(_mark(name), json.dumps(noted).encode())


def _cores() -> int:
    """How many processes can compute at a time."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def prepare_watched(name: str) -> None:
    """The same in a process of its own; a character on standard output tells of each kernel."""
    gc.disable()  # what compiles leaves little behind
    with contextlib.suppress(ImportError, AttributeError):  # a numba that has changed inside
        from ptaskmodel import kernel_parts

        kernel_parts.told.append(lambda: print(end=".", flush=True))
    prepare(name)


def compile_sets(sets: Iterable[str] = SETS, told: Told | None = None) -> None:
    """Compile the sets that are missing, the longest first, as many at a time as there are cores.

    Where nothing can be kept, or no process started, nothing is done: kernels are then compiled
    when they are called.
    told: hears now and then how far it is.
    """
    wanted = missing(sets)
    waiting = [name for name in SETS if name in wanted]
    if not waiting or kernel_cache.kernel_directory() is None or not sys.executable:
        return
    total, began = len(waiting), time.perf_counter()
    _log.info("compiling sets of kernels: %s", ", ".join(waiting))
    running: dict[str, subprocess.Popen] = {}
    done: list[str] = []
    kernels = 0
    try:
        while waiting or running:
            while waiting and len(running) < _cores():
                name = waiting.pop(0)
                try:
                    running[name] = _process(name)
                except OSError as fault:  # too many, or the interpreter cannot be started again
                    _log.info("%s is compiled where it is called: no process (%s)", name, fault)
            time.sleep(POLL_S)
            over = [name for name, process in running.items() if process.poll() is not None]
            kernels += sum(map(_told_since, running.values()))
            for name in over:
                _close(running.pop(name))
            done += over
            if told is not None:
                elapsed = time.perf_counter() - began
                told(Stand(tuple(running), tuple(done), total, elapsed, kernels))
    finally:
        for process in running.values():
            process.kill()
            process.wait()
            _close(process)
        jit.waited(time.perf_counter() - began)


def _process(name: str) -> subprocess.Popen:
    """A process that compiles a set; what goes wrong in it comes up again where it is called."""
    code = f"from ptaskmodel import kernel_sets; kernel_sets.prepare_watched({name!r})"
    places = [str(kernel_cache.PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", code],  # nothing from where the user happens to be
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    return process


def _close(process: subprocess.Popen) -> None:
    assert process.stdout is not None
    process.stdout.close()


def _told_since(process: subprocess.Popen) -> int:
    """How many kernels a process has compiled since this was last asked."""
    assert process.stdout is not None
    return len(process.stdout.read() or b"")


def _mark(name: str) -> str:
    """The file that says of which kernels a set is, once they are compiled."""
    from ptaskmodel.kernel_code import processor

    return kernel_cache.file_of(
        f"set-{name.replace(' ', '-')}", str(kernel_cache.plain()), processor()
    )
