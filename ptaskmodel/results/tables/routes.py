"""Write the route that each flow takes: routes.csv, as ``--routing file:`` reads it."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ptaskmodel.files import join_names

if TYPE_CHECKING:
    from ptaskmodel.simulation.simulation import Simulation

ROUTES = "routes.csv"


def write_flow_routes(place: Path, simulation: Simulation) -> str:
    """Write routes.csv, a line for each flow between two hosts; returns its name.

    place: an existing directory. simulation: what has the flows. A path names the links
    crossed; limiters of clusters, which come with their nodes, are left out.
    """
    with (place / ROUTES).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("task", "flow", "path"))
        writer.writerows(_lines(simulation))
    return ROUTES


def _lines(simulation: Simulation) -> Iterator[tuple[str, int, str]]:
    platform = simulation.platform
    routes = simulation.core.router.flow_routes
    limiters = set(platform.fabric.limiter.values())
    for ref in simulation.tasks():
        for number, source, target in simulation.flows_of(ref):
            if source != target:
                way = routes.way(ref.id, number, source, target)
                names = (platform.all_links[k].name for k in way.there if k not in limiters)
                yield ref.id, number, join_names(names)
