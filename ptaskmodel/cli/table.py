"""Plain text tables for the terminal; a richer library would double the start-up time."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()
) -> str:
    """Columns as wide as their widest cell, numbers of the columns ``right`` to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = []
    for cells in (header, ["-" * width for width in widths], *rows):
        padded = (
            cell.rjust(width) if k in right else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)
