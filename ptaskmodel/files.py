"""Read files from outside, with limits; write files atomically.

All readers and writers of files use it; `directories` writes directories. A file that is too large,
not regular or outside the allowed directory is an error of one line.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import gzip
import io
import json
import os
import re
import shlex
import stat
import sys
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.memory import available_bytes

AnyPath = str | os.PathLike[str]
Kind = type[PTaskModelError]

STDIN = "-"
MAX_BYTES = 2**30

_PIECE = 2**20
_NOT_FINITE = (
    "cannot be written: a result is no finite number, as what was given is too large or too small; "
    "give other units or amounts"
)
_GZIP = b"\x1f\x8b"
UTF8_MARK = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# Bytes that are not UTF-8, as surrogateescape decodes them, and what they are in Latin-1.
_LATIN_1 = {0xDC00 + byte: byte for byte in range(128, 256)}
# A writer holds a lock until the end: a partial file that can be locked was left by a killed run.
_PARTIAL = ".ptaskmodel-partial"
_NAME_KEPT = 48  # characters, so that what is added never makes a name too long
NEW, OLD, _LOCK = "new", "old", "lock"  # names within a partial directory
_LEFTOVER = re.compile(rf"\.(?P<name>.+)\.[0-9a-f]{{8}}{re.escape(_PARTIAL)}", re.DOTALL)

# Only files below this folder may be read, if files from outside name them (see `only_below`).
_below: ContextVar[Path | None] = ContextVar("below", default=None)


class _TooLarge(Exception):
    """There is more to read than asked for."""


# Reading


def read_bytes(path: AnyPath, *, most: int = MAX_BYTES, error: Kind = PTaskModelError) -> bytes:
    """The content of a file, unpacked if it is gzip's; ``-`` is standard input.

    most: its largest size, packed or not, bytes. What can be read only once (standard input, a
    pipe) is kept, so that whoever asks again gets the same.

    Raises ``error``, one line with the path and the reason.
    """
    with _reading(path, most, error):
        content = _raw(path, most)
        if content[:2] == _GZIP or os.fspath(path).endswith(".gz"):
            content = _unpacked(content, most)
    return content


def _unpacked(content: bytes, most: int) -> bytes:
    """The content of a gzip file, which has one part or several."""
    pieces, size = [], 0
    while content := content.lstrip(b"\0"):
        part = zlib.decompressobj(zlib.MAX_WBITS | 16)
        pieces.append(part.decompress(content, most - size + 1))
        size += len(pieces[-1])
        if size > most:
            raise _TooLarge
        if not part.eof:
            raise EOFError("it ends too early")
        content = part.unused_data
    return b"".join(pieces)


def read_pieces(
    path: AnyPath, size: int, *, most: int = MAX_BYTES, error: Kind = PTaskModelError
) -> Generator[bytes]:
    """Yield the content of a file, unpacked as by `read_bytes`, ``size`` bytes at a time.

    path: the file. most: largest content, bytes. error: class of the exception to raise.

    Only an input that can be read just once (standard input, a pipe) is held in memory as a whole.
    """
    if not os.path.isfile(path):
        content = read_bytes(path, most=most, error=error)
        for first in range(0, len(content), size):
            yield content[first : first + size]
        return
    with _reading(path, most, error), _allowed(path) as raw:
        is_packed = raw.read(2) == _GZIP or os.fspath(path).endswith(".gz")
        raw.seek(0)
        read = 0
        with gzip.GzipFile(fileobj=raw) if is_packed else raw as stream:
            while piece := stream.read(size):
                read += len(piece)
                if read > most:
                    raise _TooLarge
                yield piece


@contextlib.contextmanager
def _reading(path: AnyPath, most: int, error: Kind) -> Iterator[None]:
    """Whatever goes wrong while a file is read, as ``error``."""
    try:
        yield
    except _TooLarge:
        raise error(_too_large(path, most)) from None
    except MemoryError:
        raise error(
            f"{shown_path(path)}: does not fit in memory: {_size_text(path)}"
            f"{available_bytes():,} are free; give a smaller file"
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as fault:
        raise error(f"{shown_path(path)}: this is not a whole gzip file ({fault})") from None
    except FileNotFoundError:
        raise error(f"{shown_path(path)}: no such file") from None
    except IsADirectoryError:
        raise error(f"{shown_path(path)}: is a directory; give a file") from None
    except (OSError, ValueError) as fault:
        raise error(f"{shown_path(path)}: cannot be read: {_reason(fault)}") from None


def read_text(
    path: AnyPath,
    *,
    most: int = MAX_BYTES,
    error: Kind = PTaskModelError,
    told: Callable[[str, int], object] | None = None,
) -> str:
    """Return the text of the UTF-8 file at `path`, without a byte order mark; see `read_bytes`.

    most: largest content, bytes. told: called with a sentence and a line where bytes that are not
    UTF-8 are read as Latin-1. Raises ``error`` with the number of such a line if it is None, or if
    the file is binary.
    """
    return text_of(read_bytes(path, most=most, error=error), path, error=error, told=told)


def text_of(
    content: bytes,
    path: AnyPath,
    *,
    error: Kind = PTaskModelError,
    told: Callable[[str, int], object] | None = None,
) -> str:
    """Decode the `content` of the file at `path` as `read_text` does, with its `error`, `told`."""
    content = content.removeprefix(UTF8_MARK)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as fault:
        line = content.count(b"\n", 0, fault.start) + 1
        if told is not None and b"\0" not in content:
            told("bytes that are not UTF-8 are read as Latin-1", line)
            return content.decode("utf-8", errors="surrogateescape").translate(_LATIN_1)
        found = "is not UTF-8"
        if content.startswith(UTF16_MARKS):
            found += " but UTF-16"
        raise error(f"{shown_path(path)}:{line}: {found}; save it as UTF-8") from None


@contextlib.contextmanager
def only_below(folder: Path) -> Iterator[None]:
    """Let `read_bytes` read regular files below a folder alone, links followed, while this lasts.

    For names of files that come from outside.
    """
    token = _below.set(folder.resolve())
    try:
        yield
    finally:
        _below.reset(token)


def check_regular(path: AnyPath, *, error: Kind = PTaskModelError) -> None:
    """Raise ``error`` if `path` exists and is not a regular file (a pipe, for instance)."""
    try:
        is_regular = stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return  # whoever reads it says so
    if not is_regular:
        raise error(f"{shown_path(path)}: is not a regular file; give one")


def taken_for(content: bytes) -> str | None:
    """Return what a `content` in a wrong format seems to be, for a message; None: unknown."""
    if content.startswith(UTF16_MARKS):
        return "is UTF-16; save it as UTF-8"
    begin = content[:4096].removeprefix(UTF8_MARK).lstrip()
    if not begin:
        return "is empty"
    if begin.startswith(b"<"):
        return "is XML, as platforms are"
    if begin.startswith((b"{", b"[{")):
        return "is JSON, as tasks and workloads are"
    if content.startswith(UTF8_MARK):
        return "begins with a byte order mark; save it as UTF-8 without one"
    return None


def digest(path: AnyPath) -> str:
    """Return the SHA-256 of the file at `path` as stored (not unpacked), hexadecimal.

    Raises PTaskModelError if it cannot be read.
    """
    import hashlib

    try:
        if os.fspath(path) == STDIN or not os.path.isfile(path):
            return hashlib.sha256(_raw(path, MAX_BYTES)).hexdigest()
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except _TooLarge:
        raise PTaskModelError(_too_large(path, MAX_BYTES)) from None
    except (OSError, ValueError) as fault:
        raise PTaskModelError(f"{shown_path(path)}: cannot be read: {_reason(fault)}") from None


def shown_path(path: AnyPath) -> str:
    """A path for a message."""
    return "standard input" if os.fspath(path) == STDIN else os.fspath(path)


def _too_large(path: AnyPath, most: int) -> str:
    return f"{shown_path(path)}: holds more than {most:,} bytes (unpacked); give a smaller file"


def _size_text(path: AnyPath) -> str:
    """How large a file is, if that is known: the part of a sentence."""
    with contextlib.suppress(OSError, ValueError):
        return f"it has {os.stat(path).st_size:,} bytes (as it is, perhaps packed), "
    return ""


def _allowed(path: AnyPath) -> IO[bytes]:
    """A regular file, open to be read, if it may be. Raises OSError."""
    _check_allowed(path)
    return open(path, "rb")


def _check_allowed(path: AnyPath) -> None:
    below = _below.get()
    if below is not None and not _is_allowed(path, below):
        raise OSError(f"from here, regular files below {below} alone are")


def _raw(path: AnyPath, most: int) -> bytes:
    """What is in a file. Raises OSError, ValueError, _TooLarge."""
    _check_allowed(path)
    if os.fspath(path) == STDIN:
        content = _drained(getattr(sys.stdin, "buffer", None))
    else:
        state = os.stat(path)
        if stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode):
            with open(path, "rb") as stream:
                return _bounded(stream, most, min(state.st_size, most) + 1)
        content = _piped(os.fspath(path), state.st_dev, state.st_ino)
    if len(content) > most:
        raise _TooLarge
    return content


def _is_allowed(path: AnyPath, below: Path) -> bool:
    target = os.path.realpath(path)
    return Path(target).is_relative_to(below) and os.path.isfile(target)


@functools.lru_cache(maxsize=1)
def _drained(stream: IO[bytes] | None) -> bytes:
    if stream is None:
        raise OSError("it is closed")
    return _bounded(stream, MAX_BYTES)


@functools.lru_cache(maxsize=4)
def _piped(path: str, device: int, inode: int) -> bytes:
    with open(path, "rb") as stream:
        return _bounded(stream, MAX_BYTES)


def _bounded(stream: Any, most: int, at_once: int = _PIECE) -> bytes:
    pieces, size = [], 0
    while piece := stream.read(at_once):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise _TooLarge
    return b"".join(pieces)


def _reason(fault: BaseException) -> str:
    return getattr(fault, "strerror", None) or str(fault) or type(fault).__name__


# Writing a file


@contextlib.contextmanager
def whole_path(path: AnyPath, *, error: Kind = PTaskModelError) -> Iterator[Path]:
    """A path to write at, by whatever means; after the block it takes the name ``path``.

    A file of that name is replaced, or stays as it was if the block raises. The path ends in no
    suffix that says what to write.

    Raises ``error`` if it cannot be written.
    """
    target = check_file_to_write(path, error=error)
    with writing(path, error):
        clear_leftovers(target.parent)
        with claimed(target) as partial:
            try:
                yield partial
                os.replace(partial, target)
            finally:
                partial.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_file(path: AnyPath, *, error: Kind = PTaskModelError) -> Iterator[IO[str]]:
    """Open a UTF-8 text file to write. It appears at `path`, replacing a file there, when complete.

    The file is gzipped if its name ends in .gz. A device or a pipe is written directly.

    Raises ``error`` if it cannot be written.
    """
    if _is_device(path):
        with writing(path, error), open(path, "w", encoding="utf-8", newline="\n") as stream:
            yield stream
        return
    with whole_path(path, error=error) as partial, partial.open("wb") as raw:
        packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if _is_gz(path) else None
        with io.TextIOWrapper(packed or raw, encoding="utf-8", newline="\n") as text:
            yield text


def write_bytes(path: AnyPath, data: bytes, *, error: Kind = PTaskModelError) -> None:
    """Write `data` to `path` atomically, gzipped if the name ends in .gz. Raises ``error``."""
    with whole_path(path, error=error) as partial:
        partial.write_bytes(gzip.compress(data, mtime=0) if _is_gz(path) else data)


def write_json(path: AnyPath, value: Any, *, error: Kind = PTaskModelError) -> None:
    """Write a `value` to `path` as JSON, atomically; floats with all digits. Raises ``error``."""
    with whole_file(path, error=error) as stream:
        try:
            json.dump(value, stream, indent=2, allow_nan=False)
        except ValueError:
            raise error(f"{path}: {_NOT_FINITE}") from None
        stream.write("\n")


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """Return a `value` as JSON, floats with all digits.

    Raises PTaskModelError if one is not finite.

    indent: spaces a level; None: everything on one line.
    """
    separators = None if indent else (",", ":")
    try:
        return json.dumps(value, indent=indent, separators=separators, allow_nan=False)
    except ValueError:
        raise PTaskModelError(_NOT_FINITE) from None


def check_file_to_write(path: AnyPath, *, error: Kind = PTaskModelError) -> Path:
    """Return where a file written to `path` will be, links followed.

    Raises ``error`` if impossible.
    """
    try:
        if os.path.isdir(path) or not os.fspath(path):
            raise error(f"{os.fspath(path)!r}: is a directory; give the name of a file")
        target = Path(os.path.realpath(path))
        parent = os.stat(target.parent)
        if stat.S_ISDIR(parent.st_mode) and os.access(target.parent, os.W_OK | os.X_OK):
            with contextlib.suppress(FileNotFoundError):
                if not stat.S_ISREG(os.stat(target).st_mode):
                    raise error(f"{path}: cannot be written: it is not a regular file")
            return target
    except (OSError, ValueError) as fault:
        raise error(f"{path}: cannot be written: {_reason(fault)}") from None
    raise error(f"{path}: cannot be written: {target.parent} is no directory to write in")


def _is_device(path: AnyPath) -> bool:
    """Whether to write to what is there, rather than to put a file in its place."""
    if os.fspath(path).startswith("/dev/"):
        return os.path.exists(path)
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _is_gz(path: AnyPath) -> bool:
    return os.fspath(path).endswith(".gz")


@contextlib.contextmanager
def writing(path: AnyPath, error: Kind) -> Iterator[None]:
    """Report failures of the system while writing at ``path`` as one line, as ``error``."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as fault:
        other = fault.filename
        about = "" if other is None or _PARTIAL in str(other) else f" ({other})"
        raise error(f"{path}: cannot be written: {_reason(fault)}{about}") from None


@contextlib.contextmanager
def claimed(target: Path, *, directory: bool = False) -> Iterator[Path]:
    """Make a file or ``directory`` beside ``target``, and hold its lock (where there are locks)."""
    while True:
        partial = target.with_name(f".{target.name[:_NAME_KEPT]}.{os.urandom(4).hex()}{_PARTIAL}")
        if directory:
            partial.mkdir()
        place = partial / _LOCK if directory else partial
        handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        if place.exists():
            break
        os.close(handle)  # taken for a leftover before it was locked
    try:
        yield partial
    finally:
        os.close(handle)


@functools.lru_cache(maxsize=1024)
def clear_leftovers(directory: Path) -> None:
    """Remove what killed runs left in ``directory``, once; put back what they replaced."""
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        found = [(Path(entry.path), _LEFTOVER.fullmatch(entry.name)) for entry in entries]
        for path, match in found:
            if match is not None:
                _clear_leftover(path, path.with_name(match["name"]))


def _clear_leftover(path: Path, target: Path) -> None:
    with contextlib.suppress(OSError):
        is_directory = path.is_dir()
        handle = os.open(path / _LOCK if is_directory else path, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not is_directory:
                path.unlink()
                return
            if (path / OLD).exists() and not os.path.lexists(target):
                if len(target.name) == _NAME_KEPT:  # perhaps not all of the name
                    return
                (path / OLD).rename(target)
            import shutil

            shutil.rmtree(path)
        finally:
            os.close(handle)


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
