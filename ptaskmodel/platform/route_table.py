"""The routes between hosts as a table, one line a pair."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ptaskmodel.errors import RouteError
from ptaskmodel.files import whole_file
from ptaskmodel.names import join_names

if TYPE_CHECKING:
    from ptaskmodel.platform.platform import Platform

COLUMNS = ("src", "dst", "latency_s", "links")


def write_routes(
    platform: Platform, pairs: Iterable[tuple[int, int]], output: str | Path | IO[str]
) -> int:
    """Write a CSV file (or stream) of COLUMNS, links separated by one space.

    pairs: numbers of hosts. A pair without a route has an empty latency. Returns the number of
    these. Raises PTaskModelError if the file cannot be written.
    """
    if isinstance(output, str | Path):
        with whole_file(output) as stream:
            return write_routes(platform, pairs, stream)
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(COLUMNS)
    missing = 0
    for source, destination in pairs:
        names = platform.hosts[source].name, platform.hosts[destination].name
        try:
            route = platform.route(*names)
        except RouteError:
            missing += 1
            writer.writerow((*names, "", ""))
        else:
            writer.writerow((*names, repr(route.latency_s), join_names(route.links)))
    return missing
