"""All that is declared of a platform, by a file or a program: what its routes are found from."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from pathlib import Path

from ptaskmodel.platform.model import Host, Link
from ptaskmodel.platform.notes import Note
from ptaskmodel.platform.zones import Points, Zone


@dataclass(slots=True)
class Facts:
    """What was declared, in order.

    hosts, links: in order of declaration, at their ``index``; the last link is the built-in
    ``__loopback__``. config: options, old names replaced by new ones. notes: what is odd, hints:
    what may be. zones: their tree, the root first. duplex: the first half of each split link, by
    its id. host_index, link_index: by name. host_lines, link_lines: (first index, line) of each
    declaration.
    """

    path: Path
    hosts: tuple[Host, ...]
    links: tuple[Link, ...]
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
        return 1 if index == len(self.links) - 1 else _line(self.link_lines, index)


def _line(lines: list[tuple[int, int]], index: int) -> int:
    """The line of the last declaration that starts at or before an index."""
    return lines[bisect.bisect_right(lines, index, key=lambda item: item[0]) - 1][1]
