"""Write directories of results atomically, and replace only directories that we wrote; caches.

`results.directory` and the demo use it.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import stat
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import NEW, OLD, AnyPath, Kind, claimed, clear_leftovers, writing

Owned = Callable[[Path], Collection[str]]


def check_directory_to_write(path: AnyPath, owned: Owned, *, error: Kind = PTaskModelError) -> None:
    """Check that a directory may be written at ``path``: none is there, or only files of ours.

    owned(directory): the names of the files in it that we wrote, and may therefore replace.

    Raises ``error`` with the reason.
    """
    path = Path(path)
    with writing(path, error):
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            parent = next(p for p in path.absolute().parents if os.path.exists(p))
            if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
                raise error(f"{path}: {parent} is not a directory that can be written in") from None
            return
        except ValueError as fault:
            raise error(f"{path!r}: cannot be written: {fault}") from None
        if not stat.S_ISDIR(found.st_mode):
            raise error(f"{path}: is a file; give a directory")
        real = Path(os.path.realpath(path))
        if real == Path.cwd():
            raise error(f"{path}: is the current directory; give another, it is replaced")
        if not os.access(real.parent, os.W_OK | os.X_OK):
            raise error(f"{path}: {real.parent} cannot be written in")
        foreign = _foreign(real, owned)
        if foreign:
            raise error(
                f"{path}: holds {foreign[0]!a}, which is not of ptaskmodel's results; "
                "give a new or empty directory"
            )


@contextlib.contextmanager
def whole_directory(
    path: AnyPath, owned: Owned, *, error: Kind = PTaskModelError
) -> Iterator[Path]:
    """A directory to write in, that appears as ``path`` after the block, all at once.

    An earlier one of ours is replaced: moved aside, then deleted; what others put in it during the
    block stays in it. If the block raises, nothing appears and the earlier one stays.

    owned: see `check_directory_to_write`. Raises ``error`` as that does, or if writing fails.
    """
    check_directory_to_write(path, owned, error=error)
    target = Path(os.path.realpath(path))
    with writing(path, error):
        target.parent.mkdir(parents=True, exist_ok=True)
        clear_leftovers(target.parent)
        with claimed(target, directory=True) as partial:
            try:
                new = partial / NEW
                new.mkdir()
                yield new
                _put_in_place(new, target, partial / OLD, owned, error)
            finally:
                import shutil

                shutil.rmtree(partial, ignore_errors=True)


def _foreign(directory: Path, owned: Owned) -> list[str]:
    """What a directory holds besides plain files of ours."""
    ours = owned(directory)
    with os.scandir(directory) as entries:
        return sorted(
            entry.name
            for entry in entries
            if entry.name not in ours or not entry.is_file(follow_symlinks=False)
        )


def _put_in_place(new: Path, target: Path, old: Path, owned: Owned, error: Kind) -> None:
    """Rename ``new`` to ``target``; what was there becomes ``old``, or stays if that fails."""
    if os.path.exists(target):
        foreign = _foreign(target, owned)
        for name in foreign:
            if os.path.lexists(new / name):
                raise error(f"{target}: another {name!a} came there meanwhile; give a directory")
        target.rename(old)
    else:
        foreign = []
    try:
        new.rename(target)
    except BaseException:
        if old.exists():
            old.rename(target)
        raise
    for name in foreign:
        (old / name).rename(target / name)


VARIABLE = "PTASKMODEL_CACHE_DIR"
REMEDY = f"set {VARIABLE} to a directory of yours that nobody else can write"

_log = logging.getLogger("ptaskmodel")


@functools.cache
def cache_directory() -> Path | None:
    """The first that can be written, and by us alone; None if there is none.

    $PTASKMODEL_CACHE_DIR, $XDG_CACHE_HOME or ~/.cache, one's own in that of temporary files.
    """
    import tempfile

    user = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    places = [Path(user) / "ptaskmodel", Path(tempfile.gettempdir()) / f"ptaskmodel-{os.getuid()}"]
    if os.environ.get(VARIABLE):
        places.insert(0, Path(os.environ[VARIABLE]).resolve())
    for place in places:
        fault = _fault(place)
        if fault is None:
            return place
        _log.info("%s: nothing is kept there (%s)", place, fault)
    return None


def _fault(place: Path) -> str | None:
    """Why a directory is of no use; None: it is."""
    import tempfile

    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir(mode=0o755, exist_ok=True)
        found = place.lstat()
        if not stat.S_ISDIR(found.st_mode):
            return "it is no directory"
        if found.st_uid != os.getuid():
            return "it belongs to somebody else"
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return "others can write there"
        with tempfile.TemporaryFile(dir=place):
            return None
    except (OSError, ValueError) as fault:
        return str(getattr(fault, "strerror", None) or fault)
