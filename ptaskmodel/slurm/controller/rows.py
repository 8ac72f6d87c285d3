"""Terms of priorities in rows: one for each partition of each job that waits.

Rows are kept in blocks that never move, so that views of them stay valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.slurm.accounts.priority_kernel import COLUMNS, NUMBER

BLOCK = 4096
Floats = NDArray[np.float64]


class Rows:
    """Rows by number; those given back are taken again, lowest first."""

    def __init__(self) -> None:
        self.blocks: list[Floats] = []
        # Of each block, which rows are taken.
        self._live: list[NDArray[np.bool_]] = []
        self._free: list[int] = []

    def take(self, values: Sequence[float]) -> int:
        """A row with these `values`, one for each column of the kernel."""
        if not self._free:
            begin = len(self.blocks) * BLOCK
            self.blocks.append(np.zeros((BLOCK, COLUMNS)))
            self._live.append(np.zeros(BLOCK, dtype=np.bool_))
            self._free = list(range(begin + BLOCK - 1, begin - 1, -1))
        row = self._free.pop()
        number, place = divmod(row, BLOCK)
        self.blocks[number][place] = values
        self._live[number][place] = True
        return row

    def give_back(self, row: int) -> None:
        """Free a `row`."""
        self._live[row // BLOCK][row % BLOCK] = False
        self._free.append(row)

    def view(self, row: int, column: int) -> memoryview:
        """A `column`'s value in a `row`, as a sequence of one that changes with it."""
        return memoryview(self.blocks[row // BLOCK][row % BLOCK])[column : column + 1]

    def set(self, row: int, column: int, value: float) -> None:
        """Set a `column` in a `row` to a `value`."""
        self.blocks[row // BLOCK][row % BLOCK, column] = value

    def get(self, row: int, column: int) -> float:
        """Return a `column`'s value in a `row`."""
        return float(self.blocks[row // BLOCK][row % BLOCK, column])

    def taken(self) -> Iterator[tuple[Floats, NDArray[np.intp]]]:
        """The blocks that have taken rows, and their places."""
        for block, live in zip(self.blocks, self._live, strict=True):
            places = live.nonzero()[0]
            if len(places):
                yield block, places

    def column(self, number: int) -> NDArray:
        """A column of all taken rows, by its `number`; from NUMBER on they are whole numbers."""
        found = np.concatenate([np.empty(0), *(block[at, number] for block, at in self.taken())])
        return found if number < NUMBER else found.astype(np.int64)
