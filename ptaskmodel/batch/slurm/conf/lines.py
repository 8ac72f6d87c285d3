"""The lines of Slurm's configuration files: comments, continuations, includes, Key=Value pairs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, read_text, shown_path

MAX_BYTES = 2**26
MAX_DEPTH = 16
MAX_LINES = 1_000_000

_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)#.*", re.DOTALL)
_INCLUDE = re.compile(r"include\s+(.*)", re.IGNORECASE)
_PAIR = re.compile(r"""\s*([A-Za-z0-9_.]+)\s*([-+*/]?)=\s*(?:"([^"]*)"|([^\s"]\S*))(?=\s|$)""")


class Pair(NamedTuple):
    """``key=value``, the value without its quotes. where: file and line."""

    key: str
    value: str
    where: str


def value_of(pair: Pair, read: Callable[[str], Any]) -> Any:
    """What a value means. Raises SlurmError with its place and the remedy."""
    try:
        return read(pair.value)
    except ValueError as fault:
        raise SlurmError(f"{pair.where}: {pair.key}={shown(pair.value)}: {fault}") from None


class _Reading(NamedTuple):
    """Where includes are looked for, and what has been read."""

    folder: Path
    open_files: tuple[Path, ...]
    lines: list[int]


def read_lines(path: AnyPath) -> Iterator[list[Pair]]:
    """The pairs of each line of a file that has any, lines of included files in their place.

    A backslash at the end of a line continues it; # begins a comment unless a backslash is before
    it; included files are looked for beside the first one. Raises SlurmError with file and line.
    """
    folder = Path(path).parent
    yield from _lines_of(path, _Reading(folder, (Path(path).resolve(),), [0]))


def _lines_of(path: AnyPath, reading: _Reading) -> Iterator[list[Pair]]:
    name = shown_path(path)
    for number, line in _joined(read_text(path, most=MAX_BYTES, error=SlurmError)):
        reading.lines[0] += 1
        where = f"{name}:{number}"
        if reading.lines[0] > MAX_LINES:
            raise SlurmError(f"{where}: there are more than {MAX_LINES:,} lines; give fewer")
        include = _INCLUDE.fullmatch(line)
        if include is not None:
            yield from _included(include[1].strip().strip('"'), where, reading)
        elif line:
            yield _pairs(line, where)


def _included(name: str, where: str, reading: _Reading) -> Iterator[list[Pair]]:
    if not name.isprintable() or "%" in name:
        raise SlurmError(f"{where}: Include {shown(name)}: give the path of a file")
    path = reading.folder / name
    real = path.resolve()
    if real in reading.open_files:
        raise SlurmError(f"{where}: Include {name}: the file includes itself; take the line out")
    if len(reading.open_files) > MAX_DEPTH:
        raise SlurmError(f"{where}: Include {name}: more than {MAX_DEPTH} files deep")
    try:
        yield from _lines_of(path, reading._replace(open_files=(*reading.open_files, real)))
    except SlurmError as error:
        if str(error).startswith(f"{path}: "):  # not one of its lines: say who asked for it
            raise SlurmError(f"{where}: Include {name}: {error}") from None
        raise


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, with what continues them, and the numbers of their first lines."""
    begun, parts = 0, []
    for number, raw in enumerate(text.split("\n"), start=1):
        line = _COMMENT.sub(r"\1", raw).replace("\\#", "#").rstrip()
        begun = begun or number
        if line.endswith("\\"):
            parts.append(line[:-1])
            continue
        yield begun, "".join([*parts, line]).strip()
        begun, parts = 0, []
    if parts:
        yield begun, "".join(parts).strip()


def _pairs(line: str, where: str) -> list[Pair]:
    pairs, place = [], 0
    while place < len(line):
        found = _PAIR.match(line, place)
        if found is None:
            rest = line[place:].strip()
            table = "=" not in rest and ("," in rest or "|" in rest)
            hint = "; slurm.conf comes first, then the jobs" if table else ""
            raise SlurmError(
                f"{where}: {shown(rest)}: write Key=Value, a value with blanks quoted{hint}"
            )
        if found[2]:
            raise SlurmError(f"{where}: {found[1]}{found[2]}=: only = is known here; write it so")
        value = found[4] if found[3] is None else found[3]
        pairs.append(Pair(found[1], value, where))
        place = found.end()
    return pairs
