"""Find lines of time-independent traces of before SimGrid 3.20, and turn them into those of now.

`ti_trace` calls it. Source: SimGrid's change log of 3.20 (2018), which gave messages tags.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.workload.actions import ACTIONS, RECV, SEND, WAIT

HEAD = 1 << 16  # bytes that say what a file is

# A line that only traces of before SimGrid 3.20 have: a rank p0, a name with capitals that is not
# one of now, a message without a tag, a wait for no request.
_CAPITALS = rb"Isend|Irecv|waitAll|[a-z]++(?:Reduce|To|Gather|Scatter)[A-Za-z]*|reduceScatter"
OLD_LINE = re.compile(
    rb"^[ \t]*+(?:p\d++[ \t]+[A-Za-z_]+|\d++[ \t]++(?:(?:" + _CAPITALS + rb")\b|"
    rb"(?:send|recv)[ \t]++\d++(?:[ \t]++[-+.\deE]++)?[ \t\r]*+$|wait[ \t\r]*+$))",
    re.MULTILINE,
)
MESSAGES = (b"send", b"recv", b"isend", b"irecv")
# The names of now, by those in lower case.
NOW = {name.lower().encode(): name.encode() for name in ACTIONS}


class OldLines:
    """Turn lines of before SimGrid 3.20 (2018) into those of now.

    Ranks may be called p0, p1; names have capitals; messages have no tag; a wait, or a test, names
    no request: it is for the last that its rank has open.
    """

    def __init__(self) -> None:
        self._open: dict[bytes, list[tuple[bytes, bytes]]] = {}

    def as_now(self, content: bytes) -> bytes:
        """The lines of a piece of `content`, as many as it has."""
        return b"\n".join(map(self._line, content.split(b"\n")))

    def _line(self, line: bytes) -> bytes:
        words = line.split()
        if len(words) < 2 or words[0].startswith(b"#"):
            return line
        rank, action = words[0].removeprefix(b"p"), NOW.get(words[1].lower(), words[1])
        fields = words[2:]
        if action in MESSAGES and fields:
            peer = fields[0].removeprefix(b"p")
            size = fields[1:2] or [b"-1"]
            if action in (b"isend", b"irecv"):
                ends = (rank, peer) if action == b"isend" else (peer, rank)
                self._open.setdefault(rank, []).append(ends)
            fields = [peer, b"0", *size, *fields[2:]]
        elif action in (b"wait", b"test") and not fields and self._open.get(rank):
            fields = [*self._open[rank][-1], b"0"]
            if action == b"wait":
                self._open[rank].pop()
        elif action == b"waitall":
            self._open.pop(rank, None)
        return b" ".join([rank, action, *fields])


def may_be_old(actions: NDArray[np.int8], start: NDArray[np.int64]) -> bool:
    """Whether a line has as few fields as those of before SimGrid 3.20.

    actions: int8 array, of each line; start: int64 array, where its fields begin, and their end.
    """
    fields = np.diff(start)
    message = (actions == SEND) | (actions == RECV)
    return bool((message & (fields < 3)).any() or ((actions == WAIT) & (fields == 0)).any())


def is_old(content: bytes) -> bool:
    """Whether the trace that `content` begins has lines that only old ones have."""
    whole = content[:HEAD] if len(content) <= HEAD else content[: content.rfind(b"\n", 0, HEAD)]
    return OLD_LINE.search(whole) is not None
