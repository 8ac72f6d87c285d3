"""Arrays that a tasks file keeps beside it in .npz files, read with care."""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.amounts import FloatArray

MAX_VALUES = 2**28

_UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    RuntimeError,  # encrypted
    NotImplementedError,  # an unknown compression
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


class ArrayFiles:
    """Reads arrays of numbers of .npz files relative to a directory, each once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._arrays: dict[tuple[str, str], FloatArray] = {}
        self.paths: list[Path] = []

    def read(self, name: str, key: str) -> FloatArray:
        """The array ``key`` of the file ``name``, as float64 and read-only.

        The header is checked before the data are read: numbers only, at most MAX_VALUES of them.

        Raises WorkloadError with the reason (it begins with the file).
        """
        if (name, key) not in self._arrays:
            path = self._directory / name
            self._arrays[name, key] = _read(path, key)
            if path not in self.paths:
                self.paths.append(path)
        return self._arrays[name, key]


def _read(path: Path, key: str) -> FloatArray:
    try:
        if not path.is_file():
            raise WorkloadError(f"{path} is not a file")
        with zipfile.ZipFile(path) as archive:
            if f"{key}.npy" not in archive.namelist():
                keys = ", ".join(sorted(n.removesuffix(".npy") for n in archive.namelist()))
                raise WorkloadError(f"{path} has no array {key!r}; it has: {keys[:200]!a}")
            with archive.open(f"{key}.npy") as member:
                _check_header(path, key, member)
            with archive.open(f"{key}.npy") as member:
                array = npy.read_array(member, allow_pickle=False)
    except _UNREADABLE:
        raise WorkloadError(f"{path} is not an .npz file that can be read") from None
    array = np.array(array, dtype=np.float64, order="C")
    array.flags.writeable = False
    return array


def _check_header(path: Path, key: str, member: IO[bytes]) -> None:
    version = npy.read_magic(member)
    reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = reader(member)
    if dtype.kind not in "fiu":
        raise WorkloadError(f"{path}: array {key!r} holds {dtype} values; save numbers")
    count = math.prod(shape)
    if min(shape, default=0) < 0 or count > MAX_VALUES:
        raise WorkloadError(f"{path}: array {key!r} has shape {shape}; at most {MAX_VALUES} values")
