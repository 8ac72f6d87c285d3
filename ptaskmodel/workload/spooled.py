"""Arrays that grow piece by piece, in memory while small, then in an unnamed file.

Readers of files larger than memory use them. Pages of the file are read when they are needed;
`let_go` releases them.
"""

from __future__ import annotations

import mmap
import weakref
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

IN_MEMORY_BYTES = 1 << 21
SLICE = 1 << 16  # elements looked at together


class Spooled:
    """An array of one dimension that grows at its end.

    Raises OSError where there is no room for its file (in the folder for temporary files).
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self._pieces: list[NDArray[Any]] = []
        self._size = 0
        self._file: IO[bytes] | None = None

    def __len__(self) -> int:
        return self._size

    def append(self, piece: NDArray[Any]) -> None:
        """Add a copy of ``piece``, an array of the same type, at the end."""
        self._size += len(piece)
        if self._file is None and self._size * self.dtype.itemsize > IN_MEMORY_BYTES:
            import tempfile

            self._file = tempfile.TemporaryFile()  # noqa: SIM115, open as long as it grows
            weakref.finalize(self, self._file.close)
            for earlier in self._pieces:
                self._file.write(earlier.data)
            self._pieces.clear()
        if self._file is None:
            self._pieces.append(piece.copy())
        elif len(piece):
            self._file.write(np.ascontiguousarray(piece).data)

    def whole(self) -> NDArray[Any]:
        """The array, which can be written to."""
        if self._file is None:
            return np.concatenate([np.empty(0, dtype=self.dtype), *self._pieces])
        self._file.flush()
        return np.frombuffer(mmap.mmap(self._file.fileno(), 0), dtype=self.dtype)


def let_go(array: NDArray[Any]) -> None:
    """Give the memory of an array back that is in a file; it is read again where it is needed."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)
