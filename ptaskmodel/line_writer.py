# mypy: allow-untyped-defs, allow-incomplete-defs
"""Write columns of numbers and texts as lines: the kernel of `csv_tables`."""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import entry, jit

# What a part is: whole numbers; floats, of which a text gives those that are not whole; characters,
# as many on each line; texts.
NUMBERS, FLOATS, CELLS, TEXTS = 0, 1, 2, 3
# No number is here.
NONE = -(2**63)
# Unsigned: numba does not test whether an index counts from the end.
ONE, TEN = np.uint64(1), np.uint64(10)


@entry
def write_lines(parts, numbers, characters, count, text):
    """Write ``count`` lines into ``text``; returns how many bytes they are.

    parts: a row each (kind, row of numbers, where its characters begin, how many a line has, how
    far those of the next line are, the character behind it). A character 0 is none. Texts of floats
    end with commas. Of a part of texts two rows of numbers say where each begins and how long it
    is.
    """
    size = np.uint64(0)
    for line in range(count):
        for part in range(parts.shape[0]):
            kind = parts[part, 0]
            at = np.uint64(parts[part, 2])
            if kind == CELLS:
                for _ in range(parts[part, 3]):
                    if characters[at] != 0:
                        text[size] = characters[at]
                        size += ONE
                    at += ONE
                parts[part, 2] += parts[part, 4]
            elif kind == TEXTS:
                row = parts[part, 1]
                at += np.uint64(numbers[row, line])
                for _ in range(numbers[row + 1, line]):
                    text[size] = characters[at]
                    size += ONE
                    at += ONE
            else:
                value = numbers[parts[part, 1], line]
                if value != NONE:
                    size = _write_number(text, size, value)
                    if kind == FLOATS:
                        text[size] = 46
                        text[size + ONE] = 48
                        size += ONE + ONE
                elif kind == FLOATS:
                    while characters[at] != 44:
                        text[size] = characters[at]
                        size += ONE
                        at += ONE
                    parts[part, 2] = at + ONE
            if parts[part, 5] != 0:
                text[size] = parts[part, 5]
                size += ONE
    return size


@jit
def _write_number(text, size, value):
    """Write a whole number; returns where it ends."""
    if value < 0:
        text[size] = 45
        size += ONE
        value = -value
    rest = np.uint64(value)
    end = size + ONE
    while rest >= TEN:
        rest //= TEN
        end += ONE
    rest = np.uint64(value)
    k = end
    while k > size:
        k -= ONE
        above = rest // TEN
        text[k] = 48 + (rest - TEN * above)
        rest = above
    return end
