"""Load the machine code that comes with the package: the extension module `ptaskmodel._kernels`.

Each kernel, for each kind of arguments, is one function of the module, named by a digest of both.
Loading needs only the system's loader, neither numba nor llvmlite. The module contains stamps of
the sources that it was built from. If the sources of a checkout have changed, calling a kernel
rebuilds what has changed. If that is impossible, or in an installed package, a module of other
sources is ignored.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import logging
import os
import sys
from pathlib import Path
from struct import unpack_from
from typing import Any

from ptaskmodel.errors import PTaskModelError

PACKAGE = Path(__file__).resolve().parent.parent
NAME = "_kernels.abi3.so"
FILE = PACKAGE / NAME
# Begins the names of all functions of the module.
SYMBOL = "pk_"
# Of ELF files: how they begin, bytes of the header, its fifth byte if words have 64 bits; names of
# the numbers of processors.
ELF, ELF_BYTES, BITS_64 = b"\x7fELF", 64, 2
PROCESSORS = {
    3: "x86",
    21: "ppc64",
    22: "s390x",
    40: "ARM",
    62: "x86-64",
    183: "aarch64",
    243: "RISC-V",
}
# How kernels are run; by itself: by the module, what it has not by numba if there is one.
VARIABLE = "PTASKMODEL_KERNELS"
WAY = os.environ.get(VARIABLE, "")
WAYS = MODULE, NUMBA, INTERPRETED = "module", "numba", "interpreted"
if WAY not in ("", *WAYS):
    raise PTaskModelError(f"{VARIABLE}: '{WAY}' is unknown; use one of {', '.join(WAYS)}")
SLOW = "kernels run interpreted, some hundred times slower"
BY_NUMBA = "numba compiles kernels as they are called, once, up to a minute in all"

_log = logging.getLogger("ptaskmodel")


def symbol(kernel: str, kind: str) -> str:
    """The name of the function of a kernel for a kind of arguments."""
    return SYMBOL + hashlib.sha256(f"{kernel}\0{kind}".encode()).hexdigest()[:16]


def is_checkout() -> bool:
    """Return whether the sources are in a checkout, not installed."""
    return (PACKAGE.parent / "pyproject.toml").exists()


def stamps() -> tuple[str, str]:
    """What tells the sources from those before and after a change: by sizes, by sizes and dates."""
    found: list[tuple[str, int, int]] = []

    def look(folder: str) -> None:
        with os.scandir(folder) as entries:
            for each in entries:
                if each.is_dir():
                    if each.name != "__pycache__":
                        look(each.path)
                elif each.name.endswith(".py"):
                    about = each.stat()
                    found.append((each.path[start:], about.st_size, about.st_mtime_ns))

    start = len(str(PACKAGE))
    look(str(PACKAGE))
    found.sort()
    return _digest([each[:2] for each in found]), _digest(found)


def _digest(facts: list) -> str:
    return "stamp " + hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def has_numba() -> bool:
    """Whether there is a numba that kernels may be compiled by."""
    return WAY != INTERPRETED and importlib.util.find_spec("numba") is not None


def compiler_command() -> list[str]:
    """The C compiler: $CC, else cc, else that of the package ziglang; empty if there is none."""
    import shlex
    import shutil

    named = os.environ.get("CC")
    command = shlex.split(named or "cc")
    if shutil.which(command[0]):
        return command
    if not named and importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc", "-mcpu=baseline"]
    return []


def are_interpreted() -> bool:
    """Whether all kernels are plain functions, as this process begins."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0") or WAY == INTERPRETED:
        return True
    return not (WAY or FILE.exists() or has_numba())


def is_ours(kernel: str) -> bool:
    """Whether a kernel is one of the package, by its name."""
    return kernel.startswith("ptaskmodel.")


def may_lack(kernel: str) -> bool:
    """Whether the module need not have a kernel."""
    return WAY != MODULE or not is_ours(kernel)


@functools.cache
def say_why_interpreted() -> None:
    """Say once that kernels run interpreted though this was not requested, why, and the remedy."""
    if not (WAY or os.environ.get("NUMBA_DISABLE_JIT")):
        _log.warning("%s: %s is not there; %s", SLOW, NAME, _remedy())


def _remedy() -> str:
    if is_checkout():
        return "`pip install --editable '.[jit]'`, then `make kernels`"
    anew = "install the package anew where there is a C compiler"
    return anew if has_numba() else f"{anew}, or `pip install numba`"


@functools.cache
def loaded() -> Any:
    """The module. Raises ImportError."""
    spec = importlib.util.spec_from_file_location("ptaskmodel._kernels", FILE)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@functools.cache
def made_by() -> str:
    """What kernels are compiled by, and for which processors; or how they run without a module."""
    if are_interpreted():
        return INTERPRETED
    if not addresses():
        return NUMBA if has_numba() else INTERPRETED
    return f"{loaded().compiler}, {loaded().level}"


@functools.cache
def addresses() -> dict[str, int]:
    """Where functions are, by name; empty if there is no module to use."""
    if WAY in (NUMBA, INTERPRETED):
        return {}
    from ptaskmodel.kernels.layout import layout_is_known

    fault = None if layout_is_known() else "objects of this Python lie otherwise than known"
    fault = fault or _stale()
    if fault and is_checkout() and layout_is_known():
        fault = _build(fault)
    if not fault:
        try:
            found: dict[str, int] = loaded().addresses
        except ImportError as refused:
            fault = f"{NAME}: {refused}"
        else:
            return found
    if WAY == MODULE:
        raise RuntimeError(f"{fault}; {_remedy()}")
    _log.warning("%s: %s; %s", BY_NUMBA if has_numba() else SLOW, fault, _remedy())
    return {}


def _stale() -> str | None:
    """Why the module is not to be used; None: it may be."""
    try:
        content = FILE.read_bytes()
    except FileNotFoundError:
        return f"{NAME} is not there"
    except OSError as error:
        return f"{NAME} cannot be read ({error.strerror})"
    if problem := _damage(content):
        return f"{NAME} {problem}"
    if stamps()[is_checkout()].encode() not in content:
        return f"{NAME} was built of other sources"
    return None


def _damage(content: bytes) -> str | None:
    """What is wrong with a module that the loader of Linux misnames, or crashes by; None: nothing.

    Source: ELF header of the System V ABI. Linkers write the table of sections last.
    """
    if not content:
        return "is empty"
    if not content.startswith(ELF):
        return None
    if len(content) < ELF_BYTES:
        return "is cut off"
    with contextlib.suppress(OSError), open("/proc/self/exe", "rb") as program:
        given, own = _processor(content), _processor(program.read(ELF_BYTES))
        if given != own:
            return f"is for {given} processors, and this is {own}"
    order = _order(content)
    (begin,), (size, count) = (
        unpack_from(f"{order}Q", content, 40),
        unpack_from(f"{order}2H", content, 58),
    )
    return "is cut off" if begin + size * count > len(content) else None


def _order(head: bytes) -> str:
    """The order of bytes in the numbers of an ELF file."""
    return ">" if head[5] == 2 else "<"


def _processor(head: bytes) -> str:
    """What processors an ELF file that begins so is for, as Linux names them."""
    (number,) = unpack_from(f"{_order(head)}H", head, 18)
    name = PROCESSORS.get(number, f"other (ELF machine {number})")
    return name if head[4] == BITS_64 else f"32-bit {name}"


def _build(fault: str) -> str | None:
    """Build what has changed; None, or why there still is no module."""
    if not has_numba():
        return f"{fault}, numba is not installed"
    if not compiler_command():
        return f"{fault}, there is no C compiler (`pip install ziglang` brings one)"
    if not os.access(PACKAGE, os.W_OK):
        return f"{fault}, {PACKAGE} cannot be written"
    if getattr(sys, "frozen", False) or not sys.executable:
        return f"{fault}, this program is no interpreter"
    import subprocess

    places = [str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        # -P: nothing from where the user happens to be
        [sys.executable, "-P", "-m", "ptaskmodel.kernels", "--quiet"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places)), VARIABLE: ""},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=None if _log.isEnabledFor(logging.WARNING) else subprocess.DEVNULL,
        check=False,
    )
    return f"{fault}, and cannot be built" if done.returncode else _stale()
