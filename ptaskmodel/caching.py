"""Return the user's cache directory, which no other user may write to."""

from __future__ import annotations

import functools
import logging
import os
import stat
import tempfile
from pathlib import Path

VARIABLE = "PTASKMODEL_CACHE_DIR"
REMEDY = f"set {VARIABLE} to a directory of yours that nobody else can write"

_log = logging.getLogger("ptaskmodel")


@functools.cache
def cache_directory() -> Path | None:
    """The first that can be written, and by us alone; None if there is none.

    $PTASKMODEL_CACHE_DIR, $XDG_CACHE_HOME or ~/.cache, one's own in that of temporary files.
    """
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
