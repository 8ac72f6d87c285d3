"""Compiled routes inside a zone of any family, and the shortcuts of their family for many of them.

All are generated from the table of families.
"""

from __future__ import annotations

from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.platform.routing.dispatch import dispatch
from ptaskmodel.platform.topologies.families import FAMILIES


@jit
def _no_shortcut(tally, ways, table, nodes, amount, scratch, counts):
    return False


@jit
def _no_tables(tally, ways, table, ends, nodes, sources, targets, amount, largest):
    return False


_walk = dispatch([family.walk for family in FAMILIES])
all_to_all_shortcut = dispatch([family.all_to_all or _no_shortcut for family in FAMILIES])
flows_by_tables = dispatch([family.flows or _no_tables for family in FAMILIES])


@entry
def walk(kind, table, a, b, out):
    """Write the links of the route from node a to node b of a zone in ``out``; their number.

    kind, table: of the zone's `WalkTable`; nodes are local numbers. -1: the route is undefined.
    ``out`` must hold ``table[LONGEST]`` values.
    """
    return _walk(kind, table, a, b, out)


@entry
def walk_pairs(kind, table, sources, targets, start, links, known):
    """Write the routes between pairs of nodes of a zone, one after the other.

    That of pair k is ``links[start[k]:start[k + 1]]``; there must be room for ``table[LONGEST]``
    links of each. known: whether a route is defined.
    """
    place = 0
    for k in range(sources.size):
        start[k] = place
        count = _walk(kind, table, sources[k], targets[k], links[place:])
        known[k] = count >= 0
        place += max(count, 0)
    start[sources.size] = place
