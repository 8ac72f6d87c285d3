"""Arrays that a tasks file keeps beside it in .npz files, read with care."""

from __future__ import annotations

import math
import struct
import zlib
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.amounts import FloatArray

MAX_VALUES = 2**26
SMALL = 2**16  # read whatever is needed: what is wrong with it is told better elsewhere

_UNREADABLE = (
    OSError,
    ValueError,
    MemoryError,
    OverflowError,
    EOFError,
    RuntimeError,  # encrypted
    NotImplementedError,  # an unknown compression
    struct.error,
    zlib.error,
)


class ArrayFiles:
    """Reads arrays of numbers of .npz files relative to a directory, each once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._arrays: dict[tuple[str, str], FloatArray] = {}
        self.paths: list[Path] = []

    def read(self, name: str, key: str, most: int = MAX_VALUES) -> FloatArray:
        """The array ``key`` of the file ``name``, as float64 and read-only.

        The header is checked before the data are read: numbers only, at most ``most`` of them.

        Raises WorkloadError with the reason (it begins with the file).
        """
        if (name, key) not in self._arrays:
            path = self._directory / name
            self._arrays[name, key] = _read(path, key, most)
            if path not in self.paths:
                self.paths.append(path)
        _check_size(self._directory / name, key, self._arrays[name, key].shape, most)
        return self._arrays[name, key]


def _read(path: Path, key: str, most: int) -> FloatArray:
    import zipfile

    try:
        if not path.is_file():
            raise WorkloadError(f"{path} is not a file")
        with zipfile.ZipFile(path) as archive:
            if f"{key}.npy" not in archive.namelist():
                keys = ", ".join(sorted(n.removesuffix(".npy") for n in archive.namelist()))
                raise WorkloadError(f"{path} has no array {key!r}; it has: {keys[:200]!a}")
            with archive.open(f"{key}.npy") as member:
                _check_header(path, key, member, most)
            with archive.open(f"{key}.npy") as member:
                array = npy.read_array(member, allow_pickle=False)
    except (*_UNREADABLE, zipfile.BadZipFile):
        raise WorkloadError(f"{path} is not an .npz file that can be read") from None
    array = np.asarray(array, dtype=np.float64, order="C")
    array.flags.writeable = False
    return array


def _check_header(path: Path, key: str, member: IO[bytes], most: int) -> None:
    version = npy.read_magic(member)
    reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = reader(member)
    if dtype.kind not in "fiu":
        raise WorkloadError(f"{path}: array {key!r} holds {dtype} values; save numbers")
    _check_size(path, key, shape, most)


def _check_size(path: Path, key: str, shape: tuple[int, ...], most: int) -> None:
    if min(shape, default=0) < 0 or math.prod(shape) > max(most, SMALL):
        raise WorkloadError(f"{path}: array {key!r} has shape {shape}; at most {most} values")
