# mypy: allow-untyped-defs, allow-incomplete-defs
"""Tori: hosts in a grid of any number of dimensions, each linked with the next, cyclically.

Parameters in the table: number of dimensions k, then their sizes. Link j of node i (to its next
node in dimension j) has number i k + j.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.platform.topologies.link_loads import carry, note_latency
from ptaskmodel.platform.topologies.topology import (
    DUPLEX,
    FIRST,
    LIMITER,
    LOOPBACK,
    NODES,
    PARAMS,
    BoolArray,
    Edge,
    IntArray,
    LinkBlock,
    Site,
    Survey,
    Topology,
    block_table,
    check_positive,
    integers,
    joined,
    own_loops,
)


@jit
def _walk(table, a, b, out):
    """Dimension by dimension; the way round each is chosen once, from the coordinates of a and b.

    The rules, odd ones included, are those of SimGrid.
    """
    if a == b and table[LOOPBACK] >= 0:
        out[0] = table[LOOPBACK] + a
        return 1
    dimensions, duplex, limiter = table[PARAMS], table[DUPLEX], table[LIMITER]
    count, node, stride = 0, a, 1
    for j in range(dimensions):
        size = table[PARAMS + 1 + j]
        here, there, half = (a // stride) % size, (b // stride) % size, size // 2
        upwards = (there > here and there <= here + half) or (
            here > half and (here + half) % size >= there
        )
        while here != there:
            if limiter >= 0:
                out[count] = limiter + node
                count += 1
            step = 1 if upwards else -1
            after = (here + step + size) % size
            neighbour = node + (after - here) * stride
            owner = node if upwards else neighbour
            link = table[FIRST] + (owner * dimensions + j) * (1 + duplex)
            out[count] = link if upwards else link + duplex
            count += 1
            node, here = neighbour, after
        stride *= size
    if limiter >= 0:
        out[count] = limiter + b
        count += 1
    return count


@jit
def _flows(tally, ways, table, ends, nodes, sources, targets, amount, largest):
    """As ``_walk``; ``ends``: the coordinates of each node."""
    dimensions, halves, limiter = table[PARAMS], 1 + table[DUPLEX], table[LIMITER]
    first, loopback = table[FIRST], table[LOOPBACK]
    for f in range(sources.size):
        a, b = nodes[sources[f]], nodes[targets[f]]
        total = 0.0
        if a == b and loopback >= 0:
            total = carry(tally, ways, loopback + a, amount[f], largest[f])
        else:
            node, stride = a, 1
            for j in range(dimensions):
                size = table[PARAMS + 1 + j]
                here, there, half = ends[a, j], ends[b, j], size // 2
                upwards = (there > here and there <= here + half) or (
                    here > half and here + half - size >= there
                )
                while here != there:
                    if limiter >= 0:
                        total += carry(tally, ways, limiter + node, amount[f], largest[f])
                    if upwards:
                        link = first + (node * dimensions + j) * halves
                        here += 1
                        node += stride
                        if here == size:
                            here = 0
                            node -= size * stride
                    else:
                        here -= 1
                        node -= stride
                        if here < 0:
                            here = size - 1
                            node += size * stride
                        link = first + (node * dimensions + j) * halves + halves - 1
                    total += carry(tally, ways, link, amount[f], largest[f])
                stride *= size
            if limiter >= 0:
                total += carry(tally, ways, limiter + b, amount[f], largest[f])
        note_latency(tally, total, largest[f])
    return True


@dataclass(frozen=True, slots=True)
class Torus(Topology):
    """A torus of ``sizes``, one for each dimension."""

    sizes: tuple[int, ...]

    name = "TORUS"
    walk = _walk
    flows = _flows

    def __post_init__(self) -> None:
        check_positive(*self.sizes)

    @classmethod
    def parse(cls, text: str, hosts: int) -> Torus:
        """Return the torus of ``topo_parameters`` (`text`). Raises ParameterError unless it has
        `hosts`.
        """
        return cls(integers(text))

    @property
    def parameters(self) -> str:
        return joined(self.sizes)

    @property
    def hosts(self) -> int:
        return math.prod(self.sizes)

    @property
    def links(self) -> int:
        return len(self.sizes) * self.hosts

    def declare(self, site: Site) -> IntArray:
        """Add its links at `site`; return its table."""
        loopback = site.add_loopbacks()
        limiter = site.add_limiters(range(self.hosts))
        names = [f"{site.id}_link_from_{i}_to_{after}" for i, after in _neighbours(self.sizes)]
        links = LinkBlock(site.duplex, site.add_cables(names), limiter, loopback)
        return torus_table(self.sizes, links)

    @classmethod
    def edges(cls, table: Sequence[int]) -> Iterator[Edge]:
        """Yield the links of a zone's `table`, node by node."""
        for number, (node, after) in enumerate(_neighbours(table[PARAMS + 1 :])):
            yield Edge(node, after, table[FIRST] + number * (1 + table[DUPLEX]))

    @classmethod
    def coordinates(cls, table: Sequence[int]) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield the place in each dimension of the hosts of a zone's `table`."""
        sizes = table[PARAMS + 1 : PARAMS + 1 + table[PARAMS]]
        places = itertools.product(*(range(size) for size in reversed(sizes)))
        yield from enumerate(place[::-1] for place in places)

    @classmethod
    def survey(
        cls, table: IntArray, nodes: IntArray, hosts: IntArray, owner: IntArray, common: BoolArray
    ) -> Survey:
        """Survey a zone; `Topology.survey` explains table, nodes, hosts, owner and common."""
        own_loops(table, nodes, hosts, owner)
        sizes = table[PARAMS + 1 : PARAMS + 1 + int(table[PARAMS])]
        places = np.unravel_index(np.arange(int(table[NODES])), sizes[::-1])[::-1]
        return Survey(ends=np.ascontiguousarray(np.stack(places, axis=1)))


def _neighbours(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(node, its next node), dimension by dimension, node by node: in the order of the links."""
    strides = [math.prod(sizes[:j]) for j in range(len(sizes))]
    for i in range(math.prod(sizes)):
        for size, stride in zip(sizes, strides, strict=True):
            last = (i // stride) % size == size - 1
            yield i, i - (size - 1) * stride if last else i + stride


def torus_table(sizes: Sequence[int], links: LinkBlock) -> IntArray:
    """The table of a torus."""
    hops = sum(size // 2 + 1 for size in sizes)
    return block_table(hops, math.prod(sizes), links, [len(sizes), *sizes])
