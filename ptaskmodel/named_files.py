"""Find the files that a file names (traces, arrays, imports), and load Python files of the user."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import read_bytes, read_pieces


def sources(path: Path) -> list[Path]:
    """Return the Python file at `path` and the files beside it that it imports, also indirectly.

    Their order is arbitrary. Raises SyntaxError or ValueError for what is not Python.
    """
    found, waiting = {path: None}, [path]
    while waiting:
        one = waiting.pop()
        names = {
            name
            for node in ast.walk(ast.parse(one.read_bytes(), str(one)))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in _imported(node, one.relative_to(path.parent))
        }
        beside = [file for name in sorted(names) for file in _files_of(name, path.parent)]
        new = [file for file in dict.fromkeys(beside) if file not in found and file.is_file()]
        found |= dict.fromkeys(new)
        waiting += new
    return list(found)


def _imported(node: ast.Import | ast.ImportFrom, where: Path) -> list[tuple[str, ...]]:
    """What may be modules or packages, by the parts of their names; where: the importing file."""
    if isinstance(node, ast.Import):
        return [tuple(alias.name.split(".")) for alias in node.names]
    above = where.parts[: -node.level] if node.level else ()
    module = (*above, *(node.module.split(".") if node.module else ()))
    return [module, *((*module, alias.name) for alias in node.names)]


def _files_of(name: tuple[str, ...], folder: Path) -> list[Path]:
    """Where a module may be, and the packages that it is in."""
    places = [folder.joinpath(*name[: k + 1]) for k in range(len(name))]
    return [file for one in places for file in (one.with_suffix(".py"), one / "__init__.py")]


def load(path: Path, name: str) -> ModuleType:
    """Run the file at `path` as a module called ``name`` and return it.

    It can import files beside it.

    These are loaded anew: they may have changed, or share the name of a module elsewhere. Raises
    whatever the file raises, SyntaxError if it is not Python.
    """
    path = path.resolve()
    folder = path.parent
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    sys.path[:] = [str(folder), *(place for place in sys.path if place != str(folder))]
    for file in sources(path):
        inside = file.relative_to(folder)
        parts = inside.parent.parts if file.name == "__init__.py" else inside.with_suffix("").parts
        sys.modules.pop(".".join(parts), None)
    importlib.invalidate_caches()
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# In XML: speed_file, state_file, bandwidth_file ... and the file of a trace.
_ATTRIBUTE = re.compile(rb"""[\s_]file\s*=\s*(?:"([^"]*)"|'([^']*)')""")
# In JSON: arrays of tasks, traces of Batsim's profiles.
_MEMBER = re.compile(rb'"(?:npz|filename|trace_file|trace)"\s*:\s*("(?:[^"\\]|\\.)*")')
_COMMENT = re.compile(r"#.*")
# A slurm.conf that has a plugin for it reads what lies beside it.
_TOPOLOGY = re.compile(r"^\s*TopologyPlugin\s*=", re.IGNORECASE | re.MULTILINE)
TOPOLOGY = "topology.conf"
_GRES = re.compile(r"\bGres\s*=", re.IGNORECASE)
GRES = "gres.conf"
START = 65536
LONGEST_NAME = 1024


def named_by(path: Path) -> list[Path]:
    """Return the files that a reader of `path` opens: itself, the files it names, and so on.

    Covers XML, JSON, lists of traces, Slurm's files, and imports of a Python file. A name counts if
    it is a file beside the one that names it, or beside the first. What is not a regular file (a
    device, a pipe, standard input) names nothing. Raises PTaskModelError.
    """
    if not _is_file(path):
        return [path]
    if path.suffix == ".py":
        try:
            return sources(path)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as fault:
            reason = fault if str(fault) else "nested too deep"
            raise PTaskModelError(f"{path} is not a Python file: {reason}") from None
    found = {path: None}
    waiting = [path]
    while waiting:
        one = waiting.pop()
        for name in dict.fromkeys(_names(one)):
            for folder in (one.parent, path.parent):
                other = folder / name
                if other not in found and _is_file(other):
                    found[other] = None
                    waiting.append(other)
    return list(found)


def _names(path: Path) -> Iterator[str]:
    """What may be names of files in a file."""
    with contextlib.closing(read_pieces(path, START)) as pieces:
        begin = next(pieces, b"")
    start = begin.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start not in (b"<", b"{") and not _may_be_names(begin):
        return
    content = read_bytes(path)
    if start == b"<":
        for found in _ATTRIBUTE.finditer(content):
            import html

            yield html.unescape((found[1] or found[2] or b"").decode("utf-8", errors="replace"))
    elif start == b"{":
        for found in _MEMBER.finditer(content):
            with contextlib.suppress(ValueError):
                yield str(json.loads(found[1].decode("utf-8", errors="replace"), strict=False))
    else:
        text = content.decode("utf-8", errors="replace")
        for line in text.splitlines():
            yield from (word.strip('"') for word in _COMMENT.sub("", line).split())
        if _TOPOLOGY.search(text):
            yield TOPOLOGY
        if _GRES.search(text):
            yield GRES


def _may_be_names(start: bytes) -> bool:
    """Whether lines are words: no bytes of anything else, and no line of a log or a trace."""
    if b"\0" in start:
        return False
    for line in start.splitlines():
        words = line.split()
        if words and not words[0].startswith((b"#", b";")):
            return not (words[0].isdigit() and len(words) > 1)
    return False


def _is_file(path: Path) -> bool:
    name = path.name
    try:
        return 0 < len(name) <= LONGEST_NAME and "\0" not in str(path) and path.is_file()
    except OSError:
        return False
