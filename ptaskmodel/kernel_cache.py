"""Where compiled kernels are kept, by what they are and for which arguments and processor.

A file is one kernel for one kind of arguments, processor and Python; it is written whole.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import hashlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

from ptaskmodel.remarks import warn

PACKAGE = Path(__file__).resolve().parent
# Asks for nothing but what is public in numba (see `jit`).
PLAIN = "PTASKMODEL_PLAIN_NUMBA"
# Chooses the directory; the last resort is a directory of one's own in that of temporary files.
VARIABLE = "PTASKMODEL_CACHE_DIR"
REMEDY = f"set {VARIABLE} to a directory that can be written"
KERNELS = "kernels"
# Of how many sources, kinds of arguments, processors and Pythons a kernel stays; the last made.
KEPT = 16
# What a directory must take to be of use; bytes.
PROBE = 2**16


@functools.cache
def cache_directory() -> Path | None:
    """The first that can be written, None if none can.

    $PTASKMODEL_CACHE_DIR, $NUMBA_CACHE_DIR, a checkout's own, $XDG_CACHE_HOME or ~/.cache, one's
    own in that of temporary files. Never within an installed package: what pip has not put there
    outlives it, as a package without content that hides the next one.
    """
    user = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    places = [Path(user) / "ptaskmodel"]
    if (PACKAGE.parent / "pyproject.toml").exists():
        places.insert(0, PACKAGE / "__pycache__")
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


def kernel_directory() -> Path | None:
    """Where kernels are kept; None: nowhere."""
    place = cache_directory()
    return None if place is None else place / KERNELS


def plain() -> bool:
    """Whether only what is public in numba is to be used."""
    return os.environ.get(PLAIN, "0") != "0"


def kept(name: str) -> bytes | None:
    """What is kept in a file of this name; None: nothing.

    Where the package is installed for others, what is kept beside it can be read and no more.
    """
    for place in {kernel_directory(): None, PACKAGE / "__pycache__" / KERNELS: None}:
        with contextlib.suppress(OSError):
            if place is not None:
                return (place / name).read_bytes()
    return None


def is_kept(name: str) -> bool:
    """Whether there is something that `kept` would read."""
    places = kernel_directory(), PACKAGE / "__pycache__" / KERNELS
    return any(place is not None and (place / name).exists() for place in places)


def keep(name: str, content: bytes) -> None:
    """Keep that, if anything is kept at all."""
    place = kernel_directory()
    if place is None:
        return
    try:
        place.mkdir(exist_ok=True)
        write_whole(place / name, content)
    except OSError as error:
        _warn_once(f"{error.filename or place}: {error.strerror or error}")
    else:
        forget_old(place, name)


def file_of(kernel: str, *facts: str) -> str:
    """The name of a file of what a kernel is under these conditions."""
    digest = hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]
    return f"{kernel.removeprefix('ptaskmodel.')}-{digest}"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that other processes may be reading or writing. Raises OSError."""
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def forget_old(place: Path, name: str) -> None:
    """Of the files and directories of the kernel that one is of, leave the last made."""
    found = place.glob(f"{glob.escape(name.rpartition('-')[0])}-{'?' * 16}")
    with contextlib.suppress(OSError):
        for old in sorted(found, key=lambda each: each.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(old) if old.is_dir() else old.unlink()


@functools.cache
def _warn_once(reason: str) -> None:
    """Say why kernels are not kept, for each reason once."""
    warn(f"compiled kernels cannot be kept ({reason}): {REMEDY}")
