"""Read and write several names in one field of a file, separated by blanks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

_UNSAFE = re.compile(r"[\s'\"\\]")


def join_names(names: Iterable[str]) -> str:
    """The names separated by blanks; those with blanks, quotes or backslashes as a shell quotes.

    >>> join_names(["a", "b c"])
    "a 'b c'"
    """
    names = tuple(names)
    if all(names) and not _UNSAFE.search("".join(names)):
        return " ".join(names)
    return " ".join(
        shlex.quote(name) if not name or _UNSAFE.search(name) else name for name in names
    )


def split_names(text: str) -> tuple[str, ...]:
    """The names that `join_names` joined. Raises ValueError where a quote is not closed."""
    if "'" in text or '"' in text or "\\" in text:
        return tuple(shlex.split(text))
    return tuple(text.split())
