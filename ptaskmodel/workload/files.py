"""Reading files that may be gzipped, writing files whole or not at all."""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from pathlib import Path

from ptaskmodel.errors import WorkloadError


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a file, decompressed if its name ends in .gz or it begins as gzip does."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise WorkloadError(f"{path}: cannot read it: {error.strerror}") from None
    if not str(path).endswith(".gz") and data[:2] != b"\x1f\x8b":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise WorkloadError(f"{path}: this is not a whole gzip file ({error})") from None


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write to a temporary file beside ``path``, then rename; gzipped if the name ends in .gz."""
    path = Path(path)
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise WorkloadError(f"{path}: cannot write there: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
