"""Where compiled kernels are kept, and what tells whether they are those of these sources.

Numba's own cache notices an edit in the file of a kernel but not in the kernels that it calls from
other files. Kernels here call each other across files, so they are kept in a directory named by a
digest of all sources that can matter: change any and all are compiled anew.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import shutil
import stat
import tempfile
import warnings
import zlib
from pathlib import Path
from typing import Any

import numba

PACKAGE = Path(__file__).resolve().parent
# Asks for nothing but what is public in numba (see `jit`).
PLAIN = "PTASKMODEL_PLAIN_NUMBA"
# Chooses the directory; the last resort is a directory of one's own in that of temporary files.
VARIABLE = "PTASKMODEL_CACHE_DIR"
REMEDY = f"set {VARIABLE} to a directory that can be written"
COMPILER = ("jit.py", "kernel_cache.py", "kernel_parts.py")
_HOLD_KERNELS = (
    b"\nfrom ptaskmodel.jit import ",
    b"\nfrom ptaskmodel.platform.routing.kernel import ",
)
# How many sets of kernels, of different sources, stay in one directory.
KEPT = 4
# What a directory must take to be of use; bytes.
PROBE = 2**16
_CHECKSUM = 4


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
        if any(mark in source for source in files.values() for mark in _HOLD_KERNELS):
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


def kernel_directory() -> Path | None:
    """Where the kernels of these very sources are kept; None: nowhere."""
    place = cache_directory()
    kind = "-plain" if plain() else ""
    return None if place is None else place / f"kernels-{kernel_digest()}{kind}"


def plain() -> bool:
    """Whether only what is public in numba is to be used."""
    return os.environ.get(PLAIN, "0") != "0"


def versions() -> str:
    """What compiled code depends on besides its sources."""
    return f"{platform.machine()}-py{platform.python_version()}-numba{numba.__version__}"


def cached(what: str = "compiled") -> bool:
    """Whether the kernels have been compiled and kept (see `mark_cached`)."""
    place = kernel_directory()
    return place is not None and (place / f"{what}-{versions()}").exists()


def mark_cached(what: str = "compiled") -> None:
    """Note that kernels have been compiled, if they are kept at all; forget old sets.

    what: those of a simulation, or ``replay``.
    """
    place = kernel_directory()
    if place is None:
        return
    with contextlib.suppress(OSError):
        place.mkdir(exist_ok=True)
        (place / f"{what}-{versions()}").touch()
        os.utime(place)
        sets = sorted(place.parent.glob("kernels-*"), key=lambda each: each.stat().st_mtime)
        for old in sets[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)


def keep(dispatcher: Any) -> None:
    """Keep what a dispatcher compiles where these kernels are kept, if anywhere.

    Where numba has the classes that it has today, also: a file that is damaged is compiled anew,
    one that cannot be written is done without.
    """
    place = kernel_directory()
    if place is None:
        return
    before = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    numba.config.CACHE_DIR = str(place)  # type: ignore[attr-defined]
    try:
        dispatcher.enable_caching()
    finally:
        numba.config.CACHE_DIR = before  # type: ignore[attr-defined]
    cache = getattr(dispatcher, "_cache", None)
    if _CarefulCache is not None and type(cache) is caching.FunctionCache:
        cache.__class__ = _CarefulCache
        cache._cache_file.__class__ = _SummedFile


_CarefulCache: Any = None
_SummedFile: Any = None
with contextlib.suppress(ImportError, AttributeError):
    from numba.core import caching

    _needed = (
        caching.FunctionCache.load_overload,
        caching.FunctionCache.save_overload,
        caching.FunctionCache.flush,
        caching.IndexDataCacheFile._dump,
        caching.IndexDataCacheFile._load_data,
        caching.IndexDataCacheFile._data_path,
    )

    class _Careful(caching.FunctionCache):
        """Numba's cache of a kernel; files that cannot be read or written stop nobody."""

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                return super().load_overload(sig, target_context)
            except Exception:  # whatever a damaged file makes of pickle
                with contextlib.suppress(OSError):
                    self.flush()
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            try:
                super().save_overload(sig, data)
            except OSError as error:
                self.disable()
                _warn_once(f"{error.filename or self.cache_path}: {error.strerror or error}")
            except Exception:  # a damaged index
                with contextlib.suppress(OSError):
                    self.flush()
                    super().save_overload(sig, data)

    class _Summed(caching.IndexDataCacheFile):
        """Files that end with a checksum of the rest, which pickle does not look at."""

        def _dump(self, obj: Any) -> bytes:
            data = super()._dump(obj)
            return data + zlib.crc32(data).to_bytes(_CHECKSUM, "little")

        def _load_data(self, name: str) -> Any:
            data = Path(self._data_path(name)).read_bytes()
            if zlib.crc32(data[:-_CHECKSUM]).to_bytes(_CHECKSUM, "little") != data[-_CHECKSUM:]:
                raise ValueError(f"{name}: damaged")
            return super()._load_data(name)

    _CarefulCache, _SummedFile = _Careful, _Summed


@functools.cache
def _warn_once(reason: str) -> None:
    """Say why kernels are not kept, for each reason once."""
    warnings.warn(f"compiled kernels cannot be kept ({reason}): {REMEDY}", stacklevel=2)
