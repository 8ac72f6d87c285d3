"""Read JSON files strictly, and check their fields; errors name the place and a remedy.

`json_lines` writes values as the json module does.

What is ambiguous or not JSON is an error. `Fields` checks the fields of a document and names the
JSON pointer. `cut_numbers` takes long arrays of numbers out of the text with a compiled scanner;
what the scanner does not accept (20 digits, rows of different lengths, what is not JSON) stays in
the text. It takes a number only if its double is certain to be the nearest one, as Python's is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ptaskmodel.errors import SHOWN, WorkloadError, shown
from ptaskmodel.files import UTF8_MARK, read_bytes, shown_path, text_of
from ptaskmodel.remarks import Account
from ptaskmodel.workload.amounts import FieldError, FloatArray
from ptaskmodel.workload.formats import refuse_parquet
from ptaskmodel.workload.formats.number_scanner import cut

# A half of a character outside the first 65,536, which means nothing without the other.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")

# One of these stands at each colon between a key and its value; inside strings there may be more.
_AFTER_KEYS = ('":', " :", "\n:", "\t:", "\r:")
_NESTED = {dict, list}

# Bytes, characters; below, the scanner of numbers, or msgspec, would take longer to load than it
# saves.
LARGE = 200_000
NOT_SMALL = 50_000

_NUMBERS = {int, float}
_UNLIKE = tuple(map(re.compile, (rb"\.0000", rb"null", rb"\x7f", rb"e(?<=\de)[\d-]")))
_NOT_ASCII = re.compile(rb"[\x80-\xff]+")

PLACEHOLDER = "NaN"
# Shorter arrays are read as fast without.
SMALLEST = 8

POWERS = np.array([float(10**k) for k in range(23)])  # all exact


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
    """Return the document in the UTF-8 file at `path`: dict, list, str, int, float, bool, None.

    Stricter than the json module: no key twice in an object, no NaN or Infinity; with ``writable``,
    no half of a surrogate pair, which cannot be written again.

    arrays: names of fields. In a large file, some lists of numbers there, or of rows of equally
    many numbers, become float64 arrays of the same values.

    Raises WorkloadError with ``file:line:column`` or the JSON pointer of the mistake.
    """
    where = shown_path(path)
    content = read_bytes(path, error=WorkloadError)
    refuse_parquet(content, path)
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
        raise WorkloadError(
            f"{where}: contains half of a surrogate pair; write both halves"
        ) from None
    except RecursionError:
        raise WorkloadError(f"{where}: is nested too deep; flatten it") from None
    except ValueError:
        raise WorkloadError(
            f"{where}: contains a number with too many digits; shorten it"
        ) from None
    if repeated:
        # The last to be closed is not inside another that is repeated and was lost with it.
        pointer, key = _find(document, repeated[-1]), shown(repeated[-1].key)
        raise WorkloadError(f"{where}: {pointer or 'top level'}: {key} is given twice; keep one")
    return document


def _why(text: str, error: json.JSONDecodeError) -> str:
    if not text.strip():
        return "is empty; give a JSON document"
    if text.lstrip().startswith("<"):
        return "is XML, not JSON; give the platform (XML) first, then files of JSON"
    if error.pos >= len(text.rstrip()):
        return "is not JSON: it ends too early; is it truncated?"
    comma = text[error.pos] in "}]" and text[: error.pos].rstrip().endswith(",")
    remedy = "remove the comma before it" if comma else "correct the line"
    message = error.msg.removesuffix(" starting at").removesuffix(" at")
    return f"is not JSON: {message[0].lower()}{message[1:]}; {remedy}"


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


class Fields:
    """The checks, for one file.

    account: gets all unknown fields of an object but the last, which is raised as all else; None:
    the first is raised.
    """

    def __init__(self, name: str, account: Account | None = None) -> None:
        self._name, self._account = name, account

    def fail(self, pointer: str, problem: str) -> NoReturn:
        """Raise the WorkloadError of a place in the file."""
        raise WorkloadError(f"{self.place(pointer)}: {problem}")

    def place(self, pointer: str) -> str:
        """A place in the file, for a message."""
        return f"{self._name}: {pointer or 'top level'}"

    def fail_in(self, pointer: str, error: FieldError, names: dict[str, str]) -> NoReturn:
        """Raise a FieldError again, its field being ``names[field]`` below ``pointer``."""
        field = names.get(error.field, error.field)
        self.fail("/".join([pointer, field, *map(str, error.place)]), error.problem)

    def object_of(self, value: Any, pointer: str, fields: Collection[str], what: str) -> None:
        """``value`` is an object with no other fields than these."""
        if type(value) is not dict:
            self.fail(pointer, f"is {shown(value)}; give an object ({what})")
        if value.keys() <= set(fields):
            return
        strange = [key for key in value if key not in fields]
        for key in strange:
            close = close_match(key, fields)
            hint = f"did you mean {close!r}?" if close else f"it may have {', '.join(fields)}"
            place = f"{pointer}/{token(key)[:100]}"
            if self._account is None or key == strange[-1]:
                self.fail(place, f"is not a field of {what}; {hint}")
            self._account.problem(f"{place}: is not a field of {what}; {hint}")

    def text(self, value: Any, pointer: str, what: str) -> str:
        """A non-empty printable string."""
        if type(value) is not str:
            self.fail(pointer, f"is {shown(value)}; give {what}")
        if not value or not value.isprintable():
            self.fail(pointer, f"is {shown(value)}; give {what}, not empty and printable")
        return value

    def number(self, value: Any, pointer: str) -> int | float:
        """A JSON number (its size is checked where its meaning is known)."""
        if type(value) not in _NUMBERS:
            self.fail(pointer, f"is {shown(value)}; give a number")
        return value

    def whole(self, value: Any, pointer: str) -> int:
        """A whole number from 0; 2.0 is one, as in JSON Schema."""
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not int or not 0 <= value < 2**63:
            self.fail(pointer, f"is {shown(value)}; give a whole number from 0, below 2^63")
        return value

    def numbers(self, value: list | FloatArray, pointer: str) -> FloatArray:
        """A list of numbers, or of lists of numbers of the same length, as an array."""
        if isinstance(value, np.ndarray):
            return value
        nested = bool(value) and all(type(row) is list for row in value)
        if nested:
            self._check_lengths(value, pointer)
        flat = list(chain.from_iterable(value)) if nested else value
        try:
            if not set(map(type, flat)) <= _NUMBERS:
                raise TypeError
            array = np.array(flat, dtype=np.float64)
        except (TypeError, OverflowError):
            place, problem = _first_bad(flat)
            where = divmod(place, len(value[0])) if nested else (place,)
            self.fail("/".join([pointer, *map(str, where)]), problem)
        return array.reshape(len(value), -1) if nested else array

    def _check_lengths(self, rows: list[list], pointer: str) -> None:
        if len(set(map(len, rows))) > 1 or not rows[0]:
            k = next((k for k, row in enumerate(rows) if len(row) != len(rows[0])), 0)
            problem = f"has {len(rows[k])} values, the first row {len(rows[0])}; give equal rows"
            self.fail(f"{pointer}/{k}", problem if k else "is empty; give numbers")


def objects_of(columns: Mapping[str, Iterable[Any]]) -> list[Any]:
    """Structures of msgspec, of which each becomes an object with the fields ``columns``.

    What is None is left out.
    """
    import msgspec

    fields = [(name, Any, None) for name in columns]
    Entry = msgspec.defstruct("Entry", fields, omit_defaults=True)
    return list(map(Entry, *columns.values()))


def json_lines(values: Iterable[Any]) -> list[bytes]:
    """Each of the ``values`` as json.dumps writes it, in a fraction of the time.

    Values may be those of `objects_of`.
    """
    import msgspec

    values = list(values)
    try:
        lines = msgspec.json.Encoder().encode_lines(values).splitlines()
    except ValueError:  # half of a character
        return [json.dumps(msgspec.to_builtins(value)).encode() for value in values]
    form = msgspec.json.format
    lines = [form(line, indent=0) for line in lines]
    for line in _unlike_lines(b"\n".join(lines)):
        lines[line] = json.dumps(msgspec.to_builtins(values[line])).encode()
    return lines


def _unlike_lines(content: bytes) -> set[int]:
    """The lines of what msgspec wrote in which something may be that json writes in another way.

    That is exponents, characters beyond those of ASCII that are printed, and what is not finite.
    """
    marks = _UNLIKE if content.isascii() else (*_UNLIKE, _NOT_ASCII)
    found: set[int] = set()
    for mark in marks:
        line = begin = 0
        for match in mark.finditer(content):
            line += content.count(b"\n", begin, match.start())
            begin = match.start()
            found.add(line)
    return found


def close_match(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to a misspelt one (not looked for very far), None if none is."""
    import difflib

    close = difflib.get_close_matches(name[:SHOWN], list(islice(known, 10_000)), 1)
    return close[0] if close else None


def _first_bad(values: Iterable[Any]) -> tuple[int, str]:
    """Place of the first value that is not a number or too large for one, and what is wrong."""
    for place, value in enumerate(values):
        if type(value) not in _NUMBERS:
            return place, f"is {shown(value)}; give a number"
        try:
            float(value)
        except OverflowError:
            return place, f"is {shown(value)}; give a smaller number"
    raise AssertionError("every value is a number")


def cut_numbers(content: bytes, names: Collection[str]) -> tuple[str, list[FloatArray]]:
    """Return a UTF-8 `content` with NaN in place of long arrays of numbers, and these arrays.

    names: fields whose arrays are replaced, in order: numbers, shape (n,), or rows of equally many
    numbers, shape (rows, n). Raises UnicodeDecodeError if the rest is not UTF-8.
    """
    # More than there can be; what is not used takes no memory.
    numbers = np.empty(len(content) // 2 + 1)
    cuts = np.empty((len(content) // (2 * SMALLEST) + 1, 4), dtype=np.int64)
    quoted = [f'"{name}"'.encode() for name in names]
    ends = np.cumsum([len(name) for name in quoted], dtype=np.int64)
    fields = np.frombuffer(b"".join(quoted), np.uint8)
    count = int(
        cut(np.frombuffer(content, np.uint8), fields, ends, numbers, cuts, POWERS, SMALLEST)
    )
    pieces: list[bytes] = []
    arrays: list[FloatArray] = []
    last = first = 0
    for begin, end, until, row in cuts[:count].tolist():
        pieces += (content[last:begin], PLACEHOLDER.encode())
        array = numbers[first:until]
        arrays.append(array.reshape(-1, row) if row else array)
        last, first = end, until
    pieces.append(content[last:])
    return b"".join(pieces).decode(), arrays
