"""Tables and facts as text: as wide as the terminal, or as they need where there is none."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence

ELLIPSIS = "…"
LEAST_WIDTH = 12  # of a column of names that is elided
GAP = 2


def terminal_width() -> int | None:
    """Return how many characters a line of the terminal has; None: the output goes elsewhere."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    import shutil

    return shutil.get_terminal_size().columns


def several(count: int, one: str, many: str | None = None) -> str:
    """Return a `count` of things: "1 job runs", "2 jobs run".

    one, many: the rest of the text for 1, and for other numbers; None: the first word gets an s.
    """
    if count == 1:
        return f"1 {one}"
    word, blank, rest = one.partition(" ")
    return f"{count} {many or f'{word}s{blank}{rest}'}"


def elided(text: str, most: int) -> str:
    """Return ``text``, without its middle if it has more than ``most`` characters."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return text[: most - 1 - end] + ELLIPSIS + text[len(text) - end :]


# A richer library for tables would double the start-up time.
def text_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[int] = (),
    width: int | None = None,
) -> str:
    """Return rows below a header, columns as wide as their widest cell.

    Where a terminal is narrower, the widest columns of names are elided in the middle, then columns
    are left out from the right, and a last line says which.

    right: the columns that are set flush right, such as those of numbers. width: of a line; None:
    `terminal_width`.
    """
    width = terminal_width() if width is None else width
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    if width is not None:
        _narrow(widths, right, width)
    kept = len(widths)
    while width is not None and kept > 1 and _whole(widths[:kept]) > width:
        kept -= 1
    lines = []
    for cells in (header, ["-" * each for each in widths], *rows):
        padded = (
            elided(cell, each).rjust(each) if k in right else elided(cell, each).ljust(each)
            for k, (cell, each) in enumerate(zip(cells[:kept], widths, strict=False))
        )
        lines.append((" " * GAP).join(padded).rstrip()[:width])
    if kept < len(widths):
        import textwrap

        left_out = f"left out, as the terminal is narrow: {', '.join(header[kept:])}"
        lines += textwrap.wrap(left_out, width or len(left_out))
    return "\n".join(lines)


def _whole(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _narrow(widths: list[int], right: Collection[int], width: int) -> None:
    """Take from the widest columns of names what is too much, as far as they can be elided."""
    names = [k for k in range(len(widths)) if k not in right]
    while names and _whole(widths) > width:
        widest = max(names, key=lambda k: widths[k])
        if widths[widest] <= LEAST_WIDTH:
            return
        widths[widest] -= 1


def fact_lines(facts: Iterable[tuple[str, str]], indent: int, width: int | None = None) -> str:
    """Return facts (name, value) a line each; what is longer goes on below its value.

    indent: of the values. width: as of `text_table`.
    """
    width = terminal_width() if width is None else width
    lines = []
    for name, value in facts:
        line = f"{name:<{indent}}{value}"
        if width is None or len(line) <= width:
            lines.append(line)
        else:
            import textwrap

            lines += textwrap.wrap(
                value, width, initial_indent=f"{name:<{indent}}", subsequent_indent=" " * indent
            )
    return "\n".join(lines)
