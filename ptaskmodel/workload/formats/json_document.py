"""Strict reading of a JSON file: what is ambiguous or not JSON is an error that says where."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.files import UTF8_MARK, read_bytes, shown_path, text_of
from ptaskmodel.workload.amounts import FloatArray

# A half of a character outside the first 65,536, which means nothing without the other.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")

# One of these stands at each colon between a key and its value; inside strings there may be more.
_AFTER_KEYS = ('":', " :", "\n:", "\t:", "\r:")
_NESTED = {dict, list}

# Bytes, characters; below, the scanner of numbers, or msgspec, would take longer to load than it
# saves.
LARGE = 200_000
NOT_SMALL = 50_000


class _NotRead(Exception):
    """Something is wrong with a document."""


class _Repeated(dict):
    """An object of which a key is given twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__()
        self.key = ""
        for key, value in pairs:
            if key in self:
                self.key = key
            self[key] = value


def read_json(path: Path, *, writable: bool = False, arrays: Collection[str] = ()) -> Any:
    """The document in a UTF-8 file: dict, list, str, int, float, bool, None.

    Stricter than the json module: no key twice in an object, no NaN or Infinity; with ``writable``,
    no half of a character, which cannot be written again.

    arrays: names of fields. In a large file, some lists of numbers there, or of rows of equally
    many numbers, are float64 arrays of the same values.

    Raises WorkloadError with ``file:line:column`` or the JSON pointer of the mistake.
    """
    where = shown_path(path)
    content = read_bytes(path, error=WorkloadError)
    if arrays and len(content) >= LARGE:
        try:
            return _read_with_arrays(content.removeprefix(UTF8_MARK), arrays)
        except _NotRead:
            pass  # the mistake is told with its place in the whole text
    text = text_of(content, path, error=WorkloadError)
    del content
    if len(text) >= NOT_SMALL:
        try:
            return _read_quickly(text)
        except _NotRead:
            pass  # as above
    return _read(text, where, writable)


def _read_quickly(text: str) -> Any:
    """The same as `_read`, several times faster, or _NotRead if anything is unusual.

    What msgspec reads, the json module reads alike. Of a key that is given twice, msgspec keeps the
    last: then there are fewer keys than colons, and than colons after a quote or a blank.
    """
    import msgspec

    try:
        document = msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise _NotRead from None
    keys = _count_keys(document)
    if text.count(":") != keys and sum(map(text.count, _AFTER_KEYS)) != keys:
        raise _NotRead
    return document


def _count_keys(document: Any) -> int:
    """How many keys the objects of a document have together."""
    count, level = 0, [document]
    while level:
        objects = [value for value in level if type(value) is dict]
        lists = [value for value in level if type(value) is list]
        count += sum(map(len, objects))
        parts = list(
            chain(chain.from_iterable(map(dict.values, objects)), chain.from_iterable(lists))
        )
        nested = not _NESTED.isdisjoint(map(type, parts))
        level = [value for value in parts if type(value) in _NESTED] if nested else []
    return count


def _read_with_arrays(content: bytes, names: Collection[str]) -> Any:
    from ptaskmodel.workload.formats.json_numbers import PLACEHOLDER, cut_numbers

    try:
        short, arrays = cut_numbers(content, names)
    except UnicodeDecodeError:
        raise _NotRead from None
    following = iter(arrays)

    def put_back(constant: str) -> FloatArray:
        if constant != PLACEHOLDER:
            raise _NotRead
        array = next(following, None)
        if array is None:
            raise _NotRead
        return array

    try:
        document = json.loads(short, object_pairs_hook=_unrepeated, parse_constant=put_back)
    except (ValueError, RecursionError):
        raise _NotRead from None
    if next(following, None) is not None:
        raise _NotRead
    return document


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) < len(pairs):
        raise _NotRead
    return plain


def _read(text: str, where: str, writable: bool) -> Any:
    repeated: list[_Repeated] = []

    def make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        plain = dict(pairs)
        if len(plain) == len(pairs):
            return plain
        repeated.append(_Repeated(pairs))
        return repeated[-1]

    def refuse(constant: str) -> NoReturn:
        raise WorkloadError(f"{where}: {constant} is not JSON; give a finite number")

    try:
        document = json.loads(text, object_pairs_hook=make_object, parse_constant=refuse)
        if writable and _HALF.search(text):
            json.dumps(document, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise WorkloadError(f"{where}:{error.lineno}:{error.colno}: {_why(text, error)}") from None
    except UnicodeEncodeError:
        raise WorkloadError(f"{where}: holds half of a character; give both") from None
    except RecursionError:
        raise WorkloadError(f"{where}: is nested too deep") from None
    except ValueError:
        raise WorkloadError(f"{where}: holds a number of too many digits") from None
    if repeated:
        # The last to be closed is not inside another that is repeated and was lost with it.
        pointer, key = _find(document, repeated[-1]), shown(repeated[-1].key)
        raise WorkloadError(f"{where}: {pointer or 'top level'}: {key} is given twice; keep one")
    return document


def _why(text: str, error: json.JSONDecodeError) -> str:
    if not text.strip():
        return "is empty; give a JSON document"
    if text.lstrip().startswith("<"):
        return "is XML, as platforms are, not JSON; the platform comes first, then tasks or jobs"
    if error.pos >= len(text.rstrip()):
        return "this is not JSON: ends too early; is it truncated?"
    what = f"is not JSON: {error.msg[0].lower()}{error.msg[1:]}"
    if text[error.pos] in "}]" and text[: error.pos].rstrip().endswith(","):
        what += "; the comma before it is one too many"
    return what


def _find(document: Any, wanted: object) -> str:
    """The JSON pointer of an object of the document."""
    stack = [("", document)]
    while stack:
        pointer, value = stack.pop()
        if value is wanted:
            return pointer
        if isinstance(value, dict):
            stack += [(f"{pointer}/{token(key)}", member) for key, member in value.items()]
        elif isinstance(value, list):
            stack += [(f"{pointer}/{k}", member) for k, member in enumerate(value)]
    return ""


def token(key: str) -> str:
    """A key as a part of a JSON pointer (RFC 6901), on one line."""
    escaped = key.replace("~", "~0").replace("/", "~1")
    return escaped if escaped.isprintable() else ascii(escaped)[1:-1]
