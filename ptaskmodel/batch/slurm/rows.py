"""Rows of numbers that come and go: kept in blocks that never move, so that views of them last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import DTypeLike, NDArray

BLOCK = 4096
Block = NDArray


class Rows:
    """Columns by name, in blocks of equal length.

    columns: their types. A row is its number; those given back are taken again, lowest first.
    """

    def __init__(self, columns: Mapping[str, DTypeLike]) -> None:
        self.columns = dict(columns)
        self._nothing: dict[str, float] = dict.fromkeys(columns, 0)
        self.blocks: list[Block] = []
        # Of each block, which rows are taken.
        self._live: list[NDArray[np.bool_]] = []
        self._free: list[int] = []
        self.count = 0

    def take(self, values: Mapping[str, float]) -> int:
        """A row with these values; the others are 0."""
        if not self._free:
            begin = len(self.blocks) * BLOCK
            self.blocks.append(np.zeros(BLOCK, list(self.columns.items())))
            self._live.append(np.zeros(BLOCK, dtype=np.bool_))
            self._free = list(range(begin + BLOCK - 1, begin - 1, -1))
        row = self._free.pop()
        given = {**self._nothing, **values}
        self.block(row)[row % BLOCK] = (*given.values(),)
        self._live[row // BLOCK][row % BLOCK] = True
        self.count += 1
        return row

    def give_back(self, row: int) -> None:
        """Free a row."""
        self._live[row // BLOCK][row % BLOCK] = False
        self._free.append(row)
        self.count -= 1

    def block(self, row: int) -> Block:
        """The block that a row is in, at ``row % BLOCK``."""
        return self.blocks[row // BLOCK]

    def view(self, row: int, column: str) -> NDArray:
        """A column's value in a row, as an array of one that changes with it."""
        place = row % BLOCK
        return self.block(row)[column][place : place + 1]

    def set(self, row: int, column: str, value: float) -> None:
        self.block(row)[column][row % BLOCK] = value

    def get(self, row: int, column: str) -> float:
        return self.block(row)[column][row % BLOCK]

    def taken(self) -> Iterator[tuple[Block, NDArray[np.intp]]]:
        """The blocks that have taken rows, and their places."""
        for block, live in zip(self.blocks, self._live, strict=True):
            places = live.nonzero()[0]
            if len(places):
                yield block, places

    def records(self) -> NDArray:
        """All taken rows, with all columns."""
        found = [block[places] for block, places in self.taken()]
        return np.concatenate(found) if found else np.empty(0, list(self.columns.items()))

    def column(self, name: str) -> NDArray:
        """A column of all taken rows."""
        found = [block[name][places] for block, places in self.taken()]
        return np.concatenate(found) if found else np.empty(0, self.columns[name])
