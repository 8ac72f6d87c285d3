# mypy: allow-untyped-defs, allow-incomplete-defs
"""Fat trees: hosts under levels of switches, with any number of parents and parallel cables.

The table has these parameters:

- the number of levels L, and the shift: positions in formulas of ports are counted over all fat
  trees of the platform;
- six for each level l = 1..L: children c_l, parents p_l, cables k_l, the products p_1...p_{l-1} and
  c_1...c_{l-1}, and the number of the first link below the level;
- for each level the number of its first switch.

The position of a node of level l is a number of L digits; digit j has radix p_j if j <= l, else
c_j.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.platform.facts import short
from ptaskmodel.platform.topologies.link_loads import add, carry, note_latency
from ptaskmodel.platform.topologies.topology import (
    DUPLEX,
    FIRST,
    LIMITER,
    LOOPBACK,
    NO_ENDS,
    NODES,
    PARAMS,
    BoolArray,
    Edge,
    IntArray,
    LinkBlock,
    ParameterError,
    Site,
    Survey,
    Topology,
    block_table,
    check_positive,
    integers,
    joined,
    own_loops,
    own_ports,
)


@jit
def _walk(table, a, b, out):
    """Up by destination modulo ports (D-mod-K) to a common ancestor, then down.

    Going down, the scan of ports goes on in the child where it stopped in the parent. The rules,
    odd ones included, are those of SimGrid.
    """
    if a == b and table[LOOPBACK] >= 0:
        out[0] = table[LOOPBACK] + a
        return 1
    levels, shift, duplex, limiter = table[PARAMS], table[PARAMS + 1], table[DUPLEX], table[LIMITER]
    groups = PARAMS + 2
    switches = groups + 6 * levels
    count, level, node = 0, 0, a
    while True:
        g = groups + 6 * level
        c, p, k, below = table[g], table[g + 1], table[g + 2], table[g + 3]
        if limiter >= 0:
            number = node if level == 0 else table[NODES] + table[switches + level - 1] + node
            out[count] = limiter + number
            count += 1
        port = ((b + shift) // below) % (p * k)
        link = table[g + 5] + node * (p * k) + (port % p) * k + port // p
        out[count] = table[FIRST] + link * (1 + duplex)
        count += 1
        node = node % below + below * (port % p + p * (node // (below * c)))
        level += 1
        if node // (below * p) == b // (table[g + 4] * c):
            break
    while level > 0:
        g = groups + 6 * (level - 1)
        port = ((a + shift) % table[g + 2]) * table[g]
        while level > 0 and port < table[g] * table[g + 2]:
            c, p, k, below = table[g], table[g + 1], table[g + 2], table[g + 3]
            digit = (b // table[g + 4]) % c
            if port % c == digit:
                own = (node // below) % p
                child = node % below + below * (digit + c * (node // (below * p)))
                link = table[g + 5] + child * (p * k) + own * k + port // c
                out[count] = table[FIRST] + link * (1 + duplex) + duplex
                count += 1
                if limiter >= 0:
                    out[count] = limiter + table[NODES] + table[switches + level - 1] + node
                    count += 1
                node = child
                level -= 1
                g -= 6
            port += 1
    if limiter >= 0:
        out[count] = limiter + b
        count += 1
    return count


@jit
def _all_to_all(tally, ways, table, nodes, amount, scratch, counts):
    """Level by level: for trees without limiters or parallel cables.

    The links that a flow climbs depend on its destination and on the subtree that it leaves, and
    those it descends on its destination alone (Zahavi, "Fat-tree routing and node ordering
    providing contention free traffic for MPI global collectives", 2012). False if the links met do
    not all have one latency.
    """
    fatpipe, latency_s, offset = ways.fatpipe, ways.latency_s, ways.offset
    n = nodes.size
    levels, shift, halves = table[PARAMS], table[PARAMS + 1], 1 + table[DUPLEX]
    groups = PARAMS + 2
    # The subtree of each node at a level, the place in it that flows to that node reach, and the
    # way up that they take, by number; the ways in use.
    subtree, place, way, used = scratch[0], scratch[1], scratch[2], scratch[3]
    everywhere, inside = counts[0], counts[1]
    latency = -1.0
    deepest = 0
    for i in range(n):
        subtree[i] = nodes[i]
        place[i] = 0
    for level in range(levels):
        g = groups + 6 * level
        c, p, below = table[g], table[g + 1], table[g + 3]
        n_used = 0
        for i in range(n):
            way[i] = place[i] * p + ((nodes[i] + shift) // below) % p
            if everywhere[way[i]] == 0:
                used[n_used] = way[i]
                n_used += 1
            everywhere[way[i]] += 1
        first = 0
        while first < n:
            last = first
            while last < n and subtree[last] == subtree[first]:
                inside[way[last]] += 1
                last += 1
            here = last - first
            lowest = offset + table[FIRST] + (table[g + 5] + subtree[first] * below * p) * halves
            for k in range(n_used if here < n else 0):
                link = lowest + used[k] * halves
                if latency < 0.0:
                    latency = latency_s[link]
                # Up to the nodes elsewhere that are reached this way, down to those here.
                up = float(here * (everywhere[used[k]] - inside[used[k]]))
                down = float(inside[used[k]] * (n - here))
                if (up > 0.0 and latency_s[link] != latency) or (
                    down > 0.0 and latency_s[link + halves - 1] != latency
                ):
                    for i in range(everywhere.size):
                        everywhere[i] = 0
                        inside[i] = 0
                    return False
                if up > 0.0:
                    add(tally, fatpipe, link, up * amount, amount, up)
                    deepest = level + 1
                if down > 0.0:
                    add(tally, fatpipe, link + halves - 1, down * amount, amount, down)
            for i in range(first, last):
                inside[way[i]] = 0
            first = last
        for i in range(n):
            everywhere[way[i]] = 0
            place[i] += below * (way[i] % p)
            subtree[i] //= c
    total = 0.0
    for _ in range(2 * deepest):
        total += latency
    note_latency(tally, total, amount)
    return True


@jit
def _flows(tally, ways, table, ends, nodes, sources, targets, amount, largest):
    """Up to the first subtree that holds both ends, then down; see ``_ends``."""
    loopback = table[LOOPBACK]
    for f in range(sources.size):
        a, b = nodes[sources[f]], nodes[targets[f]]
        total = 0.0
        if a == b and loopback >= 0:
            total = carry(tally, ways, loopback + a, amount[f], largest[f])
        else:
            level = 0
            total = carry(tally, ways, ends[a, 0] + ends[b, 1], amount[f], largest[f])
            while ends[a, level + 3] != ends[b, level + 3]:
                level += 4
                up = ends[a, level] + ends[b, level + 1]
                total += carry(tally, ways, up, amount[f], largest[f])
            while level >= 0:
                total += carry(tally, ways, ends[b, level + 2], amount[f], largest[f])
                level -= 4
        note_latency(tally, total, largest[f])
    return True


@dataclass(frozen=True, slots=True)
class FatTree(Topology):
    """A fat tree; per level, from the hosts up: children of a switch, parents of a node, cables.

    ``FatTree((32, 32), (1, 16), (1, 1))``: 32 hosts under each of 32 leaf switches, under 16 roots.
    """

    children: tuple[int, ...]
    parents: tuple[int, ...]
    cables: tuple[int, ...]

    name = "FAT_TREE"
    walk = _walk
    all_to_all = _all_to_all
    flows = _flows

    def __post_init__(self) -> None:
        levels = len(self.children)
        check_positive(*self.children, *self.parents, *self.cables)
        if levels == 0 or len(self.parents) != levels or len(self.cables) != levels:
            raise ParameterError(self._misshapen(self.parameters))

    @classmethod
    def parse(cls, text: str, hosts: int) -> FatTree:
        """Return the tree of ``topo_parameters`` (`text`). Raises ParameterError unless it has
        `hosts`.
        """
        parts = [integers(part) for part in text.split(";")]
        check_positive(*(number for part in parts for number in part))
        if len(parts) != 4 or parts[0] != (len(parts[1]),):
            raise ParameterError(cls._misshapen(text))
        return cls(*parts[1:])

    @staticmethod
    def _misshapen(text: str) -> str:
        what = f"topo_parameters {short(text)}; write 'levels;children of "
        return f"{what}each level;parents of each level;cables of each level', e.g. '2;4,4;1,2;1,2'"

    @property
    def parameters(self) -> str:
        levels = (len(self.children),)
        return ";".join(map(joined, (levels, self.children, self.parents, self.cables)))

    @property
    def hosts(self) -> int:
        return math.prod(self.children)

    @property
    def links(self) -> int:
        levels = range(len(self.children))
        return sum(self._width(i) * self.parents[i] * self.cables[i] for i in levels)

    def _width(self, level: int) -> int:
        """Number of nodes of a level (0: the hosts)."""
        return math.prod(self.parents[:level]) * math.prod(self.children[level:])

    def declare(self, site: Site) -> IntArray:
        """Add its links at `site`; return its table."""
        hosts, levels = self.hosts, len(self.children)
        switches = sum(self._width(level) for level in range(1, levels + 1))
        loopback = site.add_loopbacks()
        numbers = [*range(hosts), *range(2 * hosts - 1, 2 * hosts - 1 - switches, -1)]
        limiter = site.add_limiters(numbers)
        first_name = site.counts.get("fat tree links", 0)
        shift = site.counts.get("fat tree hosts", 0)
        table = fat_tree_table(self, shift, LinkBlock(site.duplex, 0, limiter, loopback))
        names = [
            f"link_from_{numbers[edge.node]}_{numbers[edge.other]}_{unique}"
            for unique, edge in enumerate(self.edges(table.tolist()), first_name)
        ]
        table[FIRST] = site.add_cables(names)
        site.counts["fat tree links"] = first_name + len(names)
        site.counts["fat tree hosts"] = shift + hosts
        return table

    @classmethod
    def edges(cls, table: Sequence[int]) -> Iterator[Edge]:
        """Yield the links of a zone's `table`, child by child, in their order; switches come after
        the hosts.
        """
        levels, nodes = table[PARAMS], table[NODES]
        groups = [table[PARAMS + 2 + 6 * k : PARAMS + 8 + 6 * k] for k in range(levels)]
        first_switch = table[PARAMS + 2 + 6 * levels :]
        for level, (c, p, k, below, _, first) in enumerate(groups):
            width = below * math.prod(group[0] for group in groups[level:])
            child_first = 0 if level == 0 else nodes + first_switch[level - 1]
            parent_first = nodes + first_switch[level]
            for child in range(width):
                rest = child % below + below * p * (child // (below * c))
                for digit in range(p):
                    for cable in range(k):
                        number = first + (child * p + digit) * k + cable
                        link = table[FIRST] + number * (1 + table[DUPLEX])
                        parent = parent_first + rest + below * digit
                        yield Edge(child_first + child, parent, link, level)

    @classmethod
    def survey(
        cls, table: IntArray, nodes: IntArray, hosts: IntArray, owner: IntArray, common: BoolArray
    ) -> Survey:
        """Survey a zone; `Topology.survey` explains table, nodes, hosts, owner and common.

        plain: without limiters and parallel cables. ways: the most upward paths from a subtree.
        """
        own_loops(table, nodes, hosts, owner)
        own_ports(table, nodes, hosts, owner, int(table[PARAMS + 3] * table[PARAMS + 4]))
        levels = table[PARAMS + 2 : PARAMS + 2 + 6 * int(table[PARAMS])].reshape(-1, 6)
        parents, cables, below = levels[:, 1], levels[:, 2], levels[:, 3]
        plain = int(table[LIMITER]) < 0 and bool((cables == 1).all())
        return Survey(plain, int((parents * below).max()), _ends(table) if plain else NO_ENDS)


def _ends(table: IntArray) -> IntArray:
    """What ``_flows`` reads of a tree with one cable between two switches and no limiters.

    For each node, four columns for each level: the first link above the subtree that it is in;
    the place there of the link that flows to the node climb; the link by which they come down;
    the number of the subtree one level further up.
    """
    levels, shift, halves = (int(table[k]) for k in (PARAMS, PARAMS + 1, DUPLEX))
    halves += 1
    node = np.arange(int(table[NODES]))
    place = np.zeros_like(node)
    columns = []
    for level in range(levels):
        g = PARAMS + 2 + 6 * level
        c, p, _, below, leaves, first = table[g : g + 6].tolist()
        port = (node + shift) // below % p
        lowest = int(table[FIRST]) + (first + node // leaves * below * p) * halves
        climbed = (place * p + port) * halves
        columns += [lowest, climbed, lowest + climbed + halves - 1, node // (leaves * c)]
        place = place + below * port
    return np.ascontiguousarray(np.stack(columns, axis=1))


def fat_tree_table(tree: FatTree, shift: int, links: LinkBlock) -> IntArray:
    """The table of a tree; ``shift``: number of hosts of the fat trees before it."""
    children, parents, cables = tree.children, tree.parents, tree.cables
    parameters = [len(children), shift]
    first_link = 0
    first_switch = [0]
    for level in range(len(children)):
        low = math.prod(parents[:level])
        at_level = low * math.prod(children[level:])
        parameters += [children[level], parents[level], cables[level], low]
        parameters += [math.prod(children[:level]), first_link]
        first_link += at_level * parents[level] * cables[level]
        above = low * parents[level] * math.prod(children[level + 1 :])
        first_switch.append(first_switch[-1] + above)
    parameters += first_switch[:-1]
    return block_table(2 * len(children), tree.hosts, links, parameters)
