"""Where compiled kernels are kept, and what tells whether they are those of these sources.

Kernels call each other across files, so they are kept in a directory named by a digest of all
sources that can matter: change any and all are compiled anew. A file there is one kernel for one
kind of arguments, processor and Python; it is written whole.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import stat
import tempfile
import warnings
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
# Asks for nothing but what is public in numba (see `jit`).
PLAIN = "PTASKMODEL_PLAIN_NUMBA"
# Chooses the directory; the last resort is a directory of one's own in that of temporary files.
VARIABLE = "PTASKMODEL_CACHE_DIR"
REMEDY = f"set {VARIABLE} to a directory that can be written"
COMPILER = ("jit.py", "kernel_cache.py", "kernel_calls.py", "kernel_code.py", "kernel_parts.py")
_HOLDS_KERNELS = b"\nfrom ptaskmodel.jit import "
# How many sets of kernels, of different sources, stay in one directory.
KEPT = 4
# What a directory must take to be of use; bytes.
PROBE = 2**16


def kernel_sources() -> dict[str, bytes]:
    """Every file, by its path in the package, of the folders in which some file holds kernels.

    Constants that kernels read may be in a file beside them that holds none.
    """
    sources: dict[str, bytes] = {}
    for folder, folders, names in os.walk(PACKAGE):
        folders.sort()
        room = folder[len(str(PACKAGE)) + 1 :]
        files: dict[str, bytes] = {}
        for name in sorted(names):
            if name.endswith(".py"):
                with open(os.path.join(folder, name), "rb") as file:
                    files[os.path.join(room, name)] = file.read()
        if any(_HOLDS_KERNELS in source for source in files.values()):
            sources.update(files)
        elif folder == str(PACKAGE):
            sources.update((name, files[name]) for name in COMPILER)
    return sources


@functools.cache
def kernel_digest() -> str:
    """Digest of the sources of kernels; the identity of compiled code."""
    digest = hashlib.sha256()
    for name, source in kernel_sources().items():
        digest.update(name.encode() + b"\0" + source)
    return digest.hexdigest()[:16]


@functools.cache
def cache_directory() -> Path | None:
    """The first that can be written, None if none can.

    $PTASKMODEL_CACHE_DIR, $NUMBA_CACHE_DIR, the package's own, $XDG_CACHE_HOME or ~/.cache, one's
    own in that of temporary files.
    """
    user = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    places = [PACKAGE / "__pycache__", Path(user) / "ptaskmodel"]
    if os.environ.get("NUMBA_CACHE_DIR"):
        places.insert(0, Path(os.environ["NUMBA_CACHE_DIR"]) / "ptaskmodel")
    if os.environ.get(VARIABLE):
        places.insert(0, Path(os.environ[VARIABLE]))
    for place in places:
        if _can_be_written(place):
            return place
    place = Path(tempfile.gettempdir()) / f"ptaskmodel-{os.getuid()}"
    return place if _is_ours_alone(place) and _can_be_written(place) else None


def _can_be_written(place: Path) -> bool:
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(bytes(PROBE))
    except (OSError, ValueError):
        return False
    return True


def _is_ours_alone(place: Path) -> bool:
    """Whether nobody else can have put code there for us to run."""
    try:
        place.mkdir(mode=0o700, exist_ok=True)
        found = place.lstat()
    except OSError:
        return False
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.getuid()
        and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


@functools.cache
def kernel_directory() -> Path | None:
    """Where the kernels of these very sources are kept; None: nowhere."""
    place = cache_directory()
    return None if place is None else place / f"kernels-{kernel_digest()}"


def plain() -> bool:
    """Whether only what is public in numba is to be used."""
    return os.environ.get(PLAIN, "0") != "0"


def kept(name: str, kind: str) -> bytes | None:
    """What is kept of a kernel for one kind of use; None: nothing."""
    path = file_of(name, kind)
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError:
        return None


def keep(name: str, kind: str, content: bytes) -> None:
    """Keep that, if kernels are kept at all; forget old sets of kernels."""
    path = file_of(name, kind)
    if path is None:
        return
    place = path.parent
    try:
        if not place.exists():
            place.mkdir(exist_ok=True)
            _forget_old(place.parent)
        write_whole(path, content)
    except OSError as error:
        _warn_once(f"{error.filename or place}: {error.strerror or error}")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that other processes may be reading or writing. Raises OSError."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
    os.replace(file.name, path)


def file_of(name: str, kind: str) -> Path | None:
    """The file of a kernel for one kind of use; None where nothing can be kept."""
    place = kernel_directory()
    if place is None:
        return None
    digest = hashlib.sha256(f"{name}\0{kind}".encode()).hexdigest()[:16]
    return place / f"{name.removeprefix('ptaskmodel.')}-{digest}.code"


def _forget_old(place: Path) -> None:
    sets = sorted(place.glob("kernels-*"), key=lambda each: each.stat().st_mtime)
    for old in sets[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)


@functools.cache
def _warn_once(reason: str) -> None:
    """Say why kernels are not kept, for each reason once."""
    warnings.warn(f"compiled kernels cannot be kept ({reason}): {REMEDY}", stacklevel=2)
