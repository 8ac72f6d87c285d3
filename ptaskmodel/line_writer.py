# mypy: allow-untyped-defs, allow-incomplete-defs
"""Write columns of numbers and texts as lines: the kernel of `csv_columns`."""

from __future__ import annotations

from ptaskmodel.kernels.decorators import entry

# What a part is: whole numbers; floats, of which a text gives those that are not whole; characters.
NUMBERS, FLOATS, CELLS = 0, 1, 2
# No number is here.
NONE = -(2**63)


@entry
def write_lines(parts, numbers, characters, count, text):
    """Write ``count`` lines into ``text``; returns how many bytes they are.

    parts: a row each (kind, row of numbers, where its characters begin, how many a line has, how
    far those of the next line are). A character 0 is none. Texts of floats end with commas.
    """
    size = 0
    for line in range(count):
        for part in range(parts.shape[0]):
            kind = parts[part, 0]
            at = parts[part, 2]
            if kind == CELLS:
                for k in range(at, at + parts[part, 3]):
                    if characters[k] != 0:
                        text[size] = characters[k]
                        size += 1
                parts[part, 2] += parts[part, 4]
                continue
            value = numbers[parts[part, 1], line]
            if value == NONE:
                if kind == FLOATS:
                    while characters[at] != 44:
                        text[size] = characters[at]
                        size += 1
                        at += 1
                    parts[part, 2] = at + 1
                continue
            if value < 0:
                text[size] = 45
                size += 1
                value = -value
            end = size + 1
            rest = value // 10
            while rest > 0:
                end += 1
                rest //= 10
            for k in range(end - 1, size - 1, -1):
                rest = value // 10
                text[k] = 48 + (value - 10 * rest)
                value = rest
            size = end
            if kind == FLOATS:
                text[size] = 46
                text[size + 1] = 48
                size += 2
    return size
