"""All that is declared of a platform, by a file or a program: what its routes are found from."""

from __future__ import annotations

import bisect
import itertools
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ptaskmodel.memory import collector_at_rest
from ptaskmodel.platform.model import Host, Link
from ptaskmodel.platform.notes import Note
from ptaskmodel.platform.zones import Points, Zone


@dataclass(slots=True)
class Facts:
    """What was declared, in order.

    hosts, all_links: in order of declaration, at their ``index``; the last link is the built-in
    ``__loopback__``. config: options, old names replaced by new ones. notes: what is odd, hints:
    what may be. zones: their tree, the root first. duplex: the first half of each split link, by
    its id. host_index, link_index: by name. host_lines, link_lines: (first index, line) of each
    declaration.
    """

    path: Path
    hosts: tuple[Host, ...]
    all_links: tuple[Link, ...]
    config: dict[str, str]
    notes: tuple[Note, ...]
    hints: tuple[Note, ...]
    zones: tuple[Zone, ...]
    points: Points
    duplex: dict[str, int]
    host_index: dict[str, int]
    link_index: dict[str, int]
    host_lines: list[tuple[int, int]]
    link_lines: list[tuple[int, int]]

    def host_line(self, index: int) -> int:
        """Line of the file that declares a host."""
        return _line(self.host_lines, index)

    def link_line(self, index: int) -> int:
        """Line of the file that declares a link; 1 for the built-in loopback."""
        return 1 if index == len(self.all_links) - 1 else _line(self.link_lines, index)

    def __getstate__(self) -> dict[str, Any]:
        """As attributes, the many equal hosts and links packed."""
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        return state | {"hosts": _packed(self.hosts), "all_links": _packed(self.all_links)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        with collector_at_rest():
            for name, value in state.items():
                setattr(self, name, _unpacked(value) if name in ("hosts", "all_links") else value)


def _packed(items: Sequence[Host] | Sequence[Link]) -> list[tuple[type, list[str], tuple]]:
    """(class, names, other facts) of each run of hosts or links that differ in nothing else."""
    kind: Any = type(items[0])
    others = operator.attrgetter(*(field.name for field in fields(kind)[2:]))
    runs: Iterable[tuple[tuple, Iterable[Any]]] = itertools.groupby(items, others)
    return [(kind, [item.name for item in run], facts) for facts, run in runs]


def _unpacked(runs: list[tuple[type, list[str], tuple]]) -> tuple[Any, ...]:
    number = itertools.count()
    return tuple(kind(next(number), name, *facts) for kind, names, facts in runs for name in names)


def _line(lines: list[tuple[int, int]], index: int) -> int:
    """The line of the last declaration that starts at or before an index."""
    return lines[bisect.bisect_right(lines, index, key=lambda item: item[0]) - 1][1]
