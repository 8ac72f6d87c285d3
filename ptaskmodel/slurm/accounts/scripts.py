"""Read scripts of a shell as far as those that call sacctmgr need it: lines, variables, loops.

`sacctmgr.read_accounts` calls it. Loops of `for` over words that stand in the script are unrolled.
Source: POSIX, Shell Command Language; bash's manual on braces and arrays.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence

from ptaskmodel.errors import SlurmError

MOST_TURNS = 10_000  # of all loops in one
_SACCTMGR = "sacctmgr"
# A call whose input follows, up to a line of that word.
_HERE = re.compile(rf"""(?:{_SACCTMGR}|\s)<<-?\s*["']?([A-Za-z_]\w*)""")
# A variable of a shell that a line gives a value, and where a line uses one.
_GIVEN = re.compile(
    r"\s*(?:(?:export|readonly)\s+)?([A-Za-z_]\w*)="
    r"""("[^"$`]*"|'[^'$]*'|[^\s"'$`;&|()]*)\s*;?\s*(?:#.*)?"""
)
_SEVERAL = re.compile(r"\s*(?:declare\s+-a\s+)?([A-Za-z_]\w*)=\(([^()`]*)\)\s*;?\s*(?:#.*)?")
_USED = re.compile(r"\$(?:\{(\w+(?:\[@\])?)\}|(\w+))")
_WHERE_IS = re.compile(r"\$\((?:which|command -v)\s+([\w./-]+)\)")
# Statements of a line: what stands between semicolons that are not in quotes.
_STATEMENT = re.compile(r"""(?:"[^"]*"|'[^']*'|\\.|[^;"'\\])+""")
_BEGINS = re.compile(r"(?:^|;)\s*for\s")
_LOOP = re.compile(r"for\s+([A-Za-z_]\w*)\s+in\s+(.*)")
_LEAVES = re.compile(r"\b(?:break|continue|case|exit|return)\b")
_SEQ = re.compile(r"\$\(\s*seq\s+(?:(-w)\s+)?(?:(\d+)\s+)?(\d+)\s*\)|`\s*seq\s+(\d+)\s+(\d+)\s*`")
_RANGE = re.compile(r"([^{}]*)\{(\d+)\.\.(\d+)\}([^{}]*)")
_CHOICE = re.compile(r"([^{}]*)\{([^{}]*,[^{}]*)\}([^{}]*)")
_ALL_OF = re.compile(r'"(\$\{\w+\[)[@*](\]\})"|(?<!")(\$\{\w+\[)[@*](\]\})')

Line = tuple[int, str]


def joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of the `text` of a script, those that end in a backslash with what continues them.

    Each comes with the number of its first; comments are empty lines. Lines that are the input of
    a command (``<<EOF``), such as sacctmgr or mysql, are as if it was called with each.
    """
    begun, before, end, reads = 0, "", None, ""
    for number, raw in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        begun = begun or number
        line = "" if not before and raw.lstrip().startswith("#") else before + raw
        if end is not None:
            end = None if line.strip() == end else end
            if not line.strip() or end is None:
                line = ""
            elif reads == _SACCTMGR or _SACCTMGR not in line:
                line = f"{reads} {line}"
        elif (here := _HERE.search(line)) is not None:
            end = here[1]
            reads = _SACCTMGR if _SACCTMGR in line else line.split()[0]
        if line.endswith("\\"):
            before = line[:-1]
            continue
        yield begun, line
        begun, before = 0, ""
    if before:
        yield begun, before


class Variables:
    """The variables of a shell to which the lines of a script so far gave plain values."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def line(self, line: str) -> str:
        """A line with their values; nothing of one that gives a value, which is kept."""
        line = self.with_values(line)
        several = _SEVERAL.fullmatch(line) if "(" in line else None
        if several is not None and "$" not in line:
            self._values[f"{several[1]}[@]"] = several[2]
            return ""
        given = _GIVEN.fullmatch(line) if "=" in line else None
        if given is None:
            return line
        self._values[given[1]] = given[2].strip("\"'")
        return ""

    def with_values(self, line: str) -> str:
        """A line with the values of the variables that are known."""
        if "$" not in line:
            return line
        line = _WHERE_IS.sub(r"\1", line)
        return _USED.sub(lambda use: self._values.get(use[1] or use[2], use[0]), line)

    def give(self, name: str, value: str | None) -> None:
        """The variable of a `name` has a value from now on; None: one that is not known."""
        self._values.pop(name, None)
        if value is not None:
            self._values[name] = value


def unrolled(lines: Iterable[Line], variables: Variables, where: str) -> Iterator[Line]:
    """The `lines` of a script, each with its number; those of loops again and again.

    A loop's variable has its value, among the `variables`, while its lines come. The lines of a
    loop over anything but words, numbers (``$(seq 1 5)``, ``{1..5}``) and variables that are known,
    or of one that is left early, come once. where: the file. Raises SlurmError if a loop has more
    than `MOST_TURNS` turns.
    """
    rest = iter(lines)
    for number, line in rest:
        if _BEGINS.search(line) is None:
            yield number, line
            continue
        loop = [(number, one) for one in _statements(line)]
        while (depth := _depth(loop)) > 0:
            following = next(rest, None)
            if following is None:
                break
            loop += [(following[0], one) for one in _statements(following[1])]
        if depth:  # no loop, or one without an end
            yield from loop
        else:
            yield from _turns(loop, variables, f"{where}:{number}", 1)


def _statements(line: str) -> Iterator[str]:
    """The statements of a line; do and done are such."""
    if "#" in line and not {'"', "'"} & set(line):
        line = re.sub(r"(^|\s)#.*", "", line)
    for piece in _STATEMENT.findall(line):
        words = piece.split(None, 1)
        if words[:1] == ["do"]:
            yield "do"
            words = words[1:]
            piece = " ".join(words)
        if words:
            yield piece.strip()


def _depth(loop: Sequence[Line]) -> int:
    """How many loops are open at the end; below 0: more are closed than opened."""
    words = [one.split(None, 1)[0] for _, one in loop]
    return sum(word in ("for", "while", "until") for word in words) - words.count("done")


def _turns(loop: Sequence[Line], variables: Variables, where: str, turns: int) -> Iterator[Line]:
    """The lines of statements in which loops begin and end. turns: of the loops around them."""
    place = 0
    while place < len(loop):
        number, statement = loop[place]
        end = next((k for k in range(place + 1, len(loop) + 1) if not _depth(loop[place:k])), 0)
        head = _LOOP.fullmatch(statement)
        place += 1
        if head is None:
            if statement not in ("do", "done"):
                yield number, statement
            continue
        name, words = head[1], _words(head[2], variables)
        is_left = any(_LEAVES.search(one) for _, one in loop[place:end])
        if words is None or is_left or loop[place][1] != "do" or loop[end - 1][1] != "done":
            variables.give(name, None)
            continue
        if turns * len(words) > MOST_TURNS:
            raise SlurmError(
                f"{where}: the loop has more than {MOST_TURNS:,} turns; give what sacctmgr dump "
                "writes"
            )
        body = loop[place + 1 : end - 1]
        for word in words:
            variables.give(name, word)
            yield from _turns(body, variables, where, turns * max(len(words), 1))
        place = end


def _words(text: str, variables: Variables) -> list[str] | None:
    """The words that a loop goes over; None if they do not stand in the script."""
    text = _ALL_OF.sub(lambda found: f"{found[1] or found[3]}@{found[2] or found[4]}", text)
    text = _SEQ.sub(_numbers, variables.with_values(text))
    if set(text) & set("$`*?()<>|&"):
        return None
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    return [one for word in words for one in _of_braces(word)]


def _numbers(found: re.Match[str]) -> str:
    """What seq prints, on a line."""
    first, last = found[2] or found[4] or "1", found[3] or found[5]
    width = len(last) if found[1] else 0
    count = range(int(first), min(int(last), int(first) + MOST_TURNS) + 1)
    return " ".join(str(number).zfill(width) for number in count)


def _of_braces(word: str) -> list[str]:
    """The words that one with braces stands for."""
    if found := _RANGE.fullmatch(word):
        before, first, last, after = found.groups()
        width = max(len(first), len(last)) if "0" in (first[:1], last[:1]) else 0
        step = 1 if int(first) <= int(last) else -1
        count = range(int(first), int(last) + step, step)[: MOST_TURNS + 1]
        return [f"{before}{str(number).zfill(width)}{after}" for number in count]
    if found := _CHOICE.fullmatch(word):
        return [f"{found[1]}{one}{found[3]}" for one in found[2].split(",")]
    return [word]
